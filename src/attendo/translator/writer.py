"""Goes on with a text by chance: a language model, its tokenizer, and how likely it finds a text.

A language model reads an empty source, the end symbol alone, and says the text as its target. A
given beginning is forced, but for its last word: "I am a stud" is likely to be spelt in pieces in
which "student" never is, so pieces are drawn that go on with these letters, as many as it takes.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import torch

from attendo.bundle import choose_device, load_bundle, read_about
from attendo.core.errors import ConfigError, InputError
from attendo.core.seeding import derive_seed
from attendo.data.cleaning import normalise
from attendo.data.phrases import RequiredPhrase, TextView
from attendo.data.tokenizer import END_ID, PAD_ID, SPACE_MARK, START_ID, UNK_ID
from attendo.decoding.options import DecodingOptions, Demands
from attendo.decoding.rules import refuse_nan
from attendo.decoding.sampling import sharpen
from attendo.model.positional import LearnedPositions
from attendo.translator.engine import Engine, Job

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from attendo.core.protocols import Seq2SeqModel
    from attendo.data.tokenizer import Tokenizer

LANGUAGE = "language"
"""What a model folder says of its task where the model goes on with texts."""
MOST_TEXTS, MOST_TOKENS = 256, 100_000
MOST_OPEN = 8
"""Pieces of an unfinished word that may be drawn anew: scripts without spaces have long ones."""
MOST_WAYS = 16
"""Ways to spell such a word that are followed up at once."""
SILENT = (PAD_ID, UNK_ID, START_ID, END_ID)
SOURCE = [END_ID]
"""What a language model reads before it begins."""
Ids = tuple[int, ...]


def is_language_model(about: Mapping[str, Any]) -> bool:
    """Tell by what was saved with a model whether it goes on with texts, or translates them.

    >>> is_language_model({"task": "language"}), is_language_model({"src_lang": "ko"})
    (True, False)
    """
    return about.get("task") == LANGUAGE


def is_language_folder(directory: str | Path) -> bool:
    """Tell the same of a model folder, without loading the model."""
    return is_language_model(read_about(directory))


def refuse_language_model(about: Mapping[str, Any], name: str | Path) -> None:
    """Refuse to translate with what only goes on with texts."""
    if is_language_model(about):
        reason = f"{name} is a language model: it goes on with texts"
        raise InputError(reason, remedy="use attendo sample with it")


class TextScore(NamedTuple):
    """How well a language model foresees a text, its end included."""

    log_prob: float
    num_tokens: int
    num_characters: int
    """With one more for the end, as a file has a line break there."""

    @property
    def perplexity(self) -> float:
        """Give among how many pieces the model hesitates; other tokenizers do not compare."""
        return math.exp(min(-self.log_prob / self.num_tokens, 700.0))

    @property
    def bits_per_character(self) -> float:
        """Give what a character costs to write down by this model, whatever the tokenizer."""
        return -self.log_prob / self.num_characters / math.log(2)

    @classmethod
    def join(cls, scores: Sequence[TextScore]) -> TextScore:
        """Score several texts as one."""
        log_probs, tokens, characters = zip(*scores, strict=True)
        return cls(sum(log_probs), sum(tokens), sum(characters))


class Spelling(NamedTuple):
    """A way to say some letters, or the first of them."""

    ids: list[int]
    rest: bytes
    """Letters that are still to be said."""
    log_prob: float


class Writer:
    """A language model and its tokenizer.

    `Writer.load("runs/captions").write("A man", count=2)` gives two texts that begin so.
    """

    def __init__(
        self,
        model: Seq2SeqModel[Any],
        tokenizer: Tokenizer,
        *,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.model, self.tokenizer, self.about = model, tokenizer, dict(about or {})
        self.engine, self.view = Engine(model), TextView(tokenizer)

    @classmethod
    def load(cls, directory: str | Path, *, device: torch.device | str | None = None) -> Self:
        """Read the folder of a language model, or that of its run; refuse any other model."""
        bundle = load_bundle(directory, device=choose_device(device))
        if not is_language_model(bundle.about):
            raise InputError(
                f"{directory} is no language model: it was trained on pairs",
                remedy="use attendo translate with it",
            )
        return cls(bundle.model, bundle.tokenizer, about=bundle.about)

    def write(
        self,
        beginning: str = "",
        *,
        count: int = 3,
        max_tokens: int = 100,
        greedy: bool = False,
        temperature: float = 1.0,
        top_k: int = 0,
        top_p: float = 1.0,
        seed: int = 0,
    ) -> list[str]:
        """Give texts that begin with `beginning`, by default whatever the model likes.

        Args:
            beginning: is kept, but for white space; behind a last space a new word comes, else the
                last word may go on.
            count: texts, each drawn by itself.
            max_tokens: most pieces that are added to the beginning.
            greedy: take the likeliest piece at every step; that is one text.
            temperature: below 1 the likely becomes likelier.
            top_k: draw from so many of the likeliest pieces; 0 is all.
            top_p: draw from the fewest pieces that together have this probability.
            seed: the same seed gives the same texts.

        """
        _check(beginning, count, max_tokens)
        number = 1 if greedy else count
        chance: dict[str, Any] = {
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "seed": seed,
        }
        options = DecodingOptions(
            beam_size=1, sample=True, n_best=number, max_extra=max_tokens, **chance
        )
        if greedy:
            options = DecodingOptions(beam_size=1, max_extra=max_tokens)
        begun = self._begin(beginning, options, number)
        said: dict[int, list[int]] = {}
        for own in dict.fromkeys(begun):
            draws = [draw for draw, other in enumerate(begun) if other == own]
            found = self._go_on(own, options, len(draws), max_tokens)
            said |= dict(zip(draws, found, strict=True))
        return self.tokenizer.decode_tgt([said[draw] for draw in range(number)])

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """Tell how likely the model finds each text."""
        if isinstance(texts, str):
            raise InputError("texts is one text", remedy="give a list of texts")
        ids = [row[:-1] for row in self.tokenizer.encode_tgt(texts)]
        scored = self.engine.score([SOURCE] * len(ids), ids)
        return [
            TextScore(sum(row), len(row), len(normalise(text)) + 1)
            for text, row in zip(texts, scored, strict=True)
        ]

    def _go_on(
        self, begun: Ids, options: DecodingOptions, count: int, max_tokens: int
    ) -> list[list[int]]:
        longest = min(len(begun) + max_tokens, self._find_room(begun))
        changes: dict[str, Any] = {"max_extra": longest, "max_length": longest}
        if options.sample:
            changes |= {"n_best": count, "seed": derive_seed(options.seed, *begun)}
        job = Job("", SOURCE, Demands(prefix=begun))
        (found,) = self.engine.search([job], options.replace(**changes))
        return [one.ids for one in found.hypotheses]

    def _find_room(self, begun: Ids) -> int:
        """Give how many tokens the model can say in all; only learned positions have an end."""
        positions = getattr(self.model, "tgt_positions", None)
        if not isinstance(positions, LearnedPositions):
            return len(begun) + MOST_TOKENS
        room = positions.weight.size(0) - len(SOURCE)
        if len(begun) >= room:
            raise InputError(
                f"a beginning of {len(begun)} tokens, and the model has room for {room}",
                remedy="give a shorter one",
            )
        return room

    # -- the last word of a beginning

    def _begin(self, beginning: str, options: DecodingOptions, count: int) -> list[Ids]:
        """Give the ids that each text begins with: they say at least the beginning."""
        if not normalise(beginning):
            return [()] * count
        ids = RequiredPhrase(self.view, beginning).tokens
        self._find_room(ids)
        if self.tokenizer.kind == "word":  # whole words, and a new one behind each
            return [ids] * count
        kept, rest = self._open_word(ids, is_over=beginning[-1].isspace())
        with self.engine.evaluating():
            return [(*kept, *own) for own in self._mend(kept, rest, options, count)]

    def _open_word(self, ids: Ids, *, is_over: bool) -> tuple[Ids, bytes]:
        """Part the last word from a beginning: the ids before it, and its letters."""
        if is_over:
            return ids, b" "
        pieces = self.tokenizer.tgt_pieces(ids)
        begins = [place for place, piece in enumerate(pieces) if piece.startswith(SPACE_MARK)]
        cut = max([0, len(ids) - MOST_OPEN, *begins[-1:]])
        return ids[:cut], b"".join(self._spellings[number] for number in ids[cut:])

    @cached_property
    def _spellings(self) -> list[bytes]:
        """The UTF-8 of every piece."""
        numbers = range(self.tokenizer.tgt_vocab_size)
        return [self.view.read_unfinished((number,)).spelling for number in numbers]

    @torch.inference_mode()
    def _mend(
        self, kept: Ids, rest: bytes, options: DecodingOptions, count: int
    ) -> list[list[int]]:
        """Draw pieces behind `kept` that say at least the letters `rest`, once for each text.

        Each way to spell them counts by its whole probability: a piece that is likely by itself may
        lead nowhere.
        """
        ways = self._spell(kept, rest)
        log_probs = torch.tensor([[way.log_prob for way in ways]])
        if not options.sample:
            return [ways[int(log_probs.argmax())].ids]
        probs, order = sharpen(
            log_probs, temperature=options.temperature, top_k=options.top_k, top_p=options.top_p
        )
        dice = torch.Generator().manual_seed(derive_seed(options.seed, "word"))
        places = [int(torch.multinomial(probs[0], 1, generator=dice)) for _ in range(count)]
        return [ways[int(order[0, place])].ids for place in places]

    def _spell(self, kept: Ids, rest: bytes) -> list[Spelling]:
        """Give the ways to say `rest` behind `kept`; the last piece of each may say more."""
        device = self.engine.device
        state = self.model.start(self.model.encode(self.engine.pad([SOURCE])))
        for number in (START_ID, *kept):
            logits, state = self.model.step(torch.tensor([number], device=device), state)
        done: list[Spelling] = []
        begun = [Spelling([], rest, 0.0)]
        while True:
            refuse_nan(bool(logits.isnan().any()))
            longer = [
                (row, one)
                for row, log_probs in enumerate(logits.float().log_softmax(-1).tolist())
                for one in self._add_piece(begun[row], log_probs)
            ]
            done += [one for _, one in longer if not one.rest]
            further = [pair for pair in longer if pair[1].rest]
            further = sorted(further, key=lambda pair: -pair[1].log_prob)[:MOST_WAYS]
            if not further:
                return done
            begun = [one for _, one in further]
            index = torch.tensor([row for row, _ in further], device=device)
            last = torch.tensor([one.ids[-1] for one in begun], device=device)
            logits, state = self.model.step(last, self.model.reorder(state, index))

    def _add_piece(self, begun: Spelling, log_probs: list[float]) -> Iterator[Spelling]:
        """Give what a spelling becomes by each piece that goes on with its letters."""
        rest = begun.rest
        for number, letters in enumerate(self._spellings):
            fits = letters and (letters.startswith(rest) or rest.startswith(letters))
            if fits and number not in SILENT:
                total = begun.log_prob + log_probs[number]
                yield Spelling([*begun.ids, number], rest[len(letters) :], total)


def _check(beginning: object, count: int, max_tokens: int) -> None:
    if not isinstance(beginning, str):
        reason = f"beginning is a {type(beginning).__name__}, no text"
        raise InputError(reason, remedy="give one text")
    wrong = {"count": (count, MOST_TEXTS), "max_tokens": (max_tokens, MOST_TOKENS)}
    reasons = [
        f"{name} = {own}: 1 to {most}"
        for name, (own, most) in wrong.items()
        if not 1 <= own <= most
    ]
    if reasons:
        raise ConfigError.gather("write", reasons)
