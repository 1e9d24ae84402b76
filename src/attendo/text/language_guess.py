"""Guesses the language of text: by its script, and by stop words within a script.

This is enough to notice that a file has another language than its name says, or that lines of
another language are mixed in. It is not a language identifier for single words.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from attendo.text.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

SCRIPTS = MappingProxyType(
    {
        name: re.compile(f"[{ranges}]+")
        for name, ranges in {
            "Latin": "A-Za-zªºÀ-ÖØ-öø-ʯḀ-ỿＡ-Ｚａ-ｚ",
            "Cyrillic": "Ѐ-ԯ",
            "Greek": "Ͱ-Ͽἀ-῾",
            "Hangul": "ᄀ-ᇿ㄰-㆏가-힣",
            "Kana": "ぁ-ヿㇰ-ㇿｦ-ﾟ",
            "Han": "㐀-䶿一-鿿豈-﫿𠀀-𲎯",
            "Arabic": "؀-ۿݐ-ݿﭐ-﷿ﹰ-ﻼ",
            "Hebrew": "֐-׿",
            "Devanagari": "ऀ-ॿ",
            "Bengali": "ঀ-৿",
            "Tamil": "஀-௿",
            "Telugu": "ఀ-౿",
            "Thai": "฀-๿",
            "Georgian": "Ⴀ-ჿ",
            "Armenian": "԰-֏",
        }.items()
    }
)
SCRIPT_LANGUAGES = MappingProxyType(
    {
        "Hangul": "ko",
        "Kana": "ja",
        "Han": "zh",
        "Greek": "el",
        "Hebrew": "he",
        "Devanagari": "hi",
        "Bengali": "bn",
        "Tamil": "ta",
        "Telugu": "te",
        "Thai": "th",
        "Georgian": "ka",
        "Armenian": "hy",
    }
)
"""Scripts that one language dominates."""
LANGUAGE_SCRIPTS = MappingProxyType(
    {
        **{language: script for script, language in SCRIPT_LANGUAGES.items()},
        **dict.fromkeys(("ru", "uk", "bg", "sr", "be", "mk", "kk", "mn"), "Cyrillic"),
        **dict.fromkeys(("ar", "fa", "ur"), "Arabic"),
        **dict.fromkeys(("mr", "ne", "sa"), "Devanagari"),
        **dict.fromkeys(("sw", "eu", "gl", "is", "ga", "sq", "mt", "af", "tl", "ms"), "Latin"),
    }
)
"""The usual script of languages; those of `STOP_WORDS` that are missing are Latin."""
MIXED_SCRIPTS = MappingProxyType({"Kana": "Han"})
"""Japanese is a mixture: any Kana makes a text Japanese, not Chinese."""
DENSE_SCRIPTS = ("Hangul", "Kana", "Han")
RELATED = (
    {"nb", "no", "nn", "da"},
    {"hr", "sr", "bs", "sh", "sl"},
    {"id", "ms"},
    {"pt", "gl"},
    {"cs", "sk"},
    {"ru", "uk", "be", "bg", "mk"},
    {"hi", "mr", "ne", "sa"},
    {"zh", "yue", "wuu"},
    {"af", "nl"},
    {"ca", "es", "gl"},
    {"fi", "et"},
    {"ar", "fa", "ur"},
)
"""Languages that short texts cannot tell apart, or that are written the same way."""
WORD = re.compile(r"[^\W\d_]{2,}(?:['’][^\W\d_]+)?|[^\W\d_]['’][^\W\d_]+")
"""Single letters are left out: they are words of many languages, and of none if text is spelled."""
MAX_WORDS = 60
MIN_WORDS = 40
"""Words from which the language of a collection of texts is guessed."""
MIN_LINE_SCORE = 0.9
"""Weighted stop words from which a line votes for a language."""
MIN_VOTE_SHARE = 0.2
MIN_LEAD = 1.4
"""How many times more votes than the second language the first needs."""
MIN_LINE_HITS = 2
MIN_LINE_CHARACTERS = 12


class LanguageGuess(NamedTuple):
    """The language of a collection of texts; None if it is not clear."""

    language: str | None
    script: str | None


def find_script(text: str, *, by_words: bool = False) -> str | None:
    """Return the script of most letters of a text; None if it has no letters.

    With `by_words` a Latin word counts as much as one Chinese, Japanese or Korean letter, and half
    as much in a text without any usual word of a Latin language: texts in these languages often
    have names and abbreviations in Latin letters.

    >>> find_script("나는 TV를 본다"), find_script("犬は走る"), find_script("1 + 1")
    ('Hangul', 'Kana', None)
    >>> find_script("Django 사이트"), find_script("Django 사이트", by_words=True)
    ('Latin', 'Hangul')
    >>> [find_script(text, by_words=True) for text in ("Sony SR2 raw 画像", "This is the 李")]
    ['Han', 'Latin']
    """
    if text.isascii():
        return "Latin" if SCRIPTS["Latin"].search(text) else None
    found = {name: pattern.findall(text) for name, pattern in SCRIPTS.items()}
    sizes: dict[str, float] = {
        name: len(runs) if by_words and name not in DENSE_SCRIPTS else sum(map(len, runs))
        for name, runs in found.items()
        if runs
    }
    for part, whole in MIXED_SCRIPTS.items():
        if part in sizes:
            sizes[part] += sizes.pop(whole, 0)
    if by_words and "Latin" in sizes:
        has_usual_word = _count_stop_words(list(_words(text)), _weights("Latin"))
        sizes["Latin"] /= 1 if has_usual_word else 2
    return max(sizes, key=lambda name: (sizes[name], name != "Latin")) if sizes else None


def guess_language(texts: Iterable[str]) -> LanguageGuess:
    """Guess the language and the script of texts in one language.

    >>> guess_language(["The dog was in the garden, and it is not the only one that she had."] * 3)
    LanguageGuess(language='en', script='Latin')
    """
    texts = list(texts)
    scripts = Counter(script for script in map(find_script, texts) if script is not None)
    if not scripts:
        return LanguageGuess(None, None)
    script = scripts.most_common(1)[0][0]
    if script in SCRIPT_LANGUAGES:
        return LanguageGuess(SCRIPT_LANGUAGES[script], script)
    votes = count_languages(texts, script)
    num_words = sum(1 for text in texts for _ in _words(text))
    if num_words < MIN_WORDS or votes.total() < MIN_VOTE_SHARE * len(texts):
        return LanguageGuess(None, script)
    (first, count), *others = votes.most_common()
    second = next((value for name, value in others if not are_related(name, first)), 0)
    return LanguageGuess(first if count >= MIN_LEAD * second else None, script)


def count_languages(texts: Iterable[str], script: str) -> Counter[str]:
    """Count the lines of each language of a script, as far as stop words tell."""
    votes: Counter[str] = Counter()  # of lines, so that long lines do not count more
    for text in texts:
        scores = _count_stop_words(list(_words(text)), _weights(script))
        best = max(scores, key=lambda name: scores[name], default="")
        if scores[best] >= MIN_LINE_SCORE:
            votes[best] += 1
    return votes


def guess_other_language(text: str, expected: LanguageGuess) -> str | None:
    """Return the language or the script of a line that is clearly not the expected language.

    >>> english = LanguageGuess("en", "Latin")
    >>> guess_other_language("El perro está en la casa de mi madre.", english)
    'es'
    >>> guess_other_language("Tom loves Buenos Aires.", english)
    """
    script = find_script(text)
    if script is None or expected.script is None:
        return None
    if script != expected.script:
        # Names and code in Latin letters are usual inside text of another script.
        has_expected = expected.script != "Latin" and SCRIPTS[expected.script].search(text)
        is_long = len(text) >= MIN_LINE_CHARACTERS
        return SCRIPT_LANGUAGES.get(script, script) if is_long and not has_expected else None
    own = expected.language
    if own is None or own not in STOP_WORDS:
        return None
    words = list(_words(text))
    scores = _count_stop_words(words, _weights(script))
    best = max(scores, key=lambda name: scores[name], default=own)
    own_hits, best_hits = (sum(word in STOP_WORDS[name] for word in words) for name in (own, best))
    is_other = (
        best_hits >= max(MIN_LINE_HITS, 2 * own_hits + 1)
        and scores[best] >= scores[own] + 1.0
        and not are_related(best, own)
    )
    return best if is_other else None


def are_related(first: str, second: str) -> bool:
    """Return whether two languages are the same, or too similar to be distinguished."""
    first, second = base_language(first), base_language(second)
    return first == second or any({first, second} <= group for group in RELATED)


def base_language(code: str) -> str:
    """Return the language of a code: "pt_BR" and "pt-br" are "pt".

    >>> base_language("pt_BR"), base_language("zh-Hant")
    ('pt', 'zh')
    """
    return re.split("[-_]", code.strip().casefold())[0]


def language_script(code: str) -> str | None:
    """Return the usual script of a language; None if it is not known."""
    language = base_language(code)
    return LANGUAGE_SCRIPTS.get(language) or ("Latin" if language in STOP_WORDS else None)


def _words(text: str) -> Iterable[str]:
    found = (match[0] for match in WORD.finditer(text.casefold().replace("’", "'")))
    return islice(found, MAX_WORDS)


def _count_stop_words(
    words: Collection[str], weights: Mapping[str, Mapping[str, float]]
) -> Counter[str]:
    """Return the weighted number of stop words for each language."""
    scores: Counter[str] = Counter()
    for word in words:
        for language, weight in weights.get(word, {}).items():
            scores[language] += weight  # type: ignore[assignment] # a Counter of fractions
    return scores


@cache
def _languages(script: str) -> tuple[str, ...]:
    return tuple(name for name in STOP_WORDS if language_script(name) == script)


@cache
def _weights(script: str) -> dict[str, dict[str, float]]:
    """Return for each stop word its languages and its weight, which is less if it has several."""
    languages = _languages(script)
    owners: dict[str, list[str]] = {}
    for language in languages:
        for word in STOP_WORDS[language]:
            owners.setdefault(word, []).append(language)
    return {word: dict.fromkeys(names, 1.0 / len(names)) for word, names in owners.items()}
