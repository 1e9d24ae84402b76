"""Limits of a search that are computed without tensors: lengths, and tokens that never occur."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.decoding.options import Constraints, DecodingOptions, SpecialIds

NEG_INF = float("-inf")


def suppressed_ids(special_ids: SpecialIds, options: DecodingOptions) -> list[int]:
    """Return the ids that are never generated."""
    suppressed = {special_ids.pad_id, special_ids.start_id}
    if options.unk == "avoid" and special_ids.unk_id is not None:
        suppressed.add(special_ids.unk_id)
    return sorted(suppressed - {special_ids.end_id})


def target_limits(
    src_lengths: Sequence[int],
    options: DecodingOptions,
    constraints: Sequence[Constraints | None] | None = None,
) -> list[int]:
    """Return the maximum number of tokens of each translation.

    Paper: the length of the input + 50 (section 6.1). The tokens of required phrases are added.
    """
    limits = []
    for length, constraint in zip(
        src_lengths, constraints or [None] * len(src_lengths), strict=True
    ):
        num_prefix = num_required = 0
        if constraint is not None:
            num_prefix = len(constraint.prefix)
            num_required = sum(len(phrase.tokens) for phrase in constraint.required)
        limit = max_length_of(length + num_required, options)
        limits.append(max(limit, num_prefix + num_required + 1))
    return limits


def max_length_of(src_length: int, options: DecodingOptions) -> int:
    """Return the maximum number of tokens of a translation without constraints."""
    limit = max(src_length + options.max_extra_tokens, options.min_length + 1)
    return limit if options.max_length is None else min(limit, options.max_length)


def check_finite(has_nan: bool) -> None:
    """Raise an error if the model returned NaN: every choice of a token would be arbitrary."""
    if has_nan:
        raise AttendoError(
            "the model returned NaN instead of probabilities",
            hint="the training diverged, or the weights are damaged: use an earlier checkpoint, "
            "or float32 instead of half precision",
        )
