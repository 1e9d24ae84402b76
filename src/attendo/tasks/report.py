"""The facts printed before a run starts, and the report at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.core.files import write_atomically
from attendo.core.hardware import inspect_system
from attendo.core.message import message
from attendo.core.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.architectures.registry import Model
    from attendo.data.batching import BatchPlan
    from attendo.data.pipeline import PreparedData
    from attendo.evaluation.calibration import Calibration
    from attendo.tasks.config import RunConfig
    from attendo.tasks.task import Task

METRIC_FORMATS = {
    "loss": ("loss", ".3f"),
    "perplexity": ("perplexity", ".3f"),
    "accuracy": ("token accuracy", ".2%"),
    "bleu": ("BLEU", ".2f"),
    "exact": ("accuracy", ".2%"),
    "macro_f1": ("macro F1", ".3f"),
    "rarest_f1": ("F1 of the rarest label", ".3f"),
    "ece": ("ECE", ".4f"),
    "bits_per_character": ("bits per character", ".3f"),
    "brier": ("Brier score", ".4f"),
    "log_loss": ("log loss", ".4f"),
    "mae": ("MAE", ".4g"),
    "rmse": ("RMSE", ".4g"),
}
"""The metrics that reports show, in this order: the displayed name and the number format."""


def describe_run(
    config: RunConfig, prepared: PreparedData, plan: BatchPlan, model: Model
) -> dict[str, Any]:
    """Return the facts of data and model, as JSON and as lines to print."""
    batches = plan.epoch(0)
    padding = plan.padding_stats(batches)
    tokenizer = prepared.tokenizer
    num_train = sum(corpus["num_train"] for corpus in prepared.report["corpora"])
    kind = config.text_data.tokenizer.kind
    vocabulary = (
        message(
            "vocabulary: {count} shared ({kind})", count=f"{tokenizer.src_vocab_size:,}", kind=kind
        )
        if tokenizer.is_shared
        else message(
            "vocabulary: {src} and {tgt} ({kind})",
            src=f"{tokenizer.src_vocab_size:,}",
            tgt=f"{tokenizer.tgt_vocab_size:,}",
            kind=kind,
        )
    )
    is_monolingual = config.text_data.is_monolingual
    num_dev = len(prepared.dev)
    data = (
        message(
            "data: {num_train} texts to train on, {num_dev} for dev",
            num_train=f"{num_train:,}",
            num_dev=f"{num_dev:,}",
        )
        if is_monolingual
        else message(
            "data: {num_train} pairs to train on, {num_dev} for dev",
            num_train=f"{num_train:,}",
            num_dev=f"{num_dev:,}",
        )
    )
    lines = [
        data,
        *(message("  {line}", line=line) for line in cleaning_table_lines(prepared.report)),
        vocabulary,
        message(
            "batches: {count} per epoch, at most {most} tokens per side, padding {share}",
            count=f"{len(batches):,}",
            most=f"{config.train.batch_tokens:,}",
            share=f"{padding.mean:.1%}",
        ),
        message(
            "model: {name}, {count} parameters",
            name=_model_name(config),
            count=f"{model.num_parameters():,}",
        ),
    ]
    return {
        "key": prepared.directory.name,
        "unit": "texts" if is_monolingual else "pairs",
        "pairs": num_train,
        "dev_pairs": num_dev,
        "cleaning": prepared.report,
        "src_vocab_size": tokenizer.src_vocab_size,
        "tgt_vocab_size": tokenizer.tgt_vocab_size,
        "batches_per_epoch": len(batches),
        "padding": {"src": padding.src, "tgt": padding.tgt, "total": padding.mean},
        "parameters": model.num_parameters(),
        "lines": lines,
    }


def _model_name(config: RunConfig) -> str:
    init_from = config.model.init_from
    origin = f"from {init_from}," if init_from else config.model.preset
    return f"{origin} {config.model.kind}"


def cleaning_table_lines(report: dict[str, Any]) -> list[str]:
    """Return the table of kept and dropped pairs as lines."""
    return [
        message(
            "{count:>11,}  {reason:<28}{example}" if row["example"] else "{count:>11,}  {reason}",
            count=row["num_pairs"],
            reason=message(row["what"]),
            example=row["example"],
        )
        for corpus in report["corpora"]
        for row in corpus["rows"]
    ]


def write_report(
    task: Task,
    facts: dict[str, Any],
    dev: dict[str, Any],
    calibration: Calibration | None,
    events: list[dict[str, Any]],
    averaged_steps: list[int],
) -> dict[str, Any]:
    """Write the report as Markdown; return it as JSON."""
    hardware = inspect_system()
    steps = [event for event in events if event["event"] == "train"]
    report = {
        "attendo": __version__,
        "dev": dev,
        "calibration": calibration.model_dump(mode="json") if calibration else None,
        "steps": max((event["step"] for event in events), default=0),
        "averaged_steps": averaged_steps,
        "tokens_per_second": _median([event["tokens_per_second"] for event in steps]),
        "machine": {"cpu": hardware.cpu, "cores": hardware.cores, "gpus": hardware.gpus},
        "data": {key: value for key, value in facts.items() if key != "lines"},
        "config": task.config.model_dump(mode="json"),
    }
    validations = [event for event in events if event["event"] == "validation"]
    metric_names = [name for name in METRIC_FORMATS if any(name in event for event in validations)]
    averaging = (
        f"average of the last {len(averaged_steps)} checkpoints"
        if averaged_steps
        else "exponential moving average"
    )
    hardware_name = ", ".join(hardware.gpus) or f"{hardware.cpu}, {hardware.cores} cores"
    parts = [
        f"# {task.directory.name}",
        f"Scores of the finished model ({averaging}) on dev, {facts['dev_pairs']:,} "
        f"{facts.get('unit', 'pairs')}:",
        _markdown_table(task.headline_metrics, [dev]),
        task.explain_score(dev),
        *([calibration_line(calibration)] if calibration else []),
        "## Data and model",
        "```\n" + "\n".join(facts["lines"]) + "\n```",
        "## Training",
        f"{report['steps']:,} steps, {report['tokens_per_second']:,.0f} target tokens/s (median) "
        f"on {hardware_name}",
        _markdown_table(("step", *metric_names), validations),
    ]
    write_atomically(task.folder.report_page_path, "\n\n".join(parts) + "\n")
    return report


def format_headline(names: Sequence[str], dev: dict[str, Any]) -> str:
    """Return the headline metrics as one line.

    >>> format_headline(("bleu", "perplexity"), {"perplexity": 4.0, "bleu": 31.4159})
    'BLEU 31.42, perplexity 4.000'
    """
    return ", ".join(f"{METRIC_FORMATS[name][0]} {_format_metric(name, dev)}" for name in names)


def _markdown_table(names: Sequence[str], rows: Sequence[dict[str, Any]]) -> str:
    headers = [METRIC_FORMATS[name][0] if name in METRIC_FORMATS else name for name in names]
    lines = [
        headers,
        ["---"] * len(headers),
        *([_format_metric(name, row) for name in names] for row in rows),
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _format_metric(name: str, values: dict[str, Any]) -> str:
    if name not in METRIC_FORMATS:
        return str(values[name])
    return format(values[name], METRIC_FORMATS[name][1]) if name in values else ""


def calibration_line(calibration: Calibration) -> str:
    """Return a line on the fitted temperature."""
    return (
        f"Calibration: temperature {calibration.temperature:.2f}, expected calibration error "
        f"{100 * calibration.ece_before:.1f} % -> {100 * calibration.ece_after:.1f} % on "
        f"{calibration.num_tokens:,} dev tokens (teacher forcing)"
    )


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0
