/** The views of a record; an address may end in one of these names. */

export const TABS = ["attention", "steps", "beam", "why", "words", "figures"] as const;

export type Tab = (typeof TABS)[number];

/** The view that an address names, or the first one. */
export function tabOf(hash: string): Tab {
  return TABS.find((tab) => `#${tab}` === hash) ?? TABS[0];
}
