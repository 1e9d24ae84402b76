"""Clauses drawn by chance: a verb's frame filled with the words that suit it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.data.sample_grammar import lexicon
from attendo.data.sample_grammar.english import plural
from attendo.data.sample_grammar.korean import attach
from attendo.data.sample_grammar.phrases import (
    PERSONS,
    Clause,
    Draw,
    NoChoiceError,
    Phrase,
    adjectives_of,
    counted,
    described,
    determined,
    nouns_of,
    object_en,
    objects_of,
    phrase_of,
    place_en,
    places_of,
    times_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.data.sample_grammar.english import Tense
    from attendo.data.sample_grammar.lexicon import Adjective, Noun, Time
    from attendo.data.sample_grammar.verbs import Frame

Part = tuple[str, str]
"""One part of a clause: Korean with its particle, English with its preposition."""

_KOREAN_ORDER = ["company", "place", "transport", "recipient", "tool", "goal", "object", "adverb"]
_ENGLISH_ORDER = ["object", "recipient", "goal", "tool", "adverb", "company", "place", "transport"]
_ADJUNCT_SHARES = {"place": 0.35, "adverb": 0.25, "company": 0.2, "tool": 0.35}
_TENSES: dict[str, tuple[Tense, ...]] = {
    "action": ("past", "past", "future", "present", "progressive"),
    "event": ("past", "past", "future"),
    "state": ("present", "present", "present", "past"),
    "accident": ("past",),
}
_MY_PEOPLE = tuple(noun for noun in lexicon.KIN if noun.en.startswith("my "))
DEMONSTRATIVES = (("이", "this"), ("저", "that"))


def draw_tense(draw: Draw, frame: Frame) -> Tense:
    """Choose a tense that the verb can be in."""
    return draw.choose(_TENSES[frame.aspect])


def draw_subject(
    draw: Draw, frame: Frame, pool: Sequence[Noun] = (), *, plain: bool = False
) -> Phrase:
    """Choose who does it; without an object, subject and verb are the core of the clause."""
    pool = pool or nouns_of(frame.who)
    noun = draw.choose(pool) if frame.is_transitive else draw.combine(frame.ko, pool)
    return phrase_of(noun) if plain else dress_subject(draw, noun)


def dress_subject(draw: Draw, noun: Noun) -> Phrase:
    """Give a subject an adjective or a demonstrative now and then."""
    if noun.article == "fixed":
        return phrase_of(noun)
    if draw.chance(0.12) and (adjectives := adjectives_of(noun.kinds, without="state")):
        return phrase_of(described(noun, draw.choose(adjectives)))._replace(noun=noun)
    if draw.chance(0.1) and not noun.is_a("royal job"):
        return determined(noun, *draw.choose(DEMONSTRATIVES))
    return phrase_of(noun)


def draw_clause(
    draw: Draw,
    frame: Frame,
    subject: Phrase,
    *,
    adjuncts: int = 2,
    plain: bool = False,
    countable: bool = True,
    contrast: bool = False,
) -> Clause:
    """Fill a frame: object or goal, and up to so many adjuncts.

    `plain` leaves out determiners and adjectives, `countable` allows numbers. With `contrast` the
    object or the goal is marked as what it does not hold for: 커피는 마시지 않았다.
    """
    parts: dict[str, Part] = {}
    if frame.goal:
        place = draw.combine(frame.ko, places_of(frame.goal))
        parts["goal"] = (place.ko + ("에는" if contrast else "에"), place_en(place, frame.link))
        if frame.has("transport") and adjuncts and draw.chance(0.35):
            parts["transport"] = _draw_transport(draw, place)
            adjuncts -= 1
    parts |= _draw_adjuncts(draw, frame, subject, adjuncts)
    if frame.to:
        giver = draw_other(draw, subject)
        particle = "에게서" if frame.to == "from" else "에게"
        parts["recipient"] = (giver.ko + particle, f"{frame.to} {object_en(giver)}")
    if not countable:
        frame = frame.without("count")
    if frame.what:
        ko, en = _draw_object(draw, frame, subject, plain=plain)
        parts["object"] = (_mark_object(ko, frame.particle, contrast=contrast), en)
    return Clause(
        subject,
        frame.ko,
        frame.en,
        before=[parts[name][0] for name in _KOREAN_ORDER if name in parts],
        after=[parts[name][1] for name in _ENGLISH_ORDER if name in parts],
        is_descriptive=frame.has("descriptive"),
    )


def draw_other(draw: Draw, subject: Phrase) -> Noun:
    """Choose a person other than the subject."""
    for _ in range(20):
        noun = draw.choose(PERSONS)
        if _are_distinct(subject, noun):
            return noun
    raise NoChoiceError


def draw_time(draw: Draw, clause: Clause, frame: Frame, tense: Tense) -> None:
    """Give the clause a time that suits its tense; the present of an action always has one."""
    if tense == "present":
        if frame.aspect != "state":
            kind = "frequency" if draw.chance(0.3) else "habit"
            clause.time = choose_time(draw, clause, frame, kind)
    elif tense == "progressive":
        clause.time = lexicon.NOW if draw.chance(0.3) else None
        return
    elif frame.aspect != "state" and draw.chance(0.5):
        clause.time = choose_time(draw, clause, frame, tense)
    if clause.time and clause.time.tense != "frequency":
        clause.is_fronted = draw.chance(0.2)


def choose_time(draw: Draw, clause: Clause, frame: Frame, kind: str, without: str = "") -> Time:
    """Choose a time that suits the verb; early and late need no clock."""
    marks = [mark.removeprefix("not-") for mark in frame.more.split() if mark.startswith("not-")]
    if {"early", "late"} & set(clause.after):
        marks.append("clock")
    return draw.choose(times_of(kind, " ".join([*marks, without])))


def _draw_adjuncts(draw: Draw, frame: Frame, subject: Phrase, limit: int) -> dict[str, Part]:
    parts: dict[str, Part] = {}
    for name in _possible_adjuncts(frame):
        share = 1 if name == "adverb" and frame.has("how") else _ADJUNCT_SHARES[name]
        if len(parts) < limit and draw.chance(share):
            part = _draw_adjunct(draw, frame, subject, name, parts)
            if part:
                parts[name] = part
    return parts


def _possible_adjuncts(frame: Frame) -> list[str]:
    possible = {
        "place": bool(frame.where),
        "adverb": bool(frame.how),
        "company": frame.has("company"),
        "tool": bool(frame.tool),
    }
    return [name for name, is_possible in possible.items() if is_possible]


def _draw_adjunct(
    draw: Draw, frame: Frame, subject: Phrase, name: str, parts: dict[str, Part]
) -> Part | None:
    if name == "place":
        place = draw.choose(places_of(frame.where))
        return place.ko + "에서", place_en(place)
    if name == "adverb":
        return _draw_adverb(draw, frame, subject)
    if name == "company":
        return None if "adverb" in parts else _draw_company(draw, subject)
    tool = draw.choose(nouns_of(frame.tool))
    return attach(tool.ko, "으로"), f"with {object_en(tool)}"


def _draw_transport(draw: Draw, place: Noun) -> Part:
    """Choose how one gets there: by plane to another country, by bus to the next street."""
    reach = "abroad" if place.is_a("abroad") else "far" if place.is_a("city") else "near"
    vehicle = draw.choose([noun for noun in lexicon.TRANSPORT if noun.is_a(reach)])
    return attach(vehicle.ko, "으로"), f"by {vehicle.en}"


def _draw_adverb(draw: Draw, frame: Frame, subject: Phrase) -> Part | None:
    """Choose a manner; several are together and one is alone."""
    is_plural = subject.agreement == "they"
    unsuitable = "alone" if is_plural else "together"
    names = [name for name in frame.how.split() if name != unsuitable]
    return lexicon.ADVERBS[draw.choose(names)][:2] if names else None


def _draw_company(draw: Draw, subject: Phrase) -> Part | None:
    pool = _MY_PEOPLE if subject.en == "I" else lexicon.NAMES + lexicon.GROUPS
    noun = draw.choose(pool)
    if not _are_distinct(subject, noun):
        return None
    return attach(noun.ko, "과") + " 함께", f"with {object_en(noun)}"


def _draw_object(draw: Draw, frame: Frame, subject: Phrase, *, plain: bool) -> Part:
    """Choose what it is done to, and how the object is determined."""
    noun = draw.combine(frame.ko, objects_of(frame))
    if not _are_distinct(subject, noun):
        raise NoChoiceError
    if frame.has("generic"):
        return noun.ko, generic_en(noun)
    if noun.article == "a" and frame.has("definite"):
        noun = noun._replace(article="the")
    if plain or noun.article == "fixed" or noun.preposition:
        return noun.ko, object_en(noun)
    return _determine(draw, frame, subject, noun)


def _determine(draw: Draw, frame: Frame, subject: Phrase, noun: Noun) -> Part:
    """Give an object an adjective, a demonstrative, an owner or a number, or leave it bare."""
    share = draw.source.random()
    if share < 0.2 and not noun.is_a("subject") and (pool := _attributes(frame, noun)):
        noun = described(noun, draw.choose(pool))
    elif share < 0.26 and noun.counter and not noun.is_a("royal job"):
        phrase = determined(noun, *draw.choose(DEMONSTRATIVES))
        return phrase.ko, phrase.objective
    elif share < 0.42 and frame.has("mine") and (noun.counter or noun.is_plural):
        phrase = determined(noun, *draw_owner(draw, subject))
        return phrase.ko, phrase.objective
    elif share < 0.52 and frame.has("count") and noun.counter:
        return draw_count(draw, noun)
    return noun.ko, object_en(noun)


def draw_owner(draw: Draw, subject: Phrase | None = None) -> Part:
    """Choose whose it is; not his own of him, for which Korean has another word."""
    if subject is None:
        return draw.choose(lexicon.OWNERS)
    is_near = subject.en in ("I", "we", "you")
    owner = draw.choose(lexicon.OWNERS + (lexicon.OTHER_OWNERS if is_near else ()))
    own = "your" if subject.en == "you" else f"{subject.en}'s"
    return lexicon.OWNERS[0] if owner[1] == own else owner


def _attributes(frame: Frame, noun: Noun) -> tuple[Adjective, ...]:
    """Gather the adjectives that suit an object of this verb."""
    without = "" if frame.has("priced") else "price"
    if frame.has("creates"):
        without += " age state weight"
    return adjectives_of(noun.kinds, without=without)


def draw_count(draw: Draw, noun: Noun) -> Part:
    """Count a noun; one is said only of what is measured: a cup of coffee."""
    if noun.unit and draw.chance(0.4):
        return counted(noun, "한", "one")
    return counted(noun, *draw.choose(lexicon.NUMBERS))


def generic_en(noun: Noun) -> str:
    """Word a noun as a whole kind: dogs, coffee."""
    return plural(noun.en) if noun.article == "a" and not noun.is_plural else noun.en


def _mark_object(ko: str, particle: str, *, contrast: bool) -> str:
    if not contrast:
        return attach(ko, particle)
    return attach(ko, "은") if particle in "을이" else attach(ko, particle) + "는"


def _are_distinct(subject: Phrase, noun: Noun) -> bool:
    """Refuse one who acts on himself: I and me, the king and the king, we and my friend."""
    own = subject.noun
    if own.en in ("I", "we") and noun.en in ("I", "we"):
        return False
    is_ours = own.en == "we" and noun.en.startswith("my ")
    return own.ko.removesuffix("들") != noun.ko.removesuffix("들") and not is_ours
