from __future__ import annotations

from itertools import pairwise
from math import cos, exp, log, pi, sin

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from attendo.core.errors import ConfigError, InputError
from attendo.model.fast.packed_sequences import Packing
from attendo.model.positional_encoding import (
    ConcatenatedPositions,
    LearnedPositions,
    NoPositions,
    SinusoidalPositions,
    sinusoidal,
)


@given(st.integers(1, 40), st.integers(1, 33), st.integers(0, 5000))
def test_equals_the_formula(length, d_model, offset):
    table = sinusoidal(length, d_model, offset=offset, dtype=torch.float64)
    halves = sinusoidal(length, d_model, layout="halves", offset=offset, dtype=torch.float64)
    num_sines = (d_model + 1) // 2
    for slot in {0, length // 2, length - 1}:
        for dimension in range(d_model):
            pair = dimension // 2
            angle = (offset + slot) / 10_000 ** (2 * pair / d_model)
            expected = sin(angle) if dimension % 2 == 0 else cos(angle)
            assert float(table[slot, dimension]) == pytest.approx(expected, abs=1e-9)
            in_halves = pair if dimension % 2 == 0 else num_sines + pair
            assert float(halves[slot, in_halves]) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("d_model", [1, 2, 3, 4, 7, 16])
def test_tensor2tensor_is_its_timing_signal(d_model):
    """`get_timing_signal_1d` of tensor2tensor, written out again with the standard library."""
    table = sinusoidal(6, d_model, layout="tensor2tensor", offset=3, dtype=torch.float64)
    num_timescales = d_model // 2
    increment = log(10_000) / max(num_timescales - 1, 1)
    for row, position in zip(table.tolist(), range(3, 9), strict=True):
        angles = [position * exp(-increment * index) for index in range(num_timescales)]
        expected = [*map(sin, angles), *map(cos, angles), *[0.0] * (d_model % 2)]
        assert row == pytest.approx(expected, abs=1e-12)


def test_the_toy_of_four_dimensions():
    expected = [
        [0, 1, 0, 1],
        [0.841471, 0.540302, 0.0099998, 0.99995],
        [0.909297, -0.416147, 0.0199987, 0.9998],
    ]
    torch.testing.assert_close(sinusoidal(3, 4), torch.tensor(expected), rtol=0, atol=1e-6)


def test_within_one_and_never_twice_the_same():
    table = sinusoidal(2000, 64)
    assert float(table.abs().max()) <= 1.0
    distances = torch.cdist(table.double(), table.double()) + 10 * torch.eye(2000)
    assert float(distances.min()) > 0.1


def test_an_offset_is_a_linear_map_of_the_position():
    """Section 3.5: PE(pos + k) is a linear function of PE(pos), for any fixed k."""
    d_model = 16
    table = sinusoidal(100, d_model, dtype=torch.float64)
    for offset in (1, 7):
        mapping = torch.zeros(d_model, d_model, dtype=torch.float64)  # a rotation of each pair
        for pair in range(d_model // 2):
            angle = offset / 10_000 ** (2 * pair / d_model)
            block = slice(2 * pair, 2 * pair + 2)
            mapping[block, block] = torch.tensor(
                [[cos(angle), -sin(angle)], [sin(angle), cos(angle)]], dtype=torch.float64
            )
        torch.testing.assert_close(table[:-offset] @ mapping, table[offset:], rtol=0, atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_types_and_far_positions(dtype):
    table = sinusoidal(3, 512, offset=1_000_000, dtype=dtype)
    assert table.dtype == dtype
    assert float(table[0, 0]) == pytest.approx(sin(1_000_000), abs=4e-3)


def test_modules_continue_from_an_offset():
    x = torch.randn(2, 9, 16)
    for module in (
        SinusoidalPositions(16),
        LearnedPositions(16, 9),
        ConcatenatedPositions(16),
        NoPositions(),
    ):
        for parameter in module.parameters():
            torch.nn.init.normal_(parameter)
        whole = module(x)
        assert whole.shape == x.shape
        torch.testing.assert_close(module(x[:, 5:], 5), whole[:, 5:])


def test_packed_rows_begin_again_compiled_or_not():
    positions = SinusoidalPositions(16)
    packing = Packing.from_lengths(torch.tensor([5, 7, 3]))
    embedded = torch.randn(1, 15, 16, requires_grad=True)
    plain = positions(embedded, packing.position_ids)
    table = sinusoidal(7, 16)
    added = torch.cat([table[:5], table, table[:3]])
    torch.testing.assert_close(plain, embedded + added)
    compiled = torch.compile(positions, backend="aot_eager", fullgraph=True)(
        embedded, packing.position_ids
    )
    assert torch.equal(compiled, plain)
    (gradient,) = torch.autograd.grad(compiled.sum(), embedded)
    assert torch.equal(gradient, torch.ones_like(embedded))


def test_adding_is_a_special_case_of_concatenating():
    x = torch.randn(2, 5, 16)
    concatenating = ConcatenatedPositions(16)
    with torch.no_grad():
        concatenating.projection.weight.copy_(torch.cat((torch.eye(16), torch.eye(16)), dim=1))
    torch.testing.assert_close(concatenating(x), SinusoidalPositions(16)(x))
    assert sum(p.numel() for p in concatenating.parameters()) == 2 * 16**2
    assert not list(SinusoidalPositions(16).parameters())


def test_learned_positions_have_an_end():
    module = LearnedPositions(8, max_length=4)
    module(torch.zeros(1, 4, 8))
    with pytest.raises(
        InputError, match=r"5 positions is longer than the 4 learned(.|\n)*sinusoidal"
    ):
        module(torch.zeros(1, 5, 8))
    with pytest.raises(InputError, match="5 positions"):
        module(torch.zeros(1, 1, 8), 4)


def test_unknown_layout_names_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'interleaved'"):
        sinusoidal(3, 4, layout="interleave")


def test_wavelengths_are_a_geometric_progression_from_2_pi_to_10000_times_2_pi():
    """Section 3.5: each sine repeats after its wavelength; the last would after 10,000 x 2 pi."""
    d_model = 8
    table = sinusoidal(70_000, d_model, layout="halves", dtype=torch.float64)[:, : d_model // 2]
    crossings = [int(((sine[:-1] < 0) & (sine[1:] >= 0)).sum()) for sine in table.T]
    wavelengths = [2 * pi * 10_000 ** (2 * i / d_model) for i in range(d_model // 2)]
    for counted, wavelength in zip(crossings, wavelengths, strict=True):
        assert counted == pytest.approx(70_000 / wavelength, abs=1.01)
    ratios = {round(b / a, 6) for a, b in pairwise(wavelengths)}
    assert ratios == {10.0}
