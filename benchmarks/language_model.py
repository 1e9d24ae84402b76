"""A neural language model compared with interpolated n-grams (Chen and Goodman, 1999).

Both predict the same tokens of the same test text, including the end of each line, so that their
perplexities are comparable; bits per character are comparable with any other model too. The n-grams
are counted on the whole training text, with modified Kneser-Ney discounts: the best n-gram model
for a text of this size.

Run: python benchmarks/language_model.py runs/captions --text train.en.gz --test val.en.gz
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.tasks.language_model.generator import TextGenerator, TextScore
from attendo.text.lines import read_lines
from attendo.text.normalize import normalize
from attendo.text.tokenizer import START_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    Gram = tuple[int, ...]

NUM_DISCOUNTS = 3
"""One each for n-grams that occur once, twice, and more often."""


class Level:
    """The n-grams of one length: counts by context, and their discounts."""

    def __init__(self, counts: Counter[Gram]) -> None:
        self.counts = counts
        self.discounts = estimate_discounts(counts)
        self.totals: dict[Gram, int] = defaultdict(int)
        self.kinds: dict[Gram, list[int]] = defaultdict(lambda: [0] * NUM_DISCOUNTS)
        for gram, count in counts.items():
            self.totals[gram[:-1]] += count
            self.kinds[gram[:-1]][min(count, NUM_DISCOUNTS) - 1] += 1

    def probability(self, gram: Gram, backoff: float) -> float:
        """Return p(last token | the others); `backoff` is the probability of the shorter n-gram."""
        context = gram[:-1]
        total = self.totals.get(context, 0)
        if not total:
            return backoff
        count = self.counts.get(gram, 0)
        discount = self.discounts[min(count, NUM_DISCOUNTS) - 1] if count else 0.0
        reserved = sum(d * n for d, n in zip(self.discounts, self.kinds[context], strict=True))
        return (count - discount + reserved * backoff) / total


class NGrams:
    """A modified Kneser-Ney model of any order over rows of ids that end with END_ID."""

    def __init__(self, rows: Iterable[Sequence[int]], *, order: int, vocab_size: int) -> None:
        self.order, self.vocab_size = order, vocab_size
        counts = [Counter(gram for row in rows for gram in extract_ngrams(row, order))]
        while len(counts) < order:
            counts.append(count_contexts(counts[-1], order - len(counts) + 1))
        self.levels = [Level(own) for own in reversed(counts)]  # shortest first

    def probability(self, context: Sequence[int], piece: int) -> float:
        """Return p(piece | context); the context of a line begins with START_ID."""
        found = 1 / self.vocab_size
        for length, level in enumerate(self.levels):
            if length > len(context):
                break
            found = level.probability((*context[len(context) - length :], piece), found)
        return found

    def log_prob(self, row: Sequence[int]) -> float:
        """Return the log-probability of a row, including its end."""
        ids = (START_ID, *row)
        return sum(
            math.log(self.probability(ids[max(0, index - self.order + 1) : index], ids[index]))
            for index in range(1, len(ids))
        )


def extract_ngrams(row: Sequence[int], order: int) -> Iterator[Gram]:
    """Yield each token with the tokens before it, fewer at the beginning of the line.

    >>> list(extract_ngrams([7, 8, 3], 2))
    [(2, 7), (7, 8), (8, 3)]
    >>> list(extract_ngrams([7, 3], 3))
    [(2, 7), (2, 7, 3)]
    """
    ids = (START_ID, *row)
    for index in range(1, len(ids)):
        yield ids[max(0, index - order + 1) : index + 1]


def count_contexts(longer: Counter[Gram], length: int) -> Counter[Gram]:
    """Count the distinct contexts of each n-gram shorter than `length` (Kneser-Ney counts).

    An n-gram that begins with START_ID has no other context and keeps its count.
    """
    shorter: Counter[Gram] = Counter()
    for gram, count in longer.items():
        if len(gram) < length:
            shorter[gram] += count
        else:
            shorter[gram[1:]] += 1
    return shorter


def estimate_discounts(counts: Counter[Gram]) -> tuple[float, ...]:
    """Estimate the three discounts from the numbers of n-grams that occur one to four times."""
    seen = Counter(min(count, NUM_DISCOUNTS + 2) for count in counts.values())
    if any(not seen[times] for times in range(1, NUM_DISCOUNTS + 2)):
        return (0.5, 0.5, 0.5)  # too little text for an estimate
    ratio = seen[1] / (seen[1] + 2 * seen[2])
    return tuple(
        times - (times + 1) * ratio * seen[times + 1] / seen[times]
        for times in range(1, NUM_DISCOUNTS + 1)
    )


def compare(
    generator: TextGenerator, train: Path, test: Path, orders: Sequence[int]
) -> dict[str, TextScore]:
    """Score the test text by the language model and by n-grams of each order."""
    texts = [text for line in read_lines(test) if (text := normalize(line))]
    found = {"language model": TextScore.join(generator.score(texts))}
    known = dict.fromkeys(text for line in read_lines(train) if (text := normalize(line)))
    rows = generator.tokenizer.encode_tgt(list(known))
    test_rows = generator.tokenizer.encode_tgt(texts)
    size = generator.tokenizer.tgt_vocab_size - 2  # without padding and start symbol
    for order in orders:
        grams = NGrams(rows, order=order, vocab_size=size)
        total = sum(map(grams.log_prob, test_rows))
        neural = found["language model"]
        found[f"{order}-grams"] = neural._replace(log_prob=total)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path, help="the folder of a language model")
    parser.add_argument("--text", type=Path, required=True, help="the training text")
    parser.add_argument("--test", type=Path, required=True, help="the test text")
    parser.add_argument("--orders", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    options = parser.parse_args()
    generator = TextGenerator.load(options.model, device="cpu")
    found = compare(generator, options.text, options.test, options.orders)
    size = found["language model"]
    sys.stdout.write(f"{size.num_tokens:,} tokens, {size.num_characters:,} characters\n\n")
    sys.stdout.write("| model | perplexity | bits per character |\n| --- | --- | --- |\n")
    for name, score in found.items():
        bits = score.bits_per_character
        sys.stdout.write(f"| {name} | {score.perplexity:.2f} | {bits:.3f} |\n")


if __name__ == "__main__":
    main()
