from __future__ import annotations

import pytest
import torch

from attendo import Transformer
from attendo.core.seeding import seed_everything


@pytest.mark.parametrize("tie", ["three-way", "decoder", "none"])
def test_distributions(tie):
    model = Transformer(vocab_size=2000, d_model=64, d_ff=256, num_layers=1, tie_embeddings=tie)
    assert model.src_embedding.weight.std().item() == pytest.approx(64**-0.5, rel=0.03)
    assert model.tgt_embedding.weight.std().item() == pytest.approx(64**-0.5, rel=0.03)
    query = model.encoder.layers[0].self_attention.query
    assert query.weight.abs().max().item() == pytest.approx((3 / 128) ** 0.5, rel=0.01)
    outer = model.decoder.layers[0].feed_forward.outer
    assert outer.weight.abs().max().item() == pytest.approx(256**-0.5, rel=0.01)
    output = model.encoder.layers[0].self_attention.output
    assert output.weight.abs().max().item() == pytest.approx((6 / 128) ** 0.5, rel=0.01)
    assert bool((query.bias == 0).all())


def test_scaled_embeddings_have_unit_variance():
    model = Transformer(vocab_size=2000, d_model=64, num_layers=1)
    assert model.src_embedding(torch.arange(2000)[None]).std().item() == pytest.approx(
        1.0, rel=0.03
    )


def test_an_untrained_model_is_nearly_indifferent():
    """The first loss is near ln V: no token is preferred before anything is learned."""
    model = Transformer.from_preset("tiny", vocab_size=1000).eval()
    ids = torch.randint(1, 1000, (8, 12))
    logits = model(ids, ids)
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), torch.randint(1, 1000, (96,)))
    assert loss.item() == pytest.approx(torch.tensor(1000.0).log().item(), abs=0.8)


def test_same_seed_same_model():
    states = []
    for seed in (1, 1, 2):
        seed_everything(seed)
        states.append(Transformer.from_preset("tiny", vocab_size=50).state_dict())
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not torch.equal(states[0]["src_embedding.weight"], states[2]["src_embedding.weight"])
