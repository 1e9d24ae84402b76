"""Peers compute what ours computes, and the check sees when they do not."""

from __future__ import annotations

import copy

import pytest
import torch

from attendo.bench.correctness import (
    GradientCheck,
    compare_gradients,
    compare_loss,
    run_gradient_check,
)
from attendo.bench.reference_models import PEERS, Peer
from attendo.data.batching import Batch
from attendo.text.tokenizer import PAD_ID

CPU = torch.device("cpu")


@pytest.fixture
def batch():
    src, tgt = (torch.randint(4, 60, (3, length)) for length in (7, 5))
    src[1, 4:], tgt[2, 2:] = PAD_ID, PAD_ID
    shifted = torch.nn.functional.pad(tgt[:, :-1], (1, 0), value=2)
    return Batch(src, shifted.masked_fill(tgt == PAD_ID, PAD_ID), tgt)


@pytest.fixture(params=PEERS, ids=lambda peer: peer.name)
def peer(request, need):
    need(request.param.package)
    return request.param


def test_logits_are_ours_at_real_positions(peer, model, batch):
    theirs = peer.build(model).eval()
    real = batch.labels != PAD_ID
    ours = model.eval()(batch.src_ids, batch.tgt_ids)
    found = theirs(batch.src_ids, batch.tgt_ids)
    torch.testing.assert_close(found[real], ours[real], rtol=0, atol=1e-5)


def test_loss_and_gradient_agree(peer, model, batch):
    agreement = compare_gradients(
        run_gradient_check(peer.build(model), batch, CPU),
        run_gradient_check(model, batch, CPU),
        has_our_weights=True,
    )
    assert agreement.is_satisfied, agreement.text


def test_dropout_is_where_the_paper_has_it(peer, model, batch):
    """The same dropout as in ours: none in the attention and in the feed-forward network."""
    theirs = peer.build(model).train()
    ours = copy.deepcopy(model).train()
    spreads = []
    for one in (ours, theirs):
        torch.manual_seed(3)
        with torch.no_grad():
            runs = torch.stack([one(batch.src_ids, batch.tgt_ids) for _ in range(400)])
        spreads.append(float(runs[:, batch.labels != PAD_ID].std(0).mean()))
    assert spreads[0] > 0.1
    assert spreads[1] == pytest.approx(spreads[0], rel=0.05)


def test_any_weight_that_is_not_ours_is_seen(peer, model, batch):
    expected = run_gradient_check(model, batch, CPU)
    theirs = peer.build(model)
    for name, parameter in theirs.named_parameters():
        if not parameter.requires_grad or "k_proj.bias" in name:
            continue  # a key's bias moves all scores of a row alike: softmax does not see it
        kept = parameter.detach().clone()
        with torch.no_grad():
            if "in_proj_bias" in name:
                parameter[:16] += 0.3
            else:
                parameter.copy_(kept.flip(0) + 0.1 * torch.randn_like(kept))
        found = compare_gradients(
            run_gradient_check(theirs, batch, CPU), expected, has_our_weights=True
        )
        assert not found.is_satisfied, name
        with torch.no_grad():
            parameter.copy_(kept)
    assert compare_gradients(
        run_gradient_check(theirs, batch, CPU), expected, has_our_weights=True
    ).is_satisfied


def test_examining_leaves_no_trace(model, batch):
    model.train()
    run_gradient_check(model, batch, CPU)
    assert model.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_own_weights_are_compared_by_their_number():
    ours = GradientCheck(5.0, 1.0, 1_000_000)
    near, far = (GradientCheck(9.0, 4.0, count) for count in (1_010_000, 1_100_000))
    assert compare_gradients(near, ours, has_our_weights=False).is_satisfied
    found = compare_gradients(far, ours, has_our_weights=False)
    assert not found.is_satisfied
    assert "1.10M parameters, ours 1.00M" in found.text


def test_losses_in_bfloat16_may_differ_more():
    assert not compare_loss(10.01, 10.0, torch.float32).is_satisfied
    assert compare_loss(10.01, 10.0, torch.bfloat16).is_satisfied
    assert not compare_loss(10.1, 10.0, torch.bfloat16).is_satisfied
    assert compare_loss(10.0, 10.0, torch.float32).text.endswith("exactly")


def test_what_is_not_installed_is_not_imported():
    assert not Peer("none", PEERS[0].build, "no_such_toolkit").is_installed
