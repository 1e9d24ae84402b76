"""A record's sentence as ids again: what was read, what the decoder was fed, what it said."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.core.errors import InputError
from attendo.data.tokenizer import START_ID
from attendo.inspection.facts import check_model
from attendo.inspection.heads import require_transformer

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.inspection.record import Record
    from attendo.model.transformer import Transformer
    from attendo.translator import Translator


class Forced(NamedTuple):
    """One sentence, ready for teacher forcing."""

    src_ids: Tensor  # (1, S)
    fed_ids: Tensor  # (1, T): the start symbol, then all that was said but the last
    said_ids: Tensor  # (T,)

    def __call__(self, model: Seq2SeqModel[Any], *, num_rows: int = 1) -> Tensor:
        """Give the logits (B, T, V) of every step, of the same sentence in every row."""
        src_ids, fed_ids = (ids.expand(num_rows, -1) for ids in (self.src_ids, self.fed_ids))
        everything = torch.ones_like(fed_ids, dtype=torch.bool)[:, None]  # some start with padding
        return model.forward(src_ids, fed_ids, tgt_mask=everything)


def force(translator: Translator, record: Record) -> Forced:
    """Take the ids of a record onto the device of the model."""
    device = translator.engine.device
    src, said = ([token["id"] for token in side["tokens"]] for side in (record.src, record.tgt))
    if not said:
        raise InputError("the record has no target", remedy="capture the sentence again")
    return Forced(
        torch.tensor([src], device=device),
        torch.tensor([[START_ID, *said[:-1]]], device=device),
        torch.tensor(said, device=device),
    )


def match_model(translator: Translator, record: Record, *, wanted: str) -> Transformer:
    """Give the Transformer behind a record; refuse a record of another model."""
    model = require_transformer(translator.model, wanted=wanted)
    check_model(translator, record)
    return model
