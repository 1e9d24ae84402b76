from __future__ import annotations

from itertools import permutations

import pytest
import torch

from attendo.core.errors import InputError
from attendo.core.protocols import Seq2SeqModel
from attendo.decoding.ensemble import Ensemble
from attendo.decoding.options import DecodingOptions
from attendo.decoding.scoring import score
from attendo.decoding.search import search

PAD, UNK, START, END = range(4)
OPTIONS = (
    DecodingOptions(beam_size=1, max_extra_tokens=8),
    DecodingOptions(beam_size=4, n_best=3, max_extra_tokens=8),
    DecodingOptions(do_sample=True, n_best=2, max_extra_tokens=8),
)


@pytest.fixture
def members(make_peaky):
    """Three models of different sizes that read and write the same ids."""
    return [
        make_peaky(1, num_words=8, end=1.0),
        make_peaky(2, num_words=8, end=1.0, num_layers=2),
        make_peaky(3, num_words=8, end=1.0, d_model=24, num_heads=4),
    ]


@pytest.fixture
def sources(make_sources):
    return make_sources(4, [5, 3, 6], num_words=8)


def test_an_ensemble_of_one_is_the_model(members, sources, symbols):
    for options in OPTIONS:
        alone = search(members[0], sources, symbols, options)
        found = search(Ensemble(members[:1]), sources, symbols, options)
        for one, other in zip(found, alone, strict=True):
            assert [h.ids for h in one.hypotheses] == [h.ids for h in other.hypotheses]
            assert [h.score for h in one.hypotheses] == pytest.approx(
                [h.score for h in other.hypotheses], abs=1e-4
            )


def test_the_probabilities_are_the_mean_of_theirs(members, sources):
    tgt_ids = torch.randint(4, 12, (3, 5))
    expected = torch.stack([model(sources, tgt_ids).softmax(-1) for model in members]).mean(0)
    ensemble = Ensemble(members)
    torch.testing.assert_close(
        ensemble.forward(sources, tgt_ids).exp(), expected, rtol=0, atol=1e-6
    )
    state = ensemble.start(ensemble.encode(sources))
    for position in range(5):
        logits, state = ensemble.step(tgt_ids[:, position], state)
        torch.testing.assert_close(logits.exp(), expected[:, position], rtol=0, atol=1e-5)


def test_an_ensemble_outputs_what_neither_model_would_alone(make_chain, symbols):
    """By hand: A has (0.6 + 0) / 2, B has (0 + 0.6) / 2, C has 0.4 from both."""
    a, b, c = 4, 5, 6
    first = make_chain({9: {START: {a: 0.6, c: 0.4}}}, vocab_size=10)
    second = make_chain({9: {START: {b: 0.6, c: 0.4}}}, vocab_size=10)
    source = torch.tensor([[9, END]])
    options = DecodingOptions(beam_size=2, alpha=0.0)
    for model, printed in ((first, a), (second, b), (Ensemble([first, second]), c)):
        (found,) = search(model, source, symbols, options)
        assert found.hypotheses[0].ids == [printed]
    assert found.hypotheses[0].log_prob == pytest.approx(torch.tensor(0.4).log().item(), abs=1e-6)


def test_their_order_does_not_matter(members, sources, symbols):
    for options in OPTIONS:
        expected = None
        for order in permutations(members):
            found = search(Ensemble(order), sources, symbols, options)
            ids = [[h.ids for h in one.hypotheses] for one in found]
            scores = [h.score for one in found for h in one.hypotheses]
            expected = expected or (ids, scores)
            assert ids == expected[0]
            assert scores == pytest.approx(expected[1], abs=1e-4)


def test_keeps_the_contract(members, sources, symbols):
    ensemble = Ensemble(members)
    assert isinstance(ensemble, Seq2SeqModel)
    memory = ensemble.encode(sources)
    assert memory.states.shape[:2] == sources.shape
    assert torch.equal(memory.mask, sources.ne(PAD)[:, None])

    tgt_ids = torch.tensor([[START, 5], [START, 6], [START, 7]])
    index = torch.tensor([2, 0, 0, 1])
    _, state = ensemble.step(tgt_ids[:, 0], ensemble.start(memory))
    straight, _ = ensemble.step(tgt_ids[:, 1], state)
    moved, _ = ensemble.step(tgt_ids[index, 1], ensemble.reorder(state, index))
    torch.testing.assert_close(moved, straight[index], rtol=0, atol=1e-5)

    explanation = ensemble.explain(sources, tgt_ids)
    torch.testing.assert_close(
        explanation.logits, ensemble.forward(sources, tgt_ids), rtol=0, atol=1e-5
    )
    assert len(explanation.cross) == 1 + 2 + 1  # every layer of every model
    for kind in ("encoder_self", "decoder_self", "cross"):
        own = [weights for model in members for weights in model.explain(sources, tgt_ids)[kind]]
        for weights, expected in zip(explanation[kind], own, strict=True):
            torch.testing.assert_close(weights, expected)

    (scored, *_) = score(ensemble, sources, [[5, 6], [], [7]], symbols)
    assert len(scored) == 3


def test_what_makes_no_ensemble_is_rejected(members, sources):
    with pytest.raises(InputError, match="no models"):
        Ensemble([])
    with pytest.raises(InputError, match="one model"):
        Ensemble(members).start(members[0].encode(sources))


def test_models_of_different_vocabularies_are_rejected(make_peaky, make_sources, symbols):
    ensemble = Ensemble([make_peaky(0, num_words=8), make_peaky(0, num_words=9)])
    with pytest.raises(InputError, match=r"12.*13"):
        search(ensemble, make_sources(0, [4], num_words=8), symbols, OPTIONS[1])
