"""The application of `attendo serve` as a deployment of Ray Serve.

    serve run attendo.serving.ray_serve:build models=/models/ko-en num_replicas=4

Each replica is one server process with its models, queues and limits. Requests come through Ray
Serve's proxy: what `attendo.serving.transport.uvicorn_server` adds (limits of connections, time
limits of headers) is not there, so put a proxy that has them in front.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attendo.core.config import override
from attendo.core.errors import ConfigError, MissingExtraError
from attendo.core.message import message
from attendo.serving.config import ServeConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastapi import FastAPI

REPLICA_OPTIONS = {"num_replicas": int, "num_cpus": float, "num_gpus": float}
"""Of the deployment; all other arguments are fields of `ServeConfig`."""
MAX_ONGOING_REQUESTS = 64
"""Requests that a replica has at a time: enough to fill its batches."""


def build(arguments: Mapping[str, str]) -> Any:
    """Return the Ray Serve application.

    Args:
        arguments: `models` (separated by commas), `num_replicas` (a number, or "auto" to follow the
            load), `num_cpus` and `num_gpus` of a replica, and fields of `ServeConfig`.

    """
    try:
        from ray import serve
    except ImportError:
        raise MissingExtraError("ray[serve]", "cluster") from None
    given = dict(arguments)
    options: dict[str, Any] = {
        name: kind(given.pop(name)) if given[name] != "auto" else given.pop(name)
        for name, kind in REPLICA_OPTIONS.items()
        if name in given
    }
    resources = {name: options.pop(name) for name in ("num_cpus", "num_gpus") if name in options}
    config = make_config(given)

    def build_app() -> FastAPI:  # called in each replica, which loads the models
        from attendo.serving.app import create_app

        return create_app(config)

    deployment = serve.deployment(
        serve.ingress(build_app)(),
        name="attendo",
        max_ongoing_requests=MAX_ONGOING_REQUESTS,
        graceful_shutdown_timeout_s=config.grace + 2,
        ray_actor_options=resources,
        **options,
    )
    return deployment.bind()


def make_config(given: Mapping[str, str]) -> ServeConfig:
    """Return the configuration of a replica from texts."""
    if not given.get("models"):
        raise ConfigError("no model", hint="e.g. models=/models/ko-en")
    fields = {name: text for name, text in given.items() if name != "models"}
    unknown = sorted(set(fields) - set(ServeConfig.model_fields))
    if unknown:
        raise ConfigError(
            message("unknown key '{key}': {detail}", key=unknown[0], detail="see attendo serve")
        )
    # Ray Serve's proxies have addresses of their own, and the name that clients use is not known.
    base: dict[str, Any] = {"hosts": ["*"], "models": given["models"].split(",")}
    return ServeConfig(**override(base, [f"{name}={text}" for name, text in fields.items()]))
