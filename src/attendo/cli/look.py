"""`attendo look`: one page that shows every head, every step and every beam of a translation."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from attendo.cli.speech import LangOption, argument, choose_language, option, speaking
from attendo.core.errors import InputError
from attendo.core.files import write_atomically

TEXTS = {
    "en": {
        "working": "translating and looking inside",
        "record": "the record alone",
        "page": "open it in a browser",
    },
    "ko": {
        "working": "번역하며 들여다보는 중",
        "record": "기록만 적었습니다",
        "page": "브라우저로 여세요",
    },
}


@speaking("번역의 안을 들여다봅니다. 모든 헤드, 모든 단계, 모든 빔을 담은 화면 하나를 씁니다.")
def look(
    model: Annotated[
        Path,
        argument("A model folder, or the run's.", "모델 폴더나 학습 폴더."),
    ],
    text: Annotated[str, argument("The sentence.", "들여다볼 문장.")],
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
    force: Annotated[
        bool, option("Replace the page.", "있는 화면을 바꿔 씁니다.", "--force")
    ] = False,
    lang: LangOption = None,
) -> None:
    """Look inside a translation: one offline page with every head, every step, every beam."""
    from rich.console import Console

    from attendo.inspection.look import look_inside
    from attendo.inspection.page import render
    from attendo.translator import Translator

    chosen = choose_language(lang)
    texts = TEXTS[chosen]
    if output.is_dir() or not output.parent.is_dir():
        reason = f"{output} is a folder" if output.is_dir() else f"no folder {output.parent}"
        raise InputError(reason, remedy="name a file in a folder that exists with -o")
    if output.exists() and not force:
        raise InputError(f"{output} exists", remedy="choose another -o, or --force to replace it")
    console = Console(highlight=False, stderr=True)
    with console.status(texts["working"]):
        translator = Translator.load(model)
        record = look_inside(
            translator, text, tgt, beam_size=beam_size, attribution=attribution, ablation=ablation
        )
        page = record.to_json() if output.suffix == ".json" else render(record)
        write_atomically(output, page)
    typer.echo(record.tgt["text"])
    use = texts["record" if output.suffix == ".json" else "page"]
    typer.echo(f"{output}: {len(page.encode()) / 1e6:.1f} MB; {use}", err=True)
    if pictures is not None:
        from attendo.inspection.plots import draw_all

        for path in draw_all(pictures, record, translator, language=chosen):
            typer.echo(str(path), err=True)
