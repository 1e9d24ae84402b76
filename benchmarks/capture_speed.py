"""Time to capture the inspection record of one sentence with a base model. Goal: 2 s on two cores.

The weights are random, so the translation is forced to the length of its source. Times are medians,
after one warm-up round.

Run: python benchmarks/capture_speed.py [--preset base] [--tokens 30] [--beam 4]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import torch

from attendo.bundle import build_model
from attendo.core.seeding import seed_everything
from attendo.data.tokenizer_training import train_tokenizer
from attendo.inspection import capture
from attendo.model.presets import get_preset
from attendo.text.tokenizer import Tokenizer, TokenizerConfig
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Callable

TARGET_SECONDS = 2.0
VOCAB = 8_000
NUM_LINES = 8_000
LETTERS = "abdefghiklmnoprstuvz"


def make_tokenizer(rng: Random) -> Tokenizer:
    """Train a tokenizer with the wanted vocabulary size on random words."""
    words = ["".join(rng.choices(LETTERS, k=rng.randint(2, 7))) for _ in range(20_000)]
    with tempfile.TemporaryDirectory(prefix="attendo-capture-") as name:
        paths = (Path(name) / "src.txt", Path(name) / "tgt.txt")
        for path in paths:
            lines = (" ".join(rng.choices(words, k=8)) for _ in range(NUM_LINES))
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        config = TokenizerConfig(vocab_size=VOCAB)
        return train_tokenizer(*paths, config, num_pairs=NUM_LINES, seed=1)


def make_text(tokenizer: Tokenizer, num_tokens: int, rng: Random) -> str:
    """Return a random sentence of `num_tokens` tokens."""
    text = ""
    while len(tokenizer.encode_src([text])[0]) < num_tokens:
        text += " " + "".join(rng.choices(LETTERS, k=3))
    return text.strip()


def time_call(run: Callable[[], object], rounds: int) -> float:
    """Return the median seconds of some calls, after one warm-up call."""
    times = []
    for _ in range(rounds + 1):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


def main() -> None:
    """Print the seconds of the translation alone, of the record, and of its JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="base")
    parser.add_argument("--tokens", type=int, default=30)
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    seed_everything(1)
    torch.set_num_threads(options.threads)
    rng = Random(1)  # noqa: S311 - not for secrets
    tokenizer = make_tokenizer(rng)
    model = build_model("transformer", get_preset(options.preset).options, tokenizer)
    translator = Translator(model.eval(), tokenizer)
    text = make_text(tokenizer, options.tokens, rng)
    length = len(tokenizer.encode_src([text])[0])
    search = {"beam_size": options.beam, "min_length": length - 1, "max_length": length}
    record = capture(translator, text, **search)

    seconds = {
        "translate": time_call(lambda: translator.translate([text], **search), options.rounds),
        "capture": time_call(lambda: capture(translator, text, **search), options.rounds),
        "to_json": time_call(record.to_json, options.rounds),
    }
    num_src, num_tgt = len(record.src["tokens"]), len(record.tgt["tokens"])
    print(
        f"{options.preset}, vocabulary {tokenizer.src_vocab_size:,}, {num_src} + {num_tgt} tokens, "
        f"beam {options.beam}, {options.threads} threads, torch {torch.__version__}:"
    )
    for name, value in seconds.items():
        print(f"  {name:10s} {value:6.3f} s")
    verdict = "within" if seconds["capture"] < TARGET_SECONDS else "MISSES"
    megabytes = len(record.to_json().encode()) / 1e6
    print(f"  {verdict} the target of {TARGET_SECONDS} s; the record has {megabytes:.2f} MB")


if __name__ == "__main__":
    main()
