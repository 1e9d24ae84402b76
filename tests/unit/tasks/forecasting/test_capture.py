"""The record of a window of a series: labels and numbers, gaps and all."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import pytest
import torch

from attendo.architectures.time_series import SeriesTransformer
from attendo.bundle import save_bundle
from attendo.cli.main import run
from attendo.core.errors import ConfigError, InputError
from attendo.inspection import html_page as pages
from attendo.inspection.record import Record
from attendo.tasks.forecasting.capture import capture_series, shorten_times
from attendo.tasks.forecasting.codec import SeriesCodec
from attendo.tasks.forecasting.forecaster import Forecaster
from attendo.tasks.forecasting.time_axis import TimeAxis, parse_time
from attendo.tasks.forecasting.windows import read_window

WINDOW, HORIZON, HEADS, LAYERS = 6, 3, 2, 2
SIZES = {"d_model": 16, "d_ff": 32, "num_heads": HEADS, "num_layers": LAYERS}
DAYS = TimeAxis(kind="date", unit="seconds", step=86_400)
NAN = float("nan")


def make_forecaster(kind: str = "labels", *, seed: int = 3, **about) -> Forecaster:
    """A model with random weights, far enough from even that it prefers something."""
    numbers = {"target_mean": [20.0, 5.0], "target_deviation": [4.0, 2.0]}
    codec = SeriesCodec(
        features=["heat", "wind"],
        targets=["storm"] if kind == "labels" else ["heat", "rain"],
        kind=kind,
        labels=["calm", "storm", "hail"] if kind == "labels" else [],
        mean=[20.0, 3.0],
        deviation=[5.0, 2.0],
        window=WINDOW,
        horizon=HORIZON,
        time="day",
        axis=DAYS,
        **({} if kind == "labels" else numbers),
    )
    torch.manual_seed(seed)
    model = SeriesTransformer(
        num_features=2,
        vocab_size=codec.vocab_size,
        num_targets=0 if kind == "labels" else 2,
        **SIZES,
    ).eval()
    return Forecaster(model, codec, about=about)


@pytest.fixture
def window() -> np.ndarray:
    """Six days; on the second nothing was measured, on the fourth no wind."""
    values = np.random.default_rng(1).normal([20.0, 3.0], [5.0, 2.0], size=(WINDOW, 2))
    values[1], values[3, 1] = NAN, NAN
    return values


def list_days(count: int, first: date = date(2023, 8, 1)) -> list[str]:
    return [str(first + timedelta(days=position)) for position in range(count)]


def write_csv(path, values, labels=None, *, days=None):
    named = days or list_days(len(values))
    lines = ["day,heat,wind" + (",storm" if labels else "")]
    for position, (day, row) in enumerate(zip(named, values, strict=True)):
        cells = ["" if np.isnan(one) else repr(float(one)) for one in row]
        lines.append(",".join([day, *cells, *([labels[position]] if labels else [])]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_labels_are_those_of_the_forecast_and_the_steps_explain_them(window):
    forecaster = make_forecaster()
    record = capture_series(forecaster, window, times=list_days(WINDOW))
    (forecast,) = forecaster.predict(window[None])
    assert record.tgt["words"] == forecast.labels
    assert [token["text"] for token in record.tgt["tokens"]] == forecast.labels
    assert [step["top"][0]["piece"] for step in record.steps] == forecast.labels  # greedy
    # nothing stands before the first step: its probabilities are the same in both ways of counting
    first = {one["piece"]: one["probability"] for one in record.steps[0]["top"]}
    assert first == pytest.approx(forecast.probabilities[0], rel=1e-4)
    assert dict(
        zip(record.series["labels"], record.series["probabilities"][0], strict=True)
    ) == pytest.approx(first, rel=1e-4)
    for step in record.steps:
        shares = [one["probability"] for one in step["top"]]
        assert sum(shares) == pytest.approx(1.0, abs=1e-5)
        assert step["entropy"] == pytest.approx(-sum(p * np.log(p) for p in shares), abs=1e-4)
    assert record.search["log_prob"] == pytest.approx(sum(s["log_prob"] for s in record.steps))


def test_the_temperature_of_the_model_counts(window):
    cold = capture_series(make_forecaster(), window)
    warm = capture_series(make_forecaster(calibration={"temperature": 50.0}), window)
    assert warm.steps[0]["probability"] < cold.steps[0]["probability"]
    assert warm.steps[0]["probability"] == pytest.approx(1 / 3, abs=0.05)


def test_attention_is_over_time_steps_and_blind_to_empty_ones(window):
    forecaster = make_forecaster()
    record = capture_series(forecaster, window, times=list_days(WINDOW))
    shapes = {kind: record.attention(kind).shape for kind in record.kinds}
    assert shapes == {
        "encoder_self": (LAYERS, HEADS, WINDOW, WINDOW),
        "decoder_self": (LAYERS, HEADS, HORIZON, HORIZON),
        "cross": (LAYERS, HEADS, HORIZON, WINDOW),
    }
    for kind in record.kinds:
        assert record.attention(kind).sum(-1) == pytest.approx(1.0, abs=1e-5)
    assert record.attention("cross")[..., 1].max() == 0  # the day without any value
    assert record.attention("cross")[..., 3].min() > 0  # the one that lacks only the wind
    assert np.triu(record.attention("decoder_self"), 1).max() == 0
    assert "window: 3 of 12 values are missing" in record.notes
    assert "window: 1 steps without any value are masked" in record.notes


def test_the_source_names_time_and_kind(window):
    record = capture_series(make_forecaster(), window, times=list_days(WINDOW))
    tokens = record.src["tokens"]
    assert record.src["text"] == "2023-08-01 … 2023-08-06"
    assert [token["text"] for token in tokens[:2]] == ["08-01", "08-02"]
    assert tokens[0]["piece"] == f"{window[0, 0]:.5g} {window[0, 1]:.5g}"
    assert tokens[1]["piece"] == "– –"
    assert record.src["words"] == [token["text"] for token in tokens]
    assert record.series["times"] == list_days(WINDOW)
    heat, wind = record.series["values"]
    assert heat[1] is None
    assert wind[3] is None
    assert heat[0] == pytest.approx(window[0, 0], rel=1e-5)


def test_numbers_have_no_steps_and_their_explanation_repeats_them(window):
    forecaster = make_forecaster("numbers")
    record = capture_series(forecaster, window)
    (forecast,) = forecaster.predict(window[None])
    assert record.steps == []
    assert record.search["score"] is None
    found = np.array(record.series["numbers"]).T  # (T, K)
    assert found == pytest.approx(np.array(forecast.values), rel=1e-5)
    assert record.tgt["tokens"][0]["text"] == " ".join(f"{one:.5g}" for one in forecast.values[0])
    assert record.series["times"] == ["-6", "-5", "-4", "-3", "-2", "-1"]
    assert record.series["tgt_times"] == ["+1", "+2", "+3"]
    # what the decoder was fed to explain is what it had said
    fed = np.vstack([[NAN, NAN], forecast.values[:-1]])
    with torch.inference_mode():
        printed = forecaster.model(
            torch.from_numpy(forecaster.codec.normalize(window[None])),
            torch.from_numpy(forecaster.codec.normalize_targets(fed[None])),
        )
    again = forecaster.codec.denormalize_targets(printed[0].numpy())
    assert again == pytest.approx(np.array(forecast.values), rel=1e-3)
    assert Record.from_dict(record.to_dict()).steps == []


def test_it_goes_through_json(window, tmp_path):
    record = capture_series(
        make_forecaster(), window, times=list_days(WINDOW), observed=["calm", None, "hail"]
    )
    record.save(tmp_path / "record.json")
    again = Record.load(tmp_path / "record.json")
    assert again.series == record.series
    assert again.series["observed_labels"] == ["calm", None, "hail"]
    assert again.attention("cross") == pytest.approx(record.attention("cross"), abs=2e-5)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"times": ["2023-08-01"]}, "1 times for a window of 6 rows"),
        ({"observed": ["calm"]}, "does not have 3 steps"),
        ({"tgt_times": ["+1"]}, "does not match"),
    ],
)
def test_what_does_not_fit_is_rejected(window, change, reason):
    with pytest.raises(InputError, match=reason.replace("+", r"\+")):
        capture_series(make_forecaster(), window, **change)
    with pytest.raises(ConfigError, match="top = 0"):
        capture_series(make_forecaster(), window, top=0)
    with pytest.raises(InputError, match="infinite"):
        capture_series(make_forecaster(), np.where(np.isnan(window), np.inf, window))


def test_a_record_of_labels_must_have_steps(window):
    record = capture_series(make_forecaster(), window)
    with pytest.raises(InputError, match="0 steps for 3 tokens"):
        record.replace(steps=[])


def test_short_times():
    assert shorten_times(["2023-12-31", "2024-01-01"]) == ["12-31", "01-01"]
    assert shorten_times(["2023-12-31T06:00:00"]) == ["12-31 06:00:00"]
    assert shorten_times(["1", "2"]) == ["1", "2"]


# -- out of a file


@pytest.fixture
def file(tmp_path):
    values = np.random.default_rng(2).normal([20.0, 3.0], [5.0, 2.0], size=(10, 2))
    labels = ["calm", "storm"] * 5
    return write_csv(tmp_path / "sea.csv", values, labels), values, labels


def test_the_last_window_and_one_in_the_middle(file):
    path, values, labels = file
    codec = make_forecaster().codec
    last = read_window(codec, path)
    assert last.values == pytest.approx(values[-WINDOW:])
    assert last.tgt_times == ["2023-08-11", "2023-08-12", "2023-08-13"]
    assert last.observed is None
    one = read_window(codec, path, at="2023-08-09")
    assert one.values == pytest.approx(values[2:8])
    assert one.times == list_days(8)[2:]
    assert one.tgt_times[0] == "2023-08-09"
    assert one.observed.tolist() == [labels[8], labels[9], None]
    assert read_window(codec, path, at="2023-08-11").times == last.times


@pytest.mark.parametrize(
    ("at", "reason"),
    [
        ("2023-08-03", "2 rows before 2023-08-03, and the model reads 6"),
        ("2024-01-01", "no time 2024-01-01"),
        ("yesterday", "'yesterday' is not a time"),
    ],
)
def test_a_time_that_cannot_be_had(file, at, reason):
    with pytest.raises(InputError, match=reason):
        read_window(make_forecaster().codec, file[0], at=at)


def test_rows_where_there_is_no_time(file):
    path, values, _ = file
    codec = make_forecaster().codec.replace(time=None, axis=None)
    one = read_window(codec, path, at="8")
    assert one.values == pytest.approx(values[1:7])
    assert one.times is None
    assert one.tgt_times == ["+1", "+2", "+3"]
    with pytest.raises(InputError, match="no row '12'"):
        read_window(codec, path, at="12")


def test_times_are_read_as_the_axis_counts_them():
    assert parse_time(DAYS, "2023-08-14T09:00+09:00") == np.datetime64("2023-08-14", "us")
    assert parse_time(TimeAxis(kind="number", unit="numbers", step=1.0), "12.5") == 12.5
    with pytest.raises(InputError, match="is not a time"):
        parse_time(TimeAxis(kind="number", unit="numbers", step=1.0), "inf")


# -- the verb


@pytest.fixture
def look(file, tmp_path, monkeypatch, capsys):
    forecaster = make_forecaster()
    save_bundle(tmp_path / "model", forecaster.model, forecaster.codec)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pages, "read_template", lambda: f"<html>{pages.RECORD_PLACEHOLDER}</html>")

    def call(*words: object) -> tuple[str, str, int]:
        with pytest.raises(SystemExit) as ended:
            run(["look", "model", *map(str, words)])
        shown = capsys.readouterr()
        return shown.out, shown.err, int(ended.value.code or 0)

    return call


def test_look_at_a_series(look, tmp_path):
    out, errors, code = look("--series", "sea.csv", "--at", "2023-08-09", "-o", "record.json")
    assert (code, errors.count("\n")) == (0, 1)
    record = Record.load(tmp_path / "record.json")
    assert out == record.tgt["text"] + "\n"
    assert record.series["observed_labels"] == ["calm", "storm", None]
    _, _, code = look("--series", "sea.csv")
    assert code == 0
    assert "attendo.record" in (tmp_path / "look.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["a text"], "--series"),
        ([], "--series"),
        (["a text", "--series", "sea.csv"], "both a text and --series"),
        (["--series", "sea.csv", "--tgt", "calm"], "--tgt"),
        (["--series", "gone.csv"], "gone.csv"),
    ],
)
def test_look_explains_what_a_series_model_needs(look, words, reason):
    _, errors, code = look(*words)
    assert code == 2
    assert reason in errors
    assert "Traceback" not in errors
