"""`attendo translate`: texts, files and pipes; one line in, one line out."""

from __future__ import annotations

import functools
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.options import (  # noqa: TC001 - typer reads the annotations
    AlphaOption,
    BeamSizeOption,
    DecodingSettingsOption,
    DeviceOption,
    ModelArgument,
    ThreadsOption,
)
from attendo.cli.translation.writing import (
    MAX_NOTES,
    LineFormat,
    NoteReporter,
    TranslationWriter,
    frozen_objects,
    open_output,
    report_unfamiliar,
    write_to,
)
from attendo.core.device import use_threads
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from attendo.cli.translation.confidence import ConfidenceFilter
    from attendo.cli.translation.document import DocumentFile
    from attendo.translator import Translation, Translator
    from attendo.translator.partial_output import PartialOutput

FAILED_EXIT_CODE = 1
"""Exit code if some lines could not be translated."""


def translate(
    model: ModelArgument,
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
    beam_size: BeamSizeOption = 4,
    n_best: Annotated[int, typer.Option(help="Number of translations per text.")] = 1,
    alpha: AlphaOption = 0.6,
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
    settings: DecodingSettingsOption = None,
    agree_with: Annotated[
        Path | None,
        typer.Option(help="References: of the --n-best translations, write the closest one."),
    ] = None,
    tag: Annotated[
        str, typer.Option(help="Begin every output line with this word, e.g. <bt>.")
    ] = "",
    device: DeviceOption = None,
    threads: ThreadsOption = None,
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
            help="Show the confidence of each translation, calibrated on the dev set.",
        ),
    ] = False,
    min_confidence: Annotated[
        float | None,
        typer.Option(
            help="Minimum probability that a translation is right, e.g. 0.95: lines of lower "
            "confidence are left empty, or marked (--below). Needs a calibrated model.",
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
        typer.Option(help="Kind of translation that the model has learned, e.g. polite."),
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
        check_outputs,
        decode_argument,
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
    source, texts = find_named_file(texts, source, output)
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
        from attendo.cli.translation.cluster import check_cluster_options, start_cluster_job

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
        from attendo.cli.translation.document import check_document_options, translate_document_file

        given: dict[str, Any] = {
            "as_json": as_json, "resume": resume, "trace": trace, "agree_with": agree_with,
            "confidence": confidence, "n_best": n_best, "tag": tag, "prefix": prefix,
            "below": below != "empty",
        }  # fmt: skip
        output = check_document_options(document, output, given)
        check_outputs(document.path, output, force=force)
        document.target, document.fuzzy = read_about(model).get("tgt_lang"), fuzzy
        document.min_confidence = min_confidence
        load = functools.partial(load_translator, models, decoder, threads=threads)
        translate_document_file(document, output, load, options, batch_size=batch_size)
        return
    check_outputs(source, output, trace, force=force or resume)
    partial: PartialOutput | None = None
    if (source is not None and output is not None) or resume:
        from attendo.cli.translation.agreement import describe_output
        from attendo.cli.translation.resumable import make_partial_output

        job = {**options, **decoder, "options": options["options"].model_dump(mode="json")}
        job |= {"glossary": glossary and glossary.read_text("utf-8"), "batch_size": batch_size}
        job |= {"n_best": n_best, "json": as_json, **describe_output(agree_with, tag)}
        job |= {"min_confidence": min_confidence, "below": below, "confidence": confidence}
        flags = {"has_trace": trace is not None, "resume": resume, "force": force}
        partial = make_partial_output(source, output, models, job, **flags)
    translator = load_translator(models, decoder, threads=threads)
    translator.backend.max_batch_tokens = batch_size
    confidence_filter: ConfidenceFilter | None = None
    if min_confidence is not None:
        from attendo.cli.translation.confidence import ConfidenceFilter

        confidence_filter = ConfidenceFilter(translator, min_confidence, below)
    num_lines = num_kept = 0
    notes = NoteReporter(None if output is None else MAX_NOTES)
    with ExitStack() as stack:
        steps = translator.make_steps(**options, skip_failed=True)
        groups: Iterator[list[Translation]]
        if texts:
            groups = iter([steps.translate([decode_argument(text) for text in texts])])
        else:
            from attendo.cli.translation.reading import translate_input

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
        writer = TranslationWriter(
            write,
            notes,
            line_format=LineFormat(
                as_json=as_json,
                n_best=1 if agree_with is not None else n_best,
                tag=tag,
                has_confidence=confidence,
                is_screen=output is None,
            ),
            confidence_filter=confidence_filter,
            trace=stack.enter_context(open_output(trace)) if trace else None,
            num_done=num_kept,
        )
        stack.enter_context(frozen_objects())
        groups = chain(() if first is None else (first,), groups)
        if agree_with is not None:
            from attendo.cli.translation.agreement import choose_translations

            groups = choose_translations(groups, agree_with, start=num_kept, num_lines=num_lines)
        for translations in groups:
            writer.write(translations)
    notes.count_rest()
    if confidence or confidence_filter is not None:
        from attendo.cli.translation.confidence import explain_confidence

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
    from attendo.cli.translation import document

    return document.find_document(texts, source, format_name)


def find_named_file(
    texts: list[str] | None, source: Path | None, output: Path | None
) -> tuple[Path | None, list[str] | None]:
    """Return input and texts: with --output, a single text that names a file is the input.

    The name of a document is never a text, with or without --output.
    """
    if source is not None or texts is None or len(texts) != 1:
        return source, texts
    path = Path(texts[0])
    if path.suffix == "":
        return None, texts
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # too long for a name
        return None, texts
    from attendo.documents.formats import is_document

    is_name = is_file or (output is not None and not any(map(str.isspace, texts[0])))
    if is_name and is_document(path):
        return path, None
    return (path, None) if is_file and output is not None else (None, texts)


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
        from attendo.cli.translation.agreement import check_references

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
