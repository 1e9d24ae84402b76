"""Placeholders and tags through a translation: whether all are kept, and what it costs.

    python benchmarks/document_markup.py --split train.en.gz train.de.gz FOLDER
    python benchmarks/document_markup.py MODEL --src held.src --ref held.tgt --messages DIR|FILE

The first command takes 1,500 messages with placeholders, which their references have too, out of a
corpus, and writes the others of at most 18 words to train a small model on.

Placeholders: real messages of catalogs with `%s`, `{name}`, `%(x)d` and others, held back from
training. Counted: messages whose translation has every placeholder as often as the source, those
that Attendo recognizes and those by the syntax of the catalogs; by the model alone, by default, and
as `translate_document` writes them. Pairs of Mozilla's catalogs: benchmarks/mozilla_messages.py.

Tags: the same messages with one to three pairs of tags and a single tag around random words, and
real messages with tags out of the compiled catalogs (.mo) under `--messages`, or one per line.
Counted: translations that are well-formed XML with every tag of the source exactly once. The BLEU
of their text without the tags is compared with that of the messages without tags; and, as other
systems do it, with each text between two tags translated by itself.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import sacrebleu

from attendo.documents.alignment import link_words
from attendo.documents.document import TextDocument
from attendo.documents.inline import read_message, render_message
from attendo.documents.markup import MarkedText, Tag, has_words, render
from attendo.documents.translation import DocumentPlan
from attendo.documents.word_links import words_of
from attendo.text.copy_spans import find_copy_spans
from attendo.translator import Translator
from attendo.translator.span_repair import repair_spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

KINDS = ("placeholder", "url", "email")
TAG = re.compile(r"</?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>")
PLACEHOLDER = re.compile(r"%[sd]|%\(\w+\)[sd]|\{[a-zA-Z_0-9]*\}|%[1-9]|\$\{\w+\}")
CATALOG_PLACEHOLDER = re.compile(
    r"\{[^{}]*\}|(?<![0-9])%(?:\([^()]*\)|[1-9]\$)?[.0-9]*(?:hh|h|ll|l|z)?[dsiufxgcS](?![A-Za-z])"
)
"""In printf, Python, Qt and Fluent, whatever Attendo recognizes."""
NUM_HELD = 1500
LENGTHS = (3, 40)
"""Words of a held message."""
NAMES = ("b", "i", "a", "span")


def placeholders(text: str) -> Counter[str]:
    """Count the placeholders and addresses of a text."""
    return Counter(one.text for one in find_copy_spans(text) if one.kind in KINDS)


def has_all(source: str, output: str) -> bool:
    """Return whether an output has the placeholders of its source, and no others."""
    written, made = CATALOG_PLACEHOLDER.findall(source), CATALOG_PLACEHOLDER.findall(output)
    return placeholders(source) == placeholders(output) and Counter(written) == Counter(made)


def kept(sources: Sequence[str], outputs: Iterable[str]) -> int:
    """Count the outputs with the placeholders of their sources."""
    pairs = zip(sources, outputs, strict=True)
    return sum(has_all(source, str(output)) for source, output in pairs)


def add_tags(text: str, generator: random.Random) -> MarkedText:
    """Put one to three pairs of tags around random words, one of them nested, and a single tag."""
    words = words_of(text)
    tags: list[Tag] = []
    first = 0
    for number in range(generator.randint(1, 3)):
        if first >= len(words):
            break
        start = generator.randrange(first, len(words))
        end = min(start + generator.randint(1, 4), len(words))
        name = NAMES[number]
        tags.append(Tag(words[start].start, words[end - 1].end, f"<{name}>", f"</{name}>"))
        if end - start > 2:
            inner = words[start + 1]
            tags.append(Tag(inner.start, inner.end, "<u>", "</u>", parent=len(tags) - 1))
        first = end
    if words and generator.random() < 0.5:
        position = words[-1].start
        if all(not tag.start < position < tag.end for tag in tags):
            last = Tag(position, position, "<x/>", is_pair=False)
            outer = [index for index, tag in enumerate(tags) if tag.parent < 0]
            if not outer or tags[outer[-1]].start != position:
                tags.append(last)
    return MarkedText(text, tuple(tags))


def is_well_formed(source: str, output: str) -> bool:
    """Return whether an output is XML with the tags of the source exactly once."""
    if Counter(TAG.findall(source)) != Counter(TAG.findall(output)):
        return False
    escaped = re.sub(r"&(?!\w+;)", "&amp;", output)
    escaped = re.sub(r"<(?!/?[A-Za-z][\w-]*(?:\s[^<>]*)?/?>)", "&lt;", escaped)
    escaped = re.sub(r"&(?!amp;|lt;|gt;|quot;|apos;)\w+;", "", escaped)
    try:
        ElementTree.fromstring(f"<r>{escaped}</r>")  # noqa: S314
    except ElementTree.ParseError:
        return False
    return True


@dataclass
class Messages(TextDocument):
    """Marked texts, one after another."""

    def __init__(self, messages: Sequence[MarkedText]) -> None:
        super().__init__("")
        self.segments = list(messages)
        self.made: list[MarkedText] = []

    def write(self, translated: Sequence[MarkedText]) -> bytes:
        """Keep the translations."""
        self.made = list(translated)
        return b""


def translate_marked(translator: Translator, messages: Sequence[MarkedText]) -> list[MarkedText]:
    """Translate messages with tags as a document is translated."""
    document = Messages(messages)
    plan = DocumentPlan(document)
    translations = translator.translate(plan.texts)
    links = {n: link_words(translator.native, translations[n]) for n in plan.aligned}
    plan.complete(translations, links)
    return document.made


def translate_pieces(translator: Translator, messages: Sequence[MarkedText]) -> list[str]:
    """Translate each text between two tags by itself."""
    pieces = [TAG.split(render(one)) for one in messages]
    texts = [piece for row in pieces for piece in row if has_words(piece)]
    found = iter(translator.translate(texts))
    return [
        " ".join(" ".join(str(next(found)) if has_words(one) else one for one in row).split())
        for row in pieces
    ]


def bleu(outputs: Sequence[str], references: Sequence[str]) -> str:
    """Return the BLEU of outputs, with two decimals."""
    return f"{sacrebleu.corpus_bleu(list(outputs), [list(references)]).score:.2f}"


def read_catalogs(directory: Path) -> list[str]:
    """Return the different messages with tags of compiled catalogs, or of a file with lines."""
    import polib

    found: dict[str, None] = {}
    if directory.is_file():
        found = dict.fromkeys(directory.read_text("utf-8").split("\n"))
    for path in sorted(directory.rglob("*.mo")):
        try:
            catalog = polib.mofile(str(path))
        except (OSError, ValueError):
            continue
        for entry in catalog:
            texts = (entry.msgid, entry.msgid_plural)
            found |= dict.fromkeys(text for text in texts if text and TAG.search(text))
    return [text for text in found if TAG.search(text) and is_well_formed(text, text)]


def split_corpus(src: Path, tgt: Path, folder: Path) -> None:
    """Write train.src, train.tgt, held.src and held.tgt; no held source is in train."""
    sides = [gzip.decompress(path.read_bytes()).decode().split("\n") for path in (src, tgt)]
    pairs = list(zip(*sides, strict=True))
    random.Random(1).shuffle(pairs)  # noqa: S311 - not for secrets
    found = [
        pair
        for pair in pairs
        if LENGTHS[0] <= len(pair[0].split()) <= LENGTHS[1]
        and PLACEHOLDER.search(pair[0])
        and sorted(PLACEHOLDER.findall(pair[0])) == sorted(PLACEHOLDER.findall(pair[1]))
    ]
    held = found[:NUM_HELD]
    sources = {source for source, _ in held}
    kept = [
        pair
        for pair in pairs
        if pair[0] not in sources
        and 2 <= len(pair[0].split()) <= 18
        and 1 <= len(pair[1].split()) <= 20
    ]
    folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("held", held), ("train", kept)):
        for index, side in enumerate(("src", "tgt")):
            text = "\n".join(row[index] for row in rows) + "\n"
            (folder / f"{name}.{side}").write_text(text, "utf-8", newline="\n")


def main() -> None:
    """Print the figures, or split a corpus."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--split", type=Path, nargs=3, metavar=("SRC", "TGT", "FOLDER"))
    parser.add_argument("--src", type=Path)
    parser.add_argument("--ref", type=Path)
    parser.add_argument("--messages", type=Path, help="folder of .mo files, or lines")
    parser.add_argument("--count", type=int, default=1000)
    given = parser.parse_args()
    if given.split:
        split_corpus(*given.split)
        return
    if not (given.model and given.src and given.ref):
        parser.error("MODEL, --src and --ref, or --split")
    translator = Translator.load(given.model)
    sources = given.src.read_text("utf-8").split("\n")[: given.count]
    references = given.ref.read_text("utf-8").split("\n")[: given.count]
    alone = translator.translate(sources, copy_spans="never")
    copied = translator.translate(sources)
    repaired = [repair_spans(*pair) for pair in zip(sources, map(str, copied), strict=True)]
    num_spans = sum(sum(placeholders(one).values()) for one in sources)
    print(f"{len(sources)} messages with {num_spans} placeholders and addresses; all kept in")
    print(f"  {kept(sources, alone):5d}  by the model alone, BLEU {bleu(alone, references)}")
    print(f"  {kept(sources, copied):5d}  by default, BLEU {bleu(copied, references)}")
    texts = [one.text for one in repaired]
    print(f"  {kept(sources, texts):5d}  in a document, BLEU {bleu(texts, references)}")
    generator = random.Random(1)  # noqa: S311 - not for secrets
    marked = [add_tags(one, generator) for one in sources]
    made = translate_marked(translator, marked)
    well = sum(is_well_formed(render(a), render(b)) for a, b in zip(marked, made, strict=True))
    num_tags = sum(len(one.tags) for one in marked)
    print(f"\n{len(marked)} messages with {num_tags} tags placed at random words")
    print(f"  {well:5d}  well-formed, with every tag once")
    print(f"  BLEU without tags {bleu(texts, references)}, "
          f"with tags {bleu([one.text for one in made], references)}, "
          f"in pieces {bleu(translate_pieces(translator, marked), references)}")  # fmt: skip
    if given.messages:
        report_catalogs(translator, given.messages)
    sys.stdout.flush()


def report_catalogs(translator: Translator, directory: Path) -> None:
    """Print the figures of real messages with tags."""
    messages = read_catalogs(directory)
    parts = [read_message(text) for text in messages]
    made = translate_marked(translator, [marked for _, marked, _ in parts])
    outputs = [
        render_message(before, marked, after)
        for (before, _, after), marked in zip(parts, made, strict=True)
    ]
    well = sum(is_well_formed(*pair) for pair in zip(messages, outputs, strict=True))
    print(f"\n{len(messages)} real messages with tags")
    print(f"  {well:5d}  well-formed, with every tag once")
    print(f"  {kept(messages, outputs):5d}  with all placeholders")
    for source, output in list(zip(messages, outputs, strict=True))[:5]:
        print(f"  {source!r}\n    {output!r}")


if __name__ == "__main__":
    main()
