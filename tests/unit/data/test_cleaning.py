from __future__ import annotations

import random
import tracemalloc
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attendo.core.errors import ConfigError
from attendo.data import dedup
from attendo.data.cleaning import CleaningConfig, CleaningReport, clean_pairs
from attendo.data.corpus_config import Pair
from attendo.data.dedup import HashSet64, hash_pair, hash_text
from attendo.text.normalize import normalize

# --- normalize


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("  a \t\u00a0 b\u2028\u3000c\x85\r\n", "a b c"),
        ("e\u0301", "é"),
        ("e\u200b\u0301", "é"),  # the accent was kept apart by something invisible
        ("\u1112\u1161\u11ab", "한"),
        ("\ufeffa\u00adb\x00c\x7f\u200e\u202e\u2060\u2066d", "abcd"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("👩\u200d🔬", "👩\u200d🔬"),
        ("a\u3164b", "a b"),
        ("a\ud83db", "ab"),
        ("\u200b \u3164", ""),
        ("ﬁ ① Ａ", "ﬁ ① Ａ"),  # NFC, not NFKC: a letter stays the letter it is
    ],
)
def test_normalize(raw, expected):
    assert normalize(raw) == expected


odd = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("e\u0301\u200b\u200d\ufeff\u3164 \u00a0\u2028\x00\u1112\u1161\u11ab\ud800"),
    )
)


@given(odd)
def test_normalize_twice_changes_nothing(text):
    once = normalize(text)
    assert normalize(once) == once
    assert unicodedata.is_normalized("NFC", once)
    assert once == " ".join(once.split())
    assert once.encode().decode() == once  # no half character is left
    assert not {unicodedata.category(letter) for letter in once} & {"Cc", "Cs", "Zl", "Zp"}


@given(st.text(st.characters(categories=["L", "N", "P"])))
def test_normalize_keeps_every_visible_character(text):
    visible = text.replace("\u3164", "").replace("\uffa0", "")
    assert normalize(visible) == unicodedata.normalize("NFC", visible)


# --- filters


def keep(*pairs: tuple[str, str], **options: object) -> list[tuple[str, str]]:
    made = (Pair(*pair) for pair in pairs)
    return [tuple(p) for p in clean_pairs(made, CleaningConfig(**options), CleaningReport())]


def reasons(*pairs: tuple[str, str], **options: object) -> list[str]:
    report = CleaningReport()
    list(clean_pairs((Pair(*pair) for pair in pairs), CleaningConfig(**options), report))
    return [row.what for row in report.rows()[2:]]


@pytest.mark.parametrize("pair", [("", "b"), ("a", "\u200b \t"), ("", "")])
def test_an_empty_side_is_dropped(pair):
    assert reasons(pair) == ["empty side"]
    assert reasons(pair, normalize=False) == (["empty side"] if "\u200b" not in pair[1] else [])


def test_a_long_side_is_dropped_by_words_or_characters():
    assert keep(("a b c", "x y z"), max_words=3) == [("a b c", "x y z")]
    assert reasons(("a b c", "w x y z"), max_words=3) == ["too long"]
    assert reasons(("가나다라", "x"), max_characters=3) == ["too long"]
    assert keep(("a " * 300, "b " * 300), max_words=None, max_characters=None)


def test_sides_of_very_different_length_are_dropped():
    assert reasons(("a" * 31, "bbb"), max_length_ratio=10.0) == ["length ratio"]
    assert reasons(("bbb", "a" * 31), max_length_ratio=10.0) == ["length ratio"]
    assert keep(("a" * 30, "bbb"), max_length_ratio=10.0)
    assert keep(("a" * 18, "역순"), max_length_ratio=3.0)  # two syllables are six bytes
    assert keep(("a" * 999, "b"), max_length_ratio=None)


def test_a_copy_is_kept_only_where_it_may_be_a_name():
    sentence = ("This was never translated.",) * 2
    long_word = ("这个句子从来没有被任何人翻译过因为没有人愿意做这件事情所以它一直这样",) * 2
    assert keep(("Seoul",) * 2, ("New York",) * 2, ("1997",) * 2, sentence, long_word) == [
        ("Seoul",) * 2,
        ("New York",) * 2,
        ("1997",) * 2,
    ]
    assert keep(("Seoul",) * 2, max_copy_words=0) == []
    assert keep(sentence, max_copy_words=None) == [sentence]


def test_duplicates_are_pairs_with_both_sides_equal():
    pairs = [("a", "x"), ("a", "y"), ("b", "x"), (" a", "x\u200b"), ("a", "x")]
    assert keep(*pairs) == [("a", "x"), ("a", "y"), ("b", "x")]
    assert len(keep(*pairs, drop_duplicates=False)) == 5


def test_duplicates_across_corpora_are_seen_with_one_memory():
    seen = HashSet64()
    report = CleaningReport()
    for corpus in ([Pair("a", "x"), Pair("b", "y")], [Pair("a", "x"), Pair("c", "z")]):
        list(clean_pairs(corpus, CleaningConfig(), report, seen_hashes=seen))
    assert (report.num_kept, report.num_dropped) == (3, {"duplicate": 1})


def test_the_report_counts_every_pair_once_with_the_first_example():
    report = CleaningReport()
    pairs = [Pair("a", "x"), Pair("", "first"), Pair("", "second"), Pair("b" * 999, "y")]
    assert list(clean_pairs(pairs, CleaningConfig(), report)) == [Pair("a", "x")]
    rows = report.rows()
    assert [(row.what, row.num_pairs, row.share) for row in rows] == [
        ("read", 4, 1.0),
        ("kept", 1, 0.25),
        ("empty side", 2, 0.5),
        ("length ratio", 1, 0.25),
    ]
    assert rows[2].example == " | first"
    assert rows[3].example == "b" * 59 + "… | y"


def test_an_empty_report_has_rows():
    assert [row.num_pairs for row in CleaningReport().rows()] == [0, 0]


def test_cleaning_is_a_stream():
    drawn = []
    pairs = (drawn.append(number) or Pair(f"a{number}", f"x{number}") for number in range(100))
    next(clean_pairs(pairs, CleaningConfig(), CleaningReport()))
    assert len(drawn) == 1


def test_wrong_limits_are_rejected():
    with pytest.raises(ConfigError, match="max_words = 0"):
        CleaningConfig(max_words=0)
    with pytest.raises(ConfigError, match="did you mean 'max_words'"):
        CleaningConfig(max_word=3)


# --- hashes


def test_hashes_are_the_same_on_every_machine():
    assert hash_text("나는 학생이다.") == 0xDC5E8DDD69AE9FC4  # as b2sum -l 64 has it
    assert hash_pair("ab", "c") != hash_pair("a", "bc")
    assert hash_pair("a", "b") != hash_pair("b", "a")


@given(st.lists(st.integers(0, 40) | st.integers(2**64 - 20, 2**64 - 1)), st.integers(1, 7))
def test_seen_hashes_are_a_set(values, num_recent):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dedup, "MAX_RECENT", num_recent)
        seen, expected = HashSet64(), set()
        for value in values:
            assert seen.add(value) == (value not in expected)
            expected.add(value)
            assert len(seen) == len(expected)
        assert all(value in seen for value in values)
        assert 41 not in seen


def test_seen_hashes_need_eight_bytes_each():
    generator = random.Random(1)  # noqa: S311
    num_hashes = 150_000
    tracemalloc.start()
    try:
        seen = HashSet64()
        for _ in range(num_hashes):
            seen.add(generator.getrandbits(64))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(seen) == num_hashes
    assert peak < 9 * num_hashes + 5_000_000


def test_the_old_spelling_of_normalize_is_accepted():
    assert CleaningConfig(normalise=False) == CleaningConfig(normalize=False)
