"""Lesson 10: the position-wise feed-forward network."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from attendo.lessons.blocks import Matrix, ModelPlot, Table
from attendo.lessons.chapters.ch10_feed_forward.lesson import (
    B_1,
    B_2,
    LESSON,
    W_1,
    W_2,
    X,
    convolution_difference,
    count_distinct,
    count_parameters,
    list_networks,
    make_deep_model,
    make_network,
    output_changes,
    zero_fraction,
)
from attendo.model.transformer import Transformer

INNER = [[1, 1, -1, 2], [2, -3, 2, 1], [0, 1, 0, -1]]
HIDDEN = [[1, 1, 0, 2], [2, 0, 2, 1], [0, 1, 0, 0]]
OUTPUT = [[-1, 2], [3, 3], [0, 2]]


def matrices(view, **given) -> list[list[list[float]]]:
    """Return x, the inner layer, the hidden activations, the output, and the reordered output."""
    return [matrix.values for matrix in view.blocks(Matrix, given)[4:]]  # after the weights


class TestByHand:
    def test_the_weights_are_printed(self, view):
        printed = [matrix.values for matrix in view.blocks(Matrix)[:4]]
        assert printed == [W_1, B_1, W_2, B_2]

    def test_every_step(self, view):
        assert matrices(view)[:4] == [X, INNER, HIDDEN, OUTPUT]

    def test_other_weights(self, view):
        given = {
            "x": [[1, 1], [-2, 3], [0.5, 0]],
            "w_1": [[1, 2, 3, -4], [0, -1, 1, 1]],
            "b_1": [[1, 0, 0, 2]],
            "w_2": [[1, 2], [3, -1], [0, 1], [1, 1]],
            "b_2": [[5, -5]],
        }
        x, w_1, b_1, w_2, b_2 = (np.array(own, dtype=float) for own in given.values())
        expected = np.maximum(0, x @ w_1 + b_1) @ w_2 + b_2
        np.testing.assert_allclose(matrices(view, **given)[3], expected)


class TestPositions:
    @pytest.mark.parametrize(
        ("order", "positions"), [("123", [0, 1, 2]), ("321", [2, 1, 0]), ("231", [1, 2, 0])]
    )
    def test_outputs_move_with_the_words(self, view, order, positions):
        *_, output, moved = matrices(view, order=order)
        assert moved == [output[position] for position in positions]

    def test_a_changed_word_moves_its_own_output_only(self, view):
        (table, _) = view.blocks(Table)
        alone, together = ([row[column] for row in table.rows] for column in (1, 2))
        assert alone[0] == alone[2] == 0.0
        assert alone[1] > 0.1
        assert min(together) > 0.01

    def test_reach_is_measured_on_the_layer_that_is_given(self):
        x = torch.tensor(X, dtype=torch.float64)
        assert output_changes(lambda rows: rows.cumsum(0), x) == [0.0, 1.0, 1.0]

    def test_is_two_convolutions_of_width_one(self):
        network = make_network(W_1, B_1, W_2, B_2)
        x = torch.randn(7, 2, dtype=torch.float64)
        assert convolution_difference(network, x) < 1e-12


class TestSize:
    def test_parameters_of_the_paper(self):
        assert count_parameters(512, 2048) == 512 * 2048 * 2 + 2048 + 512 == 2_099_712

    def test_sizes_can_be_changed(self, view):
        (_, table) = view.blocks(Table, {"d_model": 100, "d_ff": 30})
        assert [row[2] for row in table.rows] == [3000, 30, 3000, 100, 6130, 4 * 10_000 + 400]

    def test_every_layer_has_weights_of_its_own(self):
        networks = list_networks(make_deep_model())
        assert len(networks) == count_distinct(networks) == 12
        networks[3] = networks[0]
        assert count_distinct(networks) == 11

    def test_the_total_is_that_of_the_base_model(self, view):
        with torch.device("meta"):
            base = Transformer.from_preset("base", vocab_size=100)
        counted = sum(
            weight.numel() for network in list_networks(base) for weight in network.parameters()
        )
        assert f"{counted:,}" in view.text("en")

    def test_half_of_the_units_of_a_new_network_are_silent(self):
        assert zero_fraction(512, 2048) == pytest.approx(0.5, abs=0.01)


class TestOwnModel:
    @pytest.mark.parametrize("norm", ["post", "pre"])
    def test_counts_silent_units(self, view, make_translator, norm):
        translator = make_translator(norm=norm)
        model = translator.model
        with torch.no_grad():
            model.encoder.layers[0].feed_forward.inner.bias[:8] = -1000.0
            model.encoder.layers[0].feed_forward.inner.bias[8:] = 1000.0
            model.decoder.layers[1].feed_forward.inner.bias.fill_(-1000.0)
        blocks = LESSON.own_model_blocks(translator, "ka to mi")
        (table,) = view.select(Table, blocks)
        shares = [row[1] for row in table.rows]
        assert len(shares) == 4
        assert shares[0] == 0.25
        assert shares[3] == 1.0
        assert 0.2 < shares[1] < 0.8
        assert [drawing.name for drawing in view.select(ModelPlot, blocks)] == ["stack"]

    def test_the_count_is_that_of_the_network_at_work(self, view, make_translator):
        """What the hidden layer gets while the model runs, seen by a hook."""
        translator, seen = make_translator(), []
        model, tokenizer = translator.model, translator.tokenizer
        first = model.encoder.layers[0].feed_forward.inner
        handle = first.register_forward_hook(lambda *given: seen.append(given[2]))
        model.encode(translator.backend.pad(tokenizer.encode_src(["ka to mi"])))
        handle.remove()
        (table,) = view.select(Table, LESSON.own_model_blocks(translator, "ka to mi"))
        assert table.rows[0][1] == pytest.approx(float((seen[0] <= 0).float().mean()))
