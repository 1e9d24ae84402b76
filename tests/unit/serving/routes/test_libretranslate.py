from __future__ import annotations

import json
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from support.document_samples import SAMPLES, make_zip

from attendo.documents import read_document
from attendo.serving.language_detection import detect, language_name
from attendo.serving.served_model import TextModelHandle

PATIENCE = 30.0


@pytest.fixture
def client(make_client):
    settings = {"max_characters": 200, "max_texts": 4, "max_file_bytes": 5000, "timeout": 20}
    with make_client(**settings) as client:
        yield client


def ask(client, **body):
    return client.post("/translate", json={"source": "ko", "target": "en", **body})


class TestTranslate:
    def test_a_text_gives_a_text_and_a_list_a_list(self, client) -> None:
        assert ask(client, q="abc").json() == {"translatedText": "ABC"}
        assert ask(client, q=["a", "", "c"]).json() == {"translatedText": ["A", "", "C"]}
        assert ask(client, q=["a"]).json() == {"translatedText": ["A"]}
        assert ask(client, q=[]).json() == {"translatedText": []}

    def test_a_form_is_taken_as_json_is(self, client) -> None:
        form = {"q": "가나 <b>", "source": "ko", "target": "en", "alternatives": "1"}
        reported = {"translatedText": "가나 <B>", "alternatives": ["가나 <B> 1"]}
        assert client.post("/translate", data=form).json() == reported
        assert client.post("/translate", data=form, files={"no": ""}).status_code == 400
        raw = "q=가나 a&source=ko&target=en".encode()  # as curl -d sends it
        kind = {"content-type": "application/x-www-form-urlencoded"}
        answer = client.post("/translate", content=raw, headers=kind)
        assert answer.json() == {"translatedText": "가나 A"}
        assert client.post("/translate?source=ko&target=en", data={"q": ["a", "b"]}).json() == {
            "translatedText": ["A", "B"]
        }

    def test_alternatives_come_next_to_each_text(self, client, shouter) -> None:
        reported = ask(client, q=["a", "b"], alternatives=2).json()
        assert reported == {
            "translatedText": ["A", "B"],
            "alternatives": [["A 1", "A 2"], ["B 1", "B 2"]],
        }
        ask(client, q="a", alternatives=7)
        assert shouter.reported[-1]["beam_size"] == 8  # as many as are asked for

    def test_the_language_is_detected_and_reported(self, client) -> None:
        reported = ask(client, q="나는 학생이다.", source="auto").json()
        assert reported["detectedLanguage"]["language"] == "ko"
        assert reported["detectedLanguage"]["confidence"] > 90
        reported = ask(client, q=["나는 학생이다.", "the same in English"], source="auto").json()
        assert [one["language"] for one in reported["detectedLanguage"]] == ["ko", "en"]
        assert reported["translatedText"] == ["나는 학생이다.".upper(), "the same in English"]

    def test_a_text_in_no_language_of_the_models_is_rejected(self, client) -> None:
        answer = ask(client, q="Bonjour, je suis étudiant.", source="auto")
        assert answer.status_code == 400
        assert "French" in answer.json()["error"]
        reported = ask(
            client, q="<p>나는 <b>학생</b>이다.</p>", source="auto", format="html"
        ).json()
        assert reported["detectedLanguage"]["language"] == "ko"  # tags are no evidence

    def test_each_text_goes_to_the_model_of_its_language(self, make_service, shouter) -> None:
        from fastapi.testclient import TestClient

        from attendo.serving.app import create_app
        from attendo.translator import Translation

        class Korean(type(shouter)):
            def translate(self, texts, **_options):
                return [Translation("한국어") for _ in texts]

        service = make_service()
        service.registry.add(TextModelHandle("en-ko", "en", "ko", Korean(), {}))
        with TestClient(create_app(service.config, service), base_url="http://localhost") as client:
            assert ask(client, q="words", source="en", target="ko").json() == {
                "translatedText": "한국어"
            }
            reported = ask(client, q=["나는 간다", "I am going there"], source="auto", target="ko")
            assert reported.json()["translatedText"] == ["나는 간다", "한국어"]
            assert [one["targets"] for one in client.get("/languages").json()] == [
                ["en", "ko"],
                ["ko", "en"],
            ]

    def test_html_keeps_its_tags(self, client) -> None:
        page = "<p class='a'>one &amp; <b>two</b></p><script>three</script>"
        reported = ask(client, q=page, format="html", alternatives=1).json()
        made = "<p class='a'>ONE &amp; <b>TWO</b></p><script>three</script>"
        other = "<p class='a'>ONE &amp; TWO <b>1</b></p><script>three</script>"
        assert reported == {"translatedText": made, "alternatives": [other]}
        assert ask(client, q="<b>..</b>", format="html").json() == {"translatedText": "<b>..</b>"}

    @pytest.mark.parametrize(
        ("body", "reported"),
        [
            ({}, "q: Field required"),
            ({"q": 7}, "q"),
            ({"q": None}, "q"),
            ({"q": ["a", 7]}, "q"),
            ({"q": "a", "target": ""}, "target"),
            ({"q": "a", "target": "xx"}, "no model translates ko to xx; available: ko to en"),
            ({"q": "a", "source": "xx"}, "no model translates xx to en"),
            ({"q": "a", "format": "pdf"}, "format"),
            ({"q": "a", "alternatives": -1}, "alternatives"),
            ({"q": "a", "alternatives": 11}, "alternatives: 11, at most 10 allowed"),
            ({"q": "a" * 201}, "characters: 201, at most 200 allowed"),
            ({"q": ["a"] * 5}, "texts: 5, at most 4 allowed"),
        ],
    )
    def test_what_cannot_be_done_is_reported_in_its_shape(self, client, body, reported) -> None:
        answer = ask(client, **body)
        is_size = reported.startswith(("characters", "texts"))
        assert answer.status_code == (413 if is_size else 400)
        assert list(answer.json()) == ["error"]
        assert reported in answer.json()["error"]

    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"\xff\xfe", b"[1, 2]", b"null", b"[" * 100_000, b'{"q": 1' + b"0" * 9000],
        ids=["empty", "cut", "bytes", "list", "null", "deep", "long number"],
    )
    @pytest.mark.parametrize(
        "kind", ["application/json", "application/x-www-form-urlencoded", "multipart/form-data", ""]
    )
    def test_what_is_not_a_request_is_a_bad_one(self, client, content, kind) -> None:
        for path in ("/translate", "/detect", "/translate_file"):
            answer = client.post(path, content=content, headers={"content-type": kind})
            assert (path, answer.status_code) == (path, 400)
            assert list(answer.json()) == ["error"]

    @pytest.mark.parametrize("charset", ["punycode", '"idna"', "utf-16", "hex", ""])
    def test_the_charset_of_a_form_has_no_meaning(self, client, charset) -> None:
        """With punycode the server responded with 500, or took quadratic time."""
        fields = {"q": "나-a", "source": "ko", "target": "en"}
        parts = [
            f'--B\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        ]
        kind = f"multipart/form-data; charset={charset}; boundary=B"
        content = ("".join(parts) + "--B--\r\n").encode()
        answer = client.post("/translate", content=content, headers={"content-type": kind})
        assert answer.json() == {"translatedText": "나-A"}

    def test_no_text_of_a_client_is_returned_as_html(self, client) -> None:
        evil = "<img src=x>"
        answer = ask(client, q="a", target=evil)
        assert answer.status_code == 400
        assert "<" not in answer.text
        assert evil in answer.json()["error"]

    @pytest.mark.parametrize(("source", "made"), [("ko", "\ufffd<B>"), ("en", "\ufffd<b>")])
    def test_half_a_letter_is_not_a_letter(self, client, source, made) -> None:
        content = f'{{"q": "\\ud800<b>", "source": "{source}", "target": "en"}}'
        kind = {"content-type": "application/json"}
        answer = client.post("/translate", content=content, headers=kind)
        assert answer.json() == {"translatedText": made}

    def test_a_full_queue_names_the_time_to_retry(self, make_client, shouter) -> None:
        with make_client(max_queue=1, batch_size=1) as client, ThreadPoolExecutor(3) as pool:
            shouter.may_go.clear()
            first = pool.submit(ask, client, q="first")
            assert shouter.has_started.wait(PATIENCE)
            second = pool.submit(ask, client, q="second")
            while 'attendo_queue_texts{model="ko-en"} 1.0' not in client.get("/metrics").text:
                pass
            answer = ask(client, q="third")
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) >= 1
            assert "too many requests" in answer.json()["error"]
            shouter.may_go.set()
            assert [f.result(PATIENCE).status_code for f in (first, second)] == [200, 200]

    def test_past_the_deadline_the_client_is_answered_though_the_thread_is_busy(
        self, make_client, shouter
    ) -> None:
        with make_client(timeout=0.3) as client:
            shouter.may_go.clear()
            answer = ask(client, q="slow")
            assert answer.status_code == 504
            assert not shouter.batches
            assert client.get("/health").json() == {"status": "ok"}
            shouter.may_go.set()


def test_detect_ranks_the_languages_of_the_models(client) -> None:
    for send in ({"json": {"q": "나는 학생이다."}}, {"data": {"q": "나는 학생이다."}}):
        (best, *_) = client.post("/detect", **send).json()
        assert best["language"] == "ko"
        assert 90 < best["confidence"] <= 100
    assert client.post("/detect", json={"q": "this is English"}).json()[0]["language"] == "en"
    assert client.post("/detect", json={"q": "123 !?"}).json() == [
        {"confidence": 0.0, "language": "ko"}
    ]


def test_detect_has_a_fallback_for_codes_that_nobody_knows() -> None:
    assert detect("words of some kind", ["xx", "yy"])[0] == (0.0, "xx")
    assert detect("words of some kind", ["auto"])[0] == (0.0, "en")
    assert detect("Das ist ein Haus", ["xx", "de-AT", "ko"])[0].language == "de-AT"
    assert detect("a\ud800b", ["ko", "en"])
    assert language_name("xx") == "xx"


def test_languages_and_settings_have_libretranslate_s_shapes(client) -> None:
    assert client.get("/languages").json() == [
        {"code": "ko", "name": "Korean", "targets": ["en", "ko"]},
        {"code": "en", "name": "English", "targets": ["en"]},
    ]
    reported = client.get("/frontend/settings").json()
    assert reported["charLimit"] == 200
    assert reported["keyRequired"] is False
    assert reported["language"]["source"] == {"code": "ko", "name": "Korean"}
    assert reported["supportedFilesFormat"][:2] == [".txt", ".html"]
    answer = client.post("/suggest", json={})
    assert (answer.status_code, list(answer.json())) == (403, ["error"])


class TestFiles:
    def send(self, client, name: str, content: bytes, **fields: str):
        fields = {"source": "ko", "target": "en", **fields}
        return client.post("/translate_file", data=fields, files={"file": (name, content)})

    def test_a_text_comes_back_line_by_line(self, client) -> None:
        content = "\ufeffone\r\n\r\n  two \n<b>{x}</b> &amp;".encode()
        url = self.send(client, "../../a.txt", content).json()["translatedFileUrl"]
        answer = client.get(url)
        assert answer.content == b"\xef\xbb\xbfONE\r\n\r\n  TWO \n<B>{x}</B> &amp;"
        assert answer.headers["content-disposition"] == 'attachment; filename="translated.txt"'
        assert answer.headers["content-type"].startswith("text/plain")

    def test_html_is_returned_as_html_that_runs_nothing(self, client) -> None:
        url = self.send(client, "a.HTM", b"<p>one</p><script>x</script>").json()
        answer = client.get(url["translatedFileUrl"])
        assert answer.text == "<p>ONE</p><script>x</script>"
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["content-disposition"].startswith("attachment")

    def test_a_file_has_more_lines_than_a_request_has_texts(self, client, shouter) -> None:
        content = "\n".join(f"line {n}" for n in range(300)).encode()
        url = self.send(client, "a.txt", content, source="auto").json()["translatedFileUrl"]
        expected = content.decode().upper() if shouter.batches else content.decode()
        assert client.get(url).text == expected

    @pytest.mark.parametrize(
        ("name", "content", "reported"),
        [
            ("a.exe", b"x", "unsupported file type"),
            ("", b"x", ""),
            ("a.txt", b"\xff\xfe\x00", "encoding"),
            ("a.txt", b"x" * 5001, "bytes: 5001"),
        ],
    )
    def test_other_files_are_rejected(self, client, name, content, reported) -> None:
        answer = self.send(client, name, content)
        assert answer.status_code == (413 if reported.startswith("bytes") else 400)
        assert reported in answer.json()["error"]

    @pytest.mark.parametrize("encoding", ["cp949", "utf-16", "utf-8-sig"])
    def test_korean_files_in_other_encodings_are_read(self, client, shouter, encoding) -> None:
        content = "나는 학생입니다. 그는 선생님이 아니고 의사입니다.".encode(encoding)
        url = self.send(client, "a.txt", content).json()["translatedFileUrl"]
        assert client.get(url).content.decode("utf-8-sig") == content.decode(encoding)
        assert shouter.batches[-1] == [content.decode(encoding)]

    def test_a_translated_page_names_its_own_language_and_encoding(self, client) -> None:
        content = (
            '<!doctype html><html class=a lang="ko"><meta charset="euc-kr">'
            '<meta http-equiv="Content-Type" content="text/html; charset=euc-kr">'
            "<p lang='ko'>똠방각하</p>"  # not in EUC-KR itself
        ).encode("cp949")
        url = self.send(client, "a.html", content).json()["translatedFileUrl"]
        page = client.get(url).text
        assert '<html class=a lang="en"><meta charset="utf-8">' in page
        assert 'content="text/html; charset=utf-8"' in page
        assert "똠방각하" in page

    def test_a_large_file_stays_in_memory(self, make_client, monkeypatch) -> None:
        def refuse(*_: object, **__: object) -> None:
            raise AssertionError("a temporary file was made")

        monkeypatch.setattr(tempfile.SpooledTemporaryFile, "rollover", refuse)
        settings = {"max_body_bytes": 4_000_000, "max_file_bytes": 3_000_000}
        with make_client(api_keys=["a-long-secret-key"], **settings) as client:
            content = b"x\n" * 1_000_000
            fields = {"source": "en", "target": "en", "api_key": "a-long-secret-key"}
            files = {"file": ("a.txt", content)}
            answer = client.post("/translate_file", data=fields, files=files)
            assert answer.status_code == 200

    @pytest.mark.parametrize("name", SAMPLES)
    def test_documents_come_back_whole(self, make_client, name) -> None:
        with make_client(max_file_bytes=50_000) as client:
            response = self.send(client, name, SAMPLES[name]).json()
            answer = client.get(response["translatedFileUrl"])
        before = read_document(SAMPLES[name], name)
        suffix = f".{name.rpartition('.')[2]}"
        assert answer.headers["content-disposition"].endswith(f'translated{suffix}"')
        assert response.get("notes", [])[: len(before.notes)] == before.notes
        if suffix in (".po", ".xlf"):  # these have both languages
            assert read_document(answer.content, name).segments == []
            return
        after = read_document(answer.content, name)
        assert len(after.segments) == len(before.segments)
        assert after.segments[0].text == before.segments[0].text.upper()
        assert [len(one.tags) for one in after.segments] == [
            len(one.tags) for one in before.segments
        ]

    def test_a_client_that_accepts_events_sees_the_progress(self, client) -> None:
        content = "\n".join(f"line {number} of the file" for number in range(100)).encode()
        answer = client.post(
            "/translate_file",
            data={"source": "ko", "target": "en"},
            files={"file": ("a.txt", content)},
            headers={"Accept": "text/event-stream"},
        )
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = [one.splitlines() for one in answer.text.strip().split("\n\n")]
        assert [kind for kind, _ in events] == ["event: progress"] * 3 + ["event: done"]
        data = [json.loads(line.removeprefix("data: ")) for _, line in events]
        assert data[:3] == [{"done": done, "total": 100} for done in (0, 64, 100)]
        assert client.get(data[3]["translatedFileUrl"]).content == content.upper()

    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("a.docx", make_zip({"x": "", "word/document.xml": b" " * 2_000_000})),
            ("a.epub", b"PK\x03\x04"),
            ("a.xlf", b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><xliff>&a;</xliff>'),
            ("a.po", b"/etc/passwd"),
        ],
    )
    def test_documents_that_are_made_to_hurt_are_rejected(self, make_client, name, content) -> None:
        with make_client(max_unpacked_bytes=1_000_000) as client:
            answer = self.send(client, name, content)
        assert answer.status_code == 400
        assert "root:" not in answer.text

    def test_nobody_guesses_a_file(self, client) -> None:
        for key in ("x", "..%2f..%2fetc%2fpasswd", "%00"):
            assert client.get(f"/download_file/{key}").status_code == 404

    def test_several_processes_take_no_files_and_report_it(self, make_client) -> None:
        with make_client(workers=2) as client:
            assert self.send(client, "a.txt", b"x").status_code == 400
            assert client.get("/frontend/settings").json()["filesTranslation"] is False


def test_the_figures_count_requests_by_route_and_status(client) -> None:
    ask(client, q="a")
    ask(client, q=7)
    client.get("/nothing/here")
    reported = client.get("/metrics").text
    for line in (
        'attendo_requests_total{method="POST",route="/translate",status="200"} 1.0',
        'attendo_requests_total{method="POST",route="/translate",status="400"} 1.0',
        'attendo_requests_total{method="GET",route="other",status="404"} 1.0',
        'attendo_request_seconds_count{route="/translate"} 2.0',
    ):
        assert line in reported


def test_the_page_is_served_from_memory(client) -> None:
    answer = client.get("/")
    assert answer.headers["content-type"].startswith("text/html")
    again = client.get("/", headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for path in ("/app/../server.py", "/app/%2e%2e/server.py", "/app/..%2fserver.py", "/app/"):
        assert client.get(path).status_code == 404


def test_the_schema_describes_the_bodies_that_are_read_by_hand(client) -> None:
    paths = client.get("/openapi.json").json()["paths"]
    body = paths["/translate"]["post"]["requestBody"]["content"]
    assert set(body) == {"application/json", "application/x-www-form-urlencoded"}
    assert body["application/json"]["schema"]["required"] == ["q", "target"]
    for example in body["application/json"]["examples"].values():
        assert client.post("/translate", json=example["value"]).status_code == 200
    file = paths["/translate_file"]["post"]["requestBody"]["content"]["multipart/form-data"]
    assert "file" in file["schema"]["properties"]


def test_many_clients_at_once_get_each_their_own(make_client, shouter) -> None:
    with make_client() as client, ThreadPoolExecutor(16) as pool:
        barrier = threading.Barrier(16)

        def go(number: int) -> bool:
            barrier.wait(PATIENCE)
            return ask(client, q=f"text {number}").json() == {"translatedText": f"TEXT {number}"}

        assert all(pool.map(go, range(16)))
    assert len(shouter.batches) < 16


def test_lone_surrogates_become_the_replacement_character(make_client):
    body = b'{"q": ["a\\ud800b", "c"], "source": "ko", "target": "en"}'
    with make_client() as client:
        response = client.post(
            "/translate", content=body, headers={"Content-Type": "application/json"}
        )
    assert response.json() == {"translatedText": ["A\ufffdB", "C"]}


@pytest.mark.parametrize("path", ["/translate", "/v1/translate"])
@pytest.mark.parametrize(
    ("body", "reported"),
    [
        (b'{"q": NaN, "target": "en"}', "NaN and Infinity are not JSON"),
        (b'{"q": "a", "q": "b", "target": "en"}', "duplicate field"),
        (b'{"q": "a", "target": }', "syntax error at character 23"),
    ],
)
def test_all_routes_read_json_alike(make_client, path, body, reported):
    if path.startswith("/v1"):
        body = body.replace(b'"q"', b'"text"')
    with make_client() as client:
        answer = client.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code == 400
        assert reported.split(" at ")[0] in answer.json()["error"]
        marked = b"\xef\xbb\xbf" + b'{"q": "a", "text": "a", "target": "en"}'
        field = b'"text": "a", ' if path == "/translate" else b'"q": "a", '
        content = marked.replace(field, b"")
        answer = client.post(path, content=content, headers={"Content-Type": "application/json"})
        assert answer.status_code in (200, 500)  # the model here has no engine to describe
        assert "JSON" not in answer.text


def test_a_wrong_type_is_reported_in_plain_words(make_client):
    with make_client() as client:
        for body in ({"q": 5, "target": "en"}, {"q": ["a", 5], "target": "en"}):
            reported = client.post("/translate", json=body).json()["error"]
            assert reported.startswith("q: must be a string or a list of strings;")
