"""`attendo export`: a model for another library, verified against it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from attendo.cli.options import JsonOption  # noqa: TC001 - typer reads the annotations
from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from attendo.interop.export import ExportReport
    from attendo.interop.parity import Parity

MISMATCH_EXIT_CODE = 1
"""Exit code if the other library computes different results."""


def export(
    models: Annotated[
        list[Path],
        typer.Argument(
            metavar="MODEL...", help="Model folder or run folder; a web page may have several."
        ),
    ],
    to: Annotated[
        str,
        typer.Option(help="Format: attendo, hf-marian, ctranslate2, onnx, transformers-js or web."),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="Output folder; must not exist yet. For web also a file *.html, which opens "
            "without a server.",
        ),
    ],
    quantization: Annotated[
        str | None,
        typer.Option(
            help="For ctranslate2: int8, int8_bfloat16 or float16; by default float32. For attendo "
            "(a model folder): int8 or float16. For web: int8, float16 or float32; by default "
            "int8."
        ),
    ] = None,
    sentences: Annotated[
        Path | None,
        typer.Option(
            help="Verify the export on the lines of this file; by default on generated sentences."
        ),
    ] = None,
    example: Annotated[
        list[str] | None,
        typer.Option(help="For web: a text that the page begins with; repeat for more."),
    ] = None,
    webgpu: Annotated[
        bool,
        typer.Option(
            "--webgpu",
            help="For web: add 4 MB that run large models in float16 or float32 on the graphics "
            "processor, in browsers that can; nobody else loads them.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Export a model to Hugging Face Marian, CTranslate2, ONNX or a web page."""
    if to == "web":
        export_page(
            models, out, quantization or "int8", example or [], webgpu=webgpu, as_json=as_json
        )
        return
    if len(models) > 1:
        raise InputError(
            message("{count} models for one folder", count=len(models)),
            hint="export them one by one; only --to web takes several",
        )
    from attendo.interop.export import export as write
    from attendo.text.lines import check_readable, read_lines

    lines = None
    if sentences is not None:
        check_readable(sentences)
        lines = list(read_lines(sentences))
    report = write(models[0], to=to, out=out, quantization=quantization, sentences=lines)
    typer.echo(
        json.dumps(report.to_dict(), ensure_ascii=False) if as_json else format_report(report)
    )
    is_exact = quantization is None and report.parity is not None
    if is_exact and report.parity is not None and not report.parity.is_faithful:
        typer.echo(
            "warning: the other library computes different results; do not use the export", err=True
        )
        raise typer.Exit(MISMATCH_EXIT_CODE)


def export_page(
    models: list[Path],
    out: Path,
    precision: str,
    examples: list[str],
    *,
    webgpu: bool,
    as_json: bool,
) -> None:
    """Write a page that runs the models in the browser, and print how to open it."""
    from attendo.interop.web.export import export_web
    from attendo.lessons.machine_values import page_drawing

    written = export_web(
        models, out, precision=precision, examples=examples, draw=page_drawing, webgpu=webgpu
    )
    if as_json:
        values = {
            "format": "web",
            "path": str(written.path),
            "models": written.names,
            "quantization": precision,
            "num_bytes": written.num_bytes,
        }
        typer.echo(json.dumps(values, ensure_ascii=False))
        return
    lang = choose_language()
    done = message(
        "{path}: a web page with {names}, {precision}, {size:.1f} MB",
        path=written.path,
        names=", ".join(written.names),
        precision=precision,
        size=written.num_bytes / 1e6,
    )
    typer.echo(translate_message(done, lang))
    if written.path.is_file():
        typer.echo(translate_message("Open the file in a browser; it needs nothing else.", lang))
        return
    typer.echo(translate_message("Copy the folder to any web server. To try it here:", lang))
    typer.echo(f"  python -m http.server --directory {shlex.quote(str(written.path))}")


def format_report(report: ExportReport) -> str:
    """Return lines with what was written and how it compares."""
    kind = report.quantization or "float32"
    lines = [f"{report.folder}: {report.format}, {kind}, {report.num_bytes / 1e6:.1f} MB"]
    if report.parity is None:
        return "\n".join([*lines, str(report.unchecked)])
    return "\n".join([*lines, *format_parity(report.parity)])


def format_parity(parity: Parity) -> list[str]:
    """Return the comparison as lines."""
    count = parity.num_sentences
    lines = [
        f"comparison on {count} sentences:",
        f"  largest difference of {parity.measure}: {parity.largest_difference:.1e}",
    ]
    for beam, same in parity.same_text.items():
        name = "greedy" if beam == 1 else f"beam {beam}"
        lines.append(f"  same text, {name}: {same} of {count}")
    for example in parity.differing:
        lines += [
            f"  {example['source']}",
            f"    ours:   {example['ours']}",
            f"    theirs: {example['theirs']}",
        ]
    return lines
