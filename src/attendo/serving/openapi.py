"""The OpenAPI schema: what FastAPI generates, with keys, media types and examples that work.

The examples of requests use the languages, series and runs of this server, so that each of them can
be sent as it is. Routes that no model of this server can answer are left out.
"""

from __future__ import annotations

import json
from copy import deepcopy
from itertools import islice
from typing import TYPE_CHECKING, Any

from attendo.core.run_folder import RunFolder
from attendo.inspection.checkpoint_view import usable_steps
from attendo.lessons.contents import load_lessons
from attendo.serving import run_reader
from attendo.serving.routes.response_examples import RESPONSE_EXAMPLES
from attendo.serving.served_model import TEXT_OUTPUT_TASKS
from attendo.serving.transport.api_keys import PUBLIC_PATHS, PUBLIC_PREFIXES

if TYPE_CHECKING:
    from collections.abc import Collection

    from fastapi import FastAPI

    from attendo.serving.served_model import SeriesModelHandle, TextModelHandle
    from attendo.serving.service import Service

SECURITY_SCHEMES = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "Authorization: Bearer KEY"},
    "query": {"type": "apiKey", "in": "query", "name": "api_key"},
}
SAMPLE_LANGUAGES = ("ko", "en")
"""Source and target of the examples as they are written."""
SAMPLES = {
    "ko": ("나는 학생이다.", "안녕", "고마워"),
    "en": ("I am a student.", "Hello", "Thank you"),
    "de": ("Ich bin ein Student.", "Hallo", "Danke"),
    "fr": ("Je suis un étudiant.", "Bonjour", "Merci"),
    "es": ("Soy un estudiante.", "Hola", "Gracias"),
    "ja": ("私は学生です。", "こんにちは", "ありがとう"),
    "zh": ("我是学生。", "你好", "谢谢"),
}
"""A sentence and two words in the languages of the examples."""
LESSON_NUMBER = 4
"""The lesson of the examples."""
ROUTE_TASKS: dict[str, tuple[str, ...]] = {
    "/v1/forecast": ("series",),
    "/v1/forecast/explain": ("series",),
    "/v1/generate": ("language",),
    "/v1/inspect": (*TEXT_OUTPUT_TASKS, "language"),
    "/v1/lessons/{number}/own": ("translation", "language", "series"),
    **dict.fromkeys(("/translate", "/translate_file"), ("translation",)),
    **dict.fromkeys(
        ("/v1/translate", "/v1/stream", "/v1/alternatives", "/v1/score"), TEXT_OUTPUT_TASKS
    ),
}
"""The tasks of models that can answer a route."""
METHODS = ("get", "post", "delete")
MEMORY_PREFIX = "/v1/corrections"
"""Routes that need a translation memory."""
CHECKPOINT_ROUTE, MACHINE_ROUTE = "/v1/runs/{name}/checkpoint", "/v1/lessons/machine"
MAX_SEARCHED_RUNS = 20
"""Runs among which one with a checkpoint is searched."""
JSON = "application/json"


def render_schema(app: FastAPI) -> bytes:
    """Return the schema as JSON; it is built again only if the models or runs have changed."""
    values = _sample_values(app.state.service)
    cached: tuple[dict[str, Any], bytes] | None = getattr(app.state, "schema", None)
    if cached is None or cached[0] != values:
        cached = values, json.dumps(build_schema(app), ensure_ascii=False).encode()
        app.state.schema = cached
    return cached[1]


def build_schema(app: FastAPI) -> dict[str, Any]:
    """Return the schema with examples for the models that are loaded."""
    written = app.openapi()["components"]["schemas"]
    schema = deepcopy(app.openapi())
    service: Service = app.state.service
    if service.config.api_keys:
        _add_security(schema)
    values = _sample_values(service)
    has_memory = service.memory is not None
    for path in [
        one
        for one in schema["paths"]
        if not _is_served(one, values["tasks"])
        or (one.startswith(MEMORY_PREFIX) and not has_memory)
    ]:
        del schema["paths"][path]
    for path, operations in schema["paths"].items():
        for method in METHODS:
            if method in operations:
                operation = operations[method]
                _add_parameter_examples(operation, path, values)
                _add_request_examples(operation, path, written, values)
                _complete_responses(operation, f"{method.upper()} {path}")
    return schema


def _add_security(schema: dict[str, Any]) -> None:
    schema["components"]["securitySchemes"] = SECURITY_SCHEMES
    schema["security"] = [{name: []} for name in SECURITY_SCHEMES]
    for path, operations in schema["paths"].items():
        if "get" in operations and (path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES)):
            operations["get"]["security"] = []


def _is_served(path: str, tasks: Collection[str]) -> bool:
    return path not in ROUTE_TASKS or not set(ROUTE_TASKS[path]).isdisjoint(tasks)


def _sample_values(service: Service) -> dict[str, Any]:
    """Return what is served: tasks, languages, the rows of a series, names of runs, a lesson."""
    registry = service.registry
    translators = registry.list_text_models("translation", "classification")
    series = [one for one in registry.models if not hasattr(one, "translator")]
    folder = service.config.runs
    runs = run_reader.list_runs(folder) if folder else []
    searched = (one for one in runs[:MAX_SEARCHED_RUNS] if usable_steps(RunFolder(one)))
    shown = (*runs[:1], *islice(searched, 1))
    names = [run_reader.run_name(folder, one) for one in shown if folder]
    tasks = sorted({one.task for one in registry.models})
    return {
        "tasks": tasks,
        "src": translators[0].src if translators else SAMPLE_LANGUAGES[0],
        "tgt": translators[0].tgt if translators else SAMPLE_LANGUAGES[1],
        "series": _series_example(series[0]) if series else None,
        "run": names[0] if names else None,
        "checkpoint_run": names[1] if len(names) > 1 else None,
        "own_lesson": _find_own_lesson(tasks),
        "has_machine": bool(translators) and _is_transformer(translators[0]),
    }


def _is_transformer(served: TextModelHandle) -> bool:
    model = getattr(served.translator, "model", None)
    return served.task == "translation" and getattr(model, "kind", "") == "transformer"


def _find_own_lesson(tasks: Collection[str]) -> int | None:
    """Return a lesson that shows something of a served model."""
    if "translation" in tasks:
        return LESSON_NUMBER
    lessons = load_lessons() if {"language", "series"} & set(tasks) else []
    return next((one.number for one in lessons if not one.task_blocks.keys().isdisjoint(tasks)),
                None)  # fmt: skip


def _series_example(served: SeriesModelHandle) -> dict[str, Any]:
    codec = served.forecaster.codec
    means = [round(float(mean), 3) for mean in codec.mean]
    return {"rows": [means] * codec.window}


def _add_parameter_examples(operation: dict[str, Any], path: str, values: dict[str, Any]) -> None:
    examples = {"number": LESSON_NUMBER, "name": values["run"], "after": 0, "wait": 0, "lang": "en"}
    if path.endswith("/own"):
        examples["number"] = values["own_lesson"]
    if path == CHECKPOINT_ROUTE:
        examples["name"] = values["checkpoint_run"]
    for parameter in operation.get("parameters", ()):
        if examples.get(parameter["name"]) is not None:
            parameter["example"] = examples[parameter["name"]]
        elif path.startswith("/download_file/"):
            parameter["description"] = "The last part of the address from /translate_file."


def _add_request_examples(
    operation: dict[str, Any], path: str, written: dict[str, Any], values: dict[str, Any]
) -> None:
    for content in operation.get("requestBody", {}).get("content", {}).values():
        body = content.get("schema", {})
        if "$ref" in body:
            body = written[body["$ref"].rpartition("/")[2]]
        named = content.pop("examples", {})
        examples = [one["value"] for one in named.values()] or body.get("examples", [])
        if path.startswith("/v1/forecast") and values["series"]:
            examples = [values["series"]]
        if path == MACHINE_ROUTE and not values["has_machine"]:
            examples = [{"example": True}]
        examples = [_localize(one, values["src"], values["tgt"]) for one in examples]
        if examples:
            content["examples"] = {
                f"example {number}": {"value": one} for number, one in enumerate(examples, 1)
            }


def _localize(value: Any, src: str, tgt: str, *, name: str = "") -> Any:
    """Return an example with the languages, and sentences in the languages, of a model."""
    if isinstance(value, dict):
        fields = {key: _localize(item, src, tgt, name=key) for key, item in value.items()}
        return {key: item for key, item in fields.items() if item is not None}
    if isinstance(value, list):
        return [_localize(item, src, tgt, name=name) for item in value]
    if name in ("source", "target"):
        return {SAMPLE_LANGUAGES[0]: src, SAMPLE_LANGUAGES[1]: tgt}.get(value, value)
    if name == "prefix" and not tgt.startswith(SAMPLE_LANGUAGES[1]):
        return None
    return _replace_samples(value, src, tgt) if isinstance(value, str) else value


def _replace_samples(text: str, src: str, tgt: str) -> str:
    for written, supported in zip(SAMPLE_LANGUAGES, (src, tgt), strict=True):
        samples = SAMPLES.get(supported.split("-")[0], SAMPLES[written])
        for sample, other in zip(SAMPLES[written], samples, strict=True):
            if text == sample:
                return other
    return text


def _complete_responses(operation: dict[str, Any], name: str) -> None:
    """Add an example of the response; errors are JSON, whatever a route returns."""
    for status, response in operation.get("responses", {}).items():
        content = response.get("content", {})
        if status == "200" and name in RESPONSE_EXAMPLES and JSON in content:
            content[JSON]["example"] = RESPONSE_EXAMPLES[name]
        elif status in ("4XX", "5XX"):
            schema = {"schema": {"$ref": "#/components/schemas/ErrorBody"}}
            response["content"] = {JSON: {**schema, "example": {"error": "problem; hint"}}}
