from __future__ import annotations

import sqlite3
import threading

import pytest

from attendo.core.errors import InputError
from attendo.memory import store as store_module
from attendo.memory.store import AddedUnits, TranslationMemory
from attendo.memory.unit import MAX_TEXT_CHARACTERS, Unit


@pytest.fixture
def memory(tmp_path):
    with TranslationMemory(tmp_path / "memory.db") as one:
        yield one


def make_unit(source="Two files", target="파일 두 개", src="en", tgt="ko", **fields) -> Unit:
    return Unit(source, target, src, tgt, **fields)


def test_a_unit_keeps_who_when_and_what_the_model_wrote(memory):
    unit = make_unit(model="en-ko", output="두 파일", author="Kim", time=1_700_000_000)
    memory.add([unit])
    found = memory.find_exact("Two files", "en", "ko")
    assert found == unit._replace(id=found.id)
    assert found.id > 0


def test_exact_lookup_ignores_white_space_and_the_form_of_unicode(memory):
    memory.add([make_unit("caf\u00e9  au\u00a0lait\n", "카페오레")])
    assert memory.find_exact("cafe\u0301 au lait", "en", "ko").target == "카페오레"
    assert memory.find_exact("Café au lait", "en", "ko") is None


def test_a_later_translation_replaces_the_earlier_one(memory):
    assert memory.add([make_unit()]) == AddedUnits(1, 0, 0)
    assert memory.add([make_unit()]) == AddedUnits(0, 0, 1)
    assert memory.add([make_unit(target="두 개의 파일")]) == AddedUnits(0, 1, 0)
    assert memory.find_exact("Two files", "en", "ko").target == "두 개의 파일"
    assert memory.count() == 1
    assert [one.unit.target for one in memory.find_fuzzy("Two files", "en", "ko")] == [
        "두 개의 파일"
    ]


def test_languages_are_separate_but_regions_match(memory):
    memory.add([make_unit(), make_unit(target="zwei Dateien", tgt="German")])
    assert memory.find_exact("Two files", "en", "de").target == "zwei Dateien"
    assert memory.find_exact("Two files", "en-US", "ko-KR").target == "파일 두 개"
    assert memory.find_exact("Two files", "ko", "en") is None
    assert memory.list_pairs() == [("en", "de"), ("en", "ko")]


def test_the_pair_with_the_same_region_comes_first(memory):
    memory.add([make_unit("color", "색", "en", "ko"), make_unit("color", "색상", "en-us", "ko")])
    assert memory.find_exact("color", "en-us", "ko").target == "색상"
    assert memory.find_exact("color", "en", "ko").target == "색"


def test_fuzzy_matches_are_found_in_order_of_similarity(memory):
    texts = ["Delete 12 files from the folder", "Delete all files from this folder", "Print"]
    memory.add(make_unit(text, text.upper()) for text in texts)
    matches = memory.find_fuzzy("Delete 12 files from this folder", "en", "ko")
    assert [one.unit.source for one in matches] == [texts[0], texts[1]]
    assert 1 > matches[0].score > matches[1].score >= store_module.MIN_SCORE
    assert not any(one.is_exact for one in matches)


def test_a_text_that_differs_in_case_only_is_not_exact(memory):
    memory.add([make_unit()])
    (match,) = memory.find_fuzzy("two files", "en", "ko")
    assert match.score == 0.99
    assert memory.find_fuzzy("Two files", "en", "ko")[0].is_exact


def test_short_korean_texts_are_found(memory):
    memory.add([make_unit("나는 학생이다.", "I am a student.", "ko", "en")])
    (match,) = memory.find_fuzzy("나는 학생이었다.", "ko", "en")
    assert match.unit.target == "I am a student."


def test_unlike_texts_are_not_found(memory):
    memory.add([make_unit()])
    assert memory.find_fuzzy("Something else altogether", "en", "ko") == []
    assert memory.find_fuzzy("   ", "en", "ko") == []
    assert memory.find_fuzzy("Two files", "en", "ja") == []


def test_a_deleted_unit_is_gone_everywhere(memory, tmp_path):
    memory.add([make_unit()])
    unit = memory.find_exact("Two files", "en", "ko")
    assert memory.delete(unit.id)
    assert not memory.delete(unit.id)
    assert memory.find_exact("Two files", "en", "ko") is None
    assert memory.find_fuzzy("Two files", "en", "ko") == []
    rows = sqlite3.connect(tmp_path / "memory.db").execute("SELECT COUNT(*) FROM sketches")
    assert rows.fetchone() == (0,)


def test_an_id_is_never_used_twice(memory):
    memory.add([make_unit()])
    first = memory.find_exact("Two files", "en", "ko").id
    memory.delete(first)
    memory.add([make_unit()])
    assert memory.find_exact("Two files", "en", "ko").id > first


def test_search_finds_parts_of_both_sides_newest_first(memory):
    memory.add([make_unit(f"file {n}", f"파일 {n}") for n in range(5)])
    memory.add([make_unit("100 % of_it", "전부")])
    assert [one.source for one in memory.search("파일", limit=2)] == ["file 4", "file 3"]
    page = memory.search("FILE", limit=2)
    assert [one.source for one in memory.search("file", before=page[-1].id, limit=2)] == [
        "file 2", "file 1",
    ]  # fmt: skip
    assert [one.source for one in memory.search("% of_")] == ["100 % of_it"]
    assert memory.search("%") == memory.search("_")
    assert memory.search("", src_lang="ko") == []


def test_iteration_yields_all_units_in_pages(memory, monkeypatch):
    monkeypatch.setattr(store_module, "EXPORT_ROWS", 2)
    memory.add([make_unit(f"file {n}") for n in range(5)])
    assert [one.source for one in memory] == [f"file {n}" for n in range(5)]


def test_all_units_are_added_or_none(memory):
    with pytest.raises(InputError, match="the target is empty"):
        memory.add([make_unit(), make_unit("a", " \u200b")])
    assert memory.count() == 0


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"source": "x" * (MAX_TEXT_CHARACTERS + 1)}, "source has 10001 characters"),
        ({"author": "x" * 101}, "author has 101 characters"),
        ({"tgt": "../etc"}, "no language"),
        ({"target": "\ud800"}, "not valid Unicode"),
        ({"origin": "machine"}, "no origin 'machine'"),
    ],
)
def test_units_that_cannot_be_stored_are_rejected(memory, fields, reason):
    with pytest.raises(InputError, match=reason):
        memory.add([make_unit(**fields)])
    assert memory.count() == 0


def test_the_number_of_language_pairs_is_limited(memory, monkeypatch):
    monkeypatch.setattr(store_module, "MAX_PAIRS", 2)
    memory.add([make_unit(tgt="ko"), make_unit(tgt="de")])
    with pytest.raises(InputError, match="more than 2 pairs"):
        memory.add([make_unit(tgt="fr")])
    assert memory.list_pairs() == [("en", "de"), ("en", "ko")]
    memory.add([make_unit("other", tgt="de")])


def test_a_full_memory_takes_no_more_but_replaces(tmp_path):
    with TranslationMemory(tmp_path / "m.db", max_units=2) as memory:
        memory.add([make_unit("a"), make_unit("b")])
        with pytest.raises(InputError, match="the memory is full: 2 units"):
            memory.add([make_unit("c")])
        memory.add([make_unit("b", "other")])
        assert memory.count() == 2


def test_several_connections_write_at_once(tmp_path):
    path = tmp_path / "memory.db"
    failures: list[BaseException] = []

    def write(worker: int) -> None:
        try:
            with TranslationMemory(path) as memory:
                for number in range(20):
                    memory.add([make_unit(f"text {worker} {number}")])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with TranslationMemory(path) as memory:
        assert memory.count() == 80


def test_a_second_process_sees_new_units(memory, tmp_path):
    with TranslationMemory(tmp_path / "memory.db") as other:
        memory.add([make_unit()])
        assert other.find_exact("Two files", "en", "ko") is not None


def test_only_the_owner_can_read_the_file(memory, tmp_path):
    memory.add([make_unit()])
    assert {one.name for one in tmp_path.iterdir()} >= {"memory.db"}
    assert all(one.stat().st_mode & 0o077 == 0 for one in tmp_path.iterdir())


def test_other_files_are_not_touched(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("not a database, but longer than its header " * 10)
    with pytest.raises(InputError, match="not a translation memory"):
        TranslationMemory(text)
    assert text.read_text().startswith("not a database")
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE a (b)")
    connection.close()
    with pytest.raises(InputError, match="another program's database"):
        TranslationMemory(other)


def test_a_newer_schema_is_rejected(memory, tmp_path):
    connection = sqlite3.connect(tmp_path / "memory.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(InputError, match="a newer version of Attendo"):
        TranslationMemory(tmp_path / "memory.db")


def test_a_missing_file_or_folder_is_named(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        TranslationMemory(tmp_path / "memory.db", create=False)
    with pytest.raises(InputError, match="cannot be opened: No such file"):
        TranslationMemory(tmp_path / "no" / "memory.db")


def test_errors_of_a_running_store_do_not_name_its_path(memory, tmp_path):
    memory.add([make_unit()])
    memory.close()
    for path in tmp_path.iterdir():
        path.write_bytes(b"x" * 4096)
    with pytest.raises(InputError) as caught:
        memory.count()
    assert str(tmp_path) not in str(caught.value)
    assert caught.value.reason == "it is not a translation memory"
