from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attendo.core.errors import InputError
from attendo.text.glossary import MAX_ENTRIES, Glossary, casefold_1to1

# --- where a phrase stands


@pytest.mark.parametrize(
    ("phrase", "text", "is_there"),
    [
        ("cat", "the cat sat", True),
        ("cat", "cat", True),
        ("cat", "a cat, a dog", True),
        ("cat", "the cat's tail", True),
        ("cat", "(cat)", True),
        ("cat", "catalog", False),
        ("cat", "tomcat", False),
        ("cat", "cat2", False),
        ("cat", "cat_food", False),
        ("cat", "cat\u0302", False),  # NFC has no letter for it: the accent stays apart
        ("New York", "in New  York\n today", True),
        ("New York", "New Yorker", False),
        ("C++", "C++11", True),
        ("Straße", "Hauptstraße", False),
        ("Straße", "die Straße.", True),
        ("Straße", "Straßenbahn", False),
        ("서울", "서울에서 만나자", True),
        ("서울", "나는 서울로 간다", True),
        ("서울", "남서울 아니면", False),
        ("서울", "'서울'은", True),
        ("서울", "서우\u11af에서", True),  # a final consonant of its own, joined by NFC
        ("서울역", "서울에서", False),
        ("BLEU", "BLEU는 점수다", True),
        ("BLEU", "sacreBLEU는", False),
        ("년", "2017년에", True),
        ("3", "13 cats", False),
        ("3", "3월", True),
        ("東京", "私は東京へ行く", True),
        ("กรุงเทพ", "ไปกรุงเทพนะ", True),
        ("👩", "👩\u200d🔬", False),
    ],
)
def test_a_phrase_occurs_where_words_begin_and_end(phrase, text, is_there):
    assert Glossary({phrase: "x"}).find_targets(text) == (["x"] if is_there else [])


@pytest.mark.parametrize(
    ("phrase", "text", "is_there"),
    [
        ("cat", "Cat and CAT", True),
        ("Cat", "cat", False),
        ("Katze", "die katze", False),
        ("über", "Über uns", True),
        ("us", "the US", True),
        ("US", "let us", False),
        ("istanbul", "İ İ ISTANBUL", True),  # "İ".lower() has two characters
        ("οδός", "ΟΔΌΣ", True),
    ],
)
def test_only_lower_case_entries_ignore_case(phrase, text, is_there):
    assert Glossary({phrase: "x"}).find_targets(text) == (["x"] if is_there else [])


def test_an_entry_as_it_is_written_goes_before_one_in_lower_case():
    glossary = Glossary({"us": "우리", "US": "미국"})
    assert glossary.find_targets("The US told us.") == ["미국", "우리"]
    assert glossary.find_targets("Us?") == ["우리"]


@given(st.text())
def test_folding_keeps_every_character_at_its_position(text):
    folded = casefold_1to1(text)
    assert len(folded) == len(text)
    assert casefold_1to1(folded) == folded


# --- what is found


def test_the_longest_entry_wins_and_order_is_that_of_the_source():
    entries = {
        "attention": "주의",
        "self-attention": "자기 주의",
        "new york": "뉴욕",
        "new york times": "뉴욕 타임스",
        "times square": "타임스 스퀘어",
    }
    glossary = Glossary(entries)
    assert glossary.find_targets("New York Times Square") == ["뉴욕 타임스"]
    assert glossary.find_targets("Times Square, New York") == ["타임스 스퀘어", "뉴욕"]
    assert glossary.find_targets("self-attention and attention") == ["자기 주의", "주의"]
    assert Glossary({"a b": "1", "b c d": "2"}).find_targets("a b c d") == ["2"]


def test_each_target_comes_once():
    glossary = Glossary([("차", "Auto"), ("자동차", "Auto"), ("집", "Haus")])
    assert glossary.find_targets("자동차, 차, 차, 집, 집") == ["Auto", "Haus"]


def test_nothing_is_found_in_nothing():
    assert Glossary({}).find_targets("cat") == []
    assert Glossary({"cat": "Katze"}).find_targets("") == []
    assert len(Glossary({"cat": "Katze", "dog": "Hund"})) == 2


def find_slowly(entries, text):
    """Do the same with one regular expression for each entry, for Latin and Hangul only."""
    spans = []
    for source, target in entries.items():
        left = r"(?<![가-힣])" if re.match("[가-힣]", source) else r"(?<![a-zA-Z])"
        right = r"" if re.search("[가-힣]$", source) else r"(?![a-zA-Z])"
        flags = re.IGNORECASE if source == source.lower() else 0
        pattern = re.compile(left + r"(?=(" + re.escape(source) + r")" + right + ")", flags)
        spans += [(m.start(1), m.end(1), source, target) for m in pattern.finditer(text)]
    exact = {(start, end) for start, end, source, _ in spans if text[start:end] == source}
    spans = [s for s in spans if text[s[0] : s[1]] == s[2] or (s[0], s[1]) not in exact]
    chosen = []
    for span in sorted(spans, key=lambda s: (s[0] - s[1], s[0])):
        if all(span[1] <= other[0] or span[0] >= other[1] for other in chosen):
            chosen.append(span)
    return [target for _, _, _, target in sorted(chosen)]


words = st.lists(st.text("abA가나", min_size=1, max_size=3), min_size=1, max_size=3).map(" ".join)


@given(st.sets(words, max_size=12), st.lists(words, max_size=8).map(" ".join))
def test_the_index_finds_what_a_search_for_each_entry_finds(sources, text):
    entries = {source: f"t{number}" for number, source in enumerate(sorted(sources))}
    expected = list(dict.fromkeys(find_slowly(entries, text)))
    assert Glossary(entries).find_targets(text) == expected


# --- files


def write(tmp_path, content):
    path = tmp_path / "terms.tsv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_a_file_with_comments_blanks_and_extra_space(tmp_path):
    path = write(
        tmp_path,
        "\ufeff# terms\r\n  서울 \t Seoul\r\n\r\n \t \n# c\tx\nNew  York\tNew York\t\t\n"
        "cafe\u0301\tCafé\nC#\tC#\n서울\tSeoul\n",
    )
    glossary = Glossary.load(path)
    assert len(glossary) == 4
    assert glossary.find_targets("서울의 café, New York, C#") == ["Seoul", "Café", "New York", "C#"]
    assert Glossary.load(str(path)).find_targets("서울") == ["Seoul"]


def test_every_bad_line_is_named_at_once(tmp_path):
    path = write(
        tmp_path,
        "a\tb\nno tab\n\tx\n# fine\nx\t \na\tb\tc\na\tc\na\tb\n"
        + "y" * 201
        + "\tz\nz\t"
        + "y" * 300,
    )
    with pytest.raises(InputError) as caught:
        Glossary.load(path)
    assert caught.value.reason.splitlines() == [
        f"{path}: 7 entries cannot be used",
        "  line 2: no tab between source and target",
        "  line 3: the source is empty",
        "  line 5: the target is empty",
        "  line 6: 3 columns, not 2",
        "  line 7: 'a' is 'c' here and 'b' in line 1",
        "  line 9: the source has 201 characters, more than 200",
        "  line 10: the target has 300 characters, more than 200",
    ]
    assert "source, a tab and target" in caught.value.hint


def test_of_many_bad_lines_ten_are_named(tmp_path):
    with pytest.raises(InputError) as caught:
        Glossary.load(write(tmp_path, "no tab\n" * 1234))
    lines = caught.value.reason.splitlines()
    assert lines[0].endswith("1,234 entries cannot be used")
    assert len(lines) == 12
    assert lines[-1] == "  and 1,224 more"


def test_bad_entries_of_a_mapping_are_named():
    with pytest.raises(InputError, match=r"the glossary: 1 entry cannot be used\n  entry 2: the t"):
        Glossary({"a": "b", "c": "\u200b"})
    with pytest.raises(InputError, match="entry 2: 'a' is 'c' here and 'b' in entry 1"):
        Glossary([("a", "b"), ("a ", "c")])


def test_the_number_of_entries_is_bounded(tmp_path):
    entries = [(f"w{number}", "x") for number in range(MAX_ENTRIES)]
    glossary = Glossary(entries)
    assert glossary.find_targets("w0 and w99999, not w100000") == ["x"]
    path = write(tmp_path, "".join(f"{a}\t{b}\n" for a, b in [*entries, ("one", "more")]))
    with pytest.raises(InputError, match=r"terms\.tsv has more than 100,000 entries"):
        Glossary.load(path)


def test_a_file_that_cannot_be_read_is_reported(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        Glossary.load(tmp_path / "terms.tsv")
    with pytest.raises(InputError, match="is a folder"):
        Glossary.load(tmp_path)
    with pytest.raises(InputError, match="iconv -f UTF-16"):
        Glossary.load(write(tmp_path, "서울\tSeoul".encode("utf-16")))
    with pytest.raises(InputError, match="line 2, byte 4: 0xbc is not valid UTF-8"):
        Glossary.load(write(tmp_path, b"a\tb\n" + "서울\tSeoul".encode("cp949")))


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("사자를 봤다", ["lion"]),
        ("사자들에게서는", ["lion"]),
        ("그것은 사자입니다.", ["lion"]),
        ("사자", ["lion"]),
        ("사자자리를 봤다", []),
        ("내일 만나자", []),
        ("내 친구", ["my"]),
        ("물고기를 샀다", []),
        ("물을 마셨다", ["water"]),
        ("나무늘보", []),
    ],
)
def test_a_korean_noun_is_found_with_particles_and_not_in_other_words(source, found):
    terms = Glossary({"내": "my", "물": "water", "나무": "tree", "사자": "lion"})
    assert terms.find_targets(source) == found


def test_a_row_of_particles_is_read_in_linear_time():
    """이나 is one particle or two: 40 of them would take days."""
    glossary = Glossary({"사자": "lion"})
    assert glossary.find_targets("사자" + "이나" * 40) == ["lion"]
    assert glossary.find_targets("사자" + "이나" * 40 + "핳") == []
