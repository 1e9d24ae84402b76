"""How much 300 corrections of one domain help, and what they cost elsewhere (`attendo adapt`).

A small English-German model is trained on short message strings and everyday sentences. The
corrections are simulated: the references of lines of another kind, which the model has never seen,
stand for what a person would have written. It is measured on 500 other lines of that kind, on dev,
by which `attendo adapt` decides, and on a general test set that it does not see.

    python benchmarks/adaptation.py ../shared/data --out /tmp/adaptation --domain lohelp

Sample "a" of a domain was used to choose the settings of `attendo adapt`, sample "b" was not. The
base model is kept in the output folder and used again. Prints one line of JSON per adaptation and
per set.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import shutil
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import attendo
from attendo.evaluation.bleu import bleu, chrf
from attendo.memory.store import TranslationMemory
from attendo.memory.unit import Unit
from attendo.tasks.translation.adaptation import AdaptRequest, adapt_model

if TYPE_CHECKING:
    from collections.abc import Iterable

    Pairs = list[tuple[str, str]]

SRC, TGT = "en", "de"
CATALOGS, SENTENCES = "debian-l10n-en-de", "tatoeba-en-de"
GENERAL, DOMAINS = "catalogue", ("lohelp", "mediawiki", "help", "ddtp")
MIN_WORDS, MAX_GENERAL_WORDS, MAX_DOMAIN_WORDS, MAX_CHARACTERS = 3, 12, 15, 110
NUM_TRAIN, NUM_DEV = 70_000, 500
"""Of each of the two general corpora; the test set is as large as dev."""
NUM_CORRECTIONS, NUM_UNSEEN = 300, 500
SAMPLES = "ab"
BASE_SETTINGS = (
    "data.tokenizer.vocab_size=6000", "model.dropout=0.1", "model.num_layers=2",
    "train.batch_tokens=2500", "train.validate_every=300", "train.save_every=300",
)  # fmt: skip
SEED = 11


def main() -> None:
    """Train, adapt and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path, help=f"the folder with {CATALOGS} and {SENTENCES}")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--domain", choices=DOMAINS, default=DOMAINS[0])
    parser.add_argument("--sample", choices=SAMPLES, default="b")
    parser.add_argument("--budget", default="10m", help="of the base model")
    parser.add_argument("--replay-share", type=float)
    parser.add_argument("--max-drop", type=float)
    parser.add_argument("--set", dest="settings", action="append", default=[])
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    sets = split_data(args.data)
    files = {name: write_lines(args.out / name, sets[name]) for name in ("train", "dev")}
    base = args.out / "base"
    if not (base / "model").exists():
        attendo.train(
            out=base, src=files["train"][0], tgt=files["train"][1], dev_src=files["dev"][0],
            dev_tgt=files["dev"][1], src_lang=SRC, tgt_lang=TGT, preset="tiny",
            budget=args.budget, settings=BASE_SETTINGS, threads=args.threads, device="cpu",
        )  # fmt: skip
    name = f"{args.domain}.{args.sample}"
    store = args.out / f"{name}.db"
    write_corrections(store, base, sets[f"{name}.corrections"])
    chosen = {"replay_share": args.replay_share, "max_drop": args.max_drop}
    given = {key: value for key, value in chosen.items() if value is not None}
    out = args.out / f"adapted-{name}"
    shutil.rmtree(out, ignore_errors=True)
    start = perf_counter()
    adapted = adapt_model(
        AdaptRequest(
            model=base, corrections=store, out=out, settings=args.settings,
            threads=args.threads, device="cpu", **given,
        )
    )  # fmt: skip
    facts = {
        "domain": name, "adapt_seconds": round(perf_counter() - start), **given,
        "settings": args.settings, "share": adapted.share, "published": not adapted.reasons,
    }  # fmt: skip
    print(json.dumps(facts), flush=True)
    models = {"before": base, "after": adapted.model_dir}
    for label, pairs in (
        ("unseen lines of the domain", sets[f"{name}.unseen"]),
        ("dev", sets["dev"]),
        ("general test", sets["test"]),
    ):
        scores = {when: score(model, pairs) for when, model in models.items()}
        print(json.dumps({"set": label, "lines": len(pairs), **scores}), flush=True)


def split_data(data: Path) -> dict[str, Pairs]:
    """Return the general sets, and the corrections and unseen lines of each domain and sample."""
    chooser = random.Random(SEED)  # noqa: S311 - no secret
    labeled = read_columns(data / CATALOGS, f"train.{SRC}.gz", f"train.{TGT}.gz", "train.src.gz")
    sentences = read_columns(data / SENTENCES, f"train.{SRC}.gz", f"train.{TGT}.gz")

    def select(pairs: Iterable[tuple[str, ...]], max_words: int, kind: str | None = None) -> Pairs:
        distinct: dict[str, str] = {}
        for src, tgt, *label in pairs:
            if (kind is None or label == [kind]) and is_short(src, tgt, max_words):
                distinct.setdefault(src, tgt)
        listed = list(distinct.items())
        chooser.shuffle(listed)
        return listed

    general = [
        select(labeled, MAX_GENERAL_WORDS, GENERAL),
        select(sentences, MAX_GENERAL_WORDS),
    ]
    bounds = (0, NUM_DEV, 2 * NUM_DEV, 2 * NUM_DEV + NUM_TRAIN)
    sets = {
        name: [pair for pairs in general for pair in pairs[start:end]]
        for name, start, end in zip(("dev", "test", "train"), bounds, bounds[1:], strict=False)
    }
    chooser.shuffle(sets["train"])
    known = {text for pairs in sets.values() for pair in pairs for text in pair}
    for domain in DOMAINS:
        lines = select(labeled, MAX_DOMAIN_WORDS, domain)
        unknown = [pair for pair in lines if not known & set(pair)]
        for index, sample in enumerate(SAMPLES):
            part = unknown[index * (NUM_CORRECTIONS + NUM_UNSEEN) :]
            sets[f"{domain}.{sample}.corrections"] = part[:NUM_CORRECTIONS]
            sets[f"{domain}.{sample}.unseen"] = part[NUM_CORRECTIONS:][:NUM_UNSEEN]
    return sets


def read_columns(folder: Path, *names: str) -> list[tuple[str, ...]]:
    """Return the lines of several files side by side."""
    columns = [gzip.decompress((folder / name).read_bytes()).decode().split("\n") for name in names]
    return list(zip(*columns, strict=True))


def is_short(src: str, tgt: str, max_words: int) -> bool:
    """Return whether a pair has few words, but more than a label of a button."""
    return (
        MIN_WORDS <= len(src.split()) <= max_words
        and 1 <= len(tgt.split()) <= max_words + 2
        and max(len(src), len(tgt)) < MAX_CHARACTERS
    )


def write_lines(path: Path, pairs: Pairs) -> tuple[Path, Path]:
    """Write the two sides of pairs."""
    paths = path.with_suffix(f".{SRC}"), path.with_suffix(f".{TGT}")
    for file, texts in zip(paths, zip(*pairs, strict=True), strict=True):
        file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return paths


def write_corrections(store: Path, base: Path, pairs: Pairs) -> None:
    """Write a store with the pairs as corrections of the model's outputs."""
    store.unlink(missing_ok=True)
    outputs = translate(base, [src for src, _ in pairs])
    with TranslationMemory(store) as memory:
        memory.add(
            Unit(src, tgt, SRC, TGT, model="base", output=output)
            for (src, tgt), output in zip(pairs, outputs, strict=True)
        )


def translate(model: Path, sources: list[str]) -> list[str]:
    """Translate with beam search."""
    translator = attendo.Translator.load(model, device="cpu")
    return [str(one) for one in translator.translate(sources, split="never")]


def score(model: Path, pairs: Pairs) -> dict[str, float]:
    """Return BLEU (13a) and chrF."""
    outputs = translate(model, [src for src, _ in pairs])
    references = [tgt for _, tgt in pairs]
    return {
        "bleu": round(bleu(outputs, references).score, 2),
        "chrf": round(chrf(outputs, references), 2),
    }


if __name__ == "__main__":
    main()
