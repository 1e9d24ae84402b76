"""Heads switched off: what the translation and its log-probability become without them.

A head whose loss changes little may still matter: others can stand in for it (Michel et al. 2019,
Voita et al. 2019).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from attendo.decoding.options import DecodingOptions
from attendo.decoding.search import search
from attendo.inspection.ablated_rows import AblatedRows, hide_heads, zeroed
from attendo.inspection.forced import force, match_model
from attendo.inspection.heads import Head, list_heads, require_transformer
from attendo.inspection.neighbours import count_places
from attendo.inspection.record import KINDS
from attendo.translator.engine import SYMBOLS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from torch import Tensor

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.forced import Forced
    from attendo.inspection.record import Record
    from attendo.model.transformer import Transformer
    from attendo.translator import Translation, Translator

__all__ = ["Head", "ablate", "heads_off", "sweep"]

WANTED = "head ablation"
SCORED_TOKENS = 2048
"""Of either side at once: with a vocabulary of 37,000 the logits take 300 MB."""
SEARCHED_TOKENS = 4096
"""Of all hypotheses at once."""
DIGITS = 6


@contextmanager
def heads_off(model: Transformer, heads: Iterable[Head]) -> Iterator[None]:
    """Switch heads off for a while; afterwards the model is as before, whatever happened.

    Works in training, in step-by-step decoding and in `explain` alike, and may be nested.

    >>> import torch
    >>> from attendo import Transformer
    >>> model = Transformer(9, d_model=4, d_ff=4, num_heads=2, num_layers=1).eval()
    >>> ids = torch.tensor([[4, 5, 6]])
    >>> before = model(ids, ids)
    >>> with heads_off(model, [Head("cross", 0, 1)]):
    ...     torch.equal(model(ids, ids), before)
    False
    >>> torch.equal(model(ids, ids), before)
    True
    """
    with zeroed(hide_heads(require_transformer(model, wanted=WANTED), [list(heads)])):
        yield


def ablate(translator: Translator, text: str, heads: Iterable[Head], **options: Any) -> Translation:
    """Translate without these heads; `options` as for `Translator.translate`."""
    model = require_transformer(translator.model, wanted=WANTED)
    with heads_off(model, heads):
        return translator.translate([text], **options)[0]


def sweep(
    translator: Translator,
    record: Record,
    *,
    kinds: Sequence[AttentionKind] = KINDS,
    translate: bool = True,
    beam_size: int | None = None,
) -> dict[str, Any]:
    """Switch each head off, one at a time; give the record's section `ablation`.

    `log_prob` is that of the record's own target, `change` what the head's absence adds to it.
    With `translate` the sentence is also translated anew without the head, by the search of the
    record or with another `beam_size` (1 is greedy and quickest).
    """
    model = match_model(translator, record, wanted=WANTED)
    heads, forced = list_heads(model, kinds), force(translator, record)
    with translator.engine.evaluating():
        whole, *without = _score(model, forced, [[], *([head] for head in heads)])
        texts: Sequence[str | None] = [None] * len(heads)
        if translate:
            options = _choose_search(record, beam_size, count_places(model))
            found = _search(model, forced.src_ids, heads, options)
            texts = translator.tokenizer.decode_tgt(found)
    return {
        "heads": [
            {
                **head._asdict(),
                "log_prob": round(log_prob, DIGITS),
                "change": round(log_prob - whole, DIGITS),
                "text": text,
            }
            for head, log_prob, text in zip(heads, without, texts, strict=True)
        ],
        "log_prob": round(whole, DIGITS),
    }


@torch.inference_mode()
def _score(model: Transformer, forced: Forced, choices: list[list[Head]]) -> list[float]:
    """Give the log-probability of the target without each choice of heads."""
    size = max(1, SCORED_TOKENS // max(forced.src_ids.size(1), len(forced.said_ids)))
    found: list[float] = []
    for first in range(0, len(choices), size):
        some = choices[first : first + size]
        logits = forced(AblatedRows(model, some), num_rows=len(some))  # (B, T, V)
        chosen = forced.said_ids.expand(len(some), -1)[:, :, None]
        log_probs = logits.float().log_softmax(-1).gather(-1, chosen)  # (B, T, 1)
        found += log_probs.double().sum((1, 2)).tolist()
    return found


def _search(
    model: Transformer, src_ids: Tensor, heads: list[Head], options: DecodingOptions
) -> list[list[int]]:
    """Search a translation without each of the heads."""
    size = max(1, SEARCHED_TOKENS // (src_ids.size(1) * options.beam_size))
    best: list[list[int]] = []
    for first in range(0, len(heads), size):
        some = [[head] for head in heads[first : first + size]]
        found = search(AblatedRows(model, some), src_ids.expand(len(some), -1), SYMBOLS, options)
        best += [one.hypotheses[0].ids for one in found]
    return best


def _choose_search(
    record: Record, beam_size: int | None, num_places: int | None
) -> DecodingOptions:
    """Take the search of the record; a target that was given or drawn had none to repeat."""
    options: dict[str, Any] = {"max_length": num_places}
    if record.search["method"] in ("beam", "greedy"):
        options |= {key: record.search[key] for key in ("beam_size", "alpha")}
    if beam_size is not None:
        options["beam_size"] = beam_size
    return DecodingOptions(**options)
