"""The logit lens: what each decoder layer would have said, had it been the last.

The hidden state after every layer goes through the final norm (which only pre-norm models have) and
the output projection, as the last layer's does (nostalgebraist 2020). Lower layers were never
trained to be read so: their words are a hint, not a belief.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch

from attendo.inspection.forced import force, match_model

if TYPE_CHECKING:
    from torch import Tensor, nn

    from attendo.data.tokenizer import Tokenizer
    from attendo.inspection.forced import Forced
    from attendo.inspection.record import Record
    from attendo.model.transformer import Transformer
    from attendo.translator import Translator

NUM_SHOWN = 5
DIGITS = 6


@torch.inference_mode()
def look_through(translator: Translator, record: Record) -> dict[str, Any]:
    """Read every decoder layer at every step; give the record's section `logit_lens`."""
    model = match_model(translator, record, wanted="the logit lens")
    forced = force(translator, record)
    with translator.engine.evaluating():
        states = _watch_layers(model, forced)
        logits = (model.output(model.decoder.final_norm(state)) for state in states)  # (T, V)
        probabilities = [layer.float().softmax(-1) for layer in logits]
    return {"layers": [_word_layer(translator.tokenizer, layer, forced) for layer in probabilities]}


def _watch_layers(model: Transformer, forced: Forced) -> list[Tensor]:
    """Give the hidden state (T, D) after every layer, lowest first."""
    states: list[Tensor] = []

    def keep(_layer: nn.Module, _given: Any, result: tuple[Tensor, ...]) -> None:
        states.append(result[0][0])  # (T, D)

    with ExitStack() as stack:
        for layer in model.decoder.layers:
            stack.callback(layer.register_forward_hook(keep).remove)
        forced(model)
    return states


def _word_layer(
    tokenizer: Tokenizer, probabilities: Tensor, forced: Forced
) -> list[dict[str, Any]]:
    """Word what one layer would have said at each step, and what it thought of what was said."""
    said = forced.said_ids[:, None]
    own = probabilities.gather(1, said)  # (T, 1)
    ranks = (probabilities > own).sum(1).tolist()
    best = probabilities.topk(min(NUM_SHOWN, probabilities.size(1)))
    return [
        {
            "top": [
                {"id": number, "piece": piece, "probability": round(probability, DIGITS)}
                for number, piece, probability in zip(
                    ids, tokenizer.tgt_pieces(ids), figures, strict=True
                )
            ],
            "rank": rank,
            "probability": round(probability, DIGITS),
        }
        for ids, figures, rank, probability in zip(
            best.indices.tolist(), best.values.tolist(), ranks, own[:, 0].tolist(), strict=True
        )
    ]
