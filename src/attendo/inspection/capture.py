"""Make the record of one sentence: translate it, or take a given target, and explain the output.

The search only chooses the tokens; `Seq2SeqModel.explain` then returns every weight and every
probability in one teacher-forced pass over START and these tokens. So the output of a beam search
is explained as exactly as a given target, for any model of the protocol.

A language model's source is only the end symbol: its text is the target, and what precedes that is
counted as one token, the start.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from attendo.bundle import is_language_model
from attendo.core.errors import ConfigError, InputError
from attendo.core.logs import get_logger
from attendo.core.message import message
from attendo.decoding.limits import check_finite
from attendo.inspection.embeddings import (
    NUM_POSITIONS,
    describe_embeddings,
    describe_positions,
    max_positions,
)
from attendo.inspection.head_metrics import compute_head_metrics
from attendo.inspection.model_info import describe_model
from attendo.inspection.record import KINDS, Alternative, Record, Step
from attendo.inspection.token_surfaces import (
    build_side,
    last_word_boundary,
    merge_split_characters,
    target_surfaces,
)
from attendo.text.normalize import normalize
from attendo.text.sentences import split_sentences
from attendo.text.tokenizer import END_ID, START_ID
from attendo.translator.translator import MULTI_SENTENCE_THRESHOLD

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.core.protocols import AttentionKind, Explanation
    from attendo.inspection.record import TokenSide
    from attendo.text.tokenizer import Tokenizer
    from attendo.translator import Translator

    Weights = dict[AttentionKind, NDArray[np.float32] | None]

MIN_WINDOW = 8
"""Fits a space, a character of four bytes and the end symbol."""

ROW_SUM_TOLERANCE = 1e-3
"""Rounding error allowed in the sum of a row."""
NO_ATTENTION = "attention: the model has none"

log = get_logger(__name__)


class CapturedSide(NamedTuple):
    """One side; a target found by a search has its details."""

    ids: list[int]
    """Ends with the end symbol if the search finished."""
    side: TokenSide
    notes: list[str]
    search: dict[str, Any] | None = None
    beam: dict[str, Any] | None = None


def capture(
    translator: Translator,
    text: str,
    tgt: str | None = None,
    *,
    beam_size: int = 4,
    top: int = 10,
    window: int = 256,
    positions: bool = True,
    neighbors: bool = True,
    **options: Any,
) -> Record:
    """Translate a sentence and return the record of it.

    Args:
        translator: a model or an ensemble with its tokenizer.
        text: one sentence; lines are joined. For a language model it is the target.
        tgt: explain this target instead of translating.
        beam_size: hypotheses of the search; 1 is greedy.
        top: alternatives recorded at every step.
        window: maximum tokens of each side; longer text is truncated after a word, with a note.
        positions: record the positional encoding.
        neighbors: record the nearest neighbors of the tokens in the embedding table.
        **options: as for `Translator.translate`: alpha, do_sample, prefix, glossary ...

    """
    _check_arguments(top, window)
    limit = min(window, max_positions(translator.model) or window)
    if is_language_model(translator.about):
        text, tgt = _text_as_target(text, tgt)
    source = _encode_source(translator, text, limit)
    if tgt is None:
        target = _search_target(
            translator, source, {"beam_size": beam_size, "max_length": limit, **options}
        )
    else:
        target = _encode_target(translator.tokenizer, tgt, limit, options)
    explanation = _explain(translator, source.ids, target.ids)
    steps = _describe_steps(translator.tokenizer, explanation.logits[0], target.ids, top)
    weights: Weights = {kind: _stack_layers(explanation[kind]) for kind in KINDS}
    missing_notes = [NO_ATTENTION] * all(
        layer_weights is None for layer_weights in weights.values()
    )
    if is_language_model(translator.about):
        weights = _merge_source_into_start(weights)
    width = getattr(getattr(translator.model, "config", None), "attention_width", None)
    longest = max(len(source.ids), len(target.ids), NUM_POSITIONS)
    return Record(
        model=describe_model(translator, weights),
        search=target.search or _describe_given_target(steps, target.ids),
        src=source.side,
        tgt=target.side,
        weights=weights,
        steps=steps,
        beam=target.beam,
        measures={
            kind: []
            if own is None
            else compute_head_metrics(kind, _normalize_rows(own), width=width)
            for kind, own in weights.items()
        },
        positions=describe_positions(translator.model, longest) if positions else None,
        embeddings=describe_embeddings(
            translator.model, translator.tokenizer, source.ids, target.ids
        )
        if neighbors
        else None,
        notes=[*source.notes, *target.notes, *missing_notes],
    )


def _check_arguments(top: int, window: int) -> None:
    minimums = {"top": (top, 1), "window": (window, MIN_WINDOW)}
    reasons = [
        f"{name} = {value}: at least {minimum}"
        for name, (value, minimum) in minimums.items()
        if value < minimum
    ]
    if reasons:
        raise ConfigError.from_reasons("capture", reasons)


def _text_as_target(text: str, tgt: str | None) -> tuple[str, str]:
    """Return the empty source and the target of a language model."""
    if tgt is None:
        return "", _clean(text, "text")
    if text:
        reason = "a language model reads no source, and a text and a target are given"
        raise ConfigError(reason, hint="give the text alone")
    return text, tgt


def _encode_source(translator: Translator, text: str, window: int) -> CapturedSide:
    tokenizer, notes = translator.tokenizer, []
    clean = "" if is_language_model(translator.about) else _clean(text, "text")
    ids = tokenizer.encode_src([clean])[0]
    if len(ids) > window:
        notes.append(
            _warn(
                message(
                    "source: cut to a window of {window} tokens of {count}",
                    window=window,
                    count=len(ids),
                )
            )
        )
        surfaces = tokenizer.src_surfaces(clean)
        num_kept = last_word_boundary(surfaces, window - 1)
        while len(ids) > window:  # a truncated word may be tokenized into more pieces than before
            clean = "".join(surfaces[:num_kept]).rstrip()
            ids, num_kept = tokenizer.encode_src([clean])[0], num_kept - 1
    if len(ids) > translator.max_src_tokens:
        max_src_tokens = translator.max_src_tokens
        notes.append(
            _warn(
                message(
                    "source: {count} tokens, longer than any in training ({most})",
                    count=len(ids),
                    most=max_src_tokens,
                )
            )
        )
    count = len(split_sentences(clean))
    if count > 1 and translator.sentences_per_line < MULTI_SENTENCE_THRESHOLD:
        notes.append(
            _warn(
                message(
                    "source: {count} sentences at once; translate takes them one by one",
                    count=count,
                )
            )
        )
    surfaces = merge_split_characters(tokenizer.src_surfaces(clean))
    return CapturedSide(ids, build_side(clean, ids, tokenizer.src_pieces(ids), surfaces), notes)


def _encode_target(
    tokenizer: Tokenizer, tgt: str, window: int, options: dict[str, Any]
) -> CapturedSide:
    """Return a given target."""
    if options:
        reason = message(
            "search options do not apply to a given target: {names}", names=", ".join(options)
        )
        raise ConfigError(reason, hint="remove the options, or remove tgt to translate")
    clean, notes = _clean(tgt, "tgt"), []
    ids = tokenizer.encode_tgt([clean])[0]
    surfaces = target_surfaces(tokenizer, ids)
    if len(ids) > window:
        notes.append(
            _warn(
                message(
                    "target: cut to a window of {window} tokens of {count}",
                    window=window,
                    count=len(ids),
                )
            )
        )
        num_kept = last_word_boundary(surfaces, window)
        ids, surfaces = ids[:num_kept], surfaces[:num_kept]
        clean = "".join(surfaces)
    return CapturedSide(ids, build_side(clean, ids, tokenizer.tgt_pieces(ids), surfaces), notes)


def _search_target(
    translator: Translator, source: CapturedSide, options: dict[str, Any]
) -> CapturedSide:
    """Translate the source without sentence splitting."""
    unsplit = copy.copy(translator)
    unsplit.max_src_tokens = max(len(source.ids), translator.max_src_tokens)
    translation = unsplit.translate([source.side["text"]], split="never", trace=True, **options)[0]
    ids = [*translation.ids, *[END_ID] * translation.is_finished]
    if not ids or not translation.trace:
        reason = "the constraints allow no output"
        raise InputError(reason, hint="ask for fewer phrases, or forbid fewer")
    tokenizer, trace = translator.tokenizer, translation.trace[0]
    search = {
        **{key: trace[key] for key in ("method", "beam_size", "alpha")},
        "score": _round_significant(translation.score),
        "log_prob": _round_significant(translation.log_prob),
        "is_finished": translation.is_finished,
    }
    side = build_side(
        str(translation), ids, tokenizer.tgt_pieces(ids), target_surfaces(tokenizer, ids)
    )
    return CapturedSide(ids, side, translation.notes, search, trace)


@torch.inference_mode()
def _explain(translator: Translator, src_ids: list[int], target_ids: list[int]) -> Explanation:
    """Feed START and all outputs but the last: row t is the step that predicts token t."""
    engine = translator.backend
    decoder_input = engine.pad([[START_ID, *target_ids[:-1]]])
    full_mask = torch.ones_like(decoder_input, dtype=torch.bool)[
        :, None
    ]  # some models start with padding
    with engine.eval_mode():
        explanation = translator.model.explain(
            engine.pad([src_ids]), decoder_input, tgt_mask=full_mask
        )
    check_finite(bool(explanation.logits.isnan().any()))
    return explanation


def _describe_steps(
    tokenizer: Tokenizer, logits: Tensor, target_ids: list[int], top: int
) -> list[Step]:
    """Return the chosen token and the alternatives of each step, from logits (T, V)."""
    log_probs = logits.float().log_softmax(-1).cpu()
    probabilities = log_probs.exp()
    entropies = torch.special.entr(probabilities).sum(-1).tolist()
    best = probabilities.topk(min(top, probabilities.size(-1))).indices.tolist()
    steps = []
    for index, (target_id, top_ids) in enumerate(zip(target_ids, best, strict=True)):
        if target_id not in top_ids:
            top_ids.append(target_id)
        top_probabilities = probabilities[index, top_ids].tolist()
        named = zip(top_ids, tokenizer.tgt_pieces(top_ids), top_probabilities, strict=True)
        steps.append(
            Step(
                probability=_round_significant(float(probabilities[index, target_id])),
                log_prob=_round_significant(float(log_probs[index, target_id])),
                entropy=_round_significant(entropies[index]),
                top=[
                    Alternative(id=number, piece=piece, probability=_round_significant(probability))
                    for number, piece, probability in named
                ],
            )
        )
    return steps


def _stack_layers(layers: tuple[Tensor, ...]) -> NDArray[np.float32] | None:
    """Return the weights (L, H, T, S) of a batch of one."""
    if not layers:
        return None
    if len({layer.size(1) for layer in layers}) > 1:
        reason = "the layers have different numbers of heads"
        raise InputError(reason, hint="capture one model of the ensemble at a time")
    return torch.stack([layer[0] for layer in layers]).float().cpu().numpy()


def _merge_source_into_start(weights: Weights) -> Weights:
    """Merge the end symbol, the source of a language model, into the start symbol after it."""
    self_weights, cross = weights["decoder_self"], weights["cross"]
    if self_weights is not None and cross is not None:
        self_weights = self_weights.copy()
        self_weights[..., 0] += cross.sum(-1)
    return {"encoder_self": None, "decoder_self": self_weights, "cross": None}


def _normalize_rows(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Normalize rows that are a part of one softmax, so that metrics are comparable."""
    sums = weights.sum(-1, keepdims=True)
    if np.allclose(sums, 1.0, atol=ROW_SUM_TOLERANCE):
        return weights
    normalized: NDArray[np.float32] = np.divide(
        weights, sums, out=np.zeros_like(weights), where=sums > 0
    )
    return normalized


def _describe_given_target(steps: list[Step], target_ids: list[int]) -> dict[str, Any]:
    log_prob = _round_significant(sum(step["log_prob"] for step in steps))
    return {
        "method": "given",
        "beam_size": None,
        "alpha": None,
        "score": log_prob,
        "log_prob": log_prob,
        "is_finished": target_ids[-1] == END_ID,
    }


def _clean(text: object, name: str) -> str:
    if not isinstance(text, str):
        raise InputError(
            message("{name}: expected str, got {given}", name=name, given=type(text).__name__),
            hint="pass one sentence",
        )
    clean = normalize(text)
    if not clean:
        hint = "give a sentence" if name == "text" else "leave it out to translate"
        raise InputError(message("{name} is empty", name=message(name)), hint=hint)
    return clean


def _warn(note: str) -> str:
    log.warning(note)
    return note


def _round_significant(number: float) -> float:
    """Round to six significant digits."""
    return float(f"{number:.6g}")
