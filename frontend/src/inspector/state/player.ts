/** An animation of steps: the current step, and whether it is playing. */

export interface Player {
  index: number;
  length: number;
  isPlaying: boolean;
  /** Steps per second. */
  speed: number;
}

export const SPEEDS = [0.5, 1, 2, 4];

export type Command =
  | { do: "toggle" | "stop" | "next" | "previous" | "first" | "last" | "tick" }
  | { do: "seek"; index: number }
  | { do: "speed"; speed: number };

export function startPlayer(length: number): Player {
  return { index: 0, length, isPlaying: false, speed: 1 };
}

/** Apply a command; moving by hand stops the animation. */
export function play(player: Player, command: Command): Player {
  switch (command.do) {
    case "toggle":
      return toggle(player);
    case "stop":
      return { ...player, isPlaying: false };
    case "tick":
      return tick(player);
    case "speed":
      return { ...player, speed: command.speed };
    default:
      return { ...player, isPlaying: false, index: clamp(target(player, command), player.length) };
  }
}

/** The duration of one step in milliseconds. */
export function stepMillis(player: Player): number {
  return 1000 / player.speed;
}

function target(player: Player, command: Command): number {
  switch (command.do) {
    case "next":
      return player.index + 1;
    case "previous":
      return player.index - 1;
    case "last":
      return player.length - 1;
    case "seek":
      return command.index;
    default:
      return 0;
  }
}

/** At the end, playing starts again from the first step. */
function toggle(player: Player): Player {
  if (player.length < 2) return player;
  const isAtEnd = player.index >= player.length - 1;
  return { ...player, isPlaying: !player.isPlaying, index: !player.isPlaying && isAtEnd ? 0 : player.index };
}

function tick(player: Player): Player {
  if (!player.isPlaying) return player;
  const index = clamp(player.index + 1, player.length);
  return { ...player, index, isPlaying: index < player.length - 1 };
}

function clamp(index: number, length: number): number {
  return Math.max(0, Math.min(Math.round(index), length - 1));
}
