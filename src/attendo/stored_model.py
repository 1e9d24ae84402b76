"""A model as NumPy arrays: what a converter reads from a model folder. It needs no PyTorch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from safetensors import SafetensorError

from attendo.architectures.registry import STORED_KINDS
from attendo.bundle import (
    Bundle,
    check_vocabulary_sizes,
    get_weights,
    open_bundle,
    read_weights,
)
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.core.quantization import SCALE_SUFFIX
from attendo.core.run_folder import ModelFolder
from attendo.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from attendo.model.config import Seq2SeqConfig

    Array = NDArray[Any]


class Weights:
    """Parameters by name, each once; a shared one has the first of its names.

    Args:
        arrays: by their full names.
        prefix: of all names that are asked for.
        origin: the folder, for messages.

    """

    def __init__(
        self, arrays: Mapping[str, Array], *, prefix: str = "", origin: str = "the weights"
    ) -> None:
        self.arrays, self.prefix, self.origin = arrays, prefix, origin

    def below(self, name: str) -> Weights:
        """Return the parameters of a part of the model."""
        return Weights(self.arrays, prefix=f"{self.prefix}{name}.", origin=self.origin)

    def get(self, name: str, *shape: int) -> Array:
        """Return a parameter in float32; raise an error unless it is there in this shape."""
        found = self.arrays.get(self.prefix + name)
        if found is None or found.shape != shape:
            problem = "missing" if found is None else "of another shape"
            raise InputError(
                message(
                    "{path} does not match its config: {problems}",
                    path=self.origin,
                    problems=f"{self.prefix}{name} is {problem}",
                ),
                hint="copy the folder again",
            )
        return found.astype(np.float32, copy=False)


class StoredModel(NamedTuple):
    """A model with its tokenizer, like `attendo.bundle.Bundle`, but with arrays as weights."""

    kind: str
    config: Seq2SeqConfig
    weights: Weights
    tokenizer: Tokenizer
    about: dict[str, Any]

    @classmethod
    def of(cls, model: Bundle | StoredModel) -> StoredModel:
        """Return the stored form of a loaded model."""
        if isinstance(model, StoredModel):
            return model
        arrays = {name: one.float().numpy() for name, one in get_weights(model.model).items()}
        config: Any = model.model.config
        return cls(model.model.kind, config, Weights(arrays), model.tokenizer, model.about)

    @classmethod
    def read(cls, directory: str | Path) -> StoredModel:
        """Read the folder of a text model; raise an error unless model and tokenizer match."""
        path, index = open_bundle(directory, "text")
        tokenizer = Tokenizer.load(path)
        config = STORED_KINDS[index["kind"]].config_class(**index["config"])
        sizes = (config.vocab_size, config.tgt_vocab_size or config.vocab_size)
        check_vocabulary_sizes(path, tokenizer, sizes)
        folder = ModelFolder(path)
        try:
            arrays = read_weights(folder, framework="np")
        except (OSError, SafetensorError) as error:
            reason = message(
                "{path} cannot be read: {detail}", path=folder.weights_path, detail=error
            )
            raise InputError(reason, hint="copy the model folder again") from None
        weights = Weights(restore_arrays(arrays), origin=str(path))
        return cls(index["kind"], config, weights, tokenizer, index["about"])

    @property
    def num_parameters(self) -> int:
        """The number of weights; a shared matrix counts once."""
        return sum(array.size for array in self.weights.arrays.values())


def restore_arrays(stored: Mapping[str, Array]) -> dict[str, Array]:
    """Return the weights in float32, as `attendo.core.quantization.restore_weights` does."""
    restored: dict[str, Array] = {}
    for name, array in stored.items():
        if array.dtype == np.int8 and name + SCALE_SUFFIX in stored:
            restored[name] = array.astype(np.float32) * stored[name + SCALE_SUFFIX][:, None]
        elif name.removesuffix(SCALE_SUFFIX) not in stored or not name.endswith(SCALE_SUFFIX):
            restored[name] = array
    return restored
