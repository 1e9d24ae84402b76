/** The layout of a search tree: steps from left to right, alternatives from top to bottom. */

import { hierarchy } from "d3-hierarchy";
import { linkHorizontal } from "d3-shape";

import { type BeamNode, type BeamTree, shownChildren } from "./beam";

export const NODE = { width: 78, height: 30 };
const STEP = { across: 108, down: 38 };
const MARGIN = 14;

export interface PlacedNode {
  node: BeamNode;
  x: number;
  y: number;
}

export interface TreeLayout {
  width: number;
  height: number;
  placed: PlacedNode[];
  byKey: Map<number, PlacedNode>;
  links: { key: number; target: BeamNode; path: string }[];
}

/**
 * One column per step, with the translation along the top. Children of a better path are placed higher, so that
 * lines do not cross, and a column is as high as its step has candidates.
 */
export function layoutTree(tree: BeamTree, withPruned: boolean): TreeLayout {
  const root = hierarchy(tree.root, (node) => shownChildren(node, withPruned));
  root.sort((a, b) => Number(b.data.isWinner) - Number(a.data.isWinner)); // stable: otherwise in their order in the trace
  const heights: number[] = [];
  const placed: PlacedNode[] = [];
  root.each(({ data, depth }) => {
    const row = heights[depth] ?? 0; // breadth first, children of the upper parent first
    heights[depth] = row + 1;
    placed.push({
      node: data,
      x: depth * STEP.across + NODE.width / 2 + MARGIN,
      y: row * STEP.down + NODE.height / 2 + MARGIN,
    });
  });
  const byKey = new Map(placed.map((one) => [one.node.key, one]));
  return {
    width: (heights.length - 1) * STEP.across + NODE.width + 2 * MARGIN,
    height: (Math.max(...heights) - 1) * STEP.down + NODE.height + 2 * MARGIN,
    placed,
    byKey,
    links: placed.flatMap((one) => linkTo(one, byKey)),
  };
}

/** The node that an arrow key leads to: the best child, the parent, or the next one above or below in the same step. */
export function moveInTree(key: string, at: PlacedNode, layout: TreeLayout): PlacedNode | null {
  const placedOf = (node: BeamNode | null | undefined) => (node ? (layout.byKey.get(node.key) ?? null) : null);
  switch (key) {
    case "ArrowLeft":
      return placedOf(at.node.parent);
    case "ArrowRight":
      return placedOf(bestChild(at.node, layout));
    case "ArrowUp":
      return siblingOf(at, layout, -1);
    case "ArrowDown":
      return siblingOf(at, layout, 1);
    default:
      return null;
  }
}

function bestChild({ children }: BeamNode, { byKey }: TreeLayout): BeamNode | undefined {
  return children.find((child) => child.isWinner) ?? children.find((child) => byKey.has(child.key));
}

function siblingOf(at: PlacedNode, { placed }: TreeLayout, by: 1 | -1): PlacedNode | null {
  const column = placed.filter((one) => one.node.depth === at.node.depth).sort((a, b) => a.y - b.y);
  return column[column.indexOf(at) + by] ?? null;
}

const curve = linkHorizontal<{ source: [number, number]; target: [number, number] }, [number, number]>();

function linkTo(target: PlacedNode, byKey: Map<number, PlacedNode>): TreeLayout["links"] {
  const source = target.node.parent && byKey.get(target.node.parent.key);
  if (!source) return [];
  const path = curve({
    source: [source.x + NODE.width / 2, source.y],
    target: [target.x - NODE.width / 2, target.y],
  });
  return [{ key: target.node.key, target: target.node, path: path ?? "" }];
}
