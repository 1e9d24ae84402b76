"""Series models behind the server: next to a translator and alone."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient

from attendo.architectures.time_series import SeriesTransformer
from attendo.bundle import build_model, save_bundle
from attendo.core.errors import InputError
from attendo.inspection.record import Record
from attendo.serving.app import create_app
from attendo.serving.config import ServeConfig
from attendo.serving.model_registry import ModelRegistry
from attendo.serving.service import Service
from attendo.tasks.forecasting.codec import SeriesCodec
from attendo.tasks.forecasting.forecaster import Forecaster
from attendo.tasks.forecasting.time_axis import TimeAxis

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WINDOW, HORIZON = 5, 3
SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
SETTINGS: dict[str, Any] = {"watch_seconds": 0, "log_requests": False, "threads": 1, "max_rows": 50}
LABELS = ["calm", "storm"]
DAYS = [f"2023-08-{day:02d}" for day in range(1, 31)]
ROWS = [
    [20.0 + directory, None if directory == 2 else 3.0 - directory / 4]
    for directory in range(WINDOW)
]


def make_codec(kind: str = "labels", **changes: Any) -> SeriesCodec:
    numbers = {"target_mean": [20.0], "target_deviation": [4.0]} if kind == "numbers" else {}
    facts = {
        "features": ["heat", "wind"],
        "targets": ["storm"] if kind == "labels" else ["heat"],
        "kind": kind,
        "labels": LABELS if kind == "labels" else [],
        "mean": [20.0, 3.0],
        "deviation": [5.0, 2.0],
        "window": WINDOW,
        "horizon": HORIZON,
        "time": "day",
        "axis": TimeAxis(kind="date", unit="seconds", step=86_400),
        **numbers,
    }
    return SeriesCodec(**{**facts, **changes})


def write_series(folder: Path, codec: SeriesCodec, **about: Any) -> Path:
    torch.manual_seed(4)
    model = SeriesTransformer(
        num_features=len(codec.features),
        vocab_size=codec.vocab_size,
        num_targets=len(codec.target_mean),
        **SIZES,
    )
    save_bundle(folder, model, codec, about=about)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("models")
    return {
        "sea": write_series(directory / "sea", make_codec(), dev={"accuracy": 0.9}),
        "heat": write_series(directory / "heat", make_codec("numbers")),
        "loose": write_series(directory / "loose", make_codec(gaps="mask")),
    }


@pytest.fixture(scope="module")
def client(folders) -> Iterator[TestClient]:
    """A server that has series models only."""
    config = ServeConfig(models=list(folders.values()), **SETTINGS)
    with TestClient(create_app(config), base_url="http://localhost") as client:
        yield client


def post(client: TestClient, status: int = 200, route: str = "", **body: Any) -> dict[str, Any]:
    answer = client.post(f"/v1/forecast{route}", json=body)
    assert answer.status_code == status, answer.text
    reported: dict[str, Any] = answer.json()
    return reported


def as_array(rows: list[list[float | None]]) -> np.ndarray:
    return np.array(rows, dtype=np.float64)


def test_models_report_their_task(client):
    sea, heat, _ = client.get("/v1/models").json()["models"]
    assert (sea["name"], sea["task"], sea["kind"]) == ("sea", "series", "series")
    assert (sea["source"], sea["target"], sea["max_characters"]) == (None, None, None)
    assert sea["dev"] == {"accuracy": 0.9}
    assert sea["series"] == {
        "columns": ["heat", "wind"], "time": "day", "window": WINDOW, "horizon": HORIZON,
        "targets": ["storm"], "kind": "labels", "labels": LABELS, "max_rows": 50,
    }  # fmt: skip
    assert heat["series"]["labels"] is None
    assert [sea["default"], heat["default"]] == [True, False]


def test_labels_and_probabilities_are_those_of_the_forecaster(client, folders):
    reported = post(client, rows=ROWS, times=DAYS[:WINDOW])
    (made,) = Forecaster.load(folders["sea"], device="cpu").predict(as_array(ROWS)[None])
    assert reported["model"] == "sea"
    assert reported["window"] == {"first": DAYS[0], "last": DAYS[4], "rows": WINDOW, "missing": 1}
    assert [step["time"] for step in reported["steps"]] == DAYS[5:8]
    assert [step["label"] for step in reported["steps"]] == made.labels
    for step, probs in zip(reported["steps"], made.probabilities, strict=True):
        assert step["probabilities"] == pytest.approx(probs, rel=1e-4)
        assert sum(step["probabilities"].values()) == pytest.approx(1.0, abs=1e-5)
        assert step["values"] is None


def test_numbers_come_in_the_units_of_the_file(client, folders):
    reported = post(client, model="heat", rows=ROWS)
    (made,) = Forecaster.load(folders["heat"], device="cpu").predict(as_array(ROWS)[None])
    assert [step["values"]["heat"] for step in reported["steps"]] == pytest.approx(
        [row[0] for row in made.values], rel=1e-4
    )
    assert [step["time"] for step in reported["steps"]] == ["+1", "+2", "+3"]
    assert reported["steps"][0]["label"] is None


def test_columns_by_name_and_older_rows_do_not_matter(client):
    plain = post(client, rows=ROWS)["steps"]
    older = [[99.0, -9.0], [None, None]]
    assert post(client, rows=[*older, *ROWS])["steps"] == plain
    columns = {"wind": [row[1] for row in ROWS], "heat": [row[0] for row in ROWS]}
    assert post(client, columns=columns)["steps"] == plain


def test_a_gap_is_a_missing_row_where_training_had_such(client):
    days = [*DAYS[:2], *DAYS[4:7]]  # two days are missing
    reported = post(client, model="loose", rows=[[row[0], 1.0] for row in ROWS], times=days)
    assert reported["window"] == {"first": DAYS[2], "last": DAYS[6], "rows": WINDOW, "missing": 4}
    refused = post(client, 400, rows=ROWS, times=days)["error"]
    assert "rows are missing between 2023-08-02 and 2023-08-05" in refused


def test_the_record_of_a_window(client):
    answer = client.post("/v1/forecast/explain", json={"rows": ROWS, "times": DAYS[:WINDOW]})
    assert answer.status_code == 200, answer.text
    record = Record.from_dict(answer.json())
    reported = post(client, rows=ROWS, times=DAYS[:WINDOW])["steps"]
    assert record.tgt["words"] == [step["label"] for step in reported]
    assert record.series["tgt_times"] == [step["time"] for step in reported]
    assert record.attention("cross").shape == (1, 2, HORIZON, WINDOW)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "send either rows or columns"),
        ({"rows": ROWS, "columns": {"heat": [1.0]}}, "send either rows or columns"),
        ({"rows": []}, "rows"),
        ({"rows": ROWS[:3]}, "3 rows, but the model reads 5"),
        ({"rows": [*ROWS[:4], [1.0]]}, "rows.4: 1 values, but the model has 2 columns"),
        ({"rows": [*ROWS[:4], [1.0, "warm"]]}, "rows.4.1"),
        ({"rows": [*ROWS[:4], [1.0, True]]}, "rows.4.1"),
        ({"rows": ROWS * 11}, "rows: 55, at most 50 allowed"),
        ({"rows": [[None, None]] * 5}, "contain no value"),
        ({"rows": [*ROWS[:4], [1e308, 1.0]]}, "heat: 1e+308 is too large"),
        ({"columns": {"heat": [1.0] * 5}}, "no column 'wind'"),
        ({"columns": {"heat": [1.0] * 5, "wnid": [1.0] * 5}}, "did you mean 'wind'?"),
        ({"columns": {"heat": [1.0] * 5, "wind": [1.0] * 4}}, "differ in length"),
        ({"rows": ROWS, "times": DAYS[:2]}, "2 times for 5 rows"),
        ({"rows": ROWS, "times": ["yesterday"] * 5}, "'yesterday' is not a time"),
        ({"rows": ROWS, "times": [DAYS[0]] * 5}, "is not after"),
        (
            {"rows": ROWS, "times": [*DAYS[:4], "2023-08-05T07:00"]},
            "is not a whole number of steps",
        ),
        ({"rows": ROWS, "times": [*DAYS[:4], "9999-12-31"]}, "rows are missing between"),
        ({"rows": ROWS, "model": "see"}, "did you mean 'sea'?"),
        ({"rows": ROWS, "num_samples": 100_000}, "num_samples"),
        ({"rows": ROWS, "row": 1}, "unknown field 'row'"),
    ],
)
def test_what_cannot_be_read_is_reported(client, body, reason):
    for route in ("", "/explain"):
        status = 413 if reason.startswith("rows: ") else 400
        assert reason in post(client, status, route=route, **body)["error"]


@pytest.mark.parametrize("word", ["NaN", "Infinity", "1e999", "-1e999"])
def test_numbers_are_finite(client, word):
    text = f'{{"rows": [[1, 2], [1, 2], [1, 2], [1, 2], [1, {word}]]}}'
    kind = {"content-type": "application/json"}
    answer = client.post("/v1/forecast", content=text, headers=kind)
    assert answer.status_code == 400


def test_a_flood_of_wrong_values_is_one_error(client):
    answer = client.post("/v1/forecast", json={"rows": [["a", "b"]] * 50_000})
    assert answer.status_code == 400
    assert len(answer.text) < 1000
    huge = client.post("/v1/forecast", json={"rows": [[1.0, 2.0]] * 400_000})
    assert huge.status_code == 413


def test_the_same_window_gives_the_same_in_any_company(folders):
    """Windows of many people share batches; draws are a window's own."""
    labels = [f"label {number}" for number in range(9)]  # too many sequences to walk all
    codec = make_codec(labels=labels)
    folder = write_series(folders["sea"].parent / "many", codec)
    config = ServeConfig(models=[folder], batch_wait_ms=200, **SETTINGS)
    bodies = [{"rows": [[20.0 + number, 1.0]] * WINDOW, "num_samples": 5} for number in range(6)]
    with TestClient(create_app(config), base_url="http://localhost") as client:
        alone = [post(client, **body)["steps"] for body in bodies]
        with ThreadPoolExecutor(6) as pool:
            together = list(pool.map(lambda body: post(client, **body)["steps"], bodies))
        printed = client.get("/metrics").text
    assert together == alone
    assert 'attendo_batch_texts_bucket{le="1.0",model="many"}' in printed


def test_batches_are_shared(folders):
    """Requests that wait together are forecast in one call."""
    config = ServeConfig(models=[folders["sea"]], batch_wait_ms=300, **SETTINGS)
    service = Service(config)
    sizes = []

    async def ask() -> None:
        await service.start()
        served = service.registry.get_series_model(None)
        predict = served.forecaster.predict

        def count(windows: np.ndarray, **options: Any) -> Any:
            sizes.append(len(windows))
            return predict(windows, **options)

        served.forecaster.predict = count  # type: ignore[method-assign]
        options = {"num_samples": 7, "seed": 1}
        jobs = [service.forecast(served, as_array(ROWS), ["a", "b", "c"], options)] * 1
        jobs += [service.forecast(served, as_array(ROWS), ["a", "b", "c"], options) for _ in "ab"]
        made = await asyncio.gather(*jobs)
        assert made[0] == made[1] == made[2]
        await service.stop()

    asyncio.run(ask())
    assert sizes == [3]


# -- a server without a translator


def test_libretranslate_s_routes_without_a_translator(client):
    assert client.get("/languages").json() == []
    reported = client.post("/translate", json={"q": "안녕", "source": "ko", "target": "en"})
    assert reported.status_code == 400
    assert "no model for translation is loaded" in reported.json()["error"]
    assert "available: sea (series), heat (series)" in reported.json()["error"]
    settings = client.get("/frontend/settings").json()
    assert settings["language"]["source"]["code"] == "auto"
    assert settings["filesTranslation"] is False
    assert client.post("/detect", json={"q": "안녕"}).status_code == 200
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/").status_code == 200


@pytest.mark.parametrize(
    "route", ["translate", "stream", "alternatives", "inspect", "score", "lessons/4/own"]
)
def test_routes_of_text_reject_a_series_model(client, route):
    body: dict[str, Any] = {"text": "안녕"}
    if route == "score":
        body = {"pairs": [{"source_text": "a", "target_text": "b"}]}
    answer = client.post(f"/v1/{route}", json=body)
    assert (answer.status_code, "no model for translation is loaded" in answer.text) == (400, True)
    named = client.post(f"/v1/{route}", json={**body, "model": "sea"})
    assert named.status_code == 400
    assert (
        "the model 'sea' is for time series forecasting; use /v1/forecast" in named.json()["error"]
    )


def test_errors_are_in_korean_for_korean_readers(client):
    answer = client.post("/v1/forecast", json={"rows": ROWS[:3]},
                         headers={"accept-language": "ko"})  # fmt: skip
    assert answer.json()["error"] == (
        "행이 3개인데, 모델은 5개를 읽습니다. 행을 더 보내세요. 없는 값은 null로 적습니다"
    )
    answer = client.post("/translate", json={"q": "안녕", "source": "ko", "target": "en"},
                         headers={"accept-language": "ko"})  # fmt: skip
    assert answer.json()["error"].startswith("번역 모델이 없습니다. 사용할 수 있는 것: sea")


def test_the_schema_has_the_routes(client):
    schema = client.get("/openapi.json").json()
    assert {"/v1/forecast", "/v1/forecast/explain"} <= set(schema["paths"])


# -- next to a translator


@pytest.fixture
def both(folders, toy, tmp_path):
    tokenizer = toy.prepared.tokenizer
    languages = {"src_lang": "ko", "tgt_lang": "en"}
    model = build_model("transformer", SIZES, tokenizer)
    save_bundle(tmp_path / "ko-en", model, tokenizer, about=languages)
    models = [folders["sea"], tmp_path / "ko-en"]
    with TestClient(
        create_app(ServeConfig(models=models, engine="attendo", **SETTINGS)),
        base_url="http://localhost",
    ) as client:
        yield client


def test_each_route_finds_its_own_model(both):
    sea, translator = both.get("/v1/models").json()["models"]
    assert [sea["task"], translator["task"]] == ["series", "translation"]
    assert sea["default"]
    assert translator["default"]
    assert both.post("/v1/translate", json={"text": "ka"}).json()["model"] == "ko-en"
    assert post(both, rows=ROWS)["model"] == "sea"
    wrong = post(both, 400, rows=ROWS, model="ko-en")["error"]
    assert wrong == "the model 'ko-en' is for translation; use /v1/translate"
    codes = {one["code"]: one["targets"] for one in both.get("/languages").json()}
    assert codes == {"ko": ["en", "ko"], "en": ["en"]}
    assert both.get("/frontend/settings").json()["language"]["source"]["code"] == "ko"


def test_a_server_without_a_series_model_reports_it(make_client):
    with make_client() as client:
        reported = post(client, 400, rows=ROWS)["error"]
        assert (
            reported
            == "no model for time series forecasting is loaded; available: ko-en (translation)"
        )


def test_a_changed_folder_is_loaded_again(tmp_path):
    folder = write_series(tmp_path / "sea", make_codec(), step=1)
    registry = ModelRegistry([folder])
    registry.load()
    assert registry.get_series_model("sea").about == {"step": 1}
    write_series(folder, make_codec(horizon=2), step=2)
    registry.reload_changed()
    assert registry.reload_changed() == ["sea"]
    assert registry.get_series_model(None).forecaster.codec.horizon == 2
    with pytest.raises(InputError, match="for time series forecasting"):
        registry.get_text_model("sea", "translation")
