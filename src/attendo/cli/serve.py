"""`attendo serve`: a model, or several, as a web page and an API."""

from __future__ import annotations

import os
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from attendo.serving.config import ServeConfig

KEYS = "ATTENDO_API_KEYS"
"""Where keys may stand instead of the command line, which others on the machine can read."""


def serve(
    models: Annotated[list[Path], typer.Argument(help="Model folders, or those of runs.")],
    host: Annotated[
        str, typer.Option(help="The address; 0.0.0.0 lets other machines in.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes any that is free.")] = 8765,
    workers: Annotated[int, typer.Option(help="Processes; each loads the models.")] = 1,
    source: Annotated[
        str, typer.Option(help="What models read that do not tell it themselves.")
    ] = "auto",
    target: Annotated[
        str, typer.Option(help="What models write that do not tell it themselves.")
    ] = "auto",
    device: Annotated[
        str | None, typer.Option(help="cpu, cuda, cuda:1 ...; a GPU where there is one.")
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="A folder of training runs to show on the page.")
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Texts that are decoded together.")] = 32,
    batch_wait_ms: Annotated[
        float, typer.Option(help="Milliseconds that a text waits for others.")
    ] = 10.0,
    max_queue: Annotated[
        int, typer.Option(help="Texts that may wait; beyond it the answer is 503.")
    ] = 512,
    timeout: Annotated[float, typer.Option(help="Seconds that a request may take.")] = 30.0,
    api_key: Annotated[
        list[str] | None, typer.Option(help=f"Who may ask; better in ${KEYS}, with commas.")
    ] = None,
    requests_per_minute: Annotated[
        int, typer.Option(help="Of one key, or one address; 0 is no limit.")
    ] = 0,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another setting, e.g. max_characters=20000, grace=5."),
    ] = None,
) -> None:
    """Serve models: a web page and an API that LibreTranslate's clients speak."""
    begin = perf_counter()
    given: dict[str, Any] = {
        "models": models, "host": host, "port": port, "workers": workers, "src_lang": source,
        "tgt_lang": target, "device": device, "runs": runs, "batch_size": batch_size,
        "batch_wait_ms": batch_wait_ms, "max_queue": max_queue, "timeout": timeout,
        "api_keys": read_keys(api_key or []), "requests_per_minute": requests_per_minute,
    }  # fmt: skip
    config = read_config(given, settings or [])
    if config.is_public and not config.api_keys:
        typer.echo(
            f"warning: {config.host} is reached from other machines, and anybody there may ask;"
            " --api-key or a proxy in front keeps strangers out",
            err=True,
        )
    from attendo.serving.server import run

    def tell(address: str) -> None:
        typer.echo(f"{address}  (ready after {perf_counter() - begin:.1f} s; Ctrl-C ends)")

    run(config, tell=tell)


def read_config(given: dict[str, Any], settings: list[str]) -> ServeConfig:
    """Check the settings and the folders, before anything heavy is loaded."""
    from attendo.core.config import override
    from attendo.core.errors import InputError
    from attendo.serving.config import ServeConfig

    config = ServeConfig(**override(given, settings))
    for folder in config.models:
        if not any((place / "bundle.json").is_file() for place in (folder, folder / "model")):
            remedy = "give a folder that attendo train wrote (OUT/model), or OUT itself"
            raise InputError(f"{folder} is no model folder: it has no bundle.json", remedy=remedy)
    if config.runs is not None and not config.runs.is_dir():
        raise InputError(f"no folder {config.runs}", remedy="--runs names a folder of runs")
    return config


def read_keys(given: list[str]) -> list[str]:
    """Give the keys of the command line, and those of the environment."""
    return [*given, *(key for key in os.environ.get(KEYS, "").split(",") if key)]
