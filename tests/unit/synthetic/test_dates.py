"""Dates in words: Python's own datetime reads every pair, and counts every weekday."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections import Counter
from datetime import date, datetime
from random import Random

import pytest

from attendo.core.errors import ConfigError, InputError
from attendo.synthetic import dates
from attendo.synthetic.dates import (
    CONTEXT_TEMPLATES,
    DATE_FORMATS,
    FIRST_DATE,
    LAST_DATE,
    MONTHS,
    ORDINALS,
    WEEKDAYS,
    add_typo,
    count_distinct_texts,
    date_fields,
    spell_year,
    synthesize_dates,
)
from attendo.synthetic.examples import MAX_COUNT
from attendo.synthetic.number_words import ONES, TENS, spell_sino

GOLDEN = "2bdb2d02b011e9b55b1b286b7a26a210ca020a67bfbe22da35ea47e95196ece4"
DIRECTIVES = {
    "year": "%Y",
    "yy": "%y",
    "m": "%m",
    "mm": "%m",
    "d": "%d",
    "dd": "%d",
    "day": "%d",
    "month": "%B",
    "mon": "%b",
    "weekday": "%A",
    "dow": "%a",
}
"""The positions that `strptime` can read; the others are words, which are put back to figures."""


@pytest.fixture(scope="module")
def parts():
    return synthesize_dates(12_000, seed=1, dev_fraction=0.1)


# --- the words


@pytest.mark.parametrize(
    ("day", "words"),
    [
        (date(2024, 3, 5), {"년": "이천이십사", "월": "삼", "일": "오", "요일": "화"}),
        (date(1969, 6, 10), {"년": "천구백육십구", "월": "유", "일": "십", "요일": "화"}),
        (date(2000, 10, 31), {"년": "이천", "월": "시", "일": "삼십일", "요일": "화"}),
        (date(2024, 3, 5), {"ordinal": "fifth", "day_th": "5th", "weekday": "Tuesday"}),
        (date(2023, 5, 22), {"ordinal": "twenty-second", "day_th": "22nd", "dow": "Mon"}),
        (date(2011, 11, 11), {"ordinal": "eleventh", "day_th": "11th", "mon": "Nov"}),
        (date(2068, 12, 31), {"ordinal": "thirty-first", "day_th": "31st", "yy": "68"}),
        (date(2008, 1, 30), {"ordinal": "thirtieth", "year_words": "two thousand and eight"}),
        (date(1970, 9, 3), {"day_th": "3rd", "year_words": "nineteen seventy", "mm": "09"}),
    ],
)
def test_the_parts_of_a_day(day, words):
    assert {name: date_fields(day)[name] for name in words} == words


def test_every_form_of_one_tuesday():
    names = {form.name for form in DATE_FORMATS}
    assert len(names) == len(DATE_FORMATS) > 45
    assert {
        *("ko 2024년 3월 5일", "ko 이천이십사년 삼월 오일", "ko 24.3.5", "ko 3월 5일 화요일, 2024"),
        *("en March 5th, 2024", "en 5 March 2024", "en Tue, 5 Mar 2024", "en 03/05/2024"),
        "en the fifth of March, twenty twenty-four",
    } <= names


def unspell(template: str) -> tuple[str, str]:
    """Turn a template into one with figures for words, and the pattern that reads it."""
    figures = {"년": "year", "월": "m", "일": "d", "ordinal": "day", "year_words": "year"}
    plain = re.sub(r"\{(\w+)\}", lambda at: "{" + figures.get(at[1], at[1]) + "}", template)
    plain = plain.replace("{day_th}", "{day}").replace("{요일}", "").replace("%", "%%")
    return plain, re.sub(r"\{(\w+)\}", lambda at: DIRECTIVES[at[1]], plain)


@pytest.mark.parametrize("form", DATE_FORMATS, ids=lambda form: form.name)
def test_datetime_reads_every_form(form):
    """A form with its words as figures is read by `strptime`, whatever order it has."""
    plain, pattern = unspell(form.template)
    for number in range(FIRST_DATE.toordinal(), LAST_DATE.toordinal() + 1, 97):
        day = date.fromordinal(number)
        text = plain.format(**date_fields(day))
        assert datetime.strptime(text, pattern).date() == day, text


def test_every_word_represents_one_value():
    """So that the words of a form tell what its figures would."""
    days = [
        date.fromordinal(n) for n in range(FIRST_DATE.toordinal(), LAST_DATE.toordinal() + 1, 13)
    ]
    described = [date_fields(day) for day in days]
    for words, figures in (
        *(("년", "year"), ("월", "m"), ("일", "d"), ("ordinal", "day"), ("year_words", "year")),
        *(("day_th", "day"), ("month", "m"), ("mon", "m")),
    ):
        pairs = {(parts[words], parts[figures]) for parts in described}
        assert len({word for word, _ in pairs}) == len({figure for _, figure in pairs})
        assert len(pairs) == len({figure for _, figure in pairs})
    assert all(spell_sino(year) != spell_year(year) for year in range(1969, 2069))


# --- the corpus


def read_iso(text: str) -> date:
    return datetime.strptime(text, "%Y-%m-%d").date()


def test_every_target_is_a_day_of_the_hundred_years(parts):
    for example in (example for part in parts for example in part):
        day = read_iso(example.tgt)
        assert example.tgt == day.isoformat() == example.key
        assert FIRST_DATE <= day <= LAST_DATE
        assert unicodedata.is_normalized("NFC", example.src)
        assert example.src == " ".join(example.src.split())


def test_every_weekday_is_that_of_the_day(parts):
    seen = Counter()
    whole = (example for part in parts for example in part if "slip" not in example.form)
    for example in whole:
        day = read_iso(example.tgt)
        for found in re.findall(r"(.)요일|\((.)\)|\. ([월화수목금토일])$", example.src):
            assert "".join(found) == "월화수목금토일"[day.weekday()], example
            seen["ko"] += 1
        for word in re.findall(r"\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)(?:[a-z]*day)?\b", example.src):
            assert word in (day.strftime("%A"), day.strftime("%a")), example
            seen["en"] += 1
    assert min(seen["ko"], seen["en"]) > 1000


def test_the_figures_of_a_text_are_those_of_its_day(parts):
    """Without knowing the form: every run of figures is a part of the date."""
    for example in (example for part in parts for example in part):
        day = read_iso(example.tgt)
        allowed = {f"{day:%Y}", f"{day:%y}", f"{day:%m}", f"{day:%d}", str(day.month), str(day.day)}
        allowed |= {f"{day:%Y%m%d}", f"{day:%y%m%d}"}
        assert set(re.findall(r"\d+", example.src)) <= allowed, example


def test_parts_share_neither_a_source_nor_a_day(parts):
    assert [len(part) for part in parts] == [9_600, 1_200, 1_200]
    sources = [example.src for part in parts for example in part]
    assert len(sources) == len(set(sources))
    days = [{example.tgt for example in part} for part in parts]
    assert not days[0] & days[1]
    assert not days[0] & days[2]
    assert not days[1] & days[2]
    assert min(map(len, days)) > 900


def test_test_asks_no_letter_that_train_has_not(parts):
    known = {letter for example in parts.train for letter in example.src}
    assert {letter for example in parts.test for letter in example.src} <= known


def test_without_the_removal_of_repeats_one_text_is_one_day(monkeypatch):
    meant: dict[str, str] = {}

    def keep(draw, count, **_):
        probability = Random(4)  # noqa: S311 - no secret
        for _ in range(count):
            example = draw(probability)
            assert meant.setdefault(example.src, example.tgt) == example.tgt

    monkeypatch.setattr(dates, "synthesize_examples", keep)
    synthesize_dates(30_000, typo_rate=0.5)
    assert len(meant) > 25_000


def test_forms_words_around_and_typos_are_as_frequent_as_requested(parts):
    forms = Counter(example.form.removesuffix(" + slip") for example in parts.train)
    assert set(forms) == {form.name for form in DATE_FORMATS}
    assert min(forms.values()) > 90
    num_slips = sum(example.form.endswith("+ slip") for example in parts.train)
    assert 0.05 < num_slips / 9_600 < 0.1  # some slips find nothing to spoil
    plain = synthesize_dates(2_000, typo_rate=0.0, context_rate=0.0).train
    assert not any("slip" in example.form for example in plain)
    starts = tuple(words.split("{}")[0] for words in CONTEXT_TEMPLATES["en"] if words[0] != "{")
    assert not any(example.src.startswith(starts) for example in plain)
    around = synthesize_dates(300, typo_rate=0.0, context_rate=1.0, lang="en").train
    assert all(example.src.startswith(starts) for example in around)


def test_one_language():
    for lang, other in (("ko", r"[A-Za-z]"), ("en", r"[가-힣]")):
        examples = synthesize_dates(1_000, lang=lang).train
        assert all(example.form.startswith(lang) for example in examples)
        assert not any(re.search(other, example.src) for example in examples)


def test_one_seed_one_corpus(parts):
    text = "\n".join(f"{example.src}\t{example.tgt}" for example in parts.train[:1000])
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN
    other = synthesize_dates(1000, seed=2)
    assert len({one.src for one in other.train} & {one.src for one in parts.train}) < 10


# --- slips


def test_a_slip_changes_no_figure_and_loses_no_letter():
    probability = Random(1)  # noqa: S311 - no secret
    for text, lang in (
        ("Tuesday, March 5, 2024", "en"),
        ("on 12 September 2001", "en"),
        ("Mar 5 '24", "en"),
        ("2024년 3월 5일 화요일", "ko"),
        ("2024. 3. 5.", "ko"),
    ):
        slips = {add_typo(text, lang, probability) for _ in range(200)}
        assert len(slips - {text}) >= 2
        for slipped in slips:
            assert re.findall(r"\d+", slipped) == re.findall(r"\d+", text), slipped
            letters = re.sub(r"[\s,]", "", text).casefold()
            assert Counter(re.sub(r"[\s,]", "", slipped).casefold()) == Counter(letters)


def test_letters_out_of_order_still_identify_the_word():
    """No two words of a date have the same letters."""
    words = [*MONTHS, *WEEKDAYS, *ORDINALS[1:], *ONES, *TENS[2:], "thirtieth", "thousand"]
    letters = ["".join(sorted(word.casefold())) for word in words]
    assert len(set(letters)) == len(letters)


# --- what cannot be made


def test_the_number_of_texts_is_the_number_of_texts(monkeypatch):
    first, last = date(2004, 4, 28), date(2004, 10, 12)
    monkeypatch.setattr(dates, "FIRST_DATE", first)
    monkeypatch.setattr(dates, "LAST_DATE", last)
    days = [date.fromordinal(n) for n in range(first.toordinal(), last.toordinal() + 1)]
    texts = {
        lang: {
            words.format(form.template.format(**parts))
            for parts in map(date_fields, days)
            for form in DATE_FORMATS
            if form.lang == lang
            for words in ("{}", *CONTEXT_TEMPLATES[lang])
        }
        for lang in ("ko", "en")
    }
    assert {lang: count_distinct_texts(lang) for lang in texts} == {
        k: len(v) for k, v in texts.items()
    }
    assert count_distinct_texts() == len(texts["ko"] | texts["en"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"count": MAX_COUNT + 1}, "1,000,001 dates"),
        ({"count": -1}, "count=-1"),
        ({"typo_rate": 1.5}, "typo_rate=1.5"),
        ({"context_rate": -0.1}, "context_rate=-0.1"),
        ({"dev_fraction": 0.41}, "dev_fraction=0.41"),
    ],
)
def test_what_cannot_be_made_is_rejected(options, words):
    with pytest.raises((InputError, ConfigError), match=words) as caught:
        synthesize_dates(**{"count": 10, **options})
    assert caught.value.hint
    if words == "1,000,001 dates":
        assert f"{count_distinct_texts():,}" in caught.value.hint
