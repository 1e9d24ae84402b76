"""`attendo forecast`: the steps after the last row of a file, by a time series model."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from attendo.cli.console import make_console
from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.cli.options import (  # noqa: TC001 - typer reads the annotations
    DeviceOption,
    JsonOption,
    ModelArgument,
)
from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from attendo.i18n.messages import Lang
    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.forecaster import Forecast

MAX_LABEL_COLUMNS = 6
"""Up to this many labels have a column each; of more, only the forecast label has one."""


def forecast(
    model: ModelArgument,
    file: Annotated[
        Path,
        typer.Argument(help="CSV, Parquet or NPZ file with the columns of the training data."),
    ],
    all_windows: Annotated[
        bool,
        typer.Option(
            "--all", help="Forecast after every window of the file, not only the last one."
        ),
    ] = False,
    samples: Annotated[
        int,
        typer.Option(
            help="Sequences sampled to estimate probabilities; if there are fewer, all are used."
        ),
    ] = 200,
    seed: Annotated[int, typer.Option(help="Random seed of the sampling.")] = 1,
    gaps: Annotated[
        str | None,
        typer.Option(help="Missing rows: refuse or mask; by default as in training."),
    ] = None,
    device: DeviceOption = None,
    as_json: JsonOption = False,
    lang: LangOption = None,
) -> None:
    """Forecast a time series: class probabilities or values."""
    from attendo.cli.inputs import check_files, check_models
    from attendo.tasks.forecasting.config import Gaps

    output_lang = choose_language(lang)
    if gaps is not None and gaps not in get_args(Gaps):
        raise ConfigError(
            message("no such gap handling '{gaps}'", gaps=gaps), hint=suggest(gaps, get_args(Gaps))
        )
    check_models(model)
    check_files(file)
    from attendo.tasks.forecasting.forecaster import Forecaster

    with make_console(stderr=True).status(translate_message("forecasting", output_lang)):
        forecaster = Forecaster.load(model, device=device)
        forecasts = forecaster.predict_file(
            file,
            last_only=not all_windows,
            gaps=gaps,  # type: ignore[arg-type] # checked above
            num_samples=samples,
            seed=seed,
        )
    if as_json:
        typer.echo(json.dumps(to_json(forecaster.codec, forecasts), indent=2, ensure_ascii=False))
        return
    console = make_console()
    console.print(make_table(forecaster.codec, forecasts, output_lang))


def to_json(codec: SeriesCodec, forecasts: Sequence[Forecast]) -> dict[str, Any]:
    """Return the output of `--json`."""
    return {
        "kind": codec.kind,
        "targets": [*codec.targets],
        **({"labels": [*codec.labels]} if codec.labels else {}),
        "forecasts": [item.to_dict() for item in forecasts],
    }


def make_table(codec: SeriesCodec, forecasts: Sequence[Forecast], lang: Lang) -> Table:
    """Return a table with one row per step; forecasts are separated by a line."""
    from rich.table import Table

    has_groups = any(item.group is not None for item in forecasts)
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for header in (*(["series"] if has_groups else []), "time"):
        table.add_column(translate_message(header, lang), no_wrap=True)
    for header, justify in _value_headers(codec, lang):
        table.add_column(header, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for one in forecasts:
        for step, time in enumerate(one.times):
            group = [one.group or ""] if has_groups else []
            table.add_row(*group, time, *_value_cells(codec, one, step))
        table.add_section()
    return table


def _value_headers(codec: SeriesCodec, lang: Lang) -> list[tuple[str, str]]:
    if codec.kind == "numbers":
        return [(name, "right") for name in codec.targets]
    labels = codec.labels if len(codec.labels) <= MAX_LABEL_COLUMNS else ()
    name = translate_message("probability", lang)
    headers = [f"{name} ({label})" for label in labels] or [name]
    return [(codec.targets[0], "left"), *((header, "right") for header in headers)]


def _value_cells(codec: SeriesCodec, item: Forecast, step: int) -> list[str]:
    if item.values is not None:
        return [f"{number:.5g}" for number in item.values[step]]
    assert item.labels is not None and item.probabilities is not None  # noqa: S101, PT018 - for mypy
    label, probabilities = item.labels[step], item.probabilities[step]
    listed = codec.labels if len(codec.labels) <= MAX_LABEL_COLUMNS else (label,)
    return [label, *(f"{probabilities[name]:.1%}" for name in listed)]
