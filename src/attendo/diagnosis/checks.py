"""Checks of the training: batch size, learning rate, length, optimizer, averaging.

Every effect names its source; if that has no number, none is given.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from attendo.core.message import message
from attendo.diagnosis.paper_recipe import (
    ADAM,
    BATCH_TOKENS,
    LARGE_LOSS,
    MEDIUM_LOSS,
    SMALL_LOSS,
    TOLERANCE,
    WARMUP_STEPS,
    Finding,
    Recipe,
    excuse_small_corpus,
)
from attendo.training.schedule import noam

if TYPE_CHECKING:
    from collections.abc import Iterator

    from attendo.diagnosis.run_summary import RunSummary


def check_batch(facts: RunSummary, _recipe: Recipe) -> Iterator[Finding]:
    """Compare the tokens per step, over all processes."""
    what, ours = message("batch (tokens per step, all GPUs)"), facts.train.get("batch_tokens")
    if ours is None:
        yield Finding(what, "unknown")
    elif TOLERANCE <= ours / BATCH_TOKENS <= 1 / TOLERANCE:
        yield Finding(what, "as in the paper")
    elif ours > BATCH_TOKENS:
        effect = "much larger batches train as well (Ott et al. 2018)"
        yield Finding(what, "no loss known", f"{ours:,}", f"{BATCH_TOKENS:,}", effect)
    else:
        accumulation_steps = ceil(BATCH_TOKENS / ours) * facts.train.get("accumulation_steps", 1)
        finding = Finding(
            what,
            "below",
            f"{ours:,}",
            f"{BATCH_TOKENS:,}",
            "about -1 BLEU from English to French with the batch of three GPUs instead of four, "
            "which more steps do not recover (tensor2tensor issue 444; Popel and Bojar 2018)",
            message(
                "{settings}, or more GPUs (torchrun)",
                settings=f"--set train.batch_tokens={BATCH_TOKENS} "
                f"--set train.accumulation_steps={accumulation_steps}",
            ),
            1.0,
        )
        source = "small batches score higher there (Atrio and Popescu-Belis 2022)"
        yield excuse_small_corpus(facts, finding, source)


def check_schedule(facts: RunSummary, _recipe: Recipe) -> Iterator[Finding]:
    """Compare warm-up and peak of the learning rate with equation 3."""
    what, train = message("warm-up and peak learning rate"), facts.train
    if "warmup_steps" not in train or "schedule" not in train:
        yield Finding(what, "unknown")
        return
    d_model, warmup, kind = facts.model["d_model"], train["warmup_steps"], train["schedule"]
    expected_peak = noam(WARMUP_STEPS, d_model=d_model, warmup_steps=WARMUP_STEPS)
    peak = train.get("peak_lr", 0.0)
    if kind == "paper":
        peak = train.get("lr_scale", 1.0) * d_model**-0.5 * warmup**-0.5
    is_curve = kind in ("paper", "inverse_sqrt")  # the same curve with other parameters
    if is_curve and warmup == WARMUP_STEPS and abs(peak / expected_peak - 1) < 0.05:
        yield Finding(what, "as in the paper")
        return
    finding = Finding(
        what,
        "below",
        message("{warmup:,} steps to {peak:.1e} ({kind})", warmup=warmup, peak=peak, kind=kind),
        message("{warmup:,} steps to {peak:.1e}", warmup=WARMUP_STEPS, peak=expected_peak),
        "a high learning rate or a short warm-up makes a post-norm model diverge or end lower "
        "(Popel and Bojar 2018; Xiong et al. 2020); no number",
        f"--set train.schedule=paper --set train.warmup_steps={WARMUP_STEPS} "
        "--set train.lr_scale=1",
        MEDIUM_LOSS,
    )
    yield excuse_small_corpus(facts, finding, "few steps need a short warm-up")


def check_warmup_end(facts: RunSummary, _recipe: Recipe) -> Iterator[Finding]:
    """Report a run that ends before its warm-up, a fault in any recipe."""
    warmup, steps = facts.train.get("warmup_steps"), facts.planned_steps
    if warmup is not None and steps is not None and steps < warmup:
        yield Finding(
            message("end of the warm-up"),
            "below",
            message(
                "the run ends at step {steps:,}, its warm-up at {warmup:,}",
                steps=steps,
                warmup=warmup,
            ),
            "4 % of the steps (base)",
            message(
                "the learning rate reaches {share:.1%} of its peak: the model hardly learns",
                share=steps / warmup,
            ),
            message(
                "{settings}, or a larger train.max_steps",
                settings=f"--set train.warmup_steps={max(1, steps // 3)}",
            ),
            10.0,
        )


def check_length(facts: RunSummary, recipe: Recipe) -> Iterator[Finding]:
    """Compare the length of training, in tokens if they are known."""
    what, steps = message("training length"), facts.planned_steps
    if steps is None:
        yield Finding(what, "unknown")
        return
    batch = facts.train.get("batch_tokens", BATCH_TOKENS)
    share = steps * batch / (recipe.max_steps * BATCH_TOKENS)
    if share >= TOLERANCE:
        yield Finding(what, "as in the paper")
        return
    expected = ceil(recipe.max_steps * BATCH_TOKENS / batch)
    has_patience = facts.train.get("patience") is not None
    stopped = has_patience and facts.is_finished and steps < facts.train["max_steps"]
    hint = f"--set train.max_steps={expected}"
    if stopped:
        hint = "increase train.patience: dev stopped this run"
    elif facts.train:
        hint = message("the same command with {settings} resumes the run", settings=hint)
    finding = Finding(
        what,
        "below",
        message(
            "{steps:,} steps, {share:.1%} of the paper's tokens",
            steps=steps,
            share=max(share, 0.001),
        ),
        message("{steps:,} steps", steps=recipe.max_steps),
        "scores keep improving for days on a large corpus (Popel and Bojar 2018); no number",
        hint,
        LARGE_LOSS if share < 0.5 else MEDIUM_LOSS,
    )
    yield excuse_small_corpus(facts, finding, "a small corpus is learned quickly")


def check_adam(facts: RunSummary, _recipe: Recipe) -> Iterator[Finding]:
    """Compare the constants of the optimizer."""
    ours = {key: facts.train[key] for key in ADAM if key in facts.train}
    if ours == ADAM or not ours:
        yield Finding("Adam", "as in the paper" if ours else "unknown")
    else:
        hint = " ".join(f"--set train.{key}={value}" for key, value in ADAM.items())
        ours_text, paper_text = (" ".join(map(str, one.values())) for one in (ours, ADAM))
        yield Finding(
            "Adam", "below", ours_text, paper_text, "no number is known", hint, SMALL_LOSS
        )
    if facts.train.get("clip_norm"):
        clip = str(facts.train["clip_norm"])
        effect = "stabilizes training; used in later recipes"
        yield Finding("clip_norm", "no loss known", clip, "none", effect)


def check_averaging(facts: RunSummary, recipe: Recipe) -> Iterator[Finding]:
    """Compare how many checkpoints make up the finished model."""
    what = message("averaging")
    paper = message("the last {count} checkpoints", count=recipe.average_checkpoints)
    ours = facts.num_averaged if facts.is_finished else facts.train.get("average_checkpoints")
    if facts.train.get("ema_decay"):
        decay = message("exponential moving average ({decay})", decay=facts.train["ema_decay"])
        yield Finding(what, "no loss known", decay, paper, "another average of the same weights")
    elif not ours:
        yield Finding(what, "unknown")
    elif ours >= recipe.average_checkpoints:
        yield Finding(what, "as in the paper")
    else:
        last = recipe.average_checkpoints
        finding = Finding(
            what,
            "below",
            message("the last {count}", count=ours) if ours > 1 else "none",
            paper,
            "averaging gains up to 1 BLEU, usually less (Popel in tensor2tensor issue 317; Popel "
            "and Bojar 2018)",
            f"--set train.average_checkpoints={last} --set train.keep_last={last}",
            MEDIUM_LOSS if ours == 1 else SMALL_LOSS,
        )
        source = "a short run has few checkpoints"
        yield excuse_small_corpus(facts, finding, source) if ours > 1 else finding
