"""Speed and profile of Attendo's decoder, and its agreement with the reference decoder.

A base model with random weights translates sources of 32 tokens into targets of 32: the end symbol
is suppressed, so that every decoder does the same work. The outputs are compared before timing,
over the whole batch, in float32 and then in the precision that is timed. With random weights near
ties are frequent: a few sentences of hundreds may differ in float32, many in bfloat16. Rounds
alternate and the best of each counts, so that noise affects all decoders alike; the first search,
which compiles kernels on a GPU, is reported separately. `attendo bench decode` is a shorter form
that compares all installed decoders.

Goals on an H200: 100 sentences/s one by one (greedy), 8,000 at 512 (beam 4). On two CPU
cores: 1.3 times as fast as `generate`.

Run: python benchmarks/decoding_speed.py [--device cuda] [--peers] [--profile] [--no-graphs]
"""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING

import torch
from torch.profiler import ProfilerActivity, profile

from attendo.bench.config import ComputePrecision, DecodingBenchConfig
from attendo.bench.decoders import AttendoDecoder, Case, MarianDecoder, ReferenceDecoder
from attendo.bench.decoding import sample_ids
from attendo.bench.training import perturb_biases_and_norms
from attendo.core.seeding import seed_everything
from attendo.decoding.static.pool import GRAPHS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.bench.decoders import Decoder

OURS = "attendo"


def load_decoders(config: DecodingBenchConfig, options: argparse.Namespace) -> dict[str, Decoder]:
    """Return all decoders, with the same random weights."""
    seed_everything(config.seed)
    model = perturb_biases_and_norms(config.build_model()).eval()
    decoders: dict[str, Decoder] = {OURS: AttendoDecoder(model)}
    if not options.no_reference:
        decoders["reference"] = ReferenceDecoder(model)
    if options.peers:
        decoders["Hugging Face"] = MarianDecoder(model)
    return decoders


def compare(decoders: dict[str, Decoder], case: Case, config: DecodingBenchConfig) -> None:
    """Print for how many sentences each decoder agrees with Attendo."""
    src_ids = sample_ids(config, case.shape, case.shape.num_sentences)
    outputs = {
        name: one.decode(src_ids, case, suppress_special=True) for name, one in decoders.items()
    }
    outputs["attendo again"] = decoders[OURS].decode(src_ids, case)
    for name, texts in outputs.items():
        if name != OURS:
            same = sum(one == other for one, other in zip(texts, outputs[OURS], strict=True))
            print(f"  {name} agrees with attendo on {same} of {len(texts)}", flush=True)


def measure(
    decoders: dict[str, Decoder], case: Case, config: DecodingBenchConfig, rounds: int
) -> None:
    """Print the speed of each decoder."""
    src_ids = sample_ids(config, case.shape, case.shape.num_sentences)

    def time_one(name: str) -> float:
        return time_call(lambda: decoders[name].decode(src_ids, case))

    first = [f"{name} {time_one(name):.2f} s" for name in decoders]
    print(f"  first search: {', '.join(first)}", flush=True)
    seconds = [{name: time_one(name) for name in decoders} for _ in range(1 + rounds)][1:]
    best = {name: min(turn[name] for turn in seconds) for name in decoders}
    for name, best_seconds in best.items():
        speed = case.shape.num_sentences / best_seconds
        step_ms = best_seconds / case.shape.tgt_length * 1000
        ratio = (
            f"   attendo is {best_seconds / best[OURS]:.2f} times as fast" if name != OURS else ""
        )
        print(f"  {name:14s} {speed:10.1f} sentences/s {step_ms:9.3f} ms/step{ratio}", flush=True)


def synchronize() -> None:
    """Wait for the GPU, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def time_call(run: Callable[[], object]) -> float:
    """Return the seconds of one call."""
    synchronize()
    begin = time.perf_counter()
    run()
    synchronize()
    return time.perf_counter() - begin


def show_profile(run: Callable[[], object]) -> None:
    """Print the profile of one batch."""
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as recorded:
        run()
        synchronize()
    key = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    averages = recorded.key_averages()
    print(averages.table(sort_by=key, row_limit=30, max_name_column_width=70), flush=True)


def main() -> None:
    """Compare the outputs, then measure the speed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="base")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="auto", help="auto, float32 or bfloat16")
    parser.add_argument("--batch", type=int, nargs="+", help="1 and 512, or 64 on a CPU")
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    parser.add_argument(
        "--peers", action="store_true", help="compare with Hugging Face, if installed"
    )
    parser.add_argument("--no-reference", action="store_true", help="skip the reference decoder")
    parser.add_argument("--no-compare", action="store_true", help="skip the comparison of outputs")
    parser.add_argument("--no-graphs", action="store_true", help="disable CUDA graphs")
    parser.add_argument("--profile", action="store_true", help="print a profile")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    if options.no_graphs:
        os.environ[GRAPHS_VARIABLE] = "0"
    config = DecodingBenchConfig(
        size=options.size, device=options.device, precision=options.precision
    )
    is_cuda = config.torch_device.type == "cuda"
    sizes = options.batch or ([1, 512] if is_cuda else [1, 64])
    length = options.length
    config = config.replace(batches=tuple(f"{size}x{length}+{length}" for size in sizes))
    machine = torch.cuda.get_device_name() if is_cuda else f"CPU, {options.threads} threads"
    print(
        f"{options.size}, vocabulary {config.actual_vocab_size:,}, {machine}, "
        f"torch {torch.__version__}",
        flush=True,
    )
    decoders = load_decoders(config, options)
    cases = [Case(shape, width) for shape in config.shapes for width in options.beam]
    exact = [] if options.no_compare else [ComputePrecision(torch.float32)]
    for kind in dict.fromkeys([*exact, config.compute_precision]):
        for decoder in decoders.values():
            decoder.move(config.torch_device, kind.dtype)
        for case in cases:
            print(f"{case.shape}, beam {case.beam_size}, {kind}:", flush=True)
            with kind.activate():
                if not options.no_compare:
                    compare(decoders, case, config)
                if kind == config.compute_precision:
                    measure(decoders, case, config, options.rounds)
                    if options.profile:
                        src_ids = sample_ids(config, case.shape, case.shape.num_sentences)
                        show_profile(lambda: decoders[OURS].decode(src_ids, case))  # noqa: B023


if __name__ == "__main__":
    main()
