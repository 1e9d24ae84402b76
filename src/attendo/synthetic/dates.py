"""A synthetic corpus of dates: written in many Korean and English formats, with their ISO form.

`synthesize_dates` returns pairs such as ("삼월 오일 화요일, 2024년", "2024-03-05"), the same for
the same seed. A day of dev or test does not occur in train in any format.

Ambiguous formats have one meaning: with slashes, a leading year means year, month, day, and a
trailing year means that the month comes first, as in the United States; with dots or without
separators, the year comes first, as in Korea. The years are 1969 to 2068, the range of two-digit
years in POSIX (and in Python's `%y`): "24" is 2024 and "69" is 1969. Weekdays are correct.
"""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message
from attendo.synthetic.examples import MAX_COUNT, Example, synthesize_examples
from attendo.synthetic.number_words import spell_below_hundred, spell_sino

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from attendo.synthetic.examples import ExampleSplits, Lang

FIRST_DATE, LAST_DATE = date(1969, 1, 1), date(2068, 12, 31)
CONTEXT_RATE = 0.3
"""Fraction of texts with other words around the date."""
TYPO_RATE = 0.1
"""Fraction of texts with a typo: a space, a comma, the case, or two swapped letters."""

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
KO_WEEKDAYS = "월화수목금토일"
KO_MONTHS = {6: "유", 10: "시"}
"""Months whose spelling differs from their number."""
ORDINALS = (
    *("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"),
    *("tenth", "eleventh", "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth"),
    *("seventeenth", "eighteenth", "nineteenth", "twentieth"),
)
ORDINAL_SUFFIXES = {1: "st", 2: "nd", 3: "rd"}


class DateFormat(NamedTuple):
    """A format of a date; the template uses the names of `date_fields`."""

    lang: str
    template: str

    @property
    def name(self) -> str:
        """The language and an example of the format.

        >>> DateFormat("en", "{month} {day}, {year}").name
        'en March 5, 2024'
        """
        return f"{self.lang} {self.template.format(**date_fields(date(2024, 3, 5)))}"


_KOREAN_TEMPLATES = (
    *("{year}년 {m}월 {d}일", "{year}년 {mm}월 {dd}일", "{year}년 {m}월 {d}일 {요일}요일"),
    *("{year}년 {m}월 {d}일({요일})", "{m}월 {d}일 {요일}요일, {year}", "{m}월 {d}일, {year}년"),
    *("{yy}년 {m}월 {d}일", "'{yy}년 {m}월 {d}일", "{yy}년 {m}월 {d}일 {요일}요일"),
    *(
        "{년}년 {월}월 {일}일",
        "{년}년 {월}월 {일}일 {요일}요일",
        "{월}월 {일}일 {요일}요일, {year}년",
    ),
    *("{year}년 {월}월 {일}일", "서기 {년}년 {m}월 {d}일", "{요일}요일인 {year}년 {m}월 {d}일"),
    *("{year}. {m}. {d}.", "{year}. {m}. {d}.({요일})", "{year}.{mm}.{dd}", "{year}.{m}.{d}"),
    *("{yy}.{m}.{d}", "{yy}.{mm}.{dd}", "{yy}. {m}. {d}. {요일}", "{year}/{m}/{d}"),
    *("{year}/{mm}/{dd} ({요일})", "{year}-{m}-{d}", "{year}{mm}{dd}", "{yy}{mm}{dd}"),
)
_ENGLISH_TEMPLATES = (
    *("{month} {day}, {year}", "{month} {day_th}, {year}", "{day} {month} {year}"),
    *("{day_th} {month} {year}", "the {day_th} of {month}, {year}", "{mon} {day}, {year}"),
    *("{day} {mon} {year}", "{dow}, {day} {mon} {year}", "{dow} {mon} {dd} {year}"),
    *("{weekday}, {month} {day}, {year}", "{weekday}, {day} {month} {year}"),
    *("{weekday} the {day_th} of {month} {year}", "{mon} {day} '{yy}", "{day} {mon} '{yy}"),
    *("{dd}-{mon}-{year}", "{day}-{mon}-{yy}", "{mm}/{dd}/{year}", "{m}/{d}/{year}"),
    *("{m}/{d}/{yy}", "{mm}/{dd}/{yy}", "{dow} {m}/{d}/{year}", "{year}, {month} {day}"),
    *("the {ordinal} of {month}, {year_words}", "{month} the {ordinal}, {year_words}"),
    *("{weekday}, {month} {ordinal}, {year_words}", "the {ordinal} of {month}, {year}"),
)
DATE_FORMATS = (
    *(DateFormat("ko", template) for template in _KOREAN_TEMPLATES),
    *(DateFormat("en", template) for template in _ENGLISH_TEMPLATES),
)

CONTEXT_TEMPLATES = {
    "ko": (
        *("지난 {}", "오는 {}", "오늘은 {}", "{}에", "{}부터", "{}까지", "일시: {}", "마감 {}"),
        *("회의는 {}입니다", "{} 출생", "{} 개봉 예정", "작성일: {}"),
    ),
    "en": (
        *("on {}", "by {}", "since {}", "until {}", "born {}", "Date: {}", "due {}", "as of {}"),
        *("the meeting is on {}", "it opens {}", "published {} in Seoul", "we met on {}."),
    ),
}


def date_fields(day: date) -> dict[str, str]:
    """Return every part of a date that a format may use."""
    return {
        "year": f"{day.year}",
        "yy": f"{day.year % 100:02}",
        "m": f"{day.month}",
        "mm": f"{day.month:02}",
        "d": f"{day.day}",
        "dd": f"{day.day:02}",
        "년": spell_sino(day.year),
        "월": KO_MONTHS.get(day.month) or spell_sino(day.month),
        "일": spell_sino(day.day),
        "요일": KO_WEEKDAYS[day.weekday()],
        "month": MONTHS[day.month - 1],
        "mon": MONTHS[day.month - 1][:3],
        "day": f"{day.day}",
        "day_th": f"{day.day}{_ordinal_suffix(day.day)}",
        "ordinal": spell_ordinal(day.day),
        "weekday": WEEKDAYS[day.weekday()],
        "dow": WEEKDAYS[day.weekday()][:3],
        "year_words": spell_year(day.year),
    }


def spell_ordinal(number: int) -> str:
    """Spell the ordinal of a day of the month.

    >>> [spell_ordinal(day) for day in (5, 20, 21, 30)]
    ['fifth', 'twentieth', 'twenty-first', 'thirtieth']
    """
    tens, ones = divmod(number, 10)
    if number <= 20:
        return ORDINALS[number]
    return f"{spell_below_hundred(10 * tens)}-{ORDINALS[ones]}" if ones else "thirtieth"


def spell_year(year: int) -> str:
    """Spell a year as it is pronounced.

    >>> [spell_year(year) for year in (1969, 2000, 2005, 2024)]
    ['nineteen sixty-nine', 'two thousand', 'two thousand and five', 'twenty twenty-four']
    """
    century, rest = divmod(year, 100)
    if century == 20 and rest < 10:
        return "two thousand" + (f" and {spell_below_hundred(rest)}" if rest else "")
    return f"{spell_below_hundred(century)} {spell_below_hundred(rest)}"


def _ordinal_suffix(number: int) -> str:
    return "th" if number in (11, 12, 13) else ORDINAL_SUFFIXES.get(number % 10, "th")


# --- the corpus


def synthesize_dates(
    count: int,
    *,
    seed: int = 1,
    lang: Lang = "both",
    typo_rate: float = TYPO_RATE,
    context_rate: float = CONTEXT_RATE,
    dev_fraction: float = 0.0,
    progress: Callable[[int], None] | None = None,
) -> ExampleSplits:
    """Return distinct written dates with their ISO form.

    All formats of a language are equally frequent.

    Args:
        count: Number of examples in all splits together.
        seed: Seed of the corpus.
        lang: Language of the dates.
        typo_rate: Fraction of texts with a typo.
        context_rate: Fraction of texts with other words around the date.
        dev_fraction: Fraction of the examples in dev, and the same in test.
        progress: Called now and then with the number of examples so far.

    Returns:
        The three splits.

    Raises:
        ConfigError: If a rate or fraction is out of range.
        InputError: If `count` is out of range.

    """
    if count > MAX_COUNT:
        reason = message(
            "{count} dates were requested, but the maximum is {most}",
            count=f"{count:,}",
            most=f"{MAX_COUNT:,}",
        )
        raise InputError(
            reason,
            hint=message(
                "request fewer; there are {count} different ones",
                count=f"{count_distinct_texts(lang):,}",
            ),
        )
    for name, value in (("typo_rate", typo_rate), ("context_rate", context_rate)):
        if not 0.0 <= value <= 1.0:
            raise ConfigError(
                message("{name}={value} is not between 0 and 1", name=name, value=value),
                hint="choose e.g. 0.1",
            )
    formats = [form for form in DATE_FORMATS if lang in (form.lang, "both")]
    names = {form: form.name for form in formats}
    first, last = FIRST_DATE.toordinal(), LAST_DATE.toordinal()

    def sample_example(rng: Random) -> Example:
        day = date.fromordinal(rng.randint(first, last))
        form = rng.choice(formats)
        text = form.template.format(**date_fields(day))
        if rng.random() < context_rate:
            text = rng.choice(CONTEXT_TEMPLATES[form.lang]).format(text)
        with_typo = add_typo(text, form.lang, rng) if rng.random() < typo_rate else text
        name = names[form] if with_typo == text else f"{names[form]} + slip"
        return Example(with_typo, day.isoformat(), name, day.isoformat())

    return synthesize_examples(
        sample_example, count, seed=seed, dev_fraction=dev_fraction, progress=progress
    )


def count_distinct_texts(lang: Lang = "both") -> int:
    """Return the number of different texts without typos.

    Whether two formats agree on a day depends only on the month (May has no short form) and on
    single digits.
    """
    kinds: dict[tuple[bool, bool, bool], list[date]] = {}
    for number in range(FIRST_DATE.toordinal(), LAST_DATE.toordinal() + 1):
        day = date.fromordinal(number)
        kinds.setdefault((day.month == 5, day.month < 10, day.day < 10), []).append(day)
    total = 0
    for language, contexts in CONTEXT_TEMPLATES.items():
        forms = [
            form for form in DATE_FORMATS if form.lang == language and lang in (language, "both")
        ]
        for days in kinds.values():
            parts = date_fields(days[0])
            texts = {form.template.format(**parts) for form in forms}
            total += len(days) * len(texts) * (1 + len(contexts))
    return total


# --- typos


def add_typo(text: str, lang: str, rng: Random) -> str:
    """Add one typo that keeps the date unambiguous.

    A space is dropped (never between two digits) or, in Korean, inserted before 년, 월 and 일; in
    English a comma is dropped, the case is changed, or two letters of a long word are swapped.
    """
    edits = (_drop_space, _space_units) if lang == "ko" else (_drop_space, *_ENGLISH_TYPOS)
    return rng.choice(edits)(text, rng)


def _drop_space(text: str, rng: Random) -> str:
    indices = [match.start() for match in re.finditer(r"(?<!\d) | (?!\d)", text)]
    if not indices:
        return text
    index = rng.choice(indices)
    return text[:index] + text[index + 1 :]


def _space_units(text: str, _rng: Random) -> str:
    return re.sub(r"(?<=\d)(?=[년월일])", " ", text)


def _drop_comma(text: str, _rng: Random) -> str:
    return text.replace(",", "", 1)


def _change_case(text: str, rng: Random) -> str:
    return text.lower() if rng.random() < 0.5 else text.upper()


def _swap_letters(text: str, rng: Random) -> str:
    words = list(re.finditer(r"[A-Za-z]{5,}", text))
    if not words:
        return text
    word = rng.choice(words)
    index = rng.randrange(word.start() + 1, word.end() - 1)
    return text[:index] + text[index + 1] + text[index] + text[index + 2 :]


_ENGLISH_TYPOS = (_drop_comma, _change_case, _swap_letters)
