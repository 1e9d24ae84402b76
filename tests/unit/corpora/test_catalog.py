from __future__ import annotations

import re
from urllib.parse import urlsplit

import pytest

from attendo.core.errors import InputError
from attendo.corpora.catalog import CATALOG, find_entry
from attendo.corpora.entries import Release, parse_pair

EDITIONS = [
    pytest.param(edition, id=f"{entry.name} {pair} {number}")
    for entry in CATALOG
    for pair in entry.pairs or ("en-ko", "ko-en")
    for number, edition in enumerate(entry.releases(pair))
]


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_every_entry_explains_what_a_user_must_know(entry):
    assert entry.title
    assert entry.license
    assert entry.size
    assert urlsplit(entry.homepage).scheme == "https"
    assert re.fullmatch(r"[a-z0-9-]+", entry.name)


def test_names_are_unique():
    names = [entry.name for entry in CATALOG]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    "name", ["multi30k", "tatoeba", "wmt14", "iwslt14", "iwslt17", "opus-ted2020"]
)
def test_the_promised_corpora_are_there(name):
    entry = find_entry(name)
    published, *others = entry.releases(entry.pairs[0] if entry.pairs else "en-ko")
    assert published.is_published
    assert not any(other.is_published for other in others)


@pytest.mark.parametrize("edition", EDITIONS)
def test_every_text_are_in_a_file_of_its_edition(edition: Release):
    names = [file.name for file in edition.files]
    assert len(set(names)) == len(names)
    parts = (*edition.train, *edition.dev, *edition.test)
    positions = [position for part in parts for position in (part.first, part.second) if position]
    assert edition.train
    assert len(set(positions)) == len(positions)
    assert {position.file for position in positions} == set(names)
    for position in positions:
        is_archive = position.file.endswith((".tgz", ".tar", ".zip"))
        assert is_archive == (position.member is not None)


@pytest.mark.parametrize("edition", EDITIONS)
def test_files_have_safe_names_and_whole_checksums(edition: Release):
    for file in edition.files:
        assert re.fullmatch(r"[A-Za-z0-9][\w.-]*", file.name)
        assert file.sha256 is None or re.fullmatch(r"[0-9a-f]{64}", file.sha256)
        if file.url is not None:
            address = urlsplit(file.url)
            assert address.scheme == "https" or file.sha256, "what is not encrypted must be held"
            assert address.path.endswith(f"/{file.name}")


def test_no_checksum_represents_two_files():
    held = {(file.sha256, file.url) for p in EDITIONS for file in p.values[0].files if file.sha256}
    assert len({sha256 for sha256, _ in held}) == len(held)


@pytest.mark.parametrize(
    ("name", "pair", "words"),
    [
        ("multi30k", "en-de", "known"),
        ("wmt14", "fr-en", "known"),
        ("tatoeba", "en-ko", "not known"),
    ],
)
def test_the_catalog_names_the_verified_checksums(name, pair, words):
    assert find_entry(name).describe_checksums(pair) == words


def test_a_pair_is_known_in_both_directions():
    for pair in ("en-de", "de-en"):
        assert find_entry("wmt14").releases(pair)[0].languages == ("en", "de")
    assert find_entry("opus-books").releases("ko-en")[0].languages == ("en", "ko")


def test_wmt14_french_has_the_two_large_parts():
    german, french = (find_entry("wmt14").releases(pair)[0] for pair in ("en-de", "en-fr"))
    assert (len(german.train), len(french.train)) == (3, 5)
    assert sum(file.num_bytes or 0 for file in french.files) > 6e9


@pytest.mark.parametrize(
    ("name", "words"),
    [("mutli30k", "did you mean 'multi30k'"), ("opus-book", "did you mean 'opus-books'")],
)
def test_an_unknown_corpus_names_the_nearest(name, words):
    with pytest.raises(InputError, match=words):
        find_entry(name)


def test_an_unknown_pair_names_the_nearest():
    with pytest.raises(InputError, match=r"multi30k has no pair 'en-da'[\s\S]*'en-de'"):
        find_entry("multi30k").releases("en-da")


@pytest.mark.parametrize("pair", ["en", "en-en", "en-../../x", "en-de-fr", "", "e-d", "en/de"])
def test_what_is_not_a_pair_is_rejected(pair):
    with pytest.raises(InputError, match="is not a language pair"):
        parse_pair(pair)


def test_any_corpus_of_opus_can_be_named():
    entry = find_entry("opus:KDE4/v2")
    (archive,) = entry.releases("ko-en")[0].files
    assert archive.url == "https://object.pouta.csc.fi/OPUS-KDE4/v2/moses/en-ko.txt.zip"
    assert entry.name == "opus-kde4-v2"
    with pytest.raises(InputError, match="no corpus"):
        find_entry("opus:../v2")
