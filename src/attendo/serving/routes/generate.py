"""Route of language models: generate text from a prompt."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from attendo.core.errors import ConfigError, InputError
from attendo.core.message import join_messages
from attendo.serving.limits import check_limits, check_texts
from attendo.serving.routes import v1_schemas
from attendo.serving.routes.v1_schemas import (
    INTEGRAL,
    Name,
    Prefix,
    RequestModel,
    Seed,
    config_with_example,
)
from attendo.serving.strict_json import StrictRoute

if TYPE_CHECKING:
    from attendo.serving.service import Service
    from attendo.translator import Translator

MAX_TOKENS = 512
"""More tokens would occupy the thread of the model for too long."""

router = APIRouter(
    prefix="/v1",
    route_class=StrictRoute,
    tags=["v1"],
    responses={"4XX": {"model": v1_schemas.ErrorBody}, "5XX": {"model": v1_schemas.ErrorBody}},
)


class GenerateRequest(RequestModel):
    """A prompt, possibly empty, and how to continue it."""

    model_config = config_with_example(count=3, top_p=0.9, seed=1)
    model: Name | None = None
    """A language model; by default the first one."""
    prompt: Prefix = ""
    count: Annotated[int, Field(ge=1, le=64), INTEGRAL] = 1
    """Number of texts, sampled independently."""
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS), INTEGRAL] = 100
    """Maximum number of generated tokens per text."""
    greedy: bool = False
    """Always take the most probable token; returns one text."""
    temperature: Annotated[float, Field(ge=1e-4, le=100.0)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=100_000), INTEGRAL] = 0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    seed: Seed = 0
    api_key: Annotated[str, Field(max_length=512)] | None = None


class GenerateResponse(BaseModel):
    """The texts, including the prompt."""

    model: str
    seconds: float
    texts: list[str]


@router.post("/generate", summary="Generate text")
async def generate(body: GenerateRequest, request: Request) -> GenerateResponse:
    """Generate text with a language model; equal seeds give equal texts."""
    start = perf_counter()
    service: Service = request.app.state.service
    served = service.registry.get_text_model(body.model, "language")
    check_texts([body.prompt], service.config)
    check_limits({"count": (body.count, 1 + service.config.max_alternatives)})
    options = body.model_dump(exclude={"model", "prompt", "api_key"})
    texts = await service.call(served, served.call_native, _generate_texts, body.prompt, options)
    return GenerateResponse(
        model=served.name, seconds=round(perf_counter() - start, 4), texts=texts
    )


def _generate_texts(translator: Translator, prompt: str, options: dict[str, Any]) -> list[str]:
    from attendo.tasks.language_model.generator import TextGenerator

    generator = TextGenerator(translator.model, translator.tokenizer, about=translator.about)
    try:
        return generator.generate(prompt, **options)
    except ConfigError as error:
        raise InputError(join_messages("; ", error.reasons)) from None
