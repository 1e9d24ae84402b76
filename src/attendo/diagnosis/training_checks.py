"""What the log of a run says: collapse, divergence, overfitting, early stopping, progress, data.

Every finding has figures from the files of the run and, if there is something to do, the next
command to type.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from attendo.core.message import message
from attendo.data.findings import Finding as DataFinding
from attendo.diagnosis.run_log import LABELS, find_best, format_score
from attendo.diagnosis.training_record import SEVERITIES, RunRecord, TrainingFinding
from attendo.training.schedule import HIGH_RATE_RATIO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attendo.diagnosis.run_log import Point, TrainingLog
    from attendo.diagnosis.training_record import Severity

UNIGRAM_MARGIN = 0.97
"""A loss above this share of the unigram loss ignores source and context."""
COLLAPSED_ACCURACY, COLLAPSED_BLEU = 0.2, 1.0
FLAT_CHANGE = 0.02
"""A loss that changes by less than this share is flat."""
OVERFITTING_RISE = 0.02
"""Share by which dev loss rises above its minimum before the run counts as overfitted."""
STILL_IMPROVING_GAIN = {"loss": 0.01, "bleu": 0.3, "chrf": 0.3}
"""Gain over the last quarter of training that says that more steps would help; of the loss, a
share of it."""
MIN_VALIDATIONS = 4
MIN_STEPS, USUAL_STEPS = 100, 1000
"""Steps below which curves say nothing, and steps that small corpora need."""
MANY_UNKNOWN = 0.02
MUCH_PADDING = 0.3
SMALL_DEV, FEW_PAIRS = 200, 10_000


def check_training(record: RunRecord) -> list[TrainingFinding]:
    """Return what the files of a run say, the most severe first."""
    findings = [finding for check in CHECKS for finding in check(record)]
    if not any(finding.severity in ("error", "warning") for finding in findings):
        is_overfitted = any(finding.code == "overfitting" for finding in findings)
        findings += _nothing_found(record, is_overfitted=is_overfitted)
    findings += check_data(record)
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))


def _nothing_found(record: RunRecord, *, is_overfitted: bool) -> Iterator[TrainingFinding]:
    best = record.log.best
    if best is not None and record.log.last_step:
        template = (
            "training is healthy: no collapse or divergence in {count} validations"
            if is_overfitted
            else "training is healthy: no collapse, divergence or overfitting in {count} "
            "validations"
        )
        text = message(template, count=len(record.log.dev_loss))
        yield TrainingFinding("healthy", "good", text)


# -- the curves


def check_divergence(record: RunRecord) -> Iterator[TrainingFinding]:
    """Report a loss that became NaN or infinite."""
    events = [event for event in record.log.events if event["event"] == "diverged"]
    if not events:
        return
    text = message(
        "diverged: the loss became NaN or infinite at step {step}; the highest learning rate is "
        "{rate}, the paper's for this width {paper}",
        step=f"{events[-1]['step']:,}",
        rate=_format_rate(record.peak_lr),
        paper=_format_rate(record.paper_peak_lr),
    )
    hint = "start a new run with a lower learning rate and clipped gradients"
    command = record.command(*record.lower_rate_settings(), "train.clip_norm=1")
    yield TrainingFinding("diverged", "error", text, hint, command)


def check_warmup(record: RunRecord) -> Iterator[TrainingFinding]:
    """Report a run that ended before the learning rate reached its peak."""
    steps, warmup = record.log.last_step, record.train.get("warmup_steps")
    if not record.is_finished or not warmup or not steps or steps >= warmup:
        return
    text = message(
        "ended at step {step}, within its warm-up of {count} steps: the learning rate reached "
        "{share} of its peak, and little was learned",
        step=f"{steps:,}",
        count=f"{warmup:,}",
        share=f"{steps / warmup:.1%}",
    )
    if record.log.stop_reason == "finish":
        command = record.command(steps=record.train.get("max_steps"), is_new=False)
        yield TrainingFinding("within_warmup", "error", text, "resume it", command)
        return
    command = record.command(f"train.warmup_steps={max(steps // 10, 1)}")
    hint = "use a shorter warm-up or more steps"
    yield TrainingFinding("within_warmup", "error", text, hint, command)


def check_length(record: RunRecord) -> Iterator[TrainingFinding]:
    """Report a run that had too few steps for its curves to say anything."""
    steps = record.log.last_step
    is_new = record.config.get("data") and not record.config.get("model", {}).get("init_from")
    if not record.is_finished or not is_new or record.classifies or not 0 < steps < MIN_STEPS:
        return
    text = message("ended after {count} steps: too few to learn from text", count=f"{steps:,}")
    hint = "start a new run with more steps; without --steps they follow from the data"
    command = record.command(*record.settings_for(USUAL_STEPS), steps=USUAL_STEPS)
    yield TrainingFinding("few_steps", "warning", text, hint, command)


def has_collapsed(record: RunRecord) -> bool:
    """Return whether dev stays at the level of token frequencies: nothing was learned from src."""
    losses, log = record.log.dev_loss, record.log
    least_steps = max(MIN_STEPS, record.train.get("warmup_steps", 0))
    has_few = len(losses) < 2 or log.last_step < least_steps
    if has_few or record.classifies or not record.config.get("data"):
        return False
    unigram = record.data.get("tokens", {}).get("unigram_loss")
    accuracy, bleu = log.curve("validation", "accuracy"), log.curve("validation", "bleu")
    is_poor = (not accuracy or accuracy[-1].value < COLLAPSED_ACCURACY) and (
        not bleu or bleu[-1].value < COLLAPSED_BLEU
    )
    best = min(point.value for point in losses)
    if unigram is not None and losses[-1].value < UNIGRAM_MARGIN * unigram:
        return False
    return is_poor and flat_since(losses) is not None and losses[-1].value > best * 0.9


def flat_since(points: list[Point]) -> int | None:
    """Return the step from which on a curve hardly changes, if that is at least its second half.

    >>> from attendo.diagnosis.run_log import Point
    >>> flat_since([Point(1, 9.0), Point(2, 6.4), Point(3, 6.38), Point(4, 6.39)])
    2
    >>> flat_since([Point(1, 4.0), Point(2, 3.0), Point(3, 2.5)]) is None
    True
    """
    last = points[-1].value
    start = len(points) - 1
    while start > 0 and abs(points[start - 1].value - last) <= FLAT_CHANGE * abs(last):
        start -= 1
    is_half = len(points) - start >= max(2, len(points) / 2)
    return points[start].step if is_half else None


def check_collapse(record: RunRecord) -> Iterator[TrainingFinding]:
    """Report a run that outputs frequent tokens whatever the source is."""
    if not has_collapsed(record):
        return
    log = record.log
    loss, since = log.dev_loss[-1], flat_since(log.dev_loss)
    unigram = record.data.get("tokens", {}).get("unigram_loss")
    text = message(
        "collapsed: dev loss is flat at {loss} since step {step}{level}{scores}: the model ignores "
        "its input",
        loss=f"{loss.value:.3f}",
        step=f"{since:,}",
        level=message(
            ", the level of token frequencies alone ({unigram})", unigram=f"{unigram:.3f}"
        )
        if unigram is not None
        else "",
        scores=_last_scores(log),
    )
    rate = _rate_ratio(record)
    hint = "start a new run with a lower learning rate, or a longer warm-up"
    command = record.command(*record.lower_rate_settings())
    if rate is not None and rate <= 1:
        hint = "check the data with attendo check, and train for longer with clipped gradients"
        command = record.command("model.norm=pre", "train.clip_norm=1")
    yield TrainingFinding("collapsed", "error", text, hint, command)


def _last_scores(log: TrainingLog) -> str:
    parts = []
    for name in ("accuracy", "bleu"):
        points = log.curve("validation", name)
        if points:
            parts.append(
                message(
                    ", {metric} {value}",
                    metric=message(LABELS[name]),
                    value=format_score(name, points[-1].value),
                )
            )
    template = "".join(f"{{part{index}}}" for index in range(len(parts)))
    return message(template, **{f"part{index}": part for index, part in enumerate(parts)})


def check_rate(record: RunRecord) -> Iterator[TrainingFinding]:
    """Report a learning rate far above the paper's."""
    ratio = _rate_ratio(record)
    if ratio is None or ratio < HIGH_RATE_RATIO:
        return
    is_harmful = has_collapsed(record) or record.log.last_event == "diverged"
    accuracy = record.log.curve("validation", "accuracy")[-1:]
    text = message(
        "the learning rate rises to {rate}, {ratio} times the paper's for this width ({paper}); "
        "post-norm Transformers often collapse above {limit} times",
        rate=_format_rate(record.peak_lr),
        ratio=f"{ratio:.1f}",
        paper=_format_rate(record.paper_peak_lr),
        limit=f"{HIGH_RATE_RATIO:g}",
    )
    if not is_harmful and accuracy and accuracy[0].value > COLLAPSED_ACCURACY:
        yield TrainingFinding("high_rate", "info", text, "this run trained well in spite of it")
        return
    command = record.command(*record.lower_rate_settings())
    severity: Severity = "error" if is_harmful else "warning"
    yield TrainingFinding("high_rate", severity, text, "lower it", command)


def _rate_ratio(record: RunRecord) -> float | None:
    return None if record.peak_lr is None else record.peak_lr / record.paper_peak_lr


def _format_rate(rate: float | None) -> str:
    return "?" if rate is None else f"{rate:.1e}"


def check_overfitting(record: RunRecord) -> Iterator[TrainingFinding]:
    """Report a dev loss that rises while the loss on train is still falling."""
    log, losses = record.log, record.log.dev_loss
    best = find_best(losses, "loss")
    if best is None or losses[-1].value < (1 + OVERFITTING_RISE) * best.value:
        return
    before = [one.value for one in log.train_loss if one.step <= best.step][-1:]
    after = [one.value for one in log.train_loss][-1:]
    if not before or not after or after[0] >= before[0]:
        return
    text = message(
        "overfitting from step {step}: dev loss rises from {best} to {last} while train loss falls "
        "from {before} to {after}",
        step=f"{best.step:,}",
        best=f"{best.value:.3f}",
        last=f"{losses[-1].value:.3f}",
        before=f"{before[0]:.3f}",
        after=f"{after[0]:.3f}",
    )
    score = log.best
    if log.metric != "loss" and score is not None and score.step > best.step:
        note = message(
            "{metric} still improved until step {step}, which is usual for small corpora: the "
            "best checkpoints are chosen by it; more text or more dropout would help",
            metric=message(LABELS[log.metric]),
            step=f"{score.step:,}",
        )
        yield TrainingFinding("overfitting", "info", text, note)
        return
    dropout = 0.3 if not _dropout(record) or _dropout(record) < 0.3 else 0.4
    hint = "use more dropout, early stopping, a smaller model, or more text"
    settings = [f"model.dropout={dropout}"]
    settings += [] if record.train.get("patience") else ["train.patience=5"]
    yield TrainingFinding("overfitting", "warning", text, hint, record.command(*settings))


def _dropout(record: RunRecord) -> float:
    return float(record.config.get("model", {}).get("dropout") or 0.0)


# -- the end


def check_end(record: RunRecord) -> Iterator[TrainingFinding]:
    """Report a run that is not finished, stopped early, or was still improving."""
    log, max_steps = record.log, record.train.get("max_steps")
    best = log.best
    if not record.is_finished:
        yield _unfinished(record)
    elif log.stop_reason == "patience" and best is not None:
        text = message(
            "stopped early at step {step} of {count}: {metric} on dev was best at step {best} "
            "({value})",
            step=f"{log.last_step:,}",
            count=f"{max_steps:,}",
            metric=message(LABELS[log.metric]),
            best=f"{best.step:,}",
            value=format_score(log.metric, best.value),
        )
        yield TrainingFinding("stopped_early", "info", text)
    if record.is_finished and log.stop_reason == "finish":
        text = message(
            "ended with attendo finish at step {step} of {count}",
            step=f"{log.last_step:,}",
            count=f"{max_steps:,}",
        )
        command = record.command(steps=max_steps, is_new=False)
        yield TrainingFinding("ended_early", "info", text, "to train it further:", command)
    elif record.is_finished and not has_collapsed(record):
        yield from _still_improving(record)


def _unfinished(record: RunRecord) -> TrainingFinding:
    log, max_steps = record.log, record.train.get("max_steps") or 0
    text = message(
        "not finished: step {step} of {count}", step=f"{log.last_step:,}", count=f"{max_steps:,}"
    )
    if not record.folder.checkpoint_steps():
        return TrainingFinding("unfinished", "info", text, "the command that started it resumes it")
    return TrainingFinding(
        "unfinished",
        "info",
        text,
        "the command that started it resumes it; to write its model now:",
        shlex.join(["attendo", "finish", str(record.folder.path)]),
    )


def _still_improving(record: RunRecord) -> Iterator[TrainingFinding]:
    """Report a score that still rose over the last quarter of training."""
    log, points = record.log, record.log.dev_score
    best = log.best
    if len(points) < MIN_VALIDATIONS or best is None or best.step < points[-2].step:
        return
    start = [point for point in points if point.step <= 0.75 * points[-1].step][-1]
    gain = best.value - start.value
    needed = STILL_IMPROVING_GAIN[log.metric]
    if log.metric == "loss":
        gain, needed = -gain, needed * start.value
    if gain < needed:
        return
    steps = log.last_step
    total = abs(best.value - points[0].value) or gain
    more = steps if gain > 0.1 * total else steps // 2
    text = message(
        "still improving at the end: {metric} gained {gain} since step {step} and was best at step "
        "{best} ({value})",
        metric=message(LABELS[log.metric]),
        gain=format_score(log.metric, gain),
        step=f"{start.step:,}",
        best=f"{best.step:,}",
        value=format_score(log.metric, best.value),
    )
    hint = message("train for about {count} more steps", count=f"{more:,}")
    command = record.command(steps=steps + more, is_new=False)
    yield TrainingFinding("still_improving", "warning", text, hint, command)


# -- the data


def check_data(record: RunRecord) -> Iterator[TrainingFinding]:
    """Report what the data check found, and what the numbers of the run say about its data."""
    stored = record.data.get("check") or []
    codes = set()
    for finding in (DataFinding.from_json(one) for one in stored):
        codes.add(finding.code)
        if finding.severity != "info":
            text, hint = finding.message, finding.hint
            yield TrainingFinding(finding.code, finding.severity, text, hint)
    if not stored:
        yield from _check_counts(record)
    yield from _check_tokens(record)


def _check_counts(record: RunRecord) -> Iterator[TrainingFinding]:
    """Report what the data check would have found, for runs that are older than it."""
    num_shared = (record.data.get("cleaning") or {}).get("dev", {}).get("num_in_train", 0)
    if num_shared:
        text = message("{count} pairs of dev are also in train", count=f"{num_shared:,}")
        hint = "scores on dev measure memory: give a dev set that is not in train"
        yield TrainingFinding("dev_in_train", "warning", text, hint)
    num_dev, num_pairs = record.data.get("dev_pairs"), record.data.get("pairs")
    if num_dev is not None and num_dev < SMALL_DEV:
        text = message("dev has {count} examples: its scores are uncertain", count=f"{num_dev:,}")
        hint = "give 1,000 or more with --dev-src and --dev-tgt"
        yield TrainingFinding("small_dev", "warning", text, hint)
    if num_pairs is not None and num_pairs < FEW_PAIRS and record.config.get("data"):
        text = message("{count} examples are few to learn from", count=f"{num_pairs:,}")
        hint = "add more text, or start from a model with --init-from"
        yield TrainingFinding("few_pairs", "warning", text, hint)


def _check_tokens(record: RunRecord) -> Iterator[TrainingFinding]:
    padding = (record.data.get("padding") or {}).get("total", 0.0)
    if padding > MUCH_PADDING:
        text = message("{share} of the batches is padding", share=f"{padding:.0%}")
        hint = "raise train.batch_tokens: larger batches have more pairs of the same length"
        tokens = 2 * record.train.get("batch_tokens", 4096)
        command = record.command(f"train.batch_tokens={tokens}")
        yield TrainingFinding("padding", "info", text, hint, command)
    unknown = (record.data.get("tokens") or {}).get("unknown") or {}
    for side, share in unknown.items():
        if share > MANY_UNKNOWN:
            name = message("source") if side == "src" else message("target")
            text = message(
                "{share} of the {side} tokens of dev are unknown to the tokenizer",
                share=f"{share:.1%}",
                side=name,
            )
            hint = "use subwords, which spell every word, and more text to train the tokenizer on"
            command = record.command("data.tokenizer.kind=bpe", "data.tokenizer.byte_fallback=true")
            yield TrainingFinding("unknown_tokens", "warning", text, hint, command)


CHECKS = (
    check_divergence,
    check_warmup,
    check_length,
    check_collapse,
    check_rate,
    check_overfitting,
    check_end,
)
"""What the log says; `check_data` says what the data does."""
