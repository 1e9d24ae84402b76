"""A forecaster over a known model: probabilities by brute force, fed-back numbers, bad windows."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

import attendo
from attendo.bundle import INDEX_FILE, build_model, load_bundle, read_input_type, save_bundle
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.tasks.forecasting.bundle import build_series_model, load_series_bundle
from attendo.tasks.forecasting.codec import SeriesCodec
from attendo.tasks.forecasting.forecaster import Forecast, Forecaster
from attendo.text.tokenizer import START_ID

if TYPE_CHECKING:
    from pathlib import Path

WINDOW, HORIZON = 5, 4
SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1, "tie_embeddings": "none"}
COMMON = {"features": ("heat", "wind"), "window": WINDOW, "horizon": HORIZON}
SCALES = {"mean": (20.0, 1.0), "deviation": (5.0, 2.0)}


def make_codec(
    kind: str = "labels", labels: tuple[str, ...] = ("no", "yes"), **more
) -> SeriesCodec:
    if kind == "numbers":
        own = {"targets": ("heat", "rain"), "target_mean": (20.0, 3.0)}
        own |= {"target_deviation": (5.0, 0.5)}
    else:
        own = {"targets": ("storm",), "labels": labels}
    return SeriesCodec(kind=kind, **COMMON, **SCALES, **own, **more)


def make_forecaster(*words, about=None, **more) -> Forecaster:
    codec = make_codec(*words, **more)
    return Forecaster(build_series_model(SIZES, codec).eval(), codec, about=about)


@pytest.fixture
def windows() -> np.ndarray:
    values = np.random.default_rng(3).normal(20.0, 5.0, (6, WINDOW, 2))
    values[1, 2, 0] = np.nan
    values[2, 3] = np.nan
    return values


def count_all(forecaster: Forecaster, windows: np.ndarray) -> np.ndarray:
    """Sum the probability of every whole sequence, by teacher forcing."""
    codec, temperature = forecaster.codec, forecaster.temperature
    src = torch.from_numpy(codec.normalize(windows))
    total = np.zeros((len(windows), HORIZON, len(codec.labels)))
    for sequence in itertools.product(range(len(codec.labels)), repeat=HORIZON):
        ids = [START_ID, *(4 + label for label in sequence[:-1])]
        with torch.no_grad():
            logits = forecaster.model(src, torch.tensor([ids] * len(windows)))[..., 4:].double()
        probs = (logits / temperature).softmax(-1).numpy()
        whole = np.prod([probs[:, step, label] for step, label in enumerate(sequence)], axis=0)
        for step, label in enumerate(sequence):
            total[:, step, label] += whole
    return total


def assert_same(one: Forecast, other: Forecast) -> None:
    """Hold two forecasts equal, but for the last bits, which the size of a batch may change."""
    assert one._replace(probabilities=None) == other._replace(probabilities=None)
    for mine, its in zip(one.probabilities, other.probabilities, strict=True):
        assert mine == pytest.approx(its, abs=1e-6)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_probabilities_are_those_of_all_sequences(windows, temperature):
    forecaster = make_forecaster(about={"calibration": {"temperature": temperature}})
    expected = count_all(forecaster, windows)
    np.testing.assert_allclose(forecaster.predict_probabilities(windows), expected, atol=1e-6)
    assert np.ptp(expected[..., 1]) > 0.01  # the model does tell windows apart


def test_sampled_probabilities_are_close_and_sum_to_one(windows):
    forecaster = make_forecaster("labels", ("calm", "rain", "storm"))
    expected = count_all(forecaster, windows)
    drawn = forecaster.predict_probabilities(
        windows, num_samples=26
    )  # 27 sequences would be walked
    many = forecaster.predict_probabilities(windows, num_samples=2000)
    np.testing.assert_allclose(drawn.sum(-1), 1.0)
    np.testing.assert_allclose(drawn[:, 0], expected[:, 0], atol=1e-6)  # nothing drawn yet
    np.testing.assert_allclose(many, expected, atol=0.03)
    assert abs(drawn - expected).max() > 1e-4


def test_samples_depend_on_seed_and_window_only(windows):
    forecaster = make_forecaster("labels", ("calm", "rain", "storm"))
    together = forecaster.predict_probabilities(windows, num_samples=20, seed=7)
    alone = np.concatenate(
        [
            forecaster.predict_probabilities(windows[position, None], num_samples=20, seed=7)
            for position in range(6)
        ]
    )
    np.testing.assert_allclose(together, alone, atol=1e-6)
    backwards = forecaster.predict_probabilities(windows[::-1], num_samples=20, seed=7)[::-1]
    np.testing.assert_allclose(together, backwards, atol=1e-6)
    other = forecaster.predict_probabilities(windows, num_samples=20, seed=8)
    assert abs(together - other).max() > 1e-3


def test_many_windows_pass_in_parts(windows, monkeypatch):
    forecaster = make_forecaster()
    expected = forecaster.predict(windows)
    monkeypatch.setattr("attendo.tasks.forecasting.forecaster.MAX_PARALLEL_SEQUENCES", {"cpu": 16})
    for one, other in zip(forecaster.predict(windows), expected, strict=True):
        assert_same(one, other)


def test_labels_are_the_greedy_ones(windows):
    """Each label is the likeliest behind those that were said, never a special symbol."""
    forecaster = make_forecaster("labels", ("calm", "rain", "storm"))
    with torch.no_grad():  # what is no label would win
        forecaster.model.output.weight[:4] += 1.0
    src = torch.from_numpy(forecaster.codec.normalize(windows))
    for forecast, own in zip(forecaster.predict(windows), src, strict=True):
        ids = [START_ID, *(4 + ("calm", "rain", "storm").index(one) for one in forecast.labels)]
        with torch.no_grad():
            logits = forecaster.model(own[None], torch.tensor([ids[:-1]]))[0]
        assert (logits[:, 4:].argmax(-1) + 4).tolist() == ids[1:]
        assert forecast.values is None
        assert forecast.times == ["+1", "+2", "+3", "+4"]


def test_numbers_are_fed_back_and_in_the_units_of_the_file(windows):
    forecaster = make_forecaster("numbers")
    codec, src = forecaster.codec, torch.from_numpy(forecaster.codec.normalize(windows))
    printed = torch.full((6, 1, 2), torch.nan)
    with torch.no_grad():
        for _ in range(HORIZON):
            printed = torch.cat([printed, forecaster.model(src, printed)[:, -1:]], dim=1)
    expected = printed[:, 1:].double().numpy() * [5.0, 0.5] + [20.0, 3.0]
    found = forecaster.predict(windows)
    np.testing.assert_allclose([one.values for one in found], expected, atol=1e-4)
    assert {(one.labels, one.probabilities) for one in found} == {(None, None)}
    assert codec.denormalize_targets([[0.0, 2.0]]).tolist() == [[20.0, 4.0]]


def test_the_models_mode_is_left_as_it_was(windows):
    forecaster = make_forecaster()
    expected = forecaster.predict(windows)
    forecaster.model.train()
    assert forecaster.predict(windows) == expected
    assert forecaster.model.training


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda x: x[:, 1:], r"shape \(6, 4, 2\); the model reads 5 steps of 2 features"),
        (lambda x: x[..., :1], r"shape \(6, 5, 1\)"),
        (lambda x: x[0], r"shape \(5, 2\)"),
        (lambda x: np.where(np.isnan(x), np.inf, x), "window 2, step 3, heat: .* infinite"),
        (lambda x: [["a"] * len(x)], "not numbers of one shape"),
    ],
)
def test_windows_that_do_not_fit_are_reported(windows, change, reason):
    with pytest.raises(InputError, match=reason) as raised:
        make_forecaster().predict(change(windows))
    assert raised.value.hint


def test_other_bad_requests_are_reported(windows):
    with pytest.raises(ConfigError, match="num_samples 0"):
        make_forecaster().predict(windows, num_samples=0)
    with pytest.raises(InputError, match="does not match the"):
        make_forecaster().predict(windows, times=[["a"] * HORIZON])
    assert make_forecaster().predict(windows[:0]) == []


def test_a_broken_model_reports_it(windows):
    for kind in ("labels", "numbers"):
        forecaster = make_forecaster(kind)
        with torch.no_grad():
            forecaster.model.output.weight[-1] = torch.nan
        with pytest.raises(AttendoError, match="NaN instead of a forecast"):
            forecaster.predict(windows)


# -- the model folder


@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_a_folder_keeps_all_that_it_needs(tmp_path, windows, kind):
    forecaster = make_forecaster(kind, about={"calibration": {"temperature": 1.7}, "step": 3})
    save_bundle(tmp_path / "model", forecaster.model, forecaster.codec, about=forecaster.about)
    found = attendo.Forecaster.load(tmp_path)  # a run's folder is understood, too
    assert found.predict(windows) == forecaster.predict(windows)
    assert (found.temperature, found.about["step"]) == (1.7, 3)
    assert found.codec == forecaster.codec
    assert read_input_type(tmp_path) == "series"
    assert not load_series_bundle(tmp_path).model.training


def test_text_and_series_are_not_mistaken_for_each_other(toy, tmp_path):
    forecaster = make_forecaster()
    save_bundle(tmp_path / "series", forecaster.model, forecaster.codec)
    tokenizer = toy.prepared.tokenizer
    model = build_model("transformer", {key: SIZES[key] for key in ("d_model", "d_ff")}, tokenizer)
    save_bundle(tmp_path / "text", model, tokenizer)
    assert read_input_type(tmp_path / "text") == "text"
    with pytest.raises(InputError, match="a text model") as raised:
        Forecaster.load(tmp_path / "text")
    assert "attendo translate" in raised.value.hint
    with pytest.raises(InputError, match="a time-series model") as raised:
        attendo.Translator.load(tmp_path / "series")
    assert "attendo forecast" in raised.value.hint
    with pytest.raises(InputError, match="a time-series model"):
        attendo.Translator.load(tmp_path / "series", engine="ctranslate2")
    with pytest.raises(InputError, match="a time-series model"):
        load_bundle(tmp_path / "series")


def test_a_codec_of_another_model_is_reported(tmp_path):
    forecaster = make_forecaster()
    save_bundle(tmp_path / "model", forecaster.model, forecaster.codec)
    make_codec("labels", ("calm", "rain", "storm")).save(tmp_path / "model")
    with pytest.raises(InputError, match="vocab_size 7 and 6"):
        Forecaster.load(tmp_path)


def test_a_damaged_folder_is_reported(tmp_path):
    forecaster = make_forecaster()
    save_bundle(tmp_path / "model", forecaster.model, forecaster.codec)
    (tmp_path / "model" / "series.json").unlink()
    with pytest.raises(InputError, match=r"series\.json"):
        Forecaster.load(tmp_path)
    (tmp_path / "model" / INDEX_FILE).write_text("{}")
    with pytest.raises(InputError, match="damaged"):
        Forecaster.load(tmp_path)
    with pytest.raises(InputError, match="device 'gpu'"):
        Forecaster.load(tmp_path, device="gpu")


# -- files


def write_csv(path: Path, num_rows: int, *, groups: tuple[str, ...] = ("",)) -> Path:
    lines = ["date,place,heat,wind"]
    probability = np.random.default_rng(5)
    for group in groups:
        for row in range(num_rows):
            day = np.datetime64("2031-01-28") + row
            heat, wind = probability.normal(20.0, 5.0, 2)
            lines.append(f"{day},{group},{heat:.3f},{'' if row == 6 else f'{wind:.3f}'}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def make_dated(**more) -> Forecaster:
    axis = {"kind": "date", "unit": "seconds", "step": 86_400.0}
    return make_forecaster("labels", ("no", "yes"), time="date", axis=axis, **more)


def test_a_file_is_forecast_behind_its_end(tmp_path):
    forecaster = make_dated()
    path = write_csv(tmp_path / "a.csv", 9)
    (last,) = forecaster.predict_file(path)
    assert last.times == ["2031-02-06", "2031-02-07", "2031-02-08", "2031-02-09"]
    every = forecaster.predict_file(path, last_only=False)
    assert len(every) == 9 - WINDOW + 1
    assert every[0].times[0] == "2031-02-02"
    assert_same(every[-1], last)
    rows = np.genfromtxt(path, delimiter=",", skip_header=1, usecols=(2, 3))
    assert np.isnan(rows).sum() == 1
    (again,) = forecaster.predict(rows[None, -WINDOW:], times=[last.times])
    assert_same(again, last)


def test_each_series_of_a_file_has_its_forecast(tmp_path):
    forecaster = make_dated(group="place")
    path = write_csv(tmp_path / "a.csv", 8, groups=("busan", "jeju"))
    assert [one.group for one in forecaster.predict_file(path)] == ["busan", "jeju"]
    every = forecaster.predict_file(path, last_only=False)
    assert [one.group for one in every] == ["busan"] * 4 + ["jeju"] * 4
    alone = write_csv(tmp_path / "b.csv", 8, groups=("busan",))
    (one,) = forecaster.predict_file(alone)
    assert_same(one, forecaster.predict_file(path)[0])


def test_files_that_do_not_fit_are_reported(tmp_path):
    forecaster = make_dated()
    with pytest.raises(InputError, match="4 rows; a window needs 5"):
        forecaster.predict_file(write_csv(tmp_path / "short.csv", 4))
    gap = write_csv(tmp_path / "gap.csv", 9)
    lines = gap.read_text().splitlines()
    gap.write_text("\n".join(lines[:4] + lines[5:]))
    with pytest.raises(InputError, match="1 rows are missing"):
        forecaster.predict_file(gap)
    assert len(forecaster.predict_file(gap, gaps="mask")) == 1
    other = tmp_path / "other.csv"
    other.write_text(gap.read_text().replace("wind", "rain"))
    with pytest.raises(InputError, match="no column 'wind'"):
        forecaster.predict_file(other)


def test_what_can_be_written_as_json(windows):
    (one, *_) = make_forecaster().predict(windows)
    assert set(one.to_dict()) == {"times", "labels", "probabilities"}
    (one, *_) = make_forecaster("numbers").predict(windows)
    assert set(one.to_dict()) == {"times", "values"}
