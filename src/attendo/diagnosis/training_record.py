"""The files of a run as the checks of `attendo.diagnosis.training_checks` read them."""

from __future__ import annotations

import math
import shlex
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from attendo.diagnosis.run_log import TrainingLog
from attendo.model.config import TransformerConfig
from attendo.model.presets import get_preset
from attendo.tasks.planner import NUM_VALIDATIONS, WARMUP_FRACTION
from attendo.training.config import TrainConfig
from attendo.training.schedule import PAPER_WARMUP_STEPS, learning_rate, noam

if TYPE_CHECKING:
    from attendo.core.run_folder import RunFolder

Severity = Literal["error", "warning", "info", "good"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info", "good")


@dataclass(frozen=True)
class TrainingFinding:
    """One thing that the files of a run say about its training."""

    code: str
    severity: Severity
    text: str
    """What was found, with figures."""
    hint: str = ""
    command: str = ""
    """The next command to type, if there is one."""

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON, in English."""
        return {
            "code": self.code,
            "severity": self.severity,
            "text": str(self.text),
            "hint": str(self.hint),
            "command": self.command,
        }


@dataclass(frozen=True)
class RunRecord:
    """The files of a run that the checks read."""

    folder: RunFolder
    log: TrainingLog
    config: dict[str, Any] = field(default_factory=dict)
    data: dict[str, Any] = field(default_factory=dict)
    is_finished: bool = False

    @classmethod
    def read(cls, folder: RunFolder) -> RunRecord:
        """Read a run folder, finished or not."""
        config, log = folder.read_config(), TrainingLog.read(folder)
        data = folder.read_report().get("data") or folder.read_data()
        return cls(folder, log, config, data, folder.is_finished())

    @property
    def train(self) -> dict[str, Any]:
        """The settings of training."""
        train: dict[str, Any] = self.config.get("train", {})
        return train

    @cached_property
    def d_model(self) -> int:
        """The width of the model."""
        model = self.config.get("model", {})
        default = TransformerConfig.model_fields["d_model"].default
        try:
            preset = get_preset(model.get("preset", "base")).options
        except ValueError:  # a preset of another kind of model
            preset = {}
        return int(model.get("d_model") or preset.get("d_model") or default)

    @cached_property
    def peak_lr(self) -> float | None:
        """The highest learning rate of the schedule."""
        known = TrainConfig.model_fields
        try:
            config = TrainConfig(**{k: v for k, v in self.train.items() if k in known})
        except ValueError:
            return None
        return learning_rate(config.warmup_steps, config, d_model=self.d_model)

    @property
    def paper_peak_lr(self) -> float:
        """The paper's highest learning rate for a model of this width."""
        return noam(PAPER_WARMUP_STEPS, d_model=self.d_model, warmup_steps=PAPER_WARMUP_STEPS)

    @property
    def classifies(self) -> bool:
        """Whether the targets are labels."""
        tokenizer = (self.config.get("data") or {}).get("tokenizer") or {}
        return "label" in (tokenizer.get("kind"), tokenizer.get("tgt_kind"))

    def command(self, *settings: str, steps: int | None = None, is_new: bool = True) -> str:
        """Return the command for a new run with other settings, or to resume this one."""
        path = self.folder.path
        out = path.with_name(f"{path.absolute().name}-2") if is_new else path
        words = ["attendo", "train", str(self.folder.config_path), "--out", str(out)]
        words += ["--steps", str(steps)] if steps is not None else []
        if steps is not None and self.train.get("max_minutes"):  # it would stop the run again
            settings += ("train.max_minutes=null",)
        words += [word for setting in settings for word in ("--set", setting)]
        return shlex.join(words)

    def settings_for(self, steps: int) -> list[str]:
        """Return the settings that follow from the number of steps, if they were chosen by it."""
        chosen = (self.config.get("plan") or {}).get("auto") or ()
        values = {
            "train.warmup_steps": max(round(WARMUP_FRACTION * steps), 1),
            "train.save_every": math.ceil(steps / NUM_VALIDATIONS),
        }
        return [f"{key}={value}" for key, value in values.items() if key in chosen]

    def lower_rate_settings(self) -> list[str]:
        """Return settings with a lower peak of the learning rate, at most the paper's."""
        peak = self.peak_lr or self.paper_peak_lr
        lower = min(peak / 3, self.paper_peak_lr)
        if self.train.get("schedule", "paper") == "paper":
            return ["train.schedule=inverse_sqrt", f"train.peak_lr={lower:.2g}"]
        return [f"train.peak_lr={lower:.2g}"]
