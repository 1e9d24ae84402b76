"""Which tokens may come next: the rules that hold for every kind of search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.core.errors import AttendoError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.decoding.options import DecodingOptions, Demands, Symbols

NEVER = float("-inf")


class Rules:
    """Forbids tokens by setting their log-probabilities to minus infinity.

    A row is one hypothesis. A forced prefix goes before every other rule.
    """

    def __init__(
        self,
        options: DecodingOptions,
        symbols: Symbols,
        demands: Sequence[Demands],
        device: torch.device,
    ) -> None:
        self.min_length = options.min_length
        self.ngram = options.no_repeat_ngram
        self.end_id = symbols.end_id
        unwanted = find_unwanted(symbols, options)
        self.unwanted = torch.tensor(unwanted, dtype=torch.long, device=device)
        longest = max((len(demand.prefix) for demand in demands), default=0)
        rows = [[*d.prefix, *[-1] * (longest - len(d.prefix))] for d in demands]
        self.prefixes = torch.tensor(rows, device=device) if longest else None  # (B, longest)
        self.needs_ids = bool(self.ngram)

    def __call__(
        self, log_probs: Tensor, position: int, sentences: Tensor, ids: Tensor | None
    ) -> Tensor:
        """Rule log_probs (N, V) of rows of `sentences` (N,) that have said `ids` (N, t)."""
        ruled = log_probs.index_fill(1, self.unwanted, NEVER)
        if position < self.min_length:
            ruled[:, self.end_id] = NEVER
        if ids is not None and position >= self.ngram > 0:
            self._forbid_repetition(ruled, ids)
        if self.needs_ids or position < self.min_length:  # rules may leave nothing: then it ends
            stuck = ruled.max(1).values.eq(NEVER)
            ruled[:, self.end_id] = torch.where(
                stuck, log_probs[:, self.end_id], ruled[:, self.end_id]
            )
        if self.prefixes is not None and position < self.prefixes.size(1):
            ruled = self._force(ruled, log_probs, self.prefixes[sentences, position])
        return ruled

    def _forbid_repetition(self, ruled: Tensor, ids: Tensor) -> None:
        windows = ids.unfold(1, self.ngram, 1)  # (N, places, ngram)
        last = ids[:, ids.size(1) - self.ngram + 1 :]  # (N, ngram - 1)
        is_same = (windows[:, :, :-1] == last[:, None]).all(-1)  # (N, places)
        row, place = is_same.nonzero(as_tuple=True)
        ruled[row, windows[row, place, -1]] = NEVER

    @staticmethod
    def _force(ruled: Tensor, log_probs: Tensor, forced: Tensor) -> Tensor:
        is_forced = forced.ge(0)
        token = forced.clamp(min=0)[:, None]
        only = torch.full_like(ruled, NEVER).scatter(1, token, log_probs.gather(1, token))
        return torch.where(is_forced[:, None], only, ruled)


def find_unwanted(symbols: Symbols, options: DecodingOptions) -> list[int]:
    """Give the ids that no translation has."""
    unwanted = {symbols.pad_id, symbols.start_id}
    if options.unk == "avoid" and symbols.unk_id is not None:
        unwanted.add(symbols.unk_id)
    return sorted(unwanted - {symbols.end_id})


def limits_of(
    src_ids: Tensor, options: DecodingOptions, symbols: Symbols, demands: Sequence[Demands]
) -> list[int]:
    """Give the most tokens that each translation may have, the end symbol not needed.

    Paper: the length of the input + 50 (section 6.1). Phrases that must stand in it come on top.
    """
    is_there = src_ids.ne(symbols.pad_id) if src_ids.dim() == 2 else ~src_ids.isnan().all(-1)
    lengths = is_there.sum(1).tolist()  # of ids, or of time steps with any number
    limits = []
    for length, demand in zip(lengths, demands, strict=True):
        required = sum(len(phrase.tokens) for phrase in demand.required)
        limit = max(length + options.max_extra + required, options.min_length + 1)
        if options.max_length is not None:
            limit = min(limit, options.max_length)
        limits.append(max(limit, len(demand.prefix) + required + 1))
    return limits


def refuse_nan(has_nan: bool) -> None:
    """Stop where a model gives what is no number: every choice would be by chance."""
    if has_nan:
        raise AttendoError(
            "the model gives NaN in place of probabilities",
            remedy="its training has diverged, or its weights are damaged: use an earlier "
            "checkpoint, or float32 where it runs in half precision",
        )
