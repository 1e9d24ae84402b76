"""The benefit of masked-LM pretraining for a classifier with few labels, compared with TF-IDF.

The task is to find the source of a Korean line among seven: message catalogs, package descriptions,
GNOME help, LibreOffice help, MediaWiki (Debian's translations), the Python documentation, Tatoeba.
There are 30 or 300 labeled lines of each, and 200 test lines of each. Pretraining uses about 88,000
lines without labels. The baseline is logistic regression (scikit-learn) on TF-IDF of words and
characters, regularized by cross-validation. Everything runs on one thread.

Run: python -m benchmarks.classify --corpora ../shared/data --out runs/classify
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
import time
from collections import Counter, defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

import attendo
from attendo.core.errors import InputError
from attendo.tasks.classification.evaluate import classify_and_score
from attendo.tasks.classification.metrics import LabelScores, score_labels
from benchmarks.sheets import Sheet, to_markdown_table

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIGS = Path(__file__).parent.parent / "configs"
FOLDERS = ("tatoeba-en-ko", "debian-l10n-en-ko", "pydocs-en-ko")
NUM_TEST, NUM_DEV, MAX_PLAIN_LINES = 200, 50, 20_000
MIN_CHARACTERS, MAX_CHARACTERS = 12, 200
SIZES = (30, 300)
Lines = list[tuple[str, str]]


def read_lines(path: Path) -> list[str]:
    """Read a gzip file with one text per line."""
    if not path.is_file():
        raise InputError(f"{path} is missing", hint="give the folder of the corpora (--corpora)")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


def read_sources(corpora: Path) -> dict[str, list[str]]:
    """Return the Korean lines of each source in a fixed order, without lines of two sources."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for folder in FOLDERS:
        texts = read_lines(corpora / folder / "train.ko.gz")
        kinds = corpora / folder / "train.src.gz"
        names = read_lines(kinds) if kinds.exists() else [folder.split("-")[0]] * len(texts)
        for text, name in zip(texts, names, strict=True):
            clean = " ".join(text.split())
            if MIN_CHARACTERS <= len(clean) <= MAX_CHARACTERS:
                found[name][clean] = None
    shared = Counter(text for texts in found.values() for text in texts)
    return {
        name: sorted(
            (text for text in texts if shared[text] == 1),
            key=lambda text: hashlib.sha256(text.encode()).digest(),
        )
        for name, texts in found.items()
    }


def write_corpus(corpora: Path, out: Path) -> None:
    """Write plain.txt, dev.tsv, test.tsv and train_N.tsv; test shares no line with the others."""
    sources = read_sources(corpora)
    first = NUM_TEST + NUM_DEV
    parts = {"test": (0, NUM_TEST), "dev": (NUM_TEST, first)}
    parts |= {f"train_{size}": (first, first + size) for size in SIZES}
    for name, (begin, end) in parts.items():
        rows = (f"{text}\t{label}\n" for label, own in sources.items() for text in own[begin:end])
        (out / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")
    plain = [text for texts in sources.values() for text in texts[first : first + MAX_PLAIN_LINES]]
    plain.sort(key=lambda text: hashlib.sha256(b"x" + text.encode()).digest())
    (out / "plain.txt").write_text("".join(f"{text}\n" for text in plain), encoding="utf-8")


def read_tsv(path: Path) -> Lines:
    """Read labeled lines."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[:-1])
    return [(text, label) for text, label in rows]


def run_logistic_regression(train: Lines, test: Lines, *, letters: bool) -> LabelScores:
    """Classify by logistic regression on TF-IDF of words and, optionally, character n-grams."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # type: ignore[import-untyped]
    from sklearn.linear_model import LogisticRegression  # type: ignore[import-untyped]
    from sklearn.model_selection import GridSearchCV  # type: ignore[import-untyped]
    from sklearn.pipeline import make_pipeline, make_union  # type: ignore[import-untyped]

    words = {"token_pattern": r"\S+", "ngram_range": (1, 2)}
    views = [TfidfVectorizer(**words, sublinear_tf=True)]
    if letters:
        views.append(TfidfVectorizer(analyzer="char_wb", ngram_range=(1, 4), sublinear_tf=True))
    line = make_pipeline(make_union(*views), LogisticRegression(max_iter=2000))
    search = GridSearchCV(line, {"logisticregression__C": [1, 10, 100]}, cv=5)
    search.fit([text for text, _ in train], [label for _, label in train])
    texts, labels = [text for text, _ in test], [label for _, label in test]
    confidences = search.predict_proba(texts).max(axis=1).tolist()
    return score_labels(search.predict(texts).tolist(), labels, confidences=confidences)


def train(out: Path, name: str, recipe: str, **options: Any) -> Path:
    """Train with a shipped config, unless the model exists."""
    folder = out / name
    if not (folder / "model").is_dir():
        attendo.train(config=CONFIGS / recipe, out=folder, **options)
    return folder


def run_encoder(out: Path, size: int, steps: int, init_from: Path | None) -> LabelScores:
    """Train a classifier on `size` lines per class and score it on the test set."""
    settings = [f"data.dev.path={json.dumps(str(out / 'dev.tsv'))}", f"train.max_steps={steps}"]
    name = f"classes_{size}" + ("_pretrained" if init_from else "")
    options = {"path": out / f"train_{size}.tsv", "settings": settings, "init_from": init_from}
    folder = train(out, name, "classify.toml", **options)
    texts, labels = zip(*read_tsv(out / "test.tsv"), strict=True)
    return classify_and_score(attendo.Translator.load(folder, device="cpu"), texts, labels)


def main(arguments: list[str] | None = None) -> None:
    """Write the corpus, run every system, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpora", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("runs/classify"))
    parser.add_argument("--pretrain-steps", type=int, default=6000)
    parser.add_argument("--steps", type=int, default=600)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    if not (out / "plain.txt").exists():
        write_corpus(options.corpora, out)
    steps = [f"train.max_steps={options.pretrain_steps}"]
    masked = train(
        out, "masked", "masked_tokens.toml", text=out / "plain.txt", model="encoder", settings=steps
    )
    test = read_tsv(out / "test.tsv")
    rows = []
    for size in SIZES:
        lines = read_tsv(out / f"train_{size}.tsv")
        systems: dict[str, Callable[[], LabelScores]] = {
            "words": partial(run_logistic_regression, lines, test, letters=False),
            "words and characters": partial(run_logistic_regression, lines, test, letters=True),
            "encoder": partial(run_encoder, out, size, options.steps, None),
            "encoder, pretrained": partial(run_encoder, out, size, options.steps, masked),
        }
        for name, measure in systems.items():
            begin = time.perf_counter()
            scores = measure()
            figures = (f"{scores.accuracy:.1%}", f"{scores.macro_f1:.3f}", f"{scores.ece:.1%}")
            seconds = f"{time.perf_counter() - begin:.0f}"
            rows.append([name, f"{len(lines):,}", *figures, seconds])
            sys.stdout.write(f"{' | '.join(rows[-1])}\n")
    headers = ["system", "labeled lines", "accuracy", "macro F1", "ECE", "seconds"]
    title = f"{len(test):,} test lines, {len({label for _, label in test})} classes"
    sys.stdout.write(f"\n{title}\n\n{to_markdown_table(Sheet(title, '', headers, rows))}\n")


if __name__ == "__main__":
    main()
