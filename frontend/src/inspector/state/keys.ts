/** The keyboard shortcuts of the attention view and of the player. */

export interface KeyPress {
  key: string;
  /** The physical key: Shift+1 is "!" on one keyboard and "+" on another. */
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

/** Latin letters by physical key, for other keyboards: on a Korean one "a" is "ㅁ". */
const LETTER_BY_CODE: Record<string, string> = { KeyA: "a", KeyM: "m", KeyK: "k", KeyW: "w", BracketLeft: "[", BracketRight: "]" };

export function attentionAction(event: KeyPress): AttentionAction | null {
  if (event.ctrlKey || event.metaKey || event.altKey) return null;
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code)?.[1];
  if (digit) return { do: "head", head: Number(digit) - 1, add: event.shiftKey };
  const key = plainKey(event);
  if (event.shiftKey && key === "k") return { do: "kind", by: -1 };
  return ATTENTION[key] ?? null;
}

/** The Latin letter of a key, independent of the keyboard's language and of Shift. */
function plainKey({ key, code }: KeyPress): string {
  if (key.length > 1) return key;
  return key.charCodeAt(0) > 127 ? (LETTER_BY_CODE[code] ?? key) : key.toLowerCase();
}

export function playerAction(event: KeyPress): PlayerAction | null {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey) return null;
  return PLAYER[event.key] ?? null;
}

/** The index that an arrow key, Home or End leads to in a list or a grid; null for every other key. */
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

const MOVE_KEYS = new Set([" ", "Enter", "ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End"]);
const PRESS_KEYS = new Set([" ", "Enter"]);

/** The elements that handle every key, those that handle the keys that move, and those that handle the keys that event. */
const KEY_HANDLERS: [string, (key: string) => boolean][] = [
  ['textarea, select, [contenteditable], input:not([type="range"], [type="radio"], [type="checkbox"])', () => true],
  ['input, dialog, [role="application"], [role="tree"], [role="region"], [role="tablist"]', (key) => MOVE_KEYS.has(key)],
  ["button, a, summary", (key) => PRESS_KEYS.has(key)],
];

/** Whether the focused element handles this key itself: a text field every key, a slider the arrows. */
export function handlesKey(target: Pick<Element, "closest">, { key }: Pick<KeyPress, "key">): boolean {
  return KEY_HANDLERS.some(([selector, handles]) => handles(key) && target.closest(selector) !== null);
}
