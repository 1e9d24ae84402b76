"""`attendo translate`: texts, files and pipes; one line in, one line out."""

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
"""Exit code if some lines could not be translated."""
NON_UTF8_SIGNATURES = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b")
"""First bytes of UTF-16 and gzip."""
HIGH_CONFIDENCE, LOW_CONFIDENCE = 0.8, 0.5
"""Words with lower probabilities are shown in yellow and red."""


def translate(
    model: Annotated[Path, typer.Argument(help="Model folder or run folder.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Texts to translate; by default from --input or standard input."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--input", "-i", help="Input file, one text per line.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Output file instead of standard output.")
    ] = None,
    ensemble: Annotated[
        list[Path] | None, typer.Option(help="Another model for an ensemble (repeatable).")
    ] = None,
    engine: Annotated[
        str, typer.Option(help="Decoding engine: attendo, ctranslate2 (fast on a CPU) or auto.")
    ] = "attendo",
    precision: Annotated[
        str,
        typer.Option(
            help="With ctranslate2: int8, float32 or auto (the faster one). With attendo: float32, "
            "bfloat16 or auto (float32, with TF32 on a GPU)."
        ),
    ] = "auto",
    beam_size: Annotated[int, typer.Option(help="Beam size; 1 is greedy search.")] = 4,
    n_best: Annotated[int, typer.Option(help="Number of translations per text.")] = 1,
    alpha: Annotated[float, typer.Option(help="Length penalty exponent.")] = 0.6,
    prefix: Annotated[
        str, typer.Option(help="Force every translation to begin with these words.")
    ] = "",
    glossary: Annotated[
        Path | None, typer.Option(help="Glossary file (TSV): source phrase, tab, target phrase.")
    ] = None,
    required: Annotated[
        list[str] | None, typer.Option(help="A phrase that must appear in the output (repeatable).")
    ] = None,
    forbidden: Annotated[
        list[str] | None,
        typer.Option(help="A phrase that must not appear in the output (repeatable)."),
    ] = None,
    do_sample: Annotated[
        bool, typer.Option("--sample", help="Sample instead of beam search.")
    ] = False,
    temperature: Annotated[
        float | None, typer.Option(help="Sampling temperature; 1 by default.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Random seed of the sampling; 0 by default.")
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another decoding option, e.g. no_repeat_ngram=3 (repeatable)."),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            help="Split texts into sentences: auto, sentences, or never (except long ones)."
        ),
    ] = "auto",
    confidence: Annotated[
        bool, typer.Option("--confidence", help="Show the probability of each word.")
    ] = False,
    trace: Annotated[
        Path | None,
        typer.Option(help="Write the search trace of each sentence to this file (JSON lines)."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite --output and --trace.")] = False,
) -> None:
    """Translate text, a file or a pipe: beam search, n-best, glossary, confidence."""
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
    decoder: dict[str, Any] = {"engine": engine, "precision": precision}  # validated by `load`
    translator = Translator.load(model, *(ensemble or []), **decoder)
    raise_if_language_model(translator.about, model)
    parts, num_lines = input_lines(texts, source)
    num_failed = 0
    with ExitStack() as stack:
        if num_lines:
            parts = stack.enter_context(progress_bar(parts, num_lines, options))
        results = translate_lines(translator, parts, **options)
        first = next(results, None)  # errors occur before a file is opened
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
        typer.echo(f"{num_failed} lines could not be translated; their output is empty", err=True)
        raise typer.Exit(FAILED_EXIT_CODE)


def read_decoding_options(given_options: dict[str, Any], settings: list[str]) -> dict[str, Any]:
    """Return the decoding options with `key=value` settings applied; validate them."""
    from attendo.core.config import override
    from attendo.decoding.options import DecodingOptions

    options = override(given_options, settings)
    DecodingOptions(**options)
    return options


def check_outputs(source: Path | None, *outputs: Path | None, force: bool) -> None:
    """Raise an error if an output exists, or is the input."""
    for path in (path for path in outputs if path is not None and str(path) != "-"):
        if path.is_dir() or not path.parent.is_dir():
            reason = (
                message("{path} is a folder", path=path)
                if path.is_dir()
                else message("no folder {path}", path=path.parent)
            )
            raise InputError(reason, hint="choose a file in an existing folder")
        if source is not None and source.exists() and path.exists() and path.samefile(source):
            raise InputError(f"{path} is the input file", hint="choose another output")
        if path.is_file() and not force:
            hint = "choose another file, or use --force to overwrite it"
            raise InputError(message("{path} exists", path=path), hint=hint)


def input_lines(texts: list[str] | None, source: Path | None) -> tuple[Iterable[list[str]], int]:
    """Return the lines in chunks, and their number if they come from a file."""
    from attendo.text.lines import check_readable, read_lines
    from attendo.translator.line_stream import batch_arrivals

    if texts and source:
        raise InputError("both texts and --input", hint="pass one of them")
    if texts:
        return [
            [text.encode(errors="surrogateescape").decode(errors="replace") for text in texts]
        ], 0
    if source is not None and str(source) != "-":
        check_readable(source)
        num_lines = (
            sum(1 for _ in read_lines(source)) if source.is_file() else 0
        )  # a pipe can be read only once
        return batch_arrivals(read_lines(source)), num_lines
    if sys.stdin.isatty():
        typer.echo("type a sentence and press Enter; Ctrl-D exits", err=True)
    return batch_arrivals(read_standard_input()), 0


def read_standard_input() -> Iterator[str]:
    """Yield the lines of standard input; invalid UTF-8 is replaced, with a warning."""
    for number, raw in enumerate(open_standard_input(), 1):
        if number == 1 and raw.startswith(NON_UTF8_SIGNATURES):
            reason = "standard input is UTF-16 or gzip, not UTF-8 text"
            raise InputError(
                reason, hint="decompress or convert it first, or pass the file with -i"
            )
        text = raw.decode("utf-8", errors="replace").rstrip("\r\n")
        if "\ufffd" in text and "\ufffd".encode() not in raw:
            typer.echo(f"line {number}: invalid UTF-8 was replaced by \ufffd", err=True)
        yield text.removeprefix("\ufeff") if number == 1 else text


def open_standard_input() -> BinaryIO:
    """Open standard input with a separate reader.

    A thread blocks on it; with `sys.stdin.buffer`, that thread would hold its lock at exit and
    abort the process.
    """
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # not a real file, in tests
        return sys.stdin.buffer


@contextmanager
def open_output(path: Path | None) -> Iterator[IO[str]]:
    """Open a file for writing (compressed if it ends in .gz), or return standard output.

    An existing file is replaced only when the new one is complete.
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
    """Show a progress bar on stderr while the lines of a file are read."""
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
    """Return a translation as one line, or an n-best list as one line per candidate."""
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
    """Return the text and, if known, the mean confidence; colored on a terminal."""
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
