"""The encoder-decoder with one context vector, and the recurrent layers beneath both baselines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit

from attendo.architectures.rnn_layers import CellState, RecurrentLayer, reverse_sequences
from attendo.architectures.rnn_seq2seq import RnnSeq2Seq
from attendo.core.errors import ConfigError, InputError
from attendo.core.seeding import seed_everything
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.search import search

VOCAB = 23
CELLS = ("lstm", "gru")


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def make(**options):
    return RnnSeq2Seq(VOCAB, **{"d_model": 16, "num_layers": 2, **options}).double().eval()


def draw_ids(batch, length, *, lengths=()):
    ids = torch.randint(1, VOCAB, (batch, length))
    for row, real in enumerate(lengths):
        ids[row, real:] = 0
    return ids


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def run_by_hand(recurrence, x, hidden, cell):
    """The formulas in the docstring of `recurrence`, one position and one row at a time."""
    weights = dict(recurrence.rnn.named_parameters())
    w, u, b, d = (
        weights[name].detach().numpy()
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
    )
    states = []
    for position in x:
        read, kept = w @ position + b, u @ hidden + d
        if cell is not None:
            i, f, g, o = np.split(read + kept, 4)
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            hidden = sigmoid(o) * np.tanh(cell)
        else:
            (r, z, n), (r_kept, z_kept, n_kept) = np.split(read, 3), np.split(kept, 3)
            r, z = sigmoid(r + r_kept), sigmoid(z + z_kept)
            hidden = (1 - z) * np.tanh(n + r * n_kept) + z * hidden
        states.append(hidden)
    return np.array(states), hidden, cell


def linear(layer, x):
    return x @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()


@pytest.mark.parametrize("cell", CELLS)
def test_a_layer_equals_the_formulas(cell):
    layer = RecurrentLayer(cell, 3, 4).double()
    for parameter in layer.parameters():
        torch.nn.init.uniform_(parameter, -1, 1)  # biases too
    x, hidden = torch.randn(2, 5, 3).double(), torch.randn(2, 4).double()
    memory = torch.randn(2, 4).double() if cell == "lstm" else None
    found, last = layer(x, CellState(hidden, memory))
    for row in range(2):
        start = (hidden[row].numpy(), None if memory is None else memory[row].numpy())
        states, end, end_cell = run_by_hand(layer, x[row].numpy(), *start)
        np.testing.assert_allclose(found[row].detach(), states, atol=1e-12)
        np.testing.assert_allclose(last.hidden[row].detach(), end, atol=1e-12)
        if memory is not None:
            np.testing.assert_allclose(last.cell[row].detach(), end_cell, atol=1e-12)
    assert (last.cell is None) == (cell == "gru")


@pytest.mark.parametrize("cell", CELLS)
def test_the_whole_model_equals_the_formulas(cell):
    model = make(cell=cell, num_layers=1, d_state=6)
    src_ids, tgt_ids = draw_ids(1, 4), draw_ids(1, 3)
    table = model.src_embedding.weight.detach().numpy()
    nothing = (np.zeros(6), np.zeros(6) if cell == "lstm" else None)
    read = table[src_ids[0].numpy()[::-1]]  # backwards
    _, context, _ = run_by_hand(model.encoder.layers[0], read, *nothing)
    first = np.tanh(linear(model.bridge.layers[0], context))
    start = (first[:6], first[6:]) if cell == "lstm" else (first, None)
    repeated = np.tile(context, (3, 1))
    fed = np.concatenate([table[tgt_ids[0].numpy()], repeated], axis=1)
    states, _, _ = run_by_hand(model.decoder.layers[0], fed, *start)
    combined = np.tanh(linear(model.combine, np.concatenate([states, repeated], axis=1)))
    np.testing.assert_allclose(
        model(src_ids, tgt_ids)[0].detach(), combined @ table.T, rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("cell", CELLS)
def test_layers_equal_pytorchs_own_stack(cell):
    model = make(cell=cell, num_layers=3, reverse_source=False)
    kind = torch.nn.LSTM if cell == "lstm" else torch.nn.GRU
    stack = kind(16, 16, num_layers=3, batch_first=True).double()
    for number, layer in enumerate(model.encoder.layers):
        for name, parameter in layer.rnn.named_parameters():
            stack.get_parameter(f"{name[:-1]}{number}").data.copy_(parameter)
    src_ids = draw_ids(2, 5)
    states, _ = stack(model.src_embedding(src_ids))
    torch.testing.assert_close(model.encode(src_ids).states, states, rtol=0, atol=1e-12)


def test_reverse_turns_round_what_is_real_and_undoes_itself():
    x = torch.arange(1.0, 11.0).reshape(2, 5, 1)
    lengths = torch.tensor([5, 3])
    turned = reverse_sequences(x, lengths)
    assert turned.flatten().tolist() == [5, 4, 3, 2, 1, 8, 7, 6, 9, 10]
    assert torch.equal(reverse_sequences(turned, lengths), x)


@pytest.mark.parametrize("cell", CELLS)
def test_reading_backwards_is_reading_a_source_that_was_reversed(cell):
    backwards = make(cell=cell)
    ahead = make(cell=cell, reverse_source=False)
    ahead.load_state_dict(backwards.state_dict())
    src_ids, tgt_ids = draw_ids(2, 5, lengths=[5, 3]), draw_ids(2, 4)
    turned = reverse_sequences(src_ids[:, :, None], torch.tensor([5, 3])).squeeze(-1)
    straight = backwards(src_ids, tgt_ids)
    torch.testing.assert_close(straight, ahead(turned, tgt_ids), rtol=0, atol=1e-12)
    assert not torch.allclose(straight, ahead(src_ids, tgt_ids), atol=1e-4)
    # The states lie in the order of the source: each at the word after which it was made.
    found, other = backwards.encode(src_ids).states, ahead.encode(turned).states
    torch.testing.assert_close(found[0], other[0].flip(0), rtol=0, atol=1e-12)
    torch.testing.assert_close(found[1, :3], other[1, :3].flip(0), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("is_reversed", "last"), [(True, [0, 0]), (False, [5, 3])])
def test_one_vector_is_all_that_the_decoder_knows_of_the_source(is_reversed, last):
    model = make(reverse_source=is_reversed)
    src_ids, tgt_ids = draw_ids(2, 6, lengths=[6, 4]), draw_ids(2, 3)
    memory = model.encode(src_ids)
    others = torch.randn_like(memory.states)
    kept = others.clone()
    for row, position in enumerate(last):
        kept[row, position] = memory.states[row, position]

    def say(states):
        state, logits = model.start(memory._replace(states=states)), []
        for position in range(3):
            reported, state = model.step(tgt_ids[:, position], state)
            logits.append(reported)
        return torch.stack(logits, dim=1)

    assert torch.equal(say(memory.states), say(kept))
    assert not torch.allclose(say(memory.states), say(others), atol=1e-3)
    torch.testing.assert_close(say(kept), model(src_ids, tgt_ids), rtol=0, atol=1e-12)


@pytest.mark.parametrize("is_reversed", [True, False])
@pytest.mark.parametrize("cell", CELLS)
def test_a_row_is_equal_alone_and_with_longer_ones(cell, is_reversed):
    model = make(cell=cell, reverse_source=is_reversed)
    lengths = [7, 1, 4]
    src_ids, tgt_ids = draw_ids(3, 7, lengths=lengths), draw_ids(3, 4)
    together = model(src_ids, tgt_ids)
    for row, length in enumerate(lengths):
        alone = model(src_ids[row : row + 1, :length], tgt_ids[row : row + 1])
        torch.testing.assert_close(together[row], alone[0], rtol=0, atol=1e-12)


def test_a_given_mask_replaces_the_one_read_off_the_ids():
    model = make()
    src_ids, tgt_ids = draw_ids(2, 5), draw_ids(2, 4)
    mask = (torch.arange(5) < 3)[None, None]  # one row for all
    hidden = model(src_ids, tgt_ids, src_mask=mask)
    torch.testing.assert_close(hidden, model(src_ids[:, :3], tgt_ids), rtol=0, atol=1e-12)


def test_a_source_of_nothing_but_padding_gives_numbers():
    model = make()
    src_ids = torch.zeros(2, 4, dtype=torch.long)
    src_ids[0] = 5
    logits = model(src_ids, draw_ids(2, 3))
    logits.sum().backward()
    assert bool(logits.isfinite().all())
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


@pytest.mark.parametrize("cell", CELLS)
def test_a_step_leaves_its_state_as_it_was(cell):
    model = make(cell=cell)
    state = model.start(model.encode(draw_ids(2, 5)))
    _, state = model.step(torch.tensor([4, 5]), state)
    first, _ = model.step(torch.tensor([6, 7]), state)
    model.step(torch.tensor([8, 9]), state)
    again, _ = model.step(torch.tensor([6, 7]), state)
    assert torch.equal(first, again)


def test_there_is_no_attention_to_show():
    src_ids, tgt_ids = draw_ids(2, 5), draw_ids(2, 4)
    model = make()
    explanation = model.explain(src_ids, tgt_ids)
    assert explanation.encoder_self == explanation.decoder_self == explanation.cross == ()
    assert torch.equal(explanation.logits, model(src_ids, tgt_ids))


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize("is_reversed", [True, False])
def test_it_learns_twelve_random_pairs_by_heart(cell, is_reversed):
    model = RnnSeq2Seq(
        VOCAB, d_model=32, num_layers=2, cell=cell, dropout=0.0, reverse_source=is_reversed
    )
    src_ids, tgt_ids = draw_ids(12, 6, lengths=[6, 5, 4, 3] * 3), torch.randint(4, VOCAB, (12, 5))
    start, end = torch.full((12, 1), 2), torch.full((12, 1), 3)
    fed, printed = torch.cat((start, tgt_ids), dim=1), torch.cat((tgt_ids, end), dim=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(150):
        loss = F.cross_entropy(model(src_ids, fed).flatten(0, 1), printed.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05
    symbols = SpecialIds(start_id=2, end_id=3, pad_id=0, unk_id=1)
    found = search(model.eval(), src_ids, symbols, DecodingOptions(beam_size=1))
    assert [each.hypotheses[0].ids for each in found] == tgt_ids.tolist()


@pytest.mark.parametrize("cell", CELLS)
def test_a_new_layer_remembers(cell):
    layer = RecurrentLayer(cell, 5, 8)
    weights = dict(layer.rnn.named_parameters())
    num_gates = 4 if cell == "lstm" else 3
    for gate in weights["weight_hh_l0"].chunk(num_gates):
        torch.testing.assert_close(gate @ gate.T, torch.eye(8), rtol=0, atol=1e-5)
    biases = (weights["bias_ih_l0"] + weights["bias_hh_l0"]).chunk(num_gates)
    wanted = [0, 1, 0, 0] if cell == "lstm" else [0, 0, 0]
    assert [bias.unique().tolist() for bias in biases] == [[one] for one in wanted]


def test_the_same_seed_gives_the_same_model():
    made = []
    for seed in (1, 1, 2):
        seed_everything(seed)
        made.append(RnnSeq2Seq(VOCAB, d_model=8, tie_embeddings="none").state_dict())
    assert all(torch.equal(made[0][name], made[1][name]) for name in made[0])
    drawn = [name for name in made[0] if not ("bias" in name and "rnn" in name)]
    assert not any(torch.equal(made[0][name], made[2][name]) for name in drawn)


def test_dropout_only_while_training_and_between_layers():
    model = make(dropout=0.5)
    src_ids, tgt_ids = draw_ids(1, 5), draw_ids(1, 5)
    assert torch.equal(model(src_ids, tgt_ids), model(src_ids, tgt_ids))
    model.train()
    assert not torch.equal(model(src_ids, tgt_ids), model(src_ids, tgt_ids))
    model.dropout.p = 0.0  # on embeddings and before the output
    assert not torch.equal(model.encode(src_ids).states, model.encode(src_ids).states)
    shallow = make(dropout=0.5, num_layers=1).train()
    shallow.dropout.p = 0.0
    assert torch.equal(shallow.encode(src_ids).states, shallow.encode(src_ids).states)


@pytest.mark.parametrize("cell", CELLS)
def test_autocast_reaches_the_projections_but_not_the_recurrence(cell):
    model = RnnSeq2Seq(VOCAB, d_model=16, num_layers=2, cell=cell).eval()
    src_ids, tgt_ids = draw_ids(2, 5, lengths=[5, 3]), draw_ids(2, 4)
    plain = model(src_ids, tgt_ids)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(src_ids, tgt_ids)
        state = model.start(model.encode(src_ids))
        stepped, state = model.step(tgt_ids[:, 0], state)
        stepped, state = model.step(tgt_ids[:, 1], model.reorder(state, torch.tensor([1, 0])))
    assert logits.dtype == stepped.dtype == torch.bfloat16
    assert state.layers[0].hidden.dtype == torch.float32
    torch.testing.assert_close(logits.float(), plain, rtol=0, atol=0.05)
    logits.float().sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
@pytest.mark.parametrize("cell", CELLS)
def test_a_gpu_gives_the_same_and_gradients_outside_training(cell):
    """cuDNN goes backward only in training mode, and its autocast knows only float16."""
    model = make(cell=cell)
    src_ids, tgt_ids = draw_ids(2, 5, lengths=[5, 3]), draw_ids(2, 4)
    plain = model(src_ids, tgt_ids)
    model.cuda()
    logits = model(src_ids.cuda(), tgt_ids.cuda())
    torch.testing.assert_close(logits.cpu(), plain, rtol=0, atol=1e-9)
    logits.sum().backward()
    with torch.autocast("cuda", torch.bfloat16):
        logits = model.float()(src_ids.cuda(), tgt_ids.cuda())
    assert logits.dtype == torch.bfloat16
    torch.testing.assert_close(logits.float().cpu(), plain.float(), rtol=0, atol=0.05)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_another_type_of_weights(dtype):
    logits = make(cell="lstm").to(dtype)(draw_ids(2, 4), draw_ids(2, 3))
    assert logits.dtype == dtype


def test_vocabularies_and_widths_of_their_own():
    model = make(tgt_vocab_size=31, tie_embeddings="decoder", d_state=24, num_layers=1)
    src_ids, tgt_ids = draw_ids(2, 4), torch.randint(1, 31, (2, 3))
    assert model(src_ids, tgt_ids).shape == (2, 3, 31)
    assert model.encode(src_ids).states.shape == (2, 4, 24)
    lstm = 4 * 24 * (16 + 24 + 2), 4 * 24 * (16 + 24 + 24 + 2)
    linears = (24 + 1) * 48 + (48 + 1) * 16
    assert model.num_parameters() == (VOCAB + 31) * 16 + sum(lstm) + linears


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"cel": "gru"}, "did you mean 'cell'"),
        ({"reverse_sorce": True}, "did you mean 'reverse_source'"),
        ({"input_feeding": True}, "unknown key 'input_feeding'"),
        ({"cell": "rnn"}, "'lstm' or 'gru'"),
        ({"num_layers": 0}, "num_layers = 0"),
        ({"d_state": 0}, "d_state = 0"),
        ({"tgt_vocab_size": 5}, "three-way"),
    ],
)
def test_bad_options_are_rejected(options, words):
    with pytest.raises(ConfigError, match=words):
        RnnSeq2Seq(VOCAB, **options)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m: m(draw_ids(1, 2), torch.tensor([[VOCAB]])), "tgt_ids holds id 23"),
        (lambda m: m.encode(draw_ids(2, 0)), "without any position"),
        (lambda m: m.encode(draw_ids(1, 2), torch.ones(1, 1, 2)), "src_mask has type"),
    ],
)
def test_bad_input_is_rejected_with_a_hint(call, words):
    with pytest.raises(InputError, match=words) as caught:
        call(make())
    assert caught.value.hint
