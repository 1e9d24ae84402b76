"""What a run folder, or a model folder alone, tells of itself: read from its JSON files only.

A run that is not finished has no `report.json` yet: its config tells what is planned, its log how
far it is. A model folder alone knows its sizes and its score, not how it was trained.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.config import read_settings
from attendo.core.errors import InputError
from attendo.model.config import TransformerConfig
from attendo.model.presets import get_preset
from attendo.training.run_log import read_events

if TYPE_CHECKING:
    from collections.abc import Mapping

EMPTY: Mapping[str, Any] = MappingProxyType({})


class RunSummary(NamedTuple):
    """The settings and figures of a run; empty or None where its files do not tell."""

    directory: Path
    model: Mapping[str, Any]
    """Every option of the model, the preset's and the defaults among them."""
    preset: str | None = None
    train: Mapping[str, Any] = EMPTY
    tokenizer: Mapping[str, Any] = EMPTY
    languages: tuple[str | None, str | None] = (None, None)
    num_pairs: int | None = None
    vocab_size: int | None = None
    """Of the larger side."""
    steps: int | None = None
    """Steps that were trained."""
    is_finished: bool = True
    num_averaged: int | None = None
    dev: Mapping[str, Any] = EMPTY

    @property
    def model_dir(self) -> Path:
        """Give the folder of the finished model."""
        return self.directory / "model" if self.train else self.directory

    @property
    def planned_steps(self) -> int | None:
        """Give the steps that the finished model has, or will have."""
        return self.steps if self.is_finished else self.train.get("max_steps", self.steps)


def read_run_summary(directory: str | Path) -> RunSummary:
    """Read the folder of a run, finished or not, or a model folder."""
    path = Path(directory)
    if path.name == "model" and not (path / "config.json").exists():
        path = path.parent if (path.parent / "config.json").is_file() else path
    try:
        if (path / "config.json").is_file():
            return _summarize_run(path)
        for folder in (path, path / "model"):
            if (folder / "bundle.json").is_file():
                return _summarize_model(folder)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"the JSON files in {path} are not those of a run: {type(error).__name__} {error}",
            hint="give the folder that attendo train wrote (its --out)",
        ) from None
    reason = "holds neither config.json nor bundle.json" if path.is_dir() else "is no folder"
    raise InputError(
        f"{path} {reason}", hint="give the folder of a run (the --out of attendo train)"
    )


def _summarize_run(path: Path) -> RunSummary:
    config = read_settings(path / "config.json")
    report = _read_if_exists(path / "report.json")
    data = report.get("data") or _read_if_exists(path / "data.json")
    if config.get("series"):
        reason = f"{path} is a run on series, and the paper's recipe is for text"
        raise InputError(reason, hint="measure it by attendo evaluate MODEL --series FILE")
    settings = dict(config["model"])
    _check_kind(path, settings.pop("kind", TransformerConfig.kind))
    preset = get_preset(settings.pop("preset"))
    events = read_events(path / "log.jsonl")
    sizes = [data[key] for key in ("src_vocab_size", "tgt_vocab_size") if key in data]
    return RunSummary(
        directory=path,
        model=_default_options() | preset.options | settings,
        preset=preset.name,
        train=dict(config["train"]),
        tokenizer=dict(config["data"].get("tokenizer", {})),
        languages=(config["data"].get("src_lang"), config["data"].get("tgt_lang")),
        num_pairs=data.get("pairs"),
        vocab_size=max(sizes, default=config["data"].get("tokenizer", {}).get("vocab_size")),
        steps=report.get("steps", max((event["step"] for event in events), default=0)),
        is_finished=bool(report),
        num_averaged=len(report["averaged_steps"]) if report else None,
        dev=dict(report.get("dev", {})),
    )


def _summarize_model(path: Path) -> RunSummary:
    index = read_settings(path / "bundle.json")
    _check_kind(path, index["kind"])
    about = index["about"]
    model = _default_options() | index["config"]
    return RunSummary(
        directory=path,
        model=model,
        tokenizer={"shared": model["tgt_vocab_size"] is None},
        languages=(about.get("src_lang"), about.get("tgt_lang")),
        vocab_size=max(model["vocab_size"], model["tgt_vocab_size"] or 0),
        steps=about.get("step"),
        num_averaged=len(about["averaged_steps"]) if "averaged_steps" in about else None,
        dev=dict(about.get("dev", {})),
    )


def _read_if_exists(path: Path) -> dict[str, Any]:
    return read_settings(path) if path.exists() else {}


def _check_kind(path: Path, kind: str) -> None:
    """Refuse a model that the paper's recipe is not about."""
    if kind != TransformerConfig.kind:
        reason = f"{path} holds a model of the kind {kind}; the paper's recipe is a Transformer's"
        raise InputError(reason, hint="attendo evaluate scores it, beside another if you like")


def _default_options() -> dict[str, Any]:
    return {name: field.default for name, field in TransformerConfig.model_fields.items()}
