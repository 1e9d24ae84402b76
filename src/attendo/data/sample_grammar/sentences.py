"""The kinds of sentence of the embedded corpus, each drawn as a pair.

Here are statements, wishes, questions, requests and the weather; `being`, `joined` and `colloquial`
have the others. A sentence starts with a capital and ends with a full stop or a question mark; two
kinds do not: the bare statement (왕자는 공주를 구했다, the prince saved the princess) and the
colloquial one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attendo.data.sample_grammar import korean, lexicon
from attendo.data.sample_grammar.clauses import (
    choose_time,
    draw_clause,
    draw_subject,
    draw_tense,
    draw_time,
)
from attendo.data.sample_grammar.korean import attach
from attendo.data.sample_grammar.phrases import (
    Clause,
    Draw,
    NoChoiceError,
    Phrase,
    capitalise,
    frames_of,
    objects_of,
    phrase_of,
    times_of,
)

if TYPE_CHECKING:
    from attendo.data.sample_grammar.english import Tense
    from attendo.data.sample_grammar.verbs import Frame

# The themes of a statement, those with more verbs oftener.
THEMES = (
    *("people",) * 4,
    *("giving",) * 2,
    *("meal",) * 3,
    *("shopping",) * 3,
    *("study",) * 3,
    *("leisure",) * 4,
    *("body",) * 2,
    *("home",) * 3,
    *("things",) * 2,
    *("motion",) * 4,
    *("animals",) * 2,
)


FIRST_PERSON = ("I", "we")
"""Of whom nobody asks in the plain style."""


class Weather(NamedTuple):
    """A weather as a Korean clause and an English verb after it."""

    ko: str
    en: str
    is_fair: bool = False
    falls: bool = False
    """It falls on a place (서울에 비가 온다), or the place is so (서울은 날씨가 춥다)."""


WEATHER = (
    Weather("비가 오다", "rain", falls=True),
    Weather("눈이 오다", "snow", falls=True),
    Weather("날씨가 춥다", "be cold"),
    Weather("날씨가 덥다", "be hot"),
    Weather("날씨가 흐리다", "be cloudy"),
    Weather("날씨가 맑다", "be sunny", is_fair=True),
    Weather("날씨가 따뜻하다", "be warm", is_fair=True),
    Weather("날씨가 시원하다", "be cool", is_fair=True),
)
_CITIES = tuple(place for place in lexicon.PLACES if place.is_a("city"))
_IT = lexicon.Noun("", "it", article="fixed", pronoun="it")
_WHO = lexicon.Noun("누구", "who", article="fixed")


def finish(ko: str, en: str, mark: str = ".") -> tuple[str, str]:
    """Punctuate both sides and raise the first English letter."""
    return f"{ko}{mark}", f"{capitalise(en)}{mark}"


def draw_frame(draw: Draw) -> Frame:
    """Choose a verb: first a theme, then a frame of it."""
    return draw.choose(frames_of(draw.choose(THEMES)))


def state(draw: Draw) -> tuple[str, str]:
    """나는 어제 공원에서 민수를 만났다. I met Minsu in the park yesterday."""
    frame = draw_frame(draw)
    tense = draw_tense(draw, frame)
    can_deny = tense != "progressive" and not frame.has("affirmed")
    negative = can_deny and draw.chance(0.2)
    countable = not negative and tense in ("past", "future")
    clause = draw_clause(draw, frame, draw_subject(draw, frame), countable=countable)
    draw_time(draw, clause, frame, tense)
    if clause.time and clause.time.tense == "frequency":
        negative = False
    ending = clause.conjugate(tense, negative=negative)
    return finish(clause.say_ko(ending), clause.say_en(tense, negative=negative))


def state_barely(draw: Draw) -> tuple[str, str]:
    """왕자는 공주를 구했다, the prince saved the princess: no full stop, no capital."""
    frame = draw_frame(draw)
    subject = draw_subject(draw, frame, plain=True)
    clause = draw_clause(draw, frame, subject, adjuncts=1, plain=True)
    return clause.say_ko(clause.conjugate("past")), clause.say_en("past")


def wish(draw: Draw) -> tuple[str, str]:
    """나는 물을 마시고 싶다. I want to drink water. Of others Korean says that they show it."""
    frame, clause = _draw_willed(draw)
    stem = korean.stem(frame.ko)
    is_first_person = clause.subject.en in FIRST_PERSON
    clause.verb_ko = f"{stem}고 싶다" if is_first_person else f"{stem}고 싶어 하다"
    clause.verb_en = f"want to {frame.en}"
    clause.is_descriptive = is_first_person
    negative = draw.chance(0.2)
    ending = clause.conjugate("present", negative=negative)
    return finish(clause.say_ko(ending), clause.say_en("present", negative=negative))


def be_able_or_obliged(draw: Draw) -> tuple[str, str]:
    """그는 영어를 가르칠 수 있다. He can teach English. 너는 손님을 도와야 한다. You must ..."""
    tense: Tense = "can" if draw.chance(0.5) else "must"
    _, clause = _draw_willed(draw, of_you=tense == "must" and draw.chance(0.2))
    negative = tense == "can" and draw.chance(0.3)
    ending = clause.conjugate(tense, negative=negative)
    return finish(clause.say_ko(ending), clause.say_en(tense, negative=negative))


def ask(draw: Draw) -> tuple[str, str]:
    """Ask whether: 너는 어제 학교에 갔니? Did you go to school yesterday? (yes or no)."""
    frame = draw_frame(draw)
    clause = draw_clause(draw, frame, _draw_asked(draw, frame), adjuncts=1)
    tense = draw_tense(draw, frame)
    draw_time(draw, clause, frame, tense)
    clause.is_fronted = False
    ko = clause.say_ko(clause.conjugate(tense, is_question=True))
    return finish(ko, clause.ask_en(tense), "?")


def ask_who(draw: Draw) -> tuple[str, str]:
    """Ask for the subject: 누가 창문을 열었니? Who opened the window? (the child)."""
    frame = draw_frame(draw)
    if "person" not in frame.who or not frame.is_transitive:
        raise NoChoiceError
    clause = draw_clause(draw, frame, phrase_of(_WHO), adjuncts=1)
    tense: Tense = "present" if frame.aspect == "state" else draw.choose(("past", "past", "future"))
    if tense != "present" and draw.chance(0.4):
        clause.time = choose_time(draw, clause, frame, tense)
    clause.subject = clause.subject._replace(ko="")
    ending = clause.conjugate(tense, is_question=True)
    return finish(f"누가 {clause.say_ko(ending)}", clause.say_en(tense), "?")


def ask_what(draw: Draw) -> tuple[str, str]:
    """Ask for the object or the goal.

    너는 무엇을 먹었니? What did you eat? 그는 누구를 만났니? Who did he meet? 너는 어디에 사니?
    Where do you live?
    """
    frame = draw_frame(draw)
    ko_word, particle, en_word = _question_word(frame)
    if not draw.allows((frame.ko, ko_word)):
        raise NoChoiceError
    clause = Clause(_draw_asked(draw, frame), frame.ko, frame.en)
    clause.is_descriptive = frame.has("descriptive")
    tense = draw_tense(draw, frame)
    draw_time(draw, clause, frame, tense)
    clause.is_fronted = False
    clause.before.append(attach(ko_word, particle))
    ko = clause.say_ko(clause.conjugate(tense, is_question=True))
    return finish(ko, f"{en_word} {clause.ask_en(tense)}", "?")


def _question_word(frame: Frame) -> tuple[str, str, str]:
    """Give the word that asks for the object or the goal, its particle, and the English one."""
    if frame.has("named"):
        raise NoChoiceError
    if frame.goal:
        return "어디", "에", "where"
    if not frame.what or objects_of(frame)[0].preposition:
        raise NoChoiceError
    ko, en = ("누구", "who") if frame.is_personal else ("무엇", "what")
    return ko, frame.particle, en


def ask_where(draw: Draw) -> tuple[str, str]:
    """Ask where, when or why: 너는 왜 가방을 샀니? Why did you buy a bag? (to travel)."""
    frame = draw_frame(draw)
    words = [("언제", "when"), ("왜", "why")] + [("어디에서", "where")] * 2 * bool(frame.where)
    ko_word, en_word = draw.choose(words)
    tense: Tense = "past" if frame.aspect == "accident" else draw.choose(("past", "past", "future"))
    if frame.aspect == "state" or (en_word == "why" and tense == "future"):
        raise NoChoiceError
    clause = draw_clause(draw, frame, _draw_asked(draw, frame), adjuncts=0)
    if en_word != "when" and draw.chance(0.35):
        clause.time = choose_time(draw, clause, frame, tense)
    clause.before.insert(0, ko_word)
    ko = clause.say_ko(clause.conjugate(tense, is_question=True))
    return finish(ko, f"{en_word} {clause.ask_en(tense)}", "?")


def request(draw: Draw) -> tuple[str, str]:
    """창문을 열어 주세요. Please open the window."""
    frame = draw.choose(frames_of(mark="ask"))
    clause = draw_clause(draw, frame, phrase_of(lexicon.YOU), adjuncts=1)
    if any(_speaks_plainly(part) for part in clause.before):
        raise NoChoiceError
    if draw.chance(0.3):
        clause.time = choose_time(draw, clause, frame, "future", "long")
    clause.subject = clause.subject._replace(ko="", en="")
    link = "" if frame.ko == "돕다" else " "
    ko = clause.say_ko(f"{korean.infinitive(frame.ko)}{link}주세요")
    return finish(ko, f"please {clause.say_en('present')}")


def propose(draw: Draw) -> tuple[str, str]:
    """내일 함께 점심을 먹자. Let's eat lunch together tomorrow."""
    frame = draw.choose(frames_of(mark="together"))
    subject = phrase_of(lexicon.PRONOUNS[1])
    if not frame.is_transitive and not draw.allows((frame.ko, subject.ko)):
        raise NoChoiceError
    offered = frame.without("priced")._replace(how="together")
    clause = draw_clause(draw, offered, subject)
    if draw.chance(0.6):
        clause.time = choose_time(draw, clause, frame, "future", "long")
    clause.subject = clause.subject._replace(ko="", en="")
    return finish(clause.say_ko(korean.stem(frame.ko) + "자"), f"let's {clause.say_en('present')}")


def talk_of_weather(draw: Draw) -> tuple[str, str]:
    """어제 서울에 비가 왔다. It rained in Seoul yesterday."""
    weather = draw.choose(WEATHER)
    place = draw.combine(weather.ko, _CITIES)
    tense: Tense = draw.choose(("past", "future"))
    clause = weather_clause(weather)
    clause.time = draw.choose(times_of(tense, "long clock"))
    if draw.chance(0.7):
        clause.before.insert(0, attach(place.ko, "에" if weather.falls else "은"))
        clause.after.append(f"in {place.en}")
    is_question, negative = draw.chance(0.2), draw.chance(0.2)
    if is_question:
        ko = clause.say_ko(clause.conjugate(tense, is_question=True))
        return finish(ko, clause.ask_en(tense), "?")
    ending = clause.conjugate(tense, negative=negative)
    return finish(clause.say_ko(ending), clause.say_en(tense, negative=negative))


def weather_clause(weather: Weather) -> Clause:
    """Word a weather as a clause about it."""
    is_descriptive = weather.ko.startswith("날씨")
    return Clause(phrase_of(_IT), weather.ko, weather.en, is_descriptive=is_descriptive)


def _draw_willed(draw: Draw, *, of_you: bool = False) -> tuple[Frame, Clause]:
    """Draw a clause that someone, or you, can want, be able or have to do."""
    frame = draw_frame(draw)
    is_willed = frame.aspect in ("action", "event") and not frame.has("unwilled")
    if not is_willed or "person" not in frame.who:
        raise NoChoiceError
    subject = _address(draw, frame) if of_you else draw_subject(draw, frame)
    clause = draw_clause(draw, frame, subject, countable=draw.chance(0.5))
    if draw.chance(0.25):
        clause.time = choose_time(draw, clause, frame, "future")
    return frame, clause


def _draw_asked(draw: Draw, frame: Frame) -> Phrase:
    """Choose whom a question is about: you, oftener than anyone else."""
    if "person" not in frame.who or draw.chance(0.6):
        subject = draw_subject(draw, frame)
        if subject.en in FIRST_PERSON:
            raise NoChoiceError
        return subject
    return _address(draw, frame)


def _address(draw: Draw, frame: Frame) -> Phrase:
    """Make you the subject."""
    if not frame.is_transitive and not draw.allows((frame.ko, lexicon.YOU.ko)):
        raise NoChoiceError
    return phrase_of(lexicon.YOU)


def _speaks_plainly(part: str) -> bool:
    """Say whether a part names the speakers in the plain style, which a polite request cannot."""
    return part.startswith(("나를", "나에게", "우리", "내 ", "너", "그녀", "그들", "그를"))
