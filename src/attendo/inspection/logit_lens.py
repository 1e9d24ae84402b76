"""The logit lens: what each decoder layer would predict if it were the last.

The hidden state after each layer goes through the final norm (which only pre-norm models have) and
the output projection, as the last layer's does (nostalgebraist 2020). Lower layers were not
trained for this: their predictions are only a hint.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch

from attendo.inspection.teacher_forcing import match_model, teacher_force

if TYPE_CHECKING:
    from torch import Tensor, nn

    from attendo.inspection.record import Record
    from attendo.inspection.teacher_forcing import TeacherForcedPass
    from attendo.model.transformer import Transformer
    from attendo.text.tokenizer import Tokenizer
    from attendo.translator import Translator

NUM_TOP = 5
DIGITS = 6


@torch.inference_mode()
def logit_lens(translator: Translator, record: Record) -> dict[str, Any]:
    """Return the record's section `logit_lens`: predictions of each decoder layer at each step."""
    model = match_model(translator, record, feature="the logit lens")
    forced_pass = teacher_force(translator, record)
    with translator.backend.eval_mode():
        states = _hidden_states(model, forced_pass)
        logits = (model.output(model.decoder.final_norm(state)) for state in states)  # (T, V)
        probabilities = [layer.float().softmax(-1) for layer in logits]
    return {
        "layers": [
            _describe_layer(translator.tokenizer, layer, forced_pass) for layer in probabilities
        ]
    }


def _hidden_states(model: Transformer, forced_pass: TeacherForcedPass) -> list[Tensor]:
    """Return the hidden state (T, D) after every layer, lowest first."""
    states: list[Tensor] = []

    def record(_layer: nn.Module, _given: Any, result: tuple[Tensor, ...]) -> None:
        states.append(result[0][0])  # (T, D)

    with ExitStack() as stack:
        for layer in model.decoder.layers:
            stack.callback(layer.register_forward_hook(record).remove)
        forced_pass(model)
    return states


def _describe_layer(
    tokenizer: Tokenizer, probabilities: Tensor, forced_pass: TeacherForcedPass
) -> list[dict[str, Any]]:
    """Return one layer's prediction at each step, and its probability and rank of the target."""
    target_ids = forced_pass.target_ids[:, None]
    target_probabilities = probabilities.gather(1, target_ids)  # (T, 1)
    ranks = (probabilities > target_probabilities).sum(1).tolist()
    best = probabilities.topk(min(NUM_TOP, probabilities.size(1)))
    return [
        {
            "top": [
                {"id": number, "piece": piece, "probability": round(probability, DIGITS)}
                for number, piece, probability in zip(
                    ids, tokenizer.tgt_pieces(ids), top_probabilities, strict=True
                )
            ],
            "rank": rank,
            "probability": round(probability, DIGITS),
        }
        for ids, top_probabilities, rank, probability in zip(
            best.indices.tolist(),
            best.values.tolist(),
            ranks,
            target_probabilities[:, 0].tolist(),
            strict=True,
        )
    ]
