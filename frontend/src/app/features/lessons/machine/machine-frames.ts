/** The frames of the machine at work: the encoder once, then the decoder for every word. */

import { isSource } from "./machine-values";

export interface MachineFrame {
  stage: string;
  /** The word that is being written, counted from 0; while the encoder runs, 0. */
  step: number;
}

export function framesOf(stages: readonly string[], numSteps: number): MachineFrame[] {
  const encoder = stages.filter(isSource);
  const decoder = stages.filter((stage) => !isSource(stage));
  const steps = Array.from({ length: numSteps }, (_, step) => decoder.map((stage) => ({ stage, step })));
  return [...encoder.map((stage) => ({ stage, step: 0 })), ...steps.flat()];
}

/** The frame where the previous or the next word begins; the encoder is the first of them. */
export function jumpWord(frames: readonly MachineFrame[], index: number, direction: -1 | 1): number {
  const begins = frames.flatMap((frame, at) => {
    const before = frames[at - 1];
    return !before || before.step !== frame.step || isSource(before.stage) !== isSource(frame.stage) ? [at] : [];
  });
  const found = direction > 0 ? begins.find((at) => at > index) : begins.filter((at) => at < index).at(-1);
  return found ?? (direction > 0 ? frames.length - 1 : 0);
}

/** The frame of a stage at a step; stages of the encoder have one frame only. */
export function frameOf(frames: readonly MachineFrame[], stage: string, step: number): number {
  return frames.findIndex((frame) => frame.stage === stage && (isSource(stage) || frame.step === step));
}

const FIRST_SECONDS = 1.1;
const NEXT_SECONDS = 0.4;

/** How long a frame is shown: the first word slowly, the others faster. */
export function frameMillis({ stage, step }: MachineFrame): number {
  return 1000 * (step === 0 || stage === "search" ? FIRST_SECONDS : NEXT_SECONDS);
}

/** A text that fits into the drawing; a Hangul letter counts as two. */
export function shorten(words: readonly string[], maxWidth: number, keepEnd: boolean): string {
  const widthOf = (text: string) => [...text].reduce((sum, letter) => sum + (letter > "\u1100" ? 2 : 1), 0);
  const whole = words.join(" ");
  if (widthOf(whole) <= maxWidth) return whole;
  const letters = [...whole];
  while (letters.length && widthOf(letters.join("")) > maxWidth - 2) letters.splice(keepEnd ? 0 : -1, 1);
  const rest = letters.join("").trim();
  return keepEnd ? `… ${rest}` : `${rest} …`;
}
