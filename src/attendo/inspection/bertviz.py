"""A record for BertViz: `head_view(**to_head_view(record))` draws it in a notebook.

BertViz shows one list of decoder tokens on both sides of the decoder's attention, so the tokens
are those that the decoder reads: START and all outputs but the last. Row t, which predicts
token t, is labeled with the token before it, as BertViz does with other models.
BertViz itself is not needed here (`pip install bertviz` installs it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from attendo.core.errors import InputError
from attendo.core.logs import get_logger
from attendo.core.message import message
from attendo.inspection.record import KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.record import Record

START_PIECE = "<s>"
VIEW_KEYS: dict[AttentionKind, str] = {
    "encoder_self": "encoder_attention",
    "decoder_self": "decoder_attention",
    "cross": "cross_attention",
}

log = get_logger(__name__)


def to_head_view(record: Record, *, kinds: Sequence[AttentionKind] = KINDS) -> dict[str, Any]:
    """Return the keyword arguments of `bertviz.head_view`: all heads of one layer.

    `kinds` selects kinds of attention. BertViz has one layer selector for all kinds: if they have
    different numbers of layers, those that all of them have.
    """
    if not record.kinds:
        reason = "the model has no attention to show"
        raise InputError(reason, hint="inspect its steps and its beam with `attendo look`")
    chosen = [kind for kind in kinds if kind in record.kinds]
    if not chosen:
        available = ", ".join(record.kinds)
        raise InputError(
            "no attention to show",
            hint=message("choose kinds that it has: {available}", available=available),
        )
    views: dict[str, Any] = {}
    for kind in chosen:
        layers = torch.tensor(record.attention(kind))  # (L, H, T, S)
        views[VIEW_KEYS[kind]] = [layer.unsqueeze(0) for layer in layers]
    pieces = [token["piece"] for token in record.tgt["tokens"]]
    views["encoder_tokens"] = [token["piece"] for token in record.src["tokens"]]
    views["decoder_tokens"] = [START_PIECE, *pieces[:-1]]
    counts = [len(views[VIEW_KEYS[kind]]) for kind in chosen]
    if len(set(counts)) > 1:
        log.warning("BertViz shows the lowest %d of %d layers", min(counts), max(counts))
        views["include_layers"] = list(range(min(counts)))
    return views


def to_model_view(record: Record, *, kinds: Sequence[AttentionKind] = KINDS) -> dict[str, Any]:
    """Return the keyword arguments of `bertviz.model_view`: all heads of all layers at once."""
    return to_head_view(record, kinds=kinds)
