"""Real SentencePiece tokenizers, trained on a small corpus while the lesson is shown."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, NamedTuple

import sentencepiece

from attendo.data.tokenizer_training import train_tokenizer
from attendo.lessons.blocks import Chart, Series
from attendo.lessons.prose import Prose
from attendo.synthetic.everyday import KoreanEnglishPair, split_words, synthesize_pairs
from attendo.text.tokenizer import UNK_ID, Tokenizer, TokenizerConfig

if TYPE_CHECKING:
    from attendo.text.tokenizer import Kind

prose = Prose("attendo.lessons.chapters.ch16_subwords")

NUM_PAIRS, NUM_NEW_PAIRS = 1000, 200
SMALL = 1000
"""A vocabulary with all characters and some longer pieces."""
WITH_BYTES = SMALL + 256
SIZES = (520, 600, 800, 1200, 1600, 2400, 3200)
D_MODEL = 512
SEED = 1


@cache
def corpus() -> tuple[KoreanEnglishPair, ...]:
    """Return sentence pairs of the embedded corpus; the last ones are not trained on."""
    return tuple(synthesize_pairs(NUM_PAIRS + NUM_NEW_PAIRS, seed=SEED))


@cache
def train(kind: Kind, size: int | None, *, byte_fallback: bool = False) -> Tokenizer:
    """Return a tokenizer for both languages, trained as `attendo train` does it."""
    pairs = corpus()[:NUM_PAIRS]
    config = TokenizerConfig(kind=kind, vocab_size=size, byte_fallback=byte_fallback)
    with TemporaryDirectory() as folder:
        paths = (Path(folder) / "src", Path(folder) / "tgt")
        for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return train_tokenizer(*paths, config, num_pairs=NUM_PAIRS, seed=SEED)


def pieces_of(tokenizer: Tokenizer, text: str) -> list[str]:
    """Return the pieces of a text, without the end symbol."""
    return tokenizer.src_pieces(tokenizer.encode_src([text])[0][:-1])


class Vocabulary(NamedTuple):
    """What a vocabulary of whole words has to hold."""

    num_words: int
    num_new: int
    """Words of other sentences that it lacks."""
    num_other: int
    """All words of the other sentences."""


@cache
def count_vocabulary(side: int) -> Vocabulary:
    """Return the number of words of one language, and how many words of new sentences are new."""
    sentences = [pair[side] for pair in corpus()]
    known = {word for one in sentences[:NUM_PAIRS] for word in split_words(one)}
    others = [word for one in sentences[NUM_PAIRS:] for word in split_words(one)]
    return Vocabulary(len(known), sum(word not in known for word in others), len(others))


class Candidate(NamedTuple):
    """One way to split a text, with the probability that the unigram model gives it."""

    pieces: list[str]
    log_prob: float


def rank_splits(text: str, count: int) -> list[Candidate]:
    """Return the most probable splits of a text by the unigram model."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=train("unigram", SMALL).models[0])
    splits: list[list[str]] = processor.nbest_encode_as_pieces(text, count)
    scored = [
        Candidate(split, sum(processor.get_score(processor.piece_to_id(one)) for one in split))
        for split in splits
    ]
    return sorted(scored, key=lambda one: -one.log_prob)


class Unknown(NamedTuple):
    """A text with characters that the corpus lacks, encoded and decoded."""

    pieces: list[str]
    num_unknown: int
    decoded: str


def encode_unknown(text: str, *, byte_fallback: bool) -> Unknown:
    """Return how a tokenizer with or without byte fallback writes a text."""
    tokenizer = train("bpe", WITH_BYTES if byte_fallback else SMALL, byte_fallback=byte_fallback)
    ids = tokenizer.encode_src([text])[0]
    pieces = tokenizer.src_pieces(ids[:-1])
    return Unknown(pieces, ids.count(UNK_ID), tokenizer.decode_tgt([ids])[0])


class Cost(NamedTuple):
    """What a vocabulary costs: its table, and the length of the sentences."""

    label: str
    vocab_size: int
    num_ko: float
    """Mean number of tokens of a Korean sentence."""
    num_en: float
    num_unknown: int
    """Unknown pieces in all sentences."""

    @property
    def num_parameters(self) -> int:
        """The numbers in the embedding table of a base model."""
        return self.vocab_size * D_MODEL


@cache
def measure_costs() -> tuple[Cost, ...]:
    """Return vocabulary size and length of new sentences: characters, BPE pieces, words."""
    tokenizers = {
        "char": train("char", None),
        **{f"bpe {size:,}": train("bpe", size) for size in SIZES},
        "word": train("word", None),
    }
    new = corpus()[NUM_PAIRS:]
    korean, english = [pair.ko for pair in new], [pair.en for pair in new]
    return tuple(
        Cost(
            label,
            one.src_vocab_size,
            _mean_length(one, korean),
            _mean_length(one, english),
            _count_unknown(one, [*korean, *english]),
        )
        for label, one in tokenizers.items()
    )


def _mean_length(tokenizer: Tokenizer, texts: list[str]) -> float:
    return sum(len(ids) - 1 for ids in tokenizer.encode_src(texts)) / len(texts)


def _count_unknown(tokenizer: Tokenizer, texts: list[str]) -> int:
    return sum(ids.count(UNK_ID) for ids in tokenizer.encode_src(texts))


def cost_chart() -> Chart:
    """Plot the length of a sentence over the size of a BPE vocabulary."""
    costs = [one for one in measure_costs() if one.label not in ("char", "word")]
    return Chart(
        "lines",
        prose("length-by-size"),
        [float(one.vocab_size) for one in costs],
        [
            Series(prose("korean"), [one.num_ko for one in costs]),
            Series(prose("english"), [one.num_en for one in costs]),
        ],
        x_label=prose("vocabulary-size"),
        y_label=prose("tokens-per-sentence"),
        log_x=True,
    )
