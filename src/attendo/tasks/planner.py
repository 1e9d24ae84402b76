"""Settings that follow from the data and the machine: what a practitioner would choose.

A setting that is not given is chosen from `ROWS`, by the number of training examples. Sources: our
own runs on Tatoeba English-French (docs/results.md, "Default settings"), the low-resource recipes
of fairseq (IWSLT: dropout 0.3) and JoeyNMT (small models, early stopping on a translation metric),
Sennrich and Zhang 2019 (small batches and strong dropout for little data), Xiong et al. 2020 (layer
normalization before each sub-layer trains with a short warm-up), Wu et al. 2021 (R-Drop).

This module loads no tensor library.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from attendo.architectures.registry import get_model_kind
from attendo.core.config import Config
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.training.schedule import PAPER_WARMUP_STEPS, learning_rate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from attendo.tasks.config import RunConfig

Quality = Literal["fast", "balanced", "best"]
QUALITIES = get_args(Quality)

MODEL_KEYS = ("preset", "num_layers", "norm", "dropout")
RATE_KEYS = ("schedule", "peak_lr", "warmup_steps")
OTHER_KEYS = (
    *("max_steps", "batch_tokens", "rdrop_weight", "save_every", "keep_last"),
    *("patience", "early_stopping_metric", "average"),
)
TRANSFORMER_KINDS = ("transformer", "encoder", "decoder")

MIN_STEPS, MAX_STEPS = 200, 300_000
NUM_VALIDATIONS = 20
PATIENCE = 0.4
"""Share of the validations that may pass without a gain. The learning rate falls to zero, so that
most runs reach the end."""
KEEP_LAST = 2
"""Checkpoints to resume from; those that are averaged are kept as well."""
WARMUP_FRACTION = 0.1
BATCH_FILL = 0.95
"""How full a batch is on average."""
PRE_NORM_RATE, POST_NORM_RATE, FINE_TUNING_RATE = 1.5, 1.0, 0.3
"""Peak learning rates, relative to the paper's (equation 3 at 4,000 steps)."""
MANY_CORES = 16
"""A CPU with as many cores trains the GPU's models in reasonable time."""
MIN_EPOCHS = 3
"""With fewer passes over the data, nothing useful is learned."""
BUDGET_FRACTION = 0.85
"""Share of a time budget that is planned for training steps; the rest is for validation, averaging
and scoring, and for a machine that gets slower."""
MAX_SHOWN_SECONDS = 120
"""Shorter times are shown in seconds, longer ones in minutes."""


class PlanConfig(Config):
    """What was left to the planner."""

    auto: tuple[str, ...] = ()
    """The settings that follow from data and machine (`train.max_steps` ...)."""
    quality: Quality = "balanced"
    budget_minutes: float | None = None


class DataFacts(NamedTuple):
    """What the planner knows about the data."""

    num_examples: int
    """Pairs, texts or windows."""
    num_tokens: int
    """Tokens per epoch, on the longer side."""
    task: Literal["translation", "text", "series"] = "translation"


class Machine(NamedTuple):
    """What the planner knows about the machine."""

    has_gpu: bool
    num_cores: int
    """Cores that compute: those of `--threads` if it is given."""

    @property
    def is_fast(self) -> bool:
        """Whether the larger models train in reasonable time."""
        return self.has_gpu or self.num_cores >= MANY_CORES

    @property
    def title(self) -> str:
        """The machine, for messages."""
        if self.has_gpu:
            return message("a GPU")
        template = "{count} CPU core" if self.num_cores == 1 else "{count} CPU cores"
        return message(template, count=self.num_cores)


@dataclass(frozen=True, slots=True)
class Row:
    """Settings for corpora of up to `max_examples`."""

    max_examples: float
    preset: str
    num_layers: int | None
    """None: as many as the preset has."""
    num_layers_cpu: int | None
    dropout: float
    batch_tokens: int
    epochs: int
    rdrop_weight: float = 0.0
    """R-Drop doubles the work, so that it is used on a GPU, or for the best quality."""


ROWS = (
    Row(5_000, "small", 2, 2, 0.3, 1024, 45),
    Row(30_000, "small", None, 2, 0.3, 2048, 50),
    Row(100_000, "small", None, 2, 0.3, 4096, 35, rdrop_weight=1.0),
    Row(300_000, "small", None, None, 0.2, 8192, 25, rdrop_weight=1.0),
    Row(2_000_000, "base", None, None, 0.1, 25_000, 12),
    Row(math.inf, "base", None, None, 0.1, 25_000, 8),
)
"""Chosen on dev; docs/results.md compares them with a grid of settings."""
SERIES_PRESET = "tiny"
SMALLER_MODELS = (("small", None), ("small", 2), ("tiny", None), ("tiny", 2))
"""Presets and layers to fall back to, one after the other, if a time budget is too short."""

FINE_TUNING_EPOCHS = ((5_000, 20), (30_000, 15), (300_000, 8), (math.inf, 3))
"""Passes over the new data when training starts from a finished model."""

EXPECTATIONS = (
    (2_000, "little: a few sentences of the corpus by heart"),
    (30_000, "a phrase book: sentences close to those of the corpus"),
    (300_000, "simple sentences of the kind that the corpus has"),
    (2_000_000, "usable translations in the domain of the corpus"),
    (math.inf, "good translations in the domains of the corpus"),
)


def find_open_settings(given: Mapping[str, Any], *, is_recipe: bool = False) -> tuple[str, ...]:
    """Return the settings that the planner chooses, as dotted keys.

    The options of the model are chosen together, and so are those of the learning rate: a model
    that is given (`--preset base`) is used as it is. A recipe, a config file with a table `train`,
    is complete: what it leaves out has the paper's value.

    >>> find_open_settings({"model": {"preset": "tiny"}, "train": {"max_steps": 9}})[:4]
    ('train.schedule', 'train.peak_lr', 'train.warmup_steps', 'train.batch_tokens')
    """
    if is_recipe:
        return ()
    model, train = given.get("model", {}), given.get("train", {})
    keys: list[str] = []
    if not set(model) - {"kind", "dropout"}:
        has_layers = model.get("kind", "transformer") in TRANSFORMER_KINDS
        names = MODEL_KEYS if has_layers else ("preset", "dropout")
        keys += [f"model.{name}" for name in names if name not in model]
    if not {*RATE_KEYS, "lr_scale"} & set(train):
        keys += [f"train.{name}" for name in RATE_KEYS]
    keys += [f"train.{name}" for name in OTHER_KEYS if name not in train]
    return tuple(keys)


def apply_plan(config: RunConfig, facts: DataFacts, machine: Machine) -> RunConfig:
    """Return the config with every open setting chosen."""
    row = _find_row(facts, machine, config.plan.quality)
    config = _set_open(config, _model_settings(config, row, facts, machine))
    is_fine_tuning = config.model.init_from is not None
    epochs = _fine_tuning_epochs(facts) if is_fine_tuning else row.epochs
    config = _set_open(config, _data_settings(config, row, facts))
    steps = round(epochs * steps_per_epoch(config, facts))
    return set_steps(config, min(max(steps, MIN_STEPS), MAX_STEPS))


def set_steps(config: RunConfig, max_steps: int) -> RunConfig:
    """Return the config with the number of steps, and what follows from it, where it is open."""
    config = _set_open(config, {"train.max_steps": max_steps})
    max_steps = config.train.max_steps
    config = _set_open(
        config,
        {
            "train.schedule": "cosine",
            "train.peak_lr": _peak_lr(config),
            "train.warmup_steps": max(round(WARMUP_FRACTION * max_steps), 1),
            "train.save_every": math.ceil(max_steps / NUM_VALIDATIONS),
        },
    )
    num_validations = math.ceil(max_steps / config.train.validation_interval)
    return _set_open(config, {"train.patience": max(round(PATIENCE * num_validations), 5)})


def steps_per_epoch(config: RunConfig, facts: DataFacts) -> float:
    """Return how many batches the data has, about."""
    return max(facts.num_tokens / (BATCH_FILL * config.train.batch_tokens), 1.0)


def _find_row(facts: DataFacts, machine: Machine, quality: Quality) -> Row:
    row = next(row for row in ROWS if facts.num_examples <= row.max_examples)
    if quality == "fast":
        return replace(row, epochs=max(row.epochs // 2, MIN_EPOCHS), rdrop_weight=0.0)
    if quality == "best":
        rdrop_weight = 1.0 if row is not ROWS[0] else 0.0
        return replace(
            row, epochs=2 * row.epochs, rdrop_weight=rdrop_weight, num_layers_cpu=row.num_layers
        )
    return row if machine.has_gpu else replace(row, rdrop_weight=0.0)


def _model_settings(
    config: RunConfig, row: Row, facts: DataFacts, machine: Machine
) -> dict[str, Any]:
    if facts.task == "series":
        return {"model.preset": SERIES_PRESET, "model.dropout": 0.1}
    presets = get_model_kind(config.model.kind).presets
    return {
        "model.preset": row.preset if row.preset in presets else config.model.preset,
        "model.num_layers": row.num_layers if machine.is_fast else row.num_layers_cpu,
        "model.norm": "pre",
        "model.dropout": config.model.overrides.get("dropout", row.dropout),
    }


def _data_settings(config: RunConfig, row: Row, facts: DataFacts) -> dict[str, Any]:
    is_translation = facts.task == "translation"
    has_chrf = is_translation and config.train.bleu_sentences and not config.train.fsdp
    return {
        "train.batch_tokens": row.batch_tokens,
        "train.rdrop_weight": row.rdrop_weight if is_translation else 0.0,
        "train.keep_last": KEEP_LAST,
        "train.early_stopping_metric": "chrf" if has_chrf else "loss",
        "train.average": "best",
    }


def _peak_lr(config: RunConfig) -> float:
    """Return the highest learning rate, relative to the paper's for this width."""
    factor = PRE_NORM_RATE if config.model.options.get("norm") == "pre" else POST_NORM_RATE
    if config.model.init_from is not None:
        factor = FINE_TUNING_RATE
    return float(f"{factor * (_d_model(config) * PAPER_WARMUP_STEPS) ** -0.5:.2g}")


def _d_model(config: RunConfig) -> int:
    model_config = get_model_kind(config.model.kind).config_class
    default = model_config.model_fields["d_model"].default
    return int(config.model.options.get("d_model", default))


def _fine_tuning_epochs(facts: DataFacts) -> int:
    return next(epochs for most, epochs in FINE_TUNING_EPOCHS if facts.num_examples <= most)


def _set_open(config: RunConfig, settings: Mapping[str, Any]) -> RunConfig:
    """Return the config with those settings changed that are open; None leaves a preset's value."""
    return config.with_settings(
        {key: value for key, value in settings.items() if key in config.plan.auto}
    )


# -- a time budget


def smaller_models(config: RunConfig) -> list[RunConfig]:
    """Return the config with each smaller model, largest first, if the model may be chosen."""
    if "model.preset" not in config.plan.auto:
        return []
    names = [(config.model.preset, config.model.overrides.get("num_layers")), *SMALLER_MODELS]
    start = SMALLER_MODELS.index(names[0]) + 1 if names[0] in SMALLER_MODELS else 0
    return [
        _set_open(config, {"model.preset": preset, "model.num_layers": num_layers})
        for preset, num_layers in SMALLER_MODELS[start:]
    ]


def fit_steps(
    config: RunConfig, facts: DataFacts, seconds_per_step: float, *, elapsed: float = 0.0
) -> RunConfig | None:
    """Return the config with as many steps as the budget allows; None if these are too few.

    The preparation of the data has taken `elapsed` seconds of the budget.
    """
    if config.plan.budget_minutes is None:
        return config
    available = 60 * config.plan.budget_minutes - elapsed
    possible = int(BUDGET_FRACTION * available / seconds_per_step)
    least = min(MIN_EPOCHS * steps_per_epoch(config, facts), config.train.max_steps)
    if possible < least:
        return None
    fitting = set_steps(config, min(possible, config.train.max_steps))
    return _set_open(fitting, {"train.max_minutes": round(available / 60, 3)})


def budget_error(
    config: RunConfig, facts: DataFacts, seconds_per_step: float, *, elapsed: float = 0.0
) -> ConfigError:
    """Return the error for a budget that the model, or even the smallest one, exceeds.

    The preparation of the data has taken `elapsed` seconds of it.
    """
    is_smallest = "model.preset" in config.plan.auto
    hint = "use --budget {budget} or more, or fewer examples"
    if not is_smallest and config.model.init_from is None:
        hint = "use --budget {budget} or more, fewer examples, or leave out --preset"
    steps = MIN_EPOCHS * steps_per_epoch(config, facts)
    seconds = steps * seconds_per_step / BUDGET_FRACTION + elapsed
    is_short = seconds < MAX_SHOWN_SECONDS
    needed = math.ceil(seconds) if is_short else math.ceil(seconds / 60)
    return ConfigError(
        message(
            "{count} examples cannot be trained on within {budget} here: {epochs} epochs of "
            "{model} take {needed} with the preparation of the data",
            count=f"{facts.num_examples:,}",
            budget=_format_duration(60 * (config.plan.budget_minutes or 0.0)),
            epochs=MIN_EPOCHS,
            model=message("the smallest model") if is_smallest else message("this model"),
            needed=_format_duration(needed if is_short else 60 * needed),
        ),
        hint=message(hint, budget=f"{needed}{'s' if is_short else 'm'}"),
    )


def _format_duration(seconds: float) -> str:
    """Return a duration in words.

    >>> [_format_duration(seconds) for seconds in (1, 90, 1800)]
    ['1 second', '90 seconds', '30 minutes']
    """
    if seconds >= MAX_SHOWN_SECONDS:
        return message("{count} minutes", count=f"{seconds / 60:,.0f}")
    count = f"{seconds:,.0f}"
    return message("{count} second" if count == "1" else "{count} seconds", count=count)


# -- what is printed


def describe_plan(config: RunConfig, facts: DataFacts, machine: Machine) -> list[str]:
    """Return the choice and its reasons as lines to print."""
    train = config.train
    count = f"{facts.num_examples:,}"
    epochs = train.max_steps / steps_per_epoch(config, facts)
    lines = [
        message("chosen for {count} examples and {machine}:", count=count, machine=machine.title)
    ]
    if "model.preset" in config.plan.auto:
        text = "  model: {name}, dropout {dropout}"
        name = _model_title(config)
        lines.append(message(text, name=name, dropout=f"{config.model.options['dropout']:g}"))
    lines.append(
        message(
            "  training: {steps} steps of {tokens} tokens ({epochs} epochs), learning rate {rate}",
            steps=f"{train.max_steps:,}",
            tokens=f"{train.batch_tokens:,}",
            epochs=_format_epochs(epochs),
            rate=f"{learning_rate(train.warmup_steps, train, d_model=_d_model(config)):.3g}",
        )
    )
    if train.patience is not None:
        text = "  stops earlier if {metric} on dev does not improve in {count} validations"
        metric = {"chrf": "chrF", "bleu": "BLEU"}.get(train.early_stopping_metric, "loss")
        lines.append(message(text, metric=message(metric), count=train.patience))
    if facts.task == "translation" and config.model.init_from is None:
        usual = _find_row(facts, machine, config.plan.quality).epochs
        if config.plan.budget_minutes is not None and epochs < usual / 2:
            text = "  the budget is enough for {epochs} of {usual} epochs: expect little"
            lines.append(message(text, epochs=_format_epochs(epochs), usual=usual))
        else:
            lines.append(message("  expect {quality}", quality=expectation(facts.num_examples)))
    options = "--preset, --steps, --budget 30m, --quality, --set"
    if config.model.init_from is not None:
        options = options.removeprefix("--preset, ")
    lines.append(message("  to change it: {options}", options=options))
    return lines


def _format_epochs(epochs: float) -> str:
    return f"{epochs:,.0f}" if epochs >= 10 else f"{epochs:.1f}"


def _model_title(config: RunConfig) -> str:
    num_layers = config.model.overrides.get("num_layers")
    preset = config.model.preset
    if num_layers is None:
        return preset
    return message("{preset} with {count} layers per side", preset=preset, count=num_layers)


def expectation(num_examples: int) -> str:
    """Return what a translator can do that was trained on this many pairs.

    >>> expectation(10_000)
    'a phrase book: sentences close to those of the corpus'
    """
    return message(next(text for most, text in EXPECTATIONS if num_examples <= most))
