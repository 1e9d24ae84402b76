from __future__ import annotations

import math

import pytest
import torch

from attendo.core.errors import AttendoError, ConfigError
from attendo.core.protocols import Memory
from attendo.decoding.greedy import greedy, sample
from attendo.decoding.options import Constraints, DecodingOptions
from attendo.decoding.sampling import apply_temperature_top_k_top_p
from attendo.decoding.search import search

PAD, UNK, START, END = range(4)


class Script:
    """Says a written sequence for each row: the row's first source id chooses it."""

    def __init__(self, lines: dict[int, list[int]]) -> None:
        self.lines = lines
        self.heard: list[list[int]] = []

    def encode(self, src_ids) -> Memory:
        return Memory(src_ids, src_ids)

    def start(self, memory):
        return (memory.states[:, 0].tolist(), 0)

    def step(self, ids, state):
        rows, position = state
        self.heard.append(ids.tolist())
        logits = torch.zeros(len(rows), 20)
        for number, row in enumerate(rows):
            line = self.lines[row]
            logits[number, line[position] if position < len(line) else 9] = 1.0
        return logits, (rows, position + 1)

    def reorder(self, state, index):
        rows, position = state
        return ([rows[row] for row in index.tolist()], position)


def loop(model, src_ids, symbols, **options) -> list[list[int]]:
    shrink = options.pop("shrink", True)
    found = greedy(model, src_ids, symbols, DecodingOptions(**options), shrink=shrink)
    return [one.hypotheses[0].ids for one in found]


def test_ends_at_the_end_symbol_and_feeds_back_its_output(symbols):
    model = Script({5: [7, 8, END, 11, 12], 6: [10, END, 11], 7: [END]})
    src_ids = torch.tensor([[5, END], [6, END], [7, END]])
    assert loop(model, src_ids, symbols) == [[7, 8], [10], []]
    assert model.heard == [[START] * 3, [7, 10], [8]]  # rows that are done have left
    model.heard.clear()
    assert loop(model, src_ids, symbols, shrink=False) == [[7, 8], [10], []]
    assert model.heard == [[START] * 3, [7, 10, END], [8, END, END]]  # and then it stops


def test_reports_what_it_found(symbols):
    (found,) = greedy(Script({5: [7, END]}), torch.tensor([[5, END]]), symbols)
    (one,) = found.hypotheses
    likely = 1.0 - math.log(19 + math.e)  # the logits are one 1 and nineteen 0
    assert one.token_log_probs == pytest.approx([likely, likely], abs=1e-5)
    assert one.log_prob == pytest.approx(2 * likely, abs=1e-5)
    assert one.score == pytest.approx(2 * likely / (7 / 6) ** 0.6, abs=1e-5)
    assert one.is_finished
    assert found.trace is None


@pytest.mark.parametrize("shrink", [True, False])
def test_limit_is_each_rows_own_source_and_fifty(symbols, shrink):
    src_ids = torch.tensor([[5, 4, 4, 4, 4, END], [6, END, 0, 0, 0, 0]])
    model = Script({5: [], 6: []})  # never ends
    printed = loop(model, src_ids, symbols, shrink=shrink)
    assert [len(row) for row in printed] == [56, 52]
    assert len(model.heard) == 56
    short = loop(Script({5: [], 6: []}), src_ids, symbols, max_extra_tokens=1, shrink=shrink)
    assert short == [[9] * 7, [9] * 3]


@pytest.mark.parametrize("shrink", [True, False])
def test_the_end_after_the_limit_does_not_count(symbols, shrink):
    model = Script({5: [9] * 3 + [END], 6: []})
    src_ids = torch.tensor([[5, END, 0, 0], [6, 4, 4, END]])
    options = DecodingOptions(max_extra_tokens=1)
    found = greedy(model, src_ids, symbols, options, shrink=shrink)
    assert [one.hypotheses[0].ids for one in found] == [[9] * 3, [9] * 5]
    assert not any(one.hypotheses[0].is_finished for one in found)
    assert len(found[0].hypotheses[0].token_log_probs) == 3


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_sentence_does_not_depend_on_the_others(make_model, make_ids, symbols, norm):
    model = make_model(dtype=torch.float64, norm=norm)
    for parameter in model.parameters():
        parameter.data.mul_(1.5)  # far from ties
    lengths = [7, 2, 5, 1, 6, 3]
    src_ids = make_ids(6, 7, lengths=lengths)
    together = loop(model, src_ids, symbols, max_extra_tokens=12)
    alone = [
        loop(model, src_ids[row : row + 1, :length], symbols, max_extra_tokens=12)[0]
        for row, length in enumerate(lengths)
    ]
    assert together == alone
    assert len({tuple(row) for row in together}) > 2
    turned = loop(model, src_ids.flip(0), symbols, max_extra_tokens=12)
    assert turned[::-1] == together
    assert loop(model, src_ids, symbols, max_extra_tokens=12, shrink=False) == together


def test_company_changes_no_bit_where_shapes_are_fixed(make_peaky, make_sources, symbols):
    model = make_peaky(1, num_words=8, end=1.0, num_layers=2)
    sources = make_sources(1, [6, 3, 5, 2], num_words=8)
    for chosen in (DecodingOptions(), DecodingOptions(do_sample=True, n_best=3)):
        run = sample if chosen.do_sample else greedy
        found = run(model, sources, symbols, chosen, shrink=False)
        for row in range(4):
            mixed = make_sources(9, [6, 6, 2, 4], num_words=8)
            mixed[row] = sources[row]
            again = run(model, mixed, symbols, chosen, shrink=False)
            assert again[row].hypotheses == found[row].hypotheses


def test_is_the_argmax_of_teacher_forcing(make_peaky, make_sources, symbols):
    for seed in range(6):
        model = make_peaky(seed, num_words=8)
        src_ids = make_sources(seed, [5], num_words=8)
        (found,) = greedy(model, src_ids, symbols, DecodingOptions(max_extra_tokens=6))
        (one,) = found.hypotheses
        log_probs = model(src_ids, torch.tensor([[START, *one.ids]]))[0].log_softmax(-1)
        best = log_probs.max(-1)
        assert best.indices[: len(one.ids)].tolist() == one.ids
        assert one.is_finished == (len(one.ids) < 11)
        if one.is_finished:
            assert best.indices[-1] == END
        size = len(one.token_log_probs)
        assert one.token_log_probs == pytest.approx(best.values[:size].tolist(), abs=1e-4)


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"do_sample": True, "n_best": 4}])
def test_rules_hold(make_peaky, make_sources, symbols, options):
    for seed in range(4):
        model = make_peaky(seed, num_words=4, scale=1.0)
        sources = make_sources(seed, [4, 2, 3], num_words=4)
        constraints = [
            Constraints(prefix=(5, 4, 7)),
            Constraints(),
            Constraints(prefix=(UNK, START)),
        ]
        rules = {"min_length": 4, "no_repeat_ngram": 2, "max_extra_tokens": 10}
        found = search(model, sources, symbols, DecodingOptions(**rules, **options), constraints)
        for one, constraint in zip(found, constraints, strict=True):
            for hypothesis in one.hypotheses:
                prefix = len(constraint.prefix)
                assert tuple(hypothesis.ids[:prefix]) == constraint.prefix
                assert not {PAD, UNK, START, END} & set(hypothesis.ids[prefix:])
                assert len(hypothesis.ids) >= 4
                pairs = list(zip(hypothesis.ids, hypothesis.ids[1:], strict=False))
                assert len(set(pairs)) == len(pairs)


def test_a_prefix_longer_than_the_limit_is_kept(make_peaky, make_sources, symbols):
    constraints = [Constraints(prefix=(5,) * 9)]
    options = DecodingOptions(max_length=4)
    (found,) = greedy(make_peaky(0), make_sources(0, [3]), symbols, options, constraints)
    assert found.hypotheses[0].ids[:9] == [5] * 9


def test_the_same_seed_samples_the_same_in_any_batch(make_peaky, make_sources, symbols):
    model = make_peaky(5, num_words=8, scale=1.0, end=1.0)
    lengths = [7, 2, 5, 1, 6, 3]
    sources = make_sources(5, lengths, num_words=8)
    options = DecodingOptions(
        do_sample=True, n_best=3, temperature=1.3, seed=7, max_extra_tokens=20
    )
    together = sample(model, sources, symbols, options)
    alone = [
        sample(model, sources[row : row + 1, :length], symbols, options)[0]
        for row, length in enumerate(lengths)
    ]
    turned = sample(model, sources.flip(0), symbols, options)[::-1]
    kept = sample(model, sources, symbols, options, shrink=False)
    longer = sample(model, torch.nn.functional.pad(sources, (0, 9)), symbols, options)
    for others in (alone, turned, kept, longer):
        assert ids_of(others) == ids_of(together)
    first = sample(model, sources, symbols, options.replace(n_best=1))
    assert ids_of(first) == [printed[:1] for printed in ids_of(together)]  # draws are independent
    other = sample(model, sources, symbols, options.replace(seed=8))
    assert ids_of(other) != ids_of(together)
    assert all(len(set(map(tuple, printed))) > 1 for printed in ids_of(together))


def ids_of(found) -> list[list[list[int]]]:
    return [[one.ids for one in row.hypotheses] for row in found]


PROBABILITIES = {4: 0.4, 5: 0.3, 6: 0.2, 7: 0.1}
NUM_DRAWS = 4000


@pytest.fixture
def one_step(make_chain):
    """Outputs one word with these probabilities, and ends."""
    return make_chain({9: {START: PROBABILITIES}}, vocab_size=10)


def frequencies(model, symbols, **options) -> dict[int, float]:
    chosen = DecodingOptions(do_sample=True, n_best=NUM_DRAWS, **options)
    (found,) = search(model, torch.tensor([[9, END]]), symbols, chosen)
    printed = [one.ids for one in found.hypotheses]
    assert all(len(ids) == 1 for ids in printed)
    return {token: printed.count([token]) / NUM_DRAWS for token in PROBABILITIES}


def assert_drawn_by(expected: dict[int, float], drawn: dict[int, float]) -> None:
    """Within four standard deviations; what has probability zero is never sampled."""
    for token, probability in expected.items():
        spread = math.sqrt(probability * (1 - probability) / NUM_DRAWS)
        assert abs(drawn[token] - probability) <= 4 * spread


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0, 1e38])
def test_samples_follow_the_probabilities(one_step, symbols, temperature):
    weights = {
        token: probability ** (1 / temperature) for token, probability in PROBABILITIES.items()
    }
    expected = {token: weight / sum(weights.values()) for token, weight in weights.items()}
    assert_drawn_by(expected, frequencies(one_step, symbols, temperature=temperature))


def test_samples_from_the_top_only(one_step, symbols):
    assert_drawn_by({4: 4 / 7, 5: 3 / 7, 6: 0, 7: 0}, frequencies(one_step, symbols, top_k=2))
    assert_drawn_by(
        {4: 4 / 9, 5: 3 / 9, 6: 2 / 9, 7: 0}, frequencies(one_step, symbols, top_p=0.75)
    )
    assert_drawn_by({4: 1, 5: 0, 6: 0, 7: 0}, frequencies(one_step, symbols, top_p=0.1))
    # top_p is of what top_k leaves: 4/7 is enough for one half
    both = frequencies(one_step, symbols, top_k=2, top_p=0.5)
    assert_drawn_by({4: 1, 5: 0, 6: 0, 7: 0}, both)


def test_a_probability_is_that_of_the_model_not_of_the_sample(one_step, symbols):
    """What was drawn among few, or hotly, is scored by the model's own probabilities."""
    chosen = DecodingOptions(do_sample=True, n_best=20, temperature=3.0, top_k=3, alpha=0.0)
    (found,) = sample(one_step, torch.tensor([[9, END]]), symbols, chosen)
    for one in found.hypotheses:
        assert one.log_prob == pytest.approx(math.log(PROBABILITIES[one.ids[0]]), abs=1e-5)


@pytest.mark.parametrize(
    ("top_k", "top_p", "kept"),
    [
        (0, 1.0, 4),
        (3, 1.0, 3),
        (9, 1.0, 4),
        (0, 0.39, 1),
        (0, 0.41, 2),
        (0, 0.69, 2),
        (0, 0.71, 3),
        (0, 0.95, 4),
        (2, 0.55, 1),
        (2, 0.6, 2),
    ],
)
def test_keeps_the_fewest_tokens_that_reach_the_probability(top_k, top_p, kept):
    log_probs = torch.tensor([[0.1, 0.4, 0.2, 0.3], [0.3, 0.1, 0.4, 0.2]]).log()
    probs, tokens = apply_temperature_top_k_top_p(
        log_probs, temperature=1.0, top_k=top_k, top_p=top_p
    )
    order = torch.tensor([[1, 3, 2, 0], [2, 0, 3, 1]])
    assert torch.equal(tokens, order[:, : tokens.size(1)])
    assert probs.gt(0).sum(1).tolist() == [kept, kept]
    right = torch.tensor([0.4, 0.3, 0.2, 0.1])[:kept]
    torch.testing.assert_close(
        probs[:, :kept] / probs.sum(1, keepdim=True), (right / right.sum()).expand(2, kept)
    )


def test_all_of_the_probability_is_every_token():
    """Sums of thousands of small numbers pass 1 by rounding before the last one."""
    torch.manual_seed(0)
    log_probs = torch.randn(8, 50_000).log_softmax(-1)
    probs, _ = apply_temperature_top_k_top_p(log_probs, temperature=1.0, top_k=0, top_p=1.0)
    assert bool((probs > 0).all())


def test_drawing_from_one_is_greedy(make_peaky, make_sources, symbols):
    model = make_peaky(2, num_words=8, end=1.0)
    sources = make_sources(2, [4, 6, 2], num_words=8)
    traversed = greedy(model, sources, symbols)
    for least in ({"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}):
        chosen = DecodingOptions(do_sample=True, **least)
        assert sample(model, sources, symbols, chosen) == traversed


def test_phrases_are_rejected_where_tokens_are_drawn(make_peaky, make_sources, symbols):
    class Needed:
        tokens = (5,)

        def is_satisfied(self, ids) -> bool:
            return 5 in ids

    constraints = [Constraints(required=(Needed(),))]
    sources = make_sources(0, [3])
    with pytest.raises(ConfigError, match="sampling"):
        search(make_peaky(0), sources, symbols, DecodingOptions(do_sample=True), constraints)
    # a beam of one cannot be greedy then
    (found,) = search(make_peaky(0), sources, symbols, DecodingOptions(beam_size=1), constraints)
    assert 5 in found.hypotheses[0].ids


@pytest.mark.parametrize("options", [{"beam_size": 1}, {"do_sample": True}])
def test_a_broken_model_is_named(make_peaky, make_sources, symbols, options):
    model = make_peaky(0)
    model.output.weight.data[5] = math.nan
    with pytest.raises(AttendoError, match="NaN"):
        search(model, make_sources(0, [3]), symbols, DecodingOptions(**options))
