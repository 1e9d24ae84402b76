"""One set of demands for every model behind the contract; a new model joins by a line in MODELS."""

from __future__ import annotations

import pytest
import torch

from attendo import Transformer
from attendo.core.protocols import Memory, Seq2SeqModel

VOCAB = 19
MODELS = {
    "transformer": lambda: Transformer(
        vocab_size=VOCAB, d_model=16, d_ff=32, num_heads=2, num_layers=2
    ),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]().eval()


@pytest.fixture
def ids():
    src_ids, tgt_ids = torch.randint(1, VOCAB, (3, 6)), torch.randint(1, VOCAB, (3, 5))
    src_ids[1, 4:] = 0
    return src_ids, tgt_ids


def test_keeps_the_protocol(model):
    assert isinstance(model, Seq2SeqModel)


def test_encode_gives_a_memory_with_its_mask(model, ids):
    memory = model.encode(ids[0])
    assert isinstance(memory, Memory)
    assert memory.states.shape[:2] == (3, 6)
    assert torch.equal(memory.mask, ids[0].ne(0)[:, None])


def test_steps_equal_forward(model, ids):
    logits = model(*ids)
    assert logits.shape == (3, 5, VOCAB)
    state = model.start(model.encode(ids[0]))
    for position in range(5):
        stepped, state = model.step(ids[1][:, position], state)
        torch.testing.assert_close(stepped, logits[:, position], rtol=0, atol=1e-5)


def test_reorder_moves_rows(model, ids):
    index = torch.tensor([2, 0, 0, 1])
    state = model.start(model.encode(ids[0]))
    _, state = model.step(ids[1][:, 0], state)
    straight, _ = model.step(ids[1][:, 1], state)
    moved, _ = model.step(ids[1][index, 1], model.reorder(state, index))
    torch.testing.assert_close(moved, straight[index], rtol=0, atol=1e-5)


def test_padding_is_never_read(model, ids):
    src_ids, tgt_ids = ids
    longer = torch.nn.functional.pad(src_ids, (0, 3))
    torch.testing.assert_close(model(longer, tgt_ids), model(*ids), rtol=0, atol=1e-5)


def test_the_future_is_never_read(model, ids):
    src_ids, tgt_ids = ids
    changed = tgt_ids.clone()
    changed[:, 3] = changed[:, 3] % (VOCAB - 1) + 1
    logits, other = model(src_ids, tgt_ids), model(src_ids, changed)
    torch.testing.assert_close(logits[:, :3], other[:, :3], rtol=0, atol=1e-6)
    assert not torch.allclose(logits[:, 3:], other[:, 3:], atol=1e-4)


def test_explain_agrees_with_forward_and_its_rows_are_distributions(model, ids):
    explanation = model.explain(*ids)
    torch.testing.assert_close(explanation.logits, model(*ids), rtol=0, atol=1e-5)
    for weights in (*explanation.encoder_self, *explanation.decoder_self, *explanation.cross):
        real = weights.sum(-1) > 0
        torch.testing.assert_close(weights.sum(-1)[real], torch.ones(int(real.sum())))
    for weights in explanation.cross:
        assert bool((weights[1, :, :, 4:] == 0).all())


def test_gradients_reach_every_parameter(model, ids):
    model(*ids).sum().backward()
    missing = [name for name, p in model.named_parameters() if p.grad is None]
    assert not missing
