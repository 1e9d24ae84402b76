"""The parts of a Transformer as nodes of an ONNX graph, one function per module in `model/`.

The graphs are built by hand: `torch.onnx.export` would need onnxscript as well, does not guarantee
one graph for axes of size 0, 1 and more (an empty cache, a single step, a prefix), and would lose
the readable node names, which do not depend on the version of PyTorch. Only operators of the
standard set are used. Tests compare each function with its module.
"""

from __future__ import annotations

from math import log, sqrt
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from attendo.core.sinusoids import FAIRSEQ_OFFSET
from attendo.core.version import __version__
from attendo.model.positional_encoding import (
    ConcatenatedPositions,
    LearnedPositions,
    NoPositions,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onnx import ModelProto, ValueInfoProto
    from torch import Tensor

    from attendo.model.attention import MultiHeadAttention
    from attendo.model.feed_forward import FeedForward
    from attendo.model.positional_encoding import SinusoidalPositions

OPSET, IR_VERSION = 17, 8
"""The oldest operator set with LayerNormalization: ONNX 1.12 (2022)."""
LOWEST = float(np.finfo(np.float32).min)


class Graph:
    """Collects nodes and weights; every method that adds one returns the name of its output."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.weights: dict[str, Any] = {}
        self.attention: list[str] = []
        """The attention weights (B, H, T, S) in the order of the layers, named by their outputs."""

    def add(self, operator: str, *inputs: str, name: str, **attributes: Any) -> str:
        """Add a node with one output, which has the node's name."""
        self.nodes.append(helper.make_node(operator, inputs, [name], name=name, **attributes))
        return name

    def add_initializer(self, name: str, array: Any) -> str:
        """Add an array once."""
        if name not in self.weights:
            self.weights[name] = numpy_helper.from_array(np.asarray(array, order="C"), name)
        return name

    def add_weight(self, name: str, value: Tensor) -> str:
        """Add a parameter in float32."""
        return self.add_initializer(name, value.detach().float().cpu().numpy())

    def add_constant(self, value: float | Sequence[int], dtype: Any = np.int64) -> str:
        """Add a number or a list of numbers."""
        array = np.asarray(value, dtype=dtype)
        return self.add_initializer(f"{array.dtype}:{array.tolist()}", array)

    def add_size(self, tensor: str, axis: int, *, name: str) -> str:
        """Return the size of one axis, as a scalar."""
        sizes = self.add("Shape", tensor, name=f"{name}/list", start=axis, end=axis + 1)
        return self.add("Squeeze", sizes, name=name)

    def add_unsqueeze(self, tensor: str, *axes: int, name: str) -> str:
        """Insert axes of size one."""
        return self.add("Unsqueeze", tensor, self.add_constant(axes), name=name)

    def to_model(
        self, name: str, inputs: list[ValueInfoProto], outputs: list[ValueInfoProto]
    ) -> ModelProto:
        """Return the model with everything that was added."""
        graph = helper.make_graph(self.nodes, name, inputs, outputs, [*self.weights.values()])
        return helper.make_model(
            graph,
            producer_name="attendo",
            producer_version=__version__,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
        )


def value_info(name: str, kind: int, *shape: str | int) -> ValueInfoProto:
    """Return the type and shape of an input or output; a named size is dynamic."""
    return helper.make_tensor_value_info(name, kind, shape)


def add_linear(
    graph: Graph, layer: nn.Linear, x: str, *, name: str, matrix: str | None = None
) -> str:
    """Add x W^T + b; the matrix is stored as it is multiplied, (in, out), unless it is given."""
    matrix = matrix or graph.add_weight(f"{name}.weight", layer.weight.T)
    bias = cast("Tensor | None", layer.bias)
    if bias is None:
        return graph.add("MatMul", x, matrix, name=name)
    product = graph.add("MatMul", x, matrix, name=f"{name}/product")
    return graph.add("Add", product, graph.add_weight(f"{name}.bias", bias), name=name)


def add_norm(graph: Graph, norm: nn.Module, x: str, *, name: str) -> str:
    """Add a layer norm; without one, nothing."""
    if isinstance(norm, nn.Identity):
        return x
    layer = cast("nn.LayerNorm", norm)
    weights = [
        graph.add_weight(f"{name}.{kind}", getattr(layer, kind)) for kind in ("weight", "bias")
    ]
    return graph.add("LayerNormalization", x, *weights, name=name, epsilon=layer.eps, axis=-1)


def add_feed_forward(
    graph: Graph, network: FeedForward, x: str, activation: str, *, name: str
) -> str:
    """Add the two linear layers and the activation between them."""
    hidden = add_linear(graph, network.inner, x, name=f"{name}/inner")
    hidden = ACTIVATIONS[activation](graph, hidden, name=f"{name}/{activation}")
    return add_linear(graph, network.outer, hidden, name=f"{name}/outer")


def _add_relu(graph: Graph, x: str, *, name: str) -> str:
    return graph.add("Relu", x, name=name)


def _add_gelu(graph: Graph, x: str, *, name: str) -> str:
    """Add x / 2 * (1 + erf(x / sqrt(2))): the operator Gelu needs a later operator set."""
    scaled = graph.add("Mul", x, graph.add_constant(sqrt(0.5), np.float32), name=f"{name}/scaled")
    error = graph.add("Erf", scaled, name=f"{name}/erf")
    shifted = graph.add("Add", error, graph.add_constant(1.0, np.float32), name=f"{name}/raised")
    half = graph.add("Mul", x, graph.add_constant(0.5, np.float32), name=f"{name}/half")
    return graph.add("Mul", half, shifted, name=name)


def _add_swish(graph: Graph, x: str, *, name: str) -> str:
    gate = graph.add("Sigmoid", x, name=f"{name}/gate")
    return graph.add("Mul", x, gate, name=name)


ACTIVATIONS = {"relu": _add_relu, "gelu": _add_gelu, "swish": _add_swish}


def add_heads(
    graph: Graph, part: nn.Linear, x: str, num_heads: int, *, name: str, result: str | None = None
) -> str:
    """Add one projection, split into heads: (B, T, D) becomes (B, H, T, K), named `result`."""
    projected = add_linear(graph, part, x, name=name)
    shape = graph.add_constant([0, 0, num_heads, part.out_features // num_heads])  # 0: unchanged
    split = graph.add("Reshape", projected, shape, name=f"{name}/split")
    return graph.add("Transpose", split, name=result or f"{name}/heads", perm=[0, 2, 1, 3])


def add_attention(
    graph: Graph,
    attention: MultiHeadAttention,
    query: str,
    keys: str,
    values: str,
    mask: str,
    *,
    name: str,
    weights_name: str,
    head_mask: str | None = None,
) -> str:
    """Add softmax(Q K^T / sqrt(d_k)) V over projected keys and values, followed by W_O.

    With `head_mask` (H, 1, 1), the result of each head is multiplied by its number.
    """
    num_heads = attention.num_heads
    queries = add_heads(graph, attention.query, query, num_heads, name=f"{name}/query")
    transposed = graph.add("Transpose", keys, name=f"{name}/turned", perm=[0, 1, 3, 2])
    scores = graph.add("MatMul", queries, transposed, name=f"{name}/products")  # (B, H, T, S)
    if attention.scale is None:
        root = graph.add_constant(sqrt(attention.query.out_features // num_heads), np.float32)
        scores = graph.add("Div", scores, root, name=f"{name}/scores")
    lowest, zero = (graph.add_constant(number, np.float32) for number in (LOWEST, 0.0))
    scores = graph.add("Where", mask, scores, lowest, name=f"{name}/masked")
    weights = graph.add("Softmax", scores, name=f"{name}/softmax", axis=-1)
    # A row that may attend to nothing is zero, as in the model.
    weights = graph.add("Where", mask, weights, zero, name=weights_name)
    graph.attention.append(weights)
    heads = graph.add("MatMul", weights, values, name=f"{name}/mixed")
    if head_mask is not None:
        heads = graph.add("Mul", heads, head_mask, name=f"{name}/switched")
    heads = graph.add("Transpose", heads, name=f"{name}/concatenated", perm=[0, 2, 1, 3])
    shape = graph.add_constant([0, 0, attention.output.in_features])
    joined = graph.add("Reshape", heads, shape, name=f"{name}/joined")
    return add_linear(graph, attention.output, joined, name=f"{name}/output")


def add_positions(
    graph: Graph, positions: nn.Module, x: str, position_ids: str, *, name: str
) -> str:
    """Add the positions (T,) to the embedded tokens x (B, T, D)."""
    if isinstance(positions, LearnedPositions):
        table = graph.add_weight(f"{name}.weight", positions.weight)
        # ONNX Runtime turns a plain range into a slice, which returns nothing beyond the last
        # position; a lookup raises an error.
        row = graph.add_unsqueeze(position_ids, 0, name=f"{name}/row")
        vectors = graph.add("Gather", table, row, name=f"{name}/vectors")  # (1, T, D)
        return graph.add("Add", x, vectors, name=name)
    if isinstance(positions, NoPositions):
        return x
    vectors = _add_sinusoids(graph, cast("SinusoidalPositions", positions), position_ids, name=name)
    if not isinstance(positions, ConcatenatedPositions):
        return graph.add("Add", x, vectors, name=name)
    shape = graph.add("Shape", x, name=f"{name}/shape")
    vectors = graph.add("Expand", vectors, shape, name=f"{name}/for_all")
    concatenated = graph.add("Concat", x, vectors, name=f"{name}/concatenated", axis=-1)
    return add_linear(graph, positions.projection, concatenated, name=f"{name}/projection")


def _add_sinusoids(
    graph: Graph, positions: SinusoidalPositions, position_ids: str, *, name: str
) -> str:
    """Add the vectors (T, D) of any positions, their angles in float64 as in the model."""
    d_model, widest = positions.d_model, positions.d_model
    if positions.layout == "fairseq":
        position_ids = graph.add(
            "Add", position_ids, graph.add_constant(FAIRSEQ_OFFSET), name=f"{name}/shifted_ids"
        )
        widest = d_model - 2
    pairs = np.arange(0, d_model, 2, dtype=np.float64)
    if positions.layout == "tensor2tensor":
        pairs = pairs[: d_model // 2]
        widest = max(2 * len(pairs) - 2, 1)
    frequencies = graph.add_initializer(
        f"{name}.frequencies", np.exp(pairs * (-log(10_000.0) / widest))
    )
    precise = graph.add("Cast", position_ids, name=f"{name}/precise", to=TensorProto.DOUBLE)
    column = graph.add_unsqueeze(precise, 1, name=f"{name}/column")
    angles = graph.add("Mul", column, frequencies, name=f"{name}/angles")  # (T, ceil(D / 2))
    waves = [graph.add(wave, angles, name=f"{name}/{wave}") for wave in ("Sin", "Cos")]
    if positions.layout == "interleaved":
        waves = [graph.add_unsqueeze(wave, 2, name=f"{wave}/parted") for wave in waves]
        stacked = graph.add("Concat", *waves, name=f"{name}/pairs", axis=2)
        table = graph.add("Flatten", stacked, name=f"{name}/table", axis=1)
    else:
        table = graph.add("Concat", *waves, name=f"{name}/table", axis=1)
    if d_model % 2 and positions.layout == "tensor2tensor":  # the last dimension is 0
        table = graph.add("Pad", table, graph.add_constant([0, 0, 0, 1]), name=f"{name}/padded")
    elif d_model % 2:  # the last cosine does not exist
        bounds = (graph.add_constant([number]) for number in (0, d_model, 1))
        table = graph.add("Slice", table, *bounds, name=f"{name}/cut")
    return graph.add("Cast", table, name=f"{name}/vectors", to=TensorProto.FLOAT)
