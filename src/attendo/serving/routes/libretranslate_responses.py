"""Responses of the LibreTranslate-compatible routes; a list of texts has a list of results."""

from __future__ import annotations

from pydantic import BaseModel


class DetectedLanguageResponse(BaseModel):
    """A detected language, with a confidence in percent."""

    confidence: float
    language: str


class TranslatedResponse(BaseModel):
    """Translations; with `source` "auto" also the languages, with `alternatives` also those."""

    translatedText: str | list[str]  # noqa: N815 - LibreTranslate's names
    detectedLanguage: DetectedLanguageResponse | list[DetectedLanguageResponse] | None = None  # noqa: N815
    alternatives: list[str] | list[list[str]] | None = None
    via: str | list[str | None] | None = None
    """The language between the two steps, if no model translates directly."""


class LanguageResponse(BaseModel):
    """A language, and the languages that it can be translated to."""

    code: str
    name: str
    targets: list[str]
    via: dict[str, str] = {}
    """The targets that are reached in two steps, each with the language in between."""


class TranslatedFileResponse(BaseModel):
    """Where the translated file can be downloaded for some time."""

    translatedFileUrl: str  # noqa: N815
    via: str | None = None
    """The language between the two steps, if no model translates directly."""
    notes: list[str] = []
    """What was not translated, or could not be kept."""


class NamedLanguage(BaseModel):
    """A language code with its name."""

    code: str
    name: str


class DefaultLanguages(BaseModel):
    """The languages that a web page selects first."""

    source: NamedLanguage
    target: NamedLanguage


class SettingsResponse(BaseModel):
    """The settings that a web page needs."""

    apiKeys: bool  # noqa: N815
    charLimit: int  # noqa: N815
    filesTranslation: bool  # noqa: N815
    frontendTimeout: int  # noqa: N815
    keyRequired: bool  # noqa: N815
    language: DefaultLanguages
    suggestions: bool
    supportedFilesFormat: list[str]  # noqa: N815


class HealthResponse(BaseModel):
    """The server accepts requests."""

    status: str
