"""A run of the learner, watched at its steps: losses, translations, and cross-attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attendo.core.run_folder import read_json_lines
from attendo.inspection.checkpoint_view import usable_steps, view_checkpoint
from attendo.lessons.blocks import Block, Frame, Matrix, Note, Paragraph, Steps, Table
from attendo.lessons.own_model import DEFAULT_SENTENCES
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from attendo.core.run_folder import RunFolder
    from attendo.inspection.checkpoint_view import CheckpointView
    from attendo.lessons.blocks import Label

prose = Prose("attendo.lessons.chapters.ch17_learning")

MAX_LENGTH = 72
"""Characters of a translation in the table."""
MAX_VIEWS = 20
"""Of more checkpoints, some are left out, evenly."""


class StepOfRun(NamedTuple):
    """What is known of a run at one step."""

    step: int
    train_loss: float | None
    """The last training loss that was logged until then."""
    dev_loss: float | None
    """The loss of the validation at this step, if there was one."""
    translation: str | None
    view: CheckpointView | None
    """What the checkpoint of this step makes of the sentence, if it is kept."""


def run_blocks(run: RunFolder, text: str | None) -> list[Block]:
    """Return the translations of a sentence by step, and its attention first and last."""
    samples = read_samples(run)
    sentence = text or _choose_sample(samples) or _default_sentence(run)
    steps = watch_run(run, sentence)
    views = [one.view for one in steps if one.view is not None]
    if not steps:
        return []
    rows: list[list[Label | float | int | None]] = [
        [one.step, one.train_loss, one.dev_loss, _shorten(one.translation), "●" if one.view else ""]
        for one in steps
    ]
    ends = {one.step: one for one in (*views[:1], *views[-1:])}.values()
    frames = [
        Frame(prose("at-step", step=one.step), [_attention_matrix(one)])
        for one in ends
        if one.attention is not None
    ]
    return [
        Paragraph(prose("watch", run=run.path.name, text=sentence)),
        Table(
            [
                prose("step"),
                prose("training-loss"),
                prose("held-out-loss"),
                prose("translation"),
                prose("kept"),
            ],
            rows,
        ),
        *([Steps(prose("attention-by-step"), frames)] if frames else []),
        Note(prose("kept-checkpoints", count=len(views))),
    ]


def _shorten(text: str | None) -> str | None:
    """Return the beginning of a text: a model that has just begun repeats words without end."""
    return text and (text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 2]} …")


def _attention_matrix(view: CheckpointView) -> Matrix:
    return Matrix(
        view.translation or "–",
        [[round(weight, 2) for weight in row] for row in view.attention or []],
        rows=view.tgt,
        columns=view.src,
        digits=2,
        shade=True,
    )


def read_samples(run: RunFolder) -> dict[str, dict[int, str]]:
    """Return the outputs for the fixed sentences of a run, by sentence and step."""
    outputs: dict[str, dict[int, str]] = {}
    for validation in read_json_lines(run.samples_path):
        for sample in validation.get("samples", ()):
            outputs.setdefault(sample["src"], {})[validation["step"]] = sample["output"]
    return outputs


def watch_run(run: RunFolder, text: str) -> list[StepOfRun]:
    """Return the steps with a kept checkpoint or with samples, oldest first."""
    events = run.read_events()
    dev = {one["step"]: one.get("loss") for one in events if one.get("event") == "validation"}
    train = [(one["step"], one.get("loss")) for one in events if one.get("event") == "train"]
    samples = read_samples(run)
    views = {
        step: view_checkpoint(run, step, text) for step in select(usable_steps(run), MAX_VIEWS)
    }
    sample_steps = {step for by_step in samples.values() for step in by_step}
    watched = []
    for step in sorted({*views, *sample_steps}):
        view = views.get(step)
        sampled = samples.get(text, {}).get(step)
        watched.append(
            StepOfRun(
                step,
                next((loss for logged, loss in reversed(train) if logged <= step), None),
                dev.get(step),
                view.translation if view else sampled,
                view,
            )
        )
    return watched


def select(steps: list[int], limit: int) -> list[int]:
    """Return at most `limit` of the steps, spread evenly, with the first and the last.

    >>> select([1, 2, 3, 4, 5], 3)
    [1, 3, 5]
    """
    if len(steps) <= limit:
        return steps
    return [steps[round(index * (len(steps) - 1) / (limit - 1))] for index in range(limit)]


def _choose_sample(samples: dict[str, dict[int, str]]) -> str | None:
    """Return the sentence whose translation changed most often, of several the shortest."""
    ranked = sorted(samples, key=lambda src: (-len({*samples[src].values()}), len(src)))
    return next(iter(ranked), None)


def _default_sentence(run: RunFolder) -> str:
    data = run.read_config().get("data")
    lang = data.get("src_lang") if isinstance(data, dict) else None
    return DEFAULT_SENTENCES.get(str(lang), DEFAULT_SENTENCES["ko"])
