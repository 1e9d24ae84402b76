"""Writes pairs of real messages out of Mozilla's catalogs, to measure placeholders and tags on.

    apt-get download firefox-esr firefox-esr-l10n-de    # or -ko; unpack them with dpkg-deb -x
    python benchmarks/mozilla_messages.py FOLDER --src omni.ja browser/omni.ja --tgt langpack-de.xpi

The archives have Fluent files (.ftl) and .properties. A pair is a message or an attribute with the
same file and id on both sides. Written are `held.src` and `held.tgt`: a random sample of those with
placeholders that the human translation has as well, and `tags.src` and `tags.tgt`: all with tags.
One message per line. Messages that select a variant (`->`), and those with line breaks, are left
out. `--all` writes all messages of `--src` instead, without placeholders and tags.
"""

from __future__ import annotations

import argparse
import random
import re
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SEED = 1
LENGTHS = (3, 40)
"""Words of a message."""
FLUENT_START = re.compile(r"(?P<id>-?[A-Za-z][\w-]*) *= ?(?P<value>.*)|\s+(?P<attribute>\.[\w-]+) *= ?(?P<text>.*)")  # fmt: skip # noqa: E501
PROPERTY = re.compile(r"\s*(?P<id>[^#!\s=:]+)\s*[=:]\s*(?P<value>.*)")
ESCAPE = re.compile(r"\\u([0-9A-Fa-f]{4})")
FOLDER = re.compile(r"(?:.*/)?(?:localization|chrome)/(?P<code>[\w-]+)/(?:locale/)?")
PLACEHOLDER = re.compile(r"\{[^{}]*\}|%(?:[1-9]\$)?(?:\.[0-9])?[A-Za-z]{1,2}(?![A-Za-z])")
"""By the syntax of the files, whatever Attendo recognizes."""
TAG = re.compile(r"</?[A-Za-z][^<>]*>")


def read_fluent(text: str) -> Iterator[tuple[str, str]]:
    """Yield the ids and texts of messages, terms and attributes."""
    owner, name, parts = "", "", []
    for line in [*text.splitlines(), "end = "]:
        if line.startswith("#"):
            continue
        match = FLUENT_START.match(line)
        if match is None:
            if line[:1] in (" ", "\t", "}", "") and name:
                parts.append(line.strip())
            continue
        if name:
            yield name, " ".join(part for part in parts if part)
        owner = match["id"] or owner
        name = owner + (match["attribute"] or "")
        parts = [match["value"] if match["id"] else match["text"]]


def read_properties(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys and texts of a .properties file."""
    for line in text.splitlines():
        match = PROPERTY.match(line)
        if match is not None:
            yield match["id"], ESCAPE.sub(lambda one: chr(int(one[1], 16)), match["value"])


def read_catalogs(paths: Sequence[Path]) -> dict[str, str]:
    """Return the messages of archives, by file and id."""
    messages: dict[str, str] = {}
    for path in paths:
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                found = FOLDER.match(name)
                if found is None or not name.endswith((".ftl", ".properties")):
                    continue
                file = name[found.end() :].removeprefix(found["code"] + "/")
                read = read_fluent if name.endswith(".ftl") else read_properties
                pairs = read(archive.read(name).decode("utf-8"))
                messages |= {f"{file}:{key}": " ".join(text.split()) for key, text in pairs}
    return messages


def is_message(text: str) -> bool:
    """Return whether a text is one message, rather than several variants."""
    return "->" not in text and "\\" not in text


def is_of_length(text: str) -> bool:
    """Return whether a text has as many words as a held message has."""
    return LENGTHS[0] <= len(TAG.sub(" ", PLACEHOLDER.sub("x", text)).split()) <= LENGTHS[1]


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write one message per line."""
    path.write_text("\n".join(lines) + "\n", "utf-8", newline="\n")


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--src", type=Path, nargs="+", required=True, metavar="ARCHIVE")
    parser.add_argument("--tgt", type=Path, nargs="+", default=(), metavar="ARCHIVE")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--all", action="store_true", help="write every message of --src")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    sources = {key: text for key, text in read_catalogs(given.src).items() if is_message(text)}
    if given.all:
        texts = {TAG.sub("", PLACEHOLDER.sub("", text)).strip() for text in sources.values()}
        write_lines(given.folder / "all.txt", sorted(filter(None, texts)))
        return
    if not given.tgt:
        parser.error("--tgt, or --all")
    targets = {key: text for key, text in read_catalogs(given.tgt).items() if is_message(text)}
    pairs = {
        text: targets[key]
        for key, text in sources.items()
        if is_of_length(text)
        and targets.get(key, text) != text  # what is not translated is English
        and sorted(PLACEHOLDER.findall(text)) == sorted(PLACEHOLDER.findall(targets[key]))
    }
    rows = sorted(pairs.items())
    random.Random(SEED).shuffle(rows)  # noqa: S311 - not for secrets
    held = [row for row in rows if PLACEHOLDER.search(row[0]) and not TAG.search("".join(row))]
    tags = [row for row in rows if TAG.search(row[0])]
    for name, chosen in (("held", held[: given.count]), ("tags", tags)):
        for index, side in enumerate(("src", "tgt")):
            write_lines(given.folder / f"{name}.{side}", [row[index] for row in chosen])
    print(f"{len(pairs)} pairs, {len(held)} with placeholders, {len(tags)} with tags")


if __name__ == "__main__":
    main()
