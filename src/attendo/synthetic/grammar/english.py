"""English morphology of the everyday corpus: articles, plurals, verb forms, comparison.

A verb is its base form, possibly with a particle (`listen to`): the first word inflects.
"""

from __future__ import annotations

from functools import cache
from typing import Literal

Agreement = Literal["I", "you", "he", "they"]
"""Verb agreement: "he" for any third person singular, "they" for plurals."""

Tense = Literal["past", "present", "future", "progressive", "past progressive", "can", "must"]

_IRREGULAR_PAST = {
    "be": "was",
    "become": "became",
    "bite": "bit",
    "build": "built",
    "buy": "bought",
    "catch": "caught",
    "come": "came",
    "cut": "cut",
    "do": "did",
    "draw": "drew",
    "drink": "drank",
    "drive": "drove",
    "eat": "ate",
    "fall": "fell",
    "feed": "fed",
    "fight": "fought",
    "find": "found",
    "fly": "flew",
    "forgive": "forgave",
    "get": "got",
    "give": "gave",
    "go": "went",
    "have": "had",
    "hear": "heard",
    "hide": "hid",
    "keep": "kept",
    "leave": "left",
    "lend": "lent",
    "lose": "lost",
    "make": "made",
    "meet": "met",
    "read": "read",
    "ride": "rode",
    "run": "ran",
    "see": "saw",
    "sell": "sold",
    "send": "sent",
    "sing": "sang",
    "sit": "sat",
    "sleep": "slept",
    "swim": "swam",
    "take": "took",
    "teach": "taught",
    "throw": "threw",
    "understand": "understood",
    "wear": "wore",
    "write": "wrote",
}
_IRREGULAR_PLURAL = {
    "child": "children",
    "deer": "deer",
    "fish": "fish",
    "knife": "knives",
    "man": "men",
    "mouse": "mice",
    "person": "people",
    "potato": "potatoes",
    "sheep": "sheep",
    "thief": "thieves",
    "tomato": "tomatoes",
    "wolf": "wolves",
    "woman": "women",
}
_IRREGULAR_COMPARATIVE = {"good": "better", "far": "farther", "quiet": "quieter"}
_BE = {
    "present": {"I": "am", "you": "are", "he": "is", "they": "are"},
    "past": {"I": "was", "you": "were", "he": "was", "they": "were"},
}
_SOUNDS_LIKE_VOWEL = ("hour", "honest")
_SOUNDS_LIKE_CONSONANT = ("uni", "use", "euro", "one")


@cache
def indefinite(phrase: str) -> str:
    """Put a or an before a noun phrase.

    >>> indefinite("apple"), indefinite("school uniform"), indefinite("honest lawyer")
    ('an apple', 'a school uniform', 'an honest lawyer')
    """
    is_vowel = phrase[0] in "aeiouAEIOU" and not phrase.startswith(_SOUNDS_LIKE_CONSONANT)
    return f"{'an' if is_vowel or phrase.startswith(_SOUNDS_LIKE_VOWEL) else 'a'} {phrase}"


@cache
def plural(noun: str) -> str:
    """Return the plural of a noun; in a compound, the last word is inflected.

    >>> plural("puppy"), plural("police officer"), plural("wolf")
    ('puppies', 'police officers', 'wolves')
    """
    before, _, last = noun.rpartition(" ")
    word = _IRREGULAR_PLURAL.get(last) or _add_s(last)
    return f"{before} {word}" if before else word


@cache
def third_person(verb: str) -> str:
    """Return the third person singular of the present.

    >>> third_person("watch"), third_person("study"), third_person("look for")
    ('watches', 'studies', 'looks for')
    """
    first, rest = _split_verb(verb)
    return ("has" if first == "have" else "is" if first == "be" else _add_s(first)) + rest


@cache
def past(verb: str) -> str:
    """Return the past tense.

    >>> past("go"), past("hug"), past("study"), past("wait for")
    ('went', 'hugged', 'studied', 'waited for')
    """
    first, rest = _split_verb(verb)
    if first in _IRREGULAR_PAST:
        return _IRREGULAR_PAST[first] + rest
    if _ends_in_consonant_y(first):
        return first[:-1] + "ied" + rest
    return (first + "d" if first.endswith("e") else _double_final_consonant(first) + "ed") + rest


@cache
def gerund(verb: str) -> str:
    """Return the form in -ing.

    >>> gerund("make"), gerund("swim"), gerund("see"), gerund("get up")
    ('making', 'swimming', 'seeing', 'getting up')
    """
    first, rest = _split_verb(verb)
    if first.endswith("ie"):
        return first[:-2] + "ying" + rest
    drops_e = first.endswith("e") and not first.endswith(("ee", "oe")) and first != "be"
    return (first[:-1] if drops_e else _double_final_consonant(first)) + "ing" + rest


@cache
def comparative(adjective: str) -> str:
    """Return the comparative.

    >>> comparative("big"), comparative("heavy"), comparative("wise"), comparative("famous")
    ('bigger', 'heavier', 'wiser', 'more famous')
    """
    if adjective in _IRREGULAR_COMPARATIVE:
        return _IRREGULAR_COMPARATIVE[adjective]
    if _ends_in_consonant_y(adjective):
        return adjective[:-1] + "ier"
    if _count_syllables(adjective) > 1:
        return f"more {adjective}"
    return adjective + "r" if adjective.endswith("e") else _double_final_consonant(adjective) + "er"


@cache
def verb_parts(
    verb: str, agreement: Agreement, tense: Tense, *, with_do_support: bool = False
) -> tuple[str, str]:
    """Split a finite verb into its auxiliary, which moves in questions, and the rest.

    With `with_do_support` the simple tenses use do; `be` does not need it.

    >>> verb_parts("go", "he", "past"), verb_parts("go", "he", "past", with_do_support=True)
    (('', 'went'), ('did', 'go'))
    >>> verb_parts("be", "they", "past"), verb_parts("sleep", "I", "progressive")
    (('were', ''), ('am', 'sleeping'))
    """
    if tense in ("progressive", "past progressive"):
        return _be_form(agreement, past_tense=tense != "progressive"), gerund(verb)
    if tense in ("future", "can", "must"):
        return ("will" if tense == "future" else tense), verb
    first, rest = _split_verb(verb)
    if first == "be":
        return _be_form(agreement, past_tense=tense == "past"), rest.strip()
    if tense == "past":
        return ("did", verb) if with_do_support else ("", past(verb))
    if with_do_support:
        return ("does" if agreement == "he" else "do"), verb
    return "", third_person(verb) if agreement == "he" else verb


def _be_form(agreement: Agreement, *, past_tense: bool) -> str:
    return _BE["past" if past_tense else "present"][agreement]


def _split_verb(verb: str) -> tuple[str, str]:
    first, space, rest = verb.partition(" ")
    return first, space + rest


def _add_s(word: str) -> str:
    if _ends_in_consonant_y(word):
        return word[:-1] + "ies"
    is_sibilant = word.endswith(("s", "sh", "ch", "x", "z")) or word in ("go", "do")
    return word + ("es" if is_sibilant else "s")


def _ends_in_consonant_y(word: str) -> bool:
    return len(word) > 1 and word[-1] == "y" and word[-2] not in "aeiou"


def _double_final_consonant(word: str) -> str:
    """Double the last consonant of a word of one syllable and one short vowel: hug -> hugg."""
    is_short = (
        len(word) > 2
        and word[-1] not in "aeiouwxy"
        and word[-2] in "aeiou"
        and word[-3] not in "aeiou"
        and _count_syllables(word) == 1
    )
    return word + word[-1] if is_short else word


def _count_syllables(word: str) -> int:
    """Count the groups of vowels, without a silent e at the end."""
    core = word[:-1] if word.endswith("e") and not word.endswith(("le", "ee")) else word
    starts = [
        here in "aeiouy" and before not in "aeiouy"
        for before, here in zip(" " + core, core, strict=False)
    ]
    return max(1, sum(starts))
