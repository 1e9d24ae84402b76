/** The last translations, stored in this browser only. */

import { store, stored } from "../../../inspector/state/storage";

const KEY = "attendo.history";
const OFF_KEY = "attendo.history.off";
const MAX_ENTRIES = 50;
const MAX_CHARACTERS = 2000;

export interface HistoryEntry {
  text: string;
  translation: string;
  model: string;
  /** The target of a translation in two steps. */
  to?: string;
}

/** Parse stored entries; invalid ones are ignored. */
export function parseHistory(json: string | null): HistoryEntry[] {
  try {
    const found: unknown = JSON.parse(json ?? "[]");
    return Array.isArray(found) ? found.filter(isEntry).slice(0, MAX_ENTRIES) : [];
  } catch {
    return [];
  }
}

function isEntry(value: unknown): value is HistoryEntry {
  const entry = (value ?? {}) as Record<string, unknown>;
  return ["text", "translation", "model"].every((name) => typeof entry[name] === "string") && ["undefined", "string"].includes(typeof entry.to);
}

/** Add an entry in front. It replaces the last one where that is the beginning of the same text, as while typing. */
export function addEntry(entries: readonly HistoryEntry[], entry: HistoryEntry): HistoryEntry[] {
  const isSame = (one: HistoryEntry, index: number) =>
    one.model === entry.model && one.to === entry.to && (one.text === entry.text || (index === 0 && entry.text.startsWith(one.text)));
  return [entry, ...entries.filter((one, index) => !isSame(one, index))].slice(0, MAX_ENTRIES);
}

export class History {
  entries = $state.raw<HistoryEntry[]>(parseHistory(stored(KEY)));
  isOn = $state(stored(OFF_KEY) !== "1");

  add(entry: HistoryEntry): void {
    if (!this.isOn || !entry.translation || entry.text.length > MAX_CHARACTERS) return;
    this.#set(addEntry(this.entries, entry));
  }

  clear(): void {
    this.#set([]);
  }

  /** Without a history, what was stored is deleted. */
  turn(isOn: boolean): void {
    this.isOn = isOn;
    store(OFF_KEY, isOn ? "" : "1");
    if (!isOn) this.clear();
  }

  #set(entries: HistoryEntry[]): void {
    this.entries = entries;
    store(KEY, JSON.stringify(entries));
  }
}
