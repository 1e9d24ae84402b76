"""`attendo export`: a model for another library, verified against it."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from attendo.interop.export import ExportReport
    from attendo.interop.parity import Parity

MISMATCH_EXIT_CODE = 1
"""Exit code if the other library computes different results."""


def export(
    model: Annotated[Path, typer.Argument(help="Model folder or run folder.")],
    to: Annotated[str, typer.Option(help="Format: hf-marian, ctranslate2 or onnx.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Output folder; must not exist yet.")],
    quantization: Annotated[
        str | None,
        typer.Option(help="For ctranslate2: int8, int8_bfloat16 or float16; by default float32."),
    ] = None,
    sentences: Annotated[
        Path | None,
        typer.Option(
            help="Verify the export on the lines of this file; by default on generated sentences."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Export a model to Hugging Face Marian, CTranslate2 or ONNX."""
    from attendo.interop.export import export as write
    from attendo.text.lines import check_readable, read_lines

    lines = None
    if sentences is not None:
        check_readable(sentences)
        lines = list(read_lines(sentences))
    report = write(model, to=to, out=out, quantization=quantization, sentences=lines)
    typer.echo(
        json.dumps(report.to_dict(), ensure_ascii=False) if as_json else format_report(report)
    )
    is_exact = quantization is None and report.parity is not None
    if is_exact and report.parity is not None and not report.parity.is_faithful:
        typer.echo(
            "warning: the other library computes different results; do not use the export", err=True
        )
        raise typer.Exit(MISMATCH_EXIT_CODE)


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
