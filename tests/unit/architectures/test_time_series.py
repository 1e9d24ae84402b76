"""What must hold of a model that reads numbers over time: the contract, and what holes may do."""

from __future__ import annotations

import pytest
import torch
from torch import nan

from attendo.architectures.config import SeriesTransformerConfig
from attendo.architectures.time_series import NumberEmbedding, SeriesTransformer, presence_mask
from attendo.core.errors import ConfigError, InputError
from attendo.core.protocols import Memory, Seq2SeqModel

FEATURES, STEPS, LABELS, NUMBERS = 3, 6, 7, 2
SIZES = {"num_features": FEATURES, "d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}
OPTIONS = {
    "labels": {"vocab_size": LABELS},
    "labels pre-norm learned": {
        "vocab_size": LABELS,
        "norm": "pre",
        "positions": "learned",
        "tie_embeddings": "none",
    },
    "labels restricted": {"vocab_size": LABELS, "attention_width": 3},
    "numbers": {"num_targets": NUMBERS},
    "numbers concatenated": {"num_targets": NUMBERS, "positions": "concatenated"},
}


@pytest.fixture(params=OPTIONS)
def model(request) -> SeriesTransformer:
    return SeriesTransformer(**SIZES, **OPTIONS[request.param]).eval()


@pytest.fixture
def window() -> torch.Tensor:
    """Three windows; the second has a hole, and its last two steps are missing altogether."""
    values = torch.randn(3, STEPS, FEATURES)
    values[1, 1, 0] = nan
    values[1, 4:] = nan
    return values


@pytest.fixture
def target(model) -> torch.Tensor:
    if model.target_type == "labels":
        return torch.tensor([[2, 4, 5, 6, 4], [2, 6, 1, 5, 5], [2, 5, 5, 4, 6]])
    values = torch.randn(3, 5, NUMBERS)
    values[:, 0] = nan  # the start
    values[2, 3, 1] = nan
    return values


def test_keeps_the_contract(model, window):
    assert isinstance(model, Seq2SeqModel)
    memory = model.encode(window)
    assert isinstance(memory, Memory)
    assert memory.states.shape == (3, STEPS, 16)
    assert memory.mask[:, 0].tolist() == [[True] * 6, [True] * 4 + [False] * 2, [True] * 6]
    assert not model.supports_packing
    assert not model.supports_static_decoding(10)


def test_steps_equal_forward(model, window, target):
    printed = model(window, target)
    assert printed.shape == (3, 5, LABELS if model.target_type == "labels" else NUMBERS)
    state = model.start(model.encode(window))
    for position in range(5):
        stepped, state = model.step(target[:, position], state)
        torch.testing.assert_close(stepped, printed[:, position], rtol=0, atol=1e-5)


def test_reorder_moves_rows(model, window, target):
    index = torch.tensor([2, 0, 0, 1])
    _, state = model.step(target[:, 0], model.start(model.encode(window)))
    straight, _ = model.step(target[:, 1], state)
    moved, _ = model.step(target[index, 1], model.reorder(state, index))
    torch.testing.assert_close(moved, straight[index], rtol=0, atol=1e-5)


def test_the_future_is_never_read(model, window, target):
    changed = target.clone()
    if model.target_type == "labels":
        changed[:, 3] = torch.where(target[:, 3] == 4, 5, 4)
    else:
        changed[:, 3] = changed[:, 3].nan_to_num(0.0) + 1.0
    printed, other = model(window, target), model(window, changed)
    torch.testing.assert_close(printed[:, :3], other[:, :3], rtol=0, atol=1e-6)
    assert not torch.allclose(printed[:, 3:], other[:, 3:], atol=1e-4)


def test_explain_agrees_with_forward_over_time_steps(model, window, target):
    explanation = model.explain(window, target)
    torch.testing.assert_close(explanation.logits, model(window, target), rtol=0, atol=1e-5)
    shapes = {"encoder_self": (STEPS, STEPS), "decoder_self": (5, 5), "cross": (5, STEPS)}
    for kind, shape in shapes.items():
        assert len(explanation[kind]) == 2
        for weights in explanation[kind]:
            assert weights.shape == (3, 2, *shape)
            real = weights.sum(-1) > 0
            torch.testing.assert_close(weights.sum(-1)[real], torch.ones(int(real.sum())))
    for weights in explanation.cross:
        assert bool((weights[1, :, :, 4:] == 0).all())  # nobody looks at what is not there
        assert bool((weights[1, :, :, :4] > 0).all())


def test_missing_steps_at_the_end_are_as_no_steps(model, window, target):
    """What is missing is masked: more of it changes nothing, and it is not read as zeros."""
    longer = torch.cat((window, torch.full((3, 4, FEATURES), nan)), dim=1)
    printed = model(window, target)
    torch.testing.assert_close(model(longer, target), printed, rtol=0, atol=1e-5)
    filled = window.nan_to_num(0.0)
    assert not torch.allclose(model(filled, target)[1], printed[1], atol=1e-4)


def test_no_missing_value_reaches_an_output_or_a_gradient(model, window, target):
    window[2, :, 1] = nan
    printed = model.train()(window, target)
    printed.sum().backward()
    assert bool(printed.isfinite().all())
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name


def test_a_window_without_any_value_is_answered(model, window, target):
    nothing = torch.full_like(window, nan)
    printed = model(nothing, target)
    assert bool(printed.isfinite().all())
    assert bool(presence_mask(nothing).all())


def test_a_hole_is_not_a_zero():
    embedding = NumberEmbedding(2, 4)
    hole, zero = torch.tensor([[[nan, 1.0]]]), torch.tensor([[[0.0, 1.0]]])
    by_hand = embedding.linear.weight @ torch.tensor([0.0, 1.0, 0.0, 1.0]) + embedding.linear.bias
    torch.testing.assert_close(embedding(hole)[0, 0], by_hand)
    by_hand += embedding.linear.weight[:, 2]  # the sign that the first number is there
    torch.testing.assert_close(embedding(zero)[0, 0], by_hand)


def test_a_given_mask_is_kept(model, window, target):
    mask = torch.ones(3, 1, STEPS, dtype=torch.bool)
    mask[:, :, 0] = False
    other = window.clone()
    other[:, 0] += 5.0
    printed = model(window, target, mask)
    torch.testing.assert_close(model(other, target, mask), printed, rtol=0, atol=1e-5)
    with pytest.raises(InputError, match="src_mask"):
        model(window, target, mask[:, :, :3])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x: x[..., :2], "shape"),
        (lambda x: x[0], "shape"),
        (lambda x: x.nan_to_num(0.0).long(), "not floating-point"),
        (lambda x: x.masked_fill(x.isnan(), float("inf")), "infinite"),
    ],
)
def test_bad_windows_are_rejected(model, window, target, change, reason):
    with pytest.raises(InputError, match=reason) as raised:
        model(change(window), target)
    assert raised.value.hint


def test_numbers_are_required_where_numbers_are_documented(window):
    model = SeriesTransformer(**SIZES, num_targets=NUMBERS).eval()
    state = model.start(model.encode(window))
    for wrong in (torch.zeros(3, NUMBERS + 1), torch.zeros(3), torch.zeros(3, NUMBERS).long()):
        with pytest.raises(InputError, match="the numbers"):
            model.step(wrong, state)
    with pytest.raises(InputError, match="the target"):
        model(window, torch.zeros(3, 5, NUMBERS + 1))


def test_labels_outside_are_rejected(window):
    model = SeriesTransformer(**SIZES, vocab_size=LABELS).eval()
    with pytest.raises(InputError, match="outside the vocabulary"):
        model(window, torch.full((3, 2), LABELS))


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tie_embeddings": "three-way"}, "source of tokens"),
        ({"tgt_vocab_size": 9}, "only vocabulary"),
        ({"num_heads": 3}, "cannot be split"),
        ({"num_features": 0}, "num_features"),
    ],
)
def test_options_that_do_not_fit_are_rejected(options, reason):
    with pytest.raises(ConfigError, match=reason):
        SeriesTransformerConfig(**{"vocab_size": LABELS, "d_model": 16, "num_heads": 2, **options})


def test_a_preset_has_its_sizes():
    model = SeriesTransformer.from_preset("tiny", num_features=2, vocab_size=6)
    same = SeriesTransformer(**model.config.model_dump())
    assert model.config.d_model == 128
    assert same.config == model.config
    assert model.output.weight is model.tgt_embedding.weight  # tied, as in the paper
    assert not [name for name, _ in model.named_parameters() if "src_embedding.weight" in name]
