import { describe, expect, it } from "vitest";

import { stepMillis, play, type Player, startPlayer } from "../../src/inspector/state/player";

const at = (index: number, isPlaying = false): Player => ({ ...startPlayer(5), index, isPlaying });

describe("the player", () => {
  it("begins at the first step, at rest", () => expect(startPlayer(5)).toMatchObject({ index: 0, isPlaying: false }));

  it("runs to the last step and rests there", () => {
    let player = play(startPlayer(3), { do: "toggle" });
    const seen = [player.index];
    while (player.isPlaying) {
      player = play(player, { do: "tick" });
      seen.push(player.index);
    }
    expect(seen).toEqual([0, 1, 2]);
  });

  it("begins again when it is played at the end", () => {
    expect(play(at(4), { do: "toggle" })).toMatchObject({ index: 0, isPlaying: true });
  });

  it("pauses where it is", () => expect(play(at(2, true), { do: "toggle" })).toMatchObject({ index: 2, isPlaying: false }));

  it("steps, jumps and scrubs within its bounds, and stops the film for it", () => {
    expect(play(at(2, true), { do: "next" })).toMatchObject({ index: 3, isPlaying: false });
    expect(play(at(4), { do: "next" }).index).toBe(4);
    expect(play(at(0), { do: "previous" }).index).toBe(0);
    expect(play(at(2), { do: "first" }).index).toBe(0);
    expect(play(at(2), { do: "last" }).index).toBe(4);
    expect(play(at(2), { do: "seek", index: 99 }).index).toBe(4);
    expect(play(at(2), { do: "seek", index: -1 }).index).toBe(0);
  });

  it("ignores a tick at rest, and never plays a single step", () => {
    expect(play(at(2), { do: "tick" })).toEqual(at(2));
    expect(play(startPlayer(1), { do: "toggle" }).isPlaying).toBe(false);
  });

  it("goes faster when asked", () => {
    expect(stepMillis(play(at(0), { do: "speed", speed: 4 }))).toBe(250);
  });
});
