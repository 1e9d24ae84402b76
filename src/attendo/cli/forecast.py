"""`attendo forecast`: what comes behind the last row of a file, by a model of series."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

from attendo.cli.localization import (
    LangOption,
    argument,
    choose_language,
    localized_command,
    option,
)
from attendo.core.errors import ConfigError, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from attendo.tasks.forecasting.codec import SeriesCodec
    from attendo.tasks.forecasting.forecaster import Forecast

MAX_LABEL_COLUMNS = 6
"""So many labels have a column each; of more only the one that is said."""
MESSAGES = {
    "en": {"series": "series", "time": "time", "chance": "chance", "working": "foretelling"},
    "ko": {"series": "시계열", "time": "시점", "chance": "확률", "working": "예측하는 중"},
}


@localized_command("시계열의 다음 단계를 예측합니다: 확률이 붙은 레이블, 또는 숫자.")
def forecast(
    model: Annotated[Path, argument("A model folder, or the run's.", "모델 폴더나 학습 폴더.")],
    file: Annotated[
        Path,
        argument(
            "CSV, Parquet or NPZ with the columns of training.",
            "학습 때와 같은 열이 있는 CSV, Parquet, NPZ 파일.",
        ),
    ],
    all_windows: Annotated[
        bool,
        option(
            "Foretell behind every window of the file, not only the last.",
            "마지막만이 아니라 파일의 모든 창 뒤를 예측합니다.",
            "--all",
        ),
    ] = False,
    samples: Annotated[
        int,
        option(
            "Sequences drawn for the chances; all where there are no more.",
            "확률을 셈하려고 뽑는 순서열의 수. 모든 경우가 이보다 적으면 다 셉니다.",
        ),
    ] = 200,
    seed: Annotated[int, option("Of the draws.", "뽑기의 시드.")] = 1,
    gaps: Annotated[
        str | None,
        option(
            "Rows missing in time: refuse or mask; as in training when not given.",
            "시간에서 빠진 행: refuse(거절)나 mask(빠진 값으로 읽음). 없으면 학습 때처럼.",
        ),
    ] = None,
    device: Annotated[str | None, option("cpu, cuda ...", "cpu, cuda ...")] = None,
    as_json: Annotated[bool, option("Print JSON.", "JSON으로 출력합니다.", "--json")] = False,
    lang: LangOption = None,
) -> None:
    """Foretell the next steps of a series: labels with their chances, or numbers."""
    from rich.console import Console

    from attendo.tasks.forecasting.config import Gaps
    from attendo.tasks.forecasting.forecaster import Forecaster

    messages = MESSAGES[choose_language(lang)]
    if gaps is not None and gaps not in get_args(Gaps):
        raise ConfigError(f"no way '{gaps}' with gaps", hint=suggest(gaps, get_args(Gaps)))
    with Console(stderr=True).status(messages["working"]):
        forecaster = Forecaster.load(model, device=device)
        forecasts = forecaster.predict_file(
            file,
            last_only=not all_windows,
            gaps=gaps,  # type: ignore[arg-type] # it is one of them
            num_samples=samples,
            seed=seed,
        )
    if as_json:
        typer.echo(json.dumps(to_json(forecaster.codec, forecasts), indent=2, ensure_ascii=False))
        return
    console = Console(highlight=False)
    console.print(make_table(forecaster.codec, forecasts, messages))


def to_json(codec: SeriesCodec, forecasts: Sequence[Forecast]) -> dict[str, Any]:
    """Give what `--json` prints."""
    return {
        "kind": codec.kind,
        "targets": [*codec.targets],
        **({"labels": [*codec.labels]} if codec.labels else {}),
        "forecasts": [item.to_dict() for item in forecasts],
    }


def make_table(
    codec: SeriesCodec, forecasts: Sequence[Forecast], messages: dict[str, str]
) -> Table:
    """Lay the steps out, one below the other; a line parts forecasts from each other."""
    from rich.table import Table

    has_groups = any(item.group is not None for item in forecasts)
    table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for header in (*([messages["series"]] if has_groups else []), messages["time"]):
        table.add_column(header, no_wrap=True)
    for header, justify in _value_headers(codec, messages):
        table.add_column(header, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for one in forecasts:
        for step, time in enumerate(one.times):
            group = [one.group or ""] if has_groups else []
            table.add_row(*group, time, *_value_cells(codec, one, step))
        table.add_section()
    return table


def _value_headers(codec: SeriesCodec, messages: dict[str, str]) -> list[tuple[str, str]]:
    if codec.kind == "numbers":
        return [(name, "right") for name in codec.targets]
    labels = codec.labels if len(codec.labels) <= MAX_LABEL_COLUMNS else ()
    headers = [f"{messages['chance']} ({label})" for label in labels] or [messages["chance"]]
    return [(codec.targets[0], "left"), *((header, "right") for header in headers)]


def _value_cells(codec: SeriesCodec, item: Forecast, step: int) -> list[str]:
    if item.values is not None:
        return [f"{number:.5g}" for number in item.values[step]]
    assert item.labels is not None and item.probabilities is not None  # noqa: S101, PT018 - said so
    label, probabilities = item.labels[step], item.probabilities[step]
    listed = codec.labels if len(codec.labels) <= MAX_LABEL_COLUMNS else (label,)
    return [label, *(f"{probabilities[name]:.1%}" for name in listed)]
