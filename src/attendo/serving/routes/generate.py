"""The route of language models: a beginning in, texts that go on with it out."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from attendo.core.errors import ConfigError, InputError
from attendo.serving.routes import v1_schemas
from attendo.serving.routes.v1 import check_texts
from attendo.serving.routes.v1_schemas import (
    INTEGRAL,
    Name,
    Prefix,
    RequestModel,
    Seed,
    config_with_example,
)
from attendo.serving.strict_json import StrictRoute
from attendo.tasks.language_model.generator import TextGenerator

if TYPE_CHECKING:
    from attendo.serving.service import Service
    from attendo.translator import Translator

MAX_TOKENS = 512
"""More pieces would hold the model's thread for too long."""

router = APIRouter(
    prefix="/v1",
    route_class=StrictRoute,
    tags=["v1"],
    responses={"4XX": {"model": v1_schemas.ErrorBody}, "5XX": {"model": v1_schemas.ErrorBody}},
)


class GenerateRequest(RequestModel):
    """A beginning, maybe empty, and how it is to be gone on with."""

    model_config = config_with_example(beginning="A man", count=3, top_p=0.9, seed=1)
    model: Name | None = None
    """A language model; the first one when not given."""
    beginning: Prefix = ""
    count: Annotated[int, Field(ge=1, le=64), INTEGRAL] = 1
    """Texts, each drawn by itself."""
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS), INTEGRAL] = 100
    """Pieces that are added at most."""
    greedy: bool = False
    """Take the likeliest piece every time: one text."""
    temperature: Annotated[float, Field(ge=1e-4, le=100.0)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=100_000), INTEGRAL] = 0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    seed: Seed = 0
    api_key: Annotated[str, Field(max_length=512)] | None = None


class GenerateResponse(BaseModel):
    """Texts, the beginning included."""

    model: str
    seconds: float
    texts: list[str]


@router.post("/sample", summary="Go on with a text")
async def generate(body: GenerateRequest, request: Request) -> GenerateResponse:
    """Let a language model go on with a text, or begin one; the same seed gives the same texts."""
    start = perf_counter()
    service: Service = request.app.state.service
    served = service.registry.get_text_model(body.model, "language")
    check_texts([body.beginning], service.config)
    v1_schemas.check_limits({"count": (body.count, 1 + service.config.max_alternatives)})
    options = body.model_dump(exclude={"model", "beginning", "api_key"})
    texts = await service.call(served, served.call_native, _generate_texts, body.beginning, options)
    return GenerateResponse(
        model=served.name, seconds=round(perf_counter() - start, 4), texts=texts
    )


def _generate_texts(translator: Translator, prompt: str, options: dict[str, Any]) -> list[str]:
    generator = TextGenerator(translator.model, translator.tokenizer, about=translator.about)
    try:
        return generator.generate(prompt, **options)
    except ConfigError as error:
        raise InputError("; ".join(error.reasons)) from None
