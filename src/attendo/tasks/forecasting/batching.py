"""Batches of windows: what `data/batching.py` is to sentences.

Windows are cut out of the rows when they are read: memory grows with the file, not with the number
of windows times their length. All windows have one length, so that batches hold no padding.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from attendo.core.errors import InputError
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
"""As `train.batch_tokens`."""


class SeriesBatchPlan:
    """Which windows make up each batch of an epoch; keeps `BatchPlan`'s interface.

    Args:
        table: the rows, as read; their targets must be known.
        codec: normalises them.
        places: the windows, each named by the row where its target begins.
        batch_tokens: the most positions, window and horizon together, in a batch.
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
                f"the series has no column '{self.codec.targets[0]}'",
                hint="give a file with the targets",
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
                f"a window of {positions} positions exceeds batch_tokens {self.batch_tokens}",
                hint="raise train.batch_tokens or lower series.window",
            )
        length = self.codec.horizon + (self.codec.kind == "labels")  # labels end with a symbol
        self.origins = origins
        self.src_lengths = np.full(len(origins), self.codec.window, dtype=np.int32)
        self.tgt_lengths = np.full(len(origins), length, dtype=np.int32)

    def with_origins(self, origins: Origins) -> SeriesBatchPlan:
        """Plan other windows of the same rows, which are kept once."""
        other = copy(self)
        other._set_origins(origins)
        return other

    def __len__(self) -> int:
        return len(self.origins)

    def epoch(self, number: int) -> list[Rows]:
        """Plan an epoch: the numbers of the windows in each batch, in the order of training."""
        rng = np.random.default_rng(derive_seed(self.seed, "epoch", number))
        rows = rng.permutation(len(self.origins))
        size = self.batch_tokens // (self.codec.window + self.codec.horizon)
        return [rows[start : start + size] for start in range(0, len(rows), size)]

    def padding_stats(self, batches: Sequence[Rows]) -> PaddingStats:  # noqa: ARG002 - as `BatchPlan` has it
        """Tell the share of padding: windows need none."""
        return PaddingStats(0.0, 0.0)

    def count_labels(self, rows: Rows) -> int:
        """Count the target entries that are scored, the end symbols of labels included."""
        origins = self.origins[rows]
        known = self._known_cumsum[origins + self.codec.horizon] - self._known_cumsum[origins]
        ends = len(origins) if self.codec.kind == "labels" else 0
        return int(known.sum()) + ends

    def read(self, rows: Rows) -> Batch:
        """Cut these windows out: features (B, S, F), and the target shifted and as it is.

        Labels end with the end symbol; one that is missing is padding, and unknown in the decoder's
        input. Numbers (B, T, K) begin behind a row of NaN.
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

    # -- for those who measure and look

    def windows(
        self, rows: Rows | None = None, *, num_last: int | None = None
    ) -> NDArray[np.float64]:
        """Give the inputs (B, S, F) in the units of the file, all when no rows are named.

        `last` cuts only so many steps from the end of each.
        """
        start = -min(num_last or self.codec.window, self.codec.window)
        return self.codec.denormalize(
            self._slice_windows(self.features, self._rows_or_all(rows), start, 0)
        )

    def truth(self, rows: Rows | None = None) -> NDArray[Any]:
        """Give what is to be foretold, in the units of the file.

        Labels (B, T) are numbered from 0, -1 = missing; numbers are (B, T, K), NaN = missing.
        """
        return self._to_file_units(
            self._slice_windows(self.targets, self._rows_or_all(rows), 0, self.codec.horizon)
        )

    def past_targets(self, rows: Rows | None = None) -> NDArray[Any]:
        """Give the targets of the rows that are read, as `truth` gives those behind them."""
        return self._to_file_units(
            self._slice_windows(self.targets, self._rows_or_all(rows), -self.codec.window, 0)
        )

    def _to_file_units(self, targets: torch.Tensor) -> NDArray[Any]:
        if self.codec.kind == "numbers":
            return self.codec.denormalize_targets(targets)
        return np.where(targets == PAD_ID, -1, targets - NUM_SPECIAL_IDS)

    def target_times(self, rows: Rows | None = None) -> NDArray[Any] | None:
        """Give the times (B, T) that are foretold, None where the series has no times."""
        if self.times is None:
            return None
        row_indices = self.origins[self._rows_or_all(rows)][:, None] + np.arange(self.codec.horizon)
        return np.asarray(self.times[row_indices])

    def _rows_or_all(self, rows: Rows | None) -> Rows:
        return np.arange(len(self.origins)) if rows is None else rows
