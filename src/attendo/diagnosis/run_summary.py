"""Summarize a run folder, or a model folder alone, from its JSON files only.

An unfinished run has no report yet: its config has what is planned, its log how far it is. A model
folder alone has its sizes and its score, not how it was trained.
"""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.core.run_folder import MODEL_DIR, ModelFolder, RunFolder
from attendo.model.config import TransformerConfig
from attendo.model.presets import get_preset

if TYPE_CHECKING:
    from collections.abc import Mapping

EMPTY: Mapping[str, Any] = MappingProxyType({})


class RunSummary(NamedTuple):
    """The settings and scores of a run; empty or None if its files do not have them."""

    directory: Path
    model: Mapping[str, Any]
    """All options of the model, with those of the preset and the defaults."""
    preset: str | None = None
    train: Mapping[str, Any] = EMPTY
    tokenizer: Mapping[str, Any] = EMPTY
    languages: tuple[str | None, str | None] = (None, None)
    num_pairs: int | None = None
    vocab_size: int | None = None
    """The vocabulary size of the larger side."""
    steps: int | None = None
    """Steps that were trained."""
    is_finished: bool = True
    num_averaged: int | None = None
    dev: Mapping[str, Any] = EMPTY

    @property
    def model_dir(self) -> Path:
        """The folder of the finished model."""
        return RunFolder(self.directory).model.path if self.train else self.directory

    @property
    def planned_steps(self) -> int | None:
        """The steps that the finished model has, or will have."""
        return self.steps if self.is_finished else self.train.get("max_steps", self.steps)


def read_run_summary(directory: str | Path) -> RunSummary:
    """Return the summary of a run folder, finished or not, or of a model folder."""
    path = Path(directory)
    if path.name == MODEL_DIR and not RunFolder(path).exists() and RunFolder(path.parent).exists():
        path = path.parent
    run, model = RunFolder(path), ModelFolder.find(path)
    try:
        if run.exists():
            return _summarize_run(run)
        if model.exists():
            return _summarize_model(model)
    except (KeyError, TypeError, AttributeError) as error:
        reason = message("the JSON files in {path} are not those of a run", path=path)
        if isinstance(error, KeyError):
            text = "{reason}: they have no '{key}'"
            reason = message(text, reason=reason, key=error.args[0])
        raise InputError(
            reason,
            hint="give the folder that attendo train wrote (its --out)",
        ) from None
    reason = (
        message(
            "has neither {config} nor {model}",
            config=run.config_path.name,
            model=model.index_path.name,
        )
        if path.is_dir()
        else "is not a folder"
    )
    raise InputError(
        message("{path} {reason}", path=path, reason=reason),
        hint="give the folder of a run (the --out of attendo train)",
    )


def _summarize_run(run: RunFolder) -> RunSummary:
    config, report = run.read_config(), run.read_report()
    data = report.get("data") or run.read_data()
    if config.get("series"):
        reason = message(
            "{path} is a run on time series, and the paper's recipe is for text", path=run.path
        )
        raise InputError(reason, hint="score it with attendo evaluate MODEL --series FILE")
    settings = dict(config["model"])
    _check_kind(run.path, settings.pop("kind", TransformerConfig.kind))
    preset = get_preset(settings.pop("preset"))
    events = run.read_events()
    sizes = [data[key] for key in ("src_vocab_size", "tgt_vocab_size") if key in data]
    return RunSummary(
        directory=run.path,
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


def _summarize_model(folder: ModelFolder) -> RunSummary:
    index = folder.read_index()
    _check_kind(folder.path, index["kind"])
    about = index["about"]
    model = _default_options() | index["config"]
    return RunSummary(
        directory=folder.path,
        model=model,
        tokenizer={"shared": model["tgt_vocab_size"] is None},
        languages=(about.get("src_lang"), about.get("tgt_lang")),
        vocab_size=max(model["vocab_size"], model["tgt_vocab_size"] or 0),
        steps=about.get("step"),
        num_averaged=len(about["averaged_steps"]) if "averaged_steps" in about else None,
        dev=dict(about.get("dev", {})),
    )


def _check_kind(path: Path, kind: str) -> None:
    """Raise if the model is not a Transformer, which the paper's recipe is for."""
    if kind != TransformerConfig.kind:
        reason = message(
            "{path} has a model of kind {kind}; the paper's recipe is for a Transformer",
            path=path,
            kind=kind,
        )
        raise InputError(
            reason,
            hint="score it with attendo evaluate, which can also compare it with another model",
        )


def _default_options() -> dict[str, Any]:
    return {name: field.default for name, field in TransformerConfig.model_fields.items()}
