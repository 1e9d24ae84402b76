"""The convolutional model: its blocks by hand, how far it sees, and that its steps are its pass."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
import torch
import torch._dynamo
from torch import nn
from torch._dynamo.testing import CompileCounterWithBackend

from attendo.architectures.conv_layers import (
    ConvEncoderLayer,
    EncoderOutput,
    GatedConvolution,
    MultiStepAttention,
    scale_gradient,
)
from attendo.architectures.conv_s2s import ConvS2S
from attendo.bundle import get_weights, set_weights
from attendo.core.errors import ConfigError, InputError
from attendo.core.protocols import Memory
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.search import search
from attendo.training.averaging import average_weights

VOCAB = 19
OPTIONS = [
    {},
    {"d_hidden": 24},
    {"kernel_size": 1},
    {"kernel_size": 5, "num_decoder_layers": 3},
    {"tgt_vocab_size": 23, "tie_embeddings": "decoder"},
    {"tie_embeddings": "none", "pad_id": 3},
]
any_options = pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: "-".join(options) or "plain"
)


@pytest.fixture
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def make_model(dtype=torch.float32, **options):
    sizes = {"vocab_size": VOCAB, "d_model": 16, "num_layers": 2}
    return ConvS2S(**{**sizes, **options}).to(dtype).eval()


def draw_ids(batch, length, pad_id=0):
    ids = torch.randint(0, VOCAB - 1, (batch, length))
    return ids + (ids >= pad_id)  # never the padding


def step_through(model, src_ids, tgt_ids):
    state, logits = model.start(model.encode(src_ids)), []
    for ids in tgt_ids.unbind(1):
        stepped, state = model.step(ids, state)
        logits.append(stepped)
    return torch.stack(logits, dim=1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def softmax(x):
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def test_a_causal_gate_by_hand():
    gated = GatedConvolution(1, 3, dropout=0.0, causal=True)
    gated.convolution.weight = torch.tensor([[1.0, 2.0, 3.0], [0.0, 0.0, 1.0]])
    gated.convolution.bias.data = torch.tensor([0.5, 0.0])
    x = torch.tensor([[[1.0], [0.0], [2.0]]])
    values = np.array([0.5 + 3 * 1, 0.5 + 2 * 1, 0.5 + 1 * 1 + 3 * 2])
    expected = values * sigmoid(np.array([1.0, 0.0, 2.0]))
    found = gated(x, torch.ones(1, 1, 3, dtype=torch.bool))
    np.testing.assert_allclose(found.detach().numpy().ravel(), expected, rtol=1e-6)


def test_an_encoder_block_equals_numpy():
    layer = ConvEncoderLayer(2, 3, dropout=0.0).double()
    convolution = layer.gated.convolution
    convolution.bias.data.normal_()
    convolution.parametrizations.weight.original0.data.uniform_(0.5, 2.0)
    length, direction = (
        p.detach().numpy() for p in convolution.parametrizations.weight.parameters()
    )
    weight = length * direction / np.sqrt((direction**2).sum(1, keepdims=True))
    weight = weight.reshape(4, 3, 2)  # outputs, positions, inputs
    x = np.array([[0.5, -1.0], [2.0, 0.25], [-0.75, 1.5], [1.0, 1.0], [9.0, 9.0]])
    real = x[:4]  # the last place is padding
    around = np.concatenate([np.zeros((1, 2)), real, np.zeros((1, 2))])
    expected = []
    for position in range(4):
        both = convolution.bias.detach().numpy() + np.array(
            [(weight[out] * around[position : position + 3]).sum() for out in range(4)]
        )
        expected.append((both[:2] * sigmoid(both[2:]) + real[position]) * np.sqrt(0.5))
    mask = torch.tensor([[[True, True, True, True, False]]])
    found = layer(torch.from_numpy(x)[None], mask)[0, :4]
    np.testing.assert_allclose(found.detach().numpy(), expected, rtol=1e-12)


def test_attention_equals_numpy():
    attention = MultiStepAttention(3, 5).double()
    h, g = torch.randn(2, 4, 3).double(), torch.randn(2, 4, 5).double()
    states = torch.randn(2, 6, 10).double()
    mask = torch.ones(2, 1, 6, dtype=torch.bool)
    mask[1, :, 4:] = False
    found, weights = attention(h, g, EncoderOutput.from_memory(Memory(states, mask)))
    w, b, out, out_b = (
        tensor.detach().numpy()
        for tensor in (
            attention.query.weight,
            attention.query.bias,
            attention.leave.weight,
            attention.leave.bias,
        )
    )
    for row, num_real in enumerate((6, 4)):
        z, values = np.split(states[row, :num_real].numpy(), 2, axis=-1)
        summary = (h[row].numpy() @ w.T + b + g[row].numpy()) * sqrt(0.5)
        expected = softmax(summary @ z.T)
        context = num_real * sqrt(1 / num_real) * expected @ values
        added = (h[row].numpy() + context @ out.T + out_b) * sqrt(0.5)
        np.testing.assert_allclose(weights[row, :, :num_real].detach(), expected, rtol=1e-10)
        np.testing.assert_allclose(found[row].detach(), added, rtol=1e-10)
        assert not weights[row, :, num_real:].any()


def test_a_memory_holds_keys_and_values():
    model = make_model(torch.float64)
    src_ids = draw_ids(2, 5)
    embedded, _ = model.embed_source(src_ids, None)
    keys, values = model.encode(src_ids).states.split(16, dim=-1)
    torch.testing.assert_close(values, (keys + embedded) * sqrt(0.5))
    words = model.src_embedding.weight[src_ids] + model.src_positions.weight[:5]
    torch.testing.assert_close(embedded, words)


def reach_of(output, embedded, position):
    """Return the input positions that one output position depends on."""
    (gradient,) = torch.autograd.grad(output[0, position].square().sum(), embedded)
    return gradient[0].abs().sum(-1).nonzero().ravel().tolist()


@pytest.mark.parametrize(("num_layers", "kernel_size"), [(1, 3), (3, 3), (6, 5), (4, 1)])
def test_the_encoder_sees_as_far_as_its_layers_reach(num_layers, kernel_size):
    model = make_model(torch.float64, num_layers=num_layers, kernel_size=kernel_size)
    embedded = torch.randn(1, 40, 16, dtype=torch.float64, requires_grad=True)
    mask = torch.ones(1, 1, 40, dtype=torch.bool)
    reach = num_layers * (kernel_size - 1) // 2
    found = reach_of(model.encoder(embedded, mask), embedded, position=20)
    assert found == list(range(20 - reach, 20 + reach + 1))
    assert (num_layers, kernel_size) != (6, 5) or len(found) == 25  # the paper's example


@pytest.mark.parametrize(("num_layers", "kernel_size"), [(1, 3), (3, 3), (4, 5), (4, 1)])
def test_the_decoder_sees_as_far_back_as_its_layers_reach(num_layers, kernel_size):
    model = make_model(torch.float64, num_layers=num_layers, kernel_size=kernel_size)
    source = EncoderOutput.from_memory(model.encode(draw_ids(1, 7)))
    embedded = torch.randn(1, 30, 16, dtype=torch.float64, requires_grad=True)
    x, _ = model.decoder(embedded, source, torch.ones(1, 1, 30, dtype=torch.bool))
    reach = num_layers * (kernel_size - 1)
    assert reach_of(x, embedded, position=20) == list(range(20 - reach, 21))


@any_options
def test_steps_equal_forward_beyond_the_kernel(options):
    model = make_model(torch.float64, **options)
    pad_id = options.get("pad_id", 0)
    src_ids, tgt_ids = draw_ids(3, 6, pad_id), draw_ids(3, 14, pad_id)
    src_ids[1, 4:] = pad_id
    torch.testing.assert_close(step_through(model, src_ids, tgt_ids), model(src_ids, tgt_ids))


@pytest.mark.parametrize("kernel_size", [1, 3, 5])
def test_steps_equal_forward_after_beams_have_moved(kernel_size):
    model = make_model(torch.float64, kernel_size=kernel_size)
    src_ids, tgt_ids = draw_ids(3, 6), draw_ids(3, 7)
    src_ids[1, 4:] = 0
    index = torch.tensor([1, 2, 2, 1])
    tail = draw_ids(4, 5)
    state = model.start(model.encode(src_ids))
    for ids in tgt_ids.unbind(1):
        _, state = model.step(ids, state)
    state = model.reorder(state, index)
    expected = model(src_ids[index], torch.cat([tgt_ids[index], tail], dim=1))
    for position, ids in enumerate(tail.unbind(1), start=7):
        logits, state = model.step(ids, state)
        torch.testing.assert_close(logits, expected[:, position])


def test_an_old_state_stays_good():
    model = make_model(torch.float64)
    src_ids, tgt_ids = draw_ids(2, 5), draw_ids(2, 4)
    state = model.start(model.encode(src_ids))
    for ids in tgt_ids.unbind(1):
        _, state = model.step(ids, state)
    first, _ = model.step(tgt_ids[:, 0], state)
    model.step(tgt_ids[:, 1], state)
    again, _ = model.step(tgt_ids[:, 0], state)
    assert torch.equal(first, again)


@any_options
def test_a_later_target_token_changes_no_earlier_logit(options):
    model = make_model(**options)
    pad_id = options.get("pad_id", 0)
    src_ids, tgt_ids = draw_ids(2, 6, pad_id), draw_ids(2, 8, pad_id)
    logits = model(src_ids, tgt_ids)
    for position in range(1, 8):
        changed = tgt_ids.clone()
        changed[:, position] = torch.where(tgt_ids[:, position] == 7, 8, 7)
        other = model(src_ids, changed)
        torch.testing.assert_close(other[:, :position], logits[:, :position], rtol=0, atol=1e-6)
        assert not torch.allclose(other[:, position], logits[:, position], atol=1e-4)


@any_options
def test_a_batch_of_mixed_lengths_equals_the_single_runs(options):
    model = make_model(torch.float64, **options)
    pad_id = options.get("pad_id", 0)
    src_ids, tgt_ids = draw_ids(3, 9, pad_id), draw_ids(3, 7, pad_id)
    lengths = [(9, 2), (4, 7), (1, 1)]
    for row, (src_length, tgt_length) in enumerate(lengths):
        src_ids[row, src_length:] = pad_id
        tgt_ids[row, tgt_length:] = pad_id
    together = model(src_ids, tgt_ids)
    assert together.isfinite().all()
    for row, (src_length, tgt_length) in enumerate(lengths):
        alone = model(src_ids[row : row + 1, :src_length], tgt_ids[row : row + 1, :tgt_length])
        torch.testing.assert_close(together[row, :tgt_length], alone[0])


def test_what_a_mask_hides_is_never_read():
    model = make_model()
    src_ids, tgt_ids = draw_ids(2, 6), draw_ids(2, 5)
    src_mask = torch.ones(2, 1, 6, dtype=torch.bool)
    src_mask[0, 0, 2] = False
    logits = model(src_ids, tgt_ids, src_mask)
    changed = src_ids.clone()
    changed[0, 2] = torch.where(src_ids[0, 2] == 7, 8, 7)
    assert torch.equal(model(changed, tgt_ids, src_mask), logits)
    assert not torch.allclose(model(src_ids, tgt_ids)[0], logits[0])
    torch.testing.assert_close(model(src_ids, tgt_ids)[1], logits[1])


def test_explain_returns_one_head_per_decoder_layer_and_nothing_else():
    model = make_model(num_decoder_layers=3)
    src_ids, tgt_ids = draw_ids(2, 6), draw_ids(2, 5)
    src_ids[1, 4:] = 0
    found = model.explain(src_ids, tgt_ids)
    assert found.encoder_self == found.decoder_self == ()
    assert [tuple(weights.shape) for weights in found.cross] == [(2, 1, 5, 6)] * 3
    for weights in found.cross:
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 1, 5))
        assert not weights[1, :, :, 4:].any()
    assert not torch.allclose(found.cross[0], found.cross[1])
    assert torch.equal(found.logits, model(src_ids, tgt_ids))


def test_a_scaled_gradient_leaves_the_value_to_the_bit():
    x = torch.randn(1000, requires_grad=True)
    scaled = scale_gradient(x, 0.125)
    assert torch.equal(scaled, x)
    scaled.sum().backward()
    assert torch.equal(x.grad, torch.full((1000,), 0.125))


def test_the_encoder_learns_at_a_rate_for_all_who_read_it():
    model = make_model(torch.float64, num_decoder_layers=3)
    src_ids = draw_ids(2, 5)
    bias = model.encoder.layers[0].gated.convolution.bias

    def measure():
        return model.encode(src_ids).states.square().sum()

    (gradient,) = torch.autograd.grad(measure(), bias)
    direction, step = torch.randn_like(bias), 1e-5
    with torch.no_grad():
        bias += step * direction
        above = measure()
        bias -= 2 * step * direction
        below = measure()
    derivative = (above - below) / (2 * step)
    torch.testing.assert_close(gradient @ direction, derivative / (2 * 3), rtol=1e-6, atol=0)


def test_the_start_is_the_papers():
    model = make_model(
        vocab_size=900, d_model=64, d_hidden=96, kernel_size=5, dropout=0.2, tie_embeddings="none"
    )
    layer = model.decoder.layers[0]
    wanted = [
        (layer.gated.convolution, 4 * 0.8 / (5 * 96)),
        (model.encoder.enter, 0.8 / 64),
        (model.encoder.leave, 1 / 96),
        (layer.attention.query, 1 / 96),
        (model.output, 0.8 / 64),
    ]
    for module, variance in wanted:
        assert module.weight.std().item() == pytest.approx(sqrt(variance), rel=0.03)
        assert abs(module.weight.mean().item()) < sqrt(variance) / 10
    for table in (model.src_embedding, model.tgt_embedding, model.src_positions):
        assert table.weight.std().item() == pytest.approx(0.1, rel=0.03)
    assert not any(p.any() for name, p in model.named_parameters() if name.endswith("bias"))


def test_twenty_layers_neither_lose_nor_swell_the_signal():
    model = make_model(d_model=64, num_layers=20, dropout=0.0)
    src_ids, tgt_ids = draw_ids(4, 12), draw_ids(4, 10)
    embedded, mask = model.embed_target(tgt_ids, None)
    memory = model.encode(src_ids)
    x, _ = model.decoder(embedded, EncoderOutput.from_memory(memory), mask)
    for states in (memory.states, x):
        assert 0.2 < states.std().item() / embedded.std().item() < 5


def test_memorizes_twelve_pairs_and_outputs_them():
    symbols = SpecialIds(start_id=2, end_id=3, pad_id=0, unk_id=1)
    src_ids, tgt_ids = torch.zeros(12, 9, dtype=torch.long), torch.zeros(12, 11, dtype=torch.long)
    wanted = []
    for row in range(12):
        src_length, tgt_length = torch.randint(3, 10, (2,)).tolist()
        src_ids[row, :src_length] = torch.randint(4, VOCAB, (src_length,))
        wanted.append(torch.randint(4, VOCAB, (tgt_length,)).tolist())
        tgt_ids[row, : tgt_length + 2] = torch.tensor([2, *wanted[-1], 3])
    model = make_model(d_model=32, dropout=0.0).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=4e-3, betas=(0.9, 0.98))
    for _ in range(100):
        logits = model(src_ids, tgt_ids[:, :-1])
        loss = nn.functional.cross_entropy(
            logits.flatten(0, 1), tgt_ids[:, 1:].flatten(), ignore_index=0
        )
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05
    for beam_size in (1, 4):
        found = search(model.eval(), src_ids, symbols, DecodingOptions(beam_size=beam_size))
        assert [each.hypotheses[0].ids for each in found] == wanted


@any_options
def test_weights_from_a_folder_give_the_same_logits(options):
    model, other = make_model(**options), make_model(**options)
    src_ids, tgt_ids = draw_ids(2, 6), draw_ids(2, 5)
    expected = model(src_ids, tgt_ids)
    assert not torch.allclose(other(src_ids, tgt_ids), expected)
    set_weights(other, {name: weight.clone() for name, weight in get_weights(model).items()})
    assert torch.equal(other(src_ids, tgt_ids), expected)


def test_averaged_weights_are_between():
    models = [make_model(), make_model()]
    mean = make_model()
    set_weights(mean, average_weights(get_weights(model) for model in models))
    weights = [model.encoder.layers[0].gated.convolution.bias for model in (*models, mean)]
    torch.testing.assert_close(weights[2], (weights[0] + weights[1]) / 2)
    assert mean(draw_ids(2, 6), draw_ids(2, 5)).isfinite().all()


def test_half_precision_by_autocast():
    model = make_model()
    src_ids, tgt_ids = draw_ids(3, 6), draw_ids(3, 9)
    src_ids[1, 4:] = 0
    exact = model(src_ids, tgt_ids)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(src_ids, tgt_ids)
        stepped = step_through(model, src_ids, tgt_ids)
        logits.float().square().sum().backward()
    assert logits.dtype == stepped.dtype == torch.bfloat16
    torch.testing.assert_close(logits.float(), exact, rtol=0, atol=0.02)
    torch.testing.assert_close(stepped.float(), exact, rtol=0, atol=0.02)
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


def test_weights_in_half_precision_step_too():
    model = make_model(torch.bfloat16)
    src_ids, tgt_ids = draw_ids(3, 6), draw_ids(3, 9)
    logits, stepped = model(src_ids, tgt_ids), step_through(model, src_ids, tgt_ids)
    assert logits.dtype == stepped.dtype == torch.bfloat16
    torch.testing.assert_close(stepped, logits, rtol=0, atol=0.02)


def test_forward_compiles_whole_for_any_shape(fresh_compiler):
    model = make_model(d_hidden=24)
    compiled = torch.compile(model, backend="eager", fullgraph=True, dynamic=True)
    for batch, src_length, tgt_length in ((2, 6, 5), (3, 9, 7), (4, 12, 11)):
        src_ids, tgt_ids = draw_ids(batch, src_length), draw_ids(batch, tgt_length)
        src_ids[1, src_length - 2 :] = 0
        torch.testing.assert_close(compiled(src_ids, tgt_ids), model(src_ids, tgt_ids))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_a_new_length_is_not_compiled_again(fresh_compiler):
    counter = CompileCounterWithBackend("aot_eager")  # traces as inductor does, builds no C++
    compiled = torch.compile(make_model(num_layers=1), backend=counter, dynamic=True)
    with torch._dynamo.config.patch(error_on_recompile=True), torch.inference_mode():
        compiled(draw_ids(2, 6), draw_ids(2, 5))
        num_compiled = counter.frame_count
        for batch, src_length, tgt_length in ((3, 9, 7), (40, 12, 11)):
            compiled(draw_ids(batch, src_length), draw_ids(batch, tgt_length))
    assert counter.frame_count == num_compiled


@pytest.mark.parametrize("kernel_size", [2, 4])
def test_an_even_kernel_is_rejected_with_its_neighbors(kernel_size):
    near = f"use kernel_size {kernel_size - 1} or {kernel_size + 1}"
    with pytest.raises(ConfigError, match=f"kernel_size {kernel_size} is even.*{near}"):
        make_model(kernel_size=kernel_size)


def test_a_sequence_beyond_the_learned_positions_is_rejected():
    model = make_model(max_length=6)
    model(draw_ids(1, 6), draw_ids(1, 6))
    with pytest.raises(InputError, match="7 positions is longer than the 6"):
        model.encode(draw_ids(1, 7))
    with pytest.raises(InputError, match="7 positions is longer than the 6"):
        step_through(model, draw_ids(1, 3), draw_ids(1, 7))


def test_ids_and_masks_are_checked():
    model = make_model(tgt_vocab_size=23, tie_embeddings="decoder")
    src_ids, tgt_ids = draw_ids(2, 4), draw_ids(2, 3)
    with pytest.raises(InputError, match="src_ids holds id 19"):
        model(torch.full((1, 2), 19), tgt_ids[:1])
    with pytest.raises(InputError, match="tgt_ids holds id 23"):
        model(src_ids, torch.full((2, 3), 23))
    with pytest.raises(InputError, match="src_mask has type"):
        model(src_ids, tgt_ids, torch.ones(2, 1, 4))
    with pytest.raises(InputError, match=r"ids has shape \(2, 3\), not \(batch,\)"):
        model.step(tgt_ids, model.start(model.encode(src_ids)))
