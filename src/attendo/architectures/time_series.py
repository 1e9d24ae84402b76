"""A Transformer that reads numbers over time and says labels, or numbers again.

The encoder's tokens become the time steps of a window. Each is a row of numbers, and one that is
missing is NaN: a linear layer reads every number beside a sign that tells whether it is there, so
that a hole is known as one and no NaN reaches a product. All else is the Transformer's own: its
positions, its layers, its contract. Units, windows and names of labels belong to other rooms.

Paper: departs from it. Section 3.4 looks tokens up in a table; here a linear layer stands in its
place, on the source side and, where numbers are said, on both ends of the decoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from attendo.core.config import SeriesTransformerConfig
from attendo.core.errors import InputError
from attendo.model.initialization import initialize
from attendo.model.masks import check_mask
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.model.kv_cache import DecoderState

SERIES_OPTIONS = {"num_features", "num_targets"}
"""Options that a Transformer of words does not have."""


class NumberEmbedding(nn.Module):
    """Reads rows of numbers, NaN where one is missing, by one linear layer.

    >>> embedding = NumberEmbedding(3, 8)
    >>> embedding(torch.tensor([[[0.5, float("nan"), -1.0]]])).shape
    torch.Size([1, 1, 8])
    """

    def __init__(self, num_features: int, d_model: int) -> None:
        super().__init__()
        self.linear = nn.Linear(2 * num_features, d_model)

    def forward(self, values: Tensor) -> Tensor:
        """Turn numbers (B, T, F) into vectors (B, T, D)."""
        is_missing = values.isnan()
        observed = values.masked_fill(is_missing, 0.0)
        channels = torch.cat((observed, (~is_missing).to(values.dtype)), dim=-1)  # (B, T, 2F)
        embedded: Tensor = self.linear(channels.to(self.linear.weight.dtype))
        return embedded


class SeriesTransformer(Transformer):
    """Reads a window of numbers (B, S, F), NaN = missing, and says the steps of a horizon.

    With `num_targets=0` the target is label ids, just as a Transformer's. Else it is rows of so
    many numbers: `tgt_ids` is float (B, T, K), its first row all NaN in place of the start symbol;
    what is given back are numbers, not logits; and `step` takes the numbers of one step (N, K).

    >>> model = SeriesTransformer(
    ...     num_features=2, vocab_size=6, d_model=16, d_ff=32, num_heads=2, num_layers=1
    ... )
    >>> model(torch.randn(1, 30, 2), torch.tensor([[2, 4, 5]])).shape
    torch.Size([1, 3, 6])
    """

    kind: ClassVar[str] = SeriesTransformerConfig.kind
    input_type: ClassVar[str] = "series"
    """What it reads; other models read text."""

    def __init__(self, **options: Any) -> None:
        config = SeriesTransformerConfig(**options)
        base_options = config.model_dump(exclude=SERIES_OPTIONS)
        super().__init__(**base_options)
        self.config: SeriesTransformerConfig = config
        replacements: dict[str, nn.Module] = {
            "src_embedding": NumberEmbedding(config.num_features, config.d_model)
        }
        if config.num_targets:
            replacements["tgt_embedding"] = NumberEmbedding(config.num_targets, config.d_model)
            replacements["output"] = nn.Linear(config.d_model, config.num_targets)
        for name, module in replacements.items():
            initialize(module)
            self.register_module(name, module)

    @property
    def target_type(self) -> Literal["labels", "numbers"]:
        """Tell what the target is made of, and so by which loss it is taught."""
        return "numbers" if self.config.num_targets else "labels"

    @property
    def supports_packing(self) -> bool:
        """Tell that windows are never packed: all have one length."""
        return False

    def step(self, ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Feed one target position, ids (N,) or numbers (N, K); give what comes next (N, ...)."""
        if self.target_type == "labels":
            return super().step(ids, state)
        check_numbers(ids, self.config.num_targets, name="the numbers", shape="(batch, numbers)")
        x = self._embed(self.tgt_embedding, self.tgt_positions, ids[:, None], state.position)
        x, state = self.decoder.step(x, state)
        return self.output(x.squeeze(1)), state

    def _embed_source(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        check_numbers(ids, self.config.num_features, name="the window")
        given = presence_mask(ids) if mask is None else mask
        mask = self._check_mask(ids, given, name="src_mask")
        return self._embed(self.src_embedding, self.src_positions, ids), mask

    def _embed_target(self, ids: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
        if self.target_type == "labels":
            return super()._embed_target(ids, mask)
        check_numbers(ids, self.config.num_targets, name="the target")
        # a step without numbers is still a step: the first one has none
        given = torch.ones_like(ids[:1, None, :, 0], dtype=torch.bool) if mask is None else mask
        mask = self._check_mask(ids, given, name="tgt_mask")
        return self._embed(self.tgt_embedding, self.tgt_positions, ids), mask

    @staticmethod
    def _check_mask(values: Tensor, mask: Tensor, *, name: str) -> Tensor:
        shape = (values.size(0), 1, values.size(1))
        check_mask(mask, shape, name=name)
        return mask.expand(shape)


def presence_mask(values: Tensor) -> Tensor:
    """Let every query see the time steps (B, S, F) at which any number is there.

    In a window without any number all may be seen, so that no query looks at nothing.

    >>> nan = float("nan")
    >>> presence_mask(torch.tensor([[[1.0, nan], [nan, nan]], [[nan, nan], [nan, nan]]])).tolist()
    [[[True, False]], [[True, True]]]
    """
    is_present = values.isnan().logical_not().any(-1)  # (B, S)
    return (is_present | ~is_present.any(-1, keepdim=True)).unsqueeze(-2)  # (B, 1, S)


def check_numbers(
    values: Tensor, size: int, *, name: str, shape: str = "(batch, steps, numbers)"
) -> None:
    """Refuse numbers of the wrong shape or type, and infinite ones.

    The values are looked at only where that breaks no compiled graph.
    """
    if not values.is_floating_point():
        raise InputError(
            f"{name} has type {values.dtype}, not floating-point numbers",
            hint=f"give a float tensor of shape {shape}, NaN for what is missing",
        )
    if values.dim() != shape.count(",") + 1 or values.size(-1) != size:
        raise InputError(
            f"{name} has shape {tuple(values.shape)}, not {shape} with {size} numbers a step",
            hint="give the columns that the model was trained on, in their order",
        )
    if not torch.compiler.is_compiling() and bool(values.isinf().any()):
        raise InputError(
            f"{name} holds an infinite number", hint="mend it, or mark it as missing with NaN"
        )
