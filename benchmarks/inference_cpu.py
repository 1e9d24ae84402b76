"""Translation speed on a CPU: Attendo in PyTorch, CTranslate2 as our backend, and other libraries.

One model with random weights (the paper's base, 20 tokens in and 20 out, the end symbol suppressed)
is exported to each library. All systems decode in one process, in alternating rounds, so that noise
affects all alike. Each ratio is the median over the rounds. The outputs are compared with ours.
Goals: CTranslate2 as a backend of `Translator` at least 0.95 times as fast as called directly for
the same result (text and score; one row shows the speed without scores), and our own decoder 1.3
times as fast as Hugging Face's `generate`.

With --model and --texts a trained model decodes real sentences until the end symbol.

Run: python -m benchmarks.inference_cpu [--threads 2] [--rounds 5] [--batch 64] [--only attendo]
     [--model runs/en-de --texts test.en] [--out results.json]
"""

from __future__ import annotations

import argparse
import json
import runpy
import statistics
import tempfile
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from rich.console import Console

from attendo import Transformer
from attendo.bundle import Bundle, load_bundle
from attendo.core.errors import AttendoError
from attendo.core.files import write_atomically
from attendo.core.seeding import seed_everything
from attendo.data.tokenizer_training import train_tokenizer
from attendo.decoding.options import DecodingOptions
from attendo.interop.export import FORMATS
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.foreign_tokenizer import ForeignSymbols, ForeignTokenizer, ForeignVocabulary
from attendo.text.lines import read_lines
from attendo.text.tokenizer import END_ID, PAD_ID, TokenizerConfig
from attendo.translator.backends.base import Backend, TranslationItem
from attendo.translator.backends.ctranslate2.backend import CTranslate2Backend
from attendo.translator.backends.pytorch import PyTorchBackend
from benchmarks.sheets import Sheet, to_rich

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Rows = list[list[int]]
    Run = Callable[[Rows, int], Rows]

TARGETS = {("our CTranslate2", "CTranslate2"): 0.95, ("attendo", "Hugging Face"): 1.3}
"""The parts of the compared names before the colon, and the ratio to reach."""
SUPPRESSED_BIAS = -1000.0
EXAMPLE = Path(__file__).parent.parent / "examples" / "onnx_translate.py"
NUM_UNBATCHED = 4
"""Number of sentences per round that are translated one by one."""


class System(NamedTuple):
    """A library or backend that decodes."""

    name: str
    run: Run


class Workload(NamedTuple):
    """The model and the sources."""

    bundle: Bundle
    sources: Rows
    max_extra_tokens: int
    max_length: int | None
    """Length of every translation, if fixed."""


@dataclass
class Figures:
    """The seconds of each round of each system, for one size of batch and beam."""

    batch: int
    beam_size: int
    num_sentences: int
    seconds: dict[str, list[float]] = field(default_factory=dict)
    same: dict[str, int] = field(default_factory=dict)
    """Number of sentences with the same output as ours."""

    def speed(self, name: str) -> float:
        """Return sentences per second in the median round."""
        return self.num_sentences / statistics.median(self.seconds[name])

    def ratio(self, name: str, other: str) -> float:
        """Return how many times as fast one system is as the other, as a median over rounds."""
        pairs = zip(self.seconds[other], self.seconds[name], strict=True)
        return statistics.median(slow / quick for slow, quick in pairs)


def random_workload(*, preset: str, vocab_size: int, length: int, count: int) -> Workload:
    """Return a model with random weights that never outputs a special symbol, and sources."""
    seed_everything(1)
    model = Transformer.from_preset(preset, vocab_size=vocab_size, output_bias=True).eval()
    model.output.bias.data.zero_()[: END_ID + 1] = SUPPRESSED_BIAS
    random_ids = torch.randint(END_ID + 1, vocab_size, (count, length - 1))
    sources = [[*row, END_ID] for row in random_ids.tolist()]
    return Workload(Bundle(model, make_tokenizer(vocab_size), {}), sources, 0, length)


def make_tokenizer(vocab_size: int) -> ForeignTokenizer:
    """Return a tokenizer with any vocabulary size, based on a small SentencePiece model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "text"
        path.write_text(
            "\n".join(pair.en for pair in synthesize_pairs(200, seed=1)), encoding="utf-8"
        )
        own = train_tokenizer(path, path, TokenizerConfig(vocab_size=400), num_pairs=200, seed=1)
    pieces = ["<pad>", "<unk>", "<s>", "</s>", *(f"w{n}" for n in range(4, vocab_size))]
    return ForeignTokenizer(own.models, [ForeignVocabulary(pieces, ForeignSymbols(0, 1, 2, 3))])


def read_workload(folder: Path, texts: Path, count: int) -> Workload:
    """Return a trained model and the first lines of a file."""
    bundle = load_bundle(folder)
    lines = [line for _, line in zip(range(count), read_lines(texts), strict=False)]
    sources = [row for row in bundle.tokenizer.encode_src(lines) if len(row) > 1]
    return Workload(bundle, sources, DecodingOptions().max_extra_tokens, None)


def load_systems(work: Workload, work_dir: Path, threads: int) -> Iterator[System | str]:
    """Export the model to each library and load it; yield a message if that is impossible."""
    yield System("attendo: PyTorch", run_backend(PyTorchBackend(work.bundle.model), work))
    loaders = {"ctranslate2": load_ctranslate2, "hf-marian": load_marian, "onnx": load_onnx}
    for name, loader in loaders.items():
        folder = work_dir / name
        folder.mkdir()
        try:
            module = __import__(FORMATS[name].module, fromlist=["write"])
            if reasons := module.unsupported_reasons(work.bundle):
                yield f"{name} cannot run this model: {'; '.join(reasons)}"
                continue
            module.write(work.bundle, folder)
            yield from loader(work, folder, threads)
        except (ImportError, AttendoError) as error:
            yield f"{name} is left out: {error}"


def run_backend(backend: Backend, work: Workload) -> Run:
    """Decode as `Translator.translate` does."""

    def run(src: Rows, beam_size: int) -> Rows:
        options = DecodingOptions(beam_size=beam_size, max_extra_tokens=work.max_extra_tokens)
        found = backend.search([TranslationItem("", ids) for ids in src], options)
        return [one.hypotheses[0].ids for one in found]

    return run


def load_ctranslate2(work: Workload, folder: Path, threads: int) -> Iterator[System]:
    """Yield CTranslate2 as our backend and called directly, in each precision."""
    import ctranslate2  # type: ignore[import-untyped]

    tokenizer = work.bundle.tokenizer
    ids = {p: n for n, p in enumerate(tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size)))}
    for precision in ("float32", "int8"):
        runner = ctranslate2.Translator(str(folder), compute_type=precision, intra_threads=threads)

        def run(src: Rows, beam_size: int, runner: Any = runner, *, scores: bool = True) -> Rows:
            found = runner.translate_batch(
                [tokenizer.src_pieces(row[:-1]) for row in src],
                beam_size=beam_size,
                max_decoding_length=max(map(len, src)) + work.max_extra_tokens,
                return_scores=scores,
            )
            return [[ids[piece] for piece in one.hypotheses[0]] for one in found]

        backend = CTranslate2Backend(folder, precision=precision, load_native=_no_native_backend)
        yield System(f"CTranslate2: {precision}", run)
        yield System(f"CTranslate2 without scores: {precision}", partial(run, scores=False))
        yield System(f"our CTranslate2: {precision}", run_backend(backend, work))
    auto = CTranslate2Backend(folder, load_native=_no_native_backend)
    yield System("our CTranslate2: auto", run_backend(auto, work))


def _no_native_backend() -> PyTorchBackend:
    raise AssertionError("the native backend is not needed here")


def load_marian(work: Workload, folder: Path, _threads: int) -> Iterator[System]:
    """Yield `generate` of Hugging Face."""
    from attendo.interop.marian.model_folder import load_reference

    peer = load_reference(folder)

    @torch.inference_mode()
    def run(src: Rows, beam_size: int) -> Rows:
        ids, mask = peer._encode_sources(src)
        found = peer.model.generate(
            input_ids=ids,
            attention_mask=mask,
            num_beams=beam_size,
            max_length=max(map(len, src)) + work.max_extra_tokens + 1,  # the start symbol counts
            bad_words_ids=None,
            forced_eos_token_id=None,
            do_sample=False,
        )
        rows = [peer._to_native_ids(row) for row in found[:, 1:].tolist()]
        return [[number for number in row if number not in (END_ID, PAD_ID)] for row in rows]

    yield System("Hugging Face: generate", run)


def load_onnx(work: Workload, folder: Path, threads: int) -> Iterator[System]:
    """Yield ONNX Runtime with the search of examples/onnx_translate.py."""
    import onnxruntime  # type: ignore[import-untyped]

    example = runpy.run_path(str(EXAMPLE))
    info = json.loads((folder / "onnx.json").read_text(encoding="utf-8"))
    info["decoding"]["max_extra_tokens"] = work.max_extra_tokens
    model = example["Model"](folder, info)
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    for name in ("encoder", "decoder"):
        session = onnxruntime.InferenceSession(
            folder / f"{name}.onnx", settings, providers=["CPUExecutionProvider"]
        )
        setattr(model, name, session)
    yield System("ONNX Runtime: our example", lambda src, beam: example["search"](model, src, beam))


def time_all(
    systems: list[System], sources: Rows, *, batch: int, beam_size: int, rounds: int
) -> Figures:
    """Decode the same sentences with every system, alternating; the first round is a warm-up."""
    chosen = sources[: batch if batch > 1 else NUM_UNBATCHED]
    batches = [chosen[first : first + batch] for first in range(0, len(chosen), batch)]
    found = Figures(batch, beam_size, len(chosen), {one.name: [] for one in systems})
    outputs: dict[str, Rows] = {}
    for number in range(1 + rounds):
        for one in systems[number % len(systems) :] + systems[: number % len(systems)]:
            begin = time.perf_counter()
            outputs[one.name] = [
                row for rows_of_batch in batches for row in one.run(rows_of_batch, beam_size)
            ]
            if number:
                found.seconds[one.name].append(time.perf_counter() - begin)
    ours = outputs[systems[0].name]
    for one in systems:
        found.same[one.name] = sum(a == b for a, b in zip(ours, outputs[one.name], strict=True))
    return found


def compare(found: Figures) -> Iterator[tuple[str, str, float, float]]:
    """Yield the pairs that have a target: names, ratio, target."""
    for (one, other), target in TARGETS.items():
        for name in found.seconds:
            kind, _, rest = name.partition(":")
            peers = [peer for peer in found.seconds if peer.partition(":")[0] == other]
            same = [peer for peer in peers if peer.partition(":")[2] == rest]
            for peer in same or (peers if len(peers) == 1 else []):
                if kind == one:
                    yield name, peer, found.ratio(name, peer), target


def to_sheet(found: Figures, work: Workload) -> Sheet:
    """Return the table; ratios are relative to Hugging Face if it runs, else to the first."""
    first = next(iter(found.seconds))
    base = next((name for name in found.seconds if name.startswith("Hugging")), first)
    rows = [
        [name, f"{found.speed(name):.1f}", f"{found.ratio(name, base):.2f}",
         f"{found.same[name]} of {found.num_sentences}"]
        for name in found.seconds
    ]  # fmt: skip
    way = "greedy" if found.beam_size == 1 else f"beam {found.beam_size}"
    out = f"{work.max_length} tokens out" if work.max_length else "until the end symbol"
    lines = [
        f"{name} / {peer}: {ratio:.2f}, "
        f"target {target:g}: {'reached' if ratio >= target else 'MISSED'}"
        for name, peer, ratio, target in compare(found)
    ]
    title = f"batch {found.batch}, {way}, {out}"
    return Sheet(
        title, "\n".join(lines), ["system", "sentences/s", f"x {base}", "same output"], rows
    )


def main() -> None:
    """Time every system at each batch size, with greedy and beam search."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="base")
    parser.add_argument("--vocab-size", type=int, default=37_000)
    parser.add_argument("--length", type=int, default=20, help="tokens in, and tokens out")
    parser.add_argument("--batch", type=int, nargs="+", default=[64, 1])
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument(
        "--only", nargs="+", default=[], help="only systems whose name contains one of these"
    )
    parser.add_argument("--model", type=Path, help="a trained model instead of a random one")
    parser.add_argument("--texts", type=Path, help="its sentences, one per line")
    parser.add_argument("--out", type=Path, help="write the results here (JSON)")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    count, console = max([*options.batch, NUM_UNBATCHED]), Console()
    if options.model:
        work = read_workload(options.model, options.texts, count)
    else:
        work = random_workload(preset=options.preset, vocab_size=options.vocab_size,
                             length=options.length, count=count)  # fmt: skip
    results = []
    with tempfile.TemporaryDirectory(prefix="attendo-inference-") as work_dir:
        systems = []
        for one in load_systems(work, Path(work_dir), options.threads):
            if isinstance(one, str):
                console.print(one, style="yellow")
            elif not options.only or any(word in one.name for word in options.only):
                systems.append(one)
        for batch in options.batch:
            for beam_size in options.beam:
                found = time_all(systems, work.sources, batch=batch, beam_size=beam_size,
                                 rounds=options.rounds)  # fmt: skip
                console.print(to_rich(to_sheet(found, work)))
                results.append({**found.__dict__, "threads": options.threads})
                if options.out:
                    write_atomically(options.out, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
