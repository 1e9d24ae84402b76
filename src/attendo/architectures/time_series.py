"""A Transformer whose source is a time series; its target is labels or numbers.

The encoder's tokens are the time steps of a window. Each is a row of numbers, NaN where one is
missing: a linear layer reads every number together with a flag for whether it is present, so that
missing values are recognized and no NaN reaches a product. Positions and layers are the
Transformer's. Units, windows and label names belong to other packages.

Paper: departs from it. Section 3.4 looks tokens up in a table; here a linear layer replaces it on
the source side and, if the target is numbers, at both ends of the decoder.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from attendo.architectures.config import SeriesTransformerConfig
from attendo.core.errors import InputError
from attendo.model.initialization import initialize
from attendo.model.masks import check_mask
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.model.kv_cache import DecoderState

SERIES_OPTIONS = {"num_features", "num_targets"}
"""Options that the `Transformer` does not have."""


class NumberEmbedding(nn.Module):
    """Embeds rows of numbers, NaN where one is missing, by one linear layer.

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
    """Predicts the steps of a horizon from a window of numbers (B, S, F), NaN = missing.

    With `num_targets=0` the target is label ids, as in a Transformer. Otherwise it is K numbers per
    step: `tgt_ids` is float (B, T, K), its first row all NaN instead of the start symbol; the
    outputs are numbers, not logits; and `step` takes the numbers of one step (N, K).

    >>> model = SeriesTransformer(
    ...     num_features=2, vocab_size=6, d_model=16, d_ff=32, num_heads=2, num_layers=1
    ... )
    >>> model(torch.randn(1, 30, 2), torch.tensor([[2, 4, 5]])).shape
    torch.Size([1, 3, 6])
    """

    kind: ClassVar[str] = SeriesTransformerConfig.kind
    input_type: ClassVar[str] = "series"
    """The type of its source; that of other models is text."""

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
        """The type of the target, which determines the loss."""
        return "numbers" if self.config.num_targets else "labels"

    @property
    def supports_packing(self) -> bool:
        """False: all windows have one length, so packing would gain nothing."""
        return False

    def step(self, ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Feed one target position, ids (N,) or numbers (N, K); return the next output (N, ...)."""
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
        # Steps without numbers count too: the first one has none.
        given = torch.ones_like(ids[:1, None, :, 0], dtype=torch.bool) if mask is None else mask
        mask = self._check_mask(ids, given, name="tgt_mask")
        return self._embed(self.tgt_embedding, self.tgt_positions, ids), mask

    @staticmethod
    def _check_mask(values: Tensor, mask: Tensor, *, name: str) -> Tensor:
        shape = (values.size(0), 1, values.size(1))
        check_mask(mask, shape, name=name)
        return mask.expand(shape)


def presence_mask(values: Tensor) -> Tensor:
    """Let every query see the time steps (B, S, F) that have any number.

    In a window without any number all steps are visible, so that no query sees nothing.

    >>> nan = float("nan")
    >>> presence_mask(torch.tensor([[[1.0, nan], [nan, nan]], [[nan, nan], [nan, nan]]])).tolist()
    [[[True, False]], [[True, True]]]
    """
    is_present = values.isnan().logical_not().any(-1)  # (B, S)
    return (is_present | ~is_present.any(-1, keepdim=True)).unsqueeze(-2)  # (B, 1, S)


def check_numbers(
    values: Tensor, size: int, *, name: str, shape: str = "(batch, steps, numbers)"
) -> None:
    """Raise an error for numbers of the wrong shape or type, and for infinite ones.

    The values are not checked while compiling, since reading them would break the graph.
    """
    if not values.is_floating_point():
        raise InputError(
            f"{name} has type {values.dtype}, not floating-point numbers",
            hint=f"give a float tensor of shape {shape}, NaN for missing values",
        )
    if values.dim() != shape.count(",") + 1 or values.size(-1) != size:
        raise InputError(
            f"{name} has shape {tuple(values.shape)}, not {shape} with {size} numbers per step",
            hint="give the columns that the model was trained on, in their order",
        )
    if not torch.compiler.is_compiling() and bool(values.isinf().any()):
        raise InputError(
            f"{name} holds an infinite number", hint="fix it, or mark it as missing with NaN"
        )
