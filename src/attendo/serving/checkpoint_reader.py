"""Loads checkpoints of runs on request, one at a time, and keeps the last results.

A checkpoint is chosen by its step from the listing of its run: nothing of a request becomes a path.
Models are not kept in memory, only what they made of a sentence.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError, InputError
from attendo.core.message import message
from attendo.core.run_folder import RunFolder
from attendo.inspection.checkpoint_view import usable_steps, view_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.inspection.checkpoint_view import CheckpointView

    Key = tuple[Path, int, int, str]

MAX_KEPT = 256
"""Views that are kept: each has the attention of one sentence."""
MAX_WEIGHT_BYTES = 2 * 1024**3
"""Larger checkpoints are not loaded, so that the served models keep their memory."""


class CheckpointReader:
    """Loads checkpoints, one at a time, and keeps the last results."""

    def __init__(self) -> None:
        self._views: OrderedDict[Key, CheckpointView] = OrderedDict()

    def read(self, path: Path, step: int | None, text: str) -> CheckpointView | None:
        """Return a sentence as a checkpoint of a run sees it; None if it is not kept.

        Raises:
            InputError: If the checkpoint is too large, or cannot be used for the sentence.

        """
        run = RunFolder(path)
        steps = usable_steps(run)
        chosen = steps[-1] if step is None and steps else step
        if chosen is None or chosen not in steps:
            return None
        weights = next(one for one in run.checkpoints() if one.step == chosen).model.weights_path
        try:
            facts = weights.stat()
        except OSError:  # a run that trains deletes its old checkpoints
            return None
        if facts.st_size > MAX_WEIGHT_BYTES:
            raise InputError(message("the checkpoint is too large to be loaded here"))
        key = (path, chosen, facts.st_mtime_ns, text)
        if key not in self._views:
            self._views[key] = _view(run, chosen, text)
            while len(self._views) > MAX_KEPT:
                self._views.popitem(last=False)
        self._views.move_to_end(key)
        return self._views[key]


def _view(run: RunFolder, step: int, text: str) -> CheckpointView:
    """Return the view; errors name the step instead of a path of the server."""
    try:
        return view_checkpoint(run, step, text)
    except (AttendoError, OSError):
        raise InputError(
            message("the checkpoint of step {step} cannot be used for this text", step=step),
            hint="use a sentence, and a run that translates",
        ) from None
