"""`torch.compile` and `torch.export` take the forward pass whole, for every kind of model."""

from __future__ import annotations

import pytest
import torch
import torch._dynamo

OPTIONS = {
    "paper": {},
    "pre-norm": {"norm": "pre"},
    "learned": {"positions": "learned"},
    "concatenated": {"positions": "concatenated"},
    "restricted": {"attention_width": 3},
}


@pytest.fixture(autouse=True)
def _fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_forward_has_no_graph_break(make_model, make_ids, options):
    model = make_model(**options)
    found = torch._dynamo.explain(model)(make_ids(2, 6), make_ids(2, 5))
    assert found.graph_break_count == 0
    assert found.graph_count == 1


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_compiled_whole_for_any_shape(make_model, make_ids, options):
    model = make_model(**options)
    compiled = torch.compile(model, backend="eager", fullgraph=True, dynamic=True)
    for batch, source, target in ((2, 6, 5), (3, 9, 7), (4, 12, 11)):
        src_ids = make_ids(batch, source, lengths=[source, source - 2])
        tgt_ids = make_ids(batch, target)
        torch.testing.assert_close(
            compiled(src_ids, tgt_ids), model(src_ids, tgt_ids), rtol=0, atol=1e-5
        )


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_compiled_by_inductor_trains_to_the_same_gradients(make_model, make_ids):
    model = make_model(dropout=0.0).train()
    src_ids, tgt_ids = make_ids(2, 6, lengths=[6, 4]), make_ids(2, 5)
    expected = model(src_ids, tgt_ids)
    expected.square().sum().backward()
    gradients = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()
    compiled = torch.compile(model, fullgraph=True)
    logits = compiled(src_ids, tgt_ids)
    torch.testing.assert_close(logits, expected, rtol=0, atol=1e-5)
    logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[name], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_exported_with_free_batch_and_lengths(make_model, make_ids, options):
    model = make_model(**options)
    dimension = torch.export.Dim.DYNAMIC
    exported = torch.export.export(
        model,
        (make_ids(2, 6), make_ids(2, 5)),
        dynamic_shapes=({0: dimension, 1: dimension}, {0: dimension, 1: dimension}),
        strict=True,
    ).module()
    src_ids, tgt_ids = make_ids(4, 11, lengths=[11, 3, 5]), make_ids(4, 9)
    torch.testing.assert_close(
        exported(src_ids, tgt_ids), model(src_ids, tgt_ids), rtol=0, atol=1e-5
    )
