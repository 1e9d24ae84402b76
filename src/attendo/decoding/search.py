"""The entry point of every kind of search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.core.errors import ConfigError
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
    constraints: Sequence[Constraints | None] | None = None,
    *,
    trace: bool = False,
    shrink: bool = True,
) -> list[SearchResult]:
    """Translate a padded batch (B, S) with the kind of search that the options select.

    The fast path is `attendo.decoding.static.search`; greedy and beam search of this package are
    the reference, and serve everything that the fast path does not support.

    Args:
        model: encodes the sources and scores the next tokens.
        src_ids: padded source ids (B, S).
        special_ids: start, end, padding and unknown.
        options: kind and size of the search.
        constraints: of each sentence, None for a sentence without any.
        trace: record every candidate of every step.
        shrink: remove finished sentences from the batch. Without it all computations keep their
            shapes, and a result does not depend on the other sentences to the last bit.

    Returns:
        One result per source.

    Raises:
        ConfigError: sampling was combined with required or forbidden phrases.

    """
    has_phrases = any(one is not None and one.has_phrases for one in constraints or ())
    if options.do_sample and has_phrases:
        reason = "sampling does not support required or forbidden phrases"
        raise ConfigError(reason, hint="use beam search: remove do_sample (--sample)")
    if not src_ids.size(0):
        return []
    if not trace:
        results = search_static(model, src_ids, special_ids, options, constraints, shrink=shrink)
        if results is not None:
            return results
    if options.do_sample or (options.beam_size == 1 and not has_phrases):
        from attendo.decoding.greedy import greedy, sample

        search_function = sample if options.do_sample else greedy
    else:
        from attendo.decoding.beam import beam

        search_function = beam
    return search_function(
        model, src_ids, special_ids, options, constraints, trace=trace, shrink=shrink
    )
