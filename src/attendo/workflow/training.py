"""Training as a step of a build: `attendo train` with a config of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.core.run_folder import RunFolder
from attendo.tasks.config import RunConfig
from attendo.workflow.commands import write_config
from attendo.workflow.sizes import relative_cost
from attendo.workflow.step import Command, Step, Work

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attendo.workflow.recipe import BuildConfig, TrainingStep
    from attendo.workflow.step import Output, StepPaths

TRAIN_VERSION = 1
"""Raised when the code of a training would write something else for the same input."""
MODEL = "run/model"
"""The output of every training."""


def make_training(
    name: str,
    given: TrainingStep,
    corpora: Sequence[tuple[str, str, float]],
    needs: Mapping[str, Output],
    config: BuildConfig,
    *,
    model: dict[str, Any],
    train: dict[str, Any] | None = None,
    data: dict[str, Any] | None = None,
    is_swapped: bool = False,
    init_from: str | None = None,
    cost_of: dict[str, Any] | None = None,
    files: Mapping[str, Path] | None = None,
) -> Step:
    """Return a step that trains a model.

    Args:
        name: of the step.
        given: what the recipe says of it.
        corpora: the names of two inputs, and a weight.
        needs: inputs from other steps, dev among them.
        config: the recipe.
        model: settings of the model that are not given.
        train: the same for training.
        data: the same for the data.
        is_swapped: whether the model translates from the target to the source.
        init_from: the input whose weights, layers and vocabulary it starts with.
        cost_of: the settings of that model, for an estimate of the time.
        files: inputs from outside the build.

    """
    languages = (config.src_lang, config.tgt_lang)
    settings: dict[str, Any] = {
        "data": {
            "src_lang": languages[is_swapped],
            "tgt_lang": languages[not is_swapped],
            "check": False,  # the step `clean` has checked them
            **(data or {}),
            **given.data,
        },
        "model": {**({} if init_from else model), **given.model},
        "train": {"seed": config.seed, **(train or {}), **given.train},
        "corpora": [list(corpus) for corpus in corpora],
        "is_complete": given.is_complete,
    }
    _check_training(name, settings)

    def commands(paths: StepPaths) -> list[Command]:
        sides = ("dev.tgt", "dev.src") if is_swapped else ("dev.src", "dev.tgt")
        filled: dict[str, Any] = {
            "data": {
                **settings["data"],
                "corpora": [
                    {"src": str(paths[src]), "tgt": str(paths[tgt]), "weight": weight}
                    for src, tgt, weight in corpora
                ],
                "dev": {"src": str(paths[sides[0]]), "tgt": str(paths[sides[1]])},
            },
            "model": settings["model"],
        }
        words = []
        if given.is_complete:
            filled["train"] = settings["train"]
        else:  # the planner chooses what is not given
            pairs = ((f"train.{key}", value) for key, value in settings["train"].items())
            words = [w for key, value in pairs for w in ("--set", f"{key}={_toml(value)}")]
        file = write_config(paths.folder / "train.json", filled)
        if init_from:
            words += ["--init-from", str(paths[init_from])]
        run = paths.folder / "run"
        train_words = ("train", str(file), "--out", str(run), *words)
        return [Command(train_words, RunFolder(run).report_path, watched=("train", run, 0))]

    return Step(
        name,
        TRAIN_VERSION,
        settings,
        commands,
        (MODEL,),
        files or {},
        needs,
        uses_gpu=True,
        work=_training_work(settings, cost_of),
    )


def _check_training(name: str, settings: dict[str, Any]) -> None:
    """Raise an error for settings that training would refuse, before anything is run."""
    data = {**settings["data"], "corpora": [{"src": "a", "tgt": "b"}]}
    given: dict[str, Any] = {name: settings[name] for name in ("model", "train")}
    try:
        RunConfig(**given, data=data)  # type: ignore[arg-type] # pydantic makes it one
    except ConfigError as error:
        reason = message("step {name}: {reason}", name=name, reason=error.reason)
        raise ConfigError(reason, hint=error.hint, reasons=error.reasons) from None


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _training_work(settings: dict[str, Any], cost_of: dict[str, Any] | None) -> Work | None:
    """Return the tokens of a training whose length is given, as those of a base model."""
    train = settings["train"]
    if not train.get("max_steps"):
        return None
    tokens = train["max_steps"] * train.get("batch_tokens", 4096)
    vocab_size = settings["data"].get("tokenizer", {}).get("vocab_size")
    cost = relative_cost(cost_of or settings["model"], vocab_size)
    return Work("train", tokens * cost * (2 if train.get("rdrop_weight") else 1))
