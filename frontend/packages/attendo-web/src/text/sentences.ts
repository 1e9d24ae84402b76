/**
 * Splits a text into segments that a model can translate, and joins their translations again.
 * The rules are those of `attendo.text.sentences`: lines are never joined; in doubt a line is not split.
 */

import { WHITE_SPACE } from "./normalize";

const S = `[${WHITE_SPACE}]`;
const MARKS = ".!?…‼⁇⁈⁉．。｡！？";
const NARROW_CLOSERS = "\"'”’“‘»«›‹)\\]}";
const CLOSERS = `${NARROW_CLOSERS}」』）］｝】〉》〕`;
const FULLWIDTH_CLOSERS = "\"'”’)\\]}」』）］｝】〉》〕";
const BRACKETS = "」』）］｝】〉》〕";

const END_PUNCTUATION = new RegExp(`(?<![${MARKS}])[${MARKS}]+`, "gu");
const FULLWIDTH_END = /[。｡！？]$/u;
const CLOSING = new RegExp(`[${CLOSERS}]*`, "yu");
const FULLWIDTH_CLOSING = new RegExp(`[${FULLWIDTH_CLOSERS}]*`, "yu");
/** A group that is captured by a lookahead does not backtrack. */
const CLAUSE_END = new RegExp(
  `[,;:][${NARROW_CLOSERS}]*(?=${S})|(?<![)\\]}])[)\\]}]+(?=${S})` +
    `|[，、；：]|(?<![${BRACKETS}])(?=([${BRACKETS}]+))\\1(?![，、；：。！？.,;:!?])` +
    `|(?<![—―])(?=([—―]+))\\2(?!${S})|(?<=${S})[-–—―]+(?=${S})`,
  "gu",
);
const LETTER = /[\p{L}\p{N}]/u;
const WORD = new RegExp(`[^${WHITE_SPACE}]+`, "gu");
const SPACE = new RegExp(S, "u");
const LEADING_SPACE = new RegExp(`^${S}+`, "u");
const TRAILING_SPACE = new RegExp(`${S}+$`, "u");
const LAST_WORD = /[\p{L}\p{N}]+$/u;
const ABBREVIATION =
  /^(?:mr|mrs|ms|dr|prof|st|mt|rev|hon|gen|col|capt|lt|sgt|gov|sen|rep|vs|etc|eg|ie|al|cf|approx|dept|usw|bzw|ca|evtl|ggf|inkl|exkl|zzgl|vgl|sog|geb|hr|ing|[\p{L}\p{N}_]*str|tel|mio|mrd)$/iu;
/** Abbreviations only before a number: "No. 5", but "No. I stay.". */
const BEFORE_NUMBER = /^(?:no|nos|nr|pp|vol|fig|abb|kap|abs|bd|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|okt|nov|dec|dez)$/iu;
const LIST_NUMBER = new RegExp(`^${S}*[^\\p{L}\\p{N}_]?(?:[A-Z]\\.)?\\p{Nd}{1,3}(?:\\.\\p{Nd}{1,3})*$`, "u");
const DATE = new RegExp(`\\p{Nd}\\.${S}+\\p{Nd}{1,2}$`, "u");
const GERMAN_ORDINAL = new RegExp(
  `^${S}+(?:Januar|Jänner|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|Jahrhundert|Weltkrieg)`,
  "u",
);
const OPENER_AT_END = /["'“‘„‚«»‹›([{「『（]$/u;
const IS_LOWER = /^\p{Lowercase}/u;
const IS_DECIMAL = /^\p{Nd}+$/u;
/** Characters on each side that decide whether a mark ends a sentence. */
const CONTEXT = 24;
const UNSPACED_SCRIPT =
  /^[\u0e00-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f\u{20000}-\u{3ffff}]/u;
const MARK = /^\p{M}/u;

/** A text in segments: `separators[0] + segments[0] + separators[1] + ...`. */
export interface SegmentedText {
  segments: string[];
  separators: string[];
}

/** Split a text into as few segments as fit, or into its sentences, never across lines. */
export function splitIntoSegments(text: string, fits: (part: string) => boolean, bySentence: boolean): SegmentedText {
  const segments: string[] = [];
  const separators: string[] = [];
  let end = 0;
  for (const [start, stop] of segmentSpans(text, fits, bySentence)) {
    segments.push(text.slice(start, stop));
    separators.push(text.slice(end, start));
    end = stop;
  }
  return { segments, separators: [...separators, text.slice(end)] };
}

/** Join the translations of the segments into a text with the layout of the original. */
export function joinTranslations(document: SegmentedText, translations: readonly string[]): string {
  const [first = "", ...separators] = document.separators;
  const spaced = spaceSegments(separators, translations);
  let output = first;
  let pending = "";
  spaced.forEach((translation, index) => {
    const separator = separators[index]!;
    if (translation) output += pending + translation;
    if (index === separators.length - 1 || separator.includes("\n")) {
      output += separator;
      pending = "";
    } else if (translation) pending = separator ? " " : "";
  });
  return output;
}

/** Insert spaces between translations whose sources were not separated, e.g. in Chinese. */
function spaceSegments(separators: readonly string[], segments: readonly string[]): string[] {
  return segments.map((segment, index) => {
    const before = segments[index - 1];
    const startsWord = LETTER.test(Array.from(segment)[0] ?? "") && !UNSPACED_SCRIPT.test(segment);
    return before && !separators[index - 1] && startsWord ? ` ${segment}` : segment;
  });
}

/** Split one line into its sentences. */
export function splitSentences(line: string): string[] {
  return spans(line, sentenceEnds(line)).map(([start, stop]) => line.slice(start, stop));
}

type Span = [start: number, stop: number];
type Fits = (part: string) => boolean;

function* segmentSpans(text: string, fits: Fits, bySentence: boolean): Generator<Span> {
  const levels = SPLIT_LEVELS.slice(bySentence ? 1 : 0);
  let offset = 0;
  for (const line of text.split("\n")) {
    for (const [start, stop] of spans(line, bySentence ? sentenceEnds(line) : [])) {
      const unit = line.slice(start, stop);
      const ends = fits(unit) ? [] : chunk(unit, fits, levels);
      for (const [innerStart, innerStop] of spans(unit, ends)) yield [offset + start + innerStart, offset + start + innerStop];
    }
    offset += line.length + 1;
  }
}

/** Return start and stop of the parts between the ends, without the white space around them. */
function spans(text: string, ends: readonly number[]): Span[] {
  const result: Span[] = [];
  let start = 0;
  for (const stop of [...ends, text.length]) {
    const part = text.slice(start, stop);
    const stripped = strip(part);
    if (stripped) {
      const begin = start + part.length - part.replace(LEADING_SPACE, "").length;
      result.push([begin, begin + stripped.length]);
    }
    start = stop;
  }
  return result;
}

function strip(text: string): string {
  return text.replace(LEADING_SPACE, "").replace(TRAILING_SPACE, "");
}

/** Return the ends of the chunks, each of as many parts of the first level as fit. */
function chunk(text: string, fits: Fits, levels: readonly ((text: string) => number[])[]): number[] {
  const ends = [...levels[0]!(text), text.length];
  const chunkEnds: number[] = [];
  let start = 0;
  let first = 0;
  while (first < ends.length) {
    const lastFitting = lastFittingPart(text, start, ends, first, fits);
    if (lastFitting >= first) {
      start = ends[lastFitting]!;
      chunkEnds.push(start);
      first = lastFitting + 1;
      continue;
    }
    // A part that does not fit alone is split at the next level; its last chunk may include the parts that follow.
    const part = text.slice(start, ends[first]);
    const inner = levels.length > 1 ? chunk(part, fits, levels.slice(1)).map((end) => start + end) : [];
    chunkEnds.push(...inner.slice(0, -1));
    if (inner.length > 1) start = inner.at(-2)!;
    else {
      start = ends[first]!;
      chunkEnds.push(start);
      first++;
    }
  }
  return chunkEnds;
}

/** Return the last part that still fits after `start`, or `first - 1` if none does. */
function lastFittingPart(text: string, start: number, ends: readonly number[], first: number, fits: Fits): number {
  const isFitting = (index: number): boolean => fits(strip(text.slice(start, ends[index])));
  let step = 1;
  let good = first - 1;
  while (good + step < ends.length && isFitting(good + step)) {
    good += step;
    step *= 2;
  }
  let bad = Math.min(good + step, ends.length);
  while (bad - good > 1) {
    const middle = (good + bad) >> 1;
    if (isFitting(middle)) good = middle;
    else bad = middle;
  }
  return good;
}

/** Return the ends of all sentences but the last; each has a letter or digit. */
function sentenceEnds(text: string): number[] {
  const ends: number[] = [];
  let hasWords = false;
  let searched = 0;
  for (const match of text.matchAll(END_PUNCTUATION)) {
    const markEnd = match.index + match[0].length;
    const isWide = FULLWIDTH_END.test(match[0]);
    const closing = isWide ? FULLWIDTH_CLOSING : CLOSING;
    closing.lastIndex = markEnd;
    closing.test(text);
    const end = Math.max(closing.lastIndex, markEnd);
    hasWords ||= LETTER.test(text.slice(searched, end));
    searched = end;
    if (hasWords && (isWide || SPACE.test(text.slice(end, end + 1))) && isSentenceEnd(text, match.index, match[0], end)) {
      ends.push(end);
      hasWords = false;
    }
  }
  if (ends.length > 0 && !LETTER.test(text.slice(ends.at(-1)))) ends.pop();
  return ends;
}

/** Return whether a mark ends a sentence, by the words before and after it. */
function isSentenceEnd(text: string, mark: number, marks: string, end: number): boolean {
  const before = text.slice(Math.max(0, mark - CONTEXT), mark);
  const following = text.slice(end, end + CONTEXT).replace(LEADING_SPACE, "");
  const isQuoted = end > mark + marks.length && OPENER_AT_END.test(before);
  if (IS_LOWER.test(following) || isQuoted) return false;
  const word = LAST_WORD.exec(before)?.[0];
  if (marks !== "." || word === undefined) return true;
  const isBeforeNumber = /^\p{Nd}/u.test(following);
  return IS_DECIMAL.test(word) ? !continuesAfterNumber(text, mark, end, isBeforeNumber) : !isAbbreviation(word, isBeforeNumber);
}

function isAbbreviation(word: string, isBeforeNumber: boolean): boolean {
  const isInitial = Array.from(word).length === 1 && word < "\u0250"; // a Latin letter; "네." is a sentence
  return isInitial || (isBeforeNumber && BEFORE_NUMBER.test(word)) || ABBREVIATION.test(word);
}

/** Distinguish "1. First", "2024. 3. 5." and "am 3. Oktober" from "in 1990. Then". */
function continuesAfterNumber(text: string, dot: number, end: number, isBeforeNumber: boolean): boolean {
  const isList = dot < CONTEXT && LIST_NUMBER.test(text.slice(0, dot));
  return isList || isBeforeNumber || DATE.test(text.slice(Math.max(0, dot - CONTEXT), dot)) || GERMAN_ORDINAL.test(text.slice(end));
}

function matchEnds(text: string, pattern: RegExp): number[] {
  return Array.from(text.matchAll(pattern), (match) => match.index + match[0].length);
}

function clauseEnds(text: string): number[] {
  return matchEnds(text, CLAUSE_END).filter((end) => end < text.length);
}

function wordEnds(text: string): number[] {
  return matchEnds(text, WORD).slice(0, -1);
}

/** Split between characters, but keep accents, vowel signs and joined emoji together. */
function graphemeEnds(text: string): number[] {
  return characterEnds(text).filter((index) => {
    const isJoined = text[index] === "\u200d" || text[index - 1] === "\u200d";
    const isVowelOrFinal = /^[\u1160-\u11ff]/u.test(text.slice(index, index + 1)); // of decomposed Hangul
    return !isJoined && !isVowelOrFinal && !MARK.test(text.slice(index, index + 2));
  });
}

function characterEnds(text: string): number[] {
  const ends: number[] = [];
  let end = 0;
  for (const character of text) ends.push((end += character.length));
  return ends.slice(0, -1);
}

/** From the best split points to the last resort. */
const SPLIT_LEVELS = [sentenceEnds, clauseEnds, wordEnds, graphemeEnds, characterEnds];
