import { describe, expect, it } from "vitest";

import { attentionAction, moveInGrid, playerAction, type KeyPress, handlesKey } from "../../src/inspector/state/keys";

const press = (key: string, code = "", more: Partial<KeyPress> = {}): KeyPress => ({ key, code, shiftKey: false, ctrlKey: false, metaKey: false, altKey: false, ...more });

describe("keys of the attention view", () => {
  it.each([
    [press("1", "Digit1"), { do: "head", head: 0, add: false }],
    [press("!", "Digit1", { shiftKey: true }), { do: "head", head: 0, add: true }],
    [press("8", "Numpad8"), { do: "head", head: 7, add: false }],
    [press("a", "KeyA"), { do: "mode", mode: "all" }],
    [press("M", "KeyM", { shiftKey: true }), { do: "mode", mode: "mean" }],
    [press("[", "BracketLeft"), { do: "layer", by: -1 }],
    [press("]", "BracketRight"), { do: "layer", by: 1 }],
    [press("k", "KeyK"), { do: "kind", by: 1 }],
    [press("K", "KeyK", { shiftKey: true }), { do: "kind", by: -1 }],
    [press("w", "KeyW"), { do: "words" }],
    [press("Escape", "Escape"), { do: "release" }],
  ])("%o", (key, action) => expect(attentionAction(key)).toEqual(action));

  it("work on a Korean keyboard", () => expect(attentionAction(press("ㅁ", "KeyA"))).toEqual({ do: "mode", mode: "all" }));

  it.each([press("a", "KeyA", { ctrlKey: true }), press("a", "KeyA", { metaKey: true }), press("1", "Digit1", { altKey: true }), press("x", "KeyX"), press("0", "Digit0")])(
    "leave %o to the browser",
    (key) => expect(attentionAction(key)).toBeNull(),
  );
});

describe("keys of the player", () => {
  it("play, step and jump", () => {
    expect(playerAction(press(" "))).toEqual({ do: "toggle" });
    expect(playerAction(press("ArrowRight"))).toEqual({ do: "next" });
    expect(playerAction(press("End"))).toEqual({ do: "last" });
    expect(playerAction(press("ArrowRight", "", { altKey: true }))).toBeNull();
  });
});

describe("moving in a grid of 2 rows by 3", () => {
  it.each([
    ["ArrowRight", 1, 2],
    ["ArrowRight", 5, 5],
    ["ArrowLeft", 3, 2],
    ["ArrowLeft", 0, 0],
    ["ArrowDown", 1, 4],
    ["ArrowDown", 4, 4],
    ["ArrowUp", 4, 1],
    ["ArrowUp", 2, 2],
    ["Home", 5, 3],
    ["End", 3, 5],
  ])("%s from %i to %i", (key, from, to) => expect(moveInGrid(key, from, 6, 3)).toBe(to));

  it("leaves other keys alone", () => expect(moveInGrid("a", 0, 6, 3)).toBeNull());
});

describe("who has the focus", () => {
  /** An element that is found by exactly one of the selectors' parts. */
  const element = (...parts: string[]) => ({
    closest: ((selector: string) => (parts.some((part) => selector.split(", ").includes(part)) ? {} : null)) as Element["closest"],
  });

  it("keeps all keys in a text field, the arrows on a slider, Space on a button", () => {
    expect(handlesKey(element("textarea"), press("a"))).toBe(true);
    expect(handlesKey(element("input"), press("ArrowLeft"))).toBe(true);
    expect(handlesKey(element("input"), press("a"))).toBe(false);
    expect(handlesKey(element("button"), press(" "))).toBe(true);
    expect(handlesKey(element("button"), press("ArrowRight"))).toBe(false);
    expect(handlesKey(element(), press(" "))).toBe(false);
  });
});
