"""Sentences of two clauses: because, although, but, and, when, if.

Korean leaves the second subject out; English says it again as a pronoun where the clauses are
joined by because, although or when, so that only subjects whose pronoun Korean tells stand there.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from attendo.data.sample_grammar import english, korean, lexicon
from attendo.data.sample_grammar.clauses import choose_time, draw_clause, draw_subject
from attendo.data.sample_grammar.phrases import (
    Clause,
    NoChoiceError,
    frames_of,
    nouns_of,
    place_en,
    places_of,
    times_of,
)
from attendo.data.sample_grammar.sentences import (
    FIRST_PERSON,
    THEMES,
    WEATHER,
    draw_frame,
    finish,
    weather_clause,
)
from attendo.data.sample_grammar.verbs import FRAMES

if TYPE_CHECKING:
    from attendo.data.sample_grammar.english import Tense
    from attendo.data.sample_grammar.lexicon import Adjective, Noun
    from attendo.data.sample_grammar.phrases import Draw, Phrase
    from attendo.data.sample_grammar.verbs import Frame

_STATES = {adjective.en: adjective for adjective in lexicon.ADJECTIVES if adjective.suits("state")}
_HINDRANCES = ("tired", "busy", "sick", "sleepy")
_ANIMAL_HINDRANCES = ("tired", "sick")
_OUTINGS = ("people", "meal", "shopping", "study", "leisure")


def because(draw: Draw) -> tuple[str, str]:
    """나는 너무 피곤해서 학교에 가지 않았다. I did not go to school because I was too tired."""
    if draw.chance(0.3):
        return _because_of_weather(draw)
    frame, adjective, negative = _draw_reason(draw)
    if negative:
        frame = frame._replace(how="")
    clause = draw_clause(draw, frame, _draw_known(draw, frame), adjuncts=1)
    subject = clause.subject
    was, _ = english.verb_parts("be", subject.agreement, "past")
    ko, en = korean.infinitive(adjective.ko) + "서", adjective.en
    if en in lexicon.TOO and draw.chance(0.5):
        ko, en = f"너무 {ko}", f"too {en}"
    clause.before.insert(0, ko)
    if draw.chance(0.3):
        clause.time = choose_time(draw, clause, frame, "past")
    ko = clause.say_ko(clause.conjugate("past", negative=negative))
    return finish(
        ko, f"{clause.say_en('past', negative=negative)} because {subject.pronoun} {was} {en}"
    )


def although(draw: Draw) -> tuple[str, str]:
    """비록 나는 피곤했지만 학교에 갔다. Although I was tired, I went to school."""
    if draw.chance(0.4):
        weather = draw.choose([weather for weather in WEATHER if not weather.is_fair])
        frame = draw.choose(frames_of(mark="weather"))
        clause = draw_clause(draw, frame, draw_subject(draw, frame), adjuncts=1)
        ko = f"비록 {korean.past(weather.ko)}지만 {clause.say_ko(clause.conjugate('past'))}"
        en = f"although {weather_clause(weather).say_en('past')}, {clause.say_en('past')}"
        return finish(ko, en)
    frame = draw_frame(draw)
    if frame.aspect != "action" or "person" not in frame.who or frame in FRAMES["body"]:
        raise NoChoiceError
    state = _STATES[draw.choose(_HINDRANCES)]
    if state.en in frame.why.split():
        raise NoChoiceError
    clause = draw_clause(draw, frame, _draw_known(draw, frame), adjuncts=1)
    was, _ = english.verb_parts("be", clause.subject.agreement, "past")
    clause.before.insert(0, korean.past(state.ko) + "지만")
    ko = f"비록 {clause.say_ko(clause.conjugate('past'))}"
    main = clause.say_en("past", subject=clause.subject.pronoun)
    return finish(ko, f"although {clause.subject.en} {was} {state.en}, {main}")


def but_not(draw: Draw) -> tuple[str, str]:
    """나는 커피를 마셨지만 우유는 마시지 않았다. I drank coffee but did not drink milk."""
    theme = draw.choose(THEMES)
    first = _draw_plain_frame(draw, theme)
    is_same = theme in ("motion", "giving") or draw.chance(0.5)
    second = first if is_same else _draw_plain_frame(draw, theme)
    subject = draw_subject(draw, first)
    yes = draw_clause(draw, first, subject, adjuncts=0, plain=True)
    no = _draw_second(draw, second, subject, contrast=True)
    yes_core, no_core = draw.cores
    if yes_core == no_core or (second.what and yes_core[1] == no_core[1]):
        raise NoChoiceError
    if draw.chance(0.3):
        yes.time = draw.choose(times_of("past"))
    ko = yes.say_ko(korean.past(first.ko) + "지만")
    ending = no.conjugate("past", negative=True)
    en = f"{yes.say_en('past')} but {no.say_en('past', negative=True, subject='')}"
    return finish(" ".join([ko, *no.before, ending]), en)


def and_then(draw: Draw) -> tuple[str, str]:
    """나는 빵을 먹고 우유를 마셨다. I ate bread and drank milk."""
    theme = draw.choose(THEMES)
    first = _draw_plain_frame(draw, theme)
    second = _draw_plain_frame(draw, "motion" if draw.chance(0.3) else theme)
    if theme == "motion" or first.ko == second.ko or first.who != second.who:
        raise NoChoiceError
    subject = draw_subject(draw, first)
    one = draw_clause(draw, first, subject, adjuncts=0)
    two = _draw_second(draw, second, subject)
    return _chain(draw, korean.stem(first.ko) + "고", one, two)


def go_and_do(draw: Draw) -> tuple[str, str]:
    """나는 도서관에 가서 책을 읽었다. I went to the library and read a book."""
    frame = draw.choose(frames_of(draw.choose(_OUTINGS)))
    if frame.aspect != "action" or not frame.where:
        raise NoChoiceError
    go = _motion("가다")
    reached = places_of(go.goal)
    pool = [place for place in places_of(frame.where) if place in reached]
    if not pool:
        raise NoChoiceError
    place = draw.combine(go.ko, pool)
    subject = draw_subject(draw, frame)
    one = Clause(subject, go.ko, go.en, before=[place.ko + "에"], after=[place_en(place, go.link)])
    two = draw_clause(draw, frame._replace(where=""), subject, adjuncts=1)
    return _chain(draw, "가서", one, two)


def contrast(draw: Draw) -> tuple[str, str]:
    """나는 커피를 주문했지만 민수는 물을 주문했다. I ordered coffee, but Minsu ordered water."""
    frame = draw_frame(draw)
    if not frame.is_transitive:
        raise NoChoiceError
    subject = draw_subject(draw, frame, plain=True)
    other = draw_subject(draw, frame, plain=True)
    one = draw_clause(draw, frame, subject, adjuncts=0, countable=False)
    two = draw_clause(draw, frame, other, adjuncts=0, countable=False)
    is_alike = one.before[-1].split()[-1] == two.before[-1].split()[-1]
    is_unclear = other.noun.is_a("pronoun") and subject.pronoun == other.pronoun
    if subject == other or is_alike or is_unclear:
        raise NoChoiceError
    tense: Tense = "present" if frame.aspect == "state" else "past"
    ko_link, en_link = draw.choose((("지만", "but"), ("고", "and")))
    stem = korean.stem(frame.ko) if tense == "present" else korean.past(frame.ko)
    ko = f"{one.say_ko(stem + ko_link)} {two.say_ko(two.conjugate(tense))}"
    return finish(ko, f"{one.say_en(tense)}, {en_link} {two.say_en(tense)}")


def when_so(draw: Draw) -> tuple[str, str]:
    """나는 슬플 때 음악을 듣는다. I listen to music when I am sad."""
    state = draw.choose(tuple(_STATES.values()))
    pool = frames_of(mark=state.en)
    if not pool:
        raise NoChoiceError
    frame = draw.choose(pool)
    clause = draw_clause(draw, frame, _draw_known(draw, frame), adjuncts=1, plain=True)
    subject = clause.subject
    be, _ = english.verb_parts("be", subject.agreement, "present")
    clause.before.insert(0, korean.prospective(state.ko) + " 때")
    ko = clause.say_ko(clause.conjugate("present"))
    return finish(ko, f"{clause.say_en('present')} when {subject.pronoun} {be} {state.en}")


def when_it_happened(draw: Draw) -> tuple[str, str]:
    """내가 집에 왔을 때 민수는 자고 있었다. Minsu was sleeping when I came home."""
    come, enter = _motion("오다"), _motion("들어가다")
    arrival = draw.choose((come._replace(goal="home school"), enter._replace(what="room")))
    frame = draw.choose(frames_of(draw.choose(("meal", "study", "leisure", "home", "body"))))
    if frame.aspect != "action" or "person" not in frame.who:
        raise NoChoiceError
    comer = draw_subject(draw, arrival, plain=True)
    subject = draw_subject(draw, frame, plain=True)
    if comer == subject or ({comer.en, subject.en} <= set(FIRST_PERSON)):
        raise NoChoiceError
    event = draw_clause(draw, arrival, comer, adjuncts=0)
    clause = draw_clause(draw, frame, subject, adjuncts=0, countable=False)
    when = event.say_ko(korean.past(arrival.ko) + "을 때", particle="이")
    ko = f"{when} {clause.say_ko(clause.conjugate('past progressive'))}"
    return finish(ko, f"{clause.say_en('past progressive')} when {event.say_en('past')}")


def if_weather(draw: Draw) -> tuple[str, str]:
    """내일 비가 오면 우리는 공원에 가지 않을 것이다. If it rains tomorrow, we will not go to ..."""
    weather = draw.choose(WEATHER)
    frame = draw.choose(frames_of(mark="weather"))
    sky = weather_clause(weather)
    sky.time = draw.choose(times_of("future", "long clock"))
    negative = not weather.is_fair
    if negative:
        frame = frame._replace(how="")
    clause = draw_clause(draw, frame, draw_subject(draw, frame), adjuncts=1)
    ko = sky.say_ko(korean.conditional(weather.ko))
    ko += " " + clause.say_ko(clause.conjugate("future", negative=negative))
    return finish(ko, f"if {sky.say_en('present')}, {clause.say_en('future', negative=negative)}")


def _because_of_weather(draw: Draw) -> tuple[str, str]:
    """비가 와서 우리는 공원에 가지 않았다. We did not go to the park because it rained."""
    weather = draw.choose([weather for weather in WEATHER if not weather.is_fair])
    frame = draw.choose(frames_of(mark="weather"))._replace(how="")
    clause = draw_clause(draw, frame, draw_subject(draw, frame), adjuncts=1)
    sky = weather_clause(weather)
    ko = clause.say_ko(clause.conjugate("past", negative=True))
    en = f"{clause.say_en('past', negative=True)} because {sky.say_en('past')}"
    return finish(f"{korean.infinitive(weather.ko)}서 {ko}", en)


def _draw_reason(draw: Draw) -> tuple[Frame, Adjective, bool]:
    """Choose what a state leads to, or what it keeps from (negative)."""
    if draw.chance(0.5):
        state = draw.choose(tuple(_STATES.values()))
        pool = frames_of(mark=state.en)
        if not pool:
            raise NoChoiceError
        return draw.choose(pool), state, False
    frame = draw_frame(draw)
    if frame.aspect in ("state", "accident"):
        raise NoChoiceError
    names = _HINDRANCES if "person" in frame.who else _ANIMAL_HINDRANCES
    state = _STATES[draw.choose(names)]
    if state.en in frame.why.split():
        raise NoChoiceError
    return frame, state, True


def _draw_known(draw: Draw, frame: Frame) -> Phrase:
    """Choose a subject whose pronoun is known."""
    pool = _known(frame.who)
    if not pool:
        raise NoChoiceError
    return draw_subject(draw, frame, pool)


@cache
def _known(who: str) -> tuple[Noun, ...]:
    return tuple(noun for noun in nouns_of(who) if noun.pronoun)


@cache
def _motion(ko: str) -> Frame:
    return next(frame for frame in frames_of("motion") if frame.ko == ko)


def _draw_plain_frame(draw: Draw, theme: str) -> Frame:
    frame = draw.choose(frames_of(theme))
    if frame.aspect in ("state", "accident"):
        raise NoChoiceError
    return frame


def _draw_second(draw: Draw, frame: Frame, subject: Phrase, *, contrast: bool = False) -> Clause:
    """Draw another clause with the same subject.

    A person keeps the particle of an object in contrast too: 농부는 would be read as the subject.
    """
    if subject.noun not in nouns_of(frame.who):
        raise NoChoiceError
    if not frame.is_transitive and not draw.allows((frame.ko, subject.noun.ko)):
        raise NoChoiceError
    is_marked = contrast and not frame.is_personal
    return draw_clause(draw, frame, subject, adjuncts=0, plain=contrast, contrast=is_marked)


def _chain(draw: Draw, link: str, one: Clause, two: Clause) -> tuple[str, str]:
    """Join two clauses of one subject: Korean inflects the last verb, English both."""
    tense: Tense = "past" if draw.chance(0.7) else "future"
    second = two.say_en("past", subject="") if tense == "past" else two.name_en()
    en = f"{one.say_en(tense)} and {second}"
    if draw.chance(0.4):
        one.time = draw.choose(times_of(tense))
        en += f" {one.time.en}"
    ko = " ".join([one.say_ko(link), *two.before, two.conjugate(tense)])
    return finish(ko, en)
