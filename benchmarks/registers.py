"""How well a label sets the register of Korean translations, on generated sentences.

Every Korean sentence of the generator is plain. Half of the training targets are made polite by
their endings, so that no source shows the register.

Run: python -m benchmarks.registers --out runs/registers
     attendo train --src runs/registers/train.en --tgt runs/registers/train.ko --src-lang en \
         --tgt-lang ko --out runs/registers/model --preset tiny --steps 2300 \
         --set model.d_model=128 --set model.d_ff=512 --set model.num_layers=2 \
         --set data.label_rule=ko-register
     python -m benchmarks.registers --out runs/registers --model runs/registers/model
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path

from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.labels import korean_register
from attendo.text.lines import read_lines
from attendo.translator import Translator

NUM_PAIRS, NUM_TEST = 24_000, 500
FIRST_SYLLABLE, NUM_FINALS = 0xAC00, 28
FINAL_N, FINAL_B = 4, 17
PLAIN_END, POLITE_END = "다.", "니다."


def make_polite(text: str) -> str | None:
    """Return a plain sentence with a polite ending; None if it does not end in -다.

    >>> make_polite("나는 학생이다."), make_polite("그는 소를 그렸다."), make_polite("소가 온다.")
    ('나는 학생입니다.', '그는 소를 그렸습니다.', '소가 옵니다.')
    """
    if not text.endswith(PLAIN_END):
        return None
    stem = text[: -len(PLAIN_END)]
    if stem.endswith("는"):
        return stem[:-1] + "습" + POLITE_END
    final = (ord(stem[-1]) - FIRST_SYLLABLE) % NUM_FINALS
    if final in (0, FINAL_N):  # the syllable ends in a vowel, or in the ending -ㄴ다
        return stem[:-1] + chr(ord(stem[-1]) - final + FINAL_B) + POLITE_END
    return stem + "습" + POLITE_END


def write_corpus(folder: Path) -> None:
    """Write train, and a test set with both registers."""
    rng = random.Random(1)  # noqa: S311
    rows = []
    for pair in synthesize_pairs(NUM_PAIRS, seed=7):
        polite = make_polite(pair.ko)
        if polite is not None:
            rows.append((pair.en, pair.ko, polite))
    test, train = rows[:NUM_TEST], rows[NUM_TEST:]
    chosen = [(en, rng.choice((plain, polite))) for en, plain, polite in train]
    files = {
        "train.en": [en for en, _ in chosen],
        "train.ko": [ko for _, ko in chosen],
        "test.en": [en for en, _, _ in test],
        "test.plain": [plain for _, plain, _ in test],
        "test.polite": [polite for _, _, polite in test],
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def measure(folder: Path, model: Path) -> None:
    """Print the registers and the exact translations for each label."""
    translator = Translator.load(model)
    sources = list(read_lines(folder / "test.en"))
    references = {name: list(read_lines(folder / f"test.{name}")) for name in translator.labels}
    for label in (*translator.labels, None):
        outputs = translator.translate(sources, label=label)
        registers = Counter(str(korean_register(str(one))) for one in outputs)
        right = {
            name: sum(map(str.__eq__, map(str, outputs), lines))
            for name, lines in references.items()
        }
        print(f"{label}: {dict(registers)}; equal to the reference: {right}")


def main() -> None:
    """Write the corpus, or measure a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    arguments = parser.parse_args()
    if arguments.model is None:
        write_corpus(arguments.out)
    else:
        measure(arguments.out, arguments.model)


if __name__ == "__main__":
    main()
