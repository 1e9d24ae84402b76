"""What repairing fuzzy matches of a translation memory gains.

Run: python -m benchmarks.match_repair runs/quickstart/ko-en [--seed 6]

The texts are sentences of the quickstart whose translations have words of a domain that the model
does not write. The memory has the translations of other sentences, with these words.
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import NamedTuple

from attendo.evaluation.bleu import bleu, chrf
from attendo.memory.store import TranslationMemory
from attendo.memory.unit import Unit
from attendo.synthetic.everyday import synthesize_pairs
from attendo.translator import Translator
from attendo.translator.match_repair import repair_match

TERMS = {"princess": "royal lady", "student": "pupil", "soldiers": "troops", "movie": "film",
         "ate": "had", "market": "bazaar", "teacher": "tutor"}  # fmt: skip
TERM = re.compile(rf"\b({'|'.join(TERMS)})\b")
NUM_PAIRS, NUM_TEXTS = 60_000, 400


class Case(NamedTuple):
    """The translation of the model, that of the match, what was made of both, and the reference."""

    own: str
    match: str
    repaired: str | None
    reference: str


def use_terms(text: str) -> str:
    """Return a text with the words of the domain."""
    return TERM.sub(lambda found: TERMS[found[1]], text)


def measure(translator: Translator, seed: int) -> tuple[list[Case], int, float]:
    """Return the texts that have a match, the number of units, and the seconds per match."""
    pairs = [one for one in synthesize_pairs(NUM_PAIRS, seed=seed) if TERM.search(one.en)]
    random.Random(1).shuffle(pairs)  # noqa: S311 - no secret
    texts, rest = pairs[:NUM_TEXTS], pairs[NUM_TEXTS:]
    known = {one.ko for one in texts}
    units = [Unit(one.ko, use_terms(one.en), "ko", "en") for one in rest if one.ko not in known]
    translations = translator.translate([one.ko for one in texts])
    cases = []
    with TemporaryDirectory() as folder, TranslationMemory(Path(folder) / "memory.db") as memory:
        memory.add(units)
        matches = [memory.find_fuzzy(one.ko, "ko", "en", limit=1) for one in texts]
        start = perf_counter()
        for pair, own, found in zip(texts, translations, matches, strict=True):
            for match in found:
                unit = match.unit
                repaired = repair_match(translator, own, unit.source, unit.target)
                cases.append(Case(str(own), unit.target, repaired, use_terms(pair.en)))
    return cases, len(units), (perf_counter() - start) / max(len(cases), 1)


def describe(name: str, outputs: list[str], references: list[str]) -> str:
    """Return the scores of some outputs."""
    right = sum(map(str.__eq__, outputs, references))
    scores = f"BLEU {bleu(outputs, references).score:.1f}, chrF {chrf(outputs, references):.1f}"
    return f"{name}: {scores}, equal to the reference {right} of {len(outputs)}"


def main() -> None:
    """Print the scores of the matches that could be repaired, and of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--seed", type=int, default=6)
    arguments = parser.parse_args()
    translator = Translator.load(arguments.model, device="cpu")
    cases, num_units, seconds = measure(translator, arguments.seed)
    repaired = [one for one in cases if one.repaired is not None]
    counts = f"{len(cases)} of {NUM_TEXTS} texts have a match, {len(repaired)} of them repaired"
    print(f"{num_units} units; {counts}; {1000 * seconds:.0f} ms per match")
    references = [one.reference for one in repaired]
    print(describe("the model alone", [one.own for one in repaired], references))
    print(describe("the match", [one.match for one in repaired], references))
    print(describe("the match repaired", [one.repaired or "" for one in repaired], references))
    references = [one.reference for one in cases]
    print(describe("all matches, the model alone", [one.own for one in cases], references))
    print(
        describe(
            "all, repaired if possible", [one.repaired or one.own for one in cases], references
        )
    )


if __name__ == "__main__":
    main()
