from __future__ import annotations

import gzip
import hashlib
import os
from collections import Counter
from pathlib import Path

import pytest

from attendo.core.errors import InputError
from attendo.corpora import catalog
from attendo.corpora.catalog import find_entry
from attendo.corpora.download import FetchError, RetryPolicy
from attendo.corpora.entries import CatalogEntry, Release, RemoteFile, parallel_split
from attendo.corpora.fetch import FetchedCorpus, fetch
from attendo.data.corpus_config import Pair
from attendo.data.readers import read_pairs

QUICK = RetryPolicy(max_attempts=3, initial_delay=0.0, timeout=5.0)
KO, EN = gzip.compress("하나\n둘\n".encode()), gzip.compress(b"one\ntwo\n")
TWO = [Pair("one", "하나"), Pair("two", "둘")]


def make_entry(url: str, **sums: str | None) -> CatalogEntry:
    """Make a corpus "tiny" of two packed files."""
    files = tuple(
        RemoteFile(f"train.{lang}.gz", f"{url}/train.{lang}.gz", sums.get(lang))
        for lang in ("en", "ko")
    )
    edition = Release(("en", "ko"), files, (parallel_split("train", "en", "ko", ".gz"),))
    return CatalogEntry(
        "tiny", "Tiny", "https://x", "CC0", "2 pairs", ("en-ko",), lambda *_: (edition,)
    )


@pytest.fixture
def tiny(server):
    server.files = {"/train.en.gz": EN, "/train.ko.gz": KO}
    return make_entry(server.url)


def read_all(files: FetchedCorpus, split: str = "train") -> list[Pair]:
    return [pair for config in getattr(files, split) for pair in read_pairs(config)]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# --- from the net


def test_a_corpus_is_fetched_and_readable_in_both_directions(tiny, tmp_path):
    files = fetch(tiny, "en-ko", tmp_path, retry=QUICK)
    assert read_all(files) == TWO
    assert read_all(fetch(tiny, "ko-en", tmp_path)) == [pair.swapped() for pair in TWO]
    assert files.dev == files.test == ()
    assert files.checksums == {"train.en.gz": sha256(EN), "train.ko.gz": sha256(KO)}
    assert files.license == "CC0"


def test_what_is_here_is_not_fetched_again(tiny, tmp_path, server):
    fetch(tiny, "en-ko", tmp_path)
    fetch(tiny, "en-ko", tmp_path)
    assert len(server.requests) == 2
    assert not list(tmp_path.rglob("*.partial*"))


def test_a_file_that_is_gone_from_the_net_is_reported(server, tmp_path):
    with pytest.raises(FetchError, match=r"train\.en\.gz does not exist \(404\)"):
        fetch(make_entry(server.url), "en-ko", tmp_path, retry=QUICK)


def test_progress_is_reported_by_file(tiny, tmp_path):
    reported = []
    fetch(tiny, "en-ko", tmp_path, progress=lambda *news: reported.append(news))
    assert reported == [("train.en.gz", len(EN), len(EN)), ("train.ko.gz", len(KO), len(KO))]


def test_without_a_network_the_hint_is_a_mirror(server, tmp_path):
    url = server.url
    server.server_close()
    with pytest.raises(FetchError, match=r"cannot download [\s\S]*--mirror"):
        fetch(make_entry(url), "en-ko", tmp_path, retry=QUICK)


# --- checksums


def test_a_wrong_checksum_leaves_nothing_behind(server, tmp_path):
    server.files = {"/train.en.gz": EN, "/train.ko.gz": KO}
    entry = make_entry(server.url, en="0" * 64)
    with pytest.raises(FetchError, match=f"sha256 {sha256(EN)}, expected {'0' * 64}"):
        fetch(entry, "en-ko", tmp_path)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_a_right_checksum_is_accepted(server, tmp_path):
    server.files = {"/train.en.gz": EN, "/train.ko.gz": KO}
    entry = make_entry(server.url, en=sha256(EN), ko=sha256(KO))
    assert read_all(fetch(entry, "en-ko", tmp_path)) == TWO
    assert not list(tmp_path.rglob("*.sha256"))


def test_what_the_first_fetch_saw_holds_the_later_ones(tiny, server, tmp_path):
    fetch(tiny, "en-ko", tmp_path)
    path = tmp_path / "tiny" / "downloads" / "train.en.gz"
    sidecar = path.with_name("train.en.gz.sha256")
    assert sidecar.read_text() == f"{sha256(EN)}  train.en.gz\n"
    path.unlink()
    server.files["/train.en.gz"] = gzip.compress(b"uno\ndos\n")
    with pytest.raises(
        FetchError, match=r"the wrong checksum[\s\S]*delete .*train\.en\.gz\.sha256"
    ):
        fetch(tiny, "en-ko", tmp_path)
    assert not path.exists()
    sidecar.unlink()
    assert read_all(fetch(tiny, "en-ko", tmp_path))[0] == Pair("uno", "하나")


def test_a_file_that_was_damaged_here_is_reported(tiny, tmp_path):
    fetch(tiny, "en-ko", tmp_path)
    path = tmp_path / "tiny" / "downloads" / "train.en.gz"
    path.write_bytes(EN[:-1])
    with pytest.raises(FetchError, match=r"the wrong checksum[\s\S]*delete .*train\.en\.gz and"):
        fetch(tiny, "en-ko", tmp_path)


# --- mirrors


@pytest.fixture(params=["folder", "address"])
def mirror(request, server, tmp_path):
    """Return a function that puts files into a mirror, and the mirror's name."""
    folder = tmp_path / "mirror"
    folder.mkdir()

    def put(name: str, content: bytes) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        server.files[f"/m/{name}"] = content

    return put, str(folder) if request.param == "folder" else f"{server.url}/m/"


@pytest.mark.parametrize("folder", ["tiny", "tiny-en-ko", "tiny-ko-en"])
def test_a_mirror_holds_the_published_files(mirror, tmp_path, folder):
    put, name = mirror
    put(f"{folder}/train.en.gz", EN)
    put(f"{folder}/train.ko.gz", KO)
    reported = []
    entry = make_entry("http://127.0.0.1:1", en=sha256(EN))
    files = fetch(entry, "en-ko", tmp_path, mirror=name, progress=lambda *n: reported.append(n))
    assert read_all(files) == TWO
    assert reported[-1] == ("train.ko.gz", len(KO), len(KO))


@pytest.mark.parametrize("ending", [".gz", ""])
def test_a_mirror_may_hold_a_prepared_corpus(mirror, tmp_path, ending):
    put, name = mirror
    for split in ("train", "dev"):
        for language, packed in (("en", EN), ("ko", KO)):
            content = packed if ending else gzip.decompress(packed)
            put(f"tatoeba-en-ko/{split}.{language}{ending}", content)
    files = fetch(find_entry("tatoeba"), "ko-en", tmp_path, mirror=name, retry=QUICK)
    assert read_all(files) == read_all(files, "dev") == [pair.swapped() for pair in TWO]
    assert files.train[0].paths[0] == tmp_path / "tatoeba" / "en-ko" / f"train.ko{ending}"


def test_what_a_mirror_holds_is_held_to_the_checksum(mirror, tmp_path):
    put, name = mirror
    for stem in ("train", "val", "test_2016_flickr"):
        put(f"multi30k/{stem}.en.gz", EN)
        put(f"multi30k/{stem}.de.gz", KO)
    with pytest.raises(FetchError, match="has the wrong checksum"):
        fetch(find_entry("multi30k"), "en-de", tmp_path, mirror=name)


def test_a_mirror_without_the_corpus_explains_what_it_looked_for(mirror, tmp_path):
    _, name = mirror
    with pytest.raises(FetchError, match=r"does not have tatoeba en-ko: .*kor-eng\.zip.*train\.en"):
        fetch(find_entry("tatoeba"), "en-ko", tmp_path / "corpora", mirror=name)
    assert not (tmp_path / "corpora" / "tatoeba").exists()


def test_a_mirror_that_is_not_a_folder_is_reported(tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        fetch(find_entry("tatoeba"), "en-ko", tmp_path, mirror=str(tmp_path / "nowhere"))


# --- archives


def test_tatoeba_is_a_table_in_a_zip(mirror, tmp_path, make_zip):
    put, name = mirror
    table = "one\t하나\tCC-BY 2.0\ntwo\t둘\tCC-BY 2.0\n".encode()
    put("tatoeba/kor-eng.zip", make_zip({"_about.txt": b"", "kor.txt": table}))
    assert read_all(fetch(find_entry("tatoeba"), "en-ko", tmp_path, mirror=name)) == TWO
    turned = fetch(find_entry("tatoeba"), "ko-en", tmp_path, mirror=name)
    assert read_all(turned) == [pair.swapped() for pair in TWO]


def test_opus_is_two_texts_in_a_zip(mirror, tmp_path, make_zip):
    put, name = mirror
    texts = {"Books.en-ko.en": gzip.decompress(EN), "Books.en-ko.ko": gzip.decompress(KO)}
    put("opus-books/en-ko.txt.zip", make_zip(texts | {"README": b""}))
    assert read_all(fetch(find_entry("opus-books"), "en-ko", tmp_path, mirror=name)) == TWO


def test_iwslt_loses_its_tags(mirror, tmp_path, make_tar):
    put, name = mirror
    texts = {}
    for language, one, two in (("de", "eins", "zwei & drei"), ("en", "one", "two & three")):
        head = "<url>http://x</url>\n<keywords>k</keywords>\n<title>T</title>\n"
        more = "<translator href='x'>A</translator>\n" if language == "de" else ""
        talk = f"{head}{more} {one} \n{two}\n"
        texts[f"de-en/train.tags.de-en.{language}"] = talk.encode()
        for number, name_of_set in enumerate(catalog.IWSLT14_SETS):
            xml = (
                f'<mteval>\n<doc>\n<seg id="1"> {two.replace("&", "&amp;")} {number} </seg>\n</doc>'
            )
            texts[f"./de-en/IWSLT14.{name_of_set}.de-en.{language}.xml"] = xml.encode()
    put("iwslt14/de-en.tgz", make_tar(texts))
    files = fetch(find_entry("iwslt14"), "en-de", tmp_path, mirror=name)
    assert read_all(files) == [Pair("one", "eins"), Pair("two & three", "zwei & drei")]
    assert read_all(files, "test")[4] == Pair("two & three 4", "zwei & drei 4")
    assert (len(files.test), files.dev) == (5, ())


@pytest.fixture
def unheld_wmt(monkeypatch):
    files = {name: RemoteFile(name, file.url) for name, file in catalog.WMT.items()}
    monkeypatch.setattr(catalog, "WMT", files)


def test_wmt14_has_many_parts(mirror, tmp_path, unheld_wmt, make_tar):
    put, name = mirror
    (edition, *_) = find_entry("wmt14").releases("en-fr")
    archives: dict[str, dict[str, bytes]] = {file.name: {} for file in edition.files}
    for part in (*edition.train, *edition.dev, *edition.test):
        for position, packed in ((part.first, EN), (part.second, KO)):
            text = gzip.decompress(packed)
            if part.markup == "sgm":
                lines = text.decode().splitlines()
                text = "".join(f'<seg id="1">{line}&amp;</seg>\n' for line in lines).encode()
            archives[position.file][position.member] = (
                packed if position.member.endswith(".gz") else text
            )
    for file, texts in archives.items():
        put(f"wmt14/{file}", make_tar(texts, mode="w" if file.endswith(".tar") else "w:gz"))
    files = fetch(find_entry("wmt14"), "en-fr", tmp_path, mirror=name)
    assert (len(files.train), len(files.dev), len(files.test)) == (5, 1, 1)
    assert Counter(read_all(files)) == Counter(TWO * 5)
    assert read_all(files, "test")[0] == Pair("one&amp;", "하나&amp;")
    assert files.train[4].paths[0].name == "train.4.en.gz"


def test_archives_are_unpacked_once_and_again_when_they_change(mirror, tmp_path, make_zip):
    put, name = mirror
    entry = find_entry("tatoeba")
    put("tatoeba/kor-eng.zip", make_zip({"kor.txt": "one\t하나\ntwo\t둘\n".encode()}))
    (config,) = fetch(entry, "en-ko", tmp_path, mirror=name).train
    config.path.write_text("kept\t그대로\n")
    assert read_all(fetch(entry, "en-ko", tmp_path, mirror=name)) == [Pair("kept", "그대로")]
    for path in (tmp_path / "tatoeba" / "downloads").iterdir():
        path.unlink()
    put("tatoeba/kor-eng.zip", make_zip({"kor.txt": "new\t새것\n".encode()}))
    assert read_all(fetch(entry, "en-ko", tmp_path, mirror=name)) == [Pair("new", "새것")]


# --- the real corpora


@pytest.fixture
def corpora(repository):
    folder = Path(os.environ.get("ATTENDO_CORPORA") or repository.parent / "shared" / "data")
    if not folder.is_dir():
        reason = f"no corpora at {folder}: set ATTENDO_CORPORA"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    return str(folder)


@pytest.mark.corpus
@pytest.mark.parametrize("pair", ["en-de", "fr-en"])
def test_multi30k_comes_whole_from_a_mirror(corpora, tmp_path, pair):
    files = fetch(find_entry("multi30k"), pair, tmp_path, mirror=corpora)
    sizes = [len(read_all(files, split)) for split in ("train", "dev", "test")]
    assert sizes == [29_000, 1_014, 1_000]


@pytest.mark.corpus
@pytest.mark.parametrize(
    ("pair", "num_train", "num_dev"), [("en-ko", 4_045, 500), ("de-en", 157_058, 2_000)]
)
def test_tatoeba_comes_prepared_from_a_mirror(corpora, tmp_path, pair, num_train, num_dev):
    files = fetch(find_entry("tatoeba"), pair, tmp_path, mirror=corpora)
    assert [len(read_all(files, split)) for split in ("train", "dev")] == [num_train, num_dev]
    assert all(pair.src and pair.tgt for pair in read_all(files, "dev"))
