"""Language names and language detection."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Iterable

LANGUAGE_NAMES = {
    "af": "Afrikaans", "ar": "Arabic", "auto": "Any language", "az": "Azerbaijani",
    "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali", "ca": "Catalan", "cs": "Czech",
    "cy": "Welsh", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque", "fa": "Persian",
    "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician", "gu": "Gujarati",
    "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "hy": "Armenian",
    "id": "Indonesian", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "ka": "Georgian",
    "kk": "Kazakh", "km": "Khmer", "kn": "Kannada", "ko": "Korean", "ky": "Kyrgyz",
    "la": "Latin", "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian", "mk": "Macedonian",
    "ml": "Malayalam", "mn": "Mongolian", "mr": "Marathi", "ms": "Malay", "my": "Burmese",
    "nb": "Norwegian Bokmål", "ne": "Nepali", "nl": "Dutch", "nn": "Norwegian Nynorsk",
    "no": "Norwegian", "pa": "Punjabi", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "sq": "Albanian",
    "sr": "Serbian", "sv": "Swedish", "sw": "Swahili", "ta": "Tamil", "te": "Telugu",
    "th": "Thai", "tl": "Tagalog", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "uz": "Uzbek", "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
MAX_DETECT_CHARACTERS = 1000
"""Characters of a text that are examined."""
CONFIDENCE_DIGITS = 1


class DetectedLanguage(NamedTuple):
    """A language and the confidence in percent."""

    confidence: float
    language: str


def language_name(code: str) -> str:
    """Return the English name of a language, or the code if it is unknown.

    >>> language_name("ko"), language_name("en-GB"), language_name("tlh")
    ('Korean', 'English (en-GB)', 'tlh')
    """
    if code in LANGUAGE_NAMES:
        return LANGUAGE_NAMES[code]
    name = LANGUAGE_NAMES.get(code.replace("_", "-").split("-")[0].lower())
    return f"{name} ({code})" if name else code


def detect(text: str, codes: Iterable[str]) -> list[DetectedLanguage]:
    """Rank the given languages for a text; without evidence, the first one has confidence 0.

    >>> detect("나는 학생이다.", ["en", "ko"])[0].language
    'ko'
    """
    candidates = [code for code in dict.fromkeys(codes) if code != "auto"]
    identifier, known = _get_identifier(tuple(candidates))
    if not known or not any(letter.isalpha() for letter in text):
        return [DetectedLanguage(0.0, candidates[0] if candidates else "en")]
    sample = text[:MAX_DETECT_CHARACTERS].encode("utf-8", errors="replace").decode()
    ranked = identifier.rank(sample)
    guesses = [
        DetectedLanguage(round(100 * float(share), CONFIDENCE_DIGITS), known[label])
        for label, share in ranked
    ]
    return [guess for guess in guesses if guess.confidence] or guesses[:1]


@lru_cache(maxsize=8)
def _get_identifier(codes: tuple[str, ...]) -> tuple[Any, dict[str, str]]:
    """Return an identifier restricted to these languages, and the codes it knows."""
    try:
        langid = import_module("py3langid.langid")
    except ModuleNotFoundError:
        raise MissingExtraError("py3langid", "serve") from None
    identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
    labels = set(identifier.labels)
    known = {code.replace("_", "-").split("-")[0].lower(): code for code in reversed(codes)}
    known = {label: code for label, code in known.items() if label in labels}
    if known:
        identifier.set_languages(list(known))
    return identifier, known
