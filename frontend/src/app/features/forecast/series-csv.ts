/** Reads the rows of a series from pasted or opened CSV and matches its columns to those of a model. */

import type { SeriesInfo } from "../../api/schemas";

/** The last rows, as many as the model reads. */
export interface SeriesRows {
  times: string[] | null;
  columns: Record<string, (number | null)[]>;
  numRows: number;
  /** Older rows, which the model does not read. */
  numSkipped: number;
  numMissing: number;
}

export type CsvProblem =
  | { problem: "empty" }
  | { problem: "columns"; names: string }
  | { problem: "duplicate"; names: string }
  | { problem: "cells"; line: number; found: number; expected: number }
  | { problem: "number"; line: number; name: string; text: string }
  | { problem: "short"; found: number; expected: number };

const MISSING = new Set(["", "nan", "null", "na", "n/a"]);
const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i;
const MAX_SHOWN = 40;

/** Read a table for a model; a problem names the line that it is on. */
export function readSeries(text: string, info: SeriesInfo): SeriesRows | CsvProblem {
  const table = parseTable(text);
  if (!table.length) return { problem: "empty" };
  const [first] = table;
  const layout = findColumns(first.cells, info);
  if ("problem" in layout) return layout;
  const rows = layout.hasHeader ? table.slice(1) : table;
  const uneven = rows.find((row) => row.cells.length !== first.cells.length);
  if (uneven) return { problem: "cells", line: uneven.line, found: uneven.cells.length, expected: first.cells.length };
  if (rows.length < info.window) return { problem: "short", found: rows.length, expected: info.window };
  return readRows(rows.slice(-info.window), layout, info, rows.length - info.window);
}

interface ColumnLayout {
  hasHeader: boolean;
  /** The column of each feature. */
  features: number[];
  time: number | null;
}

interface Row {
  /** The line on which the row begins, counted from 1. */
  line: number;
  cells: string[];
}

function readRows(rows: Row[], { features, time }: ColumnLayout, info: SeriesInfo, numSkipped: number): SeriesRows | CsvProblem {
  const columns: Record<string, (number | null)[]> = {};
  let numMissing = 0;
  for (const [feature, name] of info.columns.entries()) {
    const values: (number | null)[] = [];
    for (const { line, cells } of rows) {
      const cell = cells[features[feature]];
      const value = parseCell(cell);
      if (value === undefined) return { problem: "number", line, name, text: cell.slice(0, MAX_SHOWN) };
      if (value === null) numMissing++;
      values.push(value);
    }
    columns[name] = values;
  }
  const times = time === null ? null : rows.map((row) => row.cells[time].trim());
  return { times, columns, numRows: rows.length, numSkipped, numMissing };
}

/** Find the columns by the names in the first row; a table without names has them in the model's order. */
function findColumns(first: string[], info: SeriesInfo): ColumnLayout | CsvProblem {
  const names = first.map(normalize);
  const features = info.columns.map((name) => names.indexOf(normalize(name)));
  const time = info.time === null ? -1 : names.indexOf(normalize(info.time));
  const hasHeader = time >= 0 || features.some((column) => column >= 0);
  if (!hasHeader) return columnsInOrder(first, info);
  const missing = info.columns.filter((_, feature) => features[feature] < 0);
  if (missing.length) return { problem: "columns", names: missing.join(", ") };
  const duplicate = info.columns.filter((name, feature) => names.lastIndexOf(normalize(name)) !== features[feature]);
  if (duplicate.length) return { problem: "duplicate", names: duplicate.join(", ") };
  return { hasHeader, features, time: time < 0 ? null : time };
}

function columnsInOrder(first: string[], info: SeriesInfo): ColumnLayout | CsvProblem {
  const numExtra = first.length - info.columns.length;
  const hasTime = numExtra === 1 && info.time !== null;
  const fits = (numExtra === 0 || hasTime) && first.slice(numExtra).every((cell) => parseCell(cell) !== undefined);
  if (!fits) return { problem: "columns", names: info.columns.join(", ") };
  return { hasHeader: false, features: info.columns.map((_, feature) => feature + numExtra), time: hasTime ? 0 : null };
}

/** A number, null for a missing value, undefined for anything else. */
function parseCell(cell: string): number | null | undefined {
  const text = cell.trim();
  if (MISSING.has(text.toLowerCase())) return null;
  const value = NUMBER.test(text) ? Number(text) : NaN;
  return Number.isFinite(value) ? value : undefined;
}

function normalize(name: string): string {
  return name.trim().toLowerCase();
}

/** Parse CSV as RFC 4180 defines it; blank lines are skipped, and a quote that is never closed is an ordinary character. */
function parseTable(text: string): Row[] {
  const input = text.replace(/^\ufeff/, "").replace(/\r\n?/g, "\n");
  const delimiter = findDelimiter(input);
  const plain = `[^${delimiter}\n]*`;
  const nextCell = new RegExp(`(?: *"([^"]*(?:""[^"]*)*)"(${plain})|(${plain}))(${delimiter}|\n|$)`, "y");
  const rows: Row[] = [];
  let row: Row = { line: 1, cells: [] };
  let [line, start] = [1, 0];
  for (let end = delimiter; end; ) {
    const [whole, quoted, rest, unquoted, found] = nextCell.exec(input)!;
    row.cells.push(quoted === undefined ? unquoted : quoted.replaceAll('""', '"') + rest);
    line += whole.split("\n").length - 1;
    end = found;
    if (end === delimiter) continue;
    if (input.slice(start, nextCell.lastIndex).trim()) rows.push(row);
    start = nextCell.lastIndex;
    row = { line, cells: [] };
  }
  return rows;
}

/** The delimiter that the first line has most of. */
function findDelimiter(input: string): string {
  const firstLine = /\S.*/.exec(input)?.[0] ?? "";
  const counts = [",", "\t", ";"].map((delimiter) => ({ delimiter, count: firstLine.split(delimiter).length }));
  return counts.reduce((best, one) => (one.count > best.count ? one : best)).delimiter;
}

/** Write rows as CSV with column names: the form that is kept in the URL. */
export function writeSeries({ times, columns }: SeriesRows, info: SeriesInfo): string {
  const names = [...(times ? [info.time ?? "time"] : []), ...info.columns];
  const rows = Array.from({ length: info.window }, (_, row) => [...(times ? [times[row]] : []), ...info.columns.map((name) => String(columns[name][row] ?? ""))]);
  return [names, ...rows].map((cells) => cells.map(quote).join(",")).join("\n");
}

function quote(cell: string): string {
  return /[",\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
