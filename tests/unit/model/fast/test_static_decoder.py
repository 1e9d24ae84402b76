"""Steps of fixed shapes equal the model's own steps; hypotheses are moved at random."""

from __future__ import annotations

import copy
import pickle

import pytest
import torch

from attendo.core.errors import InputError

KINDS = {
    "paper": {},
    "without biases": {"bias": False},
    "pre-norm": {"norm": "pre"},
    "without residuals": {"residual": False},
    "pre-norm without residuals": {"norm": "pre", "residual": False},
    "unscaled": {"scale": False, "scale_embeddings": False},
    "learned positions": {"positions": "learned", "max_length": 12},
    "no positions": {"positions": "none"},
    "restricted": {"attention_width": 4},
    "gelu": {"activation": "gelu"},
    "swish": {"activation": "swish"},
    "sizes of heads": {"d_k": 3, "d_v": 5},
    "another decoder": {"num_decoder_heads": 2, "num_decoder_layers": 3, "decoder_d_ff": 24},
    "two vocabularies": {"tie_embeddings": "none", "tgt_vocab_size": 17, "output_bias": True},
    "wide enough to pack": {"d_model": 512, "d_ff": 512},
}
ROWS, WIDTH, LENGTH = 3, 4, 9


def draw(model):
    """Let no bias be zero: what is folded into others must not vanish by itself."""
    for name, parameter in model.named_parameters():
        if name.endswith("bias") or "norm" in name:
            parameter.data.add_(torch.randn_like(parameter) * 0.5)
    return model


@pytest.fixture(params=KINDS)
def model(request, make_model):
    return draw(make_model(torch.float64, **KINDS[request.param]))


@torch.inference_mode()
def test_steps_are_the_models_own(model, make_ids):
    """At every step all hypotheses get new parents, some of them twice."""
    src_ids = make_ids(ROWS, 6, lengths=[6, 2, 4])
    fixed = model.make_static_decoder(num_sentences=ROWS, width=WIDTH, src_length=8, max_length=12)
    fixed.set_sources(src_ids)
    fixed.start()
    rows = torch.arange(ROWS).repeat_interleave(WIDTH)
    state = model.reorder(model.start(model.encode(src_ids)), rows)
    for position in range(LENGTH):
        ids = torch.randint(0, 17, (ROWS * WIDTH,))
        expected, state = model.step(ids, state)
        window = (position + 1, 12)[position % 2]  # what is not there yet is not seen
        logits = fixed.project(fixed.step(ids, window=window))
        torch.testing.assert_close(logits, expected, rtol=0, atol=1e-9)
        parents = torch.randint(0, WIDTH, (ROWS, WIDTH))
        fixed.reorder_beams(parents)
        fixed.position.add_(1)
        state = model.reorder(state, rows * WIDTH + parents.view(-1))


@torch.inference_mode()
@pytest.mark.parametrize("num_steps", [1, 40])
def test_packed_weights_compute_the_same(make_model, make_ids, num_steps):
    model = draw(make_model(d_model=512, d_ff=1024, num_heads=8))
    src_ids = make_ids(2, 5)
    ids = torch.randint(0, 17, (2,))
    logits = []
    for is_packed in (False, True):
        fixed = model.make_static_decoder(num_sentences=2, width=1, src_length=5, max_length=3)
        fixed.set_sources(src_ids)
        fixed.start()
        if is_packed:
            fixed.prepack_weights(num_steps)
        logits.append(fixed.project(fixed.step(ids, window=1)))
    torch.testing.assert_close(*logits, rtol=1e-4, atol=1e-3)
    expected, _ = model.step(ids, model.start(model.encode(src_ids)))
    torch.testing.assert_close(logits[1], expected, rtol=1e-4, atol=1e-3)


@torch.inference_mode()
def test_continues_on_another_machine(make_model, make_ids):
    model = draw(make_model(torch.float64))
    large = model.make_static_decoder(num_sentences=4, width=2, src_length=5, max_length=6)
    large.set_sources(make_ids(4, 5, lengths=[5, 3, 4, 1]))
    large.start()
    for _ in range(3):
        large.step(torch.randint(0, 17, (8,)), window=6)
        large.reorder_beams(torch.randint(0, 2, (4, 2)))
        large.position.add_(1)
    small = large.resize(num_sentences=2, width=2, src_length=5, max_length=6)
    small.copy_rows_from(large, torch.tensor([3, 1]), num_steps=3)
    ids = torch.randint(0, 17, (4, 2))
    expected = large.step(ids.view(-1), window=6).view(4, 2, -1)
    found = small.step(ids[[3, 1]].view(-1), window=4).view(2, 2, -1)
    torch.testing.assert_close(found, expected[[3, 1]], rtol=0, atol=1e-9)


@torch.inference_mode()
def test_weights_that_change_are_read_again(make_model, make_ids):
    model, src_ids = draw(make_model(torch.float64)), make_ids(2, 5)
    fixed = model.make_static_decoder(num_sentences=2, width=1, src_length=5, max_length=3)
    fixed.set_sources(src_ids)
    fixed.start()
    for parameter in model.parameters():
        parameter.data.mul_(1.5)
    assert fixed.weights_unchanged()
    fixed.start()
    ids = torch.tensor([5, 6])
    expected, _ = model.step(ids, model.start(model.encode(src_ids)))
    torch.testing.assert_close(fixed.project(fixed.step(ids, window=1)), expected)
    model.decoder.layers[0].feed_forward.inner.weight = torch.nn.Parameter(torch.randn(32, 16))
    assert not fixed.weights_unchanged()


def test_ids_outside_the_vocabulary_are_rejected(make_model):
    fixed = make_model().make_static_decoder(num_sentences=1, width=1, src_length=3, max_length=3)
    with pytest.raises(InputError, match="holds id 23, outside the vocabulary"):
        fixed.set_sources(torch.tensor([[5, 23]]))


def test_reports_what_it_cannot_do(make_model):
    assert make_model().supports_static_decoding(1000)
    assert make_model(positions="learned", max_length=12).supports_static_decoding(12)
    assert not make_model(positions="learned", max_length=12).supports_static_decoding(13)
    assert not make_model(positions="concatenated").supports_static_decoding(1)
    assert not make_model().train().supports_static_decoding(1)
    with torch.autocast("cpu", torch.bfloat16):
        assert not make_model().supports_static_decoding(1)
    model = make_model()
    hook = model.decoder.layers[1].cross_attention.output.register_forward_hook(lambda *_: None)
    assert not model.supports_static_decoding(1)
    hook.remove()
    assert model.supports_static_decoding(1)
    model.output = torch.nn.Sequential(model.output)  # as wrappers of all kinds do
    assert not model.supports_static_decoding(1)


def test_what_is_kept_is_not_copied(make_model):
    model = make_model()
    model.decoding_cache["buffers"] = [model]
    assert copy.deepcopy(model).decoding_cache == {}
    assert pickle.loads(pickle.dumps(model)).decoding_cache == {}  # noqa: S301
    assert not any("cache" in name for name in model.state_dict())
