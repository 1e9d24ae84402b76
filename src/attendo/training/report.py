"""What a run says of itself: before it starts, and in `report.md` and `report.json` at its end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.core.files import write_atomically
from attendo.core.machine import examine
from attendo.core.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.baselines.factory import Model
    from attendo.data.batching import BatchPlan
    from attendo.data.prepare import PreparedData
    from attendo.evaluation.calibration import Calibration
    from attendo.training.config import RunConfig


def describe(
    config: RunConfig, prepared: PreparedData, plan: BatchPlan, model: Model
) -> dict[str, Any]:
    """Gather the facts of the data and the model, as JSON and as lines to read."""
    batches = plan.epoch(0)
    waste = plan.waste(batches)
    tokenizer = prepared.tokenizer
    num_train = sum(corpus["num_train"] for corpus in prepared.report["corpora"])
    kind = config.data.tokenizer.kind
    vocabulary = (
        f"vocabulary: {tokenizer.src_vocab_size:,} shared ({kind})"
        if tokenizer.is_shared
        else f"vocabulary: {tokenizer.src_vocab_size:,} and {tokenizer.tgt_vocab_size:,} ({kind})"
    )
    lines = [
        f"data: {num_train:,} pairs to train on, {len(prepared.dev):,} for dev",
        *(f"  {line}" for line in table_lines(prepared.report)),
        vocabulary,
        f"batches: {len(batches):,} an epoch, at most {config.train.batch_tokens:,} tokens a side, "
        f"padding {waste.total:.1%}",
        f"model: {_name(config)}, {model.num_parameters():,} parameters",
    ]
    return {
        "key": prepared.directory.name,
        "pairs": num_train,
        "dev_pairs": len(prepared.dev),
        "cleaning": prepared.report,
        "src_vocab_size": tokenizer.src_vocab_size,
        "tgt_vocab_size": tokenizer.tgt_vocab_size,
        "batches_an_epoch": len(batches),
        "padding": {"src": waste.src, "tgt": waste.tgt, "total": waste.total},
        "parameters": model.num_parameters(),
        "lines": lines,
    }


def _name(config: RunConfig) -> str:
    begun = config.model.init_from
    origin = f"from {begun}," if begun else config.model.preset
    return f"{origin} {config.model.kind}"


def table_lines(report: dict[str, Any]) -> list[str]:
    """Word the table of what was kept and dropped."""
    return [
        f"{row['num_pairs']:>11,}  {row['what']:<28}{row['example']}".rstrip()
        for corpus in report["corpora"]
        for row in corpus["rows"]
    ]


def render(
    directory: Path,
    config: RunConfig,
    facts: dict[str, Any],
    dev: dict[str, Any],
    calibration: Calibration,
    events: list[dict[str, Any]],
    averaged_steps: list[int],
) -> dict[str, Any]:
    """Write `report.md`; give the same as JSON."""
    machine = examine()
    steps = [event for event in events if event["event"] == "train"]
    report = {
        "attendo": __version__,
        "dev": dev,
        "calibration": calibration.model_dump(mode="json"),
        "steps": max((event["step"] for event in events), default=0),
        "averaged_steps": averaged_steps,
        "tokens_per_second": _median([event["tokens_per_second"] for event in steps]),
        "machine": {"cpu": machine.cpu, "cores": machine.cores, "gpus": machine.gpus},
        "data": {key: value for key, value in facts.items() if key != "lines"},
        "config": config.model_dump(mode="json"),
    }
    validations = [event for event in events if event["event"] == "validation"]
    rows = "\n".join(
        f"| {event['step']} | {event['loss']:.3f} | {event['perplexity']:.2f} "
        f"| {event['accuracy']:.1%} | {event.get('bleu', float('nan')):.1f} |"
        for event in validations
    )
    hardware = ", ".join(machine.gpus) or f"{machine.cpu}, {machine.cores} cores"
    nl = "\n"
    write_atomically(
        directory / "report.md",
        f"# {directory.name}\n\n"
        f"Finished model (mean of {len(averaged_steps) or 'all'} checkpoints), dev of "
        f"{facts['dev_pairs']:,} pairs:\n\n"
        f"| BLEU | perplexity | token accuracy |\n|---|---|---|\n"
        f"| {dev['bleu']:.2f} | {dev['perplexity']:.3f} | {dev['accuracy']:.2%} |\n\n"
        f"BLEU: {dev['decoding']} decoding of {dev['bleu_sentences']} sentences, "
        f"`{dev['bleu_signature']}`\n\n"
        f"{calibration_line(calibration)}\n\n"
        f"## Data and model\n\n```\n{nl.join(facts['lines'])}\n```\n\n"
        f"## Training\n\n{report['steps']:,} steps, {report['tokens_per_second']:,.0f} target "
        f"tokens/s (median) on {hardware}\n\n"
        f"| step | dev loss | perplexity | accuracy | BLEU |\n|---|---|---|---|---|\n{rows}\n",
    )
    return report


def calibration_line(found: Calibration) -> str:
    """Word what the temperature mends."""
    return (
        f"Calibration: temperature {found.temperature:.2f}, expected calibration error "
        f"{100 * found.ece_before:.1f} % -> {100 * found.ece_after:.1f} % on "
        f"{found.num_tokens:,} dev tokens (teacher forcing)"
    )


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2] if values else 0.0
