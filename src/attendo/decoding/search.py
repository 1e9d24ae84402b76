"""The one door to every kind of search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.core.errors import ConfigError
from attendo.decoding.beam import beam
from attendo.decoding.greedy import greedy, sample
from attendo.decoding.static.search import search_static

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.options import Constraints, DecodingOptions, SpecialIds


def search(
    model: Seq2SeqModel[Any],
    src_ids: Tensor,
    special_ids: SpecialIds,
    options: DecodingOptions,
    constraints: Sequence[Constraints] | None = None,
    *,
    trace: bool = False,
    shrink: bool = True,
) -> list[SearchResult]:
    """Translate a padded batch (B, S) by the kind of search that the options ask for.

    Where nothing stands against it, `attendo.decoding.static.search` does the work.
    """
    has_phrases = any(constraint.has_phrases for constraint in constraints or ())
    if options.do_sample and has_phrases:
        reason = "sampling cannot keep to required or forbidden phrases"
        raise ConfigError(reason, hint="leave sample out: beam search keeps to them")
    if not src_ids.size(0):
        return []
    if not trace:
        results = search_static(model, src_ids, special_ids, options, constraints, shrink=shrink)
        if results is not None:
            return results
    if options.do_sample:
        search_function = sample
    else:
        search_function = greedy if options.beam_size == 1 and not has_phrases else beam
    return search_function(
        model, src_ids, special_ids, options, constraints, trace=trace, shrink=shrink
    )
