from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

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
        told = {"translatedText": "가나 <B>", "alternatives": ["가나 <B> 1"]}
        assert client.post("/translate", data=form).json() == told
        assert client.post("/translate", data=form, files={"no": ""}).status_code == 400
        raw = "q=가나 a&source=ko&target=en".encode()  # as curl -d sends it
        kind = {"content-type": "application/x-www-form-urlencoded"}
        answer = client.post("/translate", content=raw, headers=kind)
        assert answer.json() == {"translatedText": "가나 A"}
        assert client.post("/translate?source=ko&target=en", data={"q": ["a", "b"]}).json() == {
            "translatedText": ["A", "B"]
        }

    def test_alternatives_come_beside_each_text(self, client, shouter) -> None:
        told = ask(client, q=["a", "b"], alternatives=2).json()
        assert told == {
            "translatedText": ["A", "B"],
            "alternatives": [["A 1", "A 2"], ["B 1", "B 2"]],
        }
        ask(client, q="a", alternatives=7)
        assert shouter.told[-1]["beam_size"] == 8  # as many as are asked for

    def test_the_language_is_found_out_and_told(self, client) -> None:
        told = ask(client, q="나는 학생이다.", source="auto").json()
        assert told["detectedLanguage"]["language"] == "ko"
        assert told["detectedLanguage"]["confidence"] > 90
        told = ask(client, q=["나는 학생이다.", "the same in English"], source="auto").json()
        assert [one["language"] for one in told["detectedLanguage"]] == ["ko", "en"]
        assert told["translatedText"] == ["나는 학생이다.".upper(), "the same in English"]

    def test_each_text_goes_to_the_model_of_its_language(self, make_service) -> None:
        from fastapi.testclient import TestClient

        from attendo.serving.app import create_app
        from attendo.translator import Translation

        class Korean:
            def translate(self, texts, **_options):
                return [Translation("한국어") for _ in texts]

        service = make_service()
        service.registry.add(TextModelHandle("en-ko", "en", "ko", Korean(), {}))
        with TestClient(create_app(service.config, service)) as client:
            assert ask(client, q="words", source="en", target="ko").json() == {
                "translatedText": "한국어"
            }
            told = ask(client, q=["나는 간다", "I am going there"], source="auto", target="ko")
            assert told.json()["translatedText"] == ["나는 간다", "한국어"]
            assert [one["targets"] for one in client.get("/languages").json()] == [
                ["en", "ko"],
                ["ko", "en"],
            ]

    def test_html_keeps_its_tags(self, client) -> None:
        page = "<p class='a'>one &amp; <b>two</b></p><script>three</script>"
        told = ask(client, q=page, format="html", alternatives=1).json()
        made = "<p class='a'>ONE &amp; <b>TWO</b></p><script>three</script>"
        other = "<p class='a'>ONE &amp; 1 <b>TWO 1</b></p><script>three</script>"
        assert told == {"translatedText": made, "alternatives": [other]}
        assert ask(client, q="<b>..</b>", format="html").json() == {"translatedText": "<b>..</b>"}

    @pytest.mark.parametrize(
        ("body", "told"),
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
    def test_what_cannot_be_done_is_told_in_its_shape(self, client, body, told) -> None:
        answer = ask(client, **body)
        assert answer.status_code == 400
        assert list(answer.json()) == ["error"]
        assert told in answer.json()["error"]

    @pytest.mark.parametrize(
        "content",
        [b"", b"{", b"\xff\xfe", b"[1, 2]", b"null", b"[" * 100_000, b'{"q": 1' + b"0" * 9000],
        ids=["empty", "cut", "bytes", "list", "null", "deep", "long number"],
    )
    @pytest.mark.parametrize(
        "kind", ["application/json", "application/x-www-form-urlencoded", "multipart/form-data", ""]
    )
    def test_what_is_no_request_is_a_bad_one(self, client, content, kind) -> None:
        for path in ("/translate", "/detect", "/translate_file"):
            answer = client.post(path, content=content, headers={"content-type": kind})
            assert (path, answer.status_code) == (path, 400)
            assert list(answer.json()) == ["error"]

    def test_nothing_that_was_written_comes_back_as_html(self, client) -> None:
        evil = "<img src=x>"
        answer = ask(client, q="a", target=evil)
        assert answer.status_code == 400
        assert "<" not in answer.text
        assert evil in answer.json()["error"]

    @pytest.mark.parametrize(("source", "made"), [("ko", "\ufffd<B>"), ("en", "\ufffd<b>")])
    def test_half_a_letter_is_no_letter(self, client, source, made) -> None:
        content = f'{{"q": "\\ud800<b>", "source": "{source}", "target": "en"}}'
        kind = {"content-type": "application/json"}
        answer = client.post("/translate", content=content, headers=kind)
        assert answer.json() == {"translatedText": made}

    def test_a_full_queue_says_when_to_come_again(self, make_client, shouter) -> None:
        with make_client(max_queue=1, batch_size=1) as client, ThreadPoolExecutor(3) as pool:
            shouter.may_go.clear()
            first = pool.submit(ask, client, q="first")
            assert shouter.has_begun.wait(PATIENCE)
            second = pool.submit(ask, client, q="second")
            while 'attendo_queue_texts{model="ko-en"} 1.0' not in client.get("/metrics").text:
                pass
            answer = ask(client, q="third")
            assert answer.status_code == 503
            assert int(answer.headers["retry-after"]) >= 1
            assert "too many requests" in answer.json()["error"]
            shouter.may_go.set()
            assert [f.result(PATIENCE).status_code for f in (first, second)] == [200, 200]

    def test_past_the_deadline_the_client_hears_it_though_the_thread_is_busy(
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
    told = client.get("/frontend/settings").json()
    assert told["charLimit"] == 200
    assert told["keyRequired"] is False
    assert told["language"]["source"] == {"code": "ko", "name": "Korean"}
    assert told["supportedFilesFormat"] == [".txt", ".html"]
    answer = client.post("/suggest", json={})
    assert (answer.status_code, list(answer.json())) == (403, ["error"])


class TestFiles:
    def send(self, client, name: str, content: bytes, **fields: str):
        fields = {"source": "ko", "target": "en", **fields}
        return client.post("/translate_file", data=fields, files={"file": (name, content)})

    def test_a_text_comes_back_line_by_line(self, client) -> None:
        content = "\ufeffone\r\n\r\n  two \n<b>&amp;</b>".encode()
        url = self.send(client, "../../a.txt", content).json()["translatedFileUrl"]
        answer = client.get(url)
        assert answer.content == b"ONE\r\n\r\n  TWO \n<B>&AMP;</B>"
        assert answer.headers["content-disposition"] == 'attachment; filename="translated.txt"'
        assert answer.headers["content-type"].startswith("text/plain")

    def test_html_comes_back_as_html_that_runs_nothing(self, client) -> None:
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
        ("name", "content", "told"),
        [
            ("a.exe", b"x", "unsupported file type"),
            ("", b"x", ""),
            ("a.txt", b"\xff\xfe\x00", "not valid UTF-8"),
            ("a.txt", b"x" * 5001, "bytes: 5001"),
        ],
    )
    def test_other_files_are_refused(self, client, name, content, told) -> None:
        answer = self.send(client, name, content)
        assert answer.status_code == 400
        assert told in answer.json()["error"]

    def test_nobody_guesses_a_file(self, client) -> None:
        for key in ("x", "..%2f..%2fetc%2fpasswd", "%00"):
            assert client.get(f"/download_file/{key}").status_code == 404

    def test_several_processes_take_no_files_and_say_so(self, make_client) -> None:
        with make_client(workers=2) as client:
            assert self.send(client, "a.txt", b"x").status_code == 400
            assert client.get("/frontend/settings").json()["filesTranslation"] is False


def test_the_figures_count_requests_by_route_and_status(client) -> None:
    ask(client, q="a")
    ask(client, q=7)
    client.get("/nothing/here")
    told = client.get("/metrics").text
    for line in (
        'attendo_requests_total{method="POST",route="/translate",status="200"} 1.0',
        'attendo_requests_total{method="POST",route="/translate",status="400"} 1.0',
        'attendo_requests_total{method="GET",route="other",status="404"} 1.0',
        'attendo_request_seconds_count{route="/translate"} 2.0',
    ):
        assert line in told


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
