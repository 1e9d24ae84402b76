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

MOST_CHARACTERS, MOST_TEXTS = 100_000, 1024
MOST_PHRASES, MOST_ENTRIES, PHRASE_CHARACTERS = 16, 1000, 200
MOST_REASONS = 8
SHOWN = 60
"""Characters of what was sent that an error repeats."""


def _take_whole(number: Any) -> Any:
    """Take 4.0 for 4, as JSON does."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


WHOLE = BeforeValidator(_take_whole)
Text = Annotated[str, Field(max_length=MOST_CHARACTERS)]
Phrase = Annotated[str, Field(min_length=1, max_length=PHRASE_CHARACTERS)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Prefix = Annotated[str, Field(max_length=10_000)]
Seed = Annotated[int, Field(ge=0, lt=2**53), WHOLE]
Split = Literal["auto", "sentences", "never"]


def examples(**body: Any) -> ConfigDict:
    """Give the settings of a body with an example for the documentation."""
    return ConfigDict(
        extra="forbid", strict=True, frozen=True, json_schema_extra={"examples": [body]}
    )


class Body(BaseModel):
    """Base of what is sent."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _refuse_unknown(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        strange = [str(key)[:SHOWN] for key in given if key not in cls.model_fields]
        if strange:
            told = "; ".join(
                f"unknown field '{key}': {suggest(key, cls.model_fields)}"
                for key in strange[:MOST_REASONS]
            )
            raise PydanticCustomError("unknown_field", "{told}", {"told": told})
        return given


class Choice(Body):
    """Which model: by its name, by its languages, or the first one."""

    model: Name | None = None
    source: Name | None = None
    target: Name | None = None
    api_key: Annotated[str, Field(max_length=512)] | None = None
    """Where the server asks for one; `Authorization: Bearer` does as well."""


class TranslateBody(Choice):
    """A text or several, and how they are to be translated."""

    model_config = examples(
        text="나는 학생이다.", source="ko", target="en", n_best=2, confidence=True, alignment=True
    )
    text: Text | Annotated[list[Text], Field(min_length=1, max_length=MOST_TEXTS)]
    beam_size: Annotated[int, Field(ge=1, le=256), WHOLE] | None = None
    n_best: Annotated[int, Field(ge=1, le=64), WHOLE] = 1
    alpha: Annotated[float, Field(ge=-10.0, le=10.0)] = 0.6
    confidence: bool = False
    """Tell how sure the model is of each word."""
    alignment: bool = False
    """Tell which source words each target word looked at; of single sentences only."""
    glossary: Annotated[dict[Phrase, Phrase], Field(max_length=MOST_ENTRIES)] = {}
    """Source phrases and what must stand for them."""
    must: Annotated[list[Phrase], Field(max_length=MOST_PHRASES)] = []
    must_not: Annotated[list[Phrase], Field(max_length=MOST_PHRASES)] = []
    prefix: Prefix = ""
    """What the translation begins with."""
    sample: bool = False
    """Draw by chance; temperature, top_k, top_p and seed are of this."""
    temperature: Annotated[float, Field(ge=1e-4, le=100.0)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=100_000), WHOLE] = 0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    seed: Seed = 0
    split: Split = "auto"

    @property
    def texts(self) -> list[str]:
        """The texts; a single one makes a list of one."""
        return [self.text] if isinstance(self.text, str) else list(self.text)


class StreamBody(TranslateBody):
    """As for /v1/translate, with one text; the search is greedy whatever `beam_size` says."""

    model_config = examples(text="나는 학생이다.", confidence=True)
    text: Text
    n_best: Literal[1] = 1


class AlternativesBody(Choice):
    """A text, and what stands before the word that is asked for."""

    model_config = examples(text="나는 학생이다.", prefix="I am", top=8)
    text: Text
    prefix: Prefix = ""
    top: Annotated[int, Field(ge=1, le=64), WHOLE] = 8


class InspectBody(Choice):
    """A sentence to look into."""

    model_config = examples(text="나는 학생이다.", beam_size=4)
    text: Text
    target_text: Text | None = None
    """Explain this instead of translating."""
    beam_size: Annotated[int, Field(ge=1, le=256), WHOLE] | None = None
    ablation: bool = False
    """Switch off every head in turn: many passes."""
    attribution: bool = False
    """Attribute every word to the source by gradients: many passes."""


class Pair(Body):
    """A source and a translation of it."""

    source_text: Text
    target_text: Text


class ScoreBody(Choice):
    """Translations whose probability is asked for."""

    model_config = examples(
        pairs=[{"source_text": "나는 학생이다.", "target_text": "I am a student."}]
    )
    pairs: Annotated[list[Pair], Field(min_length=1, max_length=MOST_TEXTS)]


class Problem(BaseModel):
    """What went wrong, and what to do."""

    error: str


class SeriesAnswer(BaseModel):
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


class ModelAnswer(BaseModel):
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
    series: SeriesAnswer | None = None
    dev: dict[str, Any] | None = None
    """Its scores at the end of the training."""


class ModelsAnswer(BaseModel):
    """Every model."""

    models: list[ModelAnswer]


class WordAnswer(BaseModel):
    """A word and its probability."""

    text: str
    probability: float


class ConfidenceAnswer(BaseModel):
    """How sure the model is."""

    probability: float
    mean: float
    words: list[WordAnswer]


class AlignmentAnswer(BaseModel):
    """Which source words each target word looked at: a row of weights for each target word."""

    source_words: list[str]
    target_words: list[str]
    weights: list[list[float]]


class AlternativeAnswer(BaseModel):
    """A translation that came second or later."""

    text: str
    score: float | None
    log_prob: float | None
    is_finished: bool
    confidence: ConfidenceAnswer | None = None


class TranslationAnswer(AlternativeAnswer):
    """A translation; null in place of a number that JSON cannot hold."""

    source_text: str
    words: list[str]
    alternatives: list[AlternativeAnswer] = []
    alignment: AlignmentAnswer | None = None
    notes: list[str] = []


class TranslateAnswer(BaseModel):
    """Translations in the order of the texts."""

    model: str
    source: str
    target: str
    seconds: float
    translations: list[TranslationAnswer]


class NextWordAnswer(WordAnswer):
    """A word that could stand next."""

    prefix: str
    """The beginning with this word added, to go on from."""


class AlternativesAnswer(BaseModel):
    """The likeliest words, best first."""

    words: list[NextWordAnswer]


class TokenScore(BaseModel):
    """A token; joined, the texts give the translation. That of the end symbol is empty."""

    text: str
    log_prob: float | None


class ScoreAnswer(BaseModel):
    """How likely the model finds a translation."""

    log_prob: float | None
    num_tokens: int
    perplexity: float | None
    tokens: list[TokenScore]


class ScoresAnswer(BaseModel):
    """Scores in the order of the pairs."""

    model: str
    scores: list[ScoreAnswer]


def finite(number: float) -> float | None:
    """Give a number that JSON can hold, in six digits, else None."""
    return float(f"{number:.6g}") if math.isfinite(number) else None


def check_limits(reasons: dict[str, tuple[int, int]]) -> None:
    """Refuse what is more than this server allows; `reasons` are what: (number, limit)."""
    beyond = [
        f"{what}: {number}, and {limit} at most"
        for what, (number, limit) in reasons.items()
        if number > limit
    ]
    if beyond:
        raise ConfigError("; ".join(beyond), remedy="ask for less at once")
