"""Train a translator on the built-in corpus, score it on unseen combinations, and try it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import ConfigError, suggest
from attendo.core.files import write_atomically
from attendo.core.message import message
from attendo.evaluation.bleu import Bleu, bleu
from attendo.synthetic.everyday import LESSON_PAIRS, KoreanEnglishPair, synthesize_splits
from attendo.tasks.config import RunConfig

if TYPE_CHECKING:
    from attendo.synthetic.everyday import Splits
    from attendo.tasks.run import FinishedRun
    from attendo.training.progress import Reporter
    from attendo.translator import Translation
    from attendo.translator.quality import QualityTable

DIRECTIONS = ("ko-en", "en-ko")
NUM_TRAIN = 20_000
SETTINGS: dict[str, Any] = {
    "model": {"preset": "tiny", "num_layers": 2, "dropout": 0.1},
    "train": {
        "max_steps": 900,
        "batch_tokens": 2048,
        "warmup_steps": 300,
        "save_every": 75,
        "validate_every": 300,
        "keep_last": 12,
        "average_checkpoints": 3,
        "bleu_sentences": 100,
    },
}
"""The same as `configs/sample.toml`. All checkpoints are kept, for lesson 17 to show them."""


class QuickstartResult(NamedTuple):
    """The run, its score on the test set, and some translations."""

    run: FinishedRun
    bleu: Bleu
    num_test: int
    examples: list[tuple[str, Translation, str]]
    """Source, translation with its confidence, and reference."""
    quality: QualityTable | None
    """What the confidence means."""


def quickstart(
    direction: str,
    out: str | Path,
    *,
    settings: dict[str, Any] | None = None,
    force: bool = False,
    reporter: Reporter | None = None,
) -> QuickstartResult:
    """Train a translator between Korean and English on the built-in corpus, and try it."""
    if direction not in DIRECTIONS:
        hint = suggest(direction, DIRECTIONS)
        raise ConfigError(message("no direction '{direction}'", direction=direction), hint=hint)
    from attendo.tasks.run import train_run
    from attendo.translator import Translator

    src, tgt = direction.split("-")
    directory = Path(out)
    splits = synthesize_splits(train=NUM_TRAIN)
    corpus = write_embedded_corpus(splits, directory / "data", src, tgt)
    run_settings = settings or SETTINGS
    config = RunConfig(**{"data": corpus, **run_settings})
    run = train_run(config, directory / direction, force=force, reporter=reporter)
    translator = Translator.load(run.model_dir)
    test = [_orient(pair, src) for pair in splits.test]
    outputs = translator.translate([source for source, _ in test], beam_size=1)
    lesson_pairs = [_orient(pair, src) for pair in LESSON_PAIRS]
    example_pairs = [*lesson_pairs, *test[:4]]
    example_outputs = translator.translate(
        [source for source, _ in example_pairs], beam_size=1, confidence=True
    )
    return QuickstartResult(
        run=run,
        bleu=bleu(outputs, [reference for _, reference in test]),
        num_test=len(test),
        examples=[
            (source, output, reference)
            for (source, reference), output in zip(example_pairs, example_outputs, strict=True)
        ],
        quality=translator.quality,
    )


def write_embedded_corpus(splits: Splits, directory: Path, src: str, tgt: str) -> dict[str, Any]:
    """Write the built-in corpus as plain text files, and return the settings that read them."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, pairs in splits._asdict().items():
        for language in ("ko", "en"):
            text = "".join(f"{getattr(pair, language)}\n" for pair in pairs)
            write_atomically(directory / f"{name}.{language}", text)
    files = {
        name: {"src": str(directory / f"{name}.{src}"), "tgt": str(directory / f"{name}.{tgt}")}
        for name in ("train", "dev")
    }
    return {
        "corpora": [files["train"]],
        "dev": files["dev"],
        "src_lang": src,
        "tgt_lang": tgt,
        "tokenizer": {"vocab_size": 2000, "byte_fallback": False},
    }


def _orient(pair: KoreanEnglishPair, src: str) -> tuple[str, str]:
    return (pair.ko, pair.en) if src == "ko" else (pair.en, pair.ko)
