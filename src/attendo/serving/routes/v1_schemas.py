"""What /v1 takes and gives, as pydantic models: every text, list and number has a limit.

The limits here are hard ones; those of the server (`attendo.serving.config`) may be smaller. Types
are strict ("4" is no number), and an unknown field is refused with the nearest known name.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message

MAX_CHARACTERS, MAX_TEXTS = 100_000, 1024
MAX_PHRASES, MAX_GLOSSARY_ENTRIES, MAX_PHRASE_CHARACTERS = 16, 1000, 200
MAX_REASONS = 8
MAX_SHOWN_CHARACTERS = 60
"""Characters of what was sent that an error repeats."""


def _integral_float_to_int(number: Any) -> Any:
    """Take 4.0 for 4, as JSON does."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


INTEGRAL = BeforeValidator(_integral_float_to_int)
Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Phrase = Annotated[str, Field(min_length=1, max_length=MAX_PHRASE_CHARACTERS)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Prefix = Annotated[str, Field(max_length=10_000)]
Seed = Annotated[int, Field(ge=0, lt=2**53), INTEGRAL]
Split = Literal["auto", "sentences", "never"]


def config_with_example(**body: Any) -> ConfigDict:
    """Give the settings of a body with an example for the documentation."""
    return ConfigDict(
        extra="forbid", strict=True, frozen=True, json_schema_extra={"examples": [body]}
    )


class RequestModel(BaseModel):
    """Base of what is sent."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _reject_unknown_fields(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        unknown = [str(key)[:MAX_SHOWN_CHARACTERS] for key in data if key not in cls.model_fields]
        if unknown:
            message = "; ".join(
                message(
                    "unknown field '{name}': {detail}",
                    name=key,
                    detail=suggest(key, cls.model_fields),
                )
                for key in unknown[:MAX_REASONS]
            )
            raise PydanticCustomError("unknown_field", "{told}", {"told": message})
        return data


class ModelSelector(RequestModel):
    """Which model: by its name, by its languages, or the first one."""

    model: Name | None = None
    source: Name | None = None
    target: Name | None = None
    api_key: Annotated[str, Field(max_length=512)] | None = None
    """Where the server asks for one; `Authorization: Bearer` does as well."""


class TranslateRequest(ModelSelector):
    """A text or several, and how they are to be translated."""

    model_config = config_with_example(
        text="나는 학생이다.", source="ko", target="en", n_best=2, confidence=True, alignment=True
    )
    text: Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)]
    beam_size: Annotated[int, Field(ge=1, le=256), INTEGRAL] | None = None
    n_best: Annotated[int, Field(ge=1, le=64), INTEGRAL] = 1
    alpha: Annotated[float, Field(ge=-10.0, le=10.0)] = 0.6
    confidence: bool = False
    """Tell how sure the model is of each word."""
    alignment: bool = False
    """Tell which source words each target word looked at; of single sentences only."""
    glossary: Annotated[dict[Phrase, Phrase], Field(max_length=MAX_GLOSSARY_ENTRIES)] = {}
    """Source phrases and what must stand for them."""
    required: Annotated[list[Phrase], Field(max_length=MAX_PHRASES)] = []
    forbidden: Annotated[list[Phrase], Field(max_length=MAX_PHRASES)] = []
    prefix: Prefix = ""
    """What the translation begins with."""
    do_sample: bool = False
    """Draw by chance; temperature, top_k, top_p and seed are of this."""
    temperature: Annotated[float, Field(ge=1e-4, le=100.0)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=100_000), INTEGRAL] = 0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    seed: Seed = 0
    split: Split = "auto"

    @property
    def texts(self) -> list[str]:
        """The texts; a single one makes a list of one."""
        return [self.text] if isinstance(self.text, str) else list(self.text)


class StreamRequest(TranslateRequest):
    """As for /v1/translate, with one text; the search is greedy whatever `beam_size` says."""

    model_config = config_with_example(text="나는 학생이다.", confidence=True)
    text: Text
    n_best: Literal[1] = 1


class AlternativesRequest(ModelSelector):
    """A text, and what stands before the word that is asked for."""

    model_config = config_with_example(text="나는 학생이다.", prefix="I am", top=8)
    text: Text
    prefix: Prefix = ""
    top: Annotated[int, Field(ge=1, le=64), INTEGRAL] = 8


class InspectRequest(ModelSelector):
    """A sentence to look into."""

    model_config = config_with_example(text="나는 학생이다.", beam_size=4)
    text: Text
    target_text: Text | None = None
    """Explain this instead of translating."""
    beam_size: Annotated[int, Field(ge=1, le=256), INTEGRAL] | None = None
    ablation: bool = False
    """Switch off every head in turn: many passes."""
    attribution: bool = False
    """Attribute every word to the source by gradients: many passes."""


class TextPair(RequestModel):
    """A source and a translation of it."""

    source_text: Text
    target_text: Text


class ScoreRequest(ModelSelector):
    """Translations whose probability is asked for."""

    model_config = config_with_example(
        pairs=[{"source_text": "나는 학생이다.", "target_text": "I am a student."}]
    )
    pairs: Annotated[list[TextPair], Field(min_length=1, max_length=MAX_TEXTS)]


class ErrorBody(BaseModel):
    """What went wrong, and what to do."""

    error: str


class SeriesResponse(BaseModel):
    """What a series model reads and foretells."""

    columns: list[str]
    """In the order in which rows are sent."""
    time: str | None
    """The name of the column of times; they may be left out."""
    window: int
    """Rows that are read: the last ones of those that are sent."""
    horizon: int
    targets: list[str]
    kind: Literal["labels", "numbers"]
    labels: list[str] | None
    """Every label that can be foretold; null where numbers are."""
    max_rows: int


class ModelResponse(BaseModel):
    """A model that is served; a series model has no languages."""

    name: str
    task: Literal["translation", "classification", "language", "series"]
    source: str | None
    target: str | None
    kind: str
    num_parameters: int
    has_attention: bool
    default: bool
    """Whether it is asked where a request of its task names no model."""
    max_characters: int | None
    series: SeriesResponse | None = None
    dev: dict[str, Any] | None = None
    """Its scores at the end of the training."""


class ModelsResponse(BaseModel):
    """Every model."""

    models: list[ModelResponse]


class WordResponse(BaseModel):
    """A word and its probability."""

    text: str
    probability: float


class ConfidenceResponse(BaseModel):
    """How sure the model is."""

    probability: float
    mean: float
    words: list[WordResponse]


class AlignmentResponse(BaseModel):
    """Which source words each target word looked at: a row of weights for each target word."""

    source_words: list[str]
    target_words: list[str]
    weights: list[list[float]]


class AlternativeResponse(BaseModel):
    """A translation that came second or later."""

    text: str
    score: float | None
    log_prob: float | None
    is_finished: bool
    confidence: ConfidenceResponse | None = None


class TranslationResponse(AlternativeResponse):
    """A translation; null in place of a number that JSON cannot hold."""

    source_text: str
    words: list[str]
    alternatives: list[AlternativeResponse] = []
    alignment: AlignmentResponse | None = None
    notes: list[str] = []


class TranslateResponse(BaseModel):
    """Translations in the order of the texts."""

    model: str
    source: str
    target: str
    seconds: float
    translations: list[TranslationResponse]


class NextWordResponse(WordResponse):
    """A word that could stand next."""

    prefix: str
    """The beginning with this word added, to go on from."""


class AlternativesResponse(BaseModel):
    """The likeliest words, best first."""

    words: list[NextWordResponse]


class TokenScore(BaseModel):
    """A token; joined, the texts give the translation. That of the end symbol is empty."""

    text: str
    log_prob: float | None


class ScoreResponse(BaseModel):
    """How likely the model finds a translation."""

    log_prob: float | None
    num_tokens: int
    perplexity: float | None
    tokens: list[TokenScore]


class ScoresResponse(BaseModel):
    """Scores in the order of the pairs."""

    model: str
    scores: list[ScoreResponse]


def round_finite(number: float) -> float | None:
    """Give a number that JSON can hold, in six digits, else None."""
    return float(f"{number:.6g}") if math.isfinite(number) else None


def check_limits(limits: dict[str, tuple[int, int]]) -> None:
    """Refuse what is more than this server allows; `reasons` are what: (number, limit)."""
    exceeded = [
        message("{what}: {count}, and {most} at most", what=what, count=number, most=limit)
        for what, (number, limit) in limits.items()
        if number > limit
    ]
    if exceeded:
        raise ConfigError("; ".join(exceeded), hint="ask for less at once")
