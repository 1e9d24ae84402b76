"""Sentences with be and have: identity, description, location, possession."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from attendo.synthetic.grammar import english, lexicon
from attendo.synthetic.grammar.clauses import (
    DEMONSTRATIVES,
    modify_subject,
    sample_count,
    sample_owner,
)
from attendo.synthetic.grammar.korean import attach
from attendo.synthetic.grammar.lexicon import Noun
from attendo.synthetic.grammar.phrases import (
    PERSONS,
    Clause,
    NoCombinationError,
    adjectives_of,
    inflect,
    nouns_of,
    object_phrase_en,
    place_phrase_en,
    places_of,
    times_of,
    to_topic_phrase,
    with_adjective,
    with_determiner,
)
from attendo.synthetic.grammar.sentences import FIRST_PERSON, punctuate

if TYPE_CHECKING:
    from attendo.synthetic.grammar.english import Tense
    from attendo.synthetic.grammar.lexicon import Adjective
    from attendo.synthetic.grammar.phrases import Phrase, WordSampler

_DEMONSTRATIVES = (Noun("이것", "this", article="fixed"), Noun("저것", "that", article="fixed"))
_SUBJECTS = (*lexicon.PRONOUNS * 4, *lexicon.NAMES * 2, *lexicon.RELATIVES)
_DEMONSTRATIVE_PEOPLE = tuple(noun for noun in lexicon.PEOPLE if noun.en in ("man", "woman"))
# Adjectives of a profession that someone wants to have.
_POSITIVE_ADJECTIVES = tuple(
    adjective
    for adjective in lexicon.ADJECTIVES
    if adjective.en in ("kind", "smart", "brave", "honest", "wise", "famous")
)
# Kinds of places, and the kinds of nouns that are found there.
_NOUNS_BY_PLACE = (
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
_COMPARABLE_KINDS = "goods machine food furniture story room"


def copula_noun(sampler: WordSampler) -> tuple[str, str]:
    """나는 학생이다. I am a student."""
    subject, job = _sample_job(sampler, adjectives_of("role job"))
    tense: Tense = "past" if sampler.bernoulli(0.25) else "present"
    clause = Clause(subject, "이다", "be", after=[_noun_complement(subject, job)])
    kind = sampler.rng.random()
    if kind < 0.2:
        ending = attach(job.ko, "이") + (" 아니었다" if tense == "past" else " 아니다")
        return punctuate(clause.to_korean(ending), clause.to_english(tense, negative=True))
    if kind < 0.4 and not subject.en.startswith("my "):
        if subject.en in FIRST_PERSON:
            _, noun_ko = sampler.cores[-1]  # without its adjective
            if not sampler.accept_core((lexicon.YOU.ko, noun_ko)):
                raise NoCombinationError
            clause.subject = to_topic_phrase(lexicon.YOU)
            clause.after = [_noun_complement(clause.subject, job)]
        ending = attach(job.ko, "이었니" if tense == "past" else "이니")
        return punctuate(clause.to_korean(ending), clause.to_question(tense), "?")
    ending = attach(job.ko, "이었다" if tense == "past" else "이다")
    return punctuate(clause.to_korean(ending), clause.to_english(tense))


def become_noun(sampler: WordSampler) -> tuple[str, str]:
    """나는 의사가 될 것이다. I will become a doctor. 나는 의사가 되고 싶다. I want to ..."""
    subject, job = _sample_job(sampler, _POSITIVE_ADJECTIVES)
    clause = Clause(subject, "되다", "become", before=[attach(job.ko, "이")])
    clause.after.append(_noun_complement(subject, job))
    tense: Tense = "future"
    if sampler.bernoulli(0.5):
        tense, clause.verb_en = "present", "want to become"
        clause.is_descriptive = subject.en in FIRST_PERSON
        clause.verb_ko = "되고 싶다" if clause.is_descriptive else "되고 싶어 하다"
    return punctuate(clause.to_korean(clause.conjugate(tense)), clause.to_english(tense))


def demonstrative_copula(sampler: WordSampler) -> tuple[str, str]:
    """이것은 내 가방이다. This is my bag."""
    demonstrative = sampler.choose(_DEMONSTRATIVES)
    noun = sampler.choose_compatible(demonstrative.ko, nouns_of("goods machine food animal drawn"))
    if noun.is_plural or noun.article == "none":
        raise NoCombinationError
    clause = Clause(to_topic_phrase(demonstrative), "이다", "be")
    kind = sampler.rng.random()
    if kind < 0.3 and noun.is_a("goods"):
        noun = noun._replace(ko=f"내 {noun.ko}", en=f"my {noun.en}", article="fixed")
    elif kind < 0.6 and (adjectives := adjectives_of(noun.kinds, without="price")):
        noun = with_adjective(noun, sampler.choose(adjectives))
    clause.after.append(object_phrase_en(noun))
    form = sampler.rng.random()
    if form < 0.2:
        return punctuate(
            clause.to_korean(attach(noun.ko, "이니")), clause.to_question("present"), "?"
        )
    if form < 0.4:
        ending = attach(noun.ko, "이") + " 아니다"
        return punctuate(clause.to_korean(ending), clause.to_english("present", negative=True))
    return punctuate(clause.to_korean(attach(noun.ko, "이다")), clause.to_english("present"))


def copula_adjective(sampler: WordSampler) -> tuple[str, str]:
    """이 사과는 아주 달다. This apple is very sweet. 그는 어제 바빴다. He was busy yesterday."""
    subject, adjective = _sample_described(sampler)
    is_state = adjective.suits("state")
    tense: Tense = "past" if sampler.bernoulli(0.5 if is_state else 0.2) else "present"
    kind = sampler.rng.random()
    negative = kind < 0.15
    is_ours = subject.en in FIRST_PERSON or subject.en.startswith("my ")
    is_question = 0.15 <= kind < 0.3 and not is_ours
    clause = Clause(subject, adjective.ko, "be", is_descriptive=True)
    if not negative and not is_question and sampler.bernoulli(0.5):
        degree = sampler.choose(
            lexicon.DEGREES if adjective.en in lexicon.ADJECTIVES_WITH_TOO else lexicon.DEGREES[:2]
        )
        clause.before.append(degree.ko)
        clause.after.append(degree.en)
    clause.after.append(adjective.en)
    if is_state and tense == "past" and sampler.bernoulli(0.5):
        clause.time = sampler.choose(times_of("past", "long"))
    ending = clause.conjugate(tense, negative=negative, is_question=is_question)
    if is_question:
        return punctuate(clause.to_korean(ending), clause.to_question(tense), "?")
    return punctuate(clause.to_korean(ending), clause.to_english(tense, negative=negative))


def comparison(sampler: WordSampler) -> tuple[str, str]:
    """이 가방은 저 가방보다 더 비싸다. This bag is more expensive than that bag."""
    if sampler.bernoulli(0.5):
        noun = sampler.choose(nouns_of(_COMPARABLE_KINDS) + places_of("room dining shop"))
        left, right = (with_determiner(noun, *word) for word in DEMONSTRATIVES)
        pool = adjectives_of(noun.kinds, predicate=True, without="colored")
    else:
        left, right = (
            to_topic_phrase(sampler.choose(_SUBJECTS)),
            to_topic_phrase(sampler.choose(_SUBJECTS)),
        )
        pool = adjectives_of("trait", predicate=True)
    adjective = sampler.choose(pool) if pool else None
    if not adjective or left.noun.pronoun == right.noun.pronoun == "I" or left.ko == right.ko:
        raise NoCombinationError
    if not sampler.accept_core((left.noun.ko, adjective.ko)):
        raise NoCombinationError
    clause = Clause(left, adjective.ko, "be", is_descriptive=True)
    clause.before += [f"{right.ko}보다", "더"]
    clause.after += [english.comparative(adjective.en), "than", right.objective]
    return punctuate(clause.to_korean(clause.conjugate("present")), clause.to_english("present"))


def existential(sampler: WordSampler) -> tuple[str, str]:
    """공원에 개가 있다. There is a dog in the park. 학생 세 명이 있다. There are three ..."""
    (place_ko, place_text), noun = _sample_location(sampler)
    tense: Tense = "past" if sampler.bernoulli(0.3) else "present"
    kind = sampler.rng.random()
    ko, en, is_plural = attach(noun.ko, "이"), _indefinite(noun), noun.is_plural
    if kind < 0.15 and tense == "present":
        be = "are" if is_plural else "is"
        return punctuate(f"{place_ko} {ko} 있니", f"{be} there {en} {place_text}", "?")
    if kind < 0.3:
        en, verb = f"no {noun.en}", "없다"
    elif kind < 0.45 and not noun.is_plural and noun.counter:
        text, en = sample_count(sampler, noun)
        ko, verb, is_plural = attach(text, "이"), "있다", True
    elif kind < 0.6 and not noun.is_plural and noun.article != "none":
        en, verb, is_plural = f"many {english.plural(noun.en)}", "많다", True
    else:
        verb = "있다"
    be, _ = english.verb_parts("be", "they" if is_plural else "he", tense)
    ending = inflect(verb, tense, is_descriptive=True)
    return punctuate(f"{place_ko} {ko} {ending}", f"there {be} {en} {place_text}")


def locative(sampler: WordSampler) -> tuple[str, str]:
    """내 열쇠는 탁자 위에 있다. My key is on the table. 그는 집에 없다. He is not at home."""
    if sampler.bernoulli(0.5):
        subject = to_topic_phrase(sampler.choose(PERSONS))
        place = sampler.choose_compatible(
            subject.noun.ko, places_of("home room errand station school")
        )
        location = (place.ko + "에", place_phrase_en(place))
    else:
        location, noun = _sample_location(sampler)
        if noun.article == "none" or noun.is_a("role"):
            raise NoCombinationError
        is_own = noun.is_a("portable") and sampler.bernoulli(0.5)
        subject = with_determiner(noun, *sample_owner(sampler)) if is_own else to_topic_phrase(noun)
    tense: Tense = "past" if sampler.bernoulli(0.3) else "present"
    clause = Clause(subject, "있다", "be", before=[location[0]], after=[location[1]])
    kind = sampler.rng.random()
    if kind < 0.2 and subject.en not in FIRST_PERSON:
        ko = clause.to_korean(inflect("있다", tense, is_question=True))
        return punctuate(ko, clause.to_question(tense), "?")
    negative = kind < 0.4
    ending = inflect("없다" if negative else "있다", tense)
    return punctuate(clause.to_korean(ending), clause.to_english(tense, negative=negative))


def locative_question(sampler: WordSampler) -> tuple[str, str]:
    """Ask for the place: 내 열쇠는 어디에 있니? Where is my key? (on the table)."""
    pool = nouns_of("portable machine pet") + lexicon.RELATIVES + lexicon.PLACES
    noun = sampler.choose(pool)
    if noun.article == "fixed" and not noun.is_a("kin"):
        raise NoCombinationError
    subject = modify_subject(sampler, noun)
    if noun.article != "fixed" and not noun.preposition and sampler.bernoulli(0.6):
        subject = with_determiner(noun, *sample_owner(sampler))
    if not sampler.accept_core(("어디", subject.ko)):
        raise NoCombinationError
    tense: Tense = "past" if sampler.bernoulli(0.2) else "present"
    clause = Clause(subject, "있다", "be", before=["어디에"])
    ko = clause.to_korean(inflect("있다", tense, is_question=True))
    return punctuate(ko, f"where {clause.to_question(tense)}", "?")


def possession(sampler: WordSampler) -> tuple[str, str]:
    """나는 개가 있다. I have a dog. 그는 내일 시험이 있다. He has an exam tomorrow."""
    noun = sampler.choose_compatible(
        "있다", nouns_of("portable machine pet event duty cash book toy")
    )
    owner = to_topic_phrase(sampler.choose(_SUBJECTS))
    tense: Tense = "past" if sampler.bernoulli(0.25) else "present"
    ko, en = noun.ko, object_phrase_en(noun)
    is_event = noun.is_a("event")
    kind = sampler.rng.random()
    if not is_event and kind < 0.2 and noun.counter:
        ko, en = sample_count(sampler, noun)
    elif not is_event and kind < 0.4 and (adjectives := adjectives_of(noun.kinds)):
        described_noun = with_adjective(noun, sampler.choose(adjectives))
        ko, en = described_noun.ko, object_phrase_en(described_noun)
    clause = Clause(owner, "있다", "have", before=[attach(ko, "이")], after=[en])
    if is_event and sampler.bernoulli(0.7):
        clause.time = sampler.choose(times_of("past" if tense == "past" else "future"))
    if sampler.bernoulli(0.2) and owner.en not in FIRST_PERSON:
        ending = inflect("있다", tense, is_question=True)
        return punctuate(clause.to_korean(ending), clause.to_question(tense), "?")
    negative = kind > 0.4 and sampler.bernoulli(0.3)
    ending = inflect("없다" if negative else "있다", tense)
    return punctuate(clause.to_korean(ending), clause.to_english(tense, negative=negative))


def _sample_job(sampler: WordSampler, adjectives: tuple[Adjective, ...]) -> tuple[Phrase, Noun]:
    """Choose a person and a profession."""
    if sampler.bernoulli(0.12):
        subject = with_determiner(
            sampler.choose(_DEMONSTRATIVE_PEOPLE), *sampler.choose(DEMONSTRATIVES)
        )
    else:
        subject = to_topic_phrase(sampler.choose(_SUBJECTS))
    job = sampler.choose_compatible(subject.ko, lexicon.JOBS)
    if sampler.bernoulli(0.3):
        job = with_adjective(job, sampler.choose(adjectives))
    return subject, job


def _noun_complement(subject: Phrase, noun: Noun) -> str:
    """Return the English complement: a student, or students of a plural subject."""
    return english.plural(noun.en) if subject.agreement == "they" else english.indefinite(noun.en)


def _sample_described(sampler: WordSampler) -> tuple[Phrase, Adjective]:
    """Choose a subject and an adjective that can describe it."""
    if sampler.bernoulli(0.5):
        noun = sampler.choose(PERSONS)
        kinds, subject = sampler.choose(("trait", "state", "state")), to_topic_phrase(noun)
    else:
        noun = sampler.choose(_describable_nouns())
        kinds = noun.kinds
        subject = to_topic_phrase(noun)
        if sampler.bernoulli(0.6) and not noun.is_a("subject"):
            subject = with_determiner(noun, *sampler.choose(DEMONSTRATIVES))
    pool = adjectives_of(kinds, predicate=True)
    adjective = sampler.choose(pool) if pool else None
    if adjective is None or not sampler.accept_core((noun.ko, adjective.ko)):
        raise NoCombinationError
    return subject, adjective


def _sample_location(sampler: WordSampler) -> tuple[tuple[str, str], Noun]:
    """Choose a place, or a position relative to a thing, and what is found there."""
    if sampler.bernoulli(0.5):
        place_kinds, noun_kinds = sampler.choose(_NOUNS_BY_PLACE)
        place = sampler.choose(places_of(place_kinds))
        noun = sampler.choose_compatible(place.ko, nouns_of(noun_kinds))
        return (place.ko + "에", place_phrase_en(place)), noun
    ko, en, kinds = sampler.choose(lexicon.POSITIONS)
    place = sampler.choose(nouns_of(kinds))
    noun = sampler.choose_compatible(f"{place.ko} {ko}", nouns_of(_SMALL_THINGS))
    if place.ko == noun.ko or (noun.is_a("pet") and ko == "안"):
        raise NoCombinationError
    return (f"{place.ko} {ko}에", f"{en} the {place.en}"), noun


def _indefinite(noun: Noun) -> str:
    if noun.is_plural or noun.article == "none":
        return noun.en
    return english.indefinite(noun.en)


@cache
def _describable_nouns() -> tuple[Noun, ...]:
    """Return the nouns other than persons that have adjectives: things, animals, places."""
    nouns = nouns_of("animal wild baby goods food drink story subject machine furniture room") + (
        places_of("room dining outdoor sight water station study")
    )
    return tuple(noun for noun in nouns if adjectives_of(noun.kinds, predicate=True))
