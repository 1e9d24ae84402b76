/** The steps at which something is known of what a run makes of a sentence. */

import type { RunEvent, SampleSet } from "../../api/schemas";

export interface TimelineStep {
  step: number;
  /** The last training loss logged until then. */
  trainLoss: number | null;
  /** The loss of the validation at this step. */
  devLoss: number | null;
  /** Whether the checkpoint of this step is kept: it can translate any sentence. */
  isKept: boolean;
  /** The translation that was recorded, if the sentence is one of the samples. */
  sampled: string | null;
}

/** The steps with a checkpoint or with samples, oldest first. */
export function runTimeline(events: readonly RunEvent[], sets: readonly SampleSet[], checkpoints: readonly number[], text: string): TimelineStep[] {
  const steps = [...new Set([...sets.map(({ step }) => step), ...checkpoints])].sort((a, b) => a - b);
  return steps.map((step) => {
    const loss = (event: string, isAt: (at: number) => boolean) => events.filter((one) => one.event === event && one.step !== null && isAt(one.step)).at(-1)?.loss ?? null;
    return {
      step,
      trainLoss: loss("train", (at) => at <= step),
      devLoss: loss("validation", (at) => at === step),
      isKept: checkpoints.includes(step),
      sampled: sets.find((set) => set.step === step)?.samples.find(({ src }) => src === text)?.output ?? null,
    };
  });
}

/** The sample sentence whose translation changed most often; of several the shortest. */
export function liveliestSample(sets: readonly SampleSet[]): string {
  const outputs = new Map<string, Set<string>>();
  for (const { samples } of sets) for (const { src, output } of samples) outputs.set(src, (outputs.get(src) ?? new Set()).add(output));
  return [...outputs].sort(([a, own], [b, other]) => other.size - own.size || a.length - b.length)[0]?.[0] ?? "";
}
