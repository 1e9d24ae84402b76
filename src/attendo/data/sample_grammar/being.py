"""Sentences about what something is, how it is, where it is and who has it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from attendo.data.sample_grammar import english, lexicon
from attendo.data.sample_grammar.clauses import (
    DEMONSTRATIVES,
    draw_count,
    draw_owner,
    dress_subject,
)
from attendo.data.sample_grammar.korean import attach
from attendo.data.sample_grammar.lexicon import Noun
from attendo.data.sample_grammar.phrases import (
    PERSONS,
    Clause,
    NoChoiceError,
    adjectives_of,
    described,
    determined,
    inflect,
    nouns_of,
    object_en,
    phrase_of,
    place_en,
    places_of,
    times_of,
)
from attendo.data.sample_grammar.sentences import FIRST_PERSON, finish

if TYPE_CHECKING:
    from attendo.data.sample_grammar.english import Tense
    from attendo.data.sample_grammar.lexicon import Adjective
    from attendo.data.sample_grammar.phrases import Draw, Phrase

_SHOWN = (Noun("이것", "this", article="fixed"), Noun("저것", "that", article="fixed"))
_BEINGS = (*lexicon.PRONOUNS * 4, *lexicon.NAMES * 2, *lexicon.KIN)
_POINTED_AT = tuple(noun for noun in lexicon.FOLK if noun.en in ("man", "woman"))
# What one wants to become.
_PRAISE = tuple(
    adjective
    for adjective in lexicon.ADJECTIVES
    if adjective.en in ("kind", "smart", "brave", "honest", "wise", "famous")
)
# Which things are found in which places.
_FOUND = (
    ("outdoor", "pet bird flier youth tall"),
    ("wildplace", "wild bird"),
    ("zoo", "wild"),
    ("farm", "farmed"),
    ("room", "furniture portable"),
    ("dining shop", "visitor"),
    ("study", "school book"),
    ("clinic", "clinic"),
    ("station", "visitor"),
    ("street", "pet vehicle"),
)
_SMALL_THINGS = "portable toy book washable writer pet"
_COMPARED = "goods machine food furniture story room"


def be_something(draw: Draw) -> tuple[str, str]:
    """나는 학생이다. I am a student."""
    subject, job = _draw_job(draw, adjectives_of("role job"))
    tense: Tense = "past" if draw.chance(0.25) else "present"
    clause = Clause(subject, "이다", "be", after=[_complement(subject, job)])
    kind = draw.source.random()
    if kind < 0.2:
        ending = attach(job.ko, "이") + (" 아니었다" if tense == "past" else " 아니다")
        return finish(clause.say_ko(ending), clause.say_en(tense, negative=True))
    if kind < 0.4 and not subject.en.startswith("my "):
        if subject.en in FIRST_PERSON:
            _, noun_ko = draw.cores[-1]  # without its adjective
            if not draw.allows((lexicon.YOU.ko, noun_ko)):
                raise NoChoiceError
            clause.subject = phrase_of(lexicon.YOU)
            clause.after = [_complement(clause.subject, job)]
        ending = attach(job.ko, "이었니" if tense == "past" else "이니")
        return finish(clause.say_ko(ending), clause.ask_en(tense), "?")
    ending = attach(job.ko, "이었다" if tense == "past" else "이다")
    return finish(clause.say_ko(ending), clause.say_en(tense))


def become_something(draw: Draw) -> tuple[str, str]:
    """나는 의사가 될 것이다. I will become a doctor. 나는 의사가 되고 싶다. I want to ..."""
    subject, job = _draw_job(draw, _PRAISE)
    clause = Clause(subject, "되다", "become", before=[attach(job.ko, "이")])
    clause.after.append(_complement(subject, job))
    tense: Tense = "future"
    if draw.chance(0.5):
        tense, clause.verb_en = "present", "want to become"
        clause.is_descriptive = subject.en in FIRST_PERSON
        clause.verb_ko = "되고 싶다" if clause.is_descriptive else "되고 싶어 하다"
    return finish(clause.say_ko(clause.conjugate(tense)), clause.say_en(tense))


def show_something(draw: Draw) -> tuple[str, str]:
    """이것은 내 가방이다. This is my bag."""
    shown = draw.choose(_SHOWN)
    noun = draw.combine(shown.ko, nouns_of("goods machine food animal drawn"))
    if noun.is_plural or noun.article == "none":
        raise NoChoiceError
    clause = Clause(phrase_of(shown), "이다", "be")
    kind = draw.source.random()
    if kind < 0.3 and noun.is_a("goods"):
        noun = noun._replace(ko=f"내 {noun.ko}", en=f"my {noun.en}", article="fixed")
    elif kind < 0.6 and (adjectives := adjectives_of(noun.kinds, without="price")):
        noun = described(noun, draw.choose(adjectives))
    clause.after.append(object_en(noun))
    form = draw.source.random()
    if form < 0.2:
        return finish(clause.say_ko(attach(noun.ko, "이니")), clause.ask_en("present"), "?")
    if form < 0.4:
        ending = attach(noun.ko, "이") + " 아니다"
        return finish(clause.say_ko(ending), clause.say_en("present", negative=True))
    return finish(clause.say_ko(attach(noun.ko, "이다")), clause.say_en("present"))


def be_somehow(draw: Draw) -> tuple[str, str]:
    """이 사과는 아주 달다. This apple is very sweet. 그는 어제 바빴다. He was busy yesterday."""
    subject, adjective = _draw_described(draw)
    is_state = adjective.suits("state")
    tense: Tense = "past" if draw.chance(0.5 if is_state else 0.2) else "present"
    kind = draw.source.random()
    negative = kind < 0.15
    is_ours = subject.en in FIRST_PERSON or subject.en.startswith("my ")
    is_question = 0.15 <= kind < 0.3 and not is_ours
    clause = Clause(subject, adjective.ko, "be", is_descriptive=True)
    if not negative and not is_question and draw.chance(0.5):
        degree = draw.choose(
            lexicon.DEGREES if adjective.en in lexicon.TOO else lexicon.DEGREES[:2]
        )
        clause.before.append(degree.ko)
        clause.after.append(degree.en)
    clause.after.append(adjective.en)
    if is_state and tense == "past" and draw.chance(0.5):
        clause.time = draw.choose(times_of("past", "long"))
    ending = clause.conjugate(tense, negative=negative, is_question=is_question)
    if is_question:
        return finish(clause.say_ko(ending), clause.ask_en(tense), "?")
    return finish(clause.say_ko(ending), clause.say_en(tense, negative=negative))


def compare(draw: Draw) -> tuple[str, str]:
    """이 가방은 저 가방보다 더 비싸다. This bag is more expensive than that bag."""
    if draw.chance(0.5):
        noun = draw.choose(nouns_of(_COMPARED) + places_of("room dining shop"))
        left, right = (determined(noun, *word) for word in DEMONSTRATIVES)
        pool = adjectives_of(noun.kinds, predicate=True, without="coloured")
    else:
        left, right = phrase_of(draw.choose(_BEINGS)), phrase_of(draw.choose(_BEINGS))
        pool = adjectives_of("trait", predicate=True)
    adjective = draw.choose(pool) if pool else None
    if not adjective or left.noun.pronoun == right.noun.pronoun == "I" or left.ko == right.ko:
        raise NoChoiceError
    if not draw.allows((left.noun.ko, adjective.ko)):
        raise NoChoiceError
    clause = Clause(left, adjective.ko, "be", is_descriptive=True)
    clause.before += [f"{right.ko}보다", "더"]
    clause.after += [english.comparative(adjective.en), "than", right.objective]
    return finish(clause.say_ko(clause.conjugate("present")), clause.say_en("present"))


def exist(draw: Draw) -> tuple[str, str]:
    """공원에 개가 있다. There is a dog in the park. 학생 세 명이 있다. There are three ..."""
    (place_ko, place_text), noun = _draw_spot(draw)
    tense: Tense = "past" if draw.chance(0.3) else "present"
    kind = draw.source.random()
    ko, en, is_plural = attach(noun.ko, "이"), _indefinite(noun), noun.is_plural
    if kind < 0.15 and tense == "present":
        be = "are" if is_plural else "is"
        return finish(f"{place_ko} {ko} 있니", f"{be} there {en} {place_text}", "?")
    if kind < 0.3:
        en, verb = f"no {noun.en}", "없다"
    elif kind < 0.45 and not noun.is_plural and noun.counter:
        text, en = draw_count(draw, noun)
        ko, verb, is_plural = attach(text, "이"), "있다", True
    elif kind < 0.6 and not noun.is_plural and noun.article != "none":
        en, verb, is_plural = f"many {english.plural(noun.en)}", "많다", True
    else:
        verb = "있다"
    be, _ = english.verb_parts("be", "they" if is_plural else "he", tense)
    ending = inflect(verb, tense, is_descriptive=True)
    return finish(f"{place_ko} {ko} {ending}", f"there {be} {en} {place_text}")


def be_somewhere(draw: Draw) -> tuple[str, str]:
    """내 열쇠는 탁자 위에 있다. My key is on the table. 그는 집에 없다. He is not at home."""
    if draw.chance(0.5):
        subject = phrase_of(draw.choose(PERSONS))
        place = draw.combine(subject.noun.ko, places_of("home room errand station school"))
        spot = (place.ko + "에", place_en(place))
    else:
        spot, noun = _draw_spot(draw)
        if noun.article == "none" or noun.is_a("role"):
            raise NoChoiceError
        is_own = noun.is_a("portable") and draw.chance(0.5)
        subject = determined(noun, *draw_owner(draw)) if is_own else phrase_of(noun)
    tense: Tense = "past" if draw.chance(0.3) else "present"
    clause = Clause(subject, "있다", "be", before=[spot[0]], after=[spot[1]])
    kind = draw.source.random()
    if kind < 0.2 and subject.en not in FIRST_PERSON:
        ko = clause.say_ko(inflect("있다", tense, is_question=True))
        return finish(ko, clause.ask_en(tense), "?")
    negative = kind < 0.4
    ending = inflect("없다" if negative else "있다", tense)
    return finish(clause.say_ko(ending), clause.say_en(tense, negative=negative))


def ask_where_it_is(draw: Draw) -> tuple[str, str]:
    """Ask for the place: 내 열쇠는 어디에 있니? Where is my key? (on the table)."""
    pool = nouns_of("portable machine pet") + lexicon.KIN + lexicon.PLACES
    noun = draw.choose(pool)
    if noun.article == "fixed" and not noun.is_a("kin"):
        raise NoChoiceError
    subject = dress_subject(draw, noun)
    if noun.article != "fixed" and not noun.preposition and draw.chance(0.6):
        subject = determined(noun, *draw_owner(draw))
    if not draw.allows(("어디", subject.ko)):
        raise NoChoiceError
    tense: Tense = "past" if draw.chance(0.2) else "present"
    clause = Clause(subject, "있다", "be", before=["어디에"])
    ko = clause.say_ko(inflect("있다", tense, is_question=True))
    return finish(ko, f"where {clause.ask_en(tense)}", "?")


def have(draw: Draw) -> tuple[str, str]:
    """나는 개가 있다. I have a dog. 그는 내일 시험이 있다. He has an exam tomorrow."""
    noun = draw.combine("있다", nouns_of("portable machine pet event duty cash book toy"))
    owner = phrase_of(draw.choose(_BEINGS))
    tense: Tense = "past" if draw.chance(0.25) else "present"
    ko, en = noun.ko, object_en(noun)
    is_event = noun.is_a("event")
    kind = draw.source.random()
    if not is_event and kind < 0.2 and noun.counter:
        ko, en = draw_count(draw, noun)
    elif not is_event and kind < 0.4 and (adjectives := adjectives_of(noun.kinds)):
        drawn = described(noun, draw.choose(adjectives))
        ko, en = drawn.ko, object_en(drawn)
    clause = Clause(owner, "있다", "have", before=[attach(ko, "이")], after=[en])
    if is_event and draw.chance(0.7):
        clause.time = draw.choose(times_of("past" if tense == "past" else "future"))
    if draw.chance(0.2) and owner.en not in FIRST_PERSON:
        ending = inflect("있다", tense, is_question=True)
        return finish(clause.say_ko(ending), clause.ask_en(tense), "?")
    negative = kind > 0.4 and draw.chance(0.3)
    ending = inflect("없다" if negative else "있다", tense)
    return finish(clause.say_ko(ending), clause.say_en(tense, negative=negative))


def _draw_job(draw: Draw, adjectives: tuple[Adjective, ...]) -> tuple[Phrase, Noun]:
    """Choose who someone is, and what by profession."""
    if draw.chance(0.12):
        subject = determined(draw.choose(_POINTED_AT), *draw.choose(DEMONSTRATIVES))
    else:
        subject = phrase_of(draw.choose(_BEINGS))
    job = draw.combine(subject.ko, lexicon.JOBS)
    if draw.chance(0.3):
        job = described(job, draw.choose(adjectives))
    return subject, job


def _complement(subject: Phrase, noun: Noun) -> str:
    """Word what someone is: one is a student, several are students."""
    return english.plural(noun.en) if subject.agreement == "they" else english.indefinite(noun.en)


def _draw_described(draw: Draw) -> tuple[Phrase, Adjective]:
    """Choose something and what can be said of it."""
    if draw.chance(0.5):
        noun = draw.choose(PERSONS)
        kinds, subject = draw.choose(("trait", "state", "state")), phrase_of(noun)
    else:
        noun = draw.choose(_things())
        kinds = noun.kinds
        subject = phrase_of(noun)
        if draw.chance(0.6) and not noun.is_a("subject"):
            subject = determined(noun, *draw.choose(DEMONSTRATIVES))
    pool = adjectives_of(kinds, predicate=True)
    adjective = draw.choose(pool) if pool else None
    if adjective is None or not draw.allows((noun.ko, adjective.ko)):
        raise NoChoiceError
    return subject, adjective


def _draw_spot(draw: Draw) -> tuple[tuple[str, str], Noun]:
    """Choose a place, or a position by some thing, and what is found there."""
    if draw.chance(0.5):
        place_kinds, noun_kinds = draw.choose(_FOUND)
        place = draw.choose(places_of(place_kinds))
        noun = draw.combine(place.ko, nouns_of(noun_kinds))
        return (place.ko + "에", place_en(place)), noun
    ko, en, kinds = draw.choose(lexicon.POSITIONS)
    place = draw.choose(nouns_of(kinds))
    noun = draw.combine(f"{place.ko} {ko}", nouns_of(_SMALL_THINGS))
    if place.ko == noun.ko or (noun.is_a("pet") and ko == "안"):
        raise NoChoiceError
    return (f"{place.ko} {ko}에", f"{en} the {place.en}"), noun


def _indefinite(noun: Noun) -> str:
    if noun.is_plural or noun.article == "none":
        return noun.en
    return english.indefinite(noun.en)


@cache
def _things() -> tuple[Noun, ...]:
    """Gather what is not a person and can be described: things, animals, places."""
    nouns = nouns_of("animal wild baby goods food drink story subject machine furniture room") + (
        places_of("room dining outdoor sight water station study")
    )
    return tuple(noun for noun in nouns if adjectives_of(noun.kinds, predicate=True))
