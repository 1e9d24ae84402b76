"""How many translations a minimum confidence keeps, and how many of them are right.

Run: python -m benchmarks.min_confidence MODEL --src test.ko --ref test.en [--min-chrf 50]

Without `--min-chrf` a translation is right if it equals the reference.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from attendo.evaluation.quality import sentence_chrf
from attendo.text.lines import read_lines
from attendo.translator import Translator

MINIMA = (0.0, 0.5, 0.8, 0.9, 0.95, 0.98)


def main() -> None:
    """Print a line for each minimum."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--min-chrf", type=float)
    arguments = parser.parse_args()
    references = list(read_lines(arguments.ref))
    translator = Translator.load(arguments.model)
    translations = translator.translate(
        list(read_lines(arguments.src)), confidence=True, retry=True
    )
    codes = [getattr(note, "code", "") for one in translations for note in one.notes]
    print({code: codes.count(code) for code in ("retried", "loop", "empty_output", "untranslated")})
    if arguments.min_chrf is None:
        right = [str(one) == ref for one, ref in zip(translations, references, strict=True)]
    else:
        right = list(sentence_chrf(translations, references) >= arguments.min_chrf)
    for minimum in MINIMA:
        kept = [
            is_right
            for one, is_right in zip(translations, right, strict=True)
            if one.confidence is not None and (one.confidence.quality or 0.0) >= minimum
        ]
        print(f"{minimum}: {len(kept)} kept, {sum(kept) / max(len(kept), 1):.1%} right")


if __name__ == "__main__":
    main()
