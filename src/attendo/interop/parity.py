"""Parity test: the same sentences through our model and another library's copy of it.

Our model translates; then the other library computes the logits (or, without them, the
log-probabilities) of exactly these translations, and translates by itself.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

import torch

from attendo.core.errors import InputError
from attendo.decoding.options import DecodingOptions
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID
from attendo.translator.backends.base import TranslationItem
from attendo.translator.backends.pytorch import PyTorchBackend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from attendo.bundle import Bundle
    from attendo.decoding.options import LengthNorm

NUM_SENTENCES, MAX_SAMPLED_TOKENS = 32, 16
BEAMS = (1, 4)
NUM_EXAMPLES = 3
SAMPLE_LANGUAGES = ("ko", "en")
TOLERANCE = 1e-3
"""The effect of another order of summation in float32; a wrong weight causes far more."""


class ReferenceModel(Protocol):
    """A model run by another library, with our ids; sources end with the end symbol."""

    def logits(self, src: list[list[int]], tgt: list[list[int]]) -> list[Tensor] | None:
        """Return the logits (T, V) of each target, which ends with the end symbol; None without."""
        ...

    def translate(self, src: list[list[int]], beam_size: int) -> list[list[int]]:
        """Return the best ids of each source, with the end symbol if it has finished."""
        ...


class LogProbModel(Protocol):
    """A model that returns the log-probabilities of given targets instead of logits."""

    def log_probs(self, src: list[list[int]], tgt: list[list[int]]) -> list[list[float]]:
        """Return the log-probability of each id of each target."""
        ...


@dataclass(frozen=True)
class Parity:
    """The result of a comparison."""

    num_sentences: int
    measure: str
    """What was compared: logits or log-probabilities."""
    largest_difference: float
    same_text: dict[int, int]
    """The number of equal translations by beam size."""
    differing: list[dict[str, str]] = field(default_factory=list)
    """The first different translation with the largest beam: source, ours and theirs."""

    @property
    def is_faithful(self) -> bool:
        """Return whether the values are equal except for float32 rounding."""
        return self.largest_difference <= TOLERANCE

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "num_sentences": self.num_sentences,
            "measure": self.measure,
            "largest_difference": self.largest_difference,
            "is_faithful": self.is_faithful,
            "same_text": {str(beam): count for beam, count in self.same_text.items()},
            "differing": self.differing,
        }


def compare(
    bundle: Bundle,
    reference: ReferenceModel,
    sentences: Sequence[str] | None = None,
    *,
    length_norm: LengthNorm = "paper",
) -> Parity:
    """Run sentences through our model and through another library's copy of it.

    Without sentences some are generated. `length_norm` is the ranking of the other library.
    """
    src = _encode(bundle, sentences) if sentences is not None else sample_sources(bundle)
    ours = {beam: _translate(bundle, src, beam, length_norm) for beam in BEAMS}
    theirs = {beam: reference.translate(src, beam) for beam in BEAMS}
    measure, largest = _compare_scores(bundle, reference, src, ours[BEAMS[0]])
    widest = BEAMS[-1]
    pairs = zip(src, ours[widest], theirs[widest], strict=True)
    return Parity(
        len(src),
        measure,
        largest,
        {
            beam: sum(a == b for a, b in zip(ours[beam], theirs[beam], strict=True))
            for beam in BEAMS
        },
        [_describe_difference(bundle, *outputs) for outputs in pairs if outputs[1] != outputs[2]][
            :NUM_EXAMPLES
        ],
    )


def sample_sources(bundle: Bundle, count: int = NUM_SENTENCES) -> list[list[int]]:
    """Return sources: from the built-in corpus for Korean and English, else random pieces."""
    lang = str(bundle.about.get("src_lang") or "").split("-")[0]
    if lang in SAMPLE_LANGUAGES:
        return _encode(
            bundle, [getattr(pair, lang) for pair in synthesize_pairs(count, seed=count)]
        )
    rng = random.Random(count)  # noqa: S311 - not a secret
    max_tokens = (
        min(int(bundle.about.get("max_src_tokens") or MAX_SAMPLED_TOKENS), MAX_SAMPLED_TOKENS + 1)
        - 1
    )
    size = bundle.tokenizer.src_vocab_size
    lengths = [rng.randint(min(2, max_tokens), max_tokens) for _ in range(count)]
    return [[*(rng.randrange(END_ID + 1, size) for _ in range(n)), END_ID] for n in lengths]


def _encode(bundle: Bundle, sentences: Sequence[str]) -> list[list[int]]:
    src = [row for row in bundle.tokenizer.encode_src(sentences) if len(row) > 1]
    if not src:
        raise InputError("no sentences to compare with", hint="give a file with some lines")
    return src


def _translate(
    bundle: Bundle, src: list[list[int]], beam_size: int, length_norm: LengthNorm
) -> list[list[int]]:
    options = DecodingOptions(beam_size=beam_size, length_norm=length_norm)
    results = PyTorchBackend(bundle.model).search(
        [TranslationItem("", ids) for ids in src], options
    )
    best = [one.hypotheses[0] for one in results]
    return [[*one.ids, END_ID] if one.is_finished else one.ids for one in best]


def _compare_scores(
    bundle: Bundle, reference: ReferenceModel, src: list[list[int]], tgt: list[list[int]]
) -> tuple[str, float]:
    """Return the largest difference over every token of the given targets."""
    finished = [row if row[-1:] == [END_ID] else [*row, END_ID] for row in tgt]
    logits = reference.logits(src, finished)
    if logits is not None:
        ours = [_teacher_forced_logits(bundle, *pair) for pair in zip(src, finished, strict=True)]
        pairs = zip(ours, logits, strict=True)
        return "logits", max(_max_difference(one, other) for one, other in pairs)
    scorer: LogProbModel = reference  # type: ignore[assignment] # it returns no logits
    scored = PyTorchBackend(bundle.model).score(src, [row[:-1] for row in finished])
    pairs_of_rows = zip(scored, scorer.log_probs(src, finished), strict=True)
    return "log-probabilities", max(
        abs(a - b) for one, other in pairs_of_rows for a, b in zip(one, other, strict=True)
    )


def _max_difference(ours: Tensor, theirs: Tensor) -> float:
    """Return the largest difference of two (T, V), ignoring the padding and start symbols."""
    compared_ids = [number for number in range(ours.size(1)) if number not in (PAD_ID, START_ID)]
    return float((ours - theirs)[:, compared_ids].abs().max())


@torch.inference_mode()
def _teacher_forced_logits(bundle: Bundle, src: list[int], tgt: list[int]) -> Tensor:
    """Return our teacher-forced logits (T, V)."""
    decoder_input = torch.tensor([[START_ID, *tgt[:-1]]])
    full_mask = torch.ones(1, 1, len(tgt), dtype=torch.bool)
    logits: Tensor = bundle.model(torch.tensor([src]), decoder_input, tgt_mask=full_mask)[0]
    return logits


def _describe_difference(
    bundle: Bundle, src: list[int], ours: list[int], theirs: list[int]
) -> dict[str, str]:
    source = "".join(bundle.tokenizer.src_pieces(src[:-1])).replace("▁", " ").strip()
    our_text, their_text = bundle.tokenizer.decode_tgt([ours, theirs])
    return {"source": source, "ours": our_text, "theirs": their_text}
