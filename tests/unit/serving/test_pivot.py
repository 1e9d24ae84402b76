"""Translation in two steps: which models, what the answers say, and what it counts."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from attendo.serving.app import create_app
from attendo.serving.pivot import find_pivot, pivot_targets, weaker_confidence
from attendo.serving.served_model import TextModelHandle
from attendo.translator import Confidence, Translation

LANGUAGES = [("ko", "en"), ("en", "de"), ("de", "fr"), ("en", "fr"), ("auto", "auto")]


class Marker:
    """Appends its name to each text; `Shouter` without capitals."""

    def __init__(self, name: str) -> None:
        self.name, self.about = name, {}
        self.reported: list[dict[str, object]] = []

    def check_label(self, label) -> None:
        assert label is None

    def translate(self, texts, *, prefix=None, n_best=1, **options):
        self.reported.append({"prefix": prefix, "n_best": n_best, **options})
        starts = prefix or [""] * len(texts)
        return [
            Translation(
                f"{start}{text} {self.name}",
                source=text,
                alternatives=[Translation(f"{text} {rank}") for rank in range(1, n_best)],
            )
            for start, text in zip(starts, texts, strict=True)
        ]


@pytest.fixture
def make_pivot_client(make_service, shouter):
    """Make a client of a server with models for these languages; the first one is ko-en."""

    def make(*languages: tuple[str, str], **settings: object) -> TestClient:
        service = make_service(**settings)
        for src, tgt in languages:
            marker = Marker(f"{src}-{tgt}")
            marker.split_text = shouter.split_text
            service.registry.add(TextModelHandle(marker.name, src, tgt, marker, {}))
        return TestClient(create_app(service.config, service), base_url="http://localhost")

    return make


@pytest.fixture
def client(make_pivot_client):
    with make_pivot_client(("en", "de"), max_request_characters=300) as client:
        yield client


def ask(client, **fields):
    return client.post("/translate", json={"q": "abc", "source": "ko", "target": "de", **fields})


def test_a_text_is_translated_in_two_steps_and_the_response_names_them(client, shouter):
    assert ask(client).json() == {"translatedText": "ABC en-de", "via": "en"}
    assert ask(client, q=["a", "b"], alternatives=1).json() == {
        "translatedText": ["A en-de", "B en-de"],
        "alternatives": [["A 1"], ["B 1"]],
        "via": ["en", "en"],
    }
    assert shouter.reported[-1]["n_best"] == 1
    assert ask(client, target="en").json() == {"translatedText": "ABC"}  # a direct model exists
    mixed = ask(client, q=["나는 학생이다.", "this is written in English"], source="auto").json()
    assert mixed["via"] == ["en", None]


def test_the_languages_name_the_language_in_between(client):
    assert client.get("/languages").json()[0] == {
        "code": "ko",
        "name": "Korean",
        "targets": ["en", "de", "ko"],
        "via": {"de": "en"},
    }


def test_v1_names_both_models(client):
    body = {"text": ["abc", ""], "source": "ko", "target": "de", "prefix": "x", "alignment": True}
    found = client.post("/v1/translate", json=body).json()
    assert found["via"] == {"language": "en", "model": "ko-en"}
    assert (found["model"], found["source"], found["target"]) == ("en-de", "ko", "de")
    first, second = found["translations"]
    assert (first["text"], first["source_text"]) == ("xABC en-de", "abc")
    assert (second["text"], second["source_text"]) == ("", "")
    assert first["alignment"] is None
    assert len(first["notes"]) == 1
    direct = client.post("/v1/translate", json={"text": "abc", "source": "ko", "target": "en"})
    assert direct.json()["via"] is None


def test_what_needs_a_direct_model_is_rejected(client):
    body = {"text": "abc", "source": "ko", "target": "de", "glossary": {"a": "b"}}
    assert client.post("/v1/translate", json=body).status_code == 400
    for path in ("/v1/stream", "/v1/inspect", "/v1/alternatives"):
        asked = {"text": "abc", "source": "ko", "target": "de"}
        assert client.post(path, json=asked).status_code == 400


def test_both_steps_count_in_the_budget(client):
    texts = ["x" * 100] * 2
    assert ask(client, q=texts, target="en").status_code == 200
    assert ask(client, q=texts).status_code == 413
    body = {"text": texts, "source": "ko", "target": "de"}
    assert client.post("/v1/translate", json=body).status_code == 413


def test_a_server_can_do_without(make_pivot_client):
    with make_pivot_client(("en", "de"), pivot=False) as client:
        assert ask(client).status_code == 400
        assert "via" not in client.get("/languages").json()[0]


def test_a_file_is_translated_in_two_steps(client):
    found = client.post(
        "/translate_file",
        files={"file": ("a.txt", b"one\ntwo\n")},
        data={"source": "ko", "target": "de"},
    ).json()
    assert found["via"] == "en"
    assert client.get(found["translatedFileUrl"]).text == "ONE en-de\nTWO en-de\n"


def test_pairs_of_models_are_found_only_where_none_is_direct(make_pivot_client):
    registry = make_pivot_client(*LANGUAGES).app.state.service.registry
    assert pivot_targets(registry) == {"ko": {"de": "en", "fr": "en"}}
    found = find_pivot(registry, "KO-kr", "de-AT")
    assert (found.first.name, found.second.name) == ("ko-en", "en-de")
    for source, target in (("ko", "en"), ("ko", "ja"), ("auto", "de"), (None, "de"), ("ko", None)):
        assert find_pivot(registry, source, target) is None


def test_the_confidence_is_the_lower_one_of_each_kind():
    first = Confidence(0.9, 0.5, [], 0.4, "check")
    second = Confidence(0.2, 0.8, [], 0.9, "high")
    both = weaker_confidence(first, second)
    assert both[:2] == (0.2, 0.5)
    assert (both.quality, both.band) == (0.4, "check")
    assert weaker_confidence(first._replace(quality=None), second).quality is None


def test_sentences_are_located_in_the_source_and_in_the_final_text(
    write_model, tmp_path, make_service
):
    service = make_service()
    folders = [write_model(tmp_path / name) for name in ("ko-en", "en-de")]
    from attendo.translator import Translator

    for folder, (src, tgt) in zip(folders, [("ko", "en"), ("en", "de")], strict=True):
        translator = Translator.load(folder, device="cpu")
        service.registry.add(TextModelHandle(folder.name, src, tgt, translator, {}))
    source = " 나는 간다.  너는 온다.\n그는 간다."
    with TestClient(create_app(service.config, service), base_url="http://localhost") as client:
        body = {"text": source, "source": "ko", "target": "de", "confidence": True,
                "split": "sentences", "n_best": 2}  # fmt: skip
        (found,) = client.post("/v1/translate", json=body).json()["translations"]
        parts = [source[one["source_start"] : one["source_end"]] for one in found["sentences"]]
        assert parts == ["나는 간다.", "너는 온다.", "그는 간다."]
        assert found["sentences"][-1]["end"] <= len(found["text"])
        assert 0.0 <= found["confidence"]["probability"] <= 1.0
