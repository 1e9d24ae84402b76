"""The facts printed before a run starts, and the report at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.core.files import write_atomically
from attendo.core.hardware import inspect_system
from attendo.core.message import join_messages, message
from attendo.core.version import __version__
from attendo.text.tokenizer import UNK_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.architectures.registry import Model
    from attendo.data.batching import BatchPlan
    from attendo.data.findings import Finding
    from attendo.data.pipeline import PreparedData
    from attendo.evaluation.calibration import Calibration
    from attendo.tasks.config import RunConfig
    from attendo.tasks.task import Task
    from attendo.translator.quality import QualityTable

METRIC_FORMATS = {
    "loss": ("loss", ".3f"),
    "perplexity": ("perplexity", ".3f"),
    "accuracy": ("token accuracy", ".2%"),
    "bleu": ("BLEU", ".2f"),
    "chrf": ("chrF", ".2f"),
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
MAX_WARNINGS = 5
"""Warnings of the data check that are printed before training."""


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
        "files": [*prepared.file_digests],
        "unit": "texts" if is_monolingual else "pairs",
        "pairs": num_train,
        "dev_pairs": num_dev,
        "cleaning": {key: part for key, part in prepared.report.items() if key != "check"},
        "check": prepared.report.get("check", []),
        "src_vocab_size": tokenizer.src_vocab_size,
        "tgt_vocab_size": tokenizer.tgt_vocab_size,
        "batches_per_epoch": len(batches),
        "padding": {"src": padding.src, "tgt": padding.tgt, "total": padding.mean},
        "parameters": model.num_parameters(),
        "tokens": measure_tokens(prepared),
        "lines": lines,
    }


def measure_tokens(prepared: PreparedData) -> dict[str, Any]:
    """Return the loss on dev of a model that knows token frequencies only, and unknown tokens.

    `attendo doctor` compares the training curve with that loss.
    """
    tokenizer, dev = prepared.tokenizer, prepared.dev
    train = np.ones(tokenizer.tgt_vocab_size)
    for corpus, _ in prepared.train:
        train += corpus.count_tgt_ids(len(train))
    targets = dev.count_tgt_ids(len(train))
    sources = dev.count_src_ids(tokenizer.src_vocab_size)
    num_src, num_tgt = max(int(sources.sum()), 1), max(int(targets.sum()), 1)
    return {
        "unigram_loss": float(targets @ -np.log(train / train.sum())) / num_tgt,
        "unknown": {"src": int(sources[UNK_ID]) / num_src, "tgt": int(targets[UNK_ID]) / num_tgt},
    }


def _model_name(config: RunConfig) -> str:
    kind, init_from = config.model.kind, config.model.init_from
    if init_from:
        return message("{kind} that starts from {folder}", kind=kind, folder=init_from)
    return f"{config.model.preset} {kind}"


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


def summarize_findings(findings: Sequence[Finding]) -> list[str]:
    """Return one line per warning of the data check, and where to read more."""
    warnings = [finding for finding in findings if finding.severity == "warning"]
    lines = [
        message("data check: {detail}", detail=finding.message)
        for finding in warnings[:MAX_WARNINGS]
    ]
    if warnings:
        lines.append(message("  attendo check with the same files shows examples and hints"))
    return lines


def _check_section(findings: Sequence[dict[str, Any]]) -> list[str]:
    """Return the section of the report on the data check, if it has found anything."""
    lines = [
        f"- {finding['severity']}: {finding['message']}. {finding['hint']}." for finding in findings
    ]
    return ["## Data check", "\n".join(lines)] if lines else []


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
    averaging = _describe_averaging(averaged_steps)
    hardware_name = ", ".join(hardware.gpus) or f"{hardware.cpu}, {hardware.cores} cores"
    parts = [
        f"# {task.directory.name}",
        f"Scores of the finished model ({averaging}) on dev, {facts['dev_pairs']:,} "
        f"{facts.get('unit', 'pairs')}:",
        _markdown_table(task.headline_metrics, [dev]),
        task.explain_score(dev),
        *([calibration_line(calibration)] if calibration else []),
        *(_quality_lines(calibration.quality) if calibration and calibration.quality else []),
        "## Data and model",
        "```\n" + "\n".join(facts["lines"]) + "\n```",
        *_check_section(facts.get("check", [])),
        "## Training",
        f"{report['steps']:,} steps, {report['tokens_per_second']:,.0f} target tokens/s (median) "
        f"on {hardware_name}",
        _markdown_table(("step", *metric_names), validations),
    ]
    write_atomically(task.folder.report_page_path, "\n\n".join(parts) + "\n")
    return report


def _describe_averaging(steps: Sequence[int]) -> str:
    if not steps:
        return "exponential moving average"
    listing = ", ".join(f"{step:,}" for step in steps)
    if len(steps) == 1:
        return f"checkpoint of step {listing}"
    return f"average of the checkpoints of steps {listing}"


def format_headline(names: Sequence[str], dev: dict[str, Any]) -> str:
    """Return the headline metrics as one line.

    >>> format_headline(("bleu", "perplexity"), {"perplexity": 4.0, "bleu": 31.4159})
    'BLEU 31.42, perplexity 4.000'
    """
    scores = {name: _format_metric(name, dev) for name in names}
    return join_messages(
        ", ",
        [
            message("{metric} {score}", metric=message(METRIC_FORMATS[name][0]), score=score)
            for name, score in scores.items()
        ],
    )


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


def _quality_lines(table: QualityTable) -> list[str]:
    """Return what the bands of the confidence mean on dev."""
    criterion = (
        "equal to the reference" if table.min_chrf is None else f"chrF at least {table.min_chrf:g}"
    )
    rows = [
        f"| {band} | {counts.count:,} | {counts.num_right / max(counts.count, 1):.0%} "
        f"| {counts.num_exact / max(counts.count, 1):.0%} |"
        for band, counts in table.bands.items()
    ]
    area = (
        "" if table.auroc is None else f", which separates them with an AUROC of {table.auroc:.2f}"
    )
    introduction = (
        f"Confidence, by `{table.score}`{area}, on {table.num_sentences:,} greedy translations of "
        f"dev; right: {criterion}:"
    )
    header = ["| band | sentences | right | equal to the reference |", "|---|---|---|---|"]
    return [introduction, "\n".join([*header, *rows])]


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0
