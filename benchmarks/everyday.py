"""Translate the 100 everyday sentences of a direction, for judging by hand.

`docs/everyday/ko-en.txt` and `en-ko.txt` have the sentences; `configs/build` keeps them out of the
training data. This writes `docs/everyday/ko-en.md`: a table with an empty cell for the judgement
of each translation, and the count of those that are filled in. A judgement stays as long as the
translation is the same. The judgements:

    right           it has the whole meaning, in words of a native speaker
    understandable  the meaning is there; the error is named
    wrong           the meaning is lost or another one; the error is named

Errors: word, name, number, register, missing, invented, grammar, repeated.

Run: python -m benchmarks.everyday ko-en [--model models/ko-en] [--beam-size 4] [--out FILE]
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from rich.console import Console

from attendo import Translator
from attendo.core.files import write_atomically
from attendo.text.lines import read_lines

FOLDER = Path(__file__).parents[1] / "docs/everyday"
JUDGEMENTS = ("right", "understandable", "wrong")
HEADINGS = "| | source | translation | judgement | errors |\n|---:|---|---|---|---|\n"
ROW = re.compile(
    r"\| \d+ \| (?P<source>.*) \| (?P<translation>.*) \| (?P<judgement>\w*) \| (?P<errors>.*) \|"
)


def read_judgements(path: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the judgement and the errors of each judged source and translation."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    rows = [row for row in map(ROW.fullmatch, lines) if row is not None]
    for row in rows:
        if row["judgement"] not in ("", *JUDGEMENTS):
            raise SystemExit(f"{path}: the judgement '{row['judgement']}' is none of {JUDGEMENTS}")
    return {
        (row["source"], row["translation"]): (row["judgement"], row["errors"].strip())
        for row in rows
    }


def render(direction: str, model: str, pairs: list[tuple[str, str]], path: Path) -> str:
    """Return the page, with the judgements that it already has."""
    judged = read_judgements(path)
    cells = [tuple(text.replace("|", "/").replace("\n", " ") for text in pair) for pair in pairs]
    given = [judged.get((source, translation), ("", "")) for source, translation in cells]
    counts = {one: sum(judgement == one for judgement, _ in given) for one in JUDGEMENTS}
    summary = ", ".join(f"{count} {name}" for name, count in counts.items())
    rows = [
        f"| {number} | {source} | {translation} | {judgement} | {errors} |"
        for number, ((source, translation), (judgement, errors)) in enumerate(
            zip(cells, given, strict=True), 1
        )
    ]
    return (
        f"# Everyday sentences, {direction}\n\n"
        f"Translated by {model}. Judged: {sum(counts.values())} of {len(rows)} ({summary}).\n\n"
        f"`python -m benchmarks.everyday {direction}` writes this page and keeps judgements.\n\n"
        f"{HEADINGS}" + "\n".join(rows) + "\n"
    )


def main() -> None:
    """Translate the sentences and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("direction", choices=("ko-en", "en-ko"))
    parser.add_argument("--model", help="a model folder; by default the shipped model")
    parser.add_argument("--beam-size", type=int, default=4)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    model = args.model or args.direction
    path = args.out or FOLDER / f"{args.direction}.md"
    sources = list(read_lines(FOLDER / f"{args.direction}.txt"))
    translator = Translator.load(model, engine="auto")
    translations = translator.translate(sources, beam_size=args.beam_size)
    pairs = [(source, str(text)) for source, text in zip(sources, translations, strict=True)]
    write_atomically(path, render(args.direction, Path(model).name, pairs, path))
    Console().print(f"{path}: fill in the column judgement ({', '.join(JUDGEMENTS)}) and errors")


if __name__ == "__main__":
    main()
