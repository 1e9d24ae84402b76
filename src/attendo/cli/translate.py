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
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import IO, BinaryIO

    from attendo.translator import Translation

FAILED_EXIT_CODE = 1
"""The exit code where some lines could not be translated; the others were."""
NON_UTF8_SIGNATURES = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b")
"""How UTF-16 and gzip begin."""
HIGH_CONFIDENCE, LOW_CONFIDENCE = 0.8, 0.5
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
    required: Annotated[
        list[str] | None, typer.Option(help="A phrase that must stand in every translation.")
    ] = None,
    forbidden: Annotated[
        list[str] | None, typer.Option(help="A phrase that must not stand in any.")
    ] = None,
    do_sample: Annotated[bool, typer.Option("--sample", help="Draw by chance instead.")] = False,
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
    from attendo.bundle import raise_if_language_model
    from attendo.core.config import override
    from attendo.decoding.options import DecodingOptions
    from attendo.translator import Translator
    from attendo.translator.line_stream import translate_lines

    search_options = {"temperature": temperature, "seed": seed, "do_sample": do_sample or None}
    search_options |= {"beam_size": beam_size, "n_best": n_best, "alpha": alpha}
    given_options = {k: v for k, v in search_options.items() if v is not None}
    options: dict[str, Any] = {
        "options": DecodingOptions(**override(given_options, settings or [])),
        "prefix": prefix,
        "glossary": glossary,
        "required": required or [],
        "forbidden": forbidden or [],
        "split": split,
        "confidence": confidence,
        "trace": trace is not None,
    }
    check_outputs(source, output, trace, force=force)
    decoder: dict[str, Any] = {"engine": engine, "precision": precision}  # are checked there
    translator = Translator.load(model, *(ensemble or []), **decoder)
    raise_if_language_model(translator.about, model)
    parts, num_lines = input_lines(texts, source)
    num_failed = 0
    with ExitStack() as stack:
        if num_lines:
            parts = stack.enter_context(progress_bar(parts, num_lines, options))
        results = translate_lines(translator, parts, **options)
        first = next(results, None)  # what cannot work fails before a file is touched
        output_stream = stack.enter_context(open_output(output))
        trace_stream = stack.enter_context(open_output(trace)) if trace else None
        for number, translation in enumerate(chain(() if first is None else (first,), results), 1):
            output_stream.write(
                format_translation(
                    translation, as_json=as_json, n_best=n_best, is_screen=output is None
                )
                + "\n"
            )
            output_stream.flush()
            for note in translation.notes:
                typer.echo(f"line {number}: {note}", err=True)
                num_failed += note.startswith("failed")
            if trace_stream is not None:
                trace_stream.write(json.dumps(translation.trace or [], ensure_ascii=False) + "\n")
    if num_failed:
        typer.echo(f"{num_failed} lines could not be translated: they are empty", err=True)
        raise typer.Exit(FAILED_EXIT_CODE)


def read_decoding_options(given_options: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    """Add `key=value` texts to options of the search, and check them all."""
    from attendo.core.config import override
    from attendo.decoding.options import DecodingOptions

    options = override(given_options, settings)
    DecodingOptions(**options)
    return options


def check_outputs(source: Path | None, *outputs: Path | None, force: bool) -> None:
    """Refuse to write over what is there, and over what is read."""
    for path in (place for place in outputs if place is not None and str(place) != "-"):
        if path.is_dir() or not path.parent.is_dir():
            reason = (
                message("{path} is a folder", path=path)
                if path.is_dir()
                else message("no folder {path}", path=path.parent)
            )
            raise InputError(reason, hint="name a file in a folder that exists")
        if source is not None and source.exists() and path.exists() and path.samefile(source):
            raise InputError(f"{path} is the input itself", hint="choose another file")
        if path.is_file() and not force:
            hint = "choose another file, or --force to replace it"
            raise InputError(message("{path} exists", path=path), hint=hint)


def input_lines(texts: list[str] | None, source: Path | None) -> tuple[Iterable[list[str]], int]:
    """Give what to translate in parts; and the number of lines, where a file tells it."""
    from attendo.text.lines import check_readable, read_lines
    from attendo.translator.line_stream import batch_arrivals

    if texts and source:
        raise InputError("both words and --input", hint="give one of them")
    if texts:
        return [
            [text.encode(errors="surrogateescape").decode(errors="replace") for text in texts]
        ], 0
    if source is not None and str(source) != "-":
        check_readable(source)
        num_lines = (
            sum(1 for _ in read_lines(source)) if source.is_file() else 0
        )  # a pipe is read once
        return batch_arrivals(read_lines(source)), num_lines
    if sys.stdin.isatty():
        typer.echo("type a sentence and Enter; Ctrl-D ends", err=True)
    return batch_arrivals(read_standard_input()), 0


def read_standard_input() -> Iterator[str]:
    """Give the lines of the pipe; bytes that are no UTF-8 are marked, and told."""
    for number, raw in enumerate(open_standard_input(), 1):
        if number == 1 and raw.startswith(NON_UTF8_SIGNATURES):
            reason = "the pipe holds UTF-16 or packed bytes, not UTF-8 text"
            raise InputError(reason, hint="unpack or convert it first, or name the file with -i")
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
def open_output(path: Path | None) -> Iterator[IO[str]]:
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
def progress_bar(
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

        def update(done_segments: int, num_segments: int) -> None:
            bar.update(task, completed=done + size * done_segments // max(num_segments, 1))

        def count_lines() -> Iterator[list[str]]:
            nonlocal done, size
            for part in parts:
                done, size = done + size, len(part)
                yield part

        options["progress"] = update
        yield count_lines()
        bar.update(task, completed=num_lines)


def format_translation(
    translation: Translation, *, as_json: bool, n_best: int, is_screen: bool
) -> str:
    """Put a translation into one line; n-best into one for each."""
    if as_json:
        return json.dumps(translation.to_dict(), ensure_ascii=False)
    if n_best == 1:
        return format_with_confidence(translation, is_screen)
    ranked = enumerate([translation, *translation.alternatives], 1)
    return "\n".join(
        f"{rank}\t{candidate.score:.4f}\t{format_with_confidence(candidate, is_screen)}"
        for rank, candidate in ranked
    )


def format_with_confidence(translation: Translation, is_screen: bool) -> str:
    """Give the text and, where it is known, a tab and the mean probability; colours on a screen."""
    if translation.confidence is None:
        return str(translation)
    mean = f"{translation.confidence.mean:.3f}"
    if not (is_screen and sys.stdout.isatty()):
        return f"{translation}\t{mean}"
    words = []
    for text, probability in translation.confidence.words:
        color = (
            None
            if probability >= HIGH_CONFIDENCE
            else "yellow"
            if probability >= LOW_CONFIDENCE
            else "red"
        )
        words.append(typer.style(text, fg=color) if color else text)
    return f"{' '.join(words)}\t{mean}"
