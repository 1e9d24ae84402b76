"""A language model beside what it replaced: n-grams, interpolated as Chen and Goodman (1999) do.

Both foresee the same pieces of the same test text, the end of each line included, so that their
perplexities compare; bits a character compare with any other model too. The n-grams are counted on
all of the training text, every piece of it, with modified Kneser-Ney discounts: the best of their
kind for a text of this size.

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
"""For n-grams that were seen once, twice, and more often."""


class Level:
    """The n-grams of one length: counts by context, and what is taken off each."""

    def __init__(self, counts: Counter[Gram]) -> None:
        self.counts = counts
        self.discounts = find_discounts(counts)
        self.totals: dict[Gram, int] = defaultdict(int)
        self.kinds: dict[Gram, list[int]] = defaultdict(lambda: [0] * NUM_DISCOUNTS)
        for gram, count in counts.items():
            self.totals[gram[:-1]] += count
            self.kinds[gram[:-1]][min(count, NUM_DISCOUNTS) - 1] += 1

    def judge(self, gram: Gram, below: float) -> float:
        """Give the probability of the last piece behind the others; `below` is the shorter one."""
        context = gram[:-1]
        total = self.totals.get(context, 0)
        if not total:
            return below
        count = self.counts.get(gram, 0)
        taken = self.discounts[min(count, NUM_DISCOUNTS) - 1] if count else 0.0
        saved = sum(d * n for d, n in zip(self.discounts, self.kinds[context], strict=True))
        return (count - taken + saved * below) / total


class NGrams:
    """Modified Kneser-Ney of any order over rows of ids that end with the end symbol."""

    def __init__(self, rows: Iterable[Sequence[int]], *, order: int, vocab_size: int) -> None:
        self.order, self.vocab_size = order, vocab_size
        counts = [Counter(gram for row in rows for gram in cut_grams(row, order))]
        while len(counts) < order:
            counts.append(count_shorter(counts[-1], order - len(counts) + 1))
        self.levels = [Level(own) for own in reversed(counts)]  # the shortest first

    def probability(self, context: Sequence[int], piece: int) -> float:
        """Give p(piece | context); the start symbol begins the context of a line."""
        found = 1 / self.vocab_size
        for length, level in enumerate(self.levels):
            if length > len(context):
                break
            found = level.judge((*context[len(context) - length :], piece), found)
        return found

    def log_prob(self, row: Sequence[int]) -> float:
        """Give the log-probability of a row, its end included."""
        said = (START_ID, *row)
        return sum(
            math.log(self.probability(said[max(0, place - self.order + 1) : place], said[place]))
            for place in range(1, len(said))
        )


def cut_grams(row: Sequence[int], order: int) -> Iterator[Gram]:
    """Give each piece with the pieces before it, fewer at the beginning of the line.

    >>> list(cut_grams([7, 8, 3], 2))
    [(2, 7), (7, 8), (8, 3)]
    >>> list(cut_grams([7, 3], 3))
    [(2, 7), (2, 7, 3)]
    """
    said = (START_ID, *row)
    for place in range(1, len(said)):
        yield said[max(0, place - order + 1) : place + 1]


def count_shorter(longer: Counter[Gram], length: int) -> Counter[Gram]:
    """Count in how many contexts each n-gram below `length` stands: what Kneser and Ney count.

    What begins with the start symbol has no other context, and keeps its count.
    """
    shorter: Counter[Gram] = Counter()
    for gram, count in longer.items():
        if len(gram) < length:
            shorter[gram] += count
        else:
            shorter[gram[1:]] += 1
    return shorter


def find_discounts(counts: Counter[Gram]) -> tuple[float, ...]:
    """Estimate the three discounts from how many n-grams were seen one to four times."""
    seen = Counter(min(count, NUM_DISCOUNTS + 2) for count in counts.values())
    if any(not seen[times] for times in range(1, NUM_DISCOUNTS + 2)):
        return (0.5, 0.5, 0.5)  # too little text to tell
    share = seen[1] / (seen[1] + 2 * seen[2])
    return tuple(
        times - (times + 1) * share * seen[times + 1] / seen[times]
        for times in range(1, NUM_DISCOUNTS + 1)
    )


def compare(
    writer: TextGenerator, train: Path, test: Path, orders: Sequence[int]
) -> dict[str, TextScore]:
    """Score the test text by the language model and by n-grams of each order."""
    texts = [text for line in read_lines(test) if (text := normalize(line))]
    found = {"language model": TextScore.join(writer.score(texts))}
    known = dict.fromkeys(text for line in read_lines(train) if (text := normalize(line)))
    rows = writer.tokenizer.encode_tgt(list(known))
    wanted = writer.tokenizer.encode_tgt(texts)
    size = writer.tokenizer.tgt_vocab_size - 2  # neither padding nor the start symbol is said
    for order in orders:
        grams = NGrams(rows, order=order, vocab_size=size)
        total = sum(map(grams.log_prob, wanted))
        neural = found["language model"]
        found[f"{order}-grams"] = neural._replace(log_prob=total)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path, help="the folder of a language model")
    parser.add_argument("--text", type=Path, required=True, help="what it was trained on")
    parser.add_argument("--test", type=Path, required=True, help="what both shall foresee")
    parser.add_argument("--orders", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    wanted = parser.parse_args()
    writer = TextGenerator.load(wanted.model, device="cpu")
    found = compare(writer, wanted.text, wanted.test, wanted.orders)
    size = found["language model"]
    sys.stdout.write(f"{size.num_tokens:,} pieces, {size.num_characters:,} characters\n\n")
    sys.stdout.write("| model | perplexity | bits a character |\n| --- | --- | --- |\n")
    for name, score in found.items():
        bits = score.bits_per_character
        sys.stdout.write(f"| {name} | {score.perplexity:.2f} | {bits:.3f} |\n")


if __name__ == "__main__":
    main()
