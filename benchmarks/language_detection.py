"""How often the language of a short text is detected, among the languages that a server offers.

Run: python -m benchmarks.language_detection --texts en=train.en.gz --texts ja=messages.ja ...
     [--words 5] [--limit 500]

Of each file, the first lines with this number of words are used. In a script without spaces two
characters count as a word.
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.serving.language_detection import detect
from attendo.text.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

CHARACTERS_PER_WORD = 2
NO_SPACES = ("ja", "zh")


def choose_lines(path: Path, language: str, num_words: int) -> Iterator[str]:
    """Yield the lines of a file with a number of words, each once."""
    seen = set()
    for line in read_lines(path):
        text = line.strip()
        letters = sum(letter.isalpha() for letter in text)
        count = (
            letters // CHARACTERS_PER_WORD
            if language in NO_SPACES
            else sum(any(map(str.isalpha, word)) for word in text.split())
        )
        if count == num_words and text not in seen:
            seen.add(text)
            yield text


def main() -> None:
    """Print the share of right languages for each file, and what the others were taken for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", action="append", required=True, metavar="LANG=FILE")
    parser.add_argument("--words", type=int, default=5)
    parser.add_argument("--limit", type=int, default=500)
    arguments = parser.parse_args()
    files = dict(one.split("=", 1) for one in arguments.texts)
    for language, name in files.items():
        lines = []
        for line in choose_lines(Path(name), language, arguments.words):
            lines.append(line)
            if len(lines) == arguments.limit:
                break
        found = Counter(detect(line, files)[0].language for line in lines)
        num_right = found.pop(language, 0)
        others = ", ".join(f"{other} {count}" for other, count in found.most_common())
        share = num_right / max(len(lines), 1)
        print(f"{language}: {share:.1%} of {len(lines)}{'; ' + others if others else ''}")


if __name__ == "__main__":
    main()
