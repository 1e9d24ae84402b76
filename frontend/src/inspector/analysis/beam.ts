/** The tree of a search: every candidate of the trace, who followed whom, and what became of it. */

import type { Candidate, Fate, Trace } from "../record/types";
import { joinPieces, sayPiece } from "./token-units";

export interface BeamNode {
  key: number;
  /** null for the start. */
  candidate: Candidate | null;
  label: string;
  group: number;
  /** 0 for the start, 1 for the first token. */
  depth: number;
  parent: BeamNode | null;
  children: BeamNode[];
  isEnd: boolean;
  /** Whether it lies on the way to the translation. */
  isWinner: boolean;
  fate: Outcome;
}

/** `starved`: it was kept, but nothing that followed it was; `alive`: kept when the search stopped. */
export type Outcome = Fate | "starved" | "alive";

export interface BeamTree {
  root: BeamNode;
  /** All of them, the start first, then by position. */
  nodes: BeamNode[];
  /** The last token of the translation, or the start where the trace has none. */
  winner: BeamNode;
}

/** How a path went on after a node, as far as the search followed it. */
export interface Continuation {
  nodes: BeamNode[];
  last: BeamNode;
}

export function buildTree(trace: Trace): BeamTree {
  const root = node(0, null, 0, null, trace.end_id);
  const nodes = [root];
  const open = new Map<number, Map<number, BeamNode>>(); // group -> slot -> who stands there
  for (const step of trace.steps) {
    const parents = open.get(step.group) ?? new Map([[0, root]]);
    const slots = new Map<number, BeamNode>();
    for (const candidate of step.candidates) {
      const parent = parents.get(candidate.parent);
      if (!parent) continue;
      const child = node(nodes.length, candidate, step.group, parent, trace.end_id);
      nodes.push(child);
      if (candidate.slot !== null && candidate.fate !== "pruned") slots.set(candidate.slot, child);
    }
    open.set(step.group, slots.size ? slots : parents); // nothing kept: it was stuck, and stays
  }
  const winner = markWinner(trace, nodes);
  const lastDepths = new Map(trace.steps.map((step) => [step.group, step.position + 1]));
  for (const one of nodes) one.fate = outcomeOf(one, lastDepths.get(one.group) ?? 0);
  return { root, nodes, winner };
}

/** From the first token to this one. */
export function pathTo(end: BeamNode): BeamNode[] {
  const path: BeamNode[] = [];
  for (let at: BeamNode | null = end; at?.candidate; at = at.parent) path.unshift(at);
  return path;
}

/** The text of a path, without its end symbol. */
export function textOf(path: BeamNode[]): string {
  return joinPieces(path.filter((one) => !one.isEnd).map((one) => one.candidate?.token ?? ""));
}

/**
 * How it went on: to its best finished end, or else as long as it stayed in the beam.
 *
 * Among equally long ways the better score counts; pruned candidates are no step of the way.
 */
export function continuationOf(start: BeamNode): Continuation {
  const taken = descendants(start).filter((one) => one.fate !== "pruned");
  const finished = taken.filter((one) => one.fate === "finished");
  const isBetter = (a: BeamNode, b: BeamNode) =>
    Number(a.isWinner) - Number(b.isWinner) ||
    (finished.length ? 0 : a.depth - b.depth) ||
    (a.candidate?.score ?? 0) - (b.candidate?.score ?? 0);
  const last = (finished.length ? finished : taken).reduce<BeamNode>(
    (best, one) => (best === start || isBetter(one, best) > 0 ? one : best),
    start,
  );
  return { nodes: pathTo(last).slice(start.depth), last };
}

/** The children that are drawn: the best first, pruned ones only when asked for. */
export function shownChildren(one: BeamNode, withPruned: boolean): BeamNode[] {
  return withPruned ? one.children : one.children.filter((child) => child.fate !== "pruned");
}

function node(key: number, candidate: Candidate | null, group: number, parent: BeamNode | null, endId: number): BeamNode {
  const made: BeamNode = {
    key,
    candidate,
    label: candidate ? sayPiece(candidate.token || String(candidate.id)) : "",
    group,
    depth: parent ? parent.depth + 1 : 0,
    parent,
    children: [],
    isEnd: candidate?.id === endId,
    isWinner: false,
    fate: candidate?.fate ?? "kept",
  };
  parent?.children.push(made);
  return made;
}

function markWinner(trace: Trace, nodes: BeamNode[]): BeamNode {
  const best = trace.hypotheses.at(0);
  const winner = best && nodes.find((one) => isHypothesis(one, best.ids, best.is_finished));
  for (let at: BeamNode | null = winner ?? nodes[0]; at; at = at.parent) at.isWinner = true;
  return winner ?? nodes[0];
}

function isHypothesis(one: BeamNode, ids: number[], isFinished: boolean): boolean {
  if (!one.candidate || isFinished !== (one.candidate.fate === "finished") || one.candidate.fate === "pruned") return false;
  const path = pathTo(one).filter((step) => !step.isEnd);
  return path.length === ids.length && path.every((step, place) => step.candidate?.id === ids[place]);
}

/** What became of it, where `lastDepth` is how far its group went. */
function outcomeOf(one: BeamNode, lastDepth: number): Outcome {
  const fate = one.candidate?.fate ?? "kept";
  if (fate !== "kept" || one.children.some((child) => child.candidate?.fate !== "pruned")) return fate;
  return one.depth < lastDepth ? "starved" : "alive";
}

function descendants(start: BeamNode): BeamNode[] {
  return start.children.flatMap((child) => [child, ...descendants(child)]);
}
