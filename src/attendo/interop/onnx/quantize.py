"""Weights of ONNX graphs in 8 bits, with products of integers, or stored in 16 bits."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from attendo.translator.backends.onnx.session import DECODER_FILE, ENCODER_FILE, import_optional

if TYPE_CHECKING:
    from pathlib import Path

MATRIX_DIMS = 2
"""Vectors are small and stay as they are."""


def quantize(folder: Path) -> None:
    """Replace the weights of both graphs of a folder by 8-bit integers, scaled per output."""
    for name in (ENCODER_FILE, DECODER_FILE):
        quantize_graph(folder / name)


def quantize_graph(path: Path) -> None:
    """Replace the weights of one graph.

    Activations are quantized while the model runs; attention stays in float32.
    """
    quantization = import_optional("onnxruntime.quantization")
    partial = path.with_name(f"{path.name}.int8")
    logging.getLogger().addFilter(_is_other_message)
    try:
        quantization.quantize_dynamic(
            path,
            partial,
            per_channel=True,
            weight_type=quantization.QuantType.QInt8,
            extra_options={"MatMulConstBOnly": True},
        )
    finally:
        logging.getLogger().removeFilter(_is_other_message)
    partial.replace(path)


def store_float16(folder: Path) -> None:
    """Store the matrices of both graphs of a folder in float16; they are computed in float32."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    for name in (ENCODER_FILE, DECODER_FILE):
        model = onnx.load_model(folder / name)
        casts = []
        for weight in model.graph.initializer:
            if weight.data_type != TensorProto.FLOAT or len(weight.dims) != MATRIX_DIMS:
                continue
            values, stored = numpy_helper.to_array(weight), f"{weight.name}/float16"
            limit = np.finfo(np.float16).max
            casts.append(helper.make_node("Cast", [stored], [weight.name], to=TensorProto.FLOAT))
            weight.CopyFrom(
                numpy_helper.from_array(np.clip(values, -limit, limit).astype(np.float16), stored)
            )
        for cast in reversed(casts):
            model.graph.node.insert(0, cast)
        onnx.save_model(model, folder / name)


def _is_other_message(record: logging.LogRecord) -> bool:
    """Leave out the advice to preprocess a graph, which ours does not need."""
    return "pre-processing" not in record.getMessage()
