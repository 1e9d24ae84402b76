"""How much 300 corrections of one domain help, and what they cost elsewhere (`attendo adapt`).

A small model is trained on short lines of message catalogues; dev are others of them. The
corrections are simulated: the references of lines of LibreOffice's help, which the model has never
seen, stand for what a person would have written. It is measured on other lines of that help and on
dev.

    python benchmarks/adaptation.py ../shared/data/debian-l10n-en-ko --out /tmp/adaptation

Prints one line of JSON per set.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
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

GENERAL, DOMAIN = "catalogue", "lohelp"
MAX_GENERAL_CHARACTERS, MAX_DOMAIN_CHARACTERS = 25, 40
NUM_GENERAL, NUM_DEV, NUM_UNSEEN = 25_000, 500, 500
VOCAB_SIZE = 4000
SEED = 1


def main() -> None:
    """Train, adapt and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--src", default="en")
    parser.add_argument("--tgt", default="ko")
    parser.add_argument("--budget", default="8m", help="of the base model")
    parser.add_argument("--corrections", type=int, default=300)
    parser.add_argument("--replay-share", type=float, default=0.9)
    parser.add_argument("--max-drop", type=float, default=0.5)
    parser.add_argument("--set", dest="settings", action="append", default=[])
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    lines = read_lines(args, GENERAL, MAX_GENERAL_CHARACTERS)
    dev, general = lines[:NUM_DEV], lines[NUM_DEV:][:NUM_GENERAL]
    domain = read_lines(args, DOMAIN, MAX_DOMAIN_CHARACTERS)
    known = {src for src, _ in (*general, *dev)}
    domain = [pair for pair in domain if pair[0] not in known]
    unseen, corrections = domain[:NUM_UNSEEN], domain[NUM_UNSEEN:][: args.corrections]
    train_files = write_lines(args.out / "general", general)
    dev_files = write_lines(args.out / "dev", dev)
    base = args.out / "base"
    start = perf_counter()
    attendo.train(
        out=base, src=train_files[0], tgt=train_files[1], dev_src=dev_files[0],
        dev_tgt=dev_files[1], src_lang=args.src, tgt_lang=args.tgt, preset="tiny",
        budget=args.budget, settings=[f"data.tokenizer.vocab_size={VOCAB_SIZE}"],
        threads=args.threads, device="cpu",
    )  # fmt: skip
    base_seconds = perf_counter() - start
    store = args.out / f"corrections-{args.corrections}.db"
    outputs = translate(base, [src for src, _ in corrections])
    with TranslationMemory(store) as memory:
        memory.add(
            Unit(src, tgt, args.src, args.tgt, model="base", output=output)
            for (src, tgt), output in zip(corrections, outputs, strict=True)
        )
    start = perf_counter()
    adapted = adapt_model(
        AdaptRequest(
            model=base, corrections=store, out=args.out / f"adapted-{args.corrections}",
            replay_share=args.replay_share, max_drop=args.max_drop, settings=args.settings,
            threads=args.threads, device="cpu",
        )
    )  # fmt: skip
    seconds = perf_counter() - start
    facts = {
        "base_seconds": round(base_seconds), "adapt_seconds": round(seconds),
        "corrections": args.corrections, "replay_share": args.replay_share,
        "settings": args.settings, "share": adapted.share, "published": not adapted.reasons,
    }  # fmt: skip
    print(json.dumps(facts))
    models = {"before": base, "after": adapted.model_dir}
    for name, pairs in (("unseen lines of the domain", unseen), ("dev", dev)):
        scores = {when: score(model, pairs) for when, model in models.items()}
        print(json.dumps({"set": name, "lines": len(pairs), **scores}))


def read_lines(args: argparse.Namespace, kind: str, max_characters: int) -> list[tuple[str, str]]:
    """Return the distinct short pairs of one kind, in random order."""
    names = (f"train.{args.src}.gz", f"train.{args.tgt}.gz", "train.src.gz")
    columns = [
        gzip.decompress((args.data / name).read_bytes()).decode().split("\n") for name in names
    ]
    pairs: dict[str, str] = {}
    for src, tgt, label in zip(*columns, strict=False):
        is_short = 0 < len(src) <= max_characters and 0 < len(tgt) <= max_characters
        if label == kind and is_short:
            pairs.setdefault(src, tgt)
    listed = list(pairs.items())
    random.Random(SEED).shuffle(listed)  # noqa: S311 - no secret
    return listed


def write_lines(path: Path, pairs: Iterable[tuple[str, str]]) -> tuple[Path, Path]:
    """Write the two sides of pairs."""
    paths = path.with_suffix(".src"), path.with_suffix(".tgt")
    for file, texts in zip(paths, zip(*pairs, strict=True), strict=True):
        file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return paths


def translate(model: Path, sources: list[str]) -> list[str]:
    """Translate with beam search."""
    translator = attendo.Translator.load(model, device="cpu")
    return [str(one) for one in translator.translate(sources, split="never")]


def score(model: Path, pairs: list[tuple[str, str]]) -> dict[str, float]:
    """Return BLEU (13a) and chrF."""
    outputs = translate(model, [src for src, _ in pairs])
    references = [tgt for _, tgt in pairs]
    return {
        "bleu": round(bleu(outputs, references).score, 2),
        "chrf": round(chrf(outputs, references), 2),
    }


if __name__ == "__main__":
    main()
