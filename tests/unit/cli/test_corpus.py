from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from attendo.cli import corpus as corpus_module
from attendo.cli import download_progress, main
from attendo.corpora import catalog, fetch
from attendo.corpora.catalog import CATALOG, find_entry
from attendo.corpora.download import CHUNK_BYTES, RetryPolicy
from attendo.corpora.entries import CatalogEntry, Release, RemoteFile, parallel_split
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.readers import read_pairs

SUMMARY = "List known public corpora, and download one."


@pytest.fixture(autouse=True)
def _plain_output(monkeypatch, tmp_path):
    """Set a cache of its own, 100 columns and no colors for every test."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(RetryPolicy, "sleep", lambda *_: None)


@pytest.fixture
def attendo(monkeypatch, capsys):
    """Run `attendo corpus` as the command line does; give the exit code and what was printed."""
    monkeypatch.setitem(main.VERB_HELP, "corpus", SUMMARY)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as caught:
            main.run(["corpus", *arguments])
        printed = capsys.readouterr()
        return int(caught.value.code or 0), printed.out, printed.err

    return run


@pytest.fixture
def multi30k(tmp_path, monkeypatch):
    """Make a mirror folder that holds Multi30k, with our own sentences and no checksums held."""
    folder = tmp_path / "mirror"
    (folder / "multi30k").mkdir(parents=True)
    monkeypatch.setattr(catalog, "MULTI30K_SHA256", dict.fromkeys(catalog.MULTI30K_SHA256))
    for stem in ("train", "val", "test_2016_flickr"):
        for language, text in (("en", b"one\n"), ("de", b"eins\n")):
            (folder / "multi30k" / f"{stem}.{language}.gz").write_bytes(gzip.compress(text))
    return str(folder)


def squeeze(text: str) -> str:
    """Undo every fold."""
    return "".join(text.split())


def test_the_help_is_what_the_list_of_verbs_will_show(attendo):
    assert main.load_verb("corpus").__doc__ == SUMMARY
    code, out, _ = attendo("--help")
    assert code == 0
    for option in ("--pair", "--fetch", "--to", "--mirror", "--json"):
        assert option in out


# --- list


def test_the_list_names_every_corpus_and_every_fact_on_100_columns(attendo):
    code, out, err = attendo()
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 100
    for entry in CATALOG:
        assert f" {entry.name} " in out
        assert entry.homepage in out  # not folded: it can be copied
    for word in ("en-de, en-fr", "CC BY-NC-ND (TED)", "checksums known", "checksums not known"):
        assert word in out
    assert "opus:<corpus>/<version>" in out
    assert "…" not in out


@pytest.mark.parametrize("columns", ["40", "60", "80"])
def test_a_narrow_list_is_folded_not_cut(attendo, monkeypatch, columns):
    _, wide, _ = attendo()
    monkeypatch.setenv("COLUMNS", columns)
    _, narrow, _ = attendo()
    assert max(map(len, narrow.splitlines())) <= int(columns)
    letters, kept = (Counter(squeeze(text).replace("─", "")) for text in (wide, narrow))
    assert kept == letters


def test_many_pairs_are_shortened(attendo):
    words = [corpus_module.format_pairs(find_entry(name)) for name in ("wmt14", "tatoeba")]
    assert words == ["en-de, en-fr", "en-ar, en-de, en-es, en-fi and 15 more"]
    assert corpus_module.format_pairs(find_entry("opus-books")) == "many"


def test_checksums_are_summed_up_over_the_pairs():
    entry = find_entry("iwslt17")
    assert corpus_module.format_checksums(entry) == "known"
    held, bare = entry.releases("en-de")[:1], find_entry("tatoeba").releases("en-ko")[:1]
    mixed = CatalogEntry(
        "x", "X", "", "", "", ("en-de", "en-ko"), lambda _, tgt: held if tgt == "de" else bare
    )
    assert corpus_module.format_checksums(mixed) == "known for some pairs"


def test_the_list_is_printed_as_json(attendo):
    _, out, _ = attendo("--json")
    listed = json.loads(out)
    assert [one["name"] for one in listed] == [entry.name for entry in CATALOG]
    assert listed[0] == {
        "name": "multi30k",
        "title": "Multi30k: image captions, raw",
        "homepage": "https://github.com/multi30k/dataset",
        "license": CATALOG[0].license,
        "size": CATALOG[0].size,
        "pairs": ["en-de", "en-fr"],
        "checksums": "known",
    }


def test_no_tensor_library_is_loaded():
    code = (
        "import sys\nfrom attendo.cli.corpus import corpus\ncorpus()\ncorpus('wmt14')\n"
        "assert not {'torch', 'numpy'} & set(sys.modules), 'heavy import'"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        check=False,
        text=True,
        encoding="utf-8",
        env=os.environ | {"PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0, done.stderr


# --- show


@pytest.mark.parametrize("entry", CATALOG, ids=lambda entry: entry.name)
def test_one_corpus_is_shown_with_every_address_unbroken(attendo, monkeypatch, entry):
    monkeypatch.setenv("COLUMNS", "60")
    code, out, _ = attendo(entry.name)
    assert code == 0
    for fact in (entry.title, entry.license, entry.size, *entry.pairs):
        assert squeeze(fact) in squeeze(out)
    for pair in entry.pairs or ("XX-YY",):
        assert f"files of {pair}\n" in out
        for file in entry.releases(pair)[0].files:
            assert f"  {file.url}\n" in out
    pair = entry.pairs[0] if entry.pairs else "XX-YY"
    assert f"attendo corpus {entry.name} --pair {pair} --fetch\n" in out
    assert f"attendo train --corpus {entry.name} --pair {pair} --out runs/{entry.name}-" in out


def test_sizes_and_checksums_are_printed_as_far_as_they_are_known(attendo):
    _, out, _ = attendo("wmt14", "--pair", "en-de")
    assert "    657.6 MB, sha256 0224c7c710c8a063" in out
    assert "en-fr.release2" not in out
    _, out, _ = attendo("tatoeba", "--pair", "ko-en")
    assert "kor-eng.zip\n    size unknown, checksum unknown\n" in out
    assert "deu-eng.zip" not in out


def test_one_corpus_is_printed_as_json(attendo):
    _, out, _ = attendo("iwslt17", "--pair", "ko-en", "--json")
    shown = json.loads(out)
    (file,) = shown["files"]["ko-en"]
    assert file["url"].endswith("/en-ko.tgz")
    assert file["num_bytes"] == 19_363_699
    assert len(file["sha256"]) == 64
    assert shown["train"] == "attendo train --corpus iwslt17 --pair ko-en --out runs/iwslt17-ko-en"
    assert set(json.loads(attendo("multi30k", "--json")[1])["files"]) == {"en-de", "en-fr"}


def test_any_corpus_of_opus_is_used_under_the_name_that_finds_it(attendo):
    _, out, _ = attendo("opus:GNOME/v1", "--pair", "en-ko")
    assert "/OPUS-GNOME/v1/moses/en-ko.txt.zip\n" in out
    assert "attendo train --corpus opus:GNOME/v1 --pair en-ko --out runs/opus-gnome-v1-en" in out


# --- fetch


def test_a_corpus_comes_from_a_mirror_folder_into_the_cache(attendo, multi30k, tmp_path):
    code, out, err = attendo("multi30k", "--pair", "en-de", "--fetch", "--mirror", multi30k)
    assert code == 0
    downloads = tmp_path / "cache" / "corpora" / "multi30k" / "downloads"
    for split, stem in (("train", "train"), ("dev", "val"), ("test", "test_2016_flickr")):
        assert f"{split:7}{downloads}/{stem}.en.gz  {downloads}/{stem}.de.gz\n" in out
        assert (downloads / f"{stem}.de.gz").exists()
        assert f"{stem}.en.gz: 24 bytes\n" in err
    assert "license: research" in out
    assert out.endswith(
        "train on it:\n  attendo train --corpus multi30k --pair en-de "
        f"--mirror {shlex.quote(multi30k)} --out runs/multi30k-en-de\n"
    )


def test_what_is_here_already_is_reported(attendo, multi30k):
    words = ("multi30k", "--pair", "en-de", "--fetch", "--mirror", multi30k)
    first, second = attendo(*words), attendo(*words)
    assert first[:2] == second[:2]
    assert second[2].count(": already downloaded\n") == 6


def test_a_corpus_in_another_folder_is_trained_on_by_its_files(attendo, multi30k, tmp_path):
    there = tmp_path / "my corpora"
    words = ("multi30k", "--pair", "de-en", "--fetch", "--to", str(there), "--mirror", multi30k)
    _, out, _ = attendo(*words)
    downloads = there / "multi30k" / "downloads"
    assert shlex.split(out.split("train on it:\n")[1]) == [
        *("attendo", "train"),
        *("--src", f"{downloads}/train.de.gz", "--tgt", f"{downloads}/train.en.gz"),
        *("--dev-src", f"{downloads}/val.de.gz", "--dev-tgt", f"{downloads}/val.en.gz"),
        *("--out", "runs/multi30k-de-en"),
    ]
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("pair", "expected"), [("en-ko", Pair("one", "하나")), ("ko-en", Pair("하나", "one"))]
)
def test_a_table_in_another_folder_keeps_its_direction(attendo, tmp_path, make_zip, pair, expected):
    mirror = tmp_path / "mirror"
    (mirror / "tatoeba").mkdir(parents=True)
    archive = make_zip({"kor.txt": "one\t하나\tCC-BY\n".encode()})
    (mirror / "tatoeba" / "kor-eng.zip").write_bytes(archive)
    there = str(tmp_path / "there")
    words = ("tatoeba", "--pair", pair, "--fetch", "--to", there, "--mirror", str(mirror))
    _, out, _ = attendo(*words)
    assert "dev    none: split off train\n" in out
    command = shlex.split(out.split("train on it:\n")[1])
    path = command[command.index("--path") + 1]
    fields = (int(command[command.index(option) + 1]) for option in ("--src-field", "--tgt-field"))
    config = CorpusConfig(path=path, **dict(zip(("src_field", "tgt_field"), fields, strict=True)))
    assert list(read_pairs(config)) == [expected]


def test_a_fetch_prints_json_without_a_progress_bar(attendo, multi30k):
    words = ("multi30k", "--pair", "en-de", "--fetch", "--mirror", multi30k, "--json")
    _, out, err = attendo(*words)
    facts = json.loads(out)
    assert [Path(path).name for path in facts["splits"]["dev"][0]] == ["val.en.gz", "val.de.gz"]
    assert len(facts["checksums"]) == 6
    assert facts["train"].startswith("attendo train --corpus multi30k")
    assert "train.en.gz" in err


@pytest.fixture
def tiny(server, monkeypatch):
    """Put a corpus "tiny" on the server, of a size that takes several pieces."""
    texts = {"en": b"one\n" * CHUNK_BYTES, "ko": "하나\n".encode() * CHUNK_BYTES}
    server.files = {f"/train.{language}": text for language, text in texts.items()}
    files = tuple(RemoteFile(path[1:], f"{server.url}{path}") for path in server.files)
    edition = Release(("en", "ko"), files, (parallel_split("train", "en", "ko", ""),))
    pairs = ("en-ko",)
    entry = CatalogEntry("tiny", "Tiny", "https://x", "CC0", "few", pairs, lambda *_: (edition,))
    monkeypatch.setattr(catalog, "CATALOG", (entry,))


FETCH_TINY = ("tiny", "--pair", "en-ko", "--fetch")


def test_a_corpus_comes_from_the_net(attendo, tiny, tmp_path):
    code, out, err = attendo(*FETCH_TINY)
    assert code == 0
    folder = tmp_path / "cache" / "corpora" / "tiny" / "downloads"
    assert f"train  {folder}/train.en  {folder}/train.ko\n" in out
    assert "attendo train --corpus tiny --pair en-ko --out runs/tiny-en-ko\n" in out
    assert err == "train.en: 262.1 kB\ntrain.ko: 458.8 kB\n"


def test_a_corpus_comes_from_a_mirror_address(attendo, multi30k, server):
    for path in Path(multi30k).rglob("*.gz"):
        server.files[f"/m/multi30k/{path.name}"] = path.read_bytes()
    mirror = f"{server.url}/m"
    code, out, _ = attendo("multi30k", "--pair", "en-de", "--fetch", "--mirror", mirror)
    assert code == 0
    assert f"--pair en-de --mirror {mirror} --out" in out


def test_a_resumed_download_is_reported(attendo, tiny, server):
    server.faults = ["cut", 403]
    code, out, err = attendo(*FETCH_TINY)
    assert (code, out) == (2, "")
    assert "returned 403" in err
    assert "resumed" not in err
    code, _, err = attendo(*FETCH_TINY)
    assert code == 0
    assert err.startswith("train.en: download resumed\ntrain.en: 262.1 kB\n")
    assert err.count("resumed") == 1
    assert server.requests[2] == ("/train.en", f"bytes={2 * CHUNK_BYTES}-")


def test_a_copy_from_a_folder_is_never_called_resumed(attendo, tiny, server, tmp_path):
    folder = tmp_path / "mirror" / "tiny"
    folder.mkdir(parents=True)
    for path, text in server.files.items():
        (folder / path[1:]).write_bytes(text)
    code, _, err = attendo(*FETCH_TINY, "--mirror", str(folder.parent))
    assert code == 0
    assert "resumed" not in err


@pytest.mark.parametrize("has_lengths", [True, False])
def test_a_terminal_shows_a_bar_with_bytes_speed_and_time(
    attendo, tiny, server, monkeypatch, has_lengths
):
    monkeypatch.setenv("FORCE_COLOR", "1")
    server.has_lengths = has_lengths
    code, out, err = attendo(*FETCH_TINY)
    assert code == 0
    assert "━" in err
    assert "262.1/262.1 kB" in err
    assert "0:00:00" in err
    assert "B/s" in err or not has_lengths  # too quick to be drawn between two pieces
    assert "━" not in out


def test_elsewhere_a_line_now_and_then_reports_progress(attendo, tiny, server, monkeypatch):
    monkeypatch.setattr(download_progress, "LOG_INTERVAL_SECONDS", -1.0)
    _, _, err = attendo(*FETCH_TINY)
    assert err.startswith("train.en: 65.5 kB of 262.1 kB\ntrain.en: 131.1 kB of 262.1 kB\n")


# --- errors


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["multi3k"], "no corpus 'multi3k' in the catalog\n  hint: did you mean 'multi30k'?"),
        (["multi30k", "--pair", "en-dx"], "multi30k has no pair 'en-dx'\n  hint: did you mean"),
        (["multi30k", "--pair", "en"], "'en' is not a language pair"),
        (["multi30k", "--pair", "en-ko", "--fetch"], "multi30k has no pair 'en-ko'"),
        (["multi30k", "--fetch"], "--fetch needs a language pair"),
        (["multi30k", "--mirror", "x"], "--to and --mirror need --fetch"),
        (["--pair", "en-ko"], "--pair and --fetch need a corpus"),
        (["--fetch", "--to", "x"], "2 settings cannot be used"),
        (["multi30k", "--pair", "en-de", "--fetch", "--mirror", "nowhere"], "is not a folder"),
    ],
)
def test_what_cannot_be_done_is_printed_with_a_hint(attendo, arguments, reason):
    code, out, err = attendo(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert reason in err


def test_a_folder_that_is_a_file_is_reported(attendo, multi30k, tmp_path):
    there = tmp_path / "file"
    there.write_text("")
    words = ("multi30k", "--pair", "en-de", "--fetch", "--mirror", multi30k, "--to", str(there))
    code, _, err = attendo(*words)
    assert code == 2
    assert f"cannot download multi30k to {there}: " in err
    assert "with --to" in err


def test_a_mirror_without_the_corpus_is_reported(attendo, tmp_path):
    words = ("tatoeba", "--pair", "en-ko", "--fetch", "--mirror", str(tmp_path))
    code, _, err = attendo(*words)
    assert code == 2
    assert "does not have tatoeba en-ko" in err


# --- the folder


def test_corpora_are_in_the_cache(monkeypatch, tmp_path):
    assert fetch.corpora_dir() == tmp_path / "cache" / "corpora"
    monkeypatch.setenv("ATTENDO_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert fetch.corpora_dir() == tmp_path / "attendo" / "corpora"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    assert fetch.corpora_dir() == tmp_path / "home" / ".cache" / "attendo" / "corpora"
