/** The views of a record; an address may end in one of these names. */

import { kindsOf } from "../analysis/attention";
import type { LookRecord } from "../record/types";

export const TABS = ["attention", "steps", "beam", "why", "words", "figures"] as const;

export type Tab = (typeof TABS)[number];

/** The views that a record has: no search and no study of one is made of a series. */
export function tabsOf(record: LookRecord): readonly Tab[] {
  return record.series ? TABS.filter((tab) => tab !== "beam" && tab !== "why") : TABS;
}

/** The view that an address names, or the first one. */
export function tabOf(hash: string): Tab {
  return TABS.find((tab) => `#${tab}` === hash) ?? TABS[0];
}

/** The view that opens: the one that is wanted, but steps where there is no attention to begin with. */
export function firstTab(record: LookRecord, wanted: Tab): Tab {
  const found = tabsOf(record).includes(wanted) ? wanted : TABS[0];
  return found === "attention" && !kindsOf(record).length ? "steps" : found;
}
