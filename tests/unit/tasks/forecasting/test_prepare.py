from __future__ import annotations

import json
import tracemalloc
from collections import Counter

import numpy as np
import pytest
import torch

from attendo.core.errors import ConfigError, InputError
from attendo.tasks.forecasting.codec import SeriesCodec
from attendo.tasks.forecasting.prepare import prepare_series, read_batch_plan
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID


def test_normalization_is_learned_on_train_alone(write, config):
    rows = [f"{10 + n % 2},{'yes' if n % 4 else 'no'}" for n in range(60)]
    late = [f"{9000 + n},{'yes' if n % 4 else 'no'}" for n in range(40)]
    path = write("heat,storm", *rows, *late)
    data = prepare_series(config(path, dev_share=0.45))
    assert data.train.origins.max() + 2 <= 60
    assert data.codec.mean == pytest.approx([10.5], abs=0.02)
    assert data.codec.deviation == pytest.approx([0.5], abs=0.01)


def test_normalized_numbers_come_back_in_the_units_of_the_file(write, config):
    values = np.random.default_rng(1).normal(50, 7, (80, 2)).round(3)
    path = write("heat,salt", *(f"{heat},{salt}" for heat, salt in values))
    data = prepare_series(config(path, targets=["salt"]))
    rows = np.array([0, 5])
    positions = data.dev.origins[rows]
    expected = np.stack([values[position - 4 : position] for position in positions])
    np.testing.assert_allclose(data.dev.windows(rows), expected, rtol=1e-5)
    np.testing.assert_allclose(data.dev.windows(rows, num_last=1), expected[:, -1:], rtol=1e-5)
    truth = np.stack([values[position : position + 2, 1:] for position in positions])
    np.testing.assert_allclose(data.dev.truth(rows), truth, rtol=1e-5)
    batch = data.train.read(np.arange(len(data.train)))
    assert abs(float(batch.src_ids.mean())) < 0.1
    assert float(batch.labels.std()) == pytest.approx(1, abs=0.1)


def test_labels_are_shifted_behind_start_and_closed_by_end(write, config):
    labels = ["no", "yes", "", "no", "yes", "no"] * 8
    path = write("heat,storm", *(f"{n % 7},{label}" for n, label in enumerate(labels)))
    data = prepare_series(config(path, horizon=3, window=2))
    known = {"no": 4, "yes": 5, "": PAD_ID}
    row = int(
        np.flatnonzero(data.train.origins == 7)[0]
    )  # forecasts rows 7, 8, 9: yes, missing, no
    batch = data.train.read(np.array([row]))
    assert [known[label] for label in labels[7:10]] == [5, 0, 4]
    assert batch.labels.tolist() == [[5, PAD_ID, 4, END_ID]]
    assert batch.tgt_ids.tolist() == [[START_ID, 5, UNK_ID, 4]]
    assert data.train.truth(np.array([row])).tolist() == [[1, -1, 0]]
    assert data.train.past_targets(np.array([row])).tolist() == [[0, 0]]
    assert data.train.count_labels(np.array([row])) == 3


def test_numbers_begin_behind_a_row_of_nan(write, config):
    values = [float(n % 9) for n in range(60)]
    values[20] = np.nan
    path = write("heat", *("" if np.isnan(value) else str(value) for value in values))
    data = prepare_series(config(path, targets=["heat"], horizon=3))
    row = np.flatnonzero(data.train.origins == 19)
    batch = data.train.read(row)
    assert batch.tgt_ids.shape == batch.labels.shape == (1, 3, 1)
    assert batch.tgt_ids[0, 0].isnan().all()
    torch.testing.assert_close(batch.tgt_ids[0, 1:], batch.labels[0, :-1], equal_nan=True)
    assert batch.labels[0, :, 0].isnan().tolist() == [False, True, False]
    assert data.train.count_labels(row) == 2


def test_counted_labels_are_those_of_the_batch(daily, config):
    path = daily(50, without=(7, 8, 21))
    data = prepare_series(config(path, time="date", gaps="mask"), batch_tokens=30)
    for rows in data.train.epoch(3):
        batch = data.train.read(rows)
        assert data.train.count_labels(rows) == int(batch.labels.ne(PAD_ID).sum())


def test_an_epoch_has_every_window_once_and_is_a_function_of_seed_and_number(daily, config):
    path = daily(100)
    plan = prepare_series(config(path), seed=7, batch_tokens=31).train
    again = prepare_series(config(path), seed=7, batch_tokens=31).train
    batches = plan.epoch(2)
    assert Counter(np.concatenate(batches).tolist()) == Counter(range(len(plan)))
    assert all(len(rows) * (4 + 2) <= 31 for rows in batches)
    plan.epoch(0)
    for left, right in zip(batches, again.epoch(2), strict=True):
        np.testing.assert_array_equal(left, right)
    others = [prepare_series(config(path), seed=8, batch_tokens=31).train.epoch(2), plan.epoch(3)]
    for other in others:
        assert any((a != b).any() for a, b in zip(batches, other, strict=True))
    assert plan.padding_stats(batches).mean == 0


def test_a_window_that_exceeds_the_budget_is_rejected(daily, config):
    with pytest.raises(InputError, match="6 positions exceeds batch_tokens 5"):
        prepare_series(config(daily(50)), batch_tokens=5)


def test_given_dev_files_are_used_and_all_of_train_is_train(daily, config):
    train, dev = daily(30), daily(20, name="dev.csv", first="2032-01-01")
    data = prepare_series(config(train, time="date", dev=[dev]))
    assert (len(data.train), len(data.dev)) == (25, 15)
    assert str(data.dev.target_times()[0, 0])[:10] == "2032-01-05"
    assert data.report["split"] == "files"


def test_labels_unseen_in_training_are_named_with_the_known_ones(daily, write, config):
    train = daily(30)
    dev = write(
        "date,heat,storm", *(f"2032-01-{n:02},{n},calm" for n in range(1, 15)), name="d.csv"
    )
    with pytest.raises(
        InputError, match=r"d.csv: labels of 'storm' .* do not occur in training: 'calm'"
    ) as caught:
        prepare_series(config(train, time="date", dev=[dev]))
    assert "known labels: no, yes" in caught.value.hint
    codec = prepare_series(config(train, time="date")).codec
    with pytest.raises(InputError, match="'calm'"):
        read_batch_plan(dev, codec)


def test_a_label_of_the_dev_part_alone_is_unseen(write, config):
    labels = [*(["no", "yes"] * 21), *["calm"] * 6]
    path = write("heat,storm", *(f"{n % 5},{label}" for n, label in enumerate(labels)))
    with pytest.raises(InputError, match="'calm'"):
        prepare_series(config(path))


@pytest.mark.parametrize(
    ("heat", "reason"),
    [
        (lambda _: 7.5, "'heat' is always 7.5"),
        (lambda n: 7.5 if n < 50 else n, "'heat' is always 7.5"),
        (lambda n: "" if n < 50 else n, "all values of 'heat' are missing in train"),
    ],
)
def test_a_constant_column_in_train_is_rejected(write, config, heat, reason):
    rows = (f"{n % 9},{heat(n)},{'no' if n % 2 else 'yes'}" for n in range(60))
    path = write("salt,heat,storm", *rows)
    with pytest.raises(InputError, match=reason) as caught:
        prepare_series(config(path, dev_share=0.2))
    assert "series.features" in caught.value.hint


def test_a_single_label_teaches_nothing(write, config):
    path = write("heat,storm", *(f"{n % 9},no" for n in range(60)))
    with pytest.raises(InputError, match="train has only the label 'no' in column 'storm'"):
        prepare_series(config(path))


def test_short_series_are_left_out_and_counted(write, config):
    rows = [f"long,{n % 9},{'no' if n % 2 else 'yes'}" for n in range(40)]
    path = write("place,heat,storm", *rows, "short,1,no", "short,2,yes")
    data = prepare_series(config(path, group="place"))
    assert data.report["series_left_out"] == {"count": 1, "first": ["short"]}
    assert max(data.train.origins.max(), data.dev.origins.max()) + 2 <= 40


def test_the_report_counts_rows_windows_missing_values_and_labels(daily, config):
    path = daily(50, without=(7, 8))
    data = prepare_series(config(path, time="date", gaps="mask"))
    report = json.loads(json.dumps(data.report))
    assert (report["rows"], report["rows_filled"]) == (50, 2)
    assert report["missing"] == {"heat": 0.04, "storm": 0.04}
    assert report["windows"] == {"train": len(data.train), "dev": len(data.dev)}
    end = int(data.train.origins.max()) + 2
    expected = Counter("yes" if n % 3 == 0 else "no" for n in range(end) if n not in (7, 8))
    assert report["labels"] == dict(sorted(expected.items()))


def test_the_key_depends_on_contents_and_settings_not_on_paths(daily, config):
    path = daily(50)
    key = prepare_series(config(path)).fingerprint
    assert prepare_series(config(daily(50, name="b.csv"))).fingerprint == key
    assert prepare_series(config(path, window=5)).fingerprint != key
    assert prepare_series(config(daily(51, name="c.csv"))).fingerprint != key


def test_the_codec_survives_its_folder(daily, config, tmp_path):
    codec = prepare_series(config(daily(50), time="date")).codec
    codec.save(tmp_path)
    loaded = SeriesCodec.load(tmp_path)
    assert loaded == codec
    assert loaded.horizon_times(np.datetime64("2031-12-31", "us")) == ["2032-01-01", "2032-01-02"]
    assert loaded.decode_labels([START_ID, 5, 4, END_ID]) == ["yes", "no"]
    assert loaded.vocab_size == 6
    assert codec.replace(axis=None).horizon_times() == ["+1", "+2"]


def test_a_damaged_codec_is_rejected_with_every_reason(daily, config, tmp_path):
    codec = prepare_series(config(daily(50))).codec
    codec.save(tmp_path)
    path = tmp_path / "series.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "mean": [1.0, 2.0], "labels": []}))
    with pytest.raises(ConfigError) as caught:
        SeriesCodec.load(tmp_path)
    assert len(caught.value.reasons) == 2
    path.write_text(json.dumps({**settings, "deviation": [0.0]}))
    with pytest.raises(ConfigError, match="deviation"):
        SeriesCodec.load(tmp_path)


def test_a_codec_reads_a_file_that_ends_where_the_forecast_begins(daily, write, config):
    codec = prepare_series(config(daily(50), time="date")).codec
    path = write("heat,date", *(f"{n},2032-01-{n:02}" for n in range(1, 9)), name="new.csv")
    table = codec.read(path)
    assert table.targets is None
    assert table.features[:, 0].tolist() == list(range(1, 9))
    with pytest.raises(InputError, match="no column 'storm'"):
        codec.read(path, needs_targets=True)
    with pytest.raises(InputError, match="3 columns do not match the 1 of training"):
        codec.normalize(np.zeros((2, 3)))


def test_memory_grows_with_the_rows_not_with_the_windows(tmp_path, config):
    path = tmp_path / "long.npz"
    heat = np.random.default_rng(1).normal(size=60_000)
    np.savez(path, heat=heat, storm=np.where(heat > 0, "yes", "no"))
    tracemalloc.start()
    data = prepare_series(config(path, window=500, horizon=100))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(data.train) > 40_000
    assert peak < 60_000 * 1000  # all windows would be 60,000 x 500 x 4 bytes
