"""The static search equals the reference search, which is tested against brute force."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from attendo import Transformer
from attendo.architectures.rnn_attention import RnnAttention
from attendo.core.errors import AttendoError, InputError
from attendo.decoding.beam import beam
from attendo.decoding.greedy import greedy
from attendo.decoding.options import Constraints, DecodingOptions, SpecialIds
from attendo.decoding.scoring import score
from attendo.decoding.search import search
from attendo.decoding.static import search as static_search
from attendo.decoding.static.search import search_static
from attendo.model.fast.static_decoder import StaticDecoder

PAD, UNK, START, END = range(4)
SYMBOLS = SpecialIds(start_id=START, end_id=END, pad_id=PAD, unk_id=UNK)
SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}
KINDS: list[dict[str, Any]] = [
    {},
    {"norm": "pre"},
    {"bias": False, "activation": "gelu"},
    {"attention_width": 3, "scale": False},
    {"positions": "learned", "d_k": 8, "d_v": 4},
    {"num_layers": 1, "output_bias": True, "num_decoder_heads": 4},
]


def make_model(seed: int, *, num_words: int = 8, end: float = 0.0, **options: Any) -> Transformer:
    """Draw a model that is sure of itself, with biases everywhere; `end` makes it end sooner."""
    torch.manual_seed(seed)
    sizes = {**SIZES, "tie_embeddings": "none", **options}
    model = Transformer(num_words + END + 1, **sizes).eval()
    for name, parameter in model.named_parameters():
        parameter.data.mul_(1.5)
        if name.endswith("bias"):
            parameter.data.add_(torch.randn_like(parameter) * 0.3)
    last = model.decoder.final_norm
    if not isinstance(last, nn.LayerNorm):
        last = model.decoder.layers[-1].feed_forward_add.norm
    # What a layer norm gives has mean 0, so ones are at a right angle to it: a bias.
    last.bias.data.fill_(1.0)
    rows = model.output.weight.data
    wanted = torch.tensor([-30.0, 0.0, -30.0, end, *[0.0] * num_words])
    rows += wanted[:, None] / model.config.d_model - rows.mean(1, keepdim=True)
    return model


def make_sources(seed: int, lengths: list[int], *, num_words: int = 8) -> torch.Tensor:
    draw = torch.Generator().manual_seed(seed)
    rows = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in enumerate(lengths):
        rows[row, :length] = torch.randint(END, END + 1 + num_words, (length,), generator=draw)
    return rows


def search_plainly(model, src_ids, options, **more):
    plain = greedy if options.beam_size == 1 else beam
    return plain(model, src_ids, SYMBOLS, options, **more)


def assert_same(found, right, *, model=None, src_ids=None) -> None:
    """The same hypotheses with the same figures; only where two are worth the same they may turn.

    Then the figures must be the model's own for what was said.
    """
    assert found is not None
    for row, (mine, its) in enumerate(zip(found, right, strict=True)):
        assert len(mine.hypotheses) == len(its.hypotheses)
        for one, other in zip(mine.hypotheses, its.hypotheses, strict=True):
            assert one.score == pytest.approx(other.score, abs=1e-4)
            if one.ids != other.ids and model is not None:
                assert abs(one.score - other.score) < 5e-6  # a tie
                (own,) = score(model, src_ids[row : row + 1], [one.ids], SYMBOLS)
                assert own[: len(one.token_log_probs)] == pytest.approx(
                    one.token_log_probs, abs=1e-4
                )
                continue
            assert one.ids == other.ids
            assert one.is_finished == other.is_finished
            assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
            assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)


@st.composite
def draw_options(draw) -> DecodingOptions:
    width = draw(st.integers(1, 5))
    min_length = draw(st.sampled_from([0, 0, 1, 4]))
    return DecodingOptions(
        beam_size=width,
        n_best=draw(st.integers(1, width)),
        alpha=draw(st.sampled_from([0.0, 0.6, 1.0, 2.0, -0.5])),
        length_norm=draw(st.sampled_from(["paper", "power"])),
        min_length=min_length,
        max_extra_tokens=draw(st.integers(0, 20)),
        max_length=draw(st.sampled_from([None, None, min_length + 1, 9])),
        unk=draw(st.sampled_from(["avoid", "keep"])),
    )


@given(
    seed=st.integers(0, 10**6),
    kind=st.sampled_from(KINDS),
    num_words=st.sampled_from([1, 2, 8, 30]),
    end=st.sampled_from([-2.0, 0.0, 1.0, 3.0]),
    lengths=st.lists(st.integers(1, 8), min_size=1, max_size=9),
    options=draw_options(),
)
def test_finds_what_the_plain_search_finds(seed, kind, num_words, end, lengths, options):
    model = make_model(seed, num_words=num_words, end=end, **kind)
    src_ids = make_sources(seed, lengths, num_words=num_words)
    right = search_plainly(model, src_ids, options)
    for keep in (False, True):
        for shrink in (True, False):
            found = search_static(
                model, src_ids, SYMBOLS, options, reuse_buffers=keep, shrink=shrink
            )
            assert_same(found, right, model=model, src_ids=src_ids)


@pytest.mark.parametrize("beam_size", [1, 2, 4, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0, -0.2])
def test_all_ways_to_end_are_met(beam_size, alpha):
    """Some hypotheses end, some are cut, and some sentences are over long before others."""
    ways, lengths = {True: 0, False: 0}, set()
    for seed in range(12):
        model = make_model(seed, num_words=12, end=seed % 4 * 1.5)
        src_ids = make_sources(seed, [5, 2, 7, 4, 3, 6, 1, 8], num_words=12)
        options = DecodingOptions(
            beam_size=beam_size,
            n_best=1 + seed % min(2, beam_size),
            alpha=alpha,
            max_extra_tokens=25,
        )
        right = search_plainly(model, src_ids, options)
        assert_same(search_static(model, src_ids, SYMBOLS, options), right)
        for one in right:
            ways[one.hypotheses[0].is_finished] += 1
            lengths.add(len(one.hypotheses[0].ids))
    assert min(ways.values()) > 5
    assert len(lengths) > 8


def test_in_float64():
    options = DecodingOptions(beam_size=3, n_best=3, max_extra_tokens=8)
    src_ids, model = make_sources(1, [4, 6, 2]), make_model(1, end=1.0).double()
    right = search_plainly(model, src_ids, options)
    assert_same(search_static(model, src_ids, SYMBOLS, options), right)


@pytest.mark.parametrize("beam_size", [1, 3])
def test_in_half_precision_probabilities_are_those_of_the_model(beam_size):
    options = DecodingOptions(beam_size=beam_size, n_best=beam_size, max_extra_tokens=8)
    src_ids, model = make_sources(1, [4, 6, 2]), make_model(1, end=1.0).bfloat16()
    for row, found in enumerate(search_static(model, src_ids, SYMBOLS, options)):
        printed = [one.ids for one in found.hypotheses]
        own = score(model, src_ids[[row] * beam_size], printed, SYMBOLS)
        for figures, one in zip(own, found.hypotheses, strict=True):
            reported = one.token_log_probs
            assert reported == pytest.approx(figures[: len(reported)], abs=0.1)


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("keep", [False, True])
def test_the_result_does_not_depend_on_the_rest_of_the_batch(beam_size, keep):
    options = DecodingOptions(beam_size=beam_size, n_best=beam_size, max_extra_tokens=10)
    lengths = [7, 2, 5, 1, 6, 3]
    printed = set()
    for seed in range(4):
        model, sources = make_model(seed, end=1.5), make_sources(seed, lengths)

        def run(src_ids, model=model):
            return search_static(model, src_ids, SYMBOLS, options, reuse_buffers=keep)

        together = run(sources)
        alone = [run(sources[row : row + 1, :length])[0] for row, length in enumerate(lengths)]
        turned = run(sources.flip(0))[::-1]
        wider = run(nn.functional.pad(sources, (0, 5)))
        kept = search_static(model, sources, SYMBOLS, options, reuse_buffers=keep, shrink=False)
        for others in (alone, turned, wider, kept):
            assert_same(others, together)
        printed |= {tuple(one.hypotheses[0].ids) for one in together}
    assert len(printed) > 8


@pytest.mark.parametrize("beam_size", [1, 4])
def test_company_changes_no_bit_where_shapes_are_fixed(beam_size):
    model, sources = make_model(3, end=1.0), make_sources(3, [6, 3, 5, 2])
    options = DecodingOptions(beam_size=beam_size, max_length=12)
    found = search(model, sources, SYMBOLS, options, shrink=False)
    for seed in (4, 5, 6):
        for row in range(4):
            mixed = make_sources(seed, [6, 6, 2, 4])
            mixed[row] = sources[row]
            again = search(model, mixed, SYMBOLS, options, shrink=False)
            assert again[row].hypotheses == found[row].hypotheses  # every bit of every number


def test_sentences_that_are_done_leave_the_batch(monkeypatch):
    """Each may have as many tokens as its source: most rows have nothing to do for most steps."""
    num_rows = 0
    project = StaticDecoder.project

    def count(self, x):
        nonlocal num_rows
        num_rows += len(x)
        return project(self, x)

    monkeypatch.setattr(StaticDecoder, "project", count)
    model, lengths = make_model(0, end=-9.0), [40, 3, 4, 3, 4, 3, 4, 3]
    options = DecodingOptions(max_extra_tokens=0, beam_size=4)
    for keep, most in ((False, 2.0), (True, 2.5)):
        num_rows = 0
        found = search_static(model, make_sources(0, lengths), SYMBOLS, options, reuse_buffers=keep)
        assert [len(one.hypotheses[0].ids) for one in found] == lengths
        assert num_rows < most * 4 * sum(lengths)
        num_rows = 0
        search_static(
            model, make_sources(0, lengths), SYMBOLS, options, reuse_buffers=keep, shrink=False
        )
        assert num_rows == 8 * 4 * 40


@pytest.mark.parametrize("beam_size", [1, 3])
def test_stops_as_soon_as_all_are_done(monkeypatch, beam_size):
    steps = []
    step = StaticDecoder.step
    monkeypatch.setattr(
        StaticDecoder,
        "step",
        lambda self, ids, window: steps.append(1) or step(self, ids, window=window),
    )
    model = make_model(0, end=60.0)  # wants to end at once
    options = DecodingOptions(beam_size=beam_size, min_length=2, alpha=0.0)
    (found,) = search_static(model, make_sources(0, [3]), SYMBOLS, options)
    assert len(found.hypotheses[0].ids) == 2
    assert len(steps) == 3


def test_changed_weights_are_noticed():
    """Whatever is kept from one search to the next, the weights are not."""
    model, sources = make_model(1, end=1.0), make_sources(1, [5, 3])
    options = DecodingOptions(beam_size=2)

    def check() -> list[list[int]]:
        found = search_static(model, sources, SYMBOLS, options, reuse_buffers=True)
        assert_same(found, search_plainly(model, sources, options))
        return [one.hypotheses[0].ids for one in found]

    printed = [check()]
    other = make_model(2, end=1.0)
    model.load_state_dict(other.state_dict())
    printed.append(check())
    for parameter in model.parameters():
        parameter.data.mul_(-1.0)  # behind autograd's back
    printed.append(check())
    model.load_state_dict({k: v.clone() for k, v in other.state_dict().items()}, assign=True)
    printed.append(check())
    model.double()
    check()
    assert printed[1] == printed[3]
    assert printed[0] != printed[1] != printed[2]
    assert_same(
        search_static(copy.deepcopy(model), sources, SYMBOLS, options, reuse_buffers=True),
        search_plainly(model, sources, options),
    )


@pytest.mark.parametrize("beam_size", [1, 4])
def test_one_state_serves_many_searches(beam_size):
    """What one search leaves behind changes nothing for the next, whatever its options."""
    model = make_model(5, end=1.0)
    for seed in range(12):
        draw = torch.Generator().manual_seed(seed)
        lengths = torch.randint(
            1, 9, (int(torch.randint(3, 5, (), generator=draw)),), generator=draw
        )
        src_ids = make_sources(seed, lengths.tolist())
        options = DecodingOptions(
            beam_size=beam_size,
            alpha=(0.0, 0.6, -0.5)[seed % 3],
            length_norm=("paper", "power")[seed % 2],
            min_length=seed % 4,
            max_extra_tokens=seed,
        )
        found = search_static(model, src_ids, SYMBOLS, options, reuse_buffers=True)
        assert_same(found, search_plainly(model, src_ids, options))


class Needed:
    tokens = (5,)

    def is_satisfied(self, ids) -> bool:
        return 5 in ids


def test_returns_none_for_what_only_the_reference_search_supports():
    model, sources = make_model(0), make_sources(0, [4, 2])
    options = DecodingOptions(max_extra_tokens=4)

    def run(**changes):
        given = {"model": model, "src_ids": sources, "options": options, **changes}
        return search_static(given.pop("model"), given.pop("src_ids"), SYMBOLS, **given)

    assert run() is not None
    for changes in (
        {"do_sample": True},
        {"no_repeat_ngram": 2},
        {"num_groups": 2},
        {"beam_size": static_search.MAX_STATIC_BEAM + 1},
    ):
        assert run(options=options.replace(**changes)) is None
    assert run(constraints=[None, Constraints(prefix=(5,))]) is None
    assert run(constraints=[Constraints(required=(Needed(),)), None]) is None
    assert run(constraints=[Constraints(), None]) is not None
    assert run(model=make_model(0, positions="learned", max_length=7)) is None  # 8 may be needed
    assert run(model=RnnAttention(vocab_size=12, d_model=16).eval()) is None
    assert run(src_ids=nn.functional.pad(sources, (0, 0, 0, 1))) is None  # a row of padding alone
    assert run(model=make_model(0, num_words=0)) is None  # nothing to say
    hook = model.output.register_forward_hook(lambda *_: None)
    assert run() is None
    hook.remove()
    model.train()
    assert run() is None


def test_can_be_switched_off(monkeypatch):
    monkeypatch.setenv(static_search.ENABLE_VARIABLE, "0")
    assert search_static(make_model(0), make_sources(0, [4]), SYMBOLS, DecodingOptions()) is None


def test_hooks_dropout_and_prefixes_use_the_reference_search():
    """Hooks, dropout and prefixes have their effect behind the same entry point."""
    model, sources = make_model(0, end=1.0), make_sources(0, [4, 2])
    options = DecodingOptions(max_extra_tokens=4)
    free = search(model, sources, SYMBOLS, options)
    assert_same(free, search_plainly(model, sources, options))
    constraints = [Constraints(prefix=(5, 5)), None]
    forced = search(model, sources, SYMBOLS, options, constraints)
    assert forced[0].hypotheses[0].ids[:2] == [5, 5]
    heard = []
    hook = model.output.register_forward_hook(lambda *_: heard.append(1))
    assert_same(search(model, sources, SYMBOLS, options), free)
    hook.remove()
    assert heard


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_broken_model_is_named(beam_size):
    model = make_model(0)
    model.output.weight.data[5] = math.nan
    with pytest.raises(AttendoError, match="NaN"):
        search_static(model, make_sources(0, [3]), SYMBOLS, DecodingOptions(beam_size=beam_size))


def test_ids_outside_the_vocabulary_are_rejected():
    with pytest.raises(InputError, match="holds id 99, outside the vocabulary"):
        search(make_model(0), torch.tensor([[5, 99]]), SYMBOLS, DecodingOptions())
