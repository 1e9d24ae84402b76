"""Requests and responses of /v1; every text, list and number has a limit.

The limits here are hard limits; those of the server (`attendo.serving.config`) may be lower. Types
are strict ("4" is not a number), and the error for an unknown field names the nearest known one.
"""

from __future__ import annotations

import math
from itertools import islice
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from attendo.core.errors import suggest
from attendo.core.message import join_messages, message
from attendo.translator.quality import Band  # noqa: TC001 - pydantic reads the annotations

MAX_CHARACTERS, MAX_TEXTS = 100_000, 1024
MAX_PHRASES, MAX_GLOSSARY_ENTRIES, MAX_PHRASE_CHARACTERS = 16, 1000, 200
MAX_REASONS = 8
MAX_SHOWN_CHARACTERS = 60
"""Characters of a field name that an error repeats."""


def _integral_float_to_int(number: Any) -> Any:
    """Return 4 for 4.0: JSON has one type of numbers."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


def check_text_or_texts(value: Any) -> Any:
    """Reject what is neither a text nor a list of texts, with one reason instead of two."""
    is_text = isinstance(value, str)
    if is_text or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        return value
    reason = message("must be a string or a list of strings")
    raise PydanticCustomError("text_or_texts", "{reason}", {"reason": reason})


INTEGRAL = BeforeValidator(_integral_float_to_int)
Text = Annotated[str, Field(max_length=MAX_CHARACTERS)]
Phrase = Annotated[str, Field(min_length=1, max_length=MAX_PHRASE_CHARACTERS)]
Name = Annotated[str, Field(min_length=1, max_length=100)]
Prefix = Annotated[str, Field(max_length=10_000)]
Seed = Annotated[int, Field(ge=0, lt=2**53), INTEGRAL]
Split = Literal["auto", "sentences", "never"]
CopySpans = Literal["auto", "always", "never"]


def config_with_example(**body: Any) -> ConfigDict:
    """Return the configuration of a request with an example for the documentation."""
    return ConfigDict(
        extra="forbid", strict=True, frozen=True, json_schema_extra={"examples": [body]}
    )


class RequestModel(BaseModel):
    """Base class of requests."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _reject_unknown_fields(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        unknown = [
            str(key)[:MAX_SHOWN_CHARACTERS]
            for key in islice((key for key in data if key not in cls.model_fields), MAX_REASONS)
        ]
        if unknown:
            reason = join_messages(
                "; ",
                [
                    message(
                        "unknown field '{name}': {detail}",
                        name=key,
                        detail=suggest(key, cls.model_fields),
                    )
                    for key in unknown
                ],
            )
            raise PydanticCustomError("unknown_field", "{reason}", {"reason": reason})
        return data


class ModelSelector(RequestModel):
    """Selects a model by name or by languages; by default the first one.

    The source "auto" selects by the language of the text.
    """

    model: Name | None = None
    source: Name | None = None
    target: Name | None = None
    api_key: Annotated[str, Field(max_length=512)] | None = None
    """API key, if the server requires one; `Authorization: Bearer` works too."""


class TranslateRequest(ModelSelector):
    """One or several texts, and the decoding options."""

    model_config = config_with_example(
        text="나는 학생이다.", source="ko", target="en", n_best=2, confidence=True, alignment=True
    )
    text: Annotated[
        Text | Annotated[list[Text], Field(min_length=1, max_length=MAX_TEXTS)],
        BeforeValidator(check_text_or_texts),
    ]
    beam_size: Annotated[int, Field(ge=1, le=256), INTEGRAL] | None = None
    n_best: Annotated[int, Field(ge=1, le=64), INTEGRAL] = 1
    alpha: Annotated[float, Field(ge=-10.0, le=10.0)] = 0.6
    confidence: bool = False
    """Return the probability of each word."""
    alignment: bool = False
    """Return which source words each target word attends to, sentence by sentence."""
    glossary: Annotated[dict[Phrase, Phrase], Field(max_length=MAX_GLOSSARY_ENTRIES)] = {}
    """Source phrases and their required translations."""
    required: Annotated[list[Phrase], Field(max_length=MAX_PHRASES)] = []
    forbidden: Annotated[list[Phrase], Field(max_length=MAX_PHRASES)] = []
    prefix: Prefix = ""
    """Forced beginning of the translation."""
    do_sample: bool = False
    """Sample instead of beam search, with temperature, top_k, top_p and seed."""
    temperature: Annotated[float, Field(ge=1e-4, le=100.0)] = 1.0
    top_k: Annotated[int, Field(ge=0, le=100_000), INTEGRAL] = 0
    top_p: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    seed: Seed = 0
    split: Split = "auto"
    copy_spans: CopySpans = "auto"
    """Copy URLs, e-mail addresses, emoji and unknown numbers; "always": also known numbers."""
    label: Name | None = None
    """One of the `labels` of the model, e.g. "polite"; without it the model chooses."""
    retry: bool | None = None
    """Search a sentence whose output is empty, a loop or a copy of the source once more."""
    min_confidence: Annotated[float, Field(ge=0.0, le=1.0)] | None = None
    """Translations whose quality is lower are not accepted; needs a calibrated model."""
    memory: bool = True
    """Take texts that the translation memory has from there, and return similar ones."""
    repair: bool = False
    """Translate the words of the best similar text that differ: `repaired_text` of the match."""

    @property
    def texts(self) -> list[str]:
        """The texts as a list."""
        return [self.text] if isinstance(self.text, str) else list(self.text)


class StreamRequest(TranslateRequest):
    """As for /v1/translate, with one text; the search is always greedy."""

    model_config = config_with_example(text="나는 학생이다.", confidence=True)
    text: Text
    n_best: Literal[1] = 1
    retry: Literal[False] | None = None
    min_confidence: None = None


class AlternativesRequest(ModelSelector):
    """A text, and the translation up to the next word."""

    model_config = config_with_example(text="나는 학생이다.", prefix="I am", top=8)
    text: Text
    prefix: Prefix = ""
    top: Annotated[int, Field(ge=1, le=64), INTEGRAL] = 8


class InspectRequest(ModelSelector):
    """A sentence to inspect."""

    model_config = config_with_example(text="나는 학생이다.", beam_size=4)
    text: Text
    target_text: Text | None = None
    """Inspect this translation instead of the model's own."""
    beam_size: Annotated[int, Field(ge=1, le=256), INTEGRAL] | None = None
    ablation: bool = False
    """Ablate each attention head; takes many forward passes."""
    attribution: bool = False
    """Attribute each target word to the source words by gradients; takes many passes."""


class TextPair(RequestModel):
    """A source text and its translation."""

    source_text: Text
    target_text: Text


class ScoreRequest(ModelSelector):
    """Translations to score."""

    model_config = config_with_example(
        pairs=[{"source_text": "나는 학생이다.", "target_text": "I am a student."}]
    )
    pairs: Annotated[list[TextPair], Field(min_length=1, max_length=MAX_TEXTS)]


class ErrorBody(BaseModel):
    """The reason of an error, and a hint."""

    error: str


class SeriesResponse(BaseModel):
    """Inputs and outputs of a time series model."""

    columns: list[str]
    """Columns of a row, in order."""
    time: str | None
    """Name of the time column; times are optional."""
    window: int
    """Number of rows that the model reads: the last ones of a request."""
    horizon: int
    targets: list[str]
    kind: Literal["labels", "numbers"]
    labels: list[str] | None
    """The possible labels; null for numbers."""
    max_rows: int


class BandResponse(BaseModel):
    """The dev sentences in a band of confidence, and how many of them were right."""

    count: int
    num_right: int


class QualityResponse(BaseModel):
    """What the bands of confidence meant on dev."""

    num_sentences: int
    min_chrf: float | None
    """A translation was right from this chrF on; null: if it equaled the reference."""
    min_quality: dict[Band, float]
    """The quality from which a translation is in each band."""
    bands: dict[Band, BandResponse]


class TrainingResponse(BaseModel):
    """What a model was trained on."""

    num_examples: int
    """Pairs, or texts without a translation."""
    corpora: list[str]
    """The names of the files."""


class ModelResponse(BaseModel):
    """A served model; a time series model has no languages."""

    name: str
    task: Literal["translation", "classification", "language", "series"]
    source: str | None
    target: str | None
    kind: str
    num_parameters: int
    memory_bytes: int
    """Of its weights; with CTranslate2 the PyTorch model that shows the inside is included."""
    loaded: bool = True
    """False for a model that was unloaded because nobody used it; the next request loads it."""
    has_attention: bool
    default: bool
    """Whether requests for its task use it by default."""
    max_characters: int | None
    labels: list[str] = []
    """What translations can be asked for, e.g. polite and plain."""
    series: SeriesResponse | None = None
    dev: dict[str, Any] | None = None
    """Its dev scores at the end of the training."""
    quality: QualityResponse | None = None
    """What its confidence means; null if it is not calibrated."""
    vocab_sizes: list[int] | None = None
    """Tokens of the source and of the target; null for a time series model."""
    training: TrainingResponse | None = None
    """Null if the model folder does not say."""


class PivotResponse(BaseModel):
    """Two languages that are translated in two steps."""

    source: str
    target: str
    via: str


class ModelsResponse(BaseModel):
    """All models."""

    models: list[ModelResponse]
    pivots: list[PivotResponse] = []
    """Languages without a model of their own that two models connect."""
    has_memory: bool = False
    """Whether the server keeps corrections (/v1/corrections)."""


class WordResponse(BaseModel):
    """A word and its probability."""

    text: str
    probability: float


class UnfamiliarResponse(BaseModel):
    """Why a source is unlike the training data."""

    num_tokens: int
    num_unseen: int
    """Tokens that never occurred in training."""
    bits_per_character: float | None
    """How rare the words are; null if not rarer than 99 % of the dev set."""
    max_bits_per_character: float | None
    reasons: list[str]


class ConfidenceResponse(BaseModel):
    """Confidence of the model."""

    probability: float
    """Of exactly this translation; small for long ones."""
    mean_token_probability: float
    """Geometric mean over the tokens; high even for fluent nonsense."""
    quality: float | None
    """Share of dev translations with a similar score that were right; null if not calibrated."""
    band: Band | None
    """high, check or low, by the quality; see `quality` of the model."""
    is_calibrated: bool
    """Whether the band rests on the dev set."""
    unfamiliar: UnfamiliarResponse | None
    """Why the source is unlike the training data; null if it is not."""
    words: list[WordResponse]


class AlignmentResponse(BaseModel):
    """Which source words each target word attends to: one row of weights per target word."""

    source_words: list[str]
    target_words: list[str]
    weights: list[list[float]]


class SentenceResponse(BaseModel):
    """A sentence, or another part that was translated by itself; offsets count code points."""

    source_start: int
    source_end: int
    """`source_text[source_start:source_end]` was translated ..."""
    start: int
    end: int
    """... to `text[start:end]`."""
    quality: float | None = None
    band: Band | None = None
    accepted: bool | None = None
    """Whether the quality is at least `min_confidence`; null without it."""
    alignment: AlignmentResponse | None = None


class AlternativeResponse(BaseModel):
    """An alternative translation."""

    text: str
    score: float | None
    log_prob: float | None
    is_finished: bool
    confidence: ConfidenceResponse | None = None


class NoteResponse(BaseModel):
    """A note with a code, and the words or the number that it is about."""

    code: Literal[
        "unknown_words", "copied_words", "corrected_placeholders", "missing_phrase", "cut",
        "pieces", "not_aligned", "no_attention", "no_pytorch", "pivot_not_aligned", "retried",
        "empty_output", "loop", "untranslated",
    ]  # fmt: skip
    text: str
    words: list[str]
    count: int | None = None


class MemoryMatchResponse(BaseModel):
    """A unit of the translation memory whose source is the text, or like it."""

    kind: Literal["exact", "fuzzy"]
    score: float
    """1 for the same text, else the edit similarity."""
    source_text: str
    target_text: str
    repaired_text: str | None = None
    """The translation with the words that differ translated by the model, for `repair`; null if
    that is not possible."""
    id: int
    """Its number in /v1/corrections."""
    author: str | None
    time: str | None


class TranslationResponse(AlternativeResponse):
    """A translation; numbers that JSON cannot represent are null."""

    source_text: str
    accepted: bool | None = None
    """Whether every sentence is accepted; null without `min_confidence`."""
    words: list[str]
    alternatives: list[AlternativeResponse] = []
    alignment: AlignmentResponse | None = None
    """Of a text that is a single sentence; `sentences` has that of every text."""
    sentences: list[SentenceResponse] = []
    notes: list[str] = []
    note_details: list[NoteResponse] = []
    """The notes that have a code."""
    memory: list[MemoryMatchResponse] = []
    """What the translation memory has for the text, best first; after an exact match, which is the
    translation, nothing."""


class DetectedResponse(BaseModel):
    """The language of a text, for `"source": "auto"`."""

    language: str
    confidence: float
    """In percent."""


class ViaResponse(BaseModel):
    """The first step of a translation in two steps."""

    language: str
    """The language in between."""
    model: str
    """The model that translates to it."""


class TranslateResponse(BaseModel):
    """Translations in the order of the texts."""

    model: str
    source: str
    target: str
    via: ViaResponse | None = None
    """Null if `model` translates from the source language."""
    detected: DetectedResponse | None = None
    seconds: float
    translations: list[TranslationResponse]


class NextWordResponse(WordResponse):
    """A candidate for the next word."""

    prefix: str
    """The prefix with this word appended."""


class AlternativesResponse(BaseModel):
    """The most probable words, best first."""

    detected: DetectedResponse | None = None
    words: list[NextWordResponse]


class TokenScore(BaseModel):
    """A token; the joined texts are the translation. The end symbol has an empty text."""

    text: str
    log_prob: float | None


class ScoreResponse(BaseModel):
    """The score of a translation."""

    log_prob: float | None
    num_tokens: int
    perplexity: float | None
    tokens: list[TokenScore]


class ScoresResponse(BaseModel):
    """Scores in the order of the pairs."""

    model: str
    detected: DetectedResponse | None = None
    scores: list[ScoreResponse]


def round_finite(number: float) -> float | None:
    """Return a number with six significant digits, or None if it is not finite."""
    return float(f"{number:.6g}") if math.isfinite(number) else None
