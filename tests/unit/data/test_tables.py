"""Which columns of a table are read, and where its rows end."""

from __future__ import annotations

import pytest

from attendo.core.errors import InputError
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.readers import find_selection, read_pairs
from attendo.data.tables import find_delimiter

EN_FR = [Pair("Yes, sir.", "Oui."), Pair("No.", "Non, merci."), Pair("I am tired.", "Je dors.")]
FR_EN = [pair.swapped() for pair in EN_FR]


def make(delimiter: str, *columns: list[str], header: list[str] | None = None) -> str:
    """Return a table as text; a cell that contains the delimiter is quoted."""
    rows = ([header] if header else []) + [list(row) for row in zip(*columns, strict=True)]
    return "".join(
        delimiter.join(f'"{cell}"' if delimiter in cell else cell for cell in row) + "\n"
        for row in rows
    )


EN, FR = ([pair[side] for pair in EN_FR] for side in (0, 1))
IDS, CODES, SCORES = ["1", "2", "3"], ["s-1a", "s-1b", "s-2"], ["0.9", "0.9", "-1"]


def read(folder, name: str, text: str | bytes, **options: object) -> list[Pair]:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return list(read_pairs(CorpusConfig(path=folder / name, **options)))


@pytest.mark.parametrize(
    "header",
    [
        ["src", "tgt"],
        ["Source", "Target"],
        ["en", "fr"],
        ["EN", "FR"],
        ["eng", "fra"],
        ["en_US", "fr-CA"],
        ["English", "French"],
        ["영어", "프랑스어"],
        ["english", "français"],
        ["text_en", "text_fr"],
        ["English sentence", "French sentence"],
        ["원문", "번역문"],
        ["source_text", "target_text"],
    ],
)
@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.tsv", "\t")])
def test_a_header_names_the_columns_and_is_not_a_pair(tmp_path, header, name, delimiter):
    assert read(tmp_path, name, make(delimiter, EN, FR, header=header)) == EN_FR
    with_id = make(delimiter, IDS, EN, FR, header=["id", *header])
    assert read(tmp_path, name, with_id) == EN_FR


@pytest.mark.parametrize(
    ("columns", "header"),
    [
        ([IDS, EN, FR], None),
        ([CODES, EN, FR], None),
        ([SCORES, EN, FR], None),
        ([EN, FR, SCORES], None),
        ([IDS, EN, FR], ["id", "english", "french"]),
        ([IDS, EN, FR], ["No", "question", "answer"]),
        ([EN, SCORES, FR], ["english", "score", "french"]),
        ([EN, FR, CODES], ["en", "fr", "domain"]),
    ],
)
def test_ids_and_scores_are_no_sentences(tmp_path, columns, header):
    assert read(tmp_path, "a.csv", make(",", *columns, header=header)) == EN_FR


def test_two_columns_are_read_even_if_one_is_numbers(tmp_path):
    pairs = [Pair("1", "one"), Pair("2", "two"), Pair("3", "three")]
    assert read(tmp_path, "a.tsv", "".join(f"{src}\t{tgt}\n" for src, tgt in pairs)) == pairs


@pytest.mark.parametrize(
    ("options", "pairs"),
    [
        ({}, EN_FR),
        ({"src_lang": "fr", "tgt_lang": "en"}, FR_EN),
        ({"src_lang": "French"}, FR_EN),
        ({"tgt_lang": "en-GB"}, FR_EN),
        ({"src_field": "fr", "tgt_field": "en"}, FR_EN),
        ({"src_field": 3, "tgt_field": 2}, FR_EN),
    ],
)
def test_languages_and_fields_choose_the_direction(tmp_path, options, pairs):
    table = make(",", IDS, EN, FR, header=["id", "en", "fr"])
    assert read(tmp_path, "a.csv", table, **options) == pairs


def test_languages_choose_among_many_columns(tmp_path):
    table = make("\t", EN, IDS, FR, header=["en", "de", "fr"])
    assert read(tmp_path, "a.tsv", table, src_lang="de", tgt_lang="fr") == [
        Pair(*pair) for pair in zip(IDS, FR, strict=True)
    ]
    with pytest.raises(InputError, match=r"the language 'ko'[\s\S]*en, de, fr"):
        read(tmp_path, "a.tsv", table, src_lang="ko", tgt_lang="fr")


@pytest.mark.parametrize("header", [None, ["en", "fr", "de"]])
def test_more_columns_of_text_need_a_choice(tmp_path, header):
    table = make("\t", EN, FR, [f"Ja {word}." for word in EN], header=header)
    with pytest.raises(InputError) as caught:
        read(tmp_path, "a.tsv", table)
    for example in EN[0], FR[0], f"Ja {EN[0]}":
        assert example in caught.value.reason
    for option in "--src-field", "--tgt-field", "--src-lang", "--tgt-lang":
        assert option in caught.value.hint


def test_one_column_is_rejected_with_an_example(tmp_path):
    with pytest.raises(InputError, match=r"a column for each side:\n  1: Hello there"):
        read(tmp_path, "a.tsv", "Hello there\nYou too\n")


def test_a_row_with_more_cells_than_the_first_is_rejected(tmp_path):
    with pytest.raises(InputError, match="line 2: 3 columns, the first row has 2"):
        read(tmp_path, "a.csv", "en,fr\nYes, sir.,Oui.\n")
    text = "en,fr\nYes,Oui,2024\n"
    assert read(tmp_path, "a.csv", text, src_field="en", tgt_field="fr") == [Pair("Yes", "Oui")]


def test_a_header_alone_is_an_empty_corpus(tmp_path):
    with pytest.raises(InputError, match="the corpus is empty"):
        read(tmp_path, "a.csv", "en,fr\n")


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("header", [None, ["en", "fr"]])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_the_delimiter_and_the_line_end_of_csv_are_found(tmp_path, delimiter, header, line_end):
    text = make(delimiter, EN, FR, header=header).replace("\n", line_end)
    assert read(tmp_path, "a.csv", text) == EN_FR


def test_a_delimiter_is_not_found_within_sentences():
    assert find_delimiter(["one, two; three,eins", "four; five,vier", "six,sechs"]) == ","
    assert find_delimiter(["a"]) == ","
    assert find_delimiter([]) == ","


def test_the_choice_is_described(tmp_path):
    (tmp_path / "a.csv").write_text(make(",", IDS, EN, FR, header=["id", "en", "fr"]))
    config = CorpusConfig(path=tmp_path / "a.csv")
    selection = find_selection(config)
    assert (selection.src, selection.tgt, selection.unused) == ("en", "fr", ("id",))
    assert not selection.is_requested
    assert selection.is_in_file_order
    assert not find_selection(config.replace(src_lang="fr")).is_in_file_order
    assert all(word in selection.describe() for word in ("a.csv", "'en'", "'fr'", "id"))
    chosen = find_selection(config.replace(src_field=2, tgt_field=3))
    assert (chosen.src, chosen.tgt, chosen.is_requested) == ("2", "3", True)
