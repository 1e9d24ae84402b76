/** Rows of a series out of a pasted or opened CSV, matched to what a model reads. */

import type { SeriesInfo } from "../../api/types";

/** The last rows, as many as the model reads. */
export interface SeriesRows {
  times: string[] | null;
  columns: Record<string, (number | null)[]>;
  numRows: number;
  /** Rows that came before and are not needed. */
  numLeft: number;
  numMissing: number;
}

export type Trouble =
  | { trouble: "empty" }
  | { trouble: "columns"; names: string }
  | { trouble: "twice"; names: string }
  | { trouble: "cells"; line: number; found: number; wanted: number }
  | { trouble: "number"; line: number; name: string; said: string }
  | { trouble: "short"; found: number; wanted: number };

const MISSING = new Set(["", "nan", "null", "na", "n/a"]);
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i;
const SHOWN = 40;

/** Read a table for a model; what is wrong with it is told by its line. */
export function readSeries(text: string, info: SeriesInfo): SeriesRows | Trouble {
  const lines = splitLines(text);
  if (!lines.length) return { trouble: "empty" };
  const mark = markOf(lines[0].text);
  const cells = lines.map((line) => ({ number: line.number, cells: splitCells(line.text, mark) }));
  const plan = planOf(cells[0].cells, info);
  if ("trouble" in plan) return plan;
  const rows = plan.hasHeader ? cells.slice(1) : cells;
  const odd = rows.find((row) => row.cells.length !== cells[0].cells.length);
  if (odd) return { trouble: "cells", line: odd.number, found: odd.cells.length, wanted: cells[0].cells.length };
  if (rows.length < info.window) return { trouble: "short", found: rows.length, wanted: info.window };
  return readRows(rows.slice(-info.window), plan, info, rows.length - info.window);
}

interface Plan {
  hasHeader: boolean;
  /** Where each feature stands. */
  places: number[];
  time: number | null;
}

interface Line {
  number: number;
  cells: string[];
}

function readRows(rows: Line[], { places, time }: Plan, info: SeriesInfo, numLeft: number): SeriesRows | Trouble {
  const columns: Record<string, (number | null)[]> = {};
  let numMissing = 0;
  for (const [feature, name] of info.columns.entries()) {
    const read: (number | null)[] = [];
    for (const row of rows) {
      const value = readCell(row.cells[places[feature]]);
      if (value === undefined) return { trouble: "number", line: row.number, name, said: row.cells[places[feature]].slice(0, SHOWN) };
      if (value === null) numMissing++;
      read.push(value);
    }
    columns[name] = read;
  }
  const times = time === null ? null : rows.map((row) => row.cells[time].trim());
  return { times, columns, numRows: rows.length, numLeft, numMissing };
}

/** Find the columns by the names in the first line; a table without names has them in order. */
function planOf(first: string[], info: SeriesInfo): Plan | Trouble {
  const names = first.map(plain);
  const places = info.columns.map((name) => names.indexOf(plain(name)));
  const time = info.time === null ? -1 : names.indexOf(plain(info.time));
  const hasHeader = time >= 0 || places.some((place) => place >= 0);
  if (!hasHeader) return planInOrder(first, info);
  const lacking = info.columns.filter((_, feature) => places[feature] < 0);
  if (lacking.length) return { trouble: "columns", names: lacking.join(", ") };
  const twice = info.columns.filter((name, feature) => names.lastIndexOf(plain(name)) !== places[feature]);
  if (twice.length) return { trouble: "twice", names: twice.join(", ") };
  return { hasHeader, places, time: time < 0 ? null : time };
}

function planInOrder(first: string[], info: SeriesInfo): Plan | Trouble {
  const extra = first.length - info.columns.length;
  const hasTime = extra === 1 && info.time !== null;
  const isFitting = (extra === 0 || hasTime) && first.slice(extra).every((cell) => readCell(cell) !== undefined);
  if (!isFitting) return { trouble: "columns", names: info.columns.join(", ") };
  return { hasHeader: false, places: info.columns.map((_, feature) => feature + extra), time: hasTime ? 0 : null };
}

/** A number, null for a missing one, undefined for anything else. */
function readCell(cell: string): number | null | undefined {
  const said = cell.trim();
  if (MISSING.has(said.toLowerCase())) return null;
  const value = NUMBER.test(said) ? Number(said) : NaN;
  return Number.isFinite(value) ? value : undefined;
}

function plain(name: string): string {
  return name.trim().toLowerCase();
}

function splitLines(text: string): { number: number; text: string }[] {
  const lines = text.replace(/^\ufeff/, "").split(/\r\n|\n|\r/);
  return lines.map((line, place) => ({ number: place + 1, text: line })).filter((line) => line.text.trim());
}

/** What parts the cells: what the first line has most of. */
function markOf(line: string): string {
  const marks = [",", "\t", ";"];
  const counts = marks.map((mark) => line.split(mark).length);
  return marks[counts.indexOf(Math.max(...counts))];
}

function splitCells(line: string, mark: string): string[] {
  if (!line.includes('"')) return line.split(mark);
  const cells: string[] = [];
  let [cell, isQuoted] = ["", false];
  for (let place = 0; place < line.length; place++) {
    const letter = line[place];
    if (letter === '"' && isQuoted && line[place + 1] === '"') cell += line[++place];
    else if (letter === '"') isQuoted = !isQuoted;
    else if (letter === mark && !isQuoted) {
      cells.push(cell);
      cell = "";
    } else cell += letter;
  }
  return [...cells, cell];
}

/** Write rows as a table with names: what is kept in an address. */
export function writeSeries({ times, columns }: SeriesRows, info: SeriesInfo): string {
  const names = [...(times ? [info.time ?? "time"] : []), ...info.columns];
  const rows = Array.from({ length: info.window }, (_, row) => [...(times ? [times[row]] : []), ...info.columns.map((name) => String(columns[name][row] ?? ""))]);
  return [names, ...rows].map((cells) => cells.map(quote).join(",")).join("\n");
}

function quote(cell: string): string {
  return /[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
