"""How often human translators copy numbers, URLs, addresses and emoji, and how often a model does.

Run: python -m benchmarks.copy_spans --corpus train.en train.ko [--corpus ...]
     python -m benchmarks.copy_spans --model runs/quickstart/ko-en --texts test.ko
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.text.copy_spans import find_copy_spans, missing_spans
from attendo.text.lines import read_lines
from attendo.translator import Translator

if TYPE_CHECKING:
    from attendo.text.copy_spans import CopySpan

MAX_SMALL_DIGITS = 2
INSERTED = ("12345", "https://attendo.org/a?b=1", "kim@example.com", "😀")


def describe_kind(span: CopySpan) -> str:
    """Return the kind of a span; small numbers are a kind of their own."""
    num_digits = sum(letter.isdigit() for letter in span.text)
    is_small = span.kind == "number" and num_digits <= MAX_SMALL_DIGITS
    return "small number" if is_small else span.kind


def measure_corpus(source: Path, target: Path) -> None:
    """Print how many spans of the sources are in the references, by kind."""
    found, missing = Counter[str](), Counter[str]()
    for src, tgt in zip(read_lines(source), read_lines(target), strict=True):
        spans = find_copy_spans(src)
        found.update(map(describe_kind, spans))
        missing.update(map(describe_kind, missing_spans(spans, tgt)))
    shares = [
        f"{kind} {1 - missing[kind] / found[kind]:.1%} of {found[kind]}" for kind in sorted(found)
    ]
    print(f"{source} -> {target}: {', '.join(shares)}")


def measure_model(model: Path, texts_path: Path) -> None:
    """Print how a span that is inserted into each sentence changes its translation."""
    translator = Translator.load(model)
    texts = list(read_lines(texts_path))
    plain = translator.translate(texts, copy_spans="never")
    same = sum(map(str.__eq__, plain, translator.translate(texts)))
    print(f"without spans: {same} of {len(texts)} translations are the same")
    choose = random.Random(1)  # noqa: S311
    for span in INSERTED:
        sources = []
        for text in texts:
            words = text.split()
            words.insert(choose.randrange(len(words)), span)
            sources.append(" ".join(words))
        for mode in ("never", "auto"):
            made = translator.translate(sources, copy_spans=mode)
            num_copied = sum(span in one for one in made)
            rests = (" ".join(one.replace(span, "").split()).replace(" .", ".") for one in made)
            num_same = sum(map(str.__eq__, plain, rests))
            print(
                f"{span}, copy_spans={mode}: in {num_copied / len(texts):.1%}, the rest is "
                f"unchanged in {num_same / len(texts):.1%}"
            )


def main() -> None:
    """Run the requested measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", nargs=2, action="append", type=Path, default=[])
    parser.add_argument("--model", type=Path)
    parser.add_argument("--texts", type=Path)
    options = parser.parse_args()
    for source, target in options.corpus:
        measure_corpus(source, target)
    if options.model and options.texts:
        measure_model(options.model, options.texts)


if __name__ == "__main__":
    main()
