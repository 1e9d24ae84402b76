"""The TypeScript of the web page against Python: the same ids, and the BLEU of 8-bit weights.

Run: python -m benchmarks.web_parity --data ../shared/data --model runs/quickstart/ko-en
Needs Node.js and the packages of the front end (make web).
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import tempfile
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sentencepiece

from attendo.bundle import load_bundle
from attendo.evaluation.bleu import bleu
from attendo.interop.onnx.export import write
from attendo.interop.onnx.quantize import quantize, store_float16
from attendo.synthetic.everyday import synthesize_pairs
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Compare = Callable[..., dict[str, Any]]

FRONTEND = Path(__file__).resolve().parents[1] / "frontend"
LINES_PER_LANGUAGE, NUM_SENTENCES, VOCAB_SIZE = 5_000, 500, 8_000
FILES = (
    "docs-en-ko/train.ko.gz",
    "debian-l10n-en-de/train.en.gz",
    "europarl-en-de/train.1.de.gz",
    "tatoeba-en-fr/train.fr.gz",
)


@contextmanager
def open_package(folder: Path) -> Iterator[Compare]:
    """Yield a function that sends a request to the package, run by Node.js."""
    node, script = str(FRONTEND / "with_node.sh"), FRONTEND / "node_modules/.web-parity.mjs"
    options = ("--bundle", "--platform=node", "--format=esm", "--external:onnxruntime-web")
    entry = "packages/attendo-web/compare.ts"
    bundled = [node, "npx", "esbuild", entry, *options, f"--outfile={script}"]
    subprocess.run(bundled, check=True, capture_output=True)

    def run(**request: object) -> dict[str, Any]:
        given, answer = folder / "request.json", folder / "answer.json"
        empty: dict[str, object] = {
            "tokenizers": [],
            "segments": {"texts": [], "limits": []},
            "model": None,
        }
        request = {**empty, "sentences": [], "beamSizes": [], **request}
        given.write_text(json.dumps(request), encoding="utf-8")
        subprocess.run([node, "node", str(script), str(given), str(answer)], check=True)
        answered: dict[str, Any] = json.loads(answer.read_text("utf-8"))
        return answered

    try:
        yield run
    finally:
        script.unlink()


def read_corpus(data: Path) -> list[str]:
    """Return lines in four languages, without empty ones."""
    lines: list[str] = []
    for name in FILES:
        with gzip.open(data / name, "rt", encoding="utf-8") as file:
            lines += islice(
                (line.rstrip("\n") for line in file if line.strip()), LINES_PER_LANGUAGE
            )
    return lines


def compare_tokenizers(compare: Compare, data: Path, folder: Path) -> None:
    """Print for how many lines the ids are SentencePiece's."""
    lines = read_corpus(data)
    for kind in ("bpe", "unigram"):
        for has_bytes in (False, True):
            prefix = folder / f"{kind}-{has_bytes}"
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=iter(lines),
                model_prefix=str(prefix),
                model_type=kind,
                vocab_size=VOCAB_SIZE,
                character_coverage=0.995,  # some characters are unknown, or bytes
                normalization_rule_name="nmt_nfkc",
                byte_fallback=has_bytes,
                minloglevel=2,
            )
            model = f"{prefix}.model"
            ids = sentencepiece.SentencePieceProcessor(model_file=model).encode(lines)
            found = compare(tokenizers=[{"model": model, "texts": lines}])["tokenizers"][0]["ids"]
            same = sum(map(list.__eq__, ids, found))
            fallback = "byte fallback" if has_bytes else "no byte fallback"
            print(f"{kind}, nmt_nfkc, {fallback}: the same ids for {same} of {len(lines)} lines")


def compare_searches(compare: Compare, model: Path, folder: Path) -> None:
    """Print for how many sentences the ids are Python's, and BLEU for each precision."""
    pairs = list(synthesize_pairs(NUM_SENTENCES, seed=11))
    sources, references = [pair.ko for pair in pairs], [pair.en for pair in pairs]
    bundle = load_bundle(model)
    translator = Translator.load(model)
    own = {
        beam: translator.translate(sources, beam_size=beam, split="never", copy_spans="never")
        for beam in (1, 4)
    }
    for precision in ("float32", "float16", "int8"):
        exported = folder / precision
        exported.mkdir()
        write(bundle, exported, has_attention=True, shares_projection=precision != "int8")
        if precision != "float32":
            {"int8": quantize, "float16": store_float16}[precision](exported)
        answer = compare(model=str(exported), sentences=sources, beamSizes=[1, 4])
        for (beam, expected), results in zip(own.items(), answer["searches"], strict=True):
            ids = [one["hypotheses"][0]["ids"] for one in results]
            same = sum(found == one.ids for found, one in zip(ids, expected, strict=True))
            found_bleu = bleu(bundle.tokenizer.decode_tgt(ids), references).score
            python_bleu = bleu(list(map(str, expected)), references).score
            print(
                f"{precision}, beam {beam}: the same ids for {same} of {len(sources)} sentences; "
                f"BLEU {found_bleu:.2f}, Python {python_bleu:.2f}"
            )


def main() -> None:
    """Run both comparisons."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--model", type=Path, default=Path("runs/quickstart/ko-en"))
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, open_package(Path(name)) as compare:
        compare_tokenizers(compare, given.data, Path(name))
        compare_searches(compare, given.model, Path(name))


if __name__ == "__main__":
    main()
