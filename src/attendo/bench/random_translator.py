"""A model with random weights that reads text, and a file for it."""

from __future__ import annotations

from itertools import cycle, islice
from typing import TYPE_CHECKING

from attendo.bundle import save_bundle
from attendo.data.tokenizer_training import train_tokenizer
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.foreign_tokenizer import ForeignSymbols, ForeignTokenizer, ForeignVocabulary
from attendo.text.tokenizer import TokenizerConfig

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.bench.config import BenchConfig

NUM_PAIRS, NUM_PIECES = 2000, 800
"""Of the tokenizer: the rest of the vocabulary are pieces that no text has."""


def write_random_model(config: BenchConfig, folder: Path) -> None:
    """Write a model folder with random weights and a vocabulary of the size of the config."""
    pairs = synthesize_pairs(NUM_PAIRS, seed=config.seed)
    sides = folder.with_suffix(".ko"), folder.with_suffix(".en")
    for path, side in zip(sides, ("ko", "en"), strict=True):
        path.write_text("".join(f"{getattr(one, side)}\n" for one in pairs), encoding="utf-8")
    settings = TokenizerConfig(vocab_size=min(NUM_PIECES, config.actual_vocab_size))
    own = train_tokenizer(*sides, settings, num_pairs=NUM_PAIRS, seed=config.seed)
    pieces = own.src_pieces(range(own.src_vocab_size))
    pieces += [f"w{number}" for number in range(len(pieces), config.actual_vocab_size)]
    tokenizer = ForeignTokenizer(
        own.models, [ForeignVocabulary(pieces, ForeignSymbols(0, 1, 2, 3))]
    )
    save_bundle(folder, config.build_model().eval(), tokenizer)


def write_random_file(path: Path, num_lines: int, *, seed: int = 1) -> None:
    """Write Korean sentences, one per line."""
    sentences = [pair.ko for pair in synthesize_pairs(min(num_lines, NUM_PAIRS), seed=seed)]
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(f"{one}\n" for one in islice(cycle(sentences), num_lines))
