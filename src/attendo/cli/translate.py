"""`attendo translate`: words, files and pipes; one line in, one line out."""

from __future__ import annotations

import gzip
import json
import sys
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO, BinaryIO

    from attendo.translator import Translation

FAILED = 1
"""The exit code where some lines could not be translated; the others were."""
FOREIGN = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b")
"""How UTF-16 and gzip begin."""
SURE, UNSURE = 0.8, 0.5
"""Words below these probabilities are shown in yellow and red."""


def translate(
    model: Annotated[Path, typer.Argument(help="A model folder, or the run's.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="What to translate; from --input or a pipe when not given."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--input", "-i", help="A text file, one sentence a line.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write here instead of the screen.")
    ] = None,
    ensemble: Annotated[
        list[Path] | None, typer.Option(help="Another model that decides with the first.")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="What decodes: attendo, ctranslate2 (fast on a CPU), or auto.")
    ] = "attendo",
    precision: Annotated[
        str,
        typer.Option(
            help="Of ctranslate2: int8, float32, or auto: what is faster here. Of attendo: "
            "float32, bfloat16, or auto: float32, on a GPU with products in TF32."
        ),
    ] = "auto",
    beam_size: Annotated[int, typer.Option(help="Hypotheses kept; 1 is greedy.")] = 4,
    n_best: Annotated[int, typer.Option(help="Translations of each sentence.")] = 1,
    alpha: Annotated[float, typer.Option(help="Length penalty.")] = 0.6,
    prefix: Annotated[str, typer.Option(help="Begin every translation with these words.")] = "",
    glossary: Annotated[
        Path | None, typer.Option(help="TSV: source phrase, tab, target phrase.")
    ] = None,
    must: Annotated[
        list[str] | None, typer.Option(help="A phrase that must stand in every translation.")
    ] = None,
    must_not: Annotated[
        list[str] | None, typer.Option(help="A phrase that must not stand in any.")
    ] = None,
    sample: Annotated[bool, typer.Option("--sample", help="Draw by chance instead.")] = False,
    temperature: Annotated[float | None, typer.Option(help="Of sampling; 1 by default.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of sampling; 0 by default.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another option of decoding, e.g. no_repeat_ngram=3."),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            help="Cut texts into sentences: auto, sentences, or never (but what is long)."
        ),
    ] = "auto",
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Tell how sure the model is of each word.")
    ] = False,
    trace: Annotated[
        Path | None, typer.Option(help="Write how each sentence was decided here (JSON lines).")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace --output and --trace.")] = False,
) -> None:
    """Translate words, a file or a pipe: beam search, n-best, glossary, confidence."""
    from attendo.translator import Translator
    from attendo.translator.stream import translate_stream
    from attendo.translator.writer import refuse_language_model

    given = {"temperature": temperature, "seed": seed, "sample": sample or None}
    given |= {"beam_size": beam_size, "n_best": n_best, "alpha": alpha}
    options = read_decoding({k: v for k, v in given.items() if v is not None}, settings or [])
    options |= {
        "prefix": prefix,
        "glossary": glossary,
        "must": must or [],
        "must_not": must_not or [],
        "split": split,
        "confidence": confidence,
        "trace": trace is not None,
    }
    check_places(source, output, trace, force=force)
    decoder: dict[str, Any] = {"engine": engine, "precision": precision}  # are checked there
    translator = Translator.load(model, *(ensemble or []), **decoder)
    refuse_language_model(translator.about, model)
    parts, num_lines = choose_lines(texts, source)
    num_failed = 0
    with ExitStack() as held:
        if num_lines:
            parts = held.enter_context(watch(parts, num_lines, options))
        results = translate_stream(translator, parts, **options)
        first = next(results, None)  # what cannot work fails before a file is touched
        page = held.enter_context(open_page(output))
        record = held.enter_context(open_page(trace)) if trace else None
        for number, made in enumerate(chain(() if first is None else (first,), results), 1):
            page.write(word(made, as_json=as_json, n_best=n_best, is_screen=output is None) + "\n")
            page.flush()
            for note in made.notes:
                typer.echo(f"line {number}: {note}", err=True)
                num_failed += note.startswith("failed")
            if record is not None:
                record.write(json.dumps(made.trace or [], ensure_ascii=False) + "\n")
    if num_failed:
        typer.echo(f"{num_failed} lines could not be translated: they are empty", err=True)
        raise typer.Exit(FAILED)


def read_decoding(given: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    """Add `key=value` texts to options of the search, and check them all."""
    from attendo.core.config import override
    from attendo.decoding.options import DecodingOptions

    options = override(given, settings)
    DecodingOptions(**options)
    return options


def check_places(source: Path | None, *places: Path | None, force: bool) -> None:
    """Refuse to write over what is there, and over what is read."""
    for place in (place for place in places if place is not None and str(place) != "-"):
        if place.is_dir() or not place.parent.is_dir():
            reason = f"{place} is a folder" if place.is_dir() else f"no folder {place.parent}"
            raise InputError(reason, remedy="name a file in a folder that exists")
        if source is not None and source.exists() and place.exists() and place.samefile(source):
            raise InputError(f"{place} is the input itself", remedy="choose another file")
        if place.is_file() and not force:
            remedy = "choose another file, or --force to replace it"
            raise InputError(f"{place} exists", remedy=remedy)


def choose_lines(texts: list[str] | None, source: Path | None) -> tuple[Iterable[list[str]], int]:
    """Give what to translate in parts; and the number of lines, where a file tells it."""
    from attendo.data.lines import check_file, read_lines
    from attendo.translator.stream import gather

    if texts and source:
        raise InputError("both words and --input", remedy="give one of them")
    if texts:
        return [
            [text.encode(errors="surrogateescape").decode(errors="replace") for text in texts]
        ], 0
    if source is not None and str(source) != "-":
        check_file(source)
        num_lines = (
            sum(1 for _ in read_lines(source)) if source.is_file() else 0
        )  # a pipe is read once
        return gather(read_lines(source)), num_lines
    if sys.stdin.isatty():
        typer.echo("type a sentence and Enter; Ctrl-D ends", err=True)
    return gather(read_standard_input()), 0


def read_standard_input() -> Iterator[str]:
    """Give the lines of the pipe; bytes that are no UTF-8 are marked, and told."""
    for number, raw in enumerate(open_standard_input(), 1):
        if number == 1 and raw.startswith(FOREIGN):
            reason = "the pipe holds UTF-16 or packed bytes, not UTF-8 text"
            raise InputError(reason, remedy="unpack or convert it first, or name the file with -i")
        text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
        if "\ufffd" in text and "\ufffd".encode() not in raw:
            typer.echo(f"line {number}: not UTF-8; wrong bytes are marked \ufffd", err=True)
        yield text.removeprefix("\ufeff") if number == 1 else text


def open_standard_input() -> BinaryIO:
    """Give the pipe by a reader of our own.

    A thread waits on it. Python's own reader would be locked by that thread when the process ends,
    and abort it.
    """
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # no real file: a test's
        return sys.stdin.buffer


@contextmanager
def open_page(path: Path | None) -> Iterator[IO[str]]:
    """Open a file for writing, packed if its name ends in .gz, or give the screen.

    An older file of this name goes only when the new one is whole.
    """
    if path is None or str(path) == "-":
        yield sys.stdout
        return
    if path.exists() and not path.is_file():  # a device
        with path.open("w", encoding="utf-8") as stream:
            yield stream
        return
    partial = path.with_name(f".{path.name}.partial")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(partial, "wt", encoding="utf-8") as stream:
        yield stream
    partial.replace(path)


@contextmanager
def watch(
    parts: Iterable[list[str]], num_lines: int, options: dict[str, Any]
) -> Iterator[Iterator[list[str]]]:
    """Show a bar on the error stream while the lines of a file go by."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("translating", total=num_lines)
        done = size = 0

        def follow(pieces: int, all_pieces: int) -> None:
            bar.update(task, completed=done + size * pieces // max(all_pieces, 1))

        def count() -> Iterator[list[str]]:
            nonlocal done, size
            for part in parts:
                done, size = done + size, len(part)
                yield part

        options["progress"] = follow
        yield count()
        bar.update(task, completed=num_lines)


def word(made: Translation, *, as_json: bool, n_best: int, is_screen: bool) -> str:
    """Put a translation into one line; n-best into one for each."""
    if as_json:
        return json.dumps(made.to_dict(), ensure_ascii=False)
    if n_best == 1:
        return word_confidence(made, is_screen)
    ranked = enumerate([made, *made.alternatives], 1)
    return "\n".join(
        f"{rank}\t{one.score:.4f}\t{word_confidence(one, is_screen)}" for rank, one in ranked
    )


def word_confidence(made: Translation, is_screen: bool) -> str:
    """Give the text and, where it is known, a tab and the mean probability; colours on a screen."""
    if made.confidence is None:
        return str(made)
    mean = f"{made.confidence.mean:.3f}"
    if not (is_screen and sys.stdout.isatty()):
        return f"{made}\t{mean}"
    words = []
    for text, probability in made.confidence.words:
        colour = None if probability >= SURE else "yellow" if probability >= UNSURE else "red"
        words.append(typer.style(text, fg=colour) if colour else text)
    return f"{' '.join(words)}\t{mean}"
