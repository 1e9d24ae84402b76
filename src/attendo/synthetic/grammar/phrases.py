"""Phrases and clauses of the everyday corpus, in both languages, from the same choice of words.

Korean puts the verb last and marks each part with a particle; English relies on word order. A
clause stores its parts in both orders and inflects late, so that `sentences` can state, negate, ask
or join the same clause. Rules decide what Korean does not express:

- a bare topic is definite (왕자는: the prince), an object has the article of its noun;
- 이 is this, 저 is that, 내 is my; the plural is marked with 들 or a number;
- the present of an action has a habitual time, and nothing else has.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from attendo.synthetic.grammar import english, korean, lexicon
from attendo.synthetic.grammar.korean import attach
from attendo.synthetic.grammar.verbs import FRAMES

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from random import Random

    from attendo.synthetic.grammar.english import Agreement, Tense
    from attendo.synthetic.grammar.lexicon import Adjective, Noun, Time
    from attendo.synthetic.grammar.verbs import Frame

Item = TypeVar("Item")
Core = tuple[str, str]
"""The two main words of a clause: verb and object, place and thing, subject and state."""

_MAX_ATTEMPTS = 40
_MAX_CLOSED_NOUNS = 6
PERSONS = (
    *lexicon.PRONOUNS * 6,
    *lexicon.NAMES * 2,
    *lexicon.RELATIVES,
    *lexicon.PEOPLE,
    *lexicon.JOBS,
    *lexicon.GROUPS * 2,
)
_NOUNS = (
    *lexicon.PEOPLE,
    *lexicon.JOBS,
    *lexicon.GROUPS,
    lexicon.BABY,
    *lexicon.ANIMALS,
    *lexicon.FOOD,
    *lexicon.MEALS,
    *lexicon.DRINKS,
    *lexicon.READING_MATERIAL,
    *lexicon.MEDIA,
    *lexicon.CLOTHES,
    *lexicon.THINGS,
    *lexicon.SKILLS,
    *lexicon.EVENTS,
)


class NoCombinationError(Exception):
    """No allowed combination of words was found; the caller samples another sentence."""


class WordSampler:
    """Random choices among the allowed combinations of words.

    `core_filter` returns whether a core is allowed: a split uses only its own. `cores` collects the
    cores of the current sentence.
    """

    def __init__(self, rng: Random, core_filter: Callable[[Core], bool] | None = None) -> None:
        self.rng = rng
        self.core_filter = core_filter
        self.cores: list[Core] = []

    def bernoulli(self, p: float) -> bool:
        """Return True with probability `p`."""
        return self.rng.random() < p

    def choose(self, pool: Sequence[Item]) -> Item:
        """Return a random item."""
        return pool[int(self.rng.random() * len(pool))]

    def accept_core(self, core: Core) -> bool:
        """Record a core that cannot be chosen freely, and return whether it is allowed."""
        self.cores.append(core)
        return self.core_filter is None or self.core_filter(core)

    def choose_compatible(self, word: str, pool: Sequence[Noun]) -> Noun:
        """Return a noun that is allowed in combination with this word."""
        for _ in range(_MAX_ATTEMPTS):
            noun = self.choose(pool)
            core = (word, noun.ko)
            if self.core_filter is None or self.core_filter(core):
                self.cores.append(core)
                return noun
        raise NoCombinationError


class Phrase(NamedTuple):
    """A noun phrase as subject and as object."""

    ko: str
    en: str
    objective: str
    agreement: Agreement
    pronoun: str
    noun: Noun


@dataclass(slots=True)
class Clause:
    """A subject, a verb and its complements, not yet inflected."""

    subject: Phrase
    verb_ko: str
    verb_en: str
    before: list[str] = field(default_factory=list)
    """Korean, between the time and the verb."""
    after: list[str] = field(default_factory=list)
    """English, after the verb."""
    time: Time | None = None
    is_fronted: bool = False
    """The time is before the subject, in both languages."""
    is_descriptive: bool = False

    def to_korean(self, ending: str, *, particle: str = "은") -> str:
        """Return the Korean clause: subject, time, the other parts, the inflected verb."""
        subject = attach(self.subject.ko, particle) if self.subject.ko else ""
        time = self.time.ko if self.time else ""
        start = (time, subject) if self.is_fronted else (subject, time)
        return _join_words(*start, *self.before, ending)

    def to_english(
        self, tense: Tense, *, negative: bool = False, subject: str | None = None
    ) -> str:
        """Return the English statement; `subject` replaces the subject of the clause."""
        start = self.subject.en if subject is None else subject
        aux, verb = english.verb_parts(
            self.verb_en, self.subject.agreement, tense, with_do_support=negative
        )
        if negative:
            aux = "cannot" if aux == "can" else f"{aux} not"
        if self.is_fronted and self.time:
            return _join_words(self.time.en, start, aux, verb, *self.after)
        return _join_words(start, aux, *self._with_complements(verb))

    def to_base_form(self) -> str:
        """Return the English verb in its base form with its complements, without a subject."""
        return _join_words(self.verb_en, *self.after)

    def to_question(self, tense: Tense) -> str:
        """Return the English question."""
        aux, verb = english.verb_parts(
            self.verb_en, self.subject.agreement, tense, with_do_support=True
        )
        return _join_words(aux, self.subject.en, *self._with_complements(verb))

    def conjugate(self, tense: Tense, *, negative: bool = False, is_question: bool = False) -> str:
        """Return the inflected Korean verb."""
        return inflect(
            self.verb_ko,
            tense,
            is_descriptive=self.is_descriptive,
            negative=negative,
            is_question=is_question,
        )

    def _with_complements(self, verb: str) -> list[str]:
        if self.time is None:
            return [verb, *self.after]
        if self.time.tense == "frequency":
            return [self.time.en, verb, *self.after]
        return [verb, *self.after, self.time.en]


@cache
def inflect(
    verb: str,
    tense: Tense,
    *,
    is_descriptive: bool = False,
    negative: bool = False,
    is_question: bool = False,
) -> str:
    """Inflect a Korean verb in the plain style, with its auxiliaries.

    >>> inflect("구하다", "past"), inflect("건너다", "past", negative=True)
    ('구했다', '건너지 않았다')
    """
    if tense == "can":
        verb, negative = korean.prospective(verb) + (" 수 없다" if negative else " 수 있다"), False
    elif tense == "must":
        verb = korean.infinitive(verb) + "야 하다"
    elif tense in ("progressive", "past progressive"):
        verb = korean.stem(verb) + "고 있다"
    if negative:
        verb = korean.stem(verb) + "지 않다"
    if tense in ("past", "past progressive"):
        return korean.past(verb) + ("니" if is_question else "다")
    if tense == "future":
        return korean.prospective(verb) + (" 거니" if is_question else " 것이다")
    if is_question:
        return korean.question(verb)
    return korean.present(verb, descriptive=is_descriptive)


@cache
def nouns_of(kinds: str) -> tuple[Noun, ...]:
    """Return the nouns of any of these kinds; `person` includes all persons."""
    persons = PERSONS if "person" in kinds.split() else ()
    return persons + tuple(noun for noun in _NOUNS if noun.is_a(kinds))


@cache
def places_of(kinds: str) -> tuple[Noun, ...]:
    """Return the places of any of these kinds."""
    return tuple(place for place in lexicon.PLACES if place.is_a(kinds))


@cache
def objects_of(frame: Frame) -> tuple[Noun, ...]:
    """Return the possible objects of a verb: things, people, or places (enter the room)."""
    you = (lexicon.YOU,) * 3 if "person" in frame.what.split() else ()
    return nouns_of(frame.what) + places_of(frame.what) + you


@cache
def train_only_cores() -> frozenset[Core]:
    """Return the cores of verbs with few nouns, none of which is held out of train.

    A model that has not seen "wear a hat" cannot know that Korean has a special verb for it.
    """
    nouns: dict[tuple[str, str], set[str]] = {}
    for frame in frames_of():
        pool = objects_of(frame) or places_of(frame.goal) or nouns_of(frame.who)
        nouns.setdefault((frame.ko, frame.en), set()).update(noun.ko for noun in pool)
    few = {verb: group for verb, group in nouns.items() if len(group) < _MAX_CLOSED_NOUNS}
    return frozenset((ko, noun) for (ko, _), group in few.items() for noun in group)


@cache
def adjectives_of(
    kinds: str, *, predicate: bool = False, without: str = ""
) -> tuple[Adjective, ...]:
    """Return the adjectives that suit any of these kinds of noun, without those of some kinds."""
    return tuple(
        adjective
        for adjective in lexicon.ADJECTIVES
        if adjective.suits(kinds)
        and not adjective.suits(without)
        and not (predicate and adjective.adnominal)
    )


@cache
def frames_of(theme: str = "", mark: str = "") -> tuple[Frame, ...]:
    """Return the frames of a theme, or of all; those with more objects are repeated.

    With `mark` (one of `marks`, `how` or `why`), return only the frames that have it.
    """
    themes = (FRAMES[theme],) if theme else FRAMES.values()
    frames = [frame for group in themes for frame in group if not mark or mark in _marks(frame)]
    return tuple(frame for frame in frames for _ in range(_sampling_weight(frame)))


@cache
def times_of(tense: str, without: str = "") -> tuple[Time, ...]:
    """Return the times that suit a tense, without some parts of the day."""
    wanted = {"past": {"past", "any"}, "future": {"future", "any"}}.get(tense, {tense})
    parts = without.split()
    return tuple(time for time in lexicon.TIMES if time.tense in wanted and time.part not in parts)


@cache
def to_topic_phrase(noun: Noun) -> Phrase:
    """Return a noun as a topic: definite, or unchanged if it is fixed or a school subject."""
    is_bare = noun.article == "fixed" or noun.is_a("subject")
    en = noun.en if is_bare else f"the {noun.en}"
    return Phrase(noun.ko, en, noun.objective or en, agreement_of(noun), noun.pronoun, noun)


def agreement_of(noun: Noun) -> Agreement:
    """Return the verb agreement of a noun."""
    if noun.en == "I":
        return "I"
    if noun.en == "you":
        return "you"
    return "they" if noun.is_plural else "he"


@cache
def with_determiner(noun: Noun, ko: str, en: str) -> Phrase:
    """Return a noun with this, that, my or another owner."""
    if noun.is_plural:
        en = {"this": "these", "that": "those"}.get(en, en)
    text = f"{en} {noun.en}"
    return Phrase(f"{ko} {noun.ko}", text, text, agreement_of(noun), noun.pronoun, noun)


@cache
def with_adjective(noun: Noun, adjective: Adjective) -> Noun:
    """Return a noun with an adjective."""
    before = adjective.adnominal or korean.adnominal(adjective.ko)
    return noun._replace(ko=f"{before} {noun.ko}", en=f"{adjective.en} {noun.en}")


@cache
def object_phrase_en(noun: Noun) -> str:
    """Return the English noun as an object, with its article."""
    if noun.article == "fixed":
        return noun.objective or noun.en
    if noun.article == "none":
        return noun.en
    return f"the {noun.en}" if noun.article == "the" else english.indefinite(noun.en)


@cache
def with_count(noun: Noun, ko: str, en: str) -> tuple[str, str]:
    """Return a noun with a number: 사과 세 개, three apples; 커피 한 잔, a cup of coffee."""
    text = f"{noun.ko} {ko} {noun.counter}"
    if not noun.unit:
        return text, f"{en} {english.plural(noun.en)}"
    unit, of = noun.unit.split()
    amount = english.indefinite(unit) if en == "one" else f"{en} {english.plural(unit)}"
    return text, f"{amount} {of} {noun.en}"


@cache
def place_phrase_en(place: Noun, link: str = "at") -> str:
    """Return a place after "to" or after its own preposition: to school, home, in the park."""
    name = place.en if place.article == "fixed" else f"the {place.en}"
    if link == "at":
        return f"{place.preposition} {name}"
    return name if name == "home" else f"{link} {name}"


def capitalize_first(text: str) -> str:
    """Capitalize the first letter only."""
    return text[0].upper() + text[1:]


@cache
def _marks(frame: Frame) -> frozenset[str]:
    return frozenset(f"{frame.marks} {frame.how} {frame.why}".split())


def _sampling_weight(frame: Frame) -> int:
    """Return a weight that grows with the number of objects, but less than proportionally."""
    size = len(set(objects_of(frame) if frame.what else places_of(frame.goal)))
    return 2 + min(6, size // 8)


def _join_words(*parts: str) -> str:
    return " ".join(part for part in parts if part)
