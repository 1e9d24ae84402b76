"""Which tokens may come next: the rules that every kind of search shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.decoding.limits import NEG_INF, suppressed_ids, target_limits

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.decoding.options import Constraints, DecodingOptions, SpecialIds


class TokenFilter:
    """Forbids tokens by setting their log-probabilities to minus infinity.

    A row is one hypothesis. A forced prefix overrides every other rule.
    """

    def __init__(
        self,
        options: DecodingOptions,
        special_ids: SpecialIds,
        constraints: Sequence[Constraints | None] | None,
        device: torch.device,
    ) -> None:
        self.min_length = options.min_length
        self.no_repeat_ngram = options.no_repeat_ngram
        self.end_id = special_ids.end_id
        suppressed = suppressed_ids(special_ids, options)
        self.suppressed = torch.tensor(suppressed, dtype=torch.long, device=device)
        prefixes = [one.prefix if one is not None else () for one in constraints or ()]
        longest = max(map(len, prefixes), default=0)
        padded = [[*prefix, *[-1] * (longest - len(prefix))] for prefix in prefixes]
        self.prefixes = torch.tensor(padded, device=device) if longest else None  # (B, longest)
        self.needs_ids = bool(self.no_repeat_ngram)

    def __call__(
        self, log_probs: Tensor, position: int, sentences: Tensor, ids: Tensor | None
    ) -> Tensor:
        """Filter log_probs (N, V) of hypotheses `ids` (N, t) of the sentences `sentences` (N,)."""
        filtered = log_probs.index_fill(1, self.suppressed, NEG_INF)
        if position < self.min_length:
            filtered[:, self.end_id] = NEG_INF
        if ids is not None and position >= self.no_repeat_ngram > 0:
            self._forbid_repeated_ngrams(filtered, ids)
        if self.needs_ids or position < self.min_length:
            # The rules may forbid every token: then the hypothesis ends.
            is_stuck = filtered.max(1).values.eq(NEG_INF)
            filtered[:, self.end_id] = torch.where(
                is_stuck, log_probs[:, self.end_id], filtered[:, self.end_id]
            )
        if self.prefixes is not None and position < self.prefixes.size(1):
            filtered = self._force_prefix(filtered, log_probs, self.prefixes[sentences, position])
        return filtered

    def _forbid_repeated_ngrams(self, filtered: Tensor, ids: Tensor) -> None:
        windows = ids.unfold(1, self.no_repeat_ngram, 1)  # (N, windows, ngram)
        last = ids[:, ids.size(1) - self.no_repeat_ngram + 1 :]  # (N, ngram - 1)
        is_same = (windows[:, :, :-1] == last[:, None]).all(-1)  # (N, windows)
        row, window_index = is_same.nonzero(as_tuple=True)
        filtered[row, windows[row, window_index, -1]] = NEG_INF

    @staticmethod
    def _force_prefix(filtered: Tensor, log_probs: Tensor, forced: Tensor) -> Tensor:
        is_forced = forced.ge(0)
        token = forced.clamp(min=0)[:, None]
        forced_only = torch.full_like(filtered, NEG_INF).scatter(
            1, token, log_probs.gather(1, token)
        )
        return torch.where(is_forced[:, None], forced_only, filtered)


def max_lengths(
    src_ids: Tensor,
    options: DecodingOptions,
    special_ids: SpecialIds,
    constraints: Sequence[Constraints | None] | None = None,
) -> list[int]:
    """Return the maximum number of tokens of each translation of a padded batch (B, S)."""
    is_present = src_ids.ne(special_ids.pad_id) if src_ids.dim() == 2 else ~src_ids.isnan().all(-1)
    lengths = is_present.sum(1).tolist()  # in ids, or in time steps with at least one number
    return target_limits(lengths, options, constraints)
