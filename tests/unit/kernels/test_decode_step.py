"""The kernels of a decoding step say what the plain path says: where they run, see test_kernels."""

from __future__ import annotations

import pytest
import torch

from attendo import Transformer
from attendo.decoding.inflight.search import InflightSearch
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.static.search import search_static
from attendo.kernels import dispatch
from attendo.kernels.top_k import top_k_log_probs

IS_INTERPRETED = dispatch.IS_INTERPRETED and dispatch.HAS_TRITON
DEVICE = "cpu" if IS_INTERPRETED else "cuda"
TOLERANCES = {torch.float32: 1e-4, torch.bfloat16: 5e-2}
kinds = pytest.mark.parametrize(
    "kind", [torch.float32] if IS_INTERPRETED else [torch.float32, torch.bfloat16]
)
pytestmark = pytest.mark.skipif(
    not (IS_INTERPRETED or torch.cuda.is_available()), reason="no CUDA device here"
)
SYMBOLS = SpecialIds(start_id=2, end_id=3, pad_id=0, unk_id=1)
VOCAB, FEW = 5000, 300
NUM_STEPS, MANY, NUM_HEADS = (3, 2, 2) if IS_INTERPRETED else (6, 9, 4)
OPTIONS = [
    {},
    {"norm": "pre"},
    {"bias": False, "attention_width": 5},
    {"residual": False},
    {"activation": "gelu", "positions": "learned"},
    {"d_model": 24, "num_heads": 2},  # heads of 12, for which there is no attention
]
SHAPES = [(1, 1), (3, 1), (1, 4), (MANY, 3)]
"""Sentences and beams."""


def step_cases():
    """Every option with every shape; by the interpreter, `make test` runs each of them once."""
    for number, options in enumerate(OPTIONS):
        for shape in SHAPES:
            is_slow = IS_INTERPRETED and number > 0 and shape != SHAPES[-1]
            marks = [pytest.mark.slow] if is_slow else []
            yield pytest.param(options, *shape, marks=marks)


def slow_if_interpreted(*values):
    return pytest.param(*values, marks=[pytest.mark.slow] if IS_INTERPRETED else [])


def make_model(kind: torch.dtype, vocab_size: int = VOCAB, **options) -> Transformer:
    torch.manual_seed(4)
    sizes = {"d_model": 16 * NUM_HEADS, "d_ff": 32 * NUM_HEADS, "num_heads": NUM_HEADS}
    plain = {**sizes, "num_layers": 2, "tie_embeddings": "none"}
    model = Transformer(vocab_size, **{**plain, **options}).eval()
    for name, parameter in model.named_parameters():
        parameter.data.mul_(1.5)
        if name.endswith("bias"):
            parameter.data.add_(torch.randn_like(parameter) * 0.3)
    return model.to(DEVICE, kind)


@kinds
@pytest.mark.parametrize(("options", "num_sentences", "width"), list(step_cases()))
def test_a_step_gives_the_same_states(monkeypatch, kind, options, num_sentences, width):
    """The same tokens by both: what they lead to is the same, up to the rounding of their type."""
    model = make_model(kind, FEW, **options)
    src_ids = torch.randint(4, FEW, (num_sentences, 7), device=DEVICE)
    src_ids[-1, 4:] = SYMBOLS.pad_id
    printed = torch.randint(4, FEW, (NUM_STEPS, num_sentences * width), device=DEVICE)
    parents = torch.randint(width, (NUM_STEPS, num_sentences, width), device=DEVICE)

    @torch.inference_mode()
    def run() -> torch.Tensor:
        sizes = {"num_sentences": num_sentences, "width": width}
        steps = model.make_static_decoder(**sizes, src_length=7, max_length=6)
        steps.set_sources(src_ids)
        steps.start()
        found = []
        for ids, chosen in zip(printed, parents, strict=True):
            found.append(steps.step(ids, window=6).float())
            steps.reorder_beams(chosen)
            steps.position.add_(1)
        return torch.stack(found)

    ours = run()
    monkeypatch.setattr(dispatch, "HAS_TRITON", False)
    torch.testing.assert_close(ours, run(), rtol=TOLERANCES[kind], atol=TOLERANCES[kind])


@kinds
@pytest.mark.parametrize("width", [1, slow_if_interpreted(3)])
def test_sentences_at_positions_of_their_own(kind, width):
    """Each slot reads its own number of keys."""
    model = make_model(kind, FEW, bias=False, attention_width=5)
    loop = InflightSearch(model, SYMBOLS, width=width, num_slots=2, src_length=7, max_length=5)
    options = DecodingOptions(beam_size=width, max_length=3, min_length=2)
    sources = [torch.randint(4, FEW, (length,)) for length in (6, 2)]
    found: dict = {}
    for ticket, ids in enumerate(sources):
        loop.add(ticket, ids.tolist(), options)
        found |= dict(loop.step())
    while len(loop):
        found |= dict(loop.step())
    for ticket, ids in enumerate(sources):
        (alone,) = search_static(model, ids[None].to(DEVICE), SYMBOLS, options)
        scores = [one.score for one in alone.hypotheses]
        assert [one.score for one in found[ticket].hypotheses] == pytest.approx(
            scores, abs=TOLERANCES[kind]
        )


@kinds
@pytest.mark.parametrize("num", [1, 8])
@pytest.mark.parametrize("vocab_size", [4103, 37000, slow_if_interpreted(100_001)])
def test_the_best_tokens_straight_from_the_logits(monkeypatch, kind, vocab_size, num):
    torch.manual_seed(1)
    logits = torch.stack([torch.randperm(vocab_size) for _ in range(5)]).float() / vocab_size
    logits = torch.exp2(logits * 6).to(DEVICE)
    logits[4, 7] = 200.0  # sure of one
    logits[3, :3] = 100.0  # sure of what is not wanted
    never = torch.tensor([0, 1, 2], device=DEVICE)
    figures, tokens = top_k_log_probs(logits.to(kind), num, never)
    assert tokens.min() > 2
    everything = logits.to(kind).log_softmax(-1, dtype=torch.float32)
    torch.testing.assert_close(figures, everything.gather(1, tokens), rtol=1e-5, atol=1e-4)
    monkeypatch.setattr(dispatch, "HAS_TRITON", False)
    expected, _ = top_k_log_probs(logits.to(kind), num, never)
    torch.testing.assert_close(figures, expected, rtol=1e-5, atol=1e-4)


@kinds
def test_rows_of_nan_are_rejected_and_kill_nothing(kind):
    model = make_model(kind)
    model.output.weight.data.fill_(float("nan"))
    src_ids = torch.randint(4, VOCAB, (2, 5), device=DEVICE)
    with pytest.raises(Exception, match="NaN"):
        search_static(model, src_ids, SYMBOLS, DecodingOptions(beam_size=2, max_extra_tokens=3))
    assert torch.ones(3, device=DEVICE).sum() == 3
