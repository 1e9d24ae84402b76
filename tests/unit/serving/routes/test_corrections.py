from __future__ import annotations

import io
import json
import re
import sqlite3

import pytest
from fastapi.testclient import TestClient

from attendo.core.errors import InputError
from attendo.memory.jsonl import read_jsonl
from attendo.memory.store import Match
from attendo.memory.tmx import read_tmx
from attendo.serving import presenters
from attendo.serving.app import create_app
from attendo.serving.config import ServeConfig

CORRECTION = {"source_text": "나는 간다", "target_text": "I go", "source": "ko", "target": "en"}
TMX = """<tmx version="1.4"><header srclang="ko"/><body><tu><tuv xml:lang="ko"><seg>하나</seg></tuv>
<tuv xml:lang="en"><seg>one</seg></tuv></tu></body></tmx>"""


@pytest.fixture
def client(make_client, tmp_path):
    with make_client(memory=tmp_path / "memory.db", max_memory_units=5) as one:
        yield one


def save(client, **fields):
    return client.post("/v1/corrections", json={**CORRECTION, **fields})


def translate(client, text, **fields):
    return client.post("/v1/translate", json={"text": text, **fields}).json()["translations"]


def test_a_correction_is_stored_with_who_when_and_what(client):
    saved = save(client, model="ko-en", output="I GO", author=" Kim ").json()
    assert saved["id"] == 1
    assert saved["author"] == "Kim"
    assert saved["time"].endswith("Z")
    assert (saved["model"], saved["output"], saved["origin"]) == ("ko-en", "I GO", "correction")
    listed = client.get("/v1/corrections").json()
    assert listed == {"corrections": [saved], "num_units": 1, "next_before": None}


def test_a_corrected_text_is_answered_at_once(client, shouter):
    save(client)
    known, unknown = translate(client, [" 나는  간다", "abc"])
    assert known["text"] == "I go"
    assert known["memory"][0]["kind"] == "exact"
    assert known["memory"][0]["score"] == 1
    assert known["score"] is None
    assert known["words"] == ["I", "go"]
    assert unknown["text"] == "ABC"
    assert unknown["memory"] == []
    assert shouter.batches == [["abc"]]


def test_a_similar_text_is_translated_and_the_match_is_returned_with_it(client):
    save(client, source_text="Delete 12 files now", target_text="파일", source="ko", target="en")
    (answer,) = translate(client, "Delete 13 files now")
    assert answer["text"] == "DELETE 13 FILES NOW"
    (match,) = answer["memory"]
    assert match["kind"] == "fuzzy"
    assert 0.9 < match["score"] < 1
    assert (match["source_text"], match["target_text"]) == ("Delete 12 files now", "파일")


def test_the_words_of_a_similar_text_that_differ_are_translated_on_request(client, monkeypatch):
    repaired = []

    def repair(_translator, own, source, target):
        repaired.append((str(own), source, target))
        return "파일 13"

    monkeypatch.setattr("attendo.serving.memory.repair_match", repair)
    save(client, source_text="Delete 12 files now", target_text="파일 12")
    texts = ["Delete 13 files now", "Delete 12 files now", "another text"]
    similar, known, other = translate(client, texts, repair=True)
    assert repaired == [("DELETE 13 FILES NOW", "Delete 12 files now", "파일 12")]
    assert similar["memory"][0]["repaired_text"] == "파일 13"
    assert known["memory"][0]["repaired_text"] is None
    assert other["memory"] == []
    assert translate(client, texts)[0]["memory"][0]["repaired_text"] is None
    assert len(repaired) == 1


@pytest.mark.parametrize(
    "options", [{"memory": False}, {"prefix": "We"}, {"forbidden": ["go"]}, {"do_sample": True}]
)
def test_a_request_that_forces_the_output_is_translated(client, options):
    save(client)
    (answer,) = translate(client, "나는 간다", **options)
    assert answer["text"] != "I go"
    assert answer["memory"] == []


def test_the_libretranslate_routes_use_the_memory(client, shouter):
    save(client)
    body = {"q": ["나는 간다", "abc"], "source": "ko", "target": "en"}
    assert client.post("/translate", json=body).json()["translatedText"] == ["I go", "ABC"]
    page = {"q": "<p>나는 간다</p>", "source": "ko", "target": "en", "format": "html"}
    assert client.post("/translate", json=page).json()["translatedText"] == "<p>I go</p>"


def test_the_stream_of_a_known_text_is_one_event(client):
    save(client)
    body = client.post("/v1/stream", json={"text": "나는 간다"}).text
    assert body.startswith("event: done\n")
    assert json.loads(body.split("data: ")[1])["text"] == "I go"


def test_a_later_correction_replaces_the_earlier_one(client):
    save(client)
    save(client, target_text="I am going")
    assert translate(client, "나는 간다")[0]["text"] == "I am going"
    assert client.get("/v1/corrections").json()["num_units"] == 1


def test_the_languages_are_those_of_the_model(client):
    body = {"source_text": "a", "target_text": "b", "model": "ko-en"}
    saved = client.post("/v1/corrections", json=body).json()
    assert (saved["source"], saved["target"]) == ("ko", "en")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"source_text": "x" * 10_001}, "source_text"),
        ({"target_text": ""}, "target_text"),
        ({"target_text": " \u200b "}, "the target is empty"),
        ({"source": None}, "a correction needs its language"),
        ({"source": "auto"}, "a correction needs its language"),
        ({"source": "../../etc"}, "no language"),
        ({"model": "nobody"}, "no model 'nobody'"),
        ({"author": "x" * 101}, "author"),
        ({"autor": "x"}, "did you mean 'author'"),
    ],
)
def test_wrong_corrections_are_rejected_with_the_reason(client, fields, reason):
    response = save(client, **fields)
    assert response.status_code == 400
    assert reason in response.json()["error"]
    assert client.get("/v1/corrections").json()["num_units"] == 0


def test_a_full_memory_says_so(client):
    for number in range(5):
        assert save(client, source_text=f"text {number}").status_code == 200
    response = save(client, source_text="one more")
    assert response.status_code == 400
    assert "the memory is full: 5 units" in response.json()["error"]


def test_search_and_pages(client):
    for number in range(5):
        save(client, source_text=f"text {number}", target_text=f"T{number}")
    page = client.get("/v1/corrections", params={"q": "TEXT", "limit": 3}).json()
    assert [one["target_text"] for one in page["corrections"]] == ["T4", "T3", "T2"]
    rest = client.get("/v1/corrections", params={"before": page["next_before"]}).json()
    assert [one["target_text"] for one in rest["corrections"]] == ["T1", "T0"]
    assert rest["next_before"] is None
    assert client.get("/v1/corrections", params={"target": "de"}).json()["corrections"] == []
    assert client.get("/v1/corrections", params={"limit": 1000}).status_code == 400


def test_deleting(client):
    number = save(client).json()["id"]
    assert client.delete(f"/v1/corrections/{number}").json() == {"deleted": number}
    assert client.delete(f"/v1/corrections/{number}").status_code == 404
    assert client.delete("/v1/corrections/0").status_code == 400
    assert client.delete(f"/v1/corrections/{2**63}").status_code == 400
    assert translate(client, "나는 간다")[0]["text"] == "나는 간다"


@pytest.mark.parametrize(("format", "read"), [("tmx", read_tmx), ("jsonl", read_jsonl)])
def test_export_has_everything(client, format, read):  # noqa: A002
    save(client, output="I GO", model="ko-en", author="Kim")
    response = client.get("/v1/corrections/export", params={"format": format})
    assert f"corrections.{format}" in response.headers["content-disposition"]
    (unit,) = read(io.BytesIO(response.content))
    assert unit[:7] == ("나는 간다", "I go", "ko", "en", "ko-en", "I GO", "Kim")
    assert unit.origin == "correction"
    assert client.get("/v1/corrections/export?format=exe").status_code == 400


def test_import_of_both_formats(client):
    headers = {"content-type": "application/xml"}
    sent = client.post("/v1/corrections/import", content=TMX.encode(), headers=headers)
    assert sent.json() == {"added": 1, "replaced": 0, "unchanged": 0, "skipped": 0}
    alone = TMX.replace("<body>", '<body><tu><tuv xml:lang="ko"><seg>셋</seg></tuv></tu>')
    sent = client.post("/v1/corrections/import", content=alone.encode(), headers=headers)
    assert sent.json() == {"added": 0, "replaced": 0, "unchanged": 1, "skipped": 1}
    line = '{"src": "둘", "tgt": "two", "src_lang": "ko", "tgt_lang": "en"}'
    headers = {"content-type": "application/jsonl; charset=utf-8"}
    sent = client.post("/v1/corrections/import", content=line.encode(), headers=headers)
    assert sent.json()["added"] == 1
    assert [one["text"] for one in translate(client, ["하나", "둘"])] == ["one", "two"]


@pytest.mark.parametrize(
    ("media_type", "content", "status"),
    [
        ("application/xml", b"<tmx>", 400),
        ("application/xml", b'<!DOCTYPE a [<!ENTITY b "c">]><tmx/>', 400),
        ("application/xml", b"<tmx/>", 400),
        ("application/jsonl", b"{", 400),
        ("text/plain", TMX.encode(), 415),
        ("multipart/form-data; boundary=x", b"--x--", 415),
        ("", b"", 415),
    ],
)
def test_wrong_files_change_nothing(client, media_type, content, status):
    response = client.post(
        "/v1/corrections/import", content=content, headers={"content-type": media_type}
    )
    assert response.status_code == status
    assert response.json()["error"]
    assert client.get("/v1/corrections").json()["num_units"] == 0


def test_a_page_elsewhere_cannot_send_a_correction_without_being_asked(client):
    """Such requests need no permission (CORS): forms, and texts of these three types."""
    for media_type in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        headers = {"content-type": media_type, "origin": "https://evil.example"}
        response = client.post("/v1/corrections", content=json.dumps(CORRECTION), headers=headers)
        assert response.status_code >= 400
    assert client.get("/v1/corrections").json()["num_units"] == 0


def test_every_route_needs_the_key(make_client, tmp_path):
    key = "correct-horse"
    with make_client(memory=tmp_path / "memory.db", api_keys=[key]) as client:
        assert save(client).status_code == 403
        for path in ("/v1/corrections", "/v1/corrections/export"):
            assert client.get(path).status_code == 403
        assert client.delete("/v1/corrections/1").status_code == 403
        assert client.post("/v1/corrections/import", content=TMX).status_code == 403
        client.headers["authorization"] = f"Bearer {key}"
        assert save(client).status_code == 200
        assert client.delete("/v1/corrections/1").status_code == 200


def test_deletions_count_for_the_rate_limit(make_client, tmp_path):
    with make_client(memory=tmp_path / "memory.db", requests_per_minute=2) as client:
        statuses = [client.delete(f"/v1/corrections/{n}").status_code for n in (1, 2, 3)]
    assert statuses == [404, 404, 429]


def test_a_server_without_a_memory_says_how_to_have_one(make_client):
    with make_client() as client:
        assert save(client).status_code == 404
        assert "attendo serve --memory" in client.get("/v1/corrections").json()["error"]
        assert "/v1/corrections" not in client.get("/openapi.json").json()["paths"]
        assert translate(client, "abc")[0]["memory"] == []


def test_the_schema_has_the_routes(client):
    schema = client.get("/openapi.json").json()
    operations = {
        (path, method)
        for path, methods in schema["paths"].items()
        if path.startswith("/v1/corrections")
        for method in methods
    }
    assert operations == {
        ("/v1/corrections", "post"), ("/v1/corrections", "get"),
        ("/v1/corrections/{unit_id}", "delete"), ("/v1/corrections/export", "get"),
        ("/v1/corrections/import", "post"),
    }  # fmt: skip
    body = schema["paths"]["/v1/corrections"]["post"]["requestBody"]["content"]["application/json"]
    example = body["examples"]["example 1"]["value"]
    assert client.post("/v1/corrections", json=example).status_code == 200


@pytest.mark.parametrize("name", ["memory.db", None])
def test_the_list_of_models_tells_whether_there_is_a_memory(write_model, tmp_path, name):
    folder = write_model(tmp_path / "ko-en", src_lang="ko", tgt_lang="en")
    config = ServeConfig(models=[folder], memory=name and tmp_path / name, watch_seconds=0)
    with TestClient(create_app(config), base_url="http://localhost") as client:
        assert client.get("/v1/models").json()["has_memory"] is (name is not None)
        answers = client.post(
            "/v1/translate", json={"text": ["abc", "나는"], "alignment": True, "confidence": True}
        )
        assert len(answers.json()["translations"]) == 2


def test_a_known_text_with_tags_keeps_them(write_model, tmp_path):
    folder = write_model(tmp_path / "ko-en", src_lang="ko", tgt_lang="en")
    config = ServeConfig(models=[folder], memory=tmp_path / "memory.db", watch_seconds=0)
    with TestClient(create_app(config), base_url="http://localhost") as client:
        save(client)
        page = {"q": "<p>나는 <b>간다</b></p>", "source": "ko", "target": "en", "format": "html"}
        text = client.post("/translate", json=page).json()["translatedText"]
    assert re.sub("<.*?>", "", text) == "I go"
    assert text.count("<b>") == text.count("</b>") == 1


def test_a_known_text_is_accepted_whatever_the_confidence(client):
    save(client)
    (answer,) = presenters.add_matches(
        ["나는 간다"],
        [[Match(client.app.state.service.memory.find_exact("나는 간다", "ko", "en"), 1.0)]],
        [],
        min_confidence=0.99,
    )
    assert answer.accepted is True


def test_a_damaged_store_is_an_error_without_its_path(client, tmp_path):
    save(client)
    client.app.state.service.memory.close()
    sqlite3.connect(tmp_path / "memory.db").close()
    for path in tmp_path.glob("memory.db*"):
        path.write_bytes(b"x" * 4096)
    response = client.get("/v1/corrections")
    assert response.status_code == 400
    assert "not a translation memory" in response.json()["error"]
    assert str(tmp_path) not in response.text


def test_two_servers_share_a_memory(make_client, tmp_path):
    settings = {"memory": tmp_path / "memory.db"}
    with make_client(**settings) as first, make_client(**settings) as second:
        save(first)
        assert translate(second, "나는 간다")[0]["text"] == "I go"


def test_a_file_that_is_not_a_memory_stops_the_start(make_client, tmp_path):
    (tmp_path / "text").write_text("hello " * 1000)
    with pytest.raises(InputError, match="not a translation memory"):
        make_client(memory=tmp_path / "text")
