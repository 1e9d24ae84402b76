"""`attendo serve`: models behind a web page and an API."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.cli.options import DeviceOption  # noqa: TC001 - typer reads the annotations
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from attendo.serving.config import ServeConfig

API_KEYS_ENV_VAR = "ATTENDO_API_KEYS"
"""Environment variable with API keys; other users of the machine can read the command line."""


def serve(
    models: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Model folders, run folders or exports for CTranslate2 or ONNX; by default the "
            "translators that Attendo ships.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; 0.0.0.0 accepts other machines."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one.")] = 8765,
    workers: Annotated[int, typer.Option(help="Worker processes; each loads the models.")] = 1,
    source: Annotated[
        str,
        typer.Option(help="Source language of models that do not record one."),
    ] = "auto",
    target: Annotated[
        str,
        typer.Option(help="Target language of models that do not record one."),
    ] = "auto",
    device: DeviceOption = None,
    engine: Annotated[
        str,
        typer.Option(help="Decoding engine: attendo, ctranslate2 or auto (ctranslate2 on a CPU)."),
    ] = "auto",
    runs: Annotated[
        Path | None,
        typer.Option(help="Folder of training runs to show on the page."),
    ] = None,
    memory: Annotated[
        Path | None,
        typer.Option(help="Translation memory, a file in which users save corrections."),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Maximum texts per batch.")] = 32,
    batch_wait_ms: Annotated[
        float, typer.Option(help="Milliseconds that a text waits for others to fill the batch.")
    ] = 10.0,
    max_queue: Annotated[
        int,
        typer.Option(help="Maximum queued texts; further requests get status 503."),
    ] = 512,
    timeout: Annotated[float, typer.Option(help="Seconds until a request times out.")] = 30.0,
    api_key: Annotated[
        list[str] | None,
        typer.Option(help="API key (repeatable); better set ATTENDO_API_KEYS, comma-separated."),
    ] = None,
    requests_per_minute: Annotated[
        int,
        typer.Option(help="Rate limit per API key or address; 0 is unlimited."),
    ] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another setting, e.g. max_characters=20000 (repeatable)."),
    ] = None,
    lang: LangOption = None,
) -> None:
    """Serve models: a web page and a LibreTranslate-compatible API."""
    start = perf_counter()
    output_lang = choose_language(lang)
    options: dict[str, Any] = {
        "models": choose_models(models or []), "host": host, "port": port, "workers": workers,
        "src_lang": source, "tgt_lang": target, "device": device, "engine": engine, "runs": runs,
        "memory": memory,
        "batch_size": batch_size, "batch_wait_ms": batch_wait_ms, "max_queue": max_queue,
        "timeout": timeout,
        "api_keys": read_api_keys(api_key or []), "requests_per_minute": requests_per_minute,
    }  # fmt: skip
    config = read_config(options, settings or [])
    warnings = []
    if config.is_public and not config.api_keys:
        warning = message(
            "{host} accepts requests from other machines without a key; "
            "use --api-key or a proxy to restrict access",
            host=config.host,
        )
        warnings.append(translate_message(warning, output_lang))
    if config.memory is not None:
        from attendo.memory.store import TranslationMemory

        TranslationMemory(config.memory, max_units=config.max_memory_units).close()
        if config.is_public and not config.api_keys:
            warning = message("everyone who reaches the server may change the translation memory")
            warnings.append(translate_message(warning, output_lang))
    from attendo.serving.server import run

    def on_ready(address: str) -> None:
        ready = message(
            "{address}  (ready after {seconds:.1f} s; press Ctrl-C to stop)",
            address=address,
            seconds=perf_counter() - start,
        )
        typer.echo(translate_message(ready, output_lang))

    run(config, on_ready=on_ready, warnings=warnings)


def choose_models(given: list[Path]) -> list[Path]:
    """Return the folders to serve: those that are given, or the shipped models."""
    from attendo.core.errors import InputError
    from attendo.core.shipped_models import (
        raise_if_not_shipped,
        resolve_shipped,
        shipped_models,
    )

    for folder in given:
        raise_if_not_shipped(folder)
    folders = [resolve_shipped(folder) for folder in given] or shipped_models()
    if not folders:
        raise InputError(
            "no model, and this installation has no translator of its own",
            hint="train one first: attendo quickstart, then attendo serve runs/quickstart/ko-en",
        )
    return folders


def read_config(options: dict[str, Any], settings: list[str]) -> ServeConfig:
    """Return the configuration, with settings and folders checked before models are loaded."""
    from attendo.core.config import override
    from attendo.core.errors import InputError
    from attendo.core.run_folder import MODEL_INDEX_FILE, ModelFolder, export_engine
    from attendo.serving.config import ServeConfig
    from attendo.text.lines import check_exists

    config = ServeConfig(**override(options, settings))
    for folder in config.models:
        check_exists(folder)
        if not ModelFolder.find(folder).exists() and export_engine(folder) is None:
            raise InputError(
                message(
                    "{path} is not a model folder: {index} is missing",
                    path=folder,
                    index=MODEL_INDEX_FILE,
                ),
                hint="pass a folder written by attendo train (OUT/model), or OUT itself",
            )
    if config.runs is not None and not config.runs.is_dir():
        raise InputError(
            message("no folder {path}", path=config.runs),
            hint="set --runs to a folder of training runs",
        )
    return config


def read_api_keys(cli_keys: list[str]) -> list[str]:
    """Return the keys of the command line and of the environment."""
    return [*cli_keys, *(key for key in os.environ.get(API_KEYS_ENV_VAR, "").split(",") if key)]
