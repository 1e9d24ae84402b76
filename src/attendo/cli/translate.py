"""`attendo translate`: words, files and pipes; one line in, one line out."""

from __future__ import annotations

import json
import sys
from contextlib import ExitStack, contextmanager
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import TextIO

    from attendo.translator import Translation

FAILED = 1
"""The exit code where some lines could not be translated; the others were."""
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
    temperature: Annotated[float, typer.Option(help="Of sampling.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Of sampling.")] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another option of decoding, e.g. no_repeat_ngram=3."),
    ] = None,
    split: Annotated[
        str, typer.Option(help="Cut texts into sentences: auto, sentences or never.")
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
    from attendo.core.config import override
    from attendo.translator import Translator
    from attendo.translator.stream import translate_stream

    options: dict[str, Any] = {
        "beam_size": beam_size,
        "n_best": n_best,
        "alpha": alpha,
        "prefix": prefix,
        "glossary": glossary,
        "must": must or [],
        "must_not": must_not or [],
        "split": split,
        "confidence": confidence,
        "trace": trace is not None,
    }
    if sample:
        options |= {"sample": True, "temperature": temperature, "seed": seed}
    options |= override({}, settings or [])
    parts, num_lines = choose_lines(texts, source)
    num_failed = 0
    with ExitStack() as held:
        page = held.enter_context(open_page(output, force=force))
        record = held.enter_context(open_page(trace, force=force)) if trace else None
        translator = Translator.load(model, *(ensemble or []))
        if num_lines:
            parts = held.enter_context(watch(parts, num_lines, options))
        for number, made in enumerate(translate_stream(translator, parts, **options), 1):
            page.write(word(made, as_json=as_json, is_screen=output is None) + "\n")
            page.flush()
            for note in made.notes:
                typer.echo(f"line {number}: {note}", err=True)
                num_failed += note.startswith("failed")
            if record is not None:
                record.write(json.dumps(made.trace or [], ensure_ascii=False) + "\n")
    if num_failed:
        typer.echo(f"{num_failed} lines could not be translated: they are empty", err=True)
        raise typer.Exit(FAILED)


def choose_lines(texts: list[str] | None, source: Path | None) -> tuple[Iterable[list[str]], int]:
    """Give what to translate in parts; and the number of lines, where a file tells it."""
    from attendo.data.lines import check_file, read_lines
    from attendo.translator.stream import gather

    if texts and source:
        raise InputError("both words and --input", remedy="give one of them")
    if texts:
        return [texts], 0
    if source is not None:
        check_file(source)
        return gather(read_lines(source)), sum(1 for _ in read_lines(source))
    if sys.stdin.isatty():
        typer.echo("type a sentence and Enter; Ctrl-D ends", err=True)
    return gather(read_standard_input()), 0


def read_standard_input() -> Iterator[str]:
    """Give the lines of the pipe; bytes that are no UTF-8 are marked, and told."""
    for number, raw in enumerate(sys.stdin.buffer, 1):
        text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
        if "\ufffd" in text and "\ufffd".encode() not in raw:
            typer.echo(f"line {number}: not UTF-8; wrong bytes are marked \ufffd", err=True)
        yield text.removeprefix("\ufeff") if number == 1 else text


@contextmanager
def open_page(path: Path | None, *, force: bool) -> Iterator[TextIO]:
    """Open a file for writing, or give the screen."""
    if path is None:
        yield sys.stdout
        return
    if path.exists() and not force:
        raise InputError(f"{path} exists", remedy="choose another file, or --force to replace it")
    try:
        stream = path.open("w", encoding="utf-8")
    except OSError as error:
        reason = f"{path} cannot be written: {error.strerror}"
        raise InputError(reason, remedy="choose another file") from None
    with stream:
        yield stream


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


def word(made: Translation, *, as_json: bool, is_screen: bool) -> str:
    """Put a translation into one line; n-best into one for each."""
    if as_json:
        return json.dumps(made.to_dict(), ensure_ascii=False)
    if not made.alternatives:
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
