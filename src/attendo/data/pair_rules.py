"""Rules that find pairs that are not translations, and texts that are not sentences.

They go further than the cleaning before every training (`attendo.data.cleaning`): `attendo clean`
applies them once, to corpora that were collected automatically. Every rule looks at one pair.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from attendo.core.config import Config, Natural
from attendo.data.dedup import hash_text
from attendo.text.language_guess import (
    SCRIPTS,
    LanguageGuess,
    base_language,
    guess_other_language,
    language_script,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from attendo.data.cleaning import Reason
    from attendo.data.corpus_config import Pair

Share = Annotated[float, Field(ge=0.0, le=1.0)]
LETTER = re.compile(r"[^\W\d_]")
DIGIT = re.compile(r"\d")
SYLLABLE_SCRIPTS = frozenset({"Hangul", "Han", "Kana"})
LETTERS_PER_SYLLABLE = 2.5
"""About as many Latin letters say what one Hangul syllable or ideograph says."""
DAMAGED = re.compile("\ufffd|Ã[\u0080-\u00bf]|â€|[ìíëê][\u0080-\u00bf]{2}|\\?{4,}")
"""The replacement character, and UTF-8 that was read as Latin-1, as for Korean and for accents."""
NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d+)*")
NUMBER_UNIT = re.compile(r"\d\s?(?:[kKMB](?![A-Za-z])|thousand|million|billion|[십백천만억조])")
"""After these, the same number is written with other digits in another language."""
NUMBER_SEPARATORS = str.maketrans("", "", ".,")
PLACEHOLDER = re.compile(
    r"\$?\{[\w.:#-]{0,40}\}|%(?:\(\w{1,40}\))?[sd]\b|%\d{1,2}\b|</?[A-Za-z][\w-]{0,20}/?>"
)
WORD_RUN = re.compile(r"(?<!\S)(\S{2,})(?: \1){3,}(?!\S)")
"""A word four times in a row."""
MIN_JUDGED_LETTERS = 6
"""Texts with fewer letters may be names: they have no language."""
MIN_TEST_LETTERS = 12
"""Shorter texts of a test set may be in any corpus."""


class PairRules(Config):
    """Which pairs `attendo clean` drops, besides the cleaning before every training."""

    enabled: bool = True
    damaged: bool = True
    """Drop text with signs of a wrong decoding."""
    language: bool = True
    """Drop lines in another language than `src_lang` or `tgt_lang`."""
    min_script: Share = 0.3
    """Minimum share of the letters that are of the script of the language; a syllable or an
    ideograph counts as 2.5 letters."""
    min_letters: Share = 0.4
    """Minimum share of the characters that are letters or digits: tables and code have fewer."""
    repetition: bool = True
    """Drop texts with a word four times in a row."""
    numbers: bool = True
    """Drop pairs whose sides have numbers (of two digits or more), but none in common."""
    placeholders: bool = True
    """Drop pairs whose placeholders and tags ({name}, %s, <b>) differ."""
    near_duplicates: bool = True
    """Drop pairs that differ from an earlier one only in case, digits and punctuation."""
    min_characters: Natural = 0
    """Drop monolingual lines with fewer characters."""
    max_characters: Natural = 0
    """Drop monolingual lines with more characters; 0 sets no limit."""


class PairJudge:
    """Finds the reason to drop a pair.

    Args:
        rules: which rules apply.
        languages: the languages of source and target, if they are known.

    """

    def __init__(self, rules: PairRules, languages: tuple[str | None, str | None]) -> None:
        self.rules = rules
        self._expected = [_expect(language) for language in languages]

    def find_reason(self, pair: Pair) -> Reason | None:
        """Return why a pair is dropped; None if it is kept.

        >>> from attendo.data.corpus_config import Pair
        >>> judge = PairJudge(PairRules(), ("ko", "en"))
        >>> judge.find_reason(Pair("버전 2024에서", "In version 1999"))
        'other numbers'
        >>> judge.find_reason(Pair("나는 학생이다.", "I am a student."))
        """
        if not self.rules.enabled:
            return None
        for text, expected in zip(pair, self._expected, strict=True):
            reason = self._judge_side(text, expected)
            if reason is not None:
                return reason
        if self.rules.numbers and _have_other_numbers(*pair):
            return "other numbers"
        if self.rules.placeholders and _count_placeholders(pair.src) != _count_placeholders(
            pair.tgt
        ):
            return "other placeholders"
        return None

    def find_text_reason(self, text: str) -> Reason | None:
        """Return why a monolingual line is dropped: it is in the first of the languages."""
        if not self.rules.enabled:
            return None
        limit = self.rules.max_characters
        if len(text) < self.rules.min_characters or (limit and len(text) > limit):
            return "too long" if limit and len(text) > limit else "few letters"
        return self._judge_side(text, self._expected[0])

    def _judge_side(self, text: str, expected: LanguageGuess) -> Reason | None:
        rules = self.rules
        if rules.damaged and DAMAGED.search(text):
            return "damaged characters"
        num_letters = len(LETTER.findall(text))
        if not num_letters or num_letters + len(DIGIT.findall(text)) < rules.min_letters * (
            len(text) - text.count(" ")
        ):
            return "few letters"
        if rules.language and num_letters >= MIN_JUDGED_LETTERS:
            if _script_share(text, expected, num_letters) < rules.min_script:
                return "wrong language"
            if expected.script == "Latin" and guess_other_language(text, expected):
                return "wrong language"
        if rules.repetition and WORD_RUN.search(text):
            return "repeated words"
        return None


def _expect(language: str | None) -> LanguageGuess:
    if language is None:
        return LanguageGuess(None, None)
    return LanguageGuess(base_language(language), language_script(language))


def _script_share(text: str, expected: LanguageGuess, num_letters: int) -> float:
    """Return the share of the letters that are of the expected script; 1 if none is expected."""
    if expected.script is None or (expected.script == "Latin" and text.isascii()):
        return 1.0
    scripts = [expected.script, *(["Han", "Kana"] if expected.language == "ja" else [])]
    found = sum(len(run) for name in scripts for run in SCRIPTS[name].findall(text))
    weight = LETTERS_PER_SYLLABLE if expected.script in SYLLABLE_SCRIPTS else 1.0
    return weight * found / max(weight * found + num_letters - found, 1.0)


def _have_other_numbers(src: str, tgt: str) -> bool:
    if not DIGIT.search(src) or not DIGIT.search(tgt):
        return False
    if NUMBER_UNIT.search(src) or NUMBER_UNIT.search(tgt):
        return False
    numbers = [_numbers(text) for text in (src, tgt)]
    return bool(numbers[0] and numbers[1]) and numbers[0].isdisjoint(numbers[1])


def _numbers(text: str) -> set[str]:
    numbers = (match.translate(NUMBER_SEPARATORS) for match in NUMBER.findall(text))
    return {number for number in numbers if len(number) > 1}


def _count_placeholders(text: str) -> Counter[str]:
    return Counter(PLACEHOLDER.findall(text))


def near_key(text: str) -> str:
    """Return the letters of a text in lower case: near duplicates have the same.

    >>> near_key("Step 3: Done!") == near_key("step 12 - done")
    True
    """
    return "".join(LETTER.findall(text.casefold()))


class HeldOutTexts:
    """The texts of test sets, which must not be in the training data."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        keys = (near_key(text) for text in texts)
        self._hashes = {hash_text(key) for key in keys if len(key) >= MIN_TEST_LETTERS}

    def __len__(self) -> int:
        return len(self._hashes)

    def contain(self, keys: Iterable[str]) -> bool:
        """Return whether one of the texts, given by their `near_key`, is in a test set."""
        return bool(self._hashes) and any(hash_text(key) in self._hashes for key in keys)
