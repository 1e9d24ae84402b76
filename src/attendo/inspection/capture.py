"""Make the record of one sentence: translate it, or take a given target, and explain what was said.

The search, by whatever method, only chooses the tokens; `Seq2SeqModel.explain` then gives every
weight and every probability in one teacher-forced pass over START and these tokens. So what a beam
search has found is explained as exactly as what was given, by any model that keeps the contract.

A language model reads nothing but the end symbol: the text that it is given is its target, and what
that looks at before its own words is one thing, the start.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from attendo.core.errors import ConfigError, InputError
from attendo.core.logs import get_logger
from attendo.data.cleaning import normalise
from attendo.data.sentences import find_sentences
from attendo.data.tokenizer import END_ID, START_ID
from attendo.decoding.rules import refuse_nan
from attendo.inspection.facts import describe_model
from attendo.inspection.measures import measure
from attendo.inspection.neighbours import (
    NUM_POSITIONS,
    count_places,
    describe_embeddings,
    describe_positions,
)
from attendo.inspection.record import KINDS, Alternative, Record, Step
from attendo.inspection.sides import find_cut, make_side, mend, show_tgt
from attendo.translator.translate import SEVERAL
from attendo.translator.writer import is_language_model

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

    from attendo.core.protocols import AttentionKind, Explanation
    from attendo.data.tokenizer import Tokenizer
    from attendo.inspection.record import Side
    from attendo.translator import Translator

    Weights = dict[AttentionKind, NDArray[np.float32] | None]

SMALLEST_WINDOW = 8
"""A space, a character of four bytes and the end symbol fit."""

WHOLE = 1e-3
"""How far from one the sum of a row may be by rounding."""
NO_ATTENTION = "attention: the model has none"

log = get_logger(__name__)


class Spoken(NamedTuple):
    """One side; a target that was searched tells how."""

    ids: list[int]
    """The end symbol last, if it ended."""
    side: Side
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
    neighbours: bool = True,
    **options: Any,
) -> Record:
    """Translate a sentence and give the record of all that happened.

    Args:
        translator: a model, or several as one, and its tokenizer.
        text: one sentence; lines are joined. To a language model it is what is said.
        tgt: explain this target instead of translating.
        beam_size: hypotheses of the search; 1 is greedy.
        top: alternatives told at every step.
        window: tokens of each side at most; what is longer is cut after a word, with a note.
        positions: tell the vectors of the positions.
        neighbours: tell the nearest neighbours of the tokens by their embeddings.
        options: as for `Translator.translate`: alpha, sample, prefix, glossary ...

    """
    _check(top, window)
    limit = min(window, count_places(translator.model) or window)
    if is_language_model(translator.about):
        text, tgt = _say_all(text, tgt)
    source = _read_source(translator, text, limit)
    if tgt is None:
        found = _search(
            translator, source, {"beam_size": beam_size, "max_length": limit, **options}
        )
    else:
        found = _take(translator.tokenizer, tgt, limit, options)
    explanation = _explain(translator, source.ids, found.ids)
    steps = _tell_steps(translator.tokenizer, explanation.logits[0], found.ids, top)
    weights: Weights = {kind: _stack(explanation[kind]) for kind in KINDS}
    lacks = [NO_ATTENTION] * all(own is None for own in weights.values())
    if is_language_model(translator.about):
        weights = _join_beginning(weights)
    width = getattr(getattr(translator.model, "config", None), "attention_width", None)
    longest = max(len(source.ids), len(found.ids), NUM_POSITIONS)
    return Record(
        model=describe_model(translator, weights),
        search=found.search or _describe_given(steps, found.ids),
        src=source.side,
        tgt=found.side,
        weights=weights,
        steps=steps,
        beam=found.beam,
        measures={
            kind: [] if own is None else measure(kind, _make_whole(own), width=width)
            for kind, own in weights.items()
        },
        positions=describe_positions(translator.model, longest) if positions else None,
        embeddings=describe_embeddings(
            translator.model, translator.tokenizer, source.ids, found.ids
        )
        if neighbours
        else None,
        notes=[*source.notes, *found.notes, *lacks],
    )


def _check(top: int, window: int) -> None:
    wrong = {"top": (top, 1), "window": (window, SMALLEST_WINDOW)}
    reasons = [
        f"{name} = {own}: at least {least}" for name, (own, least) in wrong.items() if own < least
    ]
    if reasons:
        raise ConfigError.gather("capture", reasons)


def _say_all(text: str, tgt: str | None) -> tuple[str, str]:
    """Give the source and the target of a language model: the first is empty."""
    if tgt is None:
        return "", _clean(text, "text")
    if text:
        reason = "a language model reads no source, and a text and a target are given"
        raise ConfigError(reason, remedy="give the text alone")
    return text, tgt


def _read_source(translator: Translator, text: str, window: int) -> Spoken:
    tokenizer, notes = translator.tokenizer, []
    clean = "" if is_language_model(translator.about) else _clean(text, "text")
    ids = tokenizer.encode_src([clean])[0]
    if len(ids) > window:
        notes.append(_warn(f"source: cut to a window of {window} tokens of {len(ids)}"))
        surfaces = tokenizer.src_surfaces(clean)
        kept = find_cut(surfaces, window - 1)
        while len(ids) > window:  # a word that is cut may be spelt in more pieces than before
            clean = "".join(surfaces[:kept]).rstrip()
            ids, kept = tokenizer.encode_src([clean])[0], kept - 1
    if len(ids) > translator.max_src_tokens:
        most = translator.max_src_tokens
        notes.append(_warn(f"source: {len(ids)} tokens, longer than any in training ({most})"))
    count = len(find_sentences(clean))
    if count > 1 and translator.num_sentences < SEVERAL:
        notes.append(_warn(f"source: {count} sentences at once; translate takes them one by one"))
    surfaces = mend(tokenizer.src_surfaces(clean))
    return Spoken(ids, make_side(clean, ids, tokenizer.src_pieces(ids), surfaces), notes)


def _take(tokenizer: Tokenizer, tgt: str, window: int, options: dict[str, Any]) -> Spoken:
    """Take a target that was given."""
    if options:
        reason = f"a target is given, and options of a search: {', '.join(options)}"
        raise ConfigError(reason, remedy="leave the options out, or leave tgt out to translate")
    clean, notes = _clean(tgt, "tgt"), []
    ids = tokenizer.encode_tgt([clean])[0]
    surfaces = show_tgt(tokenizer, ids)
    if len(ids) > window:
        notes.append(_warn(f"target: cut to a window of {window} tokens of {len(ids)}"))
        kept = find_cut(surfaces, window)
        ids, surfaces = ids[:kept], surfaces[:kept]
        clean = "".join(surfaces)
    return Spoken(ids, make_side(clean, ids, tokenizer.tgt_pieces(ids), surfaces), notes)


def _search(translator: Translator, source: Spoken, options: dict[str, Any]) -> Spoken:
    """Translate the source in one piece, however short the sentences of the training were."""
    whole = copy.copy(translator)
    whole.max_src_tokens = max(len(source.ids), translator.max_src_tokens)
    made = whole.translate([source.side["text"]], split="never", trace=True, **options)[0]
    ids = [*made.ids, *[END_ID] * made.is_finished]
    if not ids or not made.trace:
        reason = "the search found nothing that may be said"
        raise InputError(reason, remedy="ask for fewer phrases, or forbid fewer")
    tokenizer, trace = translator.tokenizer, made.trace[0]
    search = {
        **{key: trace[key] for key in ("method", "beam_size", "alpha")},
        "score": _shorten(made.score),
        "log_prob": _shorten(made.log_prob),
        "is_finished": made.is_finished,
    }
    side = make_side(str(made), ids, tokenizer.tgt_pieces(ids), show_tgt(tokenizer, ids))
    return Spoken(ids, side, made.notes, search, trace)


@torch.inference_mode()
def _explain(translator: Translator, src_ids: list[int], said_ids: list[int]) -> Explanation:
    """Feed START and all that was said but the last: row t is the step that says token t."""
    engine = translator.engine
    fed = engine.pad([[START_ID, *said_ids[:-1]]])
    everything = torch.ones_like(fed, dtype=torch.bool)[:, None]  # some models start with padding
    with engine.evaluating():
        explanation = translator.model.explain(engine.pad([src_ids]), fed, tgt_mask=everything)
    refuse_nan(bool(explanation.logits.isnan().any()))
    return explanation


def _tell_steps(tokenizer: Tokenizer, logits: Tensor, said_ids: list[int], top: int) -> list[Step]:
    """Tell of each step (T, V) the token that was said and what could have been."""
    log_probs = logits.float().log_softmax(-1).cpu()
    probabilities = log_probs.exp()
    entropies = torch.special.entr(probabilities).sum(-1).tolist()
    best = probabilities.topk(min(top, probabilities.size(-1))).indices.tolist()
    steps = []
    for place, (said, shown) in enumerate(zip(said_ids, best, strict=True)):
        if said not in shown:
            shown.append(said)
        own = probabilities[place, shown].tolist()
        named = zip(shown, tokenizer.tgt_pieces(shown), own, strict=True)
        steps.append(
            Step(
                probability=_shorten(float(probabilities[place, said])),
                log_prob=_shorten(float(log_probs[place, said])),
                entropy=_shorten(entropies[place]),
                top=[
                    Alternative(id=number, piece=piece, probability=_shorten(probability))
                    for number, piece, probability in named
                ],
            )
        )
    return steps


def _stack(layers: tuple[Tensor, ...]) -> NDArray[np.float32] | None:
    """Give the weights (L, H, T, S) of a batch of one."""
    if not layers:
        return None
    if len({layer.size(1) for layer in layers}) > 1:
        reason = "the layers have different numbers of heads"
        raise InputError(reason, remedy="capture one model of the ensemble at a time")
    return torch.stack([layer[0] for layer in layers]).float().cpu().numpy()


def _join_beginning(weights: Weights) -> Weights:
    """Count the end symbol, all that a language model reads, to the start symbol behind it."""
    own, cross = weights["decoder_self"], weights["cross"]
    if own is not None and cross is not None:
        own = own.copy()
        own[..., 0] += cross.sum(-1)
    return {"encoder_self": None, "decoder_self": own, "cross": None}


def _make_whole(weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Let rows that are a part of one softmax sum to one, so that measures mean the same."""
    sums = weights.sum(-1, keepdims=True)
    if np.allclose(sums, 1.0, atol=WHOLE):
        return weights
    whole: NDArray[np.float32] = np.divide(
        weights, sums, out=np.zeros_like(weights), where=sums > 0
    )
    return whole


def _describe_given(steps: list[Step], said_ids: list[int]) -> dict[str, Any]:
    log_prob = _shorten(sum(step["log_prob"] for step in steps))
    return {
        "method": "given",
        "beam_size": None,
        "alpha": None,
        "score": log_prob,
        "log_prob": log_prob,
        "is_finished": said_ids[-1] == END_ID,
    }


def _clean(text: object, name: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"{name} is a {type(text).__name__}, no text", remedy="give one sentence")
    clean = normalise(text)
    if not clean:
        remedy = "give a sentence" if name == "text" else "leave it out to translate"
        raise InputError(f"{name} is empty", remedy=remedy)
    return clean


def _warn(note: str) -> str:
    log.warning(note)
    return note


def _shorten(number: float) -> float:
    """Keep six digits, however small the number."""
    return float(f"{number:.6g}")
