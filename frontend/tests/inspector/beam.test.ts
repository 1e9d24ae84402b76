import { describe, expect, it } from "vitest";

import { type BeamNode, buildTree, continuationOf, pathTo, shownChildren, textOf } from "../../src/inspector/analysis/beam";
import { layoutTree, moveInTree } from "../../src/inspector/analysis/beam-layout";
import { readRecord } from "../../src/inspector/record/record";
import type { Candidate, Trace } from "../../src/inspector/record/record";
import { makeRecord } from "../fixtures/make-record";

const END = 3;
const PIECES = new Map([
  [4, "▁I"],
  [5, "▁You"],
  [6, "▁am"],
  [7, "▁are"],
  [8, "▁We"],
  [END, "</s>"],
]);

function one(id: number, parent: number, slot: number | null, score: number, outcome: Candidate["outcome"], why = ""): Candidate {
  return { id, token: PIECES.get(id)!, parent, slot, log_prob: -0.5, total: score, score, outcome, why, met: 0 };
}

/** By hand: "I am" wins; "You" is kept, "You are" too, then nothing of it; "We" goes at once. */
const TRACE: Trace = {
  method: "beam",
  beam_size: 2,
  alpha: 0.6,
  n_best: 1,
  limit: 9,
  end_id: END,
  steps: [
    { group: 0, position: 0, candidates: [one(4, 0, 0, -0.1, "kept"), one(5, 0, 1, -0.4, "kept"), one(8, 0, null, -2, "pruned", "beam_full")] },
    { group: 0, position: 1, candidates: [one(6, 0, 0, -0.2, "kept"), one(7, 1, 1, -0.6, "kept"), one(7, 0, null, -3, "pruned", "beam_full")] },
    { group: 0, position: 2, candidates: [one(END, 0, null, -0.3, "finished"), one(6, 0, 0, -4, "kept"), one(4, 0, 1, -5, "kept")] },
  ],
  stopped: "best_finished",
  hypotheses: [{ ids: [4, 6], total: -0.3, score: -0.3, is_finished: true }],
};

function find(nodes: BeamNode[], text: string): BeamNode {
  const found = nodes.find((node) => textOf(pathTo(node)) === text && !node.isEnd);
  if (!found) throw new Error(`no path ${text}`);
  return found;
}

describe("the tree", () => {
  const tree = buildTree(TRACE);

  it("has a node for the start and one a candidate, under the right parent", () => {
    expect(tree.nodes).toHaveLength(10);
    expect(textOf(pathTo(find(tree.nodes, "You are")))).toBe("You are");
    expect(find(tree.nodes, "You are").parent).toBe(find(tree.nodes, "You"));
  });

  it("marks the way to the translation, and nothing else", () => {
    expect(tree.winner.isEnd).toBe(true);
    expect(pathTo(tree.winner).map((node) => node.label)).toEqual(["I", "am", "</s>"]);
    expect(tree.nodes.filter((node) => node.isWinner)).toHaveLength(4);
  });

  it("tells what became of each", () => {
    expect(find(tree.nodes, "I").outcome).toBe("kept");
    expect(find(tree.nodes, "You").outcome).toBe("kept");
    expect(find(tree.nodes, "You are").outcome).toBe("starved");
    expect(find(tree.nodes, "We").outcome).toBe("pruned");
    expect(find(tree.nodes, "I am am").outcome).toBe("alive");
    expect(tree.winner.outcome).toBe("finished");
  });

  it("can hide what was dropped at once", () => {
    expect(shownChildren(tree.root, true)).toHaveLength(3);
    expect(shownChildren(tree.root, false).map((node) => node.label)).toEqual(["I", "You"]);
  });
});

describe("how a losing word went on", () => {
  const tree = buildTree(TRACE);

  it("is shown as far as the search followed it", () => {
    const { nodes, last } = continuationOf(find(tree.nodes, "You"));
    expect(nodes.map((node) => node.label)).toEqual(["are"]);
    expect(last.outcome).toBe("starved");
  });

  it("is nothing for what was dropped at once", () => {
    const { nodes, last } = continuationOf(find(tree.nodes, "We"));
    expect(nodes).toEqual([]);
    expect(last).toBe(find(tree.nodes, "We"));
  });

  it("of the start is the translation", () => expect(continuationOf(tree.root).last).toBe(tree.winner));
});

describe("other searches", () => {
  it("that were cut off have their winner among what is alive", () => {
    const steps = TRACE.steps.slice(0, 2);
    const tree = buildTree({ ...TRACE, steps, hypotheses: [{ ids: [4, 6], total: -0.2, score: -0.2, is_finished: false }] });
    expect(textOf(pathTo(tree.winner))).toBe("I am");
    expect(tree.winner.outcome).toBe("alive");
  });

  it("with groups keep the slots of each group apart", () => {
    const second = TRACE.steps.slice(0, 2).map((step) => ({ ...step, group: 1, candidates: step.candidates.slice(1, 2).map((it) => ({ ...it, parent: 0, slot: 0 })) }));
    const steps = [TRACE.steps[0], second[0], TRACE.steps[1], second[1], TRACE.steps[2]];
    const tree = buildTree({ ...TRACE, steps });
    const ofSecond = tree.nodes.filter((node) => node.group === 1 && node.candidate);
    expect(ofSecond.map((node) => textOf(pathTo(node)))).toEqual(["You", "You are"]);
  });

  it("that got stuck keep what was there before", () => {
    const stuck = { group: 0, position: 2, candidates: [one(6, 0, null, -9, "pruned" as const, "would say a forbidden phrase")] };
    const tree = buildTree({ ...TRACE, steps: [...TRACE.steps.slice(0, 2), stuck], hypotheses: [{ ids: [4, 6], total: -0.2, score: -0.2, is_finished: false }] });
    expect(textOf(pathTo(tree.winner))).toBe("I am");
  });

  it("without a result still draw", () => {
    const tree = buildTree({ ...TRACE, steps: [], hypotheses: [] });
    expect(tree.winner).toBe(tree.root);
    expect(layoutTree(tree, true).placed).toHaveLength(1);
  });
});

describe("the made record's search", () => {
  const { beam, tgt } = readRecord(makeRecord());
  const tree = buildTree(beam!);

  it("ends in what the trace says it found", () => {
    const path = pathTo(tree.winner).filter((node) => !node.isEnd);
    expect(path.map((node) => node.candidate!.id)).toEqual(beam!.hypotheses[0].ids);
    expect(textOf(path)).toBe(tgt.text);
  });

  it("loses no candidate", () => {
    expect(tree.nodes.length - 1).toBe(beam!.steps.reduce((sum, step) => sum + step.candidates.length, 0));
  });
});

describe("the layout", () => {
  const { beam } = readRecord(makeRecord({ T: 20, S: 20 }));
  const tree = buildTree(beam!);
  const layout = layoutTree(tree, true);

  it("puts the translation in a straight line along the top", () => {
    const heights = pathTo(tree.winner).map((node) => layout.byKey.get(node.key)!.y);
    expect(new Set(heights).size).toBe(1);
    expect(heights[0]).toBe(Math.min(...layout.placed.map((one) => one.y)));
  });

  it("puts no two nodes at one point and lets no two lines cross", () => {
    expect(new Set(layout.placed.map((one) => `${one.x},${one.y}`)).size).toBe(tree.nodes.length);
    for (let depth = 1; depth < 20; depth++) {
      const column = layout.placed.filter((one) => one.node.depth === depth).sort((a, b) => a.y - b.y);
      const parents = column.map((one) => layout.byKey.get(one.node.parent!.key)!.y);
      expect(parents).toEqual([...parents].sort((a, b) => a - b));
    }
  });

  it("moves by arrow keys: along the translation, back, up and down", () => {
    const start = layout.byKey.get(tree.root.key)!;
    const first = moveInTree("ArrowRight", start, layout)!;
    expect(first.node.isWinner).toBe(true);
    const below = moveInTree("ArrowDown", first, layout)!;
    expect(below.node.depth).toBe(1);
    expect(moveInTree("ArrowUp", below, layout)).toBe(first);
    expect(moveInTree("ArrowLeft", first, layout)).toBe(start);
    expect(moveInTree("ArrowLeft", start, layout)).toBeNull();
    expect(moveInTree("x", start, layout)).toBeNull();
  });
});
