"""`attendo look`: one page that shows every head and every step of what a model says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.localization import (
    LangOption,
    argument,
    choose_language,
    localized_command,
    option,
)
from attendo.core.errors import InputError
from attendo.core.files import write_atomically
from attendo.core.message import message

if TYPE_CHECKING:
    from attendo.inspection.record import Record
    from attendo.translator import Translator

MESSAGES = {
    "en": {
        "working": "translating and looking inside",
        "series": "forecasting and looking inside",
        "record": "the record alone",
        "page": "open it in a browser",
    },
    "ko": {
        "working": "번역하며 들여다보는 중",
        "series": "예측하며 들여다보는 중",
        "record": "기록만 적었습니다",
        "page": "브라우저로 여세요",
    },
}


@localized_command(
    "번역의 안을 들여다봅니다. 모든 헤드, 모든 단계, 모든 빔을 담은 화면 하나를 씁니다."
)
def look(
    model: Annotated[
        Path,
        argument("A model folder, or the run's.", "모델 폴더나 학습 폴더."),
    ],
    text: Annotated[
        str | None,
        argument("The sentence.", "들여다볼 문장."),
    ] = None,
    output: Annotated[
        Path,
        option(
            "The page, or *.json for the record alone.",
            "화면 파일. *.json이면 기록만 씁니다.",
            "--output",
            "-o",
        ),
    ] = Path("look.html"),
    tgt: Annotated[
        str | None,
        option(
            "Look at this translation instead of the model's own.",
            "모델의 번역 대신 이 번역을 들여다봅니다.",
        ),
    ] = None,
    beam_size: Annotated[
        int,
        option("Hypotheses kept; 1 is greedy.", "남겨 두는 후보 수. 1이면 탐욕 탐색."),
    ] = 4,
    attribution: Annotated[
        bool | None,
        option(
            "Which source words each word rests on; by default for small Transformers.",
            "단어마다 기대는 원문 단어. 작은 모델은 기본.",
            "--attribution/--no-attribution",
        ),
    ] = None,
    ablation: Annotated[
        bool | None,
        option(
            "Each head switched off in turn; by default for small Transformers.",
            "헤드를 하나씩 꺼 봅니다. 작은 모델은 기본.",
            "--ablation/--no-ablation",
        ),
    ] = None,
    pictures: Annotated[
        Path | None,
        option(
            "Draw every picture into this folder, too (PNG).",
            "이 폴더에 모든 그림도 그립니다(PNG).",
        ),
    ] = None,
    series: Annotated[
        Path | None,
        option(
            "Of a series model: the file to read, CSV, Parquet or NPZ.",
            "시계열 모델일 때 읽을 파일. CSV, Parquet, NPZ.",
        ),
    ] = None,
    at: Annotated[
        str | None,
        option(
            "The first time to forecast; by default what comes behind the file.",
            "예측을 시작할 시점. 주지 않으면 파일 바로 다음.",
        ),
    ] = None,
    force: Annotated[
        bool, option("Replace the page.", "있는 화면을 바꿔 씁니다.", "--force")
    ] = False,
    lang: LangOption = None,
) -> None:
    """Look inside a translation: one offline page with every head, every step, every beam."""
    from rich.console import Console

    from attendo.inspection.html_page import render_page

    output_lang = choose_language(lang)
    messages = MESSAGES[output_lang]
    _check_output(output, force=force)
    text_only = {"--tgt": tgt, "--attribution": attribution, "--ablation": ablation,
                 "--pictures": pictures}  # fmt: skip
    _check_model_input(model, text, series, at, text_only)
    console = Console(highlight=False, stderr=True)
    translator: Translator | None = None
    with console.status(messages["working" if series is None else "series"]):
        if series is not None:
            record = _inspect_series(model, series, at)
        else:
            translator, record = _inspect_text(
                model, text or "", tgt=tgt, beam_size=beam_size, attribution=attribution,
                ablation=ablation,
            )  # fmt: skip
        page = record.to_json() if output.suffix == ".json" else render_page(record)
        write_atomically(output, page)
    typer.echo(record.tgt["text"])
    usage = messages["record" if output.suffix == ".json" else "page"]
    typer.echo(f"{output}: {len(page.encode()) / 1e6:.1f} MB; {usage}", err=True)
    if pictures is not None and translator is not None:
        from attendo.inspection.plots import save_all_plots

        for path in save_all_plots(pictures, record, translator, language=output_lang):
            typer.echo(str(path), err=True)


def _check_output(output: Path, *, force: bool) -> None:
    if output.is_dir() or not output.parent.is_dir():
        reason = (
            message("{path} is a folder", path=output)
            if output.is_dir()
            else message("no folder {path}", path=output.parent)
        )
        raise InputError(reason, hint="name a file in a folder that exists with -o")
    if output.exists() and not force:
        raise InputError(
            message("{path} exists", path=output),
            hint="choose another -o, or --force to replace it",
        )


def _check_model_input(
    model: Path, text: str | None, series: Path | None, at: str | None, text_only: dict[str, Any]
) -> None:
    """Refuse what does not go together: a sentence is for models of text, a file for series."""
    from attendo.bundle import read_input_type

    if text is not None and series is not None:
        raise InputError("a text and a series are given", hint="give the one that the model reads")
    if read_input_type(model) == "series":
        if series is None:
            raise InputError(
                message("{model} reads a series", model=model),
                hint="give its file with --series FILE",
            )
        if unsupported := [name for name, value in text_only.items() if value is not None]:
            reason = message("{options} is for models of text", options=", ".join(unsupported))
            raise InputError(reason, hint="leave it out for a series")
    elif series is not None or at is not None:
        raise InputError(
            message("{model} reads text", model=model),
            hint="give a sentence, without --series and --at",
        )
    elif text is None:
        raise InputError("no text to look at", hint='give it behind the model: MODEL "a sentence"')


def _inspect_text(model: Path, text: str, **options: Any) -> tuple[Translator, Record]:
    from attendo.inspection.inspect_sentence import inspect_sentence
    from attendo.translator import Translator

    translator = Translator.load(model)
    return translator, inspect_sentence(translator, text, **options)


def _inspect_series(model: Path, path: Path, at: str | None) -> Record:
    from attendo.tasks.forecasting.capture import capture_series
    from attendo.tasks.forecasting.forecaster import Forecaster
    from attendo.tasks.forecasting.windows import read_window

    forecaster = Forecaster.load(model)
    window = read_window(forecaster.codec, path, at=at)
    record = capture_series(
        forecaster,
        window.values,
        times=window.times,
        tgt_times=window.tgt_times,
        observed=window.observed,
    )
    return record.replace(notes=[*window.notes, *record.notes])
