"""What gradients find about a layer is what a pencil finds, and what a real stack does."""

from __future__ import annotations

from math import ceil

import pytest
import torch
import torch.nn.functional as F  # noqa: N812 - PyTorch's own habit
from torch import Tensor, nn

from attendo.core.errors import InputError
from attendo.inspection.receptive_field import (
    StateHistory,
    parallel_steps,
    path_length,
    receptive_field,
    recurrent_path_length,
    recurrent_steps,
    run_step_by_step,
    sequential_operations,
    trace_inputs,
)
from attendo.model.attention import MultiHeadAttention
from attendo.model.masks import local_mask

D = 4
RECURRENT = (nn.RNN, nn.GRU, nn.LSTM)


class Filter(nn.Module):
    """A convolution over positions, centered or looking back."""

    def __init__(self, kernel: int, *, dilation: int = 1, is_causal: bool = False) -> None:
        super().__init__()
        whole = (kernel - 1) * dilation
        self.padding = (whole, 0) if is_causal else (whole // 2, whole // 2)
        self.conv = nn.Conv1d(D, D, kernel, dilation=dilation).double()

    def forward(self, x: Tensor) -> Tensor:
        return self.conv(F.pad(x.mT, self.padding)).mT


class Attention(nn.Module):
    """Self-attention, restricted to a width where one is given."""

    def __init__(self, width: int | None = None) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(D, 2).double()
        self.width = width

    def forward(self, x: Tensor) -> Tensor:
        mask = local_mask(x.size(1), self.width) if self.width else None
        return self.attention(x, x, x, mask)[0]


def make_draw(length: int) -> Tensor:
    return torch.randn(1, length, D, dtype=torch.float64, requires_grad=True)


def end_to_end(layers: list[nn.Module], length: int) -> Tensor:
    """The gradient of the last output of a real stack at its first input."""
    x = make_draw(length)
    nn.Sequential(*layers)(x)[0, -1].sum().backward()
    return x.grad[0, 0]


class TestOneLayer:
    def test_self_attention_sees_everything(self):
        assert receptive_field(Attention(), 9, D).all()

    def test_a_filter_of_three_cannot_see_a_word_four_positions_away(self):
        positions = torch.arange(9)
        apart = (positions[:, None] - positions).abs()
        reach = receptive_field(Filter(3), 9, D)
        assert reach.equal(apart <= 1)
        assert not reach[2, 6]

    def test_restricted_self_attention_sees_its_width(self):
        assert receptive_field(Attention(5), 9, D).equal(local_mask(9, 5))

    @pytest.mark.parametrize("kind", RECURRENT)
    def test_a_recurrent_layer_sees_all_that_came_before(self, kind):
        recurrent = kind(D, D, batch_first=True).double()
        everything = torch.ones(7, 7, dtype=torch.bool)
        assert receptive_field(lambda x: recurrent(x)[0], 7, D).equal(everything.tril())

    def test_two_outputs_together_are_reached_by_what_reaches_either(self):
        outputs = torch.tensor([False, True, False, False, False, True, False, False])
        found = trace_inputs(Filter(3), outputs, D)
        assert found.nonzero().flatten().tolist() == [0, 1, 2, 4, 5, 6]

    def test_gradients_may_be_switched_off_around_it(self):
        with torch.no_grad():
            assert receptive_field(Filter(1), 3, D).equal(torch.eye(3, dtype=torch.bool))


class TestStacks:
    @pytest.mark.parametrize("length", [2, 7, 16, 33])
    @pytest.mark.parametrize(
        ("make", "count"),
        [
            (lambda _: Attention(), lambda _: 1),
            (lambda _: Attention(9), lambda n: ceil((n - 1) / 4)),
            (lambda _: Filter(3), lambda n: n - 1),
            (lambda _: Filter(5), lambda n: ceil((n - 1) / 2)),
        ],
        ids=["self-attention", "restricted", "filter of 3", "filter of 5"],
    )
    def test_the_count_is_that_of_a_real_stack(self, make, count, length):
        found = path_length(make, length, D)
        assert found == count(length)
        assert end_to_end([make(0) for _ in range(found)], length).ne(0).any()
        if found > 1:
            assert end_to_end([make(0) for _ in range(found - 1)], length).eq(0).all()

    @pytest.mark.parametrize(
        ("length", "expected"), [(3, 1), (4, 2), (9, 2), (10, 3), (27, 3), (28, 4), (81, 4)]
    )
    def test_gaps_that_grow_by_three_need_the_logarithm(self, length, expected):
        def make(depth: int) -> nn.Module:
            return Filter(3, dilation=3**depth, is_causal=True)

        assert path_length(make, length, D) == expected
        stack = [make(depth) for depth in reversed(range(expected))]
        assert end_to_end(stack, length).ne(0).any()

    def test_it_counts_on_where_the_gradient_of_a_real_stack_has_died(self):
        length = 801
        assert end_to_end([Filter(3) for _ in range(length - 1)], length).eq(0).all()
        assert path_length(lambda _: Filter(3), length, D) == length - 1

    def test_layers_that_see_only_their_own_position_never_connect(self):
        with pytest.raises(InputError, match="back from position 5 only to 4"):
            path_length(lambda _: Filter(1), 5, D)

    def test_no_more_layers_than_allowed(self):
        with pytest.raises(
            InputError, match="3 layers of this kind reach back from position 10 only to 6"
        ):
            path_length(lambda _: Filter(3), 10, D, max_layers=3)


class TestSteps:
    @pytest.mark.parametrize("kind", RECURRENT)
    def test_step_by_step_is_the_fused_layer(self, kind):
        recurrent, x = kind(D, D).double(), make_draw(6)
        fused, _ = recurrent(x.transpose(0, 1))
        torch.testing.assert_close(torch.cat(run_step_by_step(recurrent, x)), fused)

    @pytest.mark.parametrize("kind", RECURRENT)
    @pytest.mark.parametrize("length", [1, 2, 17])
    def test_every_state_is_on_the_way_and_waits_for_the_one_before(self, kind, length):
        recurrent = kind(D, D).double()
        assert recurrent_path_length(recurrent, length) == length
        assert (
            sequential_operations(recurrent_steps(recurrent, make_draw(length)), length) == length
        )

    @pytest.mark.parametrize("kind", RECURRENT)
    def test_a_cut_anywhere_ends_the_gradient_there(self, kind):
        recurrent = kind(D, D).double()
        for cut in range(1, 8):
            x = make_draw(8)
            run_step_by_step(recurrent, x, detach_at=cut)[-1].sum().backward()
            reached = x.grad[0].ne(0).any(dim=-1)
            assert reached.tolist() == [position >= cut for position in range(8)]

    def test_a_cut_changes_no_value(self):
        recurrent, x = nn.GRU(D, D).double(), make_draw(5)
        for whole, cut in zip(
            run_step_by_step(recurrent, x), run_step_by_step(recurrent, x, detach_at=2), strict=True
        ):
            assert whole.equal(cut)

    def test_the_steps_give_the_values_of_the_fused_layer(self):
        recurrent, x = nn.LSTM(D, D).double(), make_draw(5)
        made: list = []
        step = recurrent_steps(recurrent, x)
        for position in range(5):
            made.append(step(position, StateHistory(made)))
        fused, _ = recurrent(x.transpose(0, 1))
        torch.testing.assert_close(torch.cat([hidden for hidden, _ in made]), fused)

    @pytest.mark.parametrize("layer", [Attention(), Attention(5), Filter(3)])
    def test_attention_and_convolution_make_all_outputs_at_once(self, layer):
        x = make_draw(12)
        assert sequential_operations(parallel_steps(layer, x), 12) == 1
        step = parallel_steps(layer, x)
        assert torch.stack([step(position, StateHistory([])) for position in range(12)], 1).equal(
            layer(x)
        )

    def test_a_chain_over_every_second_output_is_half_as_long(self):
        linear, x = nn.Linear(D, D).double(), make_draw(7)

        def step(position, earlier):
            before = earlier[position - 2] if position >= 2 else 0.0
            return torch.tanh(linear(x[:, position]) + before)

        assert sequential_operations(step, 7) == 4  # 0, 2, 4, 6

    def test_what_is_asked_for_but_not_used_is_not_a_link(self):
        x = make_draw(6)

        def step(position, earlier):
            return x[:, position] + (0 * earlier[position - 1] if position not in (0, 3) else 0)

        assert sequential_operations(step, 6) == 1

    def test_an_output_that_needs_all_before_it_waits_for_the_longest_chain(self):
        x = make_draw(5)

        def step(position, earlier):
            before = sum(earlier[other] for other in range(position)) if position != 3 else 0.0
            return x[:, position] + before

        assert sequential_operations(step, 5) == 4  # 0, 1, 2, 4; 3 stands alone

    @pytest.mark.parametrize("position", [-1, 2])
    def test_no_output_can_ask_for_one_that_is_not_made(self, position):
        with pytest.raises(InputError, match=f"output {position} was requested when 2 exist"):
            StateHistory([torch.zeros(1), torch.zeros(1)])[position]

    def test_long_sequences_are_counted_too(self):
        x = torch.randn(1, 5000, 1)  # a graph as deep as that ends in a crash where it is walked
        assert sequential_operations(recurrent_steps(nn.RNN(1, 1), x), 5000) == 5000

    def test_states_that_forget_everything_are_rejected(self):
        recurrent = nn.RNN(D, D).double()
        nn.init.zeros_(recurrent.weight_hh_l0)
        with pytest.raises(InputError, match="does not reach the last output"):
            recurrent_path_length(recurrent, 4)

    def test_what_cannot_be_run_step_by_step_is_rejected_with_all_reasons(self):
        recurrent = nn.LSTM(D, D, num_layers=2, bidirectional=True, batch_first=True)
        wanted = "more than one layer and two directions and the batch first"
        with pytest.raises(InputError, match=wanted):
            recurrent_path_length(recurrent, 4)
        with pytest.raises(InputError, match=wanted):
            recurrent_steps(recurrent, make_draw(4))
        with pytest.raises(InputError, match=wanted):
            run_step_by_step(recurrent, make_draw(4))
