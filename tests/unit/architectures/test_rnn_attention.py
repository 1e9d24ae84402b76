"""Recurrence with attention: the scores, the weights, both readings, and the feedback."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attendo.architectures.rnn_attention import BidirectionalEncoder, RnnAttention
from attendo.architectures.rnn_attention_scores import (
    AdditiveScore,
    MultiplicativeScore,
    attention_weights,
)
from attendo.core.errors import ConfigError
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.search import search

VOCAB = 23
CELLS = ("lstm", "gru")
KINDS = {
    "additive": {"attention": "additive"},
    "multiplicative": {"attention": "multiplicative", "cell": "gru"},
    "fed": {"input_feeding": True},
    "one layer": {"num_layers": 1, "attention": "multiplicative"},
    "one layer, fed": {"num_layers": 1, "input_feeding": True, "cell": "gru"},
}
kinds = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(**options):
    return RnnAttention(VOCAB, **{"d_model": 16, "num_layers": 2, **options}).double().eval()


def draw_ids(batch, length, *, lengths=()):
    ids = torch.randint(1, VOCAB, (batch, length))
    for row, real in enumerate(lengths):
        ids[row, real:] = 0
    return ids


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def numbers(parameter):
    return parameter.detach().numpy()


def advance_gru(layer, x, hidden):
    """One step of a GRU by its formula."""
    w, u, b, d = (numbers(parameter) for parameter in layer.rnn.parameters())
    (r, z, n), (r_kept, z_kept, n_kept) = np.split(w @ x + b, 3), np.split(u @ hidden + d, 3)
    r, z = sigmoid(r + r_kept), sigmoid(z + z_kept)
    return (1 - z) * np.tanh(n + r * n_kept) + z * hidden


def test_the_additive_score_is_bahdanaus():
    score = AdditiveScore(2, 2, 2)
    score.load_state_dict(
        {
            "query.weight": torch.tensor([[1.0, 0.0], [0.0, 2.0]]),
            "key.weight": torch.tensor([[0.0, 1.0], [1.0, 0.0]]),
            "energy.weight": torch.tensor([[3.0, -1.0]]),
        }
    )
    states, annotations = torch.tensor([[[0.5, -0.25]]]), torch.tensor([[[1.0, 2.0], [0.0, -0.5]]])
    found = score(states, score.project_keys(annotations))[0, 0]
    # W s = (0.5, -0.5); U h = (2, 1) and (-0.5, 0).
    wanted = [3 * np.tanh(2.5) - np.tanh(0.5), 3 * np.tanh(0.0) - np.tanh(-0.5)]
    np.testing.assert_allclose(found.detach(), wanted, rtol=1e-6)


def test_the_multiplicative_score_is_luongs_general_one():
    score = MultiplicativeScore(2, 3)
    score.load_state_dict({"key.weight": torch.tensor([[1.0, 0.0, 2.0], [0.0, -1.0, 0.0]])})
    states = torch.tensor([[[0.5, 4.0]]])
    annotations = torch.tensor([[[1.0, 2.0, 3.0], [0.0, 1.0, 0.0]]])
    found = score(states, score.project_keys(annotations))[0, 0]
    # W h = (7, -2) and (0, -1).
    assert found.tolist() == [0.5 * 7 - 4 * 2, -4.0]


@pytest.mark.parametrize("kind", ["additive", "multiplicative"])
def test_scores_of_all_pairs_equal_the_formula(kind):
    score = (AdditiveScore(3, 5, 4) if kind == "additive" else MultiplicativeScore(3, 5)).double()
    states, annotations = torch.randn(2, 4, 3).double(), torch.randn(2, 6, 5).double()
    found = score(states, score.project_keys(annotations))
    weights = {name: numbers(parameter) for name, parameter in score.named_parameters()}
    for b, i, j in np.ndindex(2, 4, 6):
        s, h = numbers(states[b, i]), numbers(annotations[b, j])
        if kind == "additive":
            inner = weights["query.weight"] @ s + weights["key.weight"] @ h
            wanted = weights["energy.weight"][0] @ np.tanh(inner)
        else:
            wanted = s @ weights["key.weight"] @ h
        assert found[b, i, j].item() == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("max_numbers", [1, 2 * 6 * 4, 3 * 2 * 6 * 4, 4 * 2 * 6 * 4])
def test_in_chunks_the_additive_score_is_the_same(max_numbers):
    whole = AdditiveScore(3, 5, 4).double()
    parts = AdditiveScore(3, 5, 4, max_elements=max_numbers).double()
    parts.load_state_dict(whole.state_dict())
    states, annotations = torch.randn(2, 7, 3).double(), torch.randn(2, 6, 5).double()
    weights, gradients, kept = torch.randn(2, 7, 6).double(), [], []
    for score in (whole, parts):
        sizes = {}
        with torch.autograd.graph.saved_tensors_hooks(
            lambda t, sizes=sizes: sizes.update({t.data_ptr(): t.numel()}) or t, lambda t: t
        ):
            found = score(states, score.project_keys(annotations))
        gradients.append(torch.autograd.grad((found * weights).sum(), list(score.parameters())))
        kept.append((found, sum(sizes.values())))
    torch.testing.assert_close(kept[1][0], kept[0][0], rtol=0, atol=1e-12)
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-10)
    assert kept[0][1] > 2 * 7 * 6 * 4 > kept[1][1], "gradients must not keep all pairs after all"


def test_weights_are_a_softmax_over_what_the_mask_allows():
    scores = torch.randn(2, 3, 5).double()
    mask = torch.tensor([[[True] * 5], [[True, True, True, False, False]]])
    weights = attention_weights(scores, mask)
    for b, length in enumerate((5, 3)):
        powers = np.exp(scores[b, :, :length].numpy())
        wanted = powers / powers.sum(-1, keepdims=True)
        np.testing.assert_allclose(weights[b, :, :length], wanted, atol=1e-12)
    assert bool((weights[1, :, 3:] == 0).all())
    assert bool((attention_weights(scores, torch.zeros_like(mask)) == 0).all())


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("num_layers", [1, 2])
def test_both_readings_equal_pytorchs_packed_ones(cell, num_layers):
    encoder = BidirectionalEncoder(cell, 5, 4, num_layers, dropout=0.3).double().eval()
    kind = torch.nn.LSTM if cell == "lstm" else torch.nn.GRU
    packed = kind(5, 4, num_layers=num_layers, batch_first=True, bidirectional=True).double()
    for number, layer in enumerate(encoder.layers):
        for suffix, reading in (("", layer.ahead), ("_reverse", layer.back)):
            for name, parameter in reading.rnn.named_parameters():
                packed.get_parameter(f"{name[:-1]}{number}{suffix}").data.copy_(parameter)
    x, lengths = torch.randn(3, 6, 5).double(), torch.tensor([6, 4, 1])
    out, _ = packed(pack_padded_sequence(x, lengths, batch_first=True))
    wanted, _ = pad_packed_sequence(out, batch_first=True)
    found = encoder(x, lengths)
    for row, length in enumerate(lengths.tolist()):
        own = encoder.project(wanted[row, :length])
        torch.testing.assert_close(found[row, :length], own, rtol=0, atol=1e-12)


@pytest.mark.parametrize("is_fed", [False, True])
@pytest.mark.parametrize("attention", ["additive", "multiplicative"])
def test_the_whole_model_equals_the_formulas(attention, is_fed):
    model = make(cell="gru", num_layers=1, attention=attention, input_feeding=is_fed, d_state=6)
    src_ids, tgt_ids = draw_ids(1, 4), draw_ids(1, 3)
    annotations = numbers(model.encode(src_ids).states[0])
    table = numbers(model.tgt_embedding.weight)
    weights = {name: numbers(p) for name, p in model.score.named_parameters()}
    bridge = model.bridge.layers[0]
    state = np.tanh(numbers(bridge.weight) @ annotations[0] + numbers(bridge.bias))
    vector = np.zeros(16)
    explanation = model.explain(src_ids, tgt_ids)
    for i, token in enumerate(tgt_ids[0].tolist()):
        x = np.concatenate([table[token], vector]) if is_fed else table[token]
        state = advance_gru(model.decoder[0], x, state)  # s_i
        if attention == "additive":
            inner = annotations @ weights["key.weight"].T + weights["query.weight"] @ state
            scores = np.tanh(inner) @ weights["energy.weight"][0]
        else:
            scores = annotations @ weights["key.weight"].T @ state
        alpha = np.exp(scores) / np.exp(scores).sum()
        context = alpha @ annotations  # c_i
        joined = np.concatenate([state, context])
        vector = np.tanh(numbers(model.combine.weight) @ joined + numbers(model.combine.bias))
        np.testing.assert_allclose(explanation.cross[0][0, 0, i].detach(), alpha, atol=1e-12)
        np.testing.assert_allclose(explanation.logits[0, i].detach(), table @ vector, atol=1e-12)


@pytest.mark.parametrize("is_fed", [False, True])
def test_only_input_feeding_lets_what_was_attended_to_decide_the_first_layers_states(is_fed):
    model = make(input_feeding=is_fed)
    state = model.start(model.encode(draw_ids(2, 5)))
    other = state._replace(values=state.values + 1.0)
    hidden = []
    for start in (state, other):
        own = start
        for ids in ([4, 5], [6, 7]):
            _, own = model.step(torch.tensor(ids), own)
        hidden.append([layer.hidden for layer in own.layers])
    assert torch.allclose(hidden[0][0], hidden[1][0], atol=1e-6) != is_fed
    assert not torch.allclose(hidden[0][1], hidden[1][1], atol=1e-6)  # upper layers always see it


@kinds
def test_steps_equal_the_whole_target_at_once(options):
    model = make(**options)
    src_ids, tgt_ids = draw_ids(3, 6, lengths=[6, 2, 4]), draw_ids(3, 5)
    logits = model(src_ids, tgt_ids)
    state = model.start(model.encode(src_ids))
    for position in range(5):
        stepped, state = model.step(tgt_ids[:, position], state)
        torch.testing.assert_close(stepped, logits[:, position], rtol=0, atol=1e-12)


@kinds
def test_a_row_is_equal_alone_and_with_longer_ones(options):
    model = make(**options)
    lengths = [7, 1, 4]
    src_ids, tgt_ids = draw_ids(3, 7, lengths=lengths), draw_ids(3, 4)
    together = model.explain(src_ids, tgt_ids)
    for row, length in enumerate(lengths):
        alone = model.explain(src_ids[row : row + 1, :length], tgt_ids[row : row + 1])
        torch.testing.assert_close(together.logits[row], alone.logits[0], rtol=0, atol=1e-12)
        own = together.cross[0][row]
        torch.testing.assert_close(own[..., :length], alone.cross[0][0], rtol=0, atol=1e-12)
        assert bool((own[..., length:] == 0).all())


@kinds
def test_one_attention_of_one_head(options):
    explanation = make(**options).explain(draw_ids(2, 6, lengths=[6, 3]), draw_ids(2, 5))
    assert explanation.encoder_self == explanation.decoder_self == ()
    (weights,) = explanation.cross
    assert weights.shape == (2, 1, 5, 6)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, 5).double())


def test_decoder_input_may_hold_the_id_of_padding():
    """Some models start with the padding symbol: what the decoder reads is never hidden."""
    model = make()
    src_ids, tgt_ids = draw_ids(2, 5), draw_ids(2, 4)
    tgt_ids[:, 0] = 0
    changed = tgt_ids.clone()
    changed[:, 0] = 7
    hidden = torch.zeros(2, 1, 4, dtype=torch.bool)
    assert torch.equal(model(src_ids, tgt_ids), model(src_ids, tgt_ids, tgt_mask=hidden))
    assert not torch.allclose(model(src_ids, tgt_ids), model(src_ids, changed), atol=1e-4)


@kinds
def test_a_source_of_nothing_but_padding_gives_numbers(options):
    model = make(**options)
    src_ids = torch.zeros(2, 4, dtype=torch.long)
    src_ids[0] = 5
    explanation = model.explain(src_ids, draw_ids(2, 3))
    explanation.logits.sum().backward()
    assert bool(explanation.logits.isfinite().all())
    assert bool((explanation.cross[0][1] == 0).all())
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


@kinds
def test_a_step_leaves_its_state_as_it_was(options):
    model = make(**options)
    state = model.start(model.encode(draw_ids(2, 5)))
    _, state = model.step(torch.tensor([4, 5]), state)
    first, _ = model.step(torch.tensor([6, 7]), state)
    model.step(torch.tensor([8, 9]), state)
    again, _ = model.step(torch.tensor([6, 7]), state)
    assert torch.equal(first, again)


@kinds
def test_it_learns_twelve_random_pairs_by_heart(options):
    model = RnnAttention(VOCAB, **{"d_model": 32, "num_layers": 2, "dropout": 0.0, **options})
    src_ids, tgt_ids = draw_ids(12, 6, lengths=[6, 5, 4, 3] * 3), torch.randint(4, VOCAB, (12, 5))
    start, end = torch.full((12, 1), 2), torch.full((12, 1), 3)
    fed, printed = torch.cat((start, tgt_ids), dim=1), torch.cat((tgt_ids, end), dim=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(120):
        loss = F.cross_entropy(model(src_ids, fed).flatten(0, 1), printed.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05
    symbols = SpecialIds(start_id=2, end_id=3, pad_id=0, unk_id=1)
    found = search(model.eval(), src_ids, symbols, DecodingOptions(beam_size=1))
    assert [each.hypotheses[0].ids for each in found] == tgt_ids.tolist()


@kinds
def test_autocast_in_training_and_in_beam_search(options):
    model = RnnAttention(VOCAB, **{"d_model": 16, "num_layers": 2, "dropout": 0.0, **options})
    src_ids, tgt_ids = draw_ids(2, 5, lengths=[5, 3]), draw_ids(2, 4)
    plain = model(src_ids, tgt_ids)
    symbols = SpecialIds(start_id=2, end_id=3, pad_id=0, unk_id=1)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(src_ids, tgt_ids)
        state = model.start(model.encode(src_ids))
        _, state = model.step(tgt_ids[:, 0], state)
        found = search(model, src_ids, symbols, DecodingOptions(beam_size=3, max_extra_tokens=4))
    assert logits.dtype == torch.bfloat16
    assert state.layers[0].hidden.dtype == torch.float32
    assert len(found) == 2
    torch.testing.assert_close(logits.float(), plain, rtol=0, atol=0.05)
    logits.float().sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


@kinds
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_another_type_of_weights(options, dtype):
    logits = make(**options).to(dtype)(draw_ids(2, 4), draw_ids(2, 3))
    assert logits.dtype == dtype


def test_dropout_only_while_training_and_between_layers():
    model = make(dropout=0.5)
    src_ids, tgt_ids = draw_ids(1, 5), draw_ids(1, 5)
    assert torch.equal(model(src_ids, tgt_ids), model(src_ids, tgt_ids))
    model.train()
    assert not torch.equal(model(src_ids, tgt_ids), model(src_ids, tgt_ids))
    model.dropout.p = 0.0  # on embeddings and before the output
    assert not torch.equal(model.encode(src_ids).states, model.encode(src_ids).states)


def test_vocabularies_and_widths_of_their_own():
    model = make(tgt_vocab_size=31, tie_embeddings="none", d_state=9, cell="gru")
    src_ids, tgt_ids = draw_ids(2, 4), torch.randint(1, 31, (2, 3))
    assert model(src_ids, tgt_ids).shape == (2, 3, 31)
    assert model.encode(src_ids).states.shape == (2, 4, 16)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"input_feding": True}, "did you mean 'input_feeding'"),
        ({"atention": "additive"}, "did you mean 'attention'"),
        ({"attention": "dot"}, "'additive' or 'multiplicative'"),
        ({"reverse_source": True}, "unknown key 'reverse_source'"),
        ({"dropout": 1.0}, "dropout = 1.0"),
    ],
)
def test_bad_options_are_rejected(options, words):
    with pytest.raises(ConfigError, match=words):
        RnnAttention(VOCAB, **options)
