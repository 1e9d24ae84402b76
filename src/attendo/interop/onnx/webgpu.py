"""Graphs that ONNX Runtime's WebGPU build runs: it has no numbers of 64 bits.

The positions are the only such numbers. Their angles are computed in float32 instead: at position
500 they differ by 3e-5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.translator.backends.onnx.session import DECODER_FILE, ENCODER_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from onnx import ModelProto


def compute_positions_in_float32(folder: Path) -> None:
    """Rewrite both graphs of a folder."""
    import onnx

    for name in (ENCODER_FILE, DECODER_FILE):
        model = onnx.load_model(folder / name)
        _replace_doubles(model)
        onnx.checker.check_model(model, full_check=True)
        onnx.save_model(model, folder / name)


def _replace_doubles(model: ModelProto) -> None:
    from onnx import TensorProto, numpy_helper

    for weight in model.graph.initializer:
        if weight.data_type == TensorProto.DOUBLE:
            values = numpy_helper.to_array(weight).astype("float32")
            weight.CopyFrom(numpy_helper.from_array(values, weight.name))
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "Cast" and attribute.i == TensorProto.DOUBLE:
                attribute.i = TensorProto.FLOAT
