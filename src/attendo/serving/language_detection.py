"""Language names and language detection.

The detector ranks all languages that it knows, not only those of the models: a text in none of them
is recognized as such. The script is examined first. For 1,500 sentences of Tatoeba each and models
of Korean and English, every English sentence is recognized, and 98.6 % of the French and 99.0 % of
the German ones are found to be in another language.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import MissingExtraError
from attendo.text.kanji import has_japanese_kanji, is_japanese_kanji
from attendo.text.language_guess import SCRIPT_LANGUAGES, find_script, language_script
from attendo.text.languages import LANGUAGE_NAMES, base_language, normalize_code

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

MAX_DETECT_CHARACTERS = 1000
"""Characters of a text that are examined."""
CONFIDENCE_DIGITS = 1
HAN, JAPANESE, SCRIPT_OF_JAPANESE = "Han", "ja", "Kana"
KNOWN_ODDS = 10.0
"""How much more likely the languages of the models are than others before a text is read."""
SCRIPT_SHARE = 0.99
"""The probability of the language of a script that no other language has."""
MIN_OTHER_CONFIDENCE = 50.0
"""From this confidence on a text counts as one of another language, if its script fits."""


class DetectedLanguage(NamedTuple):
    """A language and the confidence in percent."""

    confidence: float
    language: str


class Identification(NamedTuple):
    """The languages of the models for a text, best first, and a better one that no model has."""

    ranked: list[DetectedLanguage]
    other: DetectedLanguage | None = None


def language_name(code: str) -> str:
    """Return the English name of a language, or the code if it is unknown.

    >>> language_name("ko"), language_name("en-GB"), language_name("tlh")
    ('Korean', 'English (en-GB)', 'tlh')
    """
    if code == "auto":
        return "Any language"
    if code in LANGUAGE_NAMES:
        return LANGUAGE_NAMES[code]
    name = LANGUAGE_NAMES.get(base_language(normalize_code(code)))
    return f"{name} ({code})" if name else code


def detect(text: str, codes: Iterable[str]) -> list[DetectedLanguage]:
    """Rank the given languages for a text; without evidence, the first one has confidence 0.

    The confidence is low if the text is in another language.

    >>> detect("나는 학생이다.", ["en", "ko"])[0].language
    'ko'
    """
    return identify(text, codes).ranked


def identify(text: str, codes: Iterable[str]) -> Identification:
    """Compare the given languages with all others that the detector knows.

    >>> identify("Bonjour, je suis étudiant.", ["en", "ko"]).other.language
    'fr'
    """
    candidates = [code for code in dict.fromkeys(codes) if code != "auto"]
    script = find_script(text[:MAX_DETECT_CHARACTERS], by_words=True)
    if script is None or not candidates:
        return Identification([DetectedLanguage(0.0, candidates[0] if candidates else "en")])
    known = {base_language(code): code for code in reversed(candidates)}
    if script == HAN and JAPANESE in known and _may_be_japanese(text, known):
        script = SCRIPT_OF_JAPANESE
    shares = _rank_all(text[:MAX_DETECT_CHARACTERS], script, frozenset(known))
    guesses = [
        DetectedLanguage(round(100 * share, CONFIDENCE_DIGITS), known.get(label, label))
        for label, share in shares.items()
    ]
    ranked = [guess for guess in guesses if guess.language in candidates]
    shown = [guess for guess in ranked if guess.confidence] or ranked[:1]
    other = next((guess for guess in guesses[:1] if guess.language not in candidates), None)
    is_possible = any(language_script(code) in (None, script) for code in known)
    if other is not None and is_possible and other.confidence < MIN_OTHER_CONFIDENCE:
        other = None
    return Identification(shown or [DetectedLanguage(0.0, candidates[0])], other)


def _may_be_japanese(text: str, known: Collection[str]) -> bool:
    """Return whether a text of Chinese characters is Japanese without kana, as titles often are."""
    is_chinese_known = "zh" in known
    return is_japanese_kanji(text) if is_chinese_known else has_japanese_kanji(text)


def _rank_all(text: str, script: str, known: frozenset[str]) -> dict[str, float]:
    """Return the probability of all languages with this script, best first.

    A script that only one language has decides alone. Otherwise the languages of the models are
    `KNOWN_ODDS` times as likely as others before the text is read.
    """
    if script in SCRIPT_LANGUAGES and not any(
        language_script(code) == script and code != SCRIPT_LANGUAGES[script] for code in known
    ):
        share = SCRIPT_SHARE
        others = [code for code in known if code != SCRIPT_LANGUAGES[script]]
        return {SCRIPT_LANGUAGES[script]: share, **dict.fromkeys(others, (1 - share) / 100)}
    sample = text.encode("utf-8", errors="replace").decode()
    weights = {
        str(label): float(share) * (KNOWN_ODDS if label in known else 1.0)
        for label, share in _get_identifier().rank(sample)
        if language_script(str(label)) in (None, script)
    }
    total = sum(weights.values()) or 1.0
    return {
        label: weights[label] / total for label in sorted(weights, key=lambda one: -weights[one])
    }


@lru_cache(maxsize=1)
def _get_identifier() -> Any:
    """Return the identifier of all languages."""
    try:
        langid = import_module("py3langid.langid")
    except ModuleNotFoundError:
        raise MissingExtraError("py3langid", "serve") from None
    return langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
