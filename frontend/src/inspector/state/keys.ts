/** The keyboard map of the attention view and of the player. */

export interface Press {
  key: string;
  /** The place on the keyboard: Shift+1 is "!" on one keyboard and "+" on another. */
  code: string;
  shiftKey: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
}

export type AttentionAction =
  | { do: "head"; head: number; add: boolean }
  | { do: "mode"; mode: "all" | "mean" }
  | { do: "layer" | "kind"; by: 1 | -1 }
  | { do: "words" | "release" };

export interface PlayerAction { do: "toggle" | "next" | "previous" | "first" | "last" }

const ATTENTION: Record<string, AttentionAction> = {
  a: { do: "mode", mode: "all" },
  m: { do: "mode", mode: "mean" },
  "[": { do: "layer", by: -1 },
  "]": { do: "layer", by: 1 },
  k: { do: "kind", by: 1 },
  w: { do: "words" },
  Escape: { do: "release" },
};

const PLAYER: Record<string, PlayerAction> = {
  " ": { do: "toggle" },
  ArrowRight: { do: "next" },
  ArrowLeft: { do: "previous" },
  Home: { do: "first" },
  End: { do: "last" },
};

/** Letters by their place where the key gives none of ours: with a Korean keyboard "a" is "ㅁ". */
const PLACES: Record<string, string> = { KeyA: "a", KeyM: "m", KeyK: "k", KeyW: "w", BracketLeft: "[", BracketRight: "]" };

export function attentionAction(press: Press): AttentionAction | null {
  if (press.ctrlKey || press.metaKey || press.altKey) return null;
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(press.code)?.[1];
  if (digit) return { do: "head", head: Number(digit) - 1, add: press.shiftKey };
  const key = plainKey(press);
  if (press.shiftKey && key === "k") return { do: "kind", by: -1 };
  return ATTENTION[key] ?? null;
}

/** The letter, whatever the keyboard's language and Shift make of it. */
function plainKey({ key, code }: Press): string {
  if (key.length > 1) return key;
  return key.charCodeAt(0) > 127 ? (PLACES[code] ?? key) : key.toLowerCase();
}

export function playerAction(press: Press): PlayerAction | null {
  if (press.ctrlKey || press.metaKey || press.altKey || press.shiftKey) return null;
  return PLAYER[press.key] ?? null;
}

/** Move in a list or a grid by arrows, Home and End; null for every other key. */
export function moveInGrid(key: string, index: number, size: number, columns = size): number | null {
  const row = Math.floor(index / columns);
  const steps: Record<string, number> = {
    ArrowRight: index + 1,
    ArrowLeft: index - 1,
    ArrowDown: index + columns,
    ArrowUp: index - columns,
    Home: row * columns,
    End: Math.min(row * columns + columns, size) - 1,
  };
  const next = steps[key];
  return next === undefined ? null : next >= 0 && next < size ? next : index;
}

const MOVES = new Set([" ", "Enter", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"]);
const PRESSES = new Set([" ", "Enter"]);

/** Who wants every key, who the keys that move, who those that press. */
const OWNERS: [string, (key: string) => boolean][] = [
  ['textarea, select, [contenteditable], input:not([type="range"], [type="radio"], [type="checkbox"])', () => true],
  ['input, dialog, [role="application"], [role="tree"], [role="region"], [role="tablist"]', (key) => MOVES.has(key)],
  ["button, a, summary", (key) => PRESSES.has(key)],
];

/** Whether the one who has the focus wants this key: a text field every one, a slider the arrows. */
export function wantsKeys(target: Pick<Element, "closest">, { key }: Pick<Press, "key">): boolean {
  return OWNERS.some(([who, wants]) => wants(key) && target.closest(who) !== null);
}
