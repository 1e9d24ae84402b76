"""Text generation and scoring with a language model.

A language model reads an empty source, the end symbol alone, and writes the text as its target. The
prompt is a forced prefix, except for its last word: the pieces of "I am a stud" are usually not a
prefix of the pieces of "I am a student", so the last word is sampled again from all spellings that
begin with its letters.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

from attendo.bundle import is_language_model, load_bundle
from attendo.core.device import resolve_device
from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.core.seeding import derive_seed
from attendo.decoding.limits import check_finite
from attendo.decoding.options import Constraints, DecodingOptions
from attendo.decoding.sampling import apply_temperature_top_k_top_p
from attendo.model.positional_encoding import LearnedPositions
from attendo.text.normalize import normalize
from attendo.text.phrase_constraints import IncrementalDetokenizer, RequiredPhrase
from attendo.text.tokenizer import END_ID, PAD_ID, SPACE_SYMBOL, START_ID, UNK_ID
from attendo.translator.backends.base import TranslationItem
from attendo.translator.backends.pytorch import PyTorchBackend

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from attendo.core.protocols import Seq2SeqModel
    from attendo.text.tokenizer import Tokenizer

MAX_TEXTS, MAX_TOKENS = 256, 100_000
MAX_RESAMPLED_PIECES = 8
"""Most pieces of the last word that are sampled again: scripts without spaces have long words."""
MAX_SPELLINGS = 16
"""Most partial spellings of the last word that are extended at a time."""
SPECIAL_IDS = (PAD_ID, UNK_ID, START_ID, END_ID)
EMPTY_SOURCE = [END_ID]
"""The source of every text."""
Ids = tuple[int, ...]


class TextScore(NamedTuple):
    """The log-probability of a text, its end symbol included."""

    log_prob: float
    num_tokens: int
    num_characters: int
    """Characters of the text, plus one for the line break at its end."""

    @property
    def perplexity(self) -> float:
        """Perplexity per token, which depends on the tokenizer."""
        return math.exp(min(-self.log_prob / self.num_tokens, 700.0))

    @property
    def bits_per_character(self) -> float:
        """Bits per character, which do not depend on the tokenizer."""
        return -self.log_prob / self.num_characters / math.log(2)

    @classmethod
    def join(cls, scores: Sequence[TextScore]) -> TextScore:
        """Return the score of several texts together."""
        log_probs, tokens, characters = zip(*scores, strict=True)
        return cls(sum(log_probs), sum(tokens), sum(characters))


class PrefixSpelling(NamedTuple):
    """A sequence of tokens that spells some bytes, or the first of them."""

    ids: list[int]
    rest: bytes
    """Bytes that are still to be spelled."""
    log_prob: float


class TextGenerator:
    """A language model and its tokenizer.

    `TextGenerator.load("runs/captions").generate("A man", count=2)` returns two texts.
    """

    def __init__(
        self,
        model: Seq2SeqModel[Any],
        tokenizer: Tokenizer,
        *,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.tokenizer, self.about = model, tokenizer, dict(about or {})
        self.backend, self.detokenizer = PyTorchBackend(model), IncrementalDetokenizer(tokenizer)

    @classmethod
    def load(cls, directory: str | Path, *, device: torch.device | str | None = None) -> Self:
        """Load the model folder or the run folder of a language model."""
        bundle = load_bundle(directory, device=resolve_device(device))
        if not is_language_model(bundle.about):
            raise InputError(
                message("{path} is not a language model: it was trained on pairs", path=directory),
                hint="use attendo translate",
            )
        return cls(bundle.model, bundle.tokenizer, about=bundle.about)

    def generate(
        self,
        prompt: str = "",
        *,
        count: int = 3,
        max_tokens: int = 100,
        greedy: bool = False,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
    ) -> list[str]:
        """Return texts that begin with a prompt.

        Args:
            prompt: the beginning of the texts, up to white space. After a trailing space a new word
                starts; otherwise the last word may be continued.
            count: number of texts, sampled independently.
            max_tokens: most tokens to generate after the prompt.
            greedy: take the most probable token at every step, for one text.
            temperature: values below 1 favor probable tokens.
            top_k: sample from this many of the most probable tokens; 0 means all.
            top_p: sample from the fewest tokens that together have this probability.
            seed: the same seed returns the same texts.

        """
        _check_arguments(prompt, count, max_tokens)
        number = 1 if greedy else count
        sampling: dict[str, Any] = {
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "seed": seed,
        }
        options = DecodingOptions(
            beam_size=1, do_sample=True, n_best=number, max_extra_tokens=max_tokens, **sampling
        )
        if greedy:
            options = DecodingOptions(beam_size=1, max_extra_tokens=max_tokens)
        prefixes = self._sample_prefixes(prompt, options, number)
        output_ids: dict[int, list[int]] = {}
        for prefix in dict.fromkeys(prefixes):
            samples = [sample for sample, other in enumerate(prefixes) if other == prefix]
            continuations = self._continue(prefix, options, len(samples), max_tokens)
            output_ids |= dict(zip(samples, continuations, strict=True))
        return self.tokenizer.decode_tgt([output_ids[sample] for sample in range(number)])

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """Return the log-probability of each text."""
        if isinstance(texts, str):
            raise InputError("texts is a str", hint="give a list of texts")
        ids = [row[:-1] for row in self.tokenizer.encode_tgt(texts)]
        scored = self.backend.score([EMPTY_SOURCE] * len(ids), ids)
        return [
            TextScore(sum(row), len(row), len(normalize(text)) + 1)
            for text, row in zip(texts, scored, strict=True)
        ]

    def _continue(
        self, prefix: Ids, options: DecodingOptions, count: int, max_tokens: int
    ) -> list[list[int]]:
        max_length = min(len(prefix) + max_tokens, self._max_length(prefix))
        changes: dict[str, Any] = {"max_extra_tokens": max_length, "max_length": max_length}
        if options.do_sample:
            changes |= {"n_best": count, "seed": derive_seed(options.seed, *prefix)}
        item = TranslationItem("", EMPTY_SOURCE, Constraints(prefix=prefix))
        (result,) = self.backend.search([item], options.replace(**changes))
        return [one.ids for one in result.hypotheses]

    def _max_length(self, prefix: Ids) -> int:
        """Return the longest text in tokens; only learned positions limit it."""
        positions = getattr(self.model, "tgt_positions", None)
        if not isinstance(positions, LearnedPositions):
            return len(prefix) + MAX_TOKENS
        max_length = positions.weight.size(0) - len(EMPTY_SOURCE)
        if len(prefix) >= max_length:
            raise InputError(
                message(
                    "the prompt has {count} tokens, and the model can write {max_length}",
                    count=len(prefix),
                    max_length=max_length,
                ),
                hint="give a shorter prompt",
            )
        return max_length

    # -- the last word of a prompt

    def _sample_prefixes(self, prompt: str, options: DecodingOptions, count: int) -> list[Ids]:
        """Return the ids that each text begins with; they spell at least the prompt."""
        if not normalize(prompt):
            return [()] * count
        ids = RequiredPhrase(self.detokenizer, prompt).tokens
        self._max_length(ids)
        if self.tokenizer.kind == "word":  # tokens are whole words
            return [ids] * count
        prefix_ids, rest = self._split_last_word(ids, is_complete=prompt[-1].isspace())
        with self.backend.eval_mode():
            return [
                (*prefix_ids, *spelling)
                for spelling in self._sample_spellings(prefix_ids, rest, options, count)
            ]

    def _split_last_word(self, ids: Ids, *, is_complete: bool) -> tuple[Ids, bytes]:
        """Return the ids before the last word of a prompt, and the bytes of that word."""
        if is_complete:
            return ids, b" "
        pieces = self.tokenizer.tgt_pieces(ids)
        word_starts = [
            index for index, piece in enumerate(pieces) if piece.startswith(SPACE_SYMBOL)
        ]
        split = max([0, len(ids) - MAX_RESAMPLED_PIECES, *word_starts[-1:]])
        return ids[:split], b"".join(self._piece_bytes[number] for number in ids[split:])

    @cached_property
    def _piece_bytes(self) -> list[bytes]:
        """The UTF-8 bytes of every piece."""
        numbers = range(self.tokenizer.tgt_vocab_size)
        return [self.detokenizer.decode_partial((number,)).utf8 for number in numbers]

    @torch.inference_mode()
    def _sample_spellings(
        self, prefix_ids: Ids, rest: bytes, options: DecodingOptions, count: int
    ) -> list[list[int]]:
        """Sample tokens after `prefix_ids` that spell at least the bytes `rest`, once per text.

        Spellings are sampled by their whole probability: a piece that is probable by itself may be
        the start of an improbable spelling.
        """
        spellings = self._enumerate_spellings(prefix_ids, rest)
        log_probs = torch.tensor([[spelling.log_prob for spelling in spellings]])
        if not options.do_sample:
            return [spellings[int(log_probs.argmax())].ids]
        probs, order = apply_temperature_top_k_top_p(
            log_probs, temperature=options.temperature, top_k=options.top_k, top_p=options.top_p
        )
        generator = torch.Generator().manual_seed(derive_seed(options.seed, "word"))
        indices = [int(torch.multinomial(probs[0], 1, generator=generator)) for _ in range(count)]
        return [spellings[int(order[0, index])].ids for index in indices]

    def _enumerate_spellings(self, prefix_ids: Ids, rest: bytes) -> list[PrefixSpelling]:
        """Return the spellings of `rest` after `prefix_ids`; the last piece may go beyond it."""
        device = self.backend.device
        state = self.model.start(self.model.encode(self.backend.pad([EMPTY_SOURCE])))
        for number in (START_ID, *prefix_ids):
            logits, state = self.model.step(torch.tensor([number], device=device), state)
        complete: list[PrefixSpelling] = []
        partial = [PrefixSpelling([], rest, 0.0)]
        while True:
            check_finite(bool(logits.isnan().any()))
            longer = [
                (row, one)
                for row, log_probs in enumerate(logits.float().log_softmax(-1).tolist())
                for one in self._extend_spelling(partial[row], log_probs)
            ]
            complete += [one for _, one in longer if not one.rest]
            further = [pair for pair in longer if pair[1].rest]
            further = sorted(further, key=lambda pair: -pair[1].log_prob)[:MAX_SPELLINGS]
            if not further:
                return complete
            partial = [one for _, one in further]
            index = torch.tensor([row for row, _ in further], device=device)
            last = torch.tensor([one.ids[-1] for one in partial], device=device)
            logits, state = self.model.step(last, self.model.reorder(state, index))

    def _extend_spelling(
        self, spelling: PrefixSpelling, log_probs: list[float]
    ) -> Iterator[PrefixSpelling]:
        """Yield a spelling extended by each piece that continues its bytes."""
        rest = spelling.rest
        for number, letters in enumerate(self._piece_bytes):
            fits = letters and (letters.startswith(rest) or rest.startswith(letters))
            if fits and number not in SPECIAL_IDS:
                total = spelling.log_prob + log_probs[number]
                yield PrefixSpelling([*spelling.ids, number], rest[len(letters) :], total)


def _check_arguments(prompt: object, count: int, max_tokens: int) -> None:
    if not isinstance(prompt, str):
        reason = message("expected str as prompt, got {name}", name=type(prompt).__name__)
        raise InputError(reason, hint="give one text")
    limits = {"count": (count, MAX_TEXTS), "max_tokens": (max_tokens, MAX_TOKENS)}
    reasons = [
        f"{name} = {value}: 1 to {maximum}"
        for name, (value, maximum) in limits.items()
        if not 1 <= value <= maximum
    ]
    if reasons:
        raise ConfigError.from_reasons("generate", reasons)
