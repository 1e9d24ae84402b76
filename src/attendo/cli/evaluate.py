"""`attendo evaluate`: metrics with confidence intervals and signatures.

`attendo.evaluation` computes and writes the report; this module prints. The progress bar goes to
stderr, so that the table or the JSON can be piped.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.console import make_console
from attendo.cli.options import (  # noqa: TC001 - typer reads the annotations
    AlphaOption,
    BeamSizeOption,
    DecodingSettingsOption,
    DeviceOption,
    JsonOption,
)

if TYPE_CHECKING:
    from rich.console import Console

NUM_WORST_SHOWN = 5
SIGNIFICANCE_LEVEL = 0.05


def evaluate(
    model: Annotated[
        Path | None, typer.Argument(help="Model folder or run folder.", show_default=False)
    ] = None,
    ref: Annotated[
        list[Path] | None,
        typer.Option(help="Reference file, one sentence per line; several for several references."),
    ] = None,
    src: Annotated[Path | None, typer.Option(help="Source file, aligned with --ref.")] = None,
    series: Annotated[
        list[Path] | None,
        typer.Option(help="For a time series model: a file with its columns (repeatable)."),
    ] = None,
    outputs: Annotated[
        Path | None, typer.Option(help="Score these translations instead of decoding.")
    ] = None,
    against: Annotated[
        Path | None, typer.Option(help="System to compare with: a model folder or its outputs.")
    ] = None,
    system: Annotated[
        list[str] | None,
        typer.Option(
            help="Outputs of another system, NAME=FILE (repeatable): all in one table, compared "
            "with the model, or with the first one."
        ),
    ] = None,
    tok_ref: Annotated[
        Path | None, typer.Option(help="Tokenized references, for tokenized BLEU.")
    ] = None,
    tok_steps: Annotated[
        str,
        typer.Option(
            help="Steps that make outputs comparable with --tok-ref: as-is, or some of "
            "lower,norm,moses,moses-plain."
        ),
    ] = "",
    lang: Annotated[
        str | None, typer.Option(help="Target language, e.g. de; by default the model's.")
    ] = None,
    measures: Annotated[
        list[str] | None,
        typer.Option("--measure", help="Compute only this metric, e.g. chrf (repeatable)."),
    ] = None,
    beam_size: BeamSizeOption = 4,
    alpha: AlphaOption = 0.6,
    settings: DecodingSettingsOption = None,
    samples: Annotated[
        int, typer.Option(help="Bootstrap samples; 0 omits confidence intervals and p-values.")
    ] = 1000,
    error_rates: Annotated[
        bool,
        typer.Option(
            "--error-rates",
            help="Also report sequence and token error rates; equal sources count once.",
        ),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the report, plots and outputs.")
    ] = None,
    device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score a model on a test set: BLEU with signatures, chrF, TER, and a report."""
    from attendo.cli.inputs import check_files, check_models, read_decoding_options
    from attendo.core.errors import ConfigError
    from attendo.evaluation.evaluate import evaluate as run_evaluation
    from attendo.evaluation.metrics import check_metric_names
    from attendo.evaluation.report_folder import to_json
    from attendo.training.progress import ProgressReporter

    check_models(model, against if against is not None and against.is_dir() else None)
    check_files(*(ref or ()), src, outputs, tok_ref, *(series or ()))
    check_files(None if against is not None and against.is_dir() else against)
    check_metric_names(measures or ())
    systems = read_systems(system or [])
    check_files(*systems.values())
    if series:
        if ref or src is not None:
            reason = "--series is for time series models, --src and --ref are for text models"
            raise ConfigError(reason, hint="omit one of them")
        evaluate_series(model, series, out=out, device=device, as_json=as_json)
        return
    if not ref:
        hint = "pass --ref test.en, or --series test.csv for a time series model"
        raise ConfigError("no references", hint=hint)
    if (
        model is not None
        and outputs is None
        and _evaluate_non_translator(model, ref, src, out, device, as_json)
    ):
        return
    decoding = read_decoding_options({"beam_size": beam_size, "alpha": alpha}, settings or [])
    with ProgressReporter(make_console(stderr=True)) as bar:
        result = run_evaluation(
            model,
            ref=ref,
            src=src,
            outputs=outputs,
            tok_ref=tok_ref,
            tok_steps=[step.strip() for step in tok_steps.split(",")] if tok_steps else [],
            against=against,
            systems=systems,
            lang=lang,
            metrics=measures,
            num_samples=samples,
            error_rates=error_rates,
            out=out,
            device=device,
            progress=bar.stage,
            **decoding,
        )
    if as_json:
        typer.echo(to_json(result.report), nl=False)
        return
    console = make_console()
    print_report(console, result.report)
    print_report_path(console, result.directory)


def read_systems(given: list[str]) -> dict[str, Path]:
    """Return the output file of each system, from `NAME=FILE` texts."""
    from attendo.core.errors import ConfigError
    from attendo.core.message import message

    systems: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not name.strip() or not path.strip():
            raise ConfigError(
                message("--system {text} is not NAME=FILE", text=text),
                hint="write a name, =, and a file: --system google=google.en",
            )
        if name.strip() in systems:
            raise ConfigError(
                message("two systems have the name '{name}'", name=name.strip()),
                hint="give each --system a name of its own",
            )
        systems[name.strip()] = Path(path.strip())
    return systems


def _evaluate_non_translator(
    model: Path,
    refs: list[Path],
    src: Path | None,
    out: Path | None,
    device: str | None,
    as_json: bool,
) -> bool:
    """Evaluate a classifier or a language model; return False for a translator."""
    from attendo.bundle import is_language_model_folder
    from attendo.core.errors import ConfigError
    from attendo.evaluation.report_folder import to_json
    from attendo.tasks.classification.evaluate import evaluate_labels, is_classifier
    from attendo.tasks.language_model.evaluate import evaluate_language_model, format_lines
    from attendo.training.progress import ProgressReporter

    is_language = is_language_model_folder(model)
    if not is_language and not is_classifier(model):
        return False
    ref, *more = refs
    if more:
        raise ConfigError(
            "more than one --ref", hint="only translations can have several references"
        )
    if src is None and not is_language:
        raise ConfigError(
            "no texts to classify", hint="pass the texts with --src and the labels with --ref"
        )
    with ProgressReporter(make_console(stderr=True)) as bar:
        if is_language:
            report, directory = evaluate_language_model(
                model, ref=ref, out=out, device=device, progress=bar.stage
            )
            lines = format_lines(report)
        else:
            scores, report, directory = evaluate_labels(
                model, src=src or ref, ref=ref, out=out, device=device, progress=bar.stage
            )
            lines = scores.to_lines()
    if as_json:
        typer.echo(to_json(report), nl=False)
        return True
    console = make_console()
    for line in lines:
        console.print(line, markup=False, soft_wrap=True)
    print_report_path(console, directory)
    return True


def evaluate_series(
    model: Path | None, paths: list[Path], *, out: Path | None, device: str | None, as_json: bool
) -> None:
    """Evaluate a time series model, compared with climatology, persistence and a regression."""
    from attendo.core.errors import ConfigError
    from attendo.evaluation.report_folder import to_json
    from attendo.tasks.forecasting.evaluate import evaluate_series as run_evaluation
    from attendo.training.progress import ProgressReporter

    if model is None:
        raise ConfigError("no model", hint="pass its folder: attendo evaluate MODEL --series FILE")
    with ProgressReporter(make_console(stderr=True)) as bar:
        result = run_evaluation(model, paths, out=out, device=device, progress=bar.stage)
    if as_json:
        typer.echo(to_json(result.report), nl=False)
        return
    console = make_console()
    print_series_report(console, result.report)
    print_report_path(console, result.directory)


def print_series_report(console: Console, report: dict[str, Any]) -> None:
    """Print every metric next to the baselines, in total and by step."""
    from rich.table import Table

    from attendo.tasks.forecasting.report import step_metric_name, step_table, summary_table

    files = ", ".join(report["data"]["paths"])
    console.print(f"[bold]{report['data']['num_windows']:,} windows[/] of {files}", soft_wrap=True)
    for title, (headers, rows) in (
        ("", summary_table(report)),
        (f"{step_metric_name(report)} by step", step_table(report)),
    ):
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for index, header in enumerate(headers):  # the first holds names, the second the model
            style = "bold" if index == 1 else ""
            table.add_column(header, justify="right" if index else "left", style=style)
        for row in rows:
            table.add_row(*row)
        console.print(f"\n{title}" if title else "")
        console.print(table)
    for note in report["notes"]:
        console.print(f"note: {note}", style="yellow", markup=False, soft_wrap=True)


def print_report_path(console: Console, directory: Path | None) -> None:
    """Print the path of the report, or how to get one."""
    if directory is None:
        console.print("\nuse --out FOLDER to write a report, plots and outputs", style="dim")
    else:
        console.print(f"\nreport: {directory / 'report.md'}", soft_wrap=True)


def print_report(console: Console, report: dict[str, Any]) -> None:
    """Print the scores, other metrics, the worst sentences and notes."""
    from attendo.evaluation.markdown import collect_notes, other_metrics

    data = report["data"]
    refs = " and ".join([data["ref"], *data.get("more_refs", ())])
    console.print(f"[bold]{data['num_sentences']:,} sentences[/] of {refs}", soft_wrap=True)
    print_scores(console, report["system"]["scores"])
    if report["comparison"] is not None:
        print_comparison(console, report)
    if report.get("systems"):
        print_systems(console, report)
    print_rows(console, other_metrics(report))
    print_worst(console, report["system"]["worst"][:NUM_WORST_SHOWN])
    for note in collect_notes(report):
        console.print(f"note: {note}", style="yellow", markup=False)


def print_scores(console: Console, scores: list[dict[str, Any]]) -> None:
    """Print each metric and its signature, on a line of its own to be copied."""
    from attendo.evaluation.markdown import format_interval, metric_title

    width = max(map(len, map(metric_title, scores)), default=0)
    last = "95% interval" if any(map(format_interval, scores)) else ""
    console.print(f"\n{'metric':<{width}}   {'value':>6}   {last}".rstrip(), style="dim")
    for score in scores:
        name = f"{metric_title(score):<{width}}"
        console.print(
            f"{name}   [bold]{score['value']:6.2f}[/]   {format_interval(score)}".rstrip()
        )
        console.print(f"  {score['signature']}", style="dim", markup=False, soft_wrap=True)


def print_comparison(console: Console, report: dict[str, Any]) -> None:
    """Print both systems side by side, and which differences are significant."""
    from rich.table import Table

    from attendo.evaluation.markdown import format_p_value, metric_title

    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column("paired bootstrap", no_wrap=True)
    for header in ("evaluated", "against", "difference", "p"):
        table.add_column(header, justify="right", no_wrap=True)
    table.add_column("")
    for row in report["comparison"]:
        table.add_row(
            metric_title(row),
            f"{row['ours']:.2f}",
            f"{row['theirs']:.2f}",
            f"{row['difference']:+.2f}",
            format_p_value(row),
            format_significance(row),
        )
    console.print()
    console.print(f"against {report['against']['name']}", soft_wrap=True, markup=False)
    console.print(table)


def print_systems(console: Console, report: dict[str, Any]) -> None:
    """Print the scores of all systems with their intervals, one system per row."""
    from rich.markup import escape
    from rich.table import Table

    from attendo.evaluation.markdown import systems_table

    headers, rows = systems_table(report)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for index, header in enumerate(headers):
        table.add_column(header, justify="right" if index else "left", no_wrap=not index)
    for row in rows:
        table.add_row(*map(escape, row))
    console.print()
    console.print(table)
    console.print(
        f"(95% interval); paired bootstrap against {rows[0][0]}: * p < 0.05, ** p < 0.01",
        style="dim",
        markup=False,
        soft_wrap=True,
    )


def format_significance(row: dict[str, Any]) -> str:
    """Return which system is better, if the difference is significant."""
    if row["p_value"] is None:
        return ""
    if row["p_value"] >= SIGNIFICANCE_LEVEL or not row["difference"]:
        return "[dim]not significant[/]"
    is_better = (row["difference"] < 0) == row["lower_is_better"]
    return "[green]better[/]" if is_better else "[red]worse[/]"


def print_rows(console: Console, rows: list[tuple[str, ...]]) -> None:
    """Print the other metrics."""
    from rich.table import Table

    headers = ("evaluated", "against")[: len(rows[0]) - 1]
    is_comparison = len(headers) > 1
    table = Table(box=None, show_header=is_comparison, pad_edge=False, padding=(0, 3, 0, 0))
    table.add_column()
    for header in headers:
        table.add_column(header, justify="right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print()
    console.print(table)


def print_worst(console: Console, sentences: list[dict[str, Any]]) -> None:
    """Print the sentences with the lowest chrF."""
    from rich.markup import escape
    from rich.table import Table

    console.print("\n[bold]worst sentences by chrF[/]")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for sentence in sentences:
        labels = [f"line {sentence['line']}", f"chrF {sentence['chrf']:.1f}", ""]
        sides = ["source", "output", "reference"] if sentence["source"] else ["output", "reference"]
        for label, side in zip(labels, sides, strict=False):
            table.add_row(label, side, escape(sentence[side]) or "[dim](empty)[/]")
    console.print(table)
