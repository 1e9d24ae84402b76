"""What a checkpoint of a run makes of a sentence: its translation and its cross-attention.

Each checkpoint is a model folder, so that a run can be watched from the first one that is kept to
the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.translator import Translator

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.core.run_folder import RunFolder

DIGITS = 4
"""Decimals of the attention weights."""


class CheckpointView(NamedTuple):
    """A sentence, seen by the model of one step."""

    step: int
    text: str
    translation: str
    src: list[str]
    """The pieces of the sentence, with the end symbol."""
    tgt: list[str]
    attention: list[list[float]] | None
    """Cross-attention (T, S) of the last decoder layer, the mean of its heads; None without any."""

    def to_dict(self) -> dict[str, Any]:
        """Return the view as JSON."""
        return self._asdict()


def usable_steps(run: RunFolder) -> list[int]:
    """Return the steps of the checkpoints that can translate, oldest first."""
    return [one.step for one in run.checkpoints() if one.model.exists()]


def view_checkpoint(run: RunFolder, step: int, text: str, *, window: int = 64) -> CheckpointView:
    """Translate a sentence with the checkpoint of a step.

    Args:
        run: the run.
        step: the step of a checkpoint that is kept.
        text: the sentence.
        window: maximum tokens of each side.

    Raises:
        InputError: If the run has kept no checkpoint of this step.

    """
    path = next((one.path for one in run.checkpoints() if one.step == step), None)
    if path is None or step not in usable_steps(run):
        raise InputError(
            message("no checkpoint of step {step}", step=step),
            hint="the run lists those that are kept",
        )
    return _view(path, step, text, window)


def _view(path: Path, step: int, text: str, window: int) -> CheckpointView:
    from attendo.inspection.capture import capture

    translator = Translator.load(path, device="cpu")
    record = capture(translator, text, top=1, window=window, positions=False, neighbors=False)
    weights = record.weights.get("cross")  # (L, H, T, S)
    attention = None if weights is None else weights[-1].mean(axis=0).round(DIGITS).tolist()
    src, tgt = ([token["piece"] for token in side["tokens"]] for side in (record.src, record.tgt))
    return CheckpointView(step, record.src["text"], record.tgt["text"], src, tgt, attention)
