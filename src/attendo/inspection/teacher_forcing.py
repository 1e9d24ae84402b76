"""A record's sentence as tensors for teacher forcing: source, decoder input, target."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from attendo.core.errors import InputError
from attendo.inspection.heads import require_transformer
from attendo.inspection.model_info import check_model
from attendo.text.tokenizer import START_ID

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.core.protocols import Seq2SeqModel
    from attendo.inspection.record import Record
    from attendo.model.transformer import Transformer
    from attendo.translator import Translator


class TeacherForcedPass(NamedTuple):
    """One sentence, ready for teacher forcing."""

    src_ids: Tensor  # (1, S)
    decoder_input_ids: Tensor  # (1, T): the start symbol, then all outputs but the last
    target_ids: Tensor  # (T,)

    def __call__(self, model: Seq2SeqModel[Any], *, num_rows: int = 1) -> Tensor:
        """Return the logits (B, T, V) of every step, with the same sentence in every row."""
        src_ids, decoder_input_ids = (
            ids.expand(num_rows, -1) for ids in (self.src_ids, self.decoder_input_ids)
        )
        full_mask = torch.ones_like(decoder_input_ids, dtype=torch.bool)[
            :, None
        ]  # some start with padding
        return model.forward(src_ids, decoder_input_ids, tgt_mask=full_mask)


def teacher_force(translator: Translator, record: Record) -> TeacherForcedPass:
    """Return the ids of a record on the device of the model."""
    device = translator.backend.device
    src, target_ids = (
        [token["id"] for token in side["tokens"]] for side in (record.src, record.tgt)
    )
    if not target_ids:
        raise InputError("the record has no target", hint="capture the sentence again")
    return TeacherForcedPass(
        torch.tensor([src], device=device),
        torch.tensor([[START_ID, *target_ids[:-1]]], device=device),
        torch.tensor(target_ids, device=device),
    )


def match_model(translator: Translator, record: Record, *, feature: str) -> Transformer:
    """Return the Transformer of a record; raise an error for a record of another model."""
    model = require_transformer(translator.model, feature=feature)
    check_model(translator, record)
    return model
