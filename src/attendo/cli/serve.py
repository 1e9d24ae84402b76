"""`attendo serve`: a model, or several, as a web page and an API."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.localization import (
    LangOption,
    argument,
    choose_language,
    localized_command,
    option,
)
from attendo.core.message import message

if TYPE_CHECKING:
    from attendo.serving.config import ServeConfig

API_KEYS_ENV_VAR = "ATTENDO_API_KEYS"
"""Where keys may stand instead of the command line, which others on the machine can read."""

MESSAGES = {
    "en": {
        "open": "warning: {host} is reached from other machines, and anybody there may ask;"
        " --api-key or a proxy in front keeps strangers out",
        "ready": "{address}  (ready after {seconds:.1f} s; Ctrl-C ends)",
    },
    "ko": {
        "open": "주의: {host}에는 다른 컴퓨터도 들어올 수 있고, 누구나 쓸 수 있습니다. "
        "--api-key를 주거나 앞에 프록시를 두면 모르는 사람을 막을 수 있습니다",
        "ready": "{address}  (준비에 {seconds:.1f}초 걸림. 끝내려면 Ctrl-C)",
    },
}


@localized_command(
    "모델을 서버로 엽니다. 웹 화면, 그리고 LibreTranslate 클라이언트가 그대로 쓰는 API."
)
def serve(
    models: Annotated[
        list[Path], argument("Model folders, or those of runs.", "모델 폴더나 학습 폴더들.")
    ],
    host: Annotated[
        str,
        option(
            "The address; 0.0.0.0 lets other machines in.",
            "주소. 0.0.0.0이면 다른 컴퓨터도 들어옵니다.",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, option("0 takes any that is free.", "포트. 0이면 비어 있는 아무 포트.")
    ] = 8765,
    workers: Annotated[
        int, option("Processes; each loads the models.", "프로세스 수. 저마다 모델을 불러옵니다.")
    ] = 1,
    source: Annotated[
        str,
        option(
            "What models read that do not tell it themselves.",
            "읽는 언어를 스스로 밝히지 않는 모델이 읽는 언어.",
        ),
    ] = "auto",
    target: Annotated[
        str,
        option(
            "What models write that do not tell it themselves.",
            "쓰는 언어를 스스로 밝히지 않는 모델이 쓰는 언어.",
        ),
    ] = "auto",
    device: Annotated[
        str | None,
        option(
            "cpu, cuda, cuda:1 ...; a GPU where there is one.",
            "cpu, cuda, cuda:1 ... 주지 않으면 GPU가 있을 때 GPU.",
        ),
    ] = None,
    engine: Annotated[
        str,
        option(
            "What decodes: attendo, ctranslate2, or auto: ctranslate2 on a CPU that has it.",
            "번역을 맡을 엔진. attendo, ctranslate2, auto(CPU에 깔려 있으면 ctranslate2).",
        ),
    ] = "auto",
    runs: Annotated[
        Path | None,
        option(
            "A folder of training runs to show on the page.", "화면에 보여 줄 학습들이 든 폴더."
        ),
    ] = None,
    batch_size: Annotated[
        int, option("Texts that are decoded together.", "함께 번역하는 글의 수.")
    ] = 32,
    batch_wait_ms: Annotated[
        float, option("Milliseconds that a text waits for others.", "다른 글을 기다리는 밀리초.")
    ] = 10.0,
    max_queue: Annotated[
        int,
        option(
            "Texts that may wait; beyond it the answer is 503.",
            "기다릴 수 있는 글의 수. 넘으면 503으로 답합니다.",
        ),
    ] = 512,
    timeout: Annotated[
        float, option("Seconds that a request may take.", "요청 하나에 쓸 수 있는 초.")
    ] = 30.0,
    api_key: Annotated[
        list[str] | None,
        option(
            f"Who may ask; better in ${API_KEYS_ENV_VAR}, with commas.",
            f"쓸 사람의 키. 되도록 ${API_KEYS_ENV_VAR}에 쉼표로.",
        ),
    ] = None,
    requests_per_minute: Annotated[
        int,
        option(
            "Of one key, or one address; 0 is no limit.",
            "키(주소)마다 1분에 받는 요청 수. 0이면 무제한.",
        ),
    ] = 0,
    settings: Annotated[
        list[str] | None,
        option(
            "Another setting, e.g. max_characters=20000, grace=5.",
            "다른 설정. 예: max_characters=20000, grace=5.",
            "--set",
        ),
    ] = None,
    lang: LangOption = None,
) -> None:
    """Serve models: a web page and an API that LibreTranslate's clients speak."""
    start = perf_counter()
    messages = MESSAGES[choose_language(lang)]
    options: dict[str, Any] = {
        "models": models, "host": host, "port": port, "workers": workers, "src_lang": source,
        "tgt_lang": target, "device": device, "engine": engine, "runs": runs,
        "batch_size": batch_size, "batch_wait_ms": batch_wait_ms, "max_queue": max_queue,
        "timeout": timeout,
        "api_keys": read_api_keys(api_key or []), "requests_per_minute": requests_per_minute,
    }  # fmt: skip
    config = read_config(options, settings or [])
    if config.is_public and not config.api_keys:
        typer.echo(messages["open"].format(host=config.host), err=True)
    from attendo.serving.server import run

    def on_ready(address: str) -> None:
        typer.echo(messages["ready"].format(address=address, seconds=perf_counter() - start))

    run(config, on_ready=on_ready)


def read_config(options: dict[str, Any], settings: list[str]) -> ServeConfig:
    """Check the settings and the folders, before anything heavy is loaded."""
    from attendo.core.config import override
    from attendo.core.errors import InputError
    from attendo.core.run_folder import ModelFolder
    from attendo.serving.config import ServeConfig

    config = ServeConfig(**override(options, settings))
    for folder in config.models:
        if not ModelFolder.find(folder).exists():
            hint = "give a folder that attendo train wrote (OUT/model), or OUT itself"
            raise InputError(f"{folder} is no model folder: it has no bundle.json", hint=hint)
    if config.runs is not None and not config.runs.is_dir():
        raise InputError(
            message("no folder {path}", path=config.runs), hint="--runs names a folder of runs"
        )
    return config


def read_api_keys(cli_keys: list[str]) -> list[str]:
    """Give the keys of the command line, and those of the environment."""
    return [*cli_keys, *(key for key in os.environ.get(API_KEYS_ENV_VAR, "").split(",") if key)]
