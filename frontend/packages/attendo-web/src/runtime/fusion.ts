/**
 * Rewrites a graph for speed: attention, and a product with its bias and ReLU, become one node each.
 *
 * - QuantizeRows (x): 8-bit rows, for DynamicQuantizeLinear. Every row has its own scale, where ONNX Runtime has one for
 *   the whole batch.
 * - QuantizedLinear (rows, matrix, scales, bias?) and Linear (x, matrix, bias?), with the attribute `relu`.
 * - Attention (queries, keys, values, mask, heads?), with the attribute `divisor`: the joined heads, and the weights.
 */

import type { Constant, GraphNode, OnnxGraph } from "./onnx_file";

/** Rewrite a graph; it gets other nodes and fewer constants. */
export function fuse(graph: OnnxGraph): void {
  foldConstants(graph);
  const index = new GraphIndex(graph);
  for (const node of graph.nodes) {
    if (node.operator === "MatMulInteger") fuseQuantizedLinear(index, node);
    else if (node.operator === "MatMul" && graph.constants.has(node.inputs[1]!)) fuseLinear(index, node);
    else if (node.operator === "Softmax") fuseAttention(index, node);
  }
  graph.nodes = index.rewritten();
}

/** Compute what depends on constants alone: a projection that shares its matrix, and weights in 16 bits. */
function foldConstants({ nodes, constants }: OnnxGraph): void {
  for (const { operator, inputs, outputs } of nodes) {
    const constant = constants.get(inputs[0] ?? "");
    if (!constant || inputs.length !== 1) continue;
    if (operator === "Cast") constants.set(outputs[0]!, constant);
    else if (operator === "Transpose" && constant.dims.length === 2) constants.set(outputs[0]!, transpose(constant));
  }
}

function transpose({ type, dims, values }: Constant): Constant {
  const [rows, columns] = dims as [number, number];
  const turned = values.slice();
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) turned[column * rows + row] = values[row * columns + column]!;
  return { type, dims: [columns, rows], values: turned };
}

class GraphIndex {
  readonly constants: OnnxGraph["constants"];
  private readonly outputs: Set<string>;
  private readonly producers = new Map<string, GraphNode>();
  private readonly consumers = new Map<string, GraphNode[]>();
  /** The fused node by the last of the nodes that it replaces. */
  private readonly replaced = new Map<GraphNode, GraphNode>();

  constructor(private readonly graph: OnnxGraph) {
    this.constants = graph.constants;
    this.outputs = new Set(graph.outputs);
    for (const node of graph.nodes) {
      for (const name of node.outputs) this.producers.set(name, node);
      for (const name of node.inputs) this.consumers.set(name, [...(this.consumers.get(name) ?? []), node]);
    }
  }

  producer(name: string | undefined, operator: string): GraphNode | null {
    const node = this.producers.get(name ?? "");
    return node?.operator === operator ? node : null;
  }

  /** Return the node that alone uses the first output of a node. */
  next(node: GraphNode, operator: string): GraphNode | null {
    const name = node.outputs[0]!;
    const consumers = this.consumers.get(name) ?? [];
    return consumers.length === 1 && !this.outputs.has(name) && consumers[0]!.operator === operator ? consumers[0]! : null;
  }

  consumersOf(name: string): GraphNode[] {
    return this.consumers.get(name) ?? [];
  }

  replace(last: GraphNode, node: GraphNode): void {
    this.replaced.set(last, node);
  }

  /** Return the nodes that the outputs need. */
  rewritten(): GraphNode[] {
    const needed = new Set(this.graph.outputs);
    const produced = new Set(this.constants.keys());
    const kept: GraphNode[] = [];
    for (const original of [...this.graph.nodes].reverse()) {
      const node = this.replaced.get(original) ?? original;
      if (!node.outputs.some((name) => needed.has(name) && !produced.has(name))) continue;
      node.outputs.forEach((name) => produced.add(name));
      node.inputs.forEach((name) => needed.add(name));
      kept.push(node);
    }
    for (const name of this.constants.keys()) if (!needed.has(name)) this.constants.delete(name);
    return kept.reverse();
  }
}

function fuseQuantizedLinear(index: GraphIndex, product: GraphNode): void {
  const [rows, matrix, , zeroPoints] = product.inputs;
  const quantization = index.producer(rows, "DynamicQuantizeLinear");
  const cast = index.next(product, "Cast");
  const scaled = cast && index.next(cast, "Mul");
  const factors = index.producer(scaled?.inputs.find((name) => name !== cast?.outputs[0]), "Mul");
  const scales = factors?.inputs.find((name) => index.constants.has(name));
  if (!quantization || !scaled || !scales) throw new Error("a product of integers is not as attendo export writes it");
  if (index.constants.get(zeroPoints ?? "")?.values.some((zero) => zero !== 0)) throw new Error("weights with zero points are not supported");
  index.replace(quantization, { operator: "QuantizeRows", inputs: [quantization.inputs[0]!], outputs: [rows!], attributes: {} });
  finishLinear(index, scaled, "QuantizedLinear", [rows!, matrix!, scales]);
}

function fuseLinear(index: GraphIndex, product: GraphNode): void {
  finishLinear(index, product, "Linear", product.inputs);
}

/** Replace the end of a product, which is followed by its bias and ReLU if it has them. */
function finishLinear(index: GraphIndex, product: GraphNode, operator: string, inputs: string[]): void {
  let last = product;
  const sum = index.next(last, "Add");
  const bias = sum?.inputs.find((name) => index.constants.get(name)?.dims.length === 1);
  if (sum && bias) last = sum;
  const relu = index.next(last, "Relu");
  if (relu) last = relu;
  const all = bias && sum ? [...inputs, bias] : inputs;
  index.replace(last, { operator, inputs: all, outputs: last.outputs, attributes: { relu: relu ? 1 : 0 } });
}

function fuseAttention(index: GraphIndex, softmax: GraphNode): void {
  const scores = findScores(index, softmax);
  const joined = findJoinedHeads(index, softmax);
  if (!scores || !joined) throw new Error("attention is not as attendo export writes it");
  index.replace(joined.last, {
    operator: "Attention",
    inputs: [scores.queries, scores.keys, joined.values, scores.mask, ...joined.heads],
    outputs: [joined.last.outputs[0]!, joined.weights],
    attributes: { divisor: scores.divisor },
  });
}

/** Follow the scores from the softmax back to the queries and keys. */
function findScores(index: GraphIndex, softmax: GraphNode): { queries: string; keys: string; mask: string; divisor: number } | null {
  const masked = index.producer(softmax.inputs[0], "Where");
  if (!masked) return null;
  const division = index.producer(masked.inputs[1], "Div");
  const products = index.producer((division ?? masked).inputs[division ? 0 : 1], "MatMul");
  const turned = products && index.producer(products.inputs[1], "Transpose");
  if (!turned) return null;
  const divisor = division ? index.constants.get(division.inputs[1]!)!.values[0]! : 1;
  return { queries: products.inputs[0]!, keys: turned.inputs[0]!, mask: masked.inputs[0]!, divisor };
}

/** Follow the weights from the softmax to the heads that are joined again. */
function findJoinedHeads(index: GraphIndex, softmax: GraphNode): { last: GraphNode; values: string; heads: string[]; weights: string } | null {
  const weights = index.next(softmax, "Where")?.outputs[0];
  const mixed = index.consumersOf(weights ?? "").find(({ operator }) => operator === "MatMul");
  if (!weights || !mixed) return null;
  const switched = index.next(mixed, "Mul");
  const concatenated = index.next(switched ?? mixed, "Transpose");
  const last = concatenated && index.next(concatenated, "Reshape");
  const heads = switched?.inputs.filter((name) => name !== mixed.outputs[0]) ?? [];
  return last && { last, values: mixed.inputs[1]!, heads, weights };
}
