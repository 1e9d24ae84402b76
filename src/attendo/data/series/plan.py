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
from attendo.data.batching import Batch, Waste
from attendo.data.series.codec import NUM_SPECIALS
from attendo.data.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from attendo.data.batching import Rows
    from attendo.data.series.codec import SeriesCodec
    from attendo.data.series.table import Table
    from attendo.data.series.windows import Places

BATCH_TOKENS = 4096
"""As `train.batch_tokens`."""


class SeriesPlan:
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
        table: Table,
        codec: SeriesCodec,
        places: Places,
        *,
        batch_tokens: int = BATCH_TOKENS,
        seed: int = 1,
    ) -> None:
        self.codec = codec
        self.times = table.times
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.features = torch.from_numpy(codec.normalise(table.features))  # (rows, F)
        self.targets = self._encode(table)  # ids (rows,) or numbers (rows, K)
        is_labels = codec.kind == "labels"
        known = self.targets.ne(PAD_ID) if is_labels else ~self.targets.isnan()
        counts = known.reshape(len(known), -1).sum(1).numpy()
        self._num_known = np.concatenate([[0], np.cumsum(counts)])
        self._set_places(places)

    def _encode(self, table: Table) -> torch.Tensor:
        if table.targets is None:
            raise InputError(
                f"the series has no column '{self.codec.targets[0]}'",
                remedy="give a file with the targets",
            )
        if self.codec.kind == "labels":
            place = ", ".join(str(path) for path in table.config.paths)
            return torch.from_numpy(self.codec.encode_labels(table.targets.tolist(), place))
        return torch.from_numpy(self.codec.normalise_targets(table.targets))

    def _set_places(self, places: Places) -> None:
        if not len(places):
            raise InputError("there are no windows", remedy="give more rows")
        positions = self.codec.window + self.codec.horizon
        if positions > self.batch_tokens:
            raise InputError(
                f"a window of {positions} positions exceeds batch_tokens {self.batch_tokens}",
                remedy="raise train.batch_tokens or lower series.window",
            )
        length = self.codec.horizon + (self.codec.kind == "labels")  # labels end with a symbol
        self.places = places
        self.src_lengths = np.full(len(places), self.codec.window, dtype=np.int32)
        self.tgt_lengths = np.full(len(places), length, dtype=np.int32)

    def choose(self, places: Places) -> SeriesPlan:
        """Plan other windows of the same rows, which are kept once."""
        other = copy(self)
        other._set_places(places)
        return other

    def __len__(self) -> int:
        return len(self.places)

    def epoch(self, number: int) -> list[Rows]:
        """Plan an epoch: the numbers of the windows in each batch, in the order of training."""
        generator = np.random.default_rng(derive_seed(self.seed, "epoch", number))
        rows = generator.permutation(len(self.places))
        size = self.batch_tokens // (self.codec.window + self.codec.horizon)
        return [rows[begin : begin + size] for begin in range(0, len(rows), size)]

    def waste(self, batches: Sequence[Rows]) -> Waste:  # noqa: ARG002 - as `BatchPlan` has it
        """Tell the share of padding: windows need none."""
        return Waste(0.0, 0.0)

    def count_labels(self, rows: Rows) -> int:
        """Count the target entries that are scored, the end symbols of labels included."""
        places = self.places[rows]
        known = self._num_known[places + self.codec.horizon] - self._num_known[places]
        ends = len(places) if self.codec.kind == "labels" else 0
        return int(known.sum()) + ends

    def read(self, rows: Rows) -> Batch:
        """Cut these windows out: features (B, S, F), and the target shifted and as it is.

        Labels end with the end symbol; one that is missing is padding, and unknown in the decoder's
        input. Numbers (B, T, K) begin behind a row of NaN.
        """
        targets = self._cut(self.targets, rows, 0, self.codec.horizon)
        src = self._cut(self.features, rows, -self.codec.window, 0)  # (B, S, F)
        if self.codec.kind == "labels":
            known = targets.masked_fill(targets.eq(PAD_ID), UNK_ID)
            shifted = torch.nn.functional.pad(known, (1, 0), value=START_ID)  # (B, T)
            return Batch(src, shifted, torch.nn.functional.pad(targets, (0, 1), value=END_ID))
        begin = torch.full_like(targets[:, :1], torch.nan)
        return Batch(src, torch.cat([begin, targets[:, :-1]], dim=1), targets)  # (B, T, K)

    def _cut(self, values: torch.Tensor, rows: Rows, begin: int, end: int) -> torch.Tensor:
        places = self.places[rows][:, None] + np.arange(begin, end)
        return values[torch.from_numpy(places)]

    # -- for those who measure and look

    def windows(self, rows: Rows | None = None, *, last: int | None = None) -> NDArray[np.float64]:
        """Give the inputs (B, S, F) in the units of the file, all when no rows are named.

        `last` cuts only so many steps from the end of each.
        """
        begin = -min(last or self.codec.window, self.codec.window)
        return self.codec.restore(self._cut(self.features, self._all(rows), begin, 0))

    def truth(self, rows: Rows | None = None) -> NDArray[Any]:
        """Give what is to be foretold, in the units of the file.

        Labels (B, T) are numbered from 0, -1 = missing; numbers are (B, T, K), NaN = missing.
        """
        return self._tell(self._cut(self.targets, self._all(rows), 0, self.codec.horizon))

    def past(self, rows: Rows | None = None) -> NDArray[Any]:
        """Give the targets of the rows that are read, as `truth` gives those behind them."""
        return self._tell(self._cut(self.targets, self._all(rows), -self.codec.window, 0))

    def _tell(self, targets: torch.Tensor) -> NDArray[Any]:
        if self.codec.kind == "numbers":
            return self.codec.restore_targets(targets)
        return np.where(targets == PAD_ID, -1, targets - NUM_SPECIALS)

    def target_times(self, rows: Rows | None = None) -> NDArray[Any] | None:
        """Give the times (B, T) that are foretold, None where the series has no times."""
        if self.times is None:
            return None
        places = self.places[self._all(rows)][:, None] + np.arange(self.codec.horizon)
        return np.asarray(self.times[places])

    def _all(self, rows: Rows | None) -> Rows:
        return np.arange(len(self.places)) if rows is None else rows
