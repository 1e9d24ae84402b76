"""The catalog of public corpora: URL, license, size, files, checksums.

Checksums come from trusted sources: those of Multi30k are of files whose MD5 sums torchtext
records; those of WMT14 and IWSLT17 are recorded by TensorFlow Datasets and by Hugging Face. Without
a checksum in the catalog, `attendo.corpora.file_source` compares every download with the first one.
"""

from __future__ import annotations

import re
from types import MappingProxyType

from attendo.core.errors import InputError, suggest
from attendo.core.message import message
from attendo.corpora.entries import (
    ArchiveMember,
    CatalogEntry,
    Markup,
    Release,
    RemoteFile,
    Split,
    parallel_split,
)

OPUS_NAME = re.compile(r"opus:([A-Za-z0-9-]+)/(v[A-Za-z0-9._-]+)")
OPUS_URL = "https://object.pouta.csc.fi/OPUS-{corpus}/{version}/moses/{first}-{second}.txt.zip"


def _archive_members(
    file: str, stem: str, first: str, second: str, suffix: str = "", markup: Markup = "text"
) -> Split:
    """Return the split of two archive members named <stem>.<language><suffix>."""
    members = [ArchiveMember(file, f"{stem}.{language}{suffix}") for language in (first, second)]
    return Split(members[0], members[1], markup)


MULTI30K_URL = "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/"
MULTI30K_SHA256 = MappingProxyType(
    {
        "train.de": "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
        "train.en": "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
        "train.fr": "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c",
        "val.de": "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
        "val.en": "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
        "val.fr": "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9",
        "test_2016_flickr.de": "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        "test_2016_flickr.en": "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
        "test_2016_flickr.fr": "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90",
    }
)


def _multi30k(first: str, second: str) -> tuple[Release, ...]:
    stems = ("train", "val", "test_2016_flickr")
    texts = [f"{stem}.{language}" for stem in stems for language in (first, second)]
    compressed = [
        RemoteFile(
            f"{text}.gz",
            f"{MULTI30K_URL}{text}.gz",
            MULTI30K_SHA256[text],
            aliases=(f"{text.replace('test_2016_flickr', 'test2016')}.gz",),
        )
        for text in texts
    ]
    return tuple(
        Release(
            (first, second),
            tuple(files),
            *((parallel_split(stem, first, second, suffix),) for stem in stems),
        )
        for files, suffix in ((compressed, ".gz"), ([RemoteFile(text) for text in texts], ""))
    )


TATOEBA_CODES = MappingProxyType(
    {
        "ar": "ara", "de": "deu", "es": "spa", "fi": "fin", "fr": "fra", "he": "heb", "hu": "hun",
        "it": "ita", "ja": "jpn", "ko": "kor", "nl": "nld", "pl": "pol", "pt": "por", "ru": "rus",
        "sv": "swe", "tr": "tur", "uk": "ukr", "vi": "vie", "zh": "cmn",
    }
)  # fmt: skip


def _tatoeba(first: str, second: str) -> tuple[Release, ...]:
    code = TATOEBA_CODES[second]
    archive = RemoteFile(f"{code}-eng.zip", f"https://www.manythings.org/anki/{code}-eng.zip")
    train = Split(ArchiveMember(archive.name, f"{code}.txt"), None)
    return (Release((first, second), (archive,), (train,)),)


WMT = MappingProxyType(
    {
        name: RemoteFile(name, f"http://{folder}/{name}", sha256, num_bytes)
        for name, folder, num_bytes, sha256 in (
            (
                "training-parallel-europarl-v7.tgz", "www.statmt.org/wmt13", 657_632_379,
                "0224c7c710c8a063dfd893b0cc0830202d61f4c75c17eb8e31836103d27d96e7",
            ),
            (
                "training-parallel-commoncrawl.tgz", "www.statmt.org/wmt13", 918_311_367,
                "c7a74e2ea01ac6c920123108627e35278d4ccb5701e15428ffa34de86fa3a9e5",
            ),
            (
                "training-parallel-nc-v9.tgz", "www.statmt.org/wmt14", 80_418_416,
                "cb8953f292298e6877ae433c98912b927cb0766b303f4540512ddd286c748485",
            ),
            (
                "training-parallel-un.tgz", "www.statmt.org/wmt13", 2_365_634_246,
                "29141b5c1eba149a94f7a59d3b1a834b2e47fe0f8758d68dcd77a3d3f497ee47",
            ),
            (
                "training-giga-fren.tar", "www.statmt.org/wmt10", 2_595_102_720,
                "3ff8319f6919393520559bfbc7ad6a747ec81b3abc7be9993b338d4b017b4d9a",
            ),
            (
                "dev.tgz", "data.statmt.org/wmt19/translation-task", 38_654_961,
                "7a7deccf82ebb05ba508dba5eb21356492224e8f630ec4f992132b029b4b25e7",
            ),
        )
    }
)  # fmt: skip


def _wmt14(first: str, second: str) -> tuple[Release, ...]:
    both = f"{second}-en"
    train = {
        "training-parallel-europarl-v7.tgz": f"training/europarl-v7.{both}",
        "training-parallel-commoncrawl.tgz": f"commoncrawl.{both}",
        "training-parallel-nc-v9.tgz": f"training/news-commentary-v9.{both}",
    }
    if second == "fr":
        train["training-parallel-un.tgz"] = "un/undoc.2000.fr-en"
        train["training-giga-fren.tar"] = "giga-fren.release2.fixed"
    parts = [
        _archive_members(file, stem, first, second, ".gz" if "giga" in file else "")
        for file, stem in train.items()
    ]
    newstest2014 = f"dev/newstest2014-{second}en"
    test = Split(
        ArchiveMember("dev.tgz", f"{newstest2014}-ref.en.sgm"),
        ArchiveMember("dev.tgz", f"{newstest2014}-src.{second}.sgm"),
        "sgm",
    )
    files = tuple(WMT[name] for name in (*train, "dev.tgz"))
    dev = _archive_members("dev.tgz", "dev/newstest2013", first, second)
    return (Release((first, second), files, tuple(parts), (dev,), (test,)),)


IWSLT14_SETS = ("TED.dev2010", "TEDX.dev2012", "TED.tst2010", "TED.tst2011", "TED.tst2012")


def _iwslt14(first: str, second: str) -> tuple[Release, ...]:
    """Test is the union of five sets, dev is split off train: the common setup since fairseq."""
    file = "de-en.tgz"
    archive = RemoteFile(file, f"https://dl.fbaipublicfiles.com/fairseq/data/iwslt14/{file}")
    train = _archive_members(file, "de-en/train.tags.de-en", first, second, markup="tags")
    test = (
        _archive_members(file, f"de-en/IWSLT14.{name}.de-en", first, second, ".xml", "xml")
        for name in IWSLT14_SETS
    )
    return (Release((first, second), (archive,), (train,), (), tuple(test)),)


IWSLT17_URL = (
    "https://huggingface.co/datasets/iwslt2017/resolve/ebd7c60d9800c2a1be010a227e5f0a2363730f7a/"
    "data/2017-01-trnted/texts/{first}/{second}/{first}-{second}.tgz"
)
IWSLT17 = MappingProxyType(
    {
        "de": (16_751_364, "623caec69988b224dbe741f16ad90411b93430117a8021c4bb2bcab7ad1eb21e"),
        "fr": (27_691_674, "1f5bd8cd242de15fb58a04af265adb8e604a7e1b805a42cb0de7dfd15447c5c6"),
        "ja": (26_983_540, "27322c1170d057a92f27edd475cfd2c46f38bd1acdd52bbcffbe725e78b3d472"),
        "ko": (19_363_699, "0ac6caa1fbfbb0c79f1e9ef2f8e5493b83003d6ad85ef504a5584e3b8b006f00"),
        "zh": (27_596_371, "d178f2ede07d7d600e244649e2092fb5fcbdda9729a3bb016502512028e2615b"),
    }
)


def _iwslt17(first: str, second: str) -> tuple[Release, ...]:
    pair = f"{first}-{second}"
    num_bytes, sha256 = IWSLT17[second]
    file = f"{pair}.tgz"
    archive = RemoteFile(file, IWSLT17_URL.format(first=first, second=second), sha256, num_bytes)
    train = _archive_members(file, f"{pair}/train.tags.{pair}", first, second, markup="tags")
    dev, *test = (
        _archive_members(file, f"{pair}/IWSLT17.TED.{name}.{pair}", first, second, ".xml", "xml")
        for name in ("dev2010", *(f"tst{year}" for year in range(2010, 2016)))
    )
    return (Release((first, second), (archive,), (train,), (dev,), tuple(test)),)


def opus_entry(corpus: str, version: str, name: str | None = None) -> CatalogEntry:
    """Return the entry of any corpus of OPUS, with all pairs that OPUS has."""

    def releases_for(first: str, second: str) -> tuple[Release, ...]:
        first, second = sorted((first, second))
        url = OPUS_URL.format(corpus=corpus, version=version, first=first, second=second)
        archive = RemoteFile(f"{first}-{second}.txt.zip", url)
        stem = f"{corpus}.{first}-{second}"
        train = _archive_members(archive.name, stem, first, second)
        return (Release((first, second), (archive,), (train,)),)

    return CatalogEntry(
        name=name or f"opus-{corpus}-{version}".lower(),
        title=f"{corpus} {version}, aligned by OPUS",
        homepage=f"https://opus.nlpl.eu/{corpus}",
        license="differs by corpus: see its OPUS page",
        size="depends on the pair",
        pairs=(),
        make_releases=releases_for,
    )


OPUS_CORPORA = (
    ("Books", "v1"),
    ("CCMatrix", "v1"),
    ("Europarl", "v8"),
    ("MultiUN", "v1"),
    ("NLLB", "v1"),
    ("OpenSubtitles", "v2018"),
    ("Tatoeba", "v2021-07-22"),
    ("TED2020", "v1"),
)

CATALOG = (
    CatalogEntry(
        "multi30k",
        "Multi30k: image captions, raw",
        "https://github.com/multi30k/dataset",
        "research, non-commercial (Flickr30k); cite Elliott et al. 2016, 2017",
        "29,000 pairs and 1,014 for dev, 1,000 for test; 1.3 MB compressed",
        ("en-de", "en-fr"),
        _multi30k,
    ),
    CatalogEntry(
        "tatoeba",
        "Tatoeba: short everyday sentences, as selected by manythings.org",
        "https://www.manythings.org/anki/",
        "CC-BY 2.0 FR",
        "5,000 (en-ko) to several hundred thousand pairs (en-de, en-fr); up to 20 MB compressed",
        tuple(f"en-{language}" for language in TATOEBA_CODES),
        _tatoeba,
    ),
    CatalogEntry(
        "wmt14",
        "WMT14: the paper's corpus; dev is newstest2013, test is newstest2014",
        "https://www.statmt.org/wmt14/translation-task.html",
        "free for research, cite Bojar et al. 2014; each part keeps the terms of its source",
        "en-de 4.5 million pairs, 1.7 GB compressed; en-fr 40.8 million pairs, 6.7 GB compressed",
        ("en-de", "en-fr"),
        _wmt14,
    ),
    CatalogEntry(
        "iwslt14",
        "IWSLT14: TED talks",
        "https://wit3.fbk.eu/2014-01",
        "CC BY-NC-ND (TED)",
        "about 170,000 pairs; about 20 MB compressed",
        ("de-en",),
        _iwslt14,
    ),
    CatalogEntry(
        "iwslt17",
        "IWSLT17: TED talks; dev is dev2010, test is tst2010 to tst2015",
        "https://wit3.fbk.eu/2017-01-b",
        "CC BY-NC-ND (TED)",
        "206,000 to 233,000 pairs; 17 to 28 MB compressed",
        tuple(f"en-{language}" for language in IWSLT17),
        _iwslt17,
    ),
    *(opus_entry(corpus, version, f"opus-{corpus.lower()}") for corpus, version in OPUS_CORPORA),
)


def find_entry(name: str) -> CatalogEntry:
    """Return the entry of a corpus.

    >>> find_entry("multi30k").license.split(",")[0]
    'research'

    Args:
        name: A name in `CATALOG`, or `opus:<corpus>/<version>` for any corpus of OPUS.

    Returns:
        The entry.

    Raises:
        InputError: If there is no such corpus.

    """
    match = OPUS_NAME.fullmatch(name)
    if match is not None:
        return opus_entry(match[1], match[2])
    for entry in CATALOG:
        if entry.name == name:
            return entry
    hint = message(
        "{detail}, opus:<corpus>/<version>", detail=suggest(name, (entry.name for entry in CATALOG))
    )
    raise InputError(message("no corpus '{name}' in the catalog", name=name), hint=hint)
