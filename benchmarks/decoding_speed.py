"""Sentences a second of our decoder, of its plain reference, and of Hugging Face's `generate`.

A base model with random weights turns sources of 32 tokens into targets of 32: the end symbol is
held back, so that every decoder does the same work. With `--peers` the same weights go into a
`MarianMTModel`. What each decoder says is compared before anything is timed, in float32: random
weights are sure of nothing, so a sentence or two of hundreds may turn at a near tie. Rounds
alternate and the best of each counts, so that a noisy machine hits all alike; the first search,
which on a GPU records its graphs, is told apart.

Goals on an H200 in bfloat16: 100 sentences/s one by one (greedy), 8,000 at 512 (beam 4). On two CPU
cores: 1.3 times as fast as `generate`.

Run: python benchmarks/decoding_speed.py [--device cuda] [--peers] [--profile] [--no-graphs]
"""

from __future__ import annotations

import argparse
import os
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

from attendo import Transformer
from attendo.core.seeding import seed_everything
from attendo.decoding.beam import beam
from attendo.decoding.fast import search_fast
from attendo.decoding.graphs import SWITCH
from attendo.decoding.options import DecodingOptions, Symbols
from attendo.decoding.walk import greedy

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    Said = list[list[int]]

VOCAB = 37_000
SYMBOLS = Symbols(start_id=2, end_id=3, pad_id=0, unk_id=1)
PARTS = {
    "self_attention.query": "self_attn.q_proj",
    "self_attention.key": "self_attn.k_proj",
    "self_attention.value": "self_attn.v_proj",
    "self_attention.output": "self_attn.out_proj",
    "self_add.norm": "self_attn_layer_norm",
    "cross_attention.query": "encoder_attn.q_proj",
    "cross_attention.key": "encoder_attn.k_proj",
    "cross_attention.value": "encoder_attn.v_proj",
    "cross_attention.output": "encoder_attn.out_proj",
    "cross_add.norm": "encoder_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "feed_forward_add.norm": "final_layer_norm",
}
"""The parts of a layer here and in Marian."""


class Work(NamedTuple):
    """One batch and how it is searched."""

    src_ids: Tensor
    options: DecodingOptions

    @property
    def name(self) -> str:
        """Say it in few words."""
        kind = "greedy" if self.options.beam_size == 1 else f"beam {self.options.beam_size}"
        return f"batch {len(self.src_ids)}, {kind}"


def make_model(preset: str, device: str, dtype: torch.dtype) -> Transformer:
    """Draw the weights, biases too, so that nothing is left out by being zero."""
    seed_everything(1)
    model = Transformer.from_preset(preset, vocab_size=VOCAB, position_layout="halves")
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.05)
    return model.eval().to(device, dtype)


def run_ours(model: Transformer, work: Work) -> Said:
    """Search by the fast path."""
    found = search_fast(model, work.src_ids, SYMBOLS, work.options)
    if found is None:
        raise SystemExit("the fast path refuses this search")
    return [one.hypotheses[0].ids for one in found]


def run_reference(model: Transformer, work: Work) -> Said:
    """Search by the plain path."""
    plain = greedy if work.options.beam_size == 1 else beam
    found = plain(model, work.src_ids, SYMBOLS, work.options)
    return [one.hypotheses[0].ids for one in found]


def make_peer(model: Transformer) -> Any:
    """Make a Marian model of the same weights."""
    from transformers import MarianConfig, MarianMTModel

    ours = model.config
    config = MarianConfig(
        vocab_size=VOCAB,
        d_model=ours.d_model,
        encoder_layers=ours.num_layers,
        decoder_layers=ours.num_layers,
        encoder_attention_heads=ours.num_heads,
        decoder_attention_heads=ours.num_heads,
        encoder_ffn_dim=ours.d_ff,
        decoder_ffn_dim=ours.d_ff,
        activation_function="relu",
        scale_embedding=True,
        max_position_embeddings=512,
        pad_token_id=SYMBOLS.pad_id,
        eos_token_id=SYMBOLS.end_id,
        decoder_start_token_id=SYMBOLS.start_id,
        forced_eos_token_id=None,
    )
    peer: Any = MarianMTModel(config)
    peer.eval()
    weights = {"model.shared.weight": model.src_embedding.weight.detach()}
    for name, tensor in model.state_dict().items():
        side, _, rest = name.partition(".layers.")
        number, _, part = rest.partition(".")
        owner, _, kind = part.rpartition(".")
        if owner in PARTS:
            weights[f"model.{side}.layers.{number}.{PARTS[owner]}.{kind}"] = tensor
    unknown = peer.load_state_dict(weights, strict=False).unexpected_keys
    if unknown:
        raise SystemExit(f"Marian has no {', '.join(unknown[:3])}")
    return peer.to(model.output.weight.device, model.output.weight.dtype)


@torch.inference_mode()
def run_peer(peer: Any, work: Work) -> Said:
    """Search by `generate`."""
    length = work.options.min_length
    generated = peer.generate(
        work.src_ids,
        attention_mask=work.src_ids.ne(SYMBOLS.pad_id),
        num_beams=work.options.beam_size,
        do_sample=False,
        min_new_tokens=length,
        max_new_tokens=length,
        suppress_tokens=[SYMBOLS.pad_id, SYMBOLS.start_id, SYMBOLS.unk_id],
    )
    said: Said = generated[:, 1:].tolist()
    return said


def wait() -> None:
    """Let a GPU finish."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def time_call(run: Callable[[], object]) -> float:
    """Give the seconds of one call."""
    wait()
    begin = time.perf_counter()
    run()
    wait()
    return time.perf_counter() - begin


def compare(works: list[Work], options: argparse.Namespace) -> None:
    """Print how many sentences each decoder says as the reference does, in float32."""
    model = make_model(options.preset, options.device, torch.float32)
    peer = make_peer(model) if options.peers else None
    for work in works:
        expected = run_reference(model, work)
        said = {"attendo": run_ours(model, work), "again": run_ours(model, work)}
        if peer is not None:
            said["Hugging Face"] = run_peer(peer, work)
        for name, texts in said.items():
            same = sum(one == other for one, other in zip(texts, expected, strict=True))
            print(f"{work.name}: {name} says {same} of {len(expected)} as the reference does")


def measure(works: list[Work], options: argparse.Namespace, dtype: torch.dtype) -> None:
    """Print the speed of each decoder for each kind of work."""
    model = make_model(options.preset, options.device, dtype)
    runs: dict[str, Callable[[Work], Said]] = {"attendo": lambda work: run_ours(model, work)}
    if not options.no_reference:
        runs["reference"] = lambda work: run_reference(model, work)
    if options.peers:
        peer = make_peer(model)
        runs["Hugging Face"] = lambda work: run_peer(peer, work)
    for work in works:
        print(f"{work.name}, {dtype}:", flush=True)
        first = {name: time_call(lambda: run(work)) for name, run in runs.items()}  # noqa: B023
        print("  first search " + ", ".join(f"{n} {s:.2f} s" for n, s in first.items()), flush=True)
        said = {name: run(work) for name, run in runs.items()}  # records what is left, too
        for name, texts in said.items():
            if name != "attendo" and dtype != torch.float32:
                same = sum(one == other for one, other in zip(texts, said["attendo"], strict=True))
                print(f"  {name} says {same} of {len(texts)} as attendo does, in half precision")
        best = dict.fromkeys(runs, float("inf"))
        for _ in range(options.rounds):
            for name, run in runs.items():
                best[name] = min(best[name], time_call(lambda: run(work)))  # noqa: B023
        for name, seconds in best.items():
            speed = len(work.src_ids) / seconds
            step = seconds / work.options.min_length * 1000
            ratio = seconds / best["attendo"]
            print(
                f"  {name:14s} {speed:10.1f} sentences/s {step:9.3f} ms a step"
                + (f"   attendo is {ratio:.2f} times as fast" if name != "attendo" else ""),
                flush=True,
            )
        if options.profile:
            show_profile(lambda: run_ours(model, work))  # noqa: B023


def show_profile(run: Callable[[], object]) -> None:
    """Print where the time of one batch goes."""
    activities = [ProfilerActivity.CPU]
    if torch.cuda.is_available():
        activities.append(ProfilerActivity.CUDA)
    with profile(activities=activities) as recorded:
        run()
        wait()
    key = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
    averages = recorded.key_averages()
    print(averages.table(sort_by=key, row_limit=30, max_name_column_width=70), flush=True)


def main() -> None:
    """Compare, then measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--preset", default="base")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", help="bfloat16 on a GPU and float32 on a CPU when not given")
    parser.add_argument("--batch", type=int, nargs="+", help="1 and 512, or 64 on a CPU")
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="of a CPU")
    parser.add_argument("--peers", action="store_true", help="Hugging Face, where installed")
    parser.add_argument(
        "--no-reference", action="store_true", help="time the plain path not at all"
    )
    parser.add_argument("--no-compare", action="store_true", help="skip the check of what is said")
    parser.add_argument("--no-graphs", action="store_true", help="launch kernel by kernel")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    if options.no_graphs:
        os.environ[SWITCH] = "0"
    is_cuda = options.device.startswith("cuda")
    dtype = getattr(torch, options.dtype or ("bfloat16" if is_cuda else "float32"))
    machine = torch.cuda.get_device_name() if is_cuda else f"CPU, {options.threads} threads"
    length = options.length
    print(
        f"{options.preset}, {length} tokens in and out, vocabulary {VOCAB:,}, {machine}, torch "
        f"{torch.__version__}",
        flush=True,
    )
    works = []
    for size in options.batch or ([1, 512] if is_cuda else [1, 64]):
        src_ids = torch.randint(
            4, VOCAB, (size, length), generator=torch.Generator().manual_seed(1)
        )
        src_ids[:, -1] = SYMBOLS.end_id
        for width in options.beam:
            searched = DecodingOptions(beam_size=width, min_length=length, max_length=length)
            works.append(Work(src_ids.to(options.device), searched))
    if not options.no_compare:
        compare(works, options)
    measure(works, options, dtype)


if __name__ == "__main__":
    main()
