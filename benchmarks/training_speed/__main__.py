"""Training speed of Attendo and every installed toolkit, on the same batches, in one process.

Each result is printed at once, tables at the end. The ratios are the result: both sides alternate,
and rounds that differ too much are reported as noisy. A CPU takes minutes for "small" and much
longer for "base": use fewer --steps there.

Run: python -m benchmarks.training_speed [--size small base] [--batch 800x32+32]
Lengths of real text: python -m benchmarks.training_speed --corpus train.en train.de
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from attendo.bench.config import SIZES, TrainingBenchConfig
from attendo.bench.reference_models import PEERS
from attendo.bench.report import HEADERS, describe_setup, format_verdict, missing_notes, table_rows
from attendo.bench.training import benchmark_training
from attendo.core.errors import AttendoError
from attendo.core.files import write_atomically
from attendo.training.progress import ProgressReporter
from benchmarks.sheets import Sheet, to_markdown_table, to_rich

from .toolkits import TOOLKITS

ALL = (*PEERS, *TOOLKITS)


def read_options(arguments: list[str] | None = None) -> argparse.Namespace:
    """Parse the command line; `TrainingBenchConfig` has the defaults."""
    text, kind = __doc__ or "", argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        description=text, formatter_class=kind, argument_default=argparse.SUPPRESS
    )
    parser.add_argument("--size", nargs="+", choices=list(SIZES), default=["base"], dest="sizes")
    parser.add_argument("--device", help="cpu or cuda (default: the GPU where there is one)")
    parser.add_argument("--precision", choices=["auto", "float32", "bfloat16"])
    parser.add_argument("--batch", help="sentences of equal length, e.g. 800x32+32")
    parser.add_argument("--corpus", nargs=2, type=Path, help="two text files, for real lengths")
    parser.add_argument("--batch-tokens", type=int, help="with --corpus: tokens per side")
    parser.add_argument("--steps", type=int, help="number of timed steps in all rounds")
    parser.add_argument(
        "--rounds", type=int, help="number of alternations between Attendo and a toolkit"
    )
    parser.add_argument("--vocab", type=int, dest="vocab_size", help="vocabulary size")
    parser.add_argument("--peers", nargs="*", help=", ".join(peer.name for peer in ALL))
    parser.add_argument("--compile", action=argparse.BooleanOptionalAction)
    parser.add_argument("--markdown", action="store_true", default=False, help="print Markdown")
    parser.add_argument("--out", type=Path, default=None, help="write the results here (JSON)")
    return parser.parse_args(arguments)


def run(options: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure every size, print and write the results."""
    console = Console()
    own_options = ("sizes", "markdown", "out")
    settings = {name: value for name, value in vars(options).items() if name not in own_options}
    reports = []

    def log_line(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    for size in options.sizes:
        config = TrainingBenchConfig(size=size, **settings)
        with ProgressReporter(Console(stderr=True)) as bar:
            reports.append(benchmark_training(config, peers=ALL, log=log_line, progress=bar.stage))
        if options.out is not None:  # keep finished measurements even if a later one fails
            write_atomically(options.out, json.dumps(reports, indent=1) + "\n")
    for report in reports:
        sheet, notes = make_sheet(report), "\n".join(missing_notes(report))
        if options.markdown:
            print(f"\n{sheet.note}\n\n{to_markdown_table(sheet)}\n\n{notes}")
        else:
            console.print(to_rich(sheet), "", notes, highlight=False, markup=False)
    return reports


def make_sheet(report: dict[str, Any]) -> Sheet:
    """Return the table of one measurement."""
    note = f"{format_verdict(report)}. {describe_setup(report)}"
    return Sheet(f"training, {report['size']}", note, list(HEADERS), table_rows(report))


def main() -> None:
    """Run the command; print an `AttendoError` without a traceback."""
    try:
        run(read_options())
    except AttendoError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
