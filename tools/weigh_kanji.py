"""Write kanji_weights.py: `python tools/weigh_kanji.py JA ZH_CN ZH_TW WORDS OPENCC`.

The first three are folders of compiled gettext catalogs (.mo) of the same program; the table was
made of those of LibreOffice 7.4 (Debian's libreoffice-l10n-ja, -zh-cn and -zh-tw). WORDS is a list
of Chinese words with their frequency (`dict.txt` of jieba 0.42.1, MIT licence), OPENCC the folder
with the characters to write them in the traditional script (`dictionary` of
opencc-python-reimplemented 0.1.7, Apache licence).

Counted are the lines or words with a character, or with two in a row. The Japanese share is the
mean of that in all lines and of that in lines without kana, which are the ones to recognize; the
Chinese one that of the catalogs and of the words. A weight is the logarithm of how many times more
often Japanese has it, rounded and clipped.
"""

from __future__ import annotations

import gettext
import math
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from attendo.text.kanji import has_japanese_kanji
from attendo.text.language_guess import SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

OUTPUT = Path(__file__).parent.parent / "src/attendo/text/kanji_weights.py"
MIN_COUNTS = {1: 20, 2: 30}
"""Lines in all catalogs together, by the number of characters."""
MIN_SHARE = 5e-4
"""Or this share of the words."""
SMOOTHING = {1: 2e-4, 2: 5e-5}
MIN_WEIGHT, MAX_WEIGHT = 2, 4
WIDTH = 44
"""Characters of a line of the table; each is two columns wide."""


class Shares(NamedTuple):
    """How many lines have each part, and the number of characters."""

    counts: Counter[str]
    size: int

    def share(self, part: str) -> float:
        """Return how often a part occurs per character."""
        return self.counts[part] / self.size


def mean_share(sources: Sequence[Shares], part: str) -> float:
    """Return the mean share of a part."""
    return sum(one.share(part) for one in sources) / len(sources)


def count_parts(folder: Path, *, kana: bool = True) -> Shares:
    """Return the shares in the messages of a folder."""
    messages = set()
    for path in sorted(folder.rglob("*.mo")):
        with path.open("rb") as file:
            catalog = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
        messages |= {text for key, text in catalog.items() if isinstance(key, str) and key}
    lines = (line for message in messages for line in message.split("\n"))
    return count_lines((line, 1) for line in lines if kana or not SCRIPTS["Kana"].search(line))


def count_lines(lines: Iterable[tuple[str, int]]) -> Shares:
    """Return the share of the characters, and of pairs, in lines with their frequency."""
    counts: Counter[str] = Counter()
    for line, frequency in lines:
        runs = SCRIPTS["Han"].findall(line)
        for part in {*"".join(runs), *(a + b for run in runs for a, b in pairwise(run))}:
            counts[part] += frequency
    size = sum(count for part, count in counts.items() if len(part) == 1)
    return Shares(counts, size)


def read_words(path: Path) -> list[tuple[str, int]]:
    """Return the words of a list, with their frequencies."""
    rows = (line.split(" ") for line in path.read_text("utf-8").splitlines())
    return [(row[0], int(row[1])) for row in rows]


def read_traditional(folder: Path) -> dict[str, str]:
    """Return the most frequent traditional forms of characters and words."""
    found = {}
    for name in ("STPhrases.txt", "STCharacters.txt"):
        for line in (folder / name).read_text("utf-8").splitlines():
            simplified, traditional = line.split("\t")
            found[simplified] = traditional.split(" ")[0]
    return found


def main() -> None:
    """Write the table."""
    japanese, simplified, traditional, words_path, opencc = map(Path, sys.argv[1:])
    parts = [count_parts(japanese), count_parts(japanese, kana=False)]
    words, forms = read_words(words_path), read_traditional(opencc)
    traditional_words = [
        (forms.get(word) or "".join(forms.get(one, one) for one in word), frequency)
        for word, frequency in words
    ]
    chinese = {
        "SIMPLIFIED": [count_parts(simplified), count_lines(words)],
        "TRADITIONAL": [count_parts(traditional), count_lines(traditional_words)],
    }
    catalogs = [parts[0], *(found[0] for found in chinese.values())]
    lists = [found[1] for found in chinese.values()]
    known = [
        part
        for part in sorted({part for one in [*catalogs, *lists] for part in one.counts})
        if (
            sum(one.counts[part] for one in catalogs) >= MIN_COUNTS[len(part)]
            or max(one.share(part) for one in lists) >= MIN_SHARE
        )
        and has_japanese_kanji(part)
    ]
    text = (
        '"""How much more often Japanese has characters and pairs of them than Chinese.\n\n'
        "Natural logarithms, by weight. Written by tools/weigh_kanji.py.\n"
        '"""\n\nfrom types import MappingProxyType\n'
    )
    for name, found in chinese.items():
        by_weight: dict[int, list[str]] = {}
        for part in known:
            smoothing = SMOOTHING[len(part)]
            ratio = (mean_share(parts, part) + smoothing) / (mean_share(found, part) + smoothing)
            weight = max(-MAX_WEIGHT, min(MAX_WEIGHT, round(math.log(ratio))))
            if abs(weight) >= MIN_WEIGHT:
                by_weight.setdefault(weight, []).append(part)
        text += f"\n{name} = MappingProxyType(\n    {{\n"
        for weight, group in sorted(by_weight.items()):
            text += f"        {weight}: (\n"
            line = ""
            for part in [*sorted(group, key=lambda one: (len(one), one)), ""]:
                if not part or len(line) + len(part) >= WIDTH:
                    text += f'            "{line}"\n'
                    line = ""
                line += part + " "
            text += "        ),\n"
        text += "    }\n)\n"
    OUTPUT.write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    main()
