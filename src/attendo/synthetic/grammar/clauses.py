"""Random clauses: the frame of a verb filled with suitable words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.synthetic.grammar import lexicon
from attendo.synthetic.grammar.english import plural
from attendo.synthetic.grammar.korean import attach
from attendo.synthetic.grammar.phrases import (
    PERSONS,
    Clause,
    NoCombinationError,
    Phrase,
    WordSampler,
    adjectives_of,
    nouns_of,
    object_phrase_en,
    objects_of,
    place_phrase_en,
    places_of,
    times_of,
    to_topic_phrase,
    with_adjective,
    with_count,
    with_determiner,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.synthetic.grammar.english import Tense
    from attendo.synthetic.grammar.lexicon import Adjective, Noun, Time
    from attendo.synthetic.grammar.verbs import Frame

BilingualText = tuple[str, str]
"""One part of a clause: Korean with its particle, English with its preposition."""

_KOREAN_ORDER = ["company", "place", "transport", "recipient", "tool", "goal", "object", "adverb"]
_ENGLISH_ORDER = ["object", "recipient", "goal", "tool", "adverb", "company", "place", "transport"]
_ADJUNCT_PROBABILITIES = {"place": 0.35, "adverb": 0.25, "company": 0.2, "tool": 0.35}
_TENSES: dict[str, tuple[Tense, ...]] = {
    "action": ("past", "past", "future", "present", "progressive"),
    "event": ("past", "past", "future"),
    "state": ("present", "present", "present", "past"),
    "accident": ("past",),
}
_OWN_RELATIVES = tuple(noun for noun in lexicon.RELATIVES if noun.en.startswith("my "))
DEMONSTRATIVES = (("이", "this"), ("저", "that"))


def sample_tense(sampler: WordSampler, frame: Frame) -> Tense:
    """Choose a tense that the verb allows."""
    return sampler.choose(_TENSES[frame.aspect])


def sample_subject(
    sampler: WordSampler, frame: Frame, pool: Sequence[Noun] = (), *, plain: bool = False
) -> Phrase:
    """Choose the subject; without an object, subject and verb are the core of the clause."""
    pool = pool or nouns_of(frame.who)
    noun = (
        sampler.choose(pool) if frame.is_transitive else sampler.choose_compatible(frame.ko, pool)
    )
    return to_topic_phrase(noun) if plain else modify_subject(sampler, noun)


def modify_subject(sampler: WordSampler, noun: Noun) -> Phrase:
    """Add an adjective or a demonstrative to a subject with some probability."""
    if noun.article == "fixed":
        return to_topic_phrase(noun)
    if sampler.bernoulli(0.12) and (adjectives := adjectives_of(noun.kinds, without="state")):
        return to_topic_phrase(with_adjective(noun, sampler.choose(adjectives)))._replace(noun=noun)
    if sampler.bernoulli(0.1) and not noun.is_a("royal job"):
        return with_determiner(noun, *sampler.choose(DEMONSTRATIVES))
    return to_topic_phrase(noun)


def sample_clause(
    sampler: WordSampler,
    frame: Frame,
    subject: Phrase,
    *,
    adjuncts: int = 2,
    plain: bool = False,
    countable: bool = True,
    contrast: bool = False,
) -> Clause:
    """Fill a frame: object or goal, and at most `adjuncts` adjuncts.

    `plain` omits determiners and adjectives, `countable` allows numbers. With `contrast` the object
    or the goal has the particle of contrast: 커피는 마시지 않았다.
    """
    parts: dict[str, BilingualText] = {}
    if frame.goal:
        place = sampler.choose_compatible(frame.ko, places_of(frame.goal))
        parts["goal"] = (
            place.ko + ("에는" if contrast else "에"),
            place_phrase_en(place, frame.link),
        )
        if frame.has_mark("transport") and adjuncts and sampler.bernoulli(0.35):
            parts["transport"] = _sample_transport(sampler, place)
            adjuncts -= 1
    parts |= _sample_adjuncts(sampler, frame, subject, adjuncts)
    if frame.to:
        other = sample_other_person(sampler, subject)
        particle = "에게서" if frame.to == "from" else "에게"
        parts["recipient"] = (other.ko + particle, f"{frame.to} {object_phrase_en(other)}")
    if not countable:
        frame = frame.without_mark("count")
    if frame.what:
        ko, en = _sample_object(sampler, frame, subject, plain=plain)
        parts["object"] = (_mark_object(ko, frame.particle, contrast=contrast), en)
    return Clause(
        subject,
        frame.ko,
        frame.en,
        before=[parts[name][0] for name in _KOREAN_ORDER if name in parts],
        after=[parts[name][1] for name in _ENGLISH_ORDER if name in parts],
        is_descriptive=frame.has_mark("descriptive"),
    )


def sample_other_person(sampler: WordSampler, subject: Phrase) -> Noun:
    """Choose a person other than the subject."""
    for _ in range(20):
        noun = sampler.choose(PERSONS)
        if _are_distinct(subject, noun):
            return noun
    raise NoCombinationError


def sample_time(sampler: WordSampler, clause: Clause, frame: Frame, tense: Tense) -> None:
    """Add a time that suits the tense; the present of an action always has one."""
    if tense == "present":
        if frame.aspect != "state":
            kind = "frequency" if sampler.bernoulli(0.3) else "habit"
            clause.time = sample_time_of_kind(sampler, clause, frame, kind)
    elif tense == "progressive":
        clause.time = lexicon.NOW if sampler.bernoulli(0.3) else None
        return
    elif frame.aspect != "state" and sampler.bernoulli(0.5):
        clause.time = sample_time_of_kind(sampler, clause, frame, tense)
    if clause.time and clause.time.tense != "frequency":
        clause.is_fronted = sampler.bernoulli(0.2)


def sample_time_of_kind(
    sampler: WordSampler, clause: Clause, frame: Frame, kind: str, without: str = ""
) -> Time:
    """Choose a time that suits the verb; early and late exclude a time of day."""
    marks = [mark.removeprefix("not-") for mark in frame.marks.split() if mark.startswith("not-")]
    if {"early", "late"} & set(clause.after):
        marks.append("clock")
    return sampler.choose(times_of(kind, " ".join([*marks, without])))


def _sample_adjuncts(
    sampler: WordSampler, frame: Frame, subject: Phrase, limit: int
) -> dict[str, BilingualText]:
    parts: dict[str, BilingualText] = {}
    for name in _possible_adjuncts(frame):
        probability = (
            1 if name == "adverb" and frame.has_mark("how") else _ADJUNCT_PROBABILITIES[name]
        )
        if len(parts) < limit and sampler.bernoulli(probability):
            part = _sample_adjunct(sampler, frame, subject, name, parts)
            if part:
                parts[name] = part
    return parts


def _possible_adjuncts(frame: Frame) -> list[str]:
    possible = {
        "place": bool(frame.where),
        "adverb": bool(frame.how),
        "company": frame.has_mark("company"),
        "tool": bool(frame.tool),
    }
    return [name for name, is_possible in possible.items() if is_possible]


def _sample_adjunct(
    sampler: WordSampler, frame: Frame, subject: Phrase, name: str, parts: dict[str, BilingualText]
) -> BilingualText | None:
    if name == "place":
        place = sampler.choose(places_of(frame.where))
        return place.ko + "에서", place_phrase_en(place)
    if name == "adverb":
        return _sample_adverb(sampler, frame, subject)
    if name == "company":
        return None if "adverb" in parts else _sample_companion(sampler, subject)
    tool = sampler.choose(nouns_of(frame.tool))
    return attach(tool.ko, "으로"), f"with {object_phrase_en(tool)}"


def _sample_transport(sampler: WordSampler, place: Noun) -> BilingualText:
    """Choose the transport by distance: a plane to another country, a bus within a city."""
    distance = "abroad" if place.is_a("abroad") else "far" if place.is_a("city") else "near"
    vehicle = sampler.choose([noun for noun in lexicon.TRANSPORT if noun.is_a(distance)])
    return attach(vehicle.ko, "으로"), f"by {vehicle.en}"


def _sample_adverb(sampler: WordSampler, frame: Frame, subject: Phrase) -> BilingualText | None:
    """Choose an adverb of manner; "together" needs a plural subject, "alone" a singular one."""
    is_plural = subject.agreement == "they"
    unsuitable = "alone" if is_plural else "together"
    names = [name for name in frame.how.split() if name != unsuitable]
    return lexicon.ADVERBS[sampler.choose(names)][:2] if names else None


def _sample_companion(sampler: WordSampler, subject: Phrase) -> BilingualText | None:
    pool = _OWN_RELATIVES if subject.en == "I" else lexicon.NAMES + lexicon.GROUPS
    noun = sampler.choose(pool)
    if not _are_distinct(subject, noun):
        return None
    return attach(noun.ko, "과") + " 함께", f"with {object_phrase_en(noun)}"


def _sample_object(
    sampler: WordSampler, frame: Frame, subject: Phrase, *, plain: bool
) -> BilingualText:
    """Choose the object and its determiner."""
    noun = sampler.choose_compatible(frame.ko, objects_of(frame))
    if not _are_distinct(subject, noun):
        raise NoCombinationError
    if frame.has_mark("generic"):
        return noun.ko, generic_english(noun)
    if noun.article == "a" and frame.has_mark("definite"):
        noun = noun._replace(article="the")
    if plain or noun.article == "fixed" or noun.preposition:
        return noun.ko, object_phrase_en(noun)
    return _sample_determiner(sampler, frame, subject, noun)


def _sample_determiner(
    sampler: WordSampler, frame: Frame, subject: Phrase, noun: Noun
) -> BilingualText:
    """Add an adjective, a demonstrative, an owner or a number to an object, or nothing."""
    u = sampler.rng.random()
    if u < 0.2 and not noun.is_a("subject") and (pool := _suitable_adjectives(frame, noun)):
        noun = with_adjective(noun, sampler.choose(pool))
    elif u < 0.26 and noun.counter and not noun.is_a("royal job"):
        phrase = with_determiner(noun, *sampler.choose(DEMONSTRATIVES))
        return phrase.ko, phrase.objective
    elif u < 0.42 and frame.has_mark("mine") and (noun.counter or noun.is_plural):
        phrase = with_determiner(noun, *sample_owner(sampler, subject))
        return phrase.ko, phrase.objective
    elif u < 0.52 and frame.has_mark("count") and noun.counter:
        return sample_count(sampler, noun)
    return noun.ko, object_phrase_en(noun)


def sample_owner(sampler: WordSampler, subject: Phrase | None = None) -> BilingualText:
    """Choose an owner; never the subject itself, for which Korean has another word."""
    if subject is None:
        return sampler.choose(lexicon.OWNERS)
    is_near = subject.en in ("I", "we", "you")
    owner = sampler.choose(lexicon.OWNERS + (lexicon.OTHER_OWNERS if is_near else ()))
    own = "your" if subject.en == "you" else f"{subject.en}'s"
    return lexicon.OWNERS[0] if owner[1] == own else owner


def _suitable_adjectives(frame: Frame, noun: Noun) -> tuple[Adjective, ...]:
    """Return the adjectives that suit an object of this verb."""
    without = "" if frame.has_mark("priced") else "price"
    if frame.has_mark("creates"):
        without += " age state weight"
    return adjectives_of(noun.kinds, without=without)


def sample_count(sampler: WordSampler, noun: Noun) -> BilingualText:
    """Choose a number of a noun; "one" is used only with a unit: a cup of coffee."""
    if noun.unit and sampler.bernoulli(0.4):
        return with_count(noun, "한", "one")
    return with_count(noun, *sampler.choose(lexicon.NUMBERS))


def generic_english(noun: Noun) -> str:
    """Return the generic English form of a noun: dogs, coffee."""
    return plural(noun.en) if noun.article == "a" and not noun.is_plural else noun.en


def _mark_object(ko: str, particle: str, *, contrast: bool) -> str:
    if not contrast:
        return attach(ko, particle)
    return attach(ko, "은") if particle in "을이" else attach(ko, particle) + "는"


def _are_distinct(subject: Phrase, noun: Noun) -> bool:
    """Return whether subject and object differ; not so: I and me, the king and the king."""
    own = subject.noun
    if own.en in ("I", "we") and noun.en in ("I", "we"):
        return False
    is_ours = own.en == "we" and noun.en.startswith("my ")
    return own.ko.removesuffix("들") != noun.ko.removesuffix("들") and not is_ours
