from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given, settings

from attendo import Transformer
from attendo.core.errors import ConfigError
from attendo.model.presets import PRESETS, get_preset

PAPER_VOCABULARY = 37_000


def count(name: str) -> int:
    with torch.device("meta"):
        return Transformer.from_preset(name, vocab_size=PAPER_VOCABULARY).num_parameters()


@pytest.mark.parametrize(("name", "published"), [("base", 65e6), ("big", 213e6)])
def test_base_and_big_are_within_3_percent_of_the_paper(name, published):
    assert count(name) == pytest.approx(published, rel=0.03)


@pytest.mark.parametrize(
    "name", [name for name, preset in PRESETS.items() if preset.published_parameters]
)
def test_rows_of_table_3_are_within_7_percent_of_the_paper(name):
    assert count(name) == pytest.approx(PRESETS[name].published_parameters * 1e6, rel=0.07)


def test_every_row_of_table_3_is_there():
    rows = {row: [name for name in PRESETS if name.startswith(f"{row}-")] for row in "ABCDE"}
    assert {row: len(names) for row, names in rows.items()} == {
        "A": 4,
        "B": 2,
        "C": 7,
        "D": 4,
        "E": 1,
    }
    printed = [name for name, preset in PRESETS.items() if preset.published_parameters]
    assert len(printed) == 11  # base, big, B and C


def test_row_a_keeps_the_cost_constant():
    assert {count(name) for name in PRESETS if name.startswith("A-")} == {count("base")}


def test_row_b_makes_keys_smaller_and_leaves_values():
    with torch.device("meta"):
        model = Transformer.from_preset("B-dk-16", vocab_size=PAPER_VOCABULARY)
    attention = model.encoder.layers[0].self_attention
    assert attention.key.out_features == 8 * 16
    assert attention.value.out_features == 512


def test_row_d_smoothing_is_a_setting_of_training():
    assert get_preset("D-smoothing-0.0").label_smoothing == 0.0
    assert get_preset("D-smoothing-0.0").options == get_preset("base").options
    assert get_preset("big").train_steps == 300_000


@settings(max_examples=10)
@given(st.sampled_from(sorted(PRESETS)), st.integers(1, 3), st.integers(1, 5))
def test_every_preset_runs(name, batch, length):
    model = Transformer.from_preset(name, vocab_size=11, num_layers=1, d_ff=8)
    ids = torch.randint(0, 11, (batch, length))
    assert model(ids, ids).shape == (batch, length, 11)


def test_options_change_a_preset():
    model = Transformer.from_preset("tiny", vocab_size=50, num_layers=1, norm="pre")
    assert (model.config.num_layers, model.config.d_model, model.config.norm) == (1, 128, "pre")


def test_unknown_preset_names_the_nearest():
    with pytest.raises(ConfigError, match=r"no preset 'bse'(.|\n)*did you mean 'base'"):
        Transformer.from_preset("bse", vocab_size=10)
    with pytest.raises(ConfigError, match="did you mean 'num_layers'"):
        Transformer.from_preset("tiny", vocab_size=10, num_layer=3)


def test_names_are_found_in_any_case():
    assert get_preset("e-LEARNED") is PRESETS["E-learned"]
