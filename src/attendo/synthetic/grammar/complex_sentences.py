"""Sentences of two clauses: because, although, but, and, when, if.

Korean omits the second subject; English repeats it as a pronoun after because, although and when,
so that these sentences use only subjects whose pronoun follows from the Korean word.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from attendo.synthetic.grammar import english, korean, lexicon
from attendo.synthetic.grammar.clauses import sample_clause, sample_subject, sample_time_of_kind
from attendo.synthetic.grammar.phrases import (
    Clause,
    NoCombinationError,
    frames_of,
    nouns_of,
    place_phrase_en,
    places_of,
    times_of,
)
from attendo.synthetic.grammar.sentences import (
    FIRST_PERSON,
    THEMES,
    WEATHER,
    punctuate,
    sample_frame,
    weather_clause,
)
from attendo.synthetic.grammar.verbs import FRAMES

if TYPE_CHECKING:
    from attendo.synthetic.grammar.english import Tense
    from attendo.synthetic.grammar.lexicon import Adjective, Noun
    from attendo.synthetic.grammar.phrases import Phrase, WordSampler
    from attendo.synthetic.grammar.verbs import Frame

_STATES = {adjective.en: adjective for adjective in lexicon.ADJECTIVES if adjective.suits("state")}
_HINDRANCES = ("tired", "busy", "sick", "sleepy")
_ANIMAL_HINDRANCES = ("tired", "sick")
_OUTINGS = ("people", "meal", "shopping", "study", "leisure")


def because(sampler: WordSampler) -> tuple[str, str]:
    """나는 너무 피곤해서 학교에 가지 않았다. I did not go to school because I was too tired."""
    if sampler.bernoulli(0.3):
        return _because_of_weather(sampler)
    frame, adjective, negative = _sample_reason(sampler)
    if negative:
        frame = frame._replace(how="")
    clause = sample_clause(sampler, frame, _sample_known_subject(sampler, frame), adjuncts=1)
    subject = clause.subject
    be_verb, _ = english.verb_parts("be", subject.agreement, "past")
    ko, en = korean.infinitive(adjective.ko) + "서", adjective.en
    if en in lexicon.ADJECTIVES_WITH_TOO and sampler.bernoulli(0.5):
        ko, en = f"너무 {ko}", f"too {en}"
    clause.before.insert(0, ko)
    if sampler.bernoulli(0.3):
        clause.time = sample_time_of_kind(sampler, clause, frame, "past")
    ko = clause.to_korean(clause.conjugate("past", negative=negative))
    return punctuate(
        ko,
        f"{clause.to_english('past', negative=negative)} because {subject.pronoun} {be_verb} {en}",
    )


def although(sampler: WordSampler) -> tuple[str, str]:
    """비록 나는 피곤했지만 학교에 갔다. Although I was tired, I went to school."""
    if sampler.bernoulli(0.4):
        weather = sampler.choose([weather for weather in WEATHER if not weather.is_fair])
        frame = sampler.choose(frames_of(mark="weather"))
        clause = sample_clause(sampler, frame, sample_subject(sampler, frame), adjuncts=1)
        ko = f"비록 {korean.past(weather.ko)}지만 {clause.to_korean(clause.conjugate('past'))}"
        en = f"although {weather_clause(weather).to_english('past')}, {clause.to_english('past')}"
        return punctuate(ko, en)
    frame = sample_frame(sampler)
    if frame.aspect != "action" or "person" not in frame.who or frame in FRAMES["body"]:
        raise NoCombinationError
    state = _STATES[sampler.choose(_HINDRANCES)]
    if state.en in frame.why.split():
        raise NoCombinationError
    clause = sample_clause(sampler, frame, _sample_known_subject(sampler, frame), adjuncts=1)
    was, _ = english.verb_parts("be", clause.subject.agreement, "past")
    clause.before.insert(0, korean.past(state.ko) + "지만")
    ko = f"비록 {clause.to_korean(clause.conjugate('past'))}"
    main = clause.to_english("past", subject=clause.subject.pronoun)
    return punctuate(ko, f"although {clause.subject.en} {was} {state.en}, {main}")


def but_not(sampler: WordSampler) -> tuple[str, str]:
    """나는 커피를 마셨지만 우유는 마시지 않았다. I drank coffee but did not drink milk."""
    theme = sampler.choose(THEMES)
    first = _sample_plain_frame(sampler, theme)
    is_same = theme in ("motion", "giving") or sampler.bernoulli(0.5)
    second = first if is_same else _sample_plain_frame(sampler, theme)
    subject = sample_subject(sampler, first)
    yes = sample_clause(sampler, first, subject, adjuncts=0, plain=True)
    no = _sample_second_clause(sampler, second, subject, contrast=True)
    yes_core, no_core = sampler.cores
    if yes_core == no_core or (second.what and yes_core[1] == no_core[1]):
        raise NoCombinationError
    if sampler.bernoulli(0.3):
        yes.time = sampler.choose(times_of("past"))
    ko = yes.to_korean(korean.past(first.ko) + "지만")
    ending = no.conjugate("past", negative=True)
    en = f"{yes.to_english('past')} but {no.to_english('past', negative=True, subject='')}"
    return punctuate(" ".join([ko, *no.before, ending]), en)


def and_then(sampler: WordSampler) -> tuple[str, str]:
    """나는 빵을 먹고 우유를 마셨다. I ate bread and drank milk."""
    theme = sampler.choose(THEMES)
    first = _sample_plain_frame(sampler, theme)
    second = _sample_plain_frame(sampler, "motion" if sampler.bernoulli(0.3) else theme)
    if theme == "motion" or first.ko == second.ko or first.who != second.who:
        raise NoCombinationError
    subject = sample_subject(sampler, first)
    one = sample_clause(sampler, first, subject, adjuncts=0)
    two = _sample_second_clause(sampler, second, subject)
    return _join_clauses(sampler, korean.stem(first.ko) + "고", one, two)


def go_and_do(sampler: WordSampler) -> tuple[str, str]:
    """나는 도서관에 가서 책을 읽었다. I went to the library and read a book."""
    frame = sampler.choose(frames_of(sampler.choose(_OUTINGS)))
    if frame.aspect != "action" or not frame.where:
        raise NoCombinationError
    go = _motion_frame("가다")
    reached = places_of(go.goal)
    pool = [place for place in places_of(frame.where) if place in reached]
    if not pool:
        raise NoCombinationError
    place = sampler.choose_compatible(go.ko, pool)
    subject = sample_subject(sampler, frame)
    one = Clause(
        subject, go.ko, go.en, before=[place.ko + "에"], after=[place_phrase_en(place, go.link)]
    )
    two = sample_clause(sampler, frame._replace(where=""), subject, adjuncts=1)
    return _join_clauses(sampler, "가서", one, two)


def contrast(sampler: WordSampler) -> tuple[str, str]:
    """나는 커피를 주문했지만 민수는 물을 주문했다. I ordered coffee, but Minsu ordered water."""
    frame = sample_frame(sampler)
    if not frame.is_transitive:
        raise NoCombinationError
    subject = sample_subject(sampler, frame, plain=True)
    other = sample_subject(sampler, frame, plain=True)
    one = sample_clause(sampler, frame, subject, adjuncts=0, countable=False)
    two = sample_clause(sampler, frame, other, adjuncts=0, countable=False)
    is_alike = one.before[-1].split()[-1] == two.before[-1].split()[-1]
    is_unclear = other.noun.is_a("pronoun") and subject.pronoun == other.pronoun
    if subject == other or is_alike or is_unclear:
        raise NoCombinationError
    tense: Tense = "present" if frame.aspect == "state" else "past"
    ko_link, en_link = sampler.choose((("지만", "but"), ("고", "and")))
    stem = korean.stem(frame.ko) if tense == "present" else korean.past(frame.ko)
    ko = f"{one.to_korean(stem + ko_link)} {two.to_korean(two.conjugate(tense))}"
    return punctuate(ko, f"{one.to_english(tense)}, {en_link} {two.to_english(tense)}")


def when_state(sampler: WordSampler) -> tuple[str, str]:
    """나는 슬플 때 음악을 듣는다. I listen to music when I am sad."""
    state = sampler.choose(tuple(_STATES.values()))
    pool = frames_of(mark=state.en)
    if not pool:
        raise NoCombinationError
    frame = sampler.choose(pool)
    clause = sample_clause(
        sampler, frame, _sample_known_subject(sampler, frame), adjuncts=1, plain=True
    )
    subject = clause.subject
    be, _ = english.verb_parts("be", subject.agreement, "present")
    clause.before.insert(0, korean.prospective(state.ko) + " 때")
    ko = clause.to_korean(clause.conjugate("present"))
    return punctuate(ko, f"{clause.to_english('present')} when {subject.pronoun} {be} {state.en}")


def when_event(sampler: WordSampler) -> tuple[str, str]:
    """내가 집에 왔을 때 민수는 자고 있었다. Minsu was sleeping when I came home."""
    come, enter = _motion_frame("오다"), _motion_frame("들어가다")
    arrival = sampler.choose((come._replace(goal="home school"), enter._replace(what="room")))
    frame = sampler.choose(frames_of(sampler.choose(("meal", "study", "leisure", "home", "body"))))
    if frame.aspect != "action" or "person" not in frame.who:
        raise NoCombinationError
    comer = sample_subject(sampler, arrival, plain=True)
    subject = sample_subject(sampler, frame, plain=True)
    if comer == subject or ({comer.en, subject.en} <= set(FIRST_PERSON)):
        raise NoCombinationError
    event = sample_clause(sampler, arrival, comer, adjuncts=0)
    clause = sample_clause(sampler, frame, subject, adjuncts=0, countable=False)
    when = event.to_korean(korean.past(arrival.ko) + "을 때", particle="이")
    ko = f"{when} {clause.to_korean(clause.conjugate('past progressive'))}"
    return punctuate(ko, f"{clause.to_english('past progressive')} when {event.to_english('past')}")


def if_weather(sampler: WordSampler) -> tuple[str, str]:
    """내일 비가 오면 우리는 공원에 가지 않을 것이다. If it rains tomorrow, we will not go to ..."""
    weather = sampler.choose(WEATHER)
    frame = sampler.choose(frames_of(mark="weather"))
    weather_part = weather_clause(weather)
    weather_part.time = sampler.choose(times_of("future", "long clock"))
    negative = not weather.is_fair
    if negative:
        frame = frame._replace(how="")
    clause = sample_clause(sampler, frame, sample_subject(sampler, frame), adjuncts=1)
    ko = weather_part.to_korean(korean.conditional(weather.ko))
    ko += " " + clause.to_korean(clause.conjugate("future", negative=negative))
    main = clause.to_english("future", negative=negative)
    return punctuate(ko, f"if {weather_part.to_english('present')}, {main}")


def _because_of_weather(sampler: WordSampler) -> tuple[str, str]:
    """비가 와서 우리는 공원에 가지 않았다. We did not go to the park because it rained."""
    weather = sampler.choose([weather for weather in WEATHER if not weather.is_fair])
    frame = sampler.choose(frames_of(mark="weather"))._replace(how="")
    clause = sample_clause(sampler, frame, sample_subject(sampler, frame), adjuncts=1)
    weather_part = weather_clause(weather)
    ko = clause.to_korean(clause.conjugate("past", negative=True))
    en = f"{clause.to_english('past', negative=True)} because {weather_part.to_english('past')}"
    return punctuate(f"{korean.infinitive(weather.ko)}서 {ko}", en)


def _sample_reason(sampler: WordSampler) -> tuple[Frame, Adjective, bool]:
    """Choose an action that a state causes, or one that it prevents (negative)."""
    if sampler.bernoulli(0.5):
        state = sampler.choose(tuple(_STATES.values()))
        pool = frames_of(mark=state.en)
        if not pool:
            raise NoCombinationError
        return sampler.choose(pool), state, False
    frame = sample_frame(sampler)
    if frame.aspect in ("state", "accident"):
        raise NoCombinationError
    names = _HINDRANCES if "person" in frame.who else _ANIMAL_HINDRANCES
    state = _STATES[sampler.choose(names)]
    if state.en in frame.why.split():
        raise NoCombinationError
    return frame, state, True


def _sample_known_subject(sampler: WordSampler, frame: Frame) -> Phrase:
    """Choose a subject whose pronoun is known."""
    pool = _known_nouns(frame.who)
    if not pool:
        raise NoCombinationError
    return sample_subject(sampler, frame, pool)


@cache
def _known_nouns(who: str) -> tuple[Noun, ...]:
    return tuple(noun for noun in nouns_of(who) if noun.pronoun)


@cache
def _motion_frame(ko: str) -> Frame:
    return next(frame for frame in frames_of("motion") if frame.ko == ko)


def _sample_plain_frame(sampler: WordSampler, theme: str) -> Frame:
    frame = sampler.choose(frames_of(theme))
    if frame.aspect in ("state", "accident"):
        raise NoCombinationError
    return frame


def _sample_second_clause(
    sampler: WordSampler, frame: Frame, subject: Phrase, *, contrast: bool = False
) -> Clause:
    """Sample another clause with the same subject.

    A person keeps the object particle even in contrast: 농부는 would be read as the subject.
    """
    if subject.noun not in nouns_of(frame.who):
        raise NoCombinationError
    if not frame.is_transitive and not sampler.accept_core((frame.ko, subject.noun.ko)):
        raise NoCombinationError
    is_marked = contrast and not frame.is_personal
    return sample_clause(sampler, frame, subject, adjuncts=0, plain=contrast, contrast=is_marked)


def _join_clauses(sampler: WordSampler, link: str, one: Clause, two: Clause) -> tuple[str, str]:
    """Join two clauses with the same subject: Korean inflects the last verb, English both."""
    tense: Tense = "past" if sampler.bernoulli(0.7) else "future"
    second = two.to_english("past", subject="") if tense == "past" else two.to_base_form()
    en = f"{one.to_english(tense)} and {second}"
    if sampler.bernoulli(0.4):
        one.time = sampler.choose(times_of(tense))
        en += f" {one.time.en}"
    ko = " ".join([one.to_korean(link), *two.before, two.conjugate(tense)])
    return punctuate(ko, en)
