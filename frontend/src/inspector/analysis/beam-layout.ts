/** Where the nodes of a search tree stand: steps from left to right, alternatives from top to bottom. */

import { hierarchy } from "d3-hierarchy";
import { linkHorizontal } from "d3-shape";

import { type BeamNode, type BeamTree, shownChildren } from "./beam";

export const NODE = { width: 78, height: 30 };
const STEP = { across: 108, down: 38 };
const MARGIN = 14;

export interface Placed {
  node: BeamNode;
  x: number;
  y: number;
}

export interface TreeLayout {
  width: number;
  height: number;
  placed: Placed[];
  byKey: Map<number, Placed>;
  links: { key: number; target: BeamNode; path: string }[];
}

/**
 * A column a step, the translation along the top: what follows a better path stands higher, so that
 * no two lines cross, and no column is higher than the step had candidates.
 */
export function layOutTree(tree: BeamTree, withPruned: boolean): TreeLayout {
  const root = hierarchy(tree.root, (node) => shownChildren(node, withPruned));
  root.sort((a, b) => Number(b.data.isWinner) - Number(a.data.isWinner)); // stable: else as they came
  const filled: number[] = [];
  const placed: Placed[] = [];
  root.each(({ data, depth }) => {
    const row = filled[depth] ?? 0; // each: level by level, those of the upper parent first
    filled[depth] = row + 1;
    placed.push({
      node: data,
      x: depth * STEP.across + NODE.width / 2 + MARGIN,
      y: row * STEP.down + NODE.height / 2 + MARGIN,
    });
  });
  const byKey = new Map(placed.map((one) => [one.node.key, one]));
  return {
    width: (filled.length - 1) * STEP.across + NODE.width + 2 * MARGIN,
    height: (Math.max(...filled) - 1) * STEP.down + NODE.height + 2 * MARGIN,
    placed,
    byKey,
    links: placed.flatMap((one) => linkTo(one, byKey)),
  };
}

/** The neighbour by an arrow key: best child, parent, the next above or below in the same step. */
export function moveInTree(key: string, at: Placed, layout: TreeLayout): Placed | null {
  const place = (node: BeamNode | null | undefined) => (node ? (layout.byKey.get(node.key) ?? null) : null);
  switch (key) {
    case "ArrowLeft":
      return place(at.node.parent);
    case "ArrowRight":
      return place(bestChild(at.node, layout));
    case "ArrowUp":
      return beside(at, layout, -1);
    case "ArrowDown":
      return beside(at, layout, 1);
    default:
      return null;
  }
}

function bestChild({ children }: BeamNode, { byKey }: TreeLayout): BeamNode | undefined {
  return children.find((child) => child.isWinner) ?? children.find((child) => byKey.has(child.key));
}

function beside(at: Placed, { placed }: TreeLayout, by: 1 | -1): Placed | null {
  const column = placed.filter((one) => one.node.depth === at.node.depth).sort((a, b) => a.y - b.y);
  return column[column.indexOf(at) + by] ?? null;
}

const curve = linkHorizontal<{ source: [number, number]; target: [number, number] }, [number, number]>();

function linkTo(target: Placed, byKey: Map<number, Placed>): TreeLayout["links"] {
  const source = target.node.parent && byKey.get(target.node.parent.key);
  if (!source) return [];
  const path = curve({
    source: [source.x + NODE.width / 2, source.y],
    target: [target.x - NODE.width / 2, target.y],
  });
  return [{ key: target.node.key, target: target.node, path: path ?? "" }];
}
