"""The one door to every kind of search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.core.errors import ConfigError
from attendo.decoding.beam import beam
from attendo.decoding.fast import search_fast
from attendo.decoding.walk import greedy, sample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.decoding.hypothesis import Found
    from attendo.decoding.options import DecodingOptions, Demands, Symbols


def search(
    model: Seq2SeqModel[Any],
    src_ids: Tensor,
    symbols: Symbols,
    options: DecodingOptions,
    demands: Sequence[Demands] | None = None,
    *,
    trace: bool = False,
    shrink: bool = True,
) -> list[Found]:
    """Translate a padded batch (B, S) by the kind of search that the options ask for.

    Where nothing stands against it, `attendo.decoding.fast` does the work.
    """
    has_phrases = any(demand.has_phrases for demand in demands or ())
    if options.sample and has_phrases:
        reason = "sampling cannot keep to required or forbidden phrases"
        raise ConfigError(reason, remedy="leave sample out: beam search keeps to them")
    if not src_ids.size(0):
        return []
    if not trace:
        found = search_fast(model, src_ids, symbols, options, demands, shrink=shrink)
        if found is not None:
            return found
    if options.sample:
        chosen = sample
    else:
        chosen = greedy if options.beam_size == 1 and not has_phrases else beam
    return chosen(model, src_ids, symbols, options, demands, trace=trace, shrink=shrink)
