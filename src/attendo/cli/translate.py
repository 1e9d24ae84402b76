"""`attendo translate`: texts, files and pipes; one line in, one line out."""

from __future__ import annotations

import functools
import gc
import gzip
import json
import sys
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.options import DeviceOption  # noqa: TC001 - typer reads the annotations
from attendo.core.device import use_threads
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import IO, BinaryIO

    from attendo.cli.confidence import ConfidenceFilter
    from attendo.cli.translate_document import DocumentFile
    from attendo.translator import Confidence, Translation, Translator
    from attendo.translator.partial_output import PartialOutput
    from attendo.translator.windows import WindowTranslator

FAILED_EXIT_CODE = 1
"""Exit code if some lines could not be translated."""
NON_UTF8_SIGNATURES = (b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b")
"""First bytes of UTF-16 and gzip."""
HIGH_CONFIDENCE, LOW_CONFIDENCE = 0.8, 0.5
"""Words with lower probabilities are shown in yellow and red."""
MAX_NOTES = 20
"""Notes that are printed when the output is a file."""


def translate(
    model: Annotated[Path, typer.Argument(help="Model folder or run folder.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Texts to translate; by default from --input or standard input."),
    ] = None,
    input_address: Annotated[
        str | None,
        typer.Option("--input", "-i", metavar="PATH", help="Input file, one text per line."),
    ] = None,
    output_address: Annotated[
        str | None,
        typer.Option(
            "--output", "-o", metavar="PATH", help="Output file instead of standard output."
        ),
    ] = None,
    ensemble: Annotated[
        list[Path] | None, typer.Option(help="Another model for an ensemble (repeatable).")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(help="Decoding engine: attendo, ctranslate2 (fast on a CPU), onnx or auto."),
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
    agree_with: Annotated[
        Path | None,
        typer.Option(help="References: of the --n-best translations, write the closest one."),
    ] = None,
    tag: Annotated[
        str, typer.Option(help="Begin every output line with this word, e.g. <bt>.")
    ] = "",
    device: DeviceOption = None,
    threads: Annotated[
        int | None, typer.Option(help="CPU threads; by default one per core.", min=1)
    ] = None,
    batch_size: Annotated[
        int | None,
        typer.Option(
            help="Tokens in a batch, those of the source times the beam size; fewer need less "
            "memory. By default 8,192 on a CPU and 131,072 on a GPU.",
            min=1,
        ),
    ] = None,
    split: Annotated[
        str,
        typer.Option(
            help="Split texts into sentences: auto, sentences, or never (except long ones)."
        ),
    ] = "auto",
    copy_spans: Annotated[
        str,
        typer.Option(
            help="Copy URLs, e-mail addresses, emoji and unknown numbers: auto, always (also known "
            "numbers) or never."
        ),
    ] = "auto",
    confidence: Annotated[
        bool,
        typer.Option(
            "--confidence",
            help="Show how sure the model is of each translation, judged by the dev set.",
        ),
    ] = False,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            help="Share of right translations, e.g. 0.95: a line whose confidence is lower is left "
            "empty, or marked (--below). Needs a calibrated model.",
            min=0.0,
            max=1.0,
        ),
    ] = None,
    below: Annotated[
        str,
        typer.Option(help="Output of a line below --min-confidence: empty, or mark (with ??)."),
    ] = "empty",
    label: Annotated[
        str | None,
        typer.Option(help="Ask for a kind of translation that the model has learned, e.g. polite."),
    ] = None,
    retry: Annotated[
        bool,
        typer.Option(
            help="Search a sentence whose output is empty, a loop or a copy of the source again."
        ),
    ] = True,
    trace: Annotated[
        Path | None,
        typer.Option(help="Write the search trace of each sentence to this file (JSON lines)."),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per line.")
    ] = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Resume an interrupted translation of --input."),
    ] = False,
    format_name: Annotated[
        str,
        typer.Option(
            "--format",
            help="Format of a document (docx, pptx, odt, epub, html, md, srt, vtt, po, xliff, "
            "json, yaml), or txt for one text per line; auto goes by the file name.",
        ),
    ] = "auto",
    fuzzy: Annotated[
        bool, typer.Option(help="Mark new translations in a PO file as fuzzy, for review.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Overwrite --output and --trace.")] = False,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Translate on a Ray cluster: auto, local or HOST:PORT. --input is then a file, a "
            "quoted pattern or a folder, --output a folder; both may be addresses such as s3://...",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            help="With --cluster: workers, each on a GPU or on --threads cores; by default as many "
            "as the cluster has capacity for.",
            min=1,
        ),
    ] = None,
    shard_lines: Annotated[
        int | None, typer.Option(help="With --cluster: lines per shard, about.", min=1)
    ] = None,
    column: Annotated[
        str, typer.Option(help="With --cluster: field of the texts in JSON lines and Parquet.")
    ] = "text",
) -> None:
    """Translate text, a file, a document or a pipe: beam search, n-best, glossary, confidence."""
    from attendo.bundle import read_about
    from attendo.cli.inputs import (
        COPY_MODES,
        ENGINES,
        LOW_LINES,
        PRECISIONS,
        SPLITS,
        check_choice,
        check_models,
    )
    from attendo.core.config import override
    from attendo.decoding.options import DecodingOptions

    check_choice("--engine", engine, ENGINES)
    check_choice("--precision", precision, PRECISIONS)
    check_choice("--split", split, SPLITS)
    check_choice("--copy-spans", copy_spans, COPY_MODES)
    check_choice("--below", below, LOW_LINES)
    check_models(model, *(ensemble or ()))
    source = Path(input_address) if input_address is not None and cluster is None else None
    output = Path(output_address) if output_address is not None and cluster is None else None
    document = find_document(texts, source, output, format_name)
    check_source(texts, source, glossary)
    check_agreement(source, agree_with if cluster is None else None, n_best, as_json=as_json)
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
        "copy_spans": copy_spans,
        "confidence": confidence or min_confidence is not None,
        "retry": retry,
        **({"label": label} if label is not None else {}),
        "trace": trace is not None,
    }
    decoder: dict[str, Any] = {"engine": engine, "precision": precision, "device": device}
    models = [model, *(ensemble or [])]
    if cluster is not None:
        from attendo.cli.cluster import check_cluster_options, start_cluster_job

        flags = {"resume": resume, "force": force}
        check_cluster_options(
            input_address, output_address, texts=texts, has_trace=trace is not None, **flags
        )
        start_cluster_job(
            models, str(input_address), str(output_address), decoder, options,
            address=cluster, agree_with=agree_with, threads=threads, batch_size=batch_size,
            num_workers=workers, shard_rows=shard_lines, column=column, **flags,
            output_options={
                "tag": tag, "as_json": as_json, "has_confidence": confidence,
                "min_confidence": min_confidence, "below": below,
            },
        )  # fmt: skip
        return
    if document is not None:
        from attendo.cli.translate_document import check_document_options, translate_document_file

        given: dict[str, Any] = {
            "as_json": as_json, "resume": resume, "trace": trace, "agree_with": agree_with,
            "confidence": confidence, "n_best": n_best, "tag": tag, "prefix": prefix,
            "min_confidence": min_confidence,
        }  # fmt: skip
        output = check_document_options(output, given)
        check_outputs(document.path, output, force=force)
        document.target, document.fuzzy = read_about(model).get("tgt_lang"), fuzzy
        load = functools.partial(load_translator, models, decoder, threads=threads)
        translate_document_file(document, output, load, options, batch_size=batch_size)
        return
    check_outputs(source, output, trace, force=force or resume)
    partial: PartialOutput | None = None
    if (source is not None and output is not None) or resume:
        from attendo.cli.agreement import describe_output
        from attendo.cli.resumable import make_partial_output

        job = {**options, **decoder, "options": options["options"].model_dump(mode="json")}
        job |= {"glossary": glossary and glossary.read_text("utf-8"), "batch_size": batch_size}
        job |= {"n_best": n_best, "json": as_json, **describe_output(agree_with, tag)}
        job |= {"min_confidence": min_confidence, "below": below, "confidence": confidence}
        flags = {"has_trace": trace is not None, "resume": resume, "force": force}
        partial = make_partial_output(source, output, models, job, **flags)
    translator = load_translator(models, decoder, threads=threads)
    translator.backend.max_batch_tokens = batch_size
    confidence_filter = make_filter(translator, min_confidence, below)
    num_lines = num_kept = 0
    notes = NoteReporter(None if output is None else MAX_NOTES)
    with ExitStack() as stack:
        steps = translator.make_steps(**options, skip_failed=True)
        groups: Iterator[list[Translation]]
        if texts:
            groups = iter([steps.translate([decode_argument(text) for text in texts])])
        else:
            groups, num_lines, num_kept = translate_input(
                steps, source, partial, stack, resume=resume
            )
        first = next(groups, None)  # errors occur before a file is opened
        report_unfamiliar(translator, first or [])
        write: Callable[[str, int], None] = (
            write_to(stack.enter_context(open_output(output)))
            if partial is None
            else stack.enter_context(partial.open()).write
        )
        trace_stream = stack.enter_context(open_output(trace)) if trace else None
        stack.enter_context(fewer_collections())
        groups = chain(() if first is None else (first,), groups)
        if agree_with is not None:
            from attendo.cli.agreement import choose_translations

            groups = choose_translations(groups, agree_with, start=num_kept, num_lines=num_lines)
        style: dict[str, Any] = {"as_json": as_json, "is_screen": output is None}
        style["n_best"] = 1 if agree_with is not None else n_best
        style["has_confidence"] = confidence
        first_words = f"{tag} " if tag else ""
        num_done = num_kept
        for translations in groups:
            notes.report(translations, num_done + 1)
            kept = translations if confidence_filter is None else confidence_filter(translations)
            lines = [f"{first_words}{format_translation(one, **style)}\n" for one in kept]
            write("".join(lines), len(lines))
            num_done += len(lines)
            if trace_stream is not None:
                trace_stream.writelines(
                    json.dumps(one.trace or [], ensure_ascii=False) + "\n" for one in translations
                )
    notes.count_rest()
    explain_confidence(translator, confidence_filter, is_shown=confidence)
    if notes.num_failed:
        text = message(
            "lines without a translation, whose output is empty: {count:,}", count=notes.num_failed
        )
        typer.echo(translate_message(text, choose_language()), err=True)
        raise typer.Exit(FAILED_EXIT_CODE)


def find_document(
    texts: list[str] | None, source: Path | None, output: Path | None, format_name: str
) -> DocumentFile | None:
    """Return the document to translate; None for lines of text, and without any file."""
    if source is None and output is None and format_name == "auto":
        return None
    from attendo.cli import translate_document

    return translate_document.find_document(texts, source, output, format_name)


def check_source(texts: list[str] | None, source: Path | None, glossary: Path | None) -> None:
    """Raise if texts are given twice, or if a file cannot be read."""
    from attendo.cli.inputs import check_files

    if texts and source is not None:
        raise InputError("both texts and --input", hint="pass one of them")
    check_files(source, glossary)


def check_agreement(
    source: Path | None, agree_with: Path | None, n_best: int, *, as_json: bool
) -> None:
    """Raise unless the references, if there are any, belong to the input."""
    if agree_with is not None:
        from attendo.cli.agreement import check_references

        check_references(source, agree_with, n_best, as_json=as_json)


def load_translator(
    models: list[Path], decoder: dict[str, Any], *, threads: int | None
) -> Translator:
    """Load the models; everything before this needs no tensor library."""
    from attendo.bundle import raise_if_language_model
    from attendo.translator import Translator

    use_threads(threads)
    translator = Translator.load(*models, **decoder)
    raise_if_language_model(translator.about, models[0])
    return translator


def make_filter(
    translator: Translator, min_confidence: float | None, below: str
) -> ConfidenceFilter | None:
    """Return what leaves translations that are not sure enough empty; None without a minimum."""
    if min_confidence is None:
        return None
    from attendo.cli.confidence import ConfidenceFilter

    return ConfidenceFilter(translator, min_confidence, below)


def explain_confidence(
    translator: Translator, confidence_filter: ConfidenceFilter | None, *, is_shown: bool
) -> None:
    """Say on stderr how many translations were kept, and what the bands mean.

    The bands are explained on a terminal, or always if they are not calibrated.
    """
    if confidence_filter is not None:
        typer.echo(translate_message(confidence_filter.describe(), choose_language()), err=True)
    if not is_shown:
        return
    from attendo.cli.confidence import UNCALIBRATED_NOTE, describe_bands

    table = translator.quality
    text = UNCALIBRATED_NOTE if table is None else describe_bands(table)
    if table is None or sys.stderr.isatty():
        typer.echo(translate_message(text, choose_language()), err=True)


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
            raise InputError(
                message("{path} is the input file", path=path), hint="choose another output"
            )
        if path.is_file() and not force:
            hint = "choose another file, or use --force to overwrite it"
            raise InputError(message("{path} exists", path=path), hint=hint)


def decode_argument(text: str) -> str:
    """Return a text of the command line; bytes that are not UTF-8 are replaced."""
    return text.encode(errors="surrogateescape").decode(errors="replace")


def translate_input(
    steps: WindowTranslator,
    source: Path | None,
    partial: PartialOutput | None,
    stack: ExitStack,
    *,
    resume: bool,
) -> tuple[Iterator[list[Translation]], int, int]:
    """Translate a file or standard input in windows, with a progress bar.

    Returns:
        The translations of each window, the number of lines if it is known, and how many of them
        were translated before.

    """
    from attendo.cli.translation_progress import progress_bar
    from attendo.translator.pipeline import Pipeline
    from attendo.translator.windows import max_window_lines

    max_lines = max_window_lines(steps.translator.backend.device_type)
    windows, num_lines = input_windows(source, max_lines)
    num_kept = 0
    if partial is not None:
        from attendo.cli.resumable import explain_interruption

        if resume:
            num_kept = partial.prepare(map(len, input_windows(source, max_lines)[0]))
        windows = partial.remaining_windows(windows)
        stack.enter_context(explain_interruption(partial, num_lines))
    progress = stack.enter_context(progress_bar(num_lines, start=num_kept))
    results = stack.enter_context(closing(Pipeline(steps, windows, progress).run()))
    return results, num_lines, num_kept


def input_windows(source: Path | None, max_lines: int) -> tuple[Iterable[list[str]], int]:
    """Return the lines in windows, and their number if they come from a file."""
    from attendo.text.lines import check_readable, read_lines
    from attendo.translator.line_stream import batch_arrivals
    from attendo.translator.pipeline import group_lines

    if source is not None and str(source) != "-":
        check_readable(source)
        if not source.is_file():  # a pipe can be read only once
            return batch_arrivals(read_lines(source), max_lines=max_lines), 0
        return group_lines(read_lines(source), max_lines), sum(1 for _ in read_lines(source))
    if sys.stdin.isatty():
        typer.echo("type a sentence and press Enter; Ctrl-D exits", err=True)
    return batch_arrivals(read_standard_input(), max_lines=max_lines), 0


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
            detail = message("invalid UTF-8 was replaced by \ufffd")
            note = message("line {number}: {error}", number=number, error=detail)
            typer.echo(translate_message(note, choose_language()), err=True)
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


def write_to(stream: IO[str]) -> Callable[[str, int], None]:
    """Return a function that writes the lines of some texts to a stream at once."""

    def write(lines: str, _num_texts: int) -> None:
        stream.write(lines)
        stream.flush()

    return write


class NoteReporter:
    """Prints the notes of translations on stderr.

    Args:
        limit: how many are printed; None prints all.

    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.num_notes = self.num_failed = 0

    def report(self, translations: Iterable[Translation], first_number: int) -> None:
        """Print the notes, and count the texts that could not be translated."""
        from attendo.translator.notes import has_failed

        for number, translation in enumerate(translations, first_number):
            for note in translation.notes:
                if self.limit is None or self.num_notes < self.limit:
                    text = message("line {number}: {error}", number=number, error=note)
                    typer.echo(translate_message(text, choose_language()), err=True)
                self.num_notes += 1
            self.num_failed += has_failed(translation.notes)

    def count_rest(self) -> None:
        """Print how many notes were not printed."""
        if self.limit is not None and self.num_notes > self.limit:
            text = message("{count:,} more notes are not shown", count=self.num_notes - self.limit)
            typer.echo(translate_message(text, choose_language()), err=True)


def report_unfamiliar(translator: Translator, translations: list[Translation]) -> None:
    """Say on stderr if the model knows hardly anything of the first texts."""
    from attendo.translator.familiarity import warn_unfamiliar

    warning = warn_unfamiliar(translator, [one.source for one in translations])
    if warning is not None:
        typer.echo(translate_message(warning, choose_language()), err=True)


@contextmanager
def fewer_collections() -> Iterator[None]:
    """Let Python search for unused cycles less often: translations have none, but are many."""
    thresholds = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(100_000, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def format_translation(
    translation: Translation, *, as_json: bool, n_best: int, is_screen: bool, has_confidence: bool
) -> str:
    """Return a translation as one line, or an n-best list as one line per candidate."""
    if as_json:
        data = translation.to_dict()
        data.pop("trace", None)  # --trace writes it to its own file
        return json.dumps(data, ensure_ascii=False)
    show = partial(format_with_confidence, is_screen=is_screen) if has_confidence else str
    if n_best == 1:
        return show(translation)
    ranked = enumerate([translation, *translation.alternatives], 1)
    return "\n".join(
        f"{rank}\t{candidate.score:.4f}\t{show(candidate)}" for rank, candidate in ranked
    )


def format_with_confidence(translation: Translation, is_screen: bool) -> str:
    """Return the text and, if known, its probability and band; colored on a terminal."""
    confidence = translation.confidence
    if confidence is None:
        return str(translation)
    from attendo.cli.confidence import COLORS, describe_confidence

    probability = f"{confidence.probability:.3f}"
    description = describe_confidence(confidence)
    if not (is_screen and sys.stdout.isatty()):
        return f"{translation}\t{probability}\t{description}"
    band_color = COLORS[confidence.band] if confidence.band else None
    shown = typer.style(translate_message(description, choose_language()), fg=band_color)
    return f"{_color_words(confidence)}\t{probability}\t{shown}"


def _color_words(confidence: Confidence) -> str:
    words = []
    for text, probability in confidence.words:
        color = (
            None
            if probability >= HIGH_CONFIDENCE
            else "yellow"
            if probability >= LOW_CONFIDENCE
            else "red"
        )
        words.append(typer.style(text, fg=color) if color else text)
    return " ".join(words)
