/** The search tree: every candidate of the trace, its parent, and its outcome. */

import type { Candidate, CandidateOutcome, Trace } from "../record/record";
import { joinPieces, pieceText } from "./token-units";

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
  /** Whether it is on the path of the translation. */
  isWinner: boolean;
  outcome: Outcome;
}

/** `starved`: kept, but none of its continuations was; `alive`: still in the beam when the search stopped. */
export type Outcome = CandidateOutcome | "starved" | "alive";

export interface BeamTree {
  root: BeamNode;
  /** All nodes, the start first, then by position. */
  nodes: BeamNode[];
  /** The last token of the translation, or the start if the trace has no translation. */
  winner: BeamNode;
}

/** The continuation of a path after a node, as far as the search followed it. */
export interface Continuation {
  nodes: BeamNode[];
  last: BeamNode;
}

export function buildTree(trace: Trace): BeamTree {
  const root = node(0, null, 0, null, trace.end_id);
  const nodes = [root];
  const open = new Map<number, Map<number, BeamNode>>(); // group -> slot -> node
  for (const step of trace.steps) {
    const parents = open.get(step.group) ?? new Map([[0, root]]);
    const slots = new Map<number, BeamNode>();
    for (const candidate of step.candidates) {
      const parent = parents.get(candidate.parent);
      if (!parent) continue;
      const child = node(nodes.length, candidate, step.group, parent, trace.end_id);
      nodes.push(child);
      if (candidate.slot !== null && candidate.outcome !== "pruned") slots.set(candidate.slot, child);
    }
    open.set(step.group, slots.size ? slots : parents); // nothing was kept: the group could not continue
  }
  const winner = markWinner(trace, nodes);
  const lastDepths = new Map(trace.steps.map((step) => [step.group, step.position + 1]));
  for (const one of nodes) one.outcome = outcomeOf(one, lastDepths.get(one.group) ?? 0);
  return { root, nodes, winner };
}

/** From the first token to this one. */
export function pathTo(end: BeamNode): BeamNode[] {
  const path: BeamNode[] = [];
  for (let at: BeamNode | null = end; at?.candidate; at = at.parent) path.unshift(at);
  return path;
}

/** The text of a path, without the end symbol. */
export function textOf(path: BeamNode[]): string {
  return joinPieces(path.filter((one) => !one.isEnd).map((one) => one.candidate?.token ?? ""));
}

/**
 * The path after a node: to its best finished hypothesis, or else as long as it stayed in the beam.
 *
 * Among paths of the same length the better score wins; pruned candidates are not part of a path.
 */
export function continuationOf(start: BeamNode): Continuation {
  const taken = descendants(start).filter((one) => one.outcome !== "pruned");
  const finished = taken.filter((one) => one.outcome === "finished");
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

/** The children that are shown: the best first, pruned ones only if requested. */
export function shownChildren(one: BeamNode, withPruned: boolean): BeamNode[] {
  return withPruned ? one.children : one.children.filter((child) => child.outcome !== "pruned");
}

function node(key: number, candidate: Candidate | null, group: number, parent: BeamNode | null, endId: number): BeamNode {
  const made: BeamNode = {
    key,
    candidate,
    label: candidate ? pieceText(candidate.token || String(candidate.id)) : "",
    group,
    depth: parent ? parent.depth + 1 : 0,
    parent,
    children: [],
    isEnd: candidate?.id === endId,
    isWinner: false,
    outcome: candidate?.outcome ?? "kept",
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
  if (!one.candidate || isFinished !== (one.candidate.outcome === "finished") || one.candidate.outcome === "pruned") return false;
  const path = pathTo(one).filter((step) => !step.isEnd);
  return path.length === ids.length && path.every((step, index) => step.candidate?.id === ids[index]);
}

/** The outcome of a node, where `lastDepth` is the depth of its group. */
function outcomeOf(one: BeamNode, lastDepth: number): Outcome {
  const outcome = one.candidate?.outcome ?? "kept";
  if (outcome !== "kept" || one.children.some((child) => child.candidate?.outcome !== "pruned")) return outcome;
  return one.depth < lastDepth ? "starved" : "alive";
}

function descendants(start: BeamNode): BeamNode[] {
  return start.children.flatMap((child) => [child, ...descendants(child)]);
}
