"""How often the language of a short text is detected, among the languages that a server offers.

Run: python -m benchmarks.language_detection --texts en=train.en.gz
     --texts ja=/usr/share/locale/ja ... [--words 5] [--limit 1500]

Of each file, the first lines with this number of words are used, of a folder with catalogs of
gettext a random sample of its messages. In a script without spaces two characters count as a word.
Messages without any letter of the script of their language are left out: they are not translated.
"""

from __future__ import annotations

import argparse
import gettext
import random
import re
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.serving.language_detection import detect
from attendo.text.language_guess import SCRIPTS
from attendo.text.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

CHARACTERS_PER_WORD = 2
SEED = 1
FORMAT = re.compile(r"%[-#0-9.l]*[a-zA-Z]|_|\(.\)")
"""Placeholders and shortcuts of menus."""
OWN_LETTERS = {
    name: re.compile("|".join(SCRIPTS[script].pattern for script in scripts))
    for name, scripts in {"ko": ["Hangul"], "ja": ["Kana", "Han"], "zh": ["Han"]}.items()
}
NO_SPACES = ("ja", "zh")


def read_texts(path: Path) -> Iterator[str]:
    """Yield the lines of a file, or the messages of all catalogs in a folder, in random order."""
    if not path.is_dir():
        yield from read_lines(path)
        return
    messages: set[str] = set()
    for catalog in sorted(path.rglob("*.mo")):
        with suppress(OSError, UnicodeError), catalog.open("rb") as file:
            found = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
            pairs = ((k, v) for k, v in found.items() if isinstance(k, str) and k and k != v)
            messages |= {" ".join(FORMAT.sub("", message).split()) for _, message in pairs}
    chooser = random.Random(SEED)  # noqa: S311 - no secret
    yield from chooser.sample(sorted(messages), len(messages))


def choose_lines(path: Path, language: str, num_words: int) -> Iterator[str]:
    """Yield the lines of a file with a number of words, each once."""
    seen = set()
    own = OWN_LETTERS.get(language)
    for line in read_texts(path):
        text = line.strip()
        if own is not None and not own.search(text):
            continue
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
