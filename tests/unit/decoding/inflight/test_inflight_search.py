"""A search that sentences join and leave finds for each of them what it would find alone."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.recorded_graph import Recording
from torch import nn

from attendo import Transformer
from attendo.core.errors import AttendoError
from attendo.decoding.beam import beam
from attendo.decoding.greedy import greedy
from attendo.decoding.inflight.search import InflightSearch
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.static.cuda_graphs import CudaGraphs, GraphCaptures

PAD, UNK, START, END = range(4)
SYMBOLS = SpecialIds(start_id=START, end_id=END, pad_id=PAD, unk_id=UNK)
SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}
KINDS: list[dict[str, Any]] = [
    {},
    {"norm": "pre", "attention_width": 3},
    {"positions": "learned", "d_k": 8, "d_v": 4, "bias": False},
]


def make_model(seed: int, *, num_words: int = 8, end: float = 0.0, **options: Any) -> Transformer:
    """Make a model that ends its sentences sooner with a larger `end`."""
    torch.manual_seed(seed)
    model = Transformer(num_words + 4, **{**SIZES, "tie_embeddings": "none", **options}).eval()
    for name, parameter in model.named_parameters():
        parameter.data.mul_(1.5)
        if name.endswith("bias"):
            parameter.data.add_(torch.randn_like(parameter) * 0.3)
    last = model.decoder.final_norm
    if not isinstance(last, nn.LayerNorm):
        last = model.decoder.layers[-1].feed_forward_add.norm
    last.bias.data.fill_(1.0)  # orthogonal to what a layer norm returns
    rows = model.output.weight.data
    rows -= rows.mean(1, keepdim=True)
    rows[END] += end / SIZES["d_model"]
    return model


def make_loop(model, *, width=2, num_slots=3, **more) -> InflightSearch:
    sizes = {"src_length": 8, "max_length": 40, **more}
    return InflightSearch(model, SYMBOLS, width=width, num_slots=num_slots, **sizes)


def search_alone(model, ids: list[int], options: DecodingOptions):
    plain = greedy if options.beam_size == 1 else beam
    (result,) = plain(model, torch.tensor([ids]), SYMBOLS, options)
    return result


def assert_same(found, right) -> None:
    assert [one.ids for one in found.hypotheses] == [one.ids for one in right.hypotheses]
    for mine, its in zip(found.hypotheses, right.hypotheses, strict=True):
        assert mine.is_finished == its.is_finished
        assert mine.score == pytest.approx(its.score, abs=1e-5)
        assert mine.token_log_probs == pytest.approx(its.token_log_probs, abs=1e-5)


class LatePoller:
    """Returns the flags of the step before, as it is done on a GPU."""

    is_async = True

    def __init__(self, is_done: torch.Tensor) -> None:
        self.is_done, self.previous = is_done, None

    def poll(self) -> torch.Tensor | None:
        previous, self.previous = self.previous, self.is_done.clone()
        return previous


def run_all(loop: InflightSearch, added=()) -> dict[Any, Any]:
    for ticket, ids, options in added:
        loop.add(ticket, ids, options)
    found = {}
    while len(loop):
        found |= dict(loop.step())
    return found


@st.composite
def draw_options(draw, width: int) -> DecodingOptions:
    min_length = draw(st.sampled_from([0, 0, 1, 4]))
    return DecodingOptions(
        beam_size=width,
        n_best=draw(st.integers(1, width)),
        alpha=draw(st.sampled_from([0.0, 0.6, 2.0, -0.5])),
        length_norm=draw(st.sampled_from(["paper", "power"])),
        min_length=min_length,
        max_extra_tokens=draw(st.integers(0, 20)),
        max_length=draw(st.sampled_from([None, None, min_length + 1, 9])),
        unk=draw(st.sampled_from(["avoid", "keep"])),
    )


@given(
    data=st.data(),
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    num_words=st.sampled_from([1, 8, 30]),
    end=st.sampled_from([0.0, 2.0]),
    width=st.integers(1, 4),
    num_slots=st.integers(1, 5),
    is_late=st.booleans(),
)
def test_each_sentence_finds_what_it_finds_alone(
    data, seed, kind, num_words, end, width, num_slots, is_late
):
    """Whatever rides along, and whenever it joined."""
    model = make_model(seed, num_words=num_words, end=end, **kind).double()
    loop = make_loop(model, width=width, num_slots=num_slots)
    if is_late:
        loop._poller = LatePoller(loop.steps.state.is_done)
    probability = random.Random(seed)  # noqa: S311 - a test
    coming = [
        (
            ticket,
            [probability.randint(END, END + num_words) for _ in range(probability.randint(1, 8))],
            data.draw(draw_options(width)),
        )
        for ticket in range(data.draw(st.integers(1, 8)))
    ]
    found, waiting = {}, list(coming)
    while waiting or len(loop):
        while waiting and (probability.random() < 0.4 or not len(loop)):
            loop.add(*waiting.pop(0))
        found |= dict(loop.step())
    for ticket, ids, options in coming:
        assert_same(found[ticket], search_alone(model, ids, options))


def test_a_sentence_leaves_in_its_last_step_and_its_slot_is_taken_in_the_next():
    model = make_model(1, end=-30.0)  # no sentence ends by itself
    loop = make_loop(model, width=1, num_slots=1)
    loop.add("short", [5, END], DecodingOptions(beam_size=1, max_length=2))
    loop.add("next", [6, END], DecodingOptions(beam_size=1, max_length=1))
    assert loop.step() == []
    assert [ticket for ticket, _ in loop.step()] == ["short"]
    assert [ticket for ticket, _ in loop.step()] == ["next"]
    assert (len(loop), loop.num_active) == (0, 0)


def test_cancelled_sentences_free_their_slots():
    model = make_model(2, end=-30.0)
    loop = make_loop(model, num_slots=2)
    options = DecodingOptions(beam_size=2, max_extra_tokens=5)
    for ticket in "abcd":
        loop.add(ticket, [5, 6, END], options)
    assert loop.step() == []
    assert loop.num_active == 2
    loop.cancel("a")
    loop.cancel("d")  # still waits
    loop.cancel("nobody")
    loop.step()
    assert loop.num_active == 2
    found = run_all(loop)
    assert set(found) == {"b", "c"}
    assert_same(found["c"], search_alone(model, [5, 6, END], options))


def test_a_new_sentence_waits_for_others_for_two_steps_at_most():
    """On a CPU, while many sentences are in slots."""
    model = make_model(8, end=-30.0)
    loop = make_loop(model, width=1, num_slots=40, max_length=20)
    options = DecodingOptions(beam_size=1, max_extra_tokens=9)
    for ticket in range(35):
        loop.add(ticket, [5, END], options)
    loop.step()
    loop.step()
    loop.add("late", [6, END], options)
    num_active = []
    for _ in range(3):
        loop.step()
        num_active.append(loop.num_active)
    assert num_active == [35, 36, 36]
    assert_same(run_all(loop)["late"], search_alone(model, [6, END], options))


@pytest.mark.parametrize("width", [1, 2])
def test_nan_fails_one_sentence_alone(width):
    """The next sentence in its slot is not affected either."""
    model = make_model(3, num_words=8)
    model.src_embedding.weight.data[9] = float("nan")
    loop = make_loop(model, width=width, num_slots=2)
    options = DecodingOptions(beam_size=width, max_extra_tokens=6)
    sources = {"bad": [9, 5, END], "good": [5, 6, END], **{n: [n, 5, 6, END] for n in (4, 5, 6)}}
    found = run_all(loop, [(ticket, ids, options) for ticket, ids in sources.items()])
    assert isinstance(found.pop("bad"), AttendoError)
    for ticket, result in found.items():
        assert_same(result, search_alone(model, sources[ticket], options))


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("is_late", [False, True])
def test_sentences_that_wait_for_others_find_the_same(monkeypatch, width, is_late):
    """Few new sentences, and few results, wait for more."""
    monkeypatch.setattr("attendo.decoding.inflight.search.GATHER_SHARE", {"cpu": 1})
    model = make_model(7, num_words=30, end=1.0).double()
    loop = make_loop(model, width=width, num_slots=8)
    if is_late:
        loop._poller = LatePoller(loop.steps.state.is_done)
    options = DecodingOptions(beam_size=width, max_extra_tokens=12)
    sources = {n: [4 + n % 30, 4 + 7 * n % 30, END][n % 2 :] for n in range(40)}
    found = run_all(loop, [(ticket, ids, options) for ticket, ids in sources.items()])
    for ticket, ids in sources.items():
        assert_same(found[ticket], search_alone(model, ids, options))
    assert not loop.num_active


def test_a_failed_step_can_be_done_again(monkeypatch):
    model = make_model(4)
    loop = make_loop(model, num_slots=3)
    options = DecodingOptions(beam_size=2, max_extra_tokens=9, min_length=3)
    sources = {ticket: [ticket + 4, 5, END] for ticket in range(5)}
    for ticket, ids in sources.items():
        loop.add(ticket, ids, options)
    found = dict(loop.step())
    with monkeypatch.context() as patch:
        patch.setattr(loop.steps.state, "top_unsuppressed", None)
        loop.steps._views.clear()
        with pytest.raises(TypeError):
            loop.step()
    loop.steps._views.clear()
    loop.restart()
    loop.max_active = 1
    found |= run_all(loop)
    for ticket, ids in sources.items():
        assert_same(found[ticket], search_alone(model, ids, options))
    loop.add("late", [5, END], options)
    assert loop.drop_all() == ["late"]
    assert not len(loop)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_weights_that_changed_can_be_read_again(dtype):
    model = make_model(5, num_words=8, d_model=512, d_ff=512).to(dtype)
    loop = make_loop(model)
    options = DecodingOptions(beam_size=2, max_extra_tokens=6)
    for factor in (1.0, 1.1, -1.0):
        for parameter in model.parameters():
            parameter.data.mul_(factor)
        loop.read_weights()
        found = run_all(loop, [("one", [5, 6, 7, END], options)])
        assert_same(found["one"], search_alone(model, [5, 6, 7, END], options))


@pytest.mark.parametrize(
    ("ids", "options"),
    [
        ([], {}),
        ([5] * 9, {}),
        ([5], {"beam_size": 3}),
        ([5], {"max_extra_tokens": 40}),
        ([5], {"min_length": 40}),
    ],
)
def test_what_does_not_fit_is_rejected(ids, options):
    loop = make_loop(make_model(6))
    chosen = DecodingOptions(**{"beam_size": 2, "max_extra_tokens": 9, **options})
    assert not loop.fits(ids, chosen)
    with pytest.raises(ValueError, match="fit"):
        loop.add("one", ids, chosen)


@pytest.mark.parametrize("width", [1, 3])
def test_after_the_warm_up_nothing_is_captured(monkeypatch, width):
    """Every shape has its graph, and the graphs find the same."""

    def record(self, key, work):
        recording = self.captured[key] = Recording()
        with recording:
            work()
        self.captures.count()
        return recording

    monkeypatch.setattr(CudaGraphs, "_capture", record)
    model = make_model(7, norm="pre", attention_width=4)
    captures = GraphCaptures()
    loop = make_loop(model, width=width, num_slots=5, graphs=CudaGraphs(captures=captures))
    loop.warm_up()
    num_captures = captures.num_captures
    assert num_captures > 6
    captures.is_warm = True
    replayed = []
    original = Recording.replay
    monkeypatch.setattr(
        Recording, "replay", lambda self: (replayed.append(self), original(self))[1]
    )
    sources = {n: [4 + n % 8, *[5] * (n % 7), END] for n in range(13)}
    options = {
        n: DecodingOptions(
            beam_size=width,
            n_best=min(width, 2),
            min_length=n % 3,
            unk=("avoid", "keep")[n % 2],
            alpha=(0.6, -0.5)[n % 2],
            max_extra_tokens=20 - n,
        )
        for n in sources
    }
    found = run_all(loop, [(n, ids, options[n]) for n, ids in sources.items()])
    for n, ids in sources.items():
        assert_same(found[n], search_alone(model, ids, options[n]))
    assert (captures.num_captures, captures.num_late) == (num_captures, 0)
    assert len(replayed) > 20
