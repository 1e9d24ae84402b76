/** The tabs of the inspector; the URL of the offline page ends in one of these names. */

import { kindsOf } from "../analysis/attention";
import type { InspectionRecord } from "../record/record";

export const TABS = ["attention", "steps", "beam", "why", "words", "metrics"] as const;

export type Tab = (typeof TABS)[number];

/** The tabs for a record: a series has neither a beam search nor studies. */
export function tabsOf(record: InspectionRecord): readonly Tab[] {
  return record.series ? TABS.filter((tab) => tab !== "beam" && tab !== "why") : TABS;
}

/** The tab in the hash of a URL, or the first one. */
export function tabOf(hash: string): Tab {
  return TABS.find((tab) => `#${tab}` === hash) ?? TABS[0];
}

/** The tab to open: the requested one, but the steps for a model without attention. */
export function firstTab(record: InspectionRecord, requested: Tab): Tab {
  const found = tabsOf(record).includes(requested) ? requested : TABS[0];
  return found === "attention" && !kindsOf(record).length ? "steps" : found;
}
