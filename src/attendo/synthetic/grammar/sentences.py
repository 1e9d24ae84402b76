"""Sentence types of the everyday corpus; each function returns a Korean-English pair.

Statements, desires, questions, requests and the weather are here; the others are in `copula`,
`complex_sentences` and `colloquial`. A sentence starts with a capital and ends with a period or a
question mark, except for the bare statement (왕자는 공주를 구했다, the prince saved the princess)
and the colloquial one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attendo.synthetic.grammar import korean, lexicon
from attendo.synthetic.grammar.clauses import (
    sample_clause,
    sample_subject,
    sample_tense,
    sample_time,
    sample_time_of_kind,
)
from attendo.synthetic.grammar.korean import attach
from attendo.synthetic.grammar.phrases import (
    Clause,
    NoCombinationError,
    Phrase,
    WordSampler,
    capitalize_first,
    frames_of,
    objects_of,
    times_of,
    to_topic_phrase,
)

if TYPE_CHECKING:
    from attendo.synthetic.grammar.english import Tense
    from attendo.synthetic.grammar.verbs import Frame

# The themes of a statement; those with more verbs are repeated.
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
"""Subjects that do not occur in questions of the plain style."""


class Weather(NamedTuple):
    """A kind of weather: a Korean clause and an English verb after "it"."""

    ko: str
    en: str
    is_fair: bool = False
    is_precipitation: bool = False
    """Decides the particle of the city: 서울에 비가 온다, but 서울은 날씨가 춥다."""


WEATHER = (
    Weather("비가 오다", "rain", is_precipitation=True),
    Weather("눈이 오다", "snow", is_precipitation=True),
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


def punctuate(ko: str, en: str, mark: str = ".") -> tuple[str, str]:
    """Punctuate both sides and capitalize the English one."""
    return f"{ko}{mark}", f"{capitalize_first(en)}{mark}"


def sample_frame(sampler: WordSampler) -> Frame:
    """Choose a theme, then one of its verbs."""
    return sampler.choose(frames_of(sampler.choose(THEMES)))


def statement(sampler: WordSampler) -> tuple[str, str]:
    """나는 어제 공원에서 민수를 만났다. I met Minsu in the park yesterday."""
    frame = sample_frame(sampler)
    tense = sample_tense(sampler, frame)
    can_negate = tense != "progressive" and not frame.has_mark("affirmed")
    negative = can_negate and sampler.bernoulli(0.2)
    countable = not negative and tense in ("past", "future")
    clause = sample_clause(sampler, frame, sample_subject(sampler, frame), countable=countable)
    sample_time(sampler, clause, frame, tense)
    if clause.time and clause.time.tense == "frequency":
        negative = False
    ending = clause.conjugate(tense, negative=negative)
    return punctuate(clause.to_korean(ending), clause.to_english(tense, negative=negative))


def bare_statement(sampler: WordSampler) -> tuple[str, str]:
    """왕자는 공주를 구했다, the prince saved the princess: no full stop, no capital."""
    frame = sample_frame(sampler)
    subject = sample_subject(sampler, frame, plain=True)
    clause = sample_clause(sampler, frame, subject, adjuncts=1, plain=True)
    return clause.to_korean(clause.conjugate("past")), clause.to_english("past")


def desire(sampler: WordSampler) -> tuple[str, str]:
    """나는 물을 마시고 싶다. I want to drink water. For others: 마시고 싶어 한다."""
    frame, clause = _sample_volitional(sampler)
    stem = korean.stem(frame.ko)
    is_first_person = clause.subject.en in FIRST_PERSON
    clause.verb_ko = f"{stem}고 싶다" if is_first_person else f"{stem}고 싶어 하다"
    clause.verb_en = f"want to {frame.en}"
    clause.is_descriptive = is_first_person
    negative = sampler.bernoulli(0.2)
    ending = clause.conjugate("present", negative=negative)
    return punctuate(clause.to_korean(ending), clause.to_english("present", negative=negative))


def modal_statement(sampler: WordSampler) -> tuple[str, str]:
    """그는 영어를 가르칠 수 있다. He can teach English. 너는 손님을 도와야 한다. You must ..."""
    tense: Tense = "can" if sampler.bernoulli(0.5) else "must"
    _, clause = _sample_volitional(sampler, of_you=tense == "must" and sampler.bernoulli(0.2))
    negative = tense == "can" and sampler.bernoulli(0.3)
    ending = clause.conjugate(tense, negative=negative)
    return punctuate(clause.to_korean(ending), clause.to_english(tense, negative=negative))


def yes_no_question(sampler: WordSampler) -> tuple[str, str]:
    """Ask whether: 너는 어제 학교에 갔니? Did you go to school yesterday? (yes or no)."""
    frame = sample_frame(sampler)
    clause = sample_clause(sampler, frame, _sample_question_subject(sampler, frame), adjuncts=1)
    tense = sample_tense(sampler, frame)
    sample_time(sampler, clause, frame, tense)
    clause.is_fronted = False
    ko = clause.to_korean(clause.conjugate(tense, is_question=True))
    return punctuate(ko, clause.to_question(tense), "?")


def subject_question(sampler: WordSampler) -> tuple[str, str]:
    """Ask for the subject: 누가 창문을 열었니? Who opened the window? (the child)."""
    frame = sample_frame(sampler)
    if "person" not in frame.who or not frame.is_transitive:
        raise NoCombinationError
    clause = sample_clause(sampler, frame, to_topic_phrase(_WHO), adjuncts=1)
    tense: Tense = (
        "present" if frame.aspect == "state" else sampler.choose(("past", "past", "future"))
    )
    if tense != "present" and sampler.bernoulli(0.4):
        clause.time = sample_time_of_kind(sampler, clause, frame, tense)
    clause.subject = clause.subject._replace(ko="")
    ending = clause.conjugate(tense, is_question=True)
    return punctuate(f"누가 {clause.to_korean(ending)}", clause.to_english(tense), "?")


def object_question(sampler: WordSampler) -> tuple[str, str]:
    """Ask for the object or the goal.

    너는 무엇을 먹었니? What did you eat? 그는 누구를 만났니? Who did he meet? 너는 어디에 사니?
    Where do you live?
    """
    frame = sample_frame(sampler)
    ko_word, particle, en_word = _question_word(frame)
    if not sampler.accept_core((frame.ko, ko_word)):
        raise NoCombinationError
    clause = Clause(_sample_question_subject(sampler, frame), frame.ko, frame.en)
    clause.is_descriptive = frame.has_mark("descriptive")
    tense = sample_tense(sampler, frame)
    sample_time(sampler, clause, frame, tense)
    clause.is_fronted = False
    clause.before.append(attach(ko_word, particle))
    ko = clause.to_korean(clause.conjugate(tense, is_question=True))
    return punctuate(ko, f"{en_word} {clause.to_question(tense)}", "?")


def _question_word(frame: Frame) -> tuple[str, str, str]:
    """Return the question word for the object or the goal, its particle, and the English one."""
    if frame.has_mark("named"):
        raise NoCombinationError
    if frame.goal:
        return "어디", "에", "where"
    if not frame.what or objects_of(frame)[0].preposition:
        raise NoCombinationError
    ko, en = ("누구", "who") if frame.is_personal else ("무엇", "what")
    return ko, frame.particle, en


def adverbial_question(sampler: WordSampler) -> tuple[str, str]:
    """Ask where, when or why: 너는 왜 가방을 샀니? Why did you buy a bag? (to travel)."""
    frame = sample_frame(sampler)
    words = [("언제", "when"), ("왜", "why")] + [("어디에서", "where")] * 2 * bool(frame.where)
    ko_word, en_word = sampler.choose(words)
    tense: Tense = (
        "past" if frame.aspect == "accident" else sampler.choose(("past", "past", "future"))
    )
    if frame.aspect == "state" or (en_word == "why" and tense == "future"):
        raise NoCombinationError
    clause = sample_clause(sampler, frame, _sample_question_subject(sampler, frame), adjuncts=0)
    if en_word != "when" and sampler.bernoulli(0.35):
        clause.time = sample_time_of_kind(sampler, clause, frame, tense)
    clause.before.insert(0, ko_word)
    ko = clause.to_korean(clause.conjugate(tense, is_question=True))
    return punctuate(ko, f"{en_word} {clause.to_question(tense)}", "?")


def polite_request(sampler: WordSampler) -> tuple[str, str]:
    """창문을 열어 주세요. Please open the window."""
    frame = sampler.choose(frames_of(mark="ask"))
    clause = sample_clause(sampler, frame, to_topic_phrase(lexicon.YOU), adjuncts=1)
    if any(_has_plain_speaker(part) for part in clause.before):
        raise NoCombinationError
    if sampler.bernoulli(0.3):
        clause.time = sample_time_of_kind(sampler, clause, frame, "future", "long")
    clause.subject = clause.subject._replace(ko="", en="")
    link = "" if frame.ko == "돕다" else " "
    ko = clause.to_korean(f"{korean.infinitive(frame.ko)}{link}주세요")
    return punctuate(ko, f"please {clause.to_english('present')}")


def suggestion(sampler: WordSampler) -> tuple[str, str]:
    """내일 함께 점심을 먹자. Let's eat lunch together tomorrow."""
    frame = sampler.choose(frames_of(mark="together"))
    subject = to_topic_phrase(lexicon.PRONOUNS[1])
    if not frame.is_transitive and not sampler.accept_core((frame.ko, subject.ko)):
        raise NoCombinationError
    offered = frame.without_mark("priced")._replace(how="together")
    clause = sample_clause(sampler, offered, subject)
    if sampler.bernoulli(0.6):
        clause.time = sample_time_of_kind(sampler, clause, frame, "future", "long")
    clause.subject = clause.subject._replace(ko="", en="")
    return punctuate(
        clause.to_korean(korean.stem(frame.ko) + "자"), f"let's {clause.to_english('present')}"
    )


def weather_statement(sampler: WordSampler) -> tuple[str, str]:
    """어제 서울에 비가 왔다. It rained in Seoul yesterday."""
    weather = sampler.choose(WEATHER)
    place = sampler.choose_compatible(weather.ko, _CITIES)
    tense: Tense = sampler.choose(("past", "future"))
    clause = weather_clause(weather)
    clause.time = sampler.choose(times_of(tense, "long clock"))
    if sampler.bernoulli(0.7):
        clause.before.insert(0, attach(place.ko, "에" if weather.is_precipitation else "은"))
        clause.after.append(f"in {place.en}")
    is_question, negative = sampler.bernoulli(0.2), sampler.bernoulli(0.2)
    if is_question:
        ko = clause.to_korean(clause.conjugate(tense, is_question=True))
        return punctuate(ko, clause.to_question(tense), "?")
    ending = clause.conjugate(tense, negative=negative)
    return punctuate(clause.to_korean(ending), clause.to_english(tense, negative=negative))


def weather_clause(weather: Weather) -> Clause:
    """Return the clause of a kind of weather."""
    is_descriptive = weather.ko.startswith("날씨")
    return Clause(to_topic_phrase(_IT), weather.ko, weather.en, is_descriptive=is_descriptive)


def _sample_volitional(sampler: WordSampler, *, of_you: bool = False) -> tuple[Frame, Clause]:
    """Sample a clause about an action that someone can want, be able or have to do."""
    frame = sample_frame(sampler)
    is_volitional = frame.aspect in ("action", "event") and not frame.has_mark("unwilled")
    if not is_volitional or "person" not in frame.who:
        raise NoCombinationError
    subject = _second_person_subject(sampler, frame) if of_you else sample_subject(sampler, frame)
    clause = sample_clause(sampler, frame, subject, countable=sampler.bernoulli(0.5))
    if sampler.bernoulli(0.25):
        clause.time = sample_time_of_kind(sampler, clause, frame, "future")
    return frame, clause


def _sample_question_subject(sampler: WordSampler, frame: Frame) -> Phrase:
    """Choose the subject of a question, often "you"."""
    if "person" not in frame.who or sampler.bernoulli(0.6):
        subject = sample_subject(sampler, frame)
        if subject.en in FIRST_PERSON:
            raise NoCombinationError
        return subject
    return _second_person_subject(sampler, frame)


def _second_person_subject(sampler: WordSampler, frame: Frame) -> Phrase:
    """Return "you" as the subject."""
    if not frame.is_transitive and not sampler.accept_core((frame.ko, lexicon.YOU.ko)):
        raise NoCombinationError
    return to_topic_phrase(lexicon.YOU)


def _has_plain_speaker(part: str) -> bool:
    """Return whether a part has a plain-style pronoun, which a polite request cannot have."""
    return part.startswith(("나를", "나에게", "우리", "내 ", "너", "그녀", "그들", "그를"))
