"""Trains a tokenizer on text files; the result depends on the texts and the seed only.

Memory is bounded by `max_sentences`: of a larger corpus a sample of the pairs is used.
"""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING

import sentencepiece

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.data.corpus_config import CorpusConfig
from attendo.data.dedup import hash_text
from attendo.data.readers import read_pairs
from attendo.text.normalize import normalize
from attendo.text.tokenizer import (
    SPACE_SYMBOL,
    SPECIAL_IDS,
    Tokenizer,
    escape_label,
    escape_space_symbol,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from attendo.text.tokenizer import TokenizerConfig

MIN_VOCAB_SIZE, MAX_VOCAB_SIZE = 1000, 37_000
"""Limits of a vocabulary size that is chosen from the corpus; the upper one is the paper's."""
MIN_CHARACTER_COUNT = 5
"""Rarer characters are spelled in bytes."""
ALPHABET_SIZE = 200
"""Letters, digits and punctuation of two alphabets; more characters belong to a larger script."""
TRAINING_THREADS = 4
"""Fixed, since it is stored in the model and determines the order of floating-point sums."""
MAX_SENTENCE_BYTES = 65_536


def choose_vocab_size(num_pairs: int, num_characters: int = 0) -> int:
    """Return a vocabulary size: 8,000 for 29,000 pairs (Multi30k), times 1.88 per factor of 10.

    A script with many characters (Hangul, Han) gets more: each of them is a piece of its own.

    >>> choose_vocab_size(29_000), choose_vocab_size(4_500_000), choose_vocab_size(29_000, 1_400)
    (8000, 31896, 9200)
    """
    size: float = 8000 * 1.88 ** math.log10(max(num_pairs, 1) / 29_000)
    size += max(num_characters - ALPHABET_SIZE, 0)
    return round(min(max(size, MIN_VOCAB_SIZE), MAX_VOCAB_SIZE) / 8) * 8


def train_tokenizer(
    src_path: Path, tgt_path: Path, config: TokenizerConfig, *, num_pairs: int, seed: int
) -> Tokenizer:
    """Train a tokenizer on two parallel text files.

    Args:
        src_path: The source text, one sentence per line.
        tgt_path: The target text, aligned by line.
        config: Settings of the tokenizer.
        num_pairs: Number of lines, which determines the default vocabulary size.
        seed: Seed of the sampling.

    Returns:
        The tokenizer.

    Raises:
        InputError: If the vocabulary size does not fit the texts.

    """
    return train_on_files([(src_path, tgt_path)], config, num_pairs=num_pairs, seed=seed)


def train_on_files(
    paths: Sequence[tuple[Path, Path]],
    config: TokenizerConfig,
    *,
    num_pairs: int,
    seed: int,
    symbols: Sequence[str] = (),
) -> Tokenizer:
    """Train a tokenizer on several corpora of two files each; see `train_tokenizer`.

    Each of the symbols is a piece of the source.
    """
    sampler = _SentenceSampler(
        paths, min(1.0, config.max_sentences / (2 * max(num_pairs, 1))), seed
    )
    sentencepiece.set_random_generator_seed(seed % 2**32)
    if config.shared:
        return Tokenizer(
            _train_model(sampler, (0, 1), config, num_pairs, symbols), kind=config.kind
        )
    source_tokenizer = _load_source_tokenizer(config)
    src = (
        source_tokenizer.models[0]
        if source_tokenizer
        else _train_model(sampler, (0,), config, num_pairs, symbols)
    )
    target_config = config
    if config.tgt_kind is not None:
        kind = "word" if config.tgt_kind == "label" else config.tgt_kind
        target_config = config.replace(kind=kind, vocab_size=None)
    if config.tgt_kind == "label":
        # All labels are used: the model could never output one that is left out.
        sampler = _LabelSampler(paths, 1.0, seed)
    tgt = _train_model(sampler, (1,), target_config, num_pairs)
    return Tokenizer(
        src,
        tgt,
        kind=source_tokenizer.kind if source_tokenizer else config.kind,
        tgt_kind=config.tgt_kind,
    )


def _load_source_tokenizer(config: TokenizerConfig) -> Tokenizer | None:
    """Load the tokenizer whose source side is reused, and verify its checksum."""
    if config.src_from is None:
        return None
    source_tokenizer = Tokenizer.load(config.src_from)
    if source_tokenizer.src_fingerprint != config.src_sha256:
        reason = message(
            "the source tokenizer in {src_from} has another checksum than src_sha256",
            src_from=config.src_from,
        )
        raise InputError(reason, hint="restore that model folder, or leave out src_sha256")
    return source_tokenizer


class _SentenceSampler:
    """Sentences to train on: whole pairs, sampled by a hash of their index."""

    def __init__(self, paths: Sequence[tuple[Path, Path]], share: float, seed: int) -> None:
        self._corpora = [CorpusConfig(src=src, tgt=tgt, allow_copies=True) for src, tgt in paths]
        self._hash_limit = int(share * 2**64)
        self._seed = seed

    def sentences(self, sides: tuple[int, ...]) -> Iterator[str]:
        """Read the files again and yield the sampled sentences."""
        pairs = chain.from_iterable(read_pairs(corpus) for corpus in self._corpora)
        for number, pair in enumerate(pairs):
            if hash_text(f"{self._seed} {number}") < self._hash_limit:
                yield from (escape_space_symbol(normalize(pair[side])) for side in sides)


class _LabelSampler(_SentenceSampler):
    """Labels to train on, each as one word."""

    def sentences(self, sides: tuple[int, ...]) -> Iterator[str]:
        """Read the files again and yield the escaped labels."""
        return map(escape_label, super().sentences(sides))


def _train_model(
    sampler: _SentenceSampler,
    sides: tuple[int, ...],
    config: TokenizerConfig,
    num_pairs: int,
    symbols: Sequence[str] = (),
) -> bytes:
    size = config.vocab_size
    if size is None:  # a char model has one piece per character, and then SentencePiece stops
        takes_all = config.kind == "char" or isinstance(sampler, _LabelSampler)
        size = MAX_VOCAB_SIZE if takes_all else _choose_size(sampler.sentences(sides), num_pairs)
    try:
        return _run_trainer(sampler.sentences(sides), size, config, symbols)
    except RuntimeError as error:
        suggested_size = _suggested_size(str(error))
        if suggested_size is None:
            reason = message("SentencePiece cannot train on these texts: {error}", error=error)
            raise InputError(
                reason, hint="check the texts and the settings of the tokenizer"
            ) from None
        if config.vocab_size is not None:
            reason = message(
                "vocab_size {size} does not fit this corpus and its characters", size=size
            )
            hint = message(
                "set vocab_size = {suggested_size}, or leave it out", suggested_size=suggested_size
            )
            raise InputError(reason, hint=hint) from None
    return _run_trainer(sampler.sentences(sides), suggested_size, config, symbols)


def _choose_size(sentences: Iterator[str], num_pairs: int) -> int:
    characters: Counter[str] = Counter()
    for sentence in sentences:
        characters.update(sentence)
    num_frequent = sum(count >= MIN_CHARACTER_COUNT for count in characters.values())
    return choose_vocab_size(num_pairs, num_frequent)


def _suggested_size(error: str) -> int | None:
    """Return the nearest possible size, parsed from the error of SentencePiece."""
    match = re.search(r"value <= (\d+)", error) or re.search(
        r"required_chars\. \d+ vs (\d+)", error
    )
    return int(match[1]) if match else None


def _run_trainer(
    sentences: Iterator[str], size: int, config: TokenizerConfig, symbols: Sequence[str]
) -> bytes:
    is_subword = config.kind in ("bpe", "unigram")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences,
        model_writer=model,
        model_type=config.kind,
        vocab_size=size,
        byte_fallback=is_subword and config.byte_fallback,
        split_digits=bool(is_subword and config.split_digits),
        character_coverage=config.character_coverage or (0.9999 if is_subword else 1.0),
        normalization_rule_name="identity",
        unk_surface=" ⁇" if config.kind == "word" else "⁇",
        max_sentence_length=MAX_SENTENCE_BYTES,
        num_threads=TRAINING_THREADS,
        minloglevel=2,
        user_defined_symbols=[SPACE_SYMBOL + one for one in symbols],
        **SPECIAL_IDS,
    )
    return model.getvalue()
