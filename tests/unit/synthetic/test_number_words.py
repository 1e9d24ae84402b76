"""Numbers in words: known values, and every pair read back by a parser that knows no grammar."""

from __future__ import annotations

import hashlib
import random
import re
import unicodedata
from collections import Counter

import pytest

from attendo.core.errors import ConfigError, InputError
from attendo.synthetic import number_words
from attendo.synthetic.examples import MAX_COUNT, assign_split
from attendo.synthetic.number_words import (
    COUNTERS,
    spell_english,
    spell_mixed,
    spell_native,
    spell_sino,
    spellings,
    synthesize_numbers,
)

GOLDEN = "13df8657340b3e6972976ea597b8586c8ce3ca9be1e211b15bab9805a4db5bc5"


@pytest.fixture(scope="module")
def parts():
    return synthesize_numbers(12_000, seed=1, dev_fraction=0.1)


# --- an independent reading

SINO = dict(zip("일이삼사오육칠팔구", range(1, 10), strict=True))
PLACES = {"십": 10, "백": 100, "천": 1000}
LARGE = {"만": 10**4, "억": 10**8, "조": 10**12}
NATIVE = {
    "한": 1,
    "하나": 1,
    "두": 2,
    "둘": 2,
    "세": 3,
    "셋": 3,
    "네": 4,
    "넷": 4,
    "다섯": 5,
    "여섯": 6,
    "일곱": 7,
    "여덟": 8,
    "아홉": 9,
    "열": 10,
    "스물": 20,
    "스무": 20,
    "서른": 30,
    "마흔": 40,
    "쉰": 50,
    "예순": 60,
    "일흔": 70,
    "여든": 80,
    "아흔": 90,
}
ENGLISH = {
    "zero": 0,
    "a": 1,
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
    "eleven": 11,
    "twelve": 12,
    "thirteen": 13,
    "fourteen": 14,
    "fifteen": 15,
    "sixteen": 16,
    "seventeen": 17,
    "eighteen": 18,
    "nineteen": 19,
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
POWERS = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12, "quadrillion": 15}


def read_korean(text: str) -> int:
    text = text.removesuffix(next((f" {one}" for one in COUNTERS if text.endswith(one)), ""))
    native = re.search("|".join(sorted(NATIVE, key=len, reverse=True)), text)
    tail = 0
    if native:
        text, rest = text[: native.start()], text[native.start() :]
        while rest:
            word = next(
                one for one in sorted(NATIVE, key=len, reverse=True) if rest.startswith(one)
            )
            tail, rest = tail + NATIVE[word], rest[len(word) :]
    total = group = digit = 0
    for part in re.findall(r"\d+|\S", text):
        if part in LARGE:
            total, group, digit = total + ((group + digit) or 1) * LARGE[part], 0, 0
        elif part in PLACES:
            group, digit = group + (digit or 1) * PLACES[part], 0
        else:
            digit = SINO.get(part, 0) if not part.isdecimal() else int(part)
    return total + group + digit + tail


def read_english(text: str) -> int:
    total = group = 0
    for word in re.findall(r"[a-z]+", text):
        if word in POWERS:
            total, group = total + group * 10 ** POWERS[word], 0
        elif word == "hundred":
            group *= 100
        elif word != "and":
            group += ENGLISH[word]
    return total + group


@pytest.mark.parametrize(
    ("number", "sino", "english"),
    [
        (0, "영", "zero"),
        (10, "십", "ten"),
        (111, "백십일", "one hundred and eleven"),
        (325, "삼백이십오", "three hundred and twenty-five"),
        (1005, "천오", "one thousand and five"),
        (10_000, "만", "ten thousand"),
        (16_040, "만 육천사십", "sixteen thousand and forty"),
        (110_000, "십일만", "one hundred and ten thousand"),
        (100_010_000, "일억 일만", "one hundred million ten thousand"),
        (
            2_147_483_647,
            "이십일억 사천칠백사십팔만 삼천육백사십칠",
            "two billion one hundred and forty-seven million four hundred and eighty-three "
            "thousand six hundred and forty-seven",
        ),
        (10**12, "일조", "one trillion"),
    ],
)
def test_known_numbers(number, sino, english):
    assert (spell_sino(number), spell_english(number)) == (sino, english)


def test_the_other_forms():
    assert spell_sino(3_251_110, separator="", is_formal=True) == "삼백이십오만일천일백일십"
    assert spell_sino(10_000, is_formal=True) == "일만"
    assert spell_mixed(1_200_034_000) == "12억 3만 4000"
    assert [spell_native(number) for number in (1, 20, 99)] == ["하나", "스물", "아흔아홉"]
    counted = [spell_native(number, counter="개") for number in (1, 20, 24, 30, 100, 320)]
    assert counted == ["한 개", "스무 개", "스물네 개", "서른 개", "백 개", "삼백스무 개"]
    assert spell_english(1_100_012, comma=",") == "one million, one hundred thousand and twelve"
    assert spell_english(100_000, one="a") == "a hundred thousand"
    assert spellings(2500, "en")["en hundreds"] == ["twenty-five hundred"]
    assert "en hundreds" not in spellings(2000, "en")
    assert "ko native" not in spellings(100, "ko")


def test_every_spelling_is_read_back():
    draw = random.Random(2)  # noqa: S311 - no secret
    numbers = [*range(1200), *(draw.randrange(10 ** draw.randint(4, 16)) for _ in range(2000))]
    for number in numbers:
        for form, texts in spellings(number).items():
            read = read_korean if form.startswith("ko") else read_english
            assert [read(text) for text in texts] == [number] * len(texts), (number, texts)


def test_one_text_means_one_number():
    meant: dict[str, int] = {}
    for number in range(12_000):
        for text in (text for texts in spellings(number).values() for text in texts):
            assert meant.setdefault(text, number) == number


# --- the corpus


def test_every_pair_is_right_and_clean(parts):
    for part in parts:
        for src, tgt, form, key in part:
            assert tgt == key == str(int(tgt))
            read = read_korean if form.startswith("ko") else read_english
            assert read(src) == int(tgt), src
            assert unicodedata.is_normalized("NFC", src)
            assert src == " ".join(src.split())


def test_parts_share_neither_a_source_nor_a_number(parts):
    assert [len(part) for part in parts] == [9_600, 1_200, 1_200]
    sources = [example.src for part in parts for example in part]
    assert len(sources) == len(set(sources))
    numbers = [{example.tgt for example in part} for part in parts]
    assert not numbers[0] & numbers[1]
    assert not numbers[0] & numbers[2]
    assert not numbers[1] & numbers[2]
    assert len(numbers[2]) > 700


def test_test_asks_no_word_that_train_has_not(parts):
    known = {letter for example in parts.train for letter in example.src}
    assert {letter for example in parts.test for letter in example.src} <= known


def test_lengths_and_forms_are_wide(parts):
    lengths = Counter(len(example.tgt) for example in parts.train)
    assert set(lengths) == set(range(1, 11))
    assert min(lengths[length] for length in range(4, 11)) > 600
    forms = Counter(example.form for example in parts.train)
    assert set(forms) >= {"ko sino", "ko joined", "ko formal", "ko mixed", "ko native"}
    assert set(forms) >= {"ko counted", "en british", "en american", "en commas", "en article"}


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_zero_is_always_learned(seed):
    for lang in ("ko", "en"):
        parts = synthesize_numbers(600, seed=seed, lang=lang, digits=(1, 3), dev_fraction=0.2)
        held = [example.tgt for part in parts[1:] for example in part]
        assert "0" in {example.tgt for example in parts.train}
        assert "0" not in held
        assert held


def test_one_seed_one_corpus(parts):
    text = "\n".join(f"{example.src}\t{example.tgt}" for example in parts.train[:1000])
    assert hashlib.sha256(text.encode()).hexdigest() == GOLDEN
    other = synthesize_numbers(1000, seed=2)
    assert len({one.src for one in other.train} & {one.src for one in parts.train}) < 300


def test_one_language_and_a_range_of_lengths():
    for lang in ("ko", "en"):
        examples = synthesize_numbers(500, lang=lang, digits=(11, 12)).train
        assert {len(example.tgt) for example in examples} == {11, 12}
        assert all(example.form.startswith(lang) for example in examples)


def test_reversed_every_number_has_one_target():
    examples = synthesize_numbers(800, lang="ko", is_reversed=True).train
    assert len({example.src for example in examples}) == 800
    assert all(spell_sino(int(example.src)) == example.tgt for example in examples)
    english = synthesize_numbers(50, lang="en", is_reversed=True).train
    assert all(spell_english(int(example.src)) == example.tgt for example in english)
    with pytest.raises(ConfigError, match="in each language"):
        synthesize_numbers(10, is_reversed=True)


def test_more_than_there_are_is_rejected_with_their_number():
    """In Korean 0 to 99: 100 plain, 10 with a written 일, 99 native, and 8 counters for each."""
    there_are = 100 + 10 + 99 + 8 * 99
    assert len(synthesize_numbers(there_are, lang="ko", digits=(1, 2)).train) == there_are
    with pytest.raises(InputError, match=f"about {there_are:,} different") as caught:
        synthesize_numbers(there_are + 1, lang="ko", digits=(1, 2))
    assert "fewer" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"count": -1}, "count=-1"),
        ({"count": MAX_COUNT + 1}, "count=1000001"),
        ({"digits": (0, 3)}, "digits=0-3"),
        ({"digits": (5, 4)}, "digits=5-4"),
        ({"digits": (1, 17)}, "digits=1-17"),
        ({"dev_fraction": 0.5}, "dev_fraction=0.5"),
        ({"dev_fraction": -0.1}, "dev_fraction=-0.1"),
    ],
)
def test_what_cannot_be_made_is_rejected(options, words):
    with pytest.raises((InputError, ConfigError), match=words) as caught:
        synthesize_numbers(**{"count": 10, **options})
    assert caught.value.hint


def test_parts_have_about_their_shares():
    names = Counter(assign_split(str(number), 7, 0.1) for number in range(20_000))
    assert names["dev"] == pytest.approx(2000, rel=0.1)
    assert names["test"] == pytest.approx(2000, rel=0.1)


def test_progress_is_reported_up_to_the_end():
    reported: list[int] = []
    number_words.synthesize_numbers(2_500, progress=reported.append)
    assert reported == [1000, 2000, 2500]
