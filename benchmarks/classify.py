"""What masked-token pre-training brings a classifier with few labels, beside bag-of-words.

The task: which of seven sources a Korean line comes from: message catalogues, package descriptions,
GNOME help, LibreOffice help, MediaWiki (Debian's translations), the Python documentation, Tatoeba.
30 and 300 labelled lines of each; 200 other lines of each are the test. Pre-training reads some
88,000 lines without labels. The competitor is logistic regression (scikit-learn) on TF-IDF of words
and letters, its strength chosen by cross-validation. Everything on one thread.

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
NUM_TEST, NUM_DEV, MOST_PLAIN = 200, 50, 20_000
SHORTEST, LONGEST = 12, 200
SIZES = (30, 300)
Lines = list[tuple[str, str]]


def read_lines(path: Path) -> list[str]:
    """Read a gzip file of one text a line."""
    if not path.is_file():
        raise InputError(f"{path} is missing", hint="give the folder of the corpora (--corpora)")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


def read_sources(corpora: Path) -> dict[str, list[str]]:
    """Give the Korean lines of each source in a fixed order; what two of them share is left out."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for folder in FOLDERS:
        texts = read_lines(corpora / folder / "train.ko.gz")
        kinds = corpora / folder / "train.src.gz"
        names = read_lines(kinds) if kinds.exists() else [folder.split("-")[0]] * len(texts)
        for text, name in zip(texts, names, strict=True):
            clean = " ".join(text.split())
            if SHORTEST <= len(clean) <= LONGEST:
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
    """Write plain.txt, dev.tsv, test.tsv and train_N.tsv, none of which shares a line with test."""
    sources = read_sources(corpora)
    first = NUM_TEST + NUM_DEV
    parts = {"test": (0, NUM_TEST), "dev": (NUM_TEST, first)}
    parts |= {f"train_{size}": (first, first + size) for size in SIZES}
    for name, (begin, end) in parts.items():
        rows = (f"{text}\t{label}\n" for label, own in sources.items() for text in own[begin:end])
        (out / f"{name}.tsv").write_text("".join(rows), encoding="utf-8")
    plain = [text for texts in sources.values() for text in texts[first : first + MOST_PLAIN]]
    plain.sort(key=lambda text: hashlib.sha256(b"x" + text.encode()).digest())
    (out / "plain.txt").write_text("".join(f"{text}\n" for text in plain), encoding="utf-8")


def read_tsv(path: Path) -> Lines:
    """Read labelled lines."""
    rows = (line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[:-1])
    return [(text, label) for text, label in rows]


def weigh_words(train: Lines, test: Lines, *, letters: bool) -> LabelScores:
    """Classify by logistic regression on TF-IDF of words and, if asked for, runs of letters."""
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
    texts, right = [text for text, _ in test], [label for _, label in test]
    sure = search.predict_proba(texts).max(axis=1).tolist()
    return score_labels(search.predict(texts).tolist(), right, confidences=sure)


def train(out: Path, name: str, recipe: str, **options: Any) -> Path:
    """Train by a shipped recipe, unless it is done."""
    folder = out / name
    if not (folder / "model").is_dir():
        attendo.train(config=CONFIGS / recipe, out=folder, **options)
    return folder


def try_encoder(out: Path, size: int, steps: int, begun: Path | None) -> LabelScores:
    """Train a classifier on so many lines of each class, and classify the test."""
    settings = [f"data.dev.path={json.dumps(str(out / 'dev.tsv'))}", f"train.max_steps={steps}"]
    name = f"classes_{size}" + ("_begun" if begun else "")
    options = {"path": out / f"train_{size}.tsv", "settings": settings, "init_from": begun}
    folder = train(out, name, "classify.toml", **options)
    texts, right = zip(*read_tsv(out / "test.tsv"), strict=True)
    return classify_and_score(attendo.Translator.load(folder, device="cpu"), texts, right)


def main(arguments: list[str] | None = None) -> None:
    """Make the corpus, run every system, print the table."""
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
            "words": partial(weigh_words, lines, test, letters=False),
            "words and letters": partial(weigh_words, lines, test, letters=True),
            "encoder": partial(try_encoder, out, size, options.steps, None),
            "encoder, pre-trained": partial(try_encoder, out, size, options.steps, masked),
        }
        for name, measure in systems.items():
            begin = time.perf_counter()
            found = measure()
            figures = (f"{found.accuracy:.1%}", f"{found.macro_f1:.3f}", f"{found.ece:.1%}")
            seconds = f"{time.perf_counter() - begin:.0f}"
            rows.append([name, f"{len(lines):,}", *figures, seconds])
            sys.stdout.write(f"{' | '.join(rows[-1])}\n")
    headers = ["system", "labelled lines", "accuracy", "macro F1", "ECE", "seconds"]
    title = f"{len(test):,} lines of the test, {len({label for _, label in test})} classes"
    sys.stdout.write(f"\n{title}\n\n{to_markdown_table(Sheet(title, '', headers, rows))}\n")


if __name__ == "__main__":
    main()
