"""`attendo bench serve`: prints what `attendo.bench.serving` measures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console


def run_serving(
    model: Path | None,
    *,
    url: str | None,
    loads: list[str] | None,
    seconds: float | None,
    engine: str | None,
    settings: list[str],
) -> dict[str, Any]:
    """Measure a server; progress goes to stderr."""
    from attendo.bench.serving import ServingBenchConfig, benchmark_serving

    given: dict[str, Any] = {
        "model": model, "url": url, "loads": loads, "seconds": seconds, "engine": engine,
        "settings": settings,
    }  # fmt: skip
    config = ServingBenchConfig(**{key: value for key, value in given.items() if value is not None})
    return benchmark_serving(config, log=lambda line: typer.echo(line, err=True))


def print_serving(console: Console, report: dict[str, Any]) -> None:
    """Print the results and the setup."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from attendo.bench.serving import HEADERS, table_rows

    lang = choose_language(None)
    table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for header in HEADERS:
        table.add_column(translate_message(message(header), lang), justify="right")
    for row in table_rows(report):
        table.add_row(*row)
    console.print(table)
    setup = message(
        "{server}, engine {engine}, {seconds} s per load, {count} different texts, {cores} cores "
        "for server and clients",
        server=report["server"],
        engine=report["engine"] or "?",
        seconds=f"{report['seconds']:g}",
        count=report["num_texts"],
        cores=report["cores"],
    )
    console.print(translate_message(setup, lang), style="dim", markup=False, soft_wrap=True)
    if report["graph_captures_after_warm_up"] is not None:
        captures = message(
            "CUDA graphs: {count} captured, {late} of them after the warm-up",
            count=report["graph_captures"],
            late=report["graph_captures_after_warm_up"],
        )
        console.print(translate_message(captures, lang), markup=False)
