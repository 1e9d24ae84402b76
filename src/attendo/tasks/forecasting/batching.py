"""Batches of windows, with the interface of `attendo.data.batching`.

Windows are sliced from the rows when they are read: memory grows with the file, not with the number
of windows times their length. All windows have one length, so batches have no padding.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.core.seeding import derive_seed
from attendo.data.batching import Batch, PaddingStats
from attendo.tasks.forecasting.codec import NUM_SPECIAL_IDS
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from attendo.data.batching import Rows
    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.table import SeriesTable
    from attendo.tasks.forecasting.windows import Origins

BATCH_TOKENS = 4096
"""The default of `train.batch_tokens`."""


class SeriesBatchPlan:
    """The windows of each batch of an epoch; has the interface of `BatchPlan`.

    Args:
        table: the rows; their targets must be known.
        codec: normalizes them.
        origins: the windows, each given by the row where its target begins.
        batch_tokens: most positions in a batch, window and horizon together.
        seed: of the shuffling.

    """

    def __init__(
        self,
        table: SeriesTable,
        codec: SeriesCodec,
        origins: Origins,
        *,
        batch_tokens: int = BATCH_TOKENS,
        seed: int = 1,
    ) -> None:
        self.codec = codec
        self.times = table.times
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.features = torch.from_numpy(codec.normalize(table.features))  # (rows, F)
        self.targets = self._encode(table)  # ids (rows,) or numbers (rows, K)
        is_labels = codec.kind == "labels"
        known = self.targets.ne(PAD_ID) if is_labels else ~self.targets.isnan()
        counts = known.reshape(len(known), -1).sum(1).numpy()
        self._known_cumsum = np.concatenate([[0], np.cumsum(counts)])
        self._set_origins(origins)

    def _encode(self, table: SeriesTable) -> torch.Tensor:
        if table.targets is None:
            raise InputError(
                message("the series has no column '{target}'", target=self.codec.targets[0]),
                hint="give a file with targets",
            )
        if self.codec.kind == "labels":
            location = ", ".join(str(path) for path in table.config.paths)
            return torch.from_numpy(self.codec.encode_labels(table.targets.tolist(), location))
        return torch.from_numpy(self.codec.normalize_targets(table.targets))

    def _set_origins(self, origins: Origins) -> None:
        if not len(origins):
            raise InputError("there are no windows", hint="give more rows")
        positions = self.codec.window + self.codec.horizon
        if positions > self.batch_tokens:
            raise InputError(
                message(
                    "a window of {positions} positions exceeds batch_tokens {batch_tokens}",
                    positions=positions,
                    batch_tokens=self.batch_tokens,
                ),
                hint="increase train.batch_tokens or decrease series.window",
            )
        length = self.codec.horizon + (self.codec.kind == "labels")  # labels end with a symbol
        self.origins = origins
        self.src_lengths = np.full(len(origins), self.codec.window, dtype=np.int32)
        self.tgt_lengths = np.full(len(origins), length, dtype=np.int32)

    def with_origins(self, origins: Origins) -> SeriesBatchPlan:
        """Return a plan of other windows of the same rows, sharing their memory."""
        other = copy(self)
        other._set_origins(origins)
        return other

    def __len__(self) -> int:
        return len(self.origins)

    def epoch(self, number: int) -> list[Rows]:
        """Return the windows of each batch of an epoch, in training order."""
        rng = np.random.default_rng(derive_seed(self.seed, "epoch", number))
        rows = rng.permutation(len(self.origins))
        size = self.batch_tokens // (self.codec.window + self.codec.horizon)
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def padding_stats(self, batches: Sequence[Rows]) -> PaddingStats:  # noqa: ARG002 - the signature of `BatchPlan`
        """Return the share of padding, which is zero."""
        return PaddingStats(0.0, 0.0)

    def count_labels(self, rows: Rows) -> int:
        """Return the number of scored target entries, end symbols of labels included."""
        origins = self.origins[rows]
        known = self._known_cumsum[origins + self.codec.horizon] - self._known_cumsum[origins]
        ends = len(origins) if self.codec.kind == "labels" else 0
        return int(known.sum()) + ends

    def read(self, rows: Rows) -> Batch:
        """Return these windows: features (B, S, F), the shifted target and the target.

        Labels end with the end symbol; a missing one is padding, and unknown in the decoder input.
        The decoder input of numbers (B, T, K) starts with a row of NaN.
        """
        targets = self._slice_windows(self.targets, rows, 0, self.codec.horizon)
        src = self._slice_windows(self.features, rows, -self.codec.window, 0)  # (B, S, F)
        if self.codec.kind == "labels":
            known = targets.masked_fill(targets.eq(PAD_ID), UNK_ID)
            shifted = torch.nn.functional.pad(known, (1, 0), value=START_ID)  # (B, T)
            return Batch(src, shifted, torch.nn.functional.pad(targets, (0, 1), value=END_ID))
        start = torch.full_like(targets[:, :1], torch.nan)
        return Batch(src, torch.cat([start, targets[:, :-1]], dim=1), targets)  # (B, T, K)

    def _slice_windows(
        self, values: torch.Tensor, rows: Rows, start: int, end: int
    ) -> torch.Tensor:
        row_indices = self.origins[rows][:, None] + np.arange(start, end)
        return values[torch.from_numpy(row_indices)]

    # -- values in the units of the file

    def windows(
        self, rows: Rows | None = None, *, num_last: int | None = None
    ) -> NDArray[np.float64]:
        """Return the inputs (B, S, F) of some windows, by default of all.

        `num_last` limits them to the last steps.
        """
        start = -min(num_last or self.codec.window, self.codec.window)
        return self.codec.denormalize(
            self._slice_windows(self.features, self._rows_or_all(rows), start, 0)
        )

    def truth(self, rows: Rows | None = None) -> NDArray[Any]:
        """Return the true targets of some windows, by default of all.

        Labels (B, T) are numbered from 0, -1 = missing; numbers are (B, T, K), NaN = missing.
        """
        return self._to_file_units(
            self._slice_windows(self.targets, self._rows_or_all(rows), 0, self.codec.horizon)
        )

    def past_targets(self, rows: Rows | None = None) -> NDArray[Any]:
        """Return the targets of the input rows, in the format of `truth`."""
        return self._to_file_units(
            self._slice_windows(self.targets, self._rows_or_all(rows), -self.codec.window, 0)
        )

    def _to_file_units(self, targets: torch.Tensor) -> NDArray[Any]:
        if self.codec.kind == "numbers":
            return self.codec.denormalize_targets(targets)
        return np.where(targets == PAD_ID, -1, targets - NUM_SPECIAL_IDS)

    def target_times(self, rows: Rows | None = None) -> NDArray[Any] | None:
        """Return the times (B, T) of the targets, None without a time column."""
        if self.times is None:
            return None
        row_indices = self.origins[self._rows_or_all(rows)][:, None] + np.arange(self.codec.horizon)
        return np.asarray(self.times[row_indices])

    def _rows_or_all(self, rows: Rows | None) -> Rows:
        return np.arange(len(self.origins)) if rows is None else rows
