"""The record of a run: `log.jsonl` (one line an event), `samples.jsonl`, TensorBoard."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from attendo.core.errors import AttendoError
from attendo.core.files import write_atomically
from attendo.core.logs import get_logger
from attendo.core.message import message

if TYPE_CHECKING:
    from pathlib import Path

logger = get_logger(__name__)


class RunLog:
    """Appends events to the files of a run; a resumed run drops what came after its checkpoint."""

    def __init__(self, directory: Path, *, step: int = 0) -> None:
        self.events_path = directory / "log.jsonl"
        for path in (self.events_path, directory / "samples.jsonl"):
            truncate_after(path, step)
        self.tensorboard = _open_tensorboard(directory / "tensorboard", step)

    def write(self, event: str, step: int, **values: Any) -> None:
        """Note an event; numbers go to TensorBoard too."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        append_json_line(self.events_path, {"time": now, "event": event, "step": step, **values})
        for name, value in values.items():
            if self.tensorboard is not None and isinstance(value, (int, float)):
                self.tensorboard.add_scalar(f"{event}/{name}", value, step)

    def close(self) -> None:
        """Flush TensorBoard."""
        if self.tensorboard is not None:
            self.tensorboard.close()


def read_events(path: Path) -> list[dict[str, Any]]:
    """Read a file of events; a last line that a crash cut short is left out."""
    if not path.exists():
        return []
    events = []
    # the crash may have cut a character too; split at line feeds alone: a text may hold other
    # separators, which JSON leaves as they are
    text = path.read_text(encoding="utf-8", errors="replace")
    for line in text.removesuffix("\n").split("\n"):
        try:
            events.append(json.loads(line))
        except ValueError:
            break
    return events


def truncate_after(path: Path, step: int) -> None:
    """Drop the events after `step`: a resumed run will tell them again."""
    if path.exists():
        kept = [event for event in read_events(path) if event["step"] <= step]
        lines = (json.dumps(event, ensure_ascii=False) + "\n" for event in kept)
        write_atomically(path, "".join(lines))


def append_json_line(path: Path, event: dict[str, Any]) -> None:
    """Add one line of JSON to a file."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(event, ensure_ascii=False) + "\n")
    except OSError as error:
        raise AttendoError(
            message(
                "{path} could not be written: {detail}", path=path, detail=error.strerror or error
            ),
            hint="make room, then run the same command: it goes on from its last checkpoint",
        ) from error


def _open_tensorboard(directory: Path, step: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        logger.info("TensorBoard is not installed: log.jsonl holds the same figures")
        return None
    return SummaryWriter(directory, purge_step=step + 1 if step else None)
