from __future__ import annotations

import asyncio
import json
import math
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
import torch
from starlette.testclient import TestClient

from attendo.bundle import build_model, save_bundle
from attendo.data.tokenizer_training import train_tokenizer
from attendo.inspection import capture
from attendo.serving.app import create_app
from attendo.serving.config import ServeConfig
from attendo.serving.service import Service
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.tokenizer import TokenizerConfig
from attendo.translator import Translator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KOREAN = [pair.ko for pair in synthesize_pairs(6, seed=7)]
SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}
LIMITS = {"max_characters": 300, "max_texts": 4, "max_beam_size": 8, "max_alternatives": 3,
          "watch_seconds": 0, "log_requests": False, "engine": "attendo"}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> list[Path]:
    """A Transformer for Korean to English and a recurrent model without attention, untrained."""
    folder = tmp_path_factory.mktemp("models")
    paths = [folder / name for name in ("ko", "en")]
    for path in paths:
        lines = [getattr(pair, path.name) for pair in synthesize_pairs(300, seed=1)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    tokenizer = train_tokenizer(*paths, TokenizerConfig(vocab_size=700), num_pairs=300, seed=1)
    torch.manual_seed(5)
    about = {"src_lang": "ko", "tgt_lang": "en", "calibration": {"temperature": 1.3},
             "dev": {"bleu": 12.5, "loss": float("nan"), "decoding": "greedy"}}  # fmt: skip
    model = build_model("transformer", SIZES, tokenizer)
    save_bundle(folder / "ko-en", model, tokenizer, about=about)
    blind = build_model("rnn-seq2seq", {"d_model": 16, "num_layers": 1}, tokenizer)
    save_bundle(folder / "blind", blind, tokenizer, about={"src_lang": "en", "tgt_lang": "ko"})
    return [folder / "ko-en", folder / "blind"]


@pytest.fixture(scope="module")
def client(folders) -> Iterator[TestClient]:
    with TestClient(create_app(ServeConfig(models=folders, **LIMITS))) as client:
        yield client


@pytest.fixture(scope="module")
def translator(folders) -> Translator:
    return Translator.load(folders[0], device="cpu")


def post(client: TestClient, route: str, status: int = 200, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/v1/{route}", json=body)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


def listen(client: TestClient, **body: Any) -> list[tuple[str, dict[str, Any]]]:
    answer = client.post("/v1/stream", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    return read_events(answer.text)


def read_events(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Read server-sent events as a browser does."""
    events = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line)
        if "data" in fields:
            events.append((fields["event"], json.loads(fields["data"])))
    return events


def are_near(one: Any, other: Any) -> bool:
    """Compare JSON; batches of another shape round numbers otherwise."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(are_near(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(are_near, one, other))
    if isinstance(one, float):
        return other == pytest.approx(one, rel=1e-3, abs=1e-3)
    return one == other


def test_models_are_told(client, translator):
    first, second = client.get("/v1/models").json()["models"]
    assert first == {
        "name": "ko-en", "source": "ko", "target": "en", "kind": "transformer",
        "num_parameters": sum(weight.numel() for weight in translator.model.parameters()),
        "has_attention": True, "default": True, "max_characters": 300,
        "task": "translation", "series": None,
        "dev": {"bleu": 12.5, "loss": None, "decoding": "greedy"},
    }  # fmt: skip
    assert (second["name"], second["has_attention"], second["default"]) == ("blind", False, False)
    assert second["dev"] is None


def test_a_translation_is_the_translators(client, translator):
    found = post(client, "translate", text=KOREAN[:3], n_best=3, beam_size=5, alpha=1.0)
    wanted = translator.translate(KOREAN[:3], n_best=3, beam_size=5, alpha=1.0)
    assert (found["model"], found["source"], found["target"]) == ("ko-en", "ko", "en")
    assert found["seconds"] >= 0
    assert len(found["translations"]) == 3
    for told, expected in zip(found["translations"], wanted, strict=True):
        assert told["text"] == expected
        assert told["source_text"] == expected.source
        assert told["is_finished"] == expected.is_finished
        assert told["score"] == pytest.approx(expected.score, abs=1e-4)
        assert told["log_prob"] == pytest.approx(expected.log_prob, abs=1e-3)
        assert told["words"] == expected.split()
        assert [one["text"] for one in told["alternatives"]] == expected.alternatives
        assert told["confidence"] is None
        assert told["alignment"] is None
        assert told["notes"] == expected.notes


def test_a_single_text_gives_a_list_of_one_and_an_empty_one_stays_empty(client):
    (told,) = post(client, "translate", text=KOREAN[0])["translations"]
    assert told["text"]
    (told,) = post(client, "translate", text=" ", confidence=True, alignment=True)["translations"]
    assert (told["text"], told["words"]) == ("", [])
    assert told["confidence"] == {"probability": 1.0, "mean": 1.0, "words": []}
    assert told["alignment"] == {"source_words": [], "target_words": [], "weights": []}


def test_confidence_is_told_by_word(client, translator):
    (told,) = post(client, "translate", text=KOREAN[0], confidence=True, n_best=2)["translations"]
    sure = translator.translate(KOREAN[:1], confidence=True, n_best=2)[0].confidence
    assert [word["text"] for word in told["confidence"]["words"]] == told["words"]
    assert [word["probability"] for word in told["confidence"]["words"]] == pytest.approx(
        [word.probability for word in sure.words], abs=1e-3
    )
    assert told["confidence"]["mean"] == pytest.approx(sure.mean, abs=1e-3)
    assert told["alternatives"][0]["confidence"]["words"]


def test_alignment_is_by_words(client):
    (told,) = post(client, "translate", text=KOREAN[0], alignment=True)["translations"]
    found = told["alignment"]
    assert found["source_words"] == KOREAN[0].split()
    assert found["target_words"] == told["words"]
    assert len(found["weights"]) == len(told["words"])
    for row in found["weights"]:
        assert len(row) == len(found["source_words"])
        assert all(0.0 <= weight <= 1.0 for weight in row)
        assert sum(row) <= 1.001


@pytest.mark.parametrize(
    ("text", "model", "note"),
    [
        (f"{KOREAN[0]} {KOREAN[1]}", "ko-en", "only available for one sentence"),
        ("가\n나", "ko-en", "only available for one sentence"),
        (KOREAN[0], "blind", "no attention"),
    ],
)
def test_what_cannot_be_aligned_says_why(client, text, model, note):
    (told,) = post(client, "translate", text=text, model=model, alignment=True)["translations"]
    assert told["text"]
    assert told["alignment"] is None
    assert note in told["notes"][-1]


def test_wishes_are_kept(client):
    text = KOREAN[0]
    (told,) = post(client, "translate", text=text, required=["lion"], prefix="The")["translations"]
    assert told["text"].startswith("The")
    assert "lion" in told["text"].lower()
    word = text.split()[0]
    (told,) = post(client, "translate", text=text, glossary={word: "tiger"})["translations"]
    assert "tiger" in told["text"].lower()


def test_chance_is_the_same_for_a_seed(client, translator):
    draw = {"do_sample": True, "top_k": 5, "temperature": 0.7, "n_best": 2}
    options = {"text": KOREAN[0], **draw}
    first, again, other = (post(client, "translate", seed=n, **options) for n in (1, 1, 2))
    assert first["translations"] == again["translations"] != other["translations"]
    expected = translator.translate(KOREAN[:1], seed=1, **draw)[0]
    assert first["translations"][0]["text"] == expected


def test_models_are_found_by_name_and_by_languages(client):
    assert post(client, "translate", text="a")["model"] == "ko-en"
    assert post(client, "translate", text="a", source="en", target="ko")["model"] == "blind"
    assert post(client, "translate", text="a", source="en-US")["model"] == "blind"
    assert post(client, "translate", text="a", model="blind", source="auto")["model"] == "blind"
    told = post(client, "translate", 400, text="a", model="blind", source="ko")["error"]
    assert "'blind' translates en to ko" in told
    assert "did you mean 'blind'" in post(client, "translate", 400, text="a", model="blnd")["error"]
    assert "ko to en" in post(client, "translate", 400, text="a", source="fr")["error"]
    for name in ("../ko-en", "/etc/passwd", "ko-en/../blind", "%2e%2e"):
        assert "no model" in post(client, "translate", 400, text="a", model=name)["error"]


@pytest.mark.parametrize(
    ("route", "body", "reason"),
    [
        ("translate", {"text": "a" * 301}, "characters: 301, at most 300 allowed"),
        ("translate", {"text": ["a"] * 5}, "texts: 5, at most 4 allowed"),
        ("translate", {"text": "a", "beam_size": 9}, "beam_size: 9, at most 8 allowed"),
        ("translate", {"text": "a", "n_best": 5, "beam_size": 8}, "n_best: 5, at most 4 allowed"),
        ("translate", {"text": "a", "n_best": 3, "beam_size": 2}, "n_best 3 is more"),
        ("translate", {"text": "a", "prefix": "b" * 301}, "characters: 301"),
        ("translate", {"text": "a", "top_k": 3}, "add do_sample=True"),
        (
            "translate",
            {"text": "a", "do_sample": True, "required": ["cat"]},
            "sampling does not support",
        ),
        ("translate", {"text": "a", "required": ["cat"], "forbidden": ["cat"]}, "is forbidden"),
        ("translate", {"text": "a", "required": [" "]}, "is empty"),
        ("stream", {"text": "a" * 301}, "characters: 301"),
        ("stream", {"text": "a", "required": [" "]}, "is empty"),
        ("alternatives", {"text": " "}, "the text is empty"),
        ("alternatives", {"text": "a", "top": 0}, "top: "),
        ("inspect", {"text": " "}, "text is empty"),
        ("inspect", {"text": "a", "target_text": " "}, "tgt is empty"),
        ("inspect", {"text": "a", "beam_size": 9}, "beam_size: 9"),
        ("inspect", {"text": "a", "model": "blind", "ablation": True}, "ransformer"),
        ("score", {"pairs": []}, "pairs: "),
        ("score", {"pairs": [{"source_text": "a"}]}, "pairs.0.target_text: Field required"),
        ("score", {"pairs": [{"source_text": "a", "target": "b"}]}, "'target'"),
        ("score", {"pairs": [{"source_text": "a", "target_text": "b"}] * 5}, "texts: 5"),
    ],
)
def test_what_is_refused_says_why(client, route, body, reason):
    assert reason in post(client, route, 400, **body)["error"]


def test_more_alternatives_than_the_usual_beam_widen_it(client):
    (told,) = post(client, "translate", text=KOREAN[0], n_best=4)["translations"]
    assert len(told["alternatives"]) == 3


@pytest.mark.parametrize("text", [KOREAN[0], f"{KOREAN[0]} {KOREAN[1]}\n{KOREAN[2]}"])
@pytest.mark.parametrize("more", [{}, {"confidence": True, "alignment": True}, {"prefix": "The"}])
def test_a_stream_ends_with_the_greedy_translation(client, text, more):
    *tokens, (kind, done) = listen(client, text=text, **more)
    wanted = post(client, "translate", text=text, beam_size=1, **more)["translations"][0]
    assert kind == "done"
    assert are_near(done, wanted)
    assert {kind for kind, _ in tokens} == {"token"}
    assert len(tokens) > 3
    texts = [facts["text"] for _, facts in tokens]
    assert texts[-1] == done["text"].strip()
    assert all(later.startswith(sooner) for sooner, later in pairwise(texts))
    assert all(0.0 <= facts["probability"] <= 1.0 for _, facts in tokens)


def test_what_needs_a_search_comes_whole(client):
    ((kind, done),) = listen(client, text=KOREAN[0], required=["lion"])
    assert kind == "done"
    assert "lion" in done["text"].lower()
    ((kind, done),) = listen(client, text="")
    assert (kind, done["text"]) == ("done", "")


def test_alternatives_go_on_from_a_beginning(client):
    first, *others = post(client, "alternatives", text=KOREAN[0], prefix="The", top=4)["words"]
    assert len(others) <= 3
    assert 0.0 < first["probability"] <= 1.0
    assert first["prefix"].startswith("The")
    (told,) = post(client, "translate", text=KOREAN[0], prefix=first["prefix"])["translations"]
    assert told["text"].startswith(first["prefix"])


def test_a_beginning_may_reach_over_several_sentences(client):
    """Going on from a word of the second sentence leaves the first as it was."""
    text = f"{KOREAN[0]} {KOREAN[2]}\n{KOREAN[1]}"
    (alone,) = post(client, "translate", text=KOREAN[0], prefix="The lion.")["translations"]
    body = {"text": text, "prefix": "The lion. A tiger", "confidence": True}
    (told,) = post(client, "translate", **body)["translations"]
    assert told["text"].startswith(f"{alone['text']} A tiger")
    assert told["source_text"] == text
    assert told["text"].count("\n") == 1
    assert [word["text"] for word in told["confidence"]["words"]] == told["words"]
    (last,) = post(client, "translate", text=KOREAN[1])["translations"]
    assert told["text"].endswith(f"\n{last['text']}")  # what comes after is free
    *_, (_, done) = listen(client, text=text, prefix="The lion. A tiger")
    wanted = post(client, "translate", text=text, prefix="The lion. A tiger", beam_size=1)
    assert are_near(done, wanted["translations"][0])
    ((_, done),) = listen(client, text=text, prefix="The lion. A tiger", required=["lion"])
    assert done["text"].startswith("The lion.")
    assert " A tiger" in done["text"].split("\n")[0]


def test_a_record_is_the_captured_one(client, translator):
    found = post(client, "inspect", text=KOREAN[0], beam_size=3)
    expected = capture(translator, KOREAN[0], beam_size=3).to_dict()
    assert found["format"] == "attendo.record"
    for section in ("src", "tgt", "search", "beam"):
        assert found[section] == expected[section]
    assert (found["ablation"], found["attribution"]) == (None, None)
    assert found["logit_lens"] is not None
    given = post(client, "inspect", text=KOREAN[0], target_text="A lion.")
    assert given["search"]["method"] == "given"
    studied = post(
        client, "inspect", text="가 나", target_text="A", ablation=True, attribution=True
    )
    assert studied["ablation"]
    assert studied["attribution"]


def test_a_long_sentence_is_looked_into_up_to_a_window(client):
    found = post(client, "inspect", text="가 나 다 라 마 바 사 " * 14)
    assert len(found["src"]["tokens"]) <= 128
    assert "cut to a window of 128" in found["notes"][0]


def test_scores_are_those_of_the_model(client, translator):
    pairs = [(KOREAN[0], "A lion."), (KOREAN[1], ""), (KOREAN[2], "The students are happy.")]
    body = [{"source_text": source, "target_text": target} for source, target in pairs]
    found = post(client, "score", pairs=body)["scores"]
    for told, (source, target) in zip(found, pairs, strict=True):
        src_ids = torch.tensor(translator.tokenizer.encode_src([source]))
        tgt = translator.tokenizer.encode_tgt([target])[0]
        with torch.no_grad():
            logits = translator.model(src_ids, torch.tensor([[2, *tgt[:-1]]]))[0]
        expected = logits.log_softmax(-1)[range(len(tgt)), tgt]
        assert told["num_tokens"] == len(tgt)
        assert [one["log_prob"] for one in told["tokens"]] == pytest.approx(
            expected.tolist(), abs=1e-4
        )
        assert told["log_prob"] == pytest.approx(float(expected.sum()), abs=1e-3)
        assert told["perplexity"] == pytest.approx(math.exp(-float(expected.mean())), rel=1e-3)
        assert "".join(one["text"] for one in told["tokens"]) == target


def test_many_long_pairs_are_scored_a_few_at_a_time(client, translator, monkeypatch):
    sizes = []
    score = type(translator.backend).score

    def watch(self, src, tgt, **options):
        sizes.append(len(src) * max(len(row) + 1 for row in (*src, *tgt)))
        return score(self, src, tgt, **options)

    monkeypatch.setattr(type(translator.backend), "score", watch)
    pair = {"source_text": "가 나 다 " * 40, "target_text": "A lion. " * 30}
    alone = post(client, "score", pairs=[pair])["scores"][0]
    together = post(client, "score", pairs=[pair] * 4)["scores"]
    assert [one["log_prob"] for one in together] == pytest.approx([alone["log_prob"]] * 4, rel=1e-4)
    assert max(sizes) <= 600
    assert len(sizes) > 2


def test_one_that_is_too_long_to_be_scored_is_named(folders):
    config = ServeConfig(models=folders[:1], **{**LIMITS, "max_characters": 5000})
    with TestClient(create_app(config)) as client:
        pairs = [{"source_text": "가", "target_text": target} for target in ("a", "a " * 2000)]
        told = post(client, "score", 400, pairs=pairs)["error"]
        assert "pair 1" in told
        assert "at most 512" in told


def test_openapi_tells_every_route_with_an_example(client):
    schema = client.get("/openapi.json").json()
    routes = {"models": "get", "translate": "post", "stream": "post", "alternatives": "post",
              "inspect": "post", "score": "post", "runs": "get"}  # fmt: skip
    for name, method in routes.items():
        told = schema["paths"][f"/v1/{name}"][method]
        assert told["summary"]
        assert "422" not in told["responses"]
        if method == "post":
            shape = told["requestBody"]["content"]["application/json"]["schema"]["$ref"]
            assert schema["components"]["schemas"][shape.rsplit("/", 1)[1]]["examples"]


class Slow(torch.nn.Module):
    """A model whose steps take their time, and which never ends by itself."""

    def __init__(self, model) -> None:
        super().__init__()
        self.model, self.count = model, 0

    def step(self, ids, state):
        self.count += 1
        time.sleep(0.05)
        logits, state = self.model.step(ids, state)
        logits[:, 3] = -100.0  # the end symbol
        return logits, state

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("model"), name)


async def run_stream(app, body: bytes, *, leave_after: int) -> list[bytes]:
    """Speak ASGI to the application and go away after so many events."""
    got: list[bytes] = []
    gone = asyncio.Event()
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive():
        message = next(messages, None)
        if message is None:
            await gone.wait()
            return {"type": "http.disconnect"}
        return message

    async def send(message) -> None:
        if message["type"] == "http.response.body" and message.get("body"):
            got.append(message["body"])
            if len(got) >= leave_after:
                gone.set()

    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "method": "POST",
        "path": "/v1/stream", "raw_path": b"/v1/stream", "query_string": b"", "root_path": "",
        "scheme": "http", "http_version": "1.1", "client": ("127.0.0.1", 1), "server": ("x", 80),
        "headers": [(b"content-type", b"application/json")],
    }  # fmt: skip
    await asyncio.wait_for(app(scope, receive, send), 30)
    return got


def test_a_listener_who_goes_away_stops_the_work(folders):
    async def run() -> tuple[Slow, int, list[bytes]]:
        config = ServeConfig(models=folders[:1], **LIMITS)
        service = Service(config)
        app = create_app(config, service)
        await service.start()
        translator = service.registry.get().translator
        translator.model = slow = Slow(translator.model)
        body = json.dumps({"text": "가 나 다 라 마 바 사 아"}).encode()
        got = await run_stream(app, body, leave_after=2)
        for _ in range(200):  # the step that was begun may end
            before = slow.count
            await asyncio.sleep(0.1)
            if slow.count == before:
                break
        await service.stop()
        return slow, before, got

    slow, count, got = asyncio.run(run())
    assert len(got) >= 2
    assert slow.count == count < 40  # the limit would be more than 50


def test_a_stream_that_comes_too_late_says_so(folders):
    config = ServeConfig(models=folders[:1], **LIMITS, timeout=2.0)
    with TestClient(create_app(config)) as client:
        translator = client.app.state.service.registry.get().translator
        translator.model = Slow(translator.model)
        *_, (kind, facts) = listen(client, text="가 나 다 라 마 바 사 아")
        assert kind == "error"
        assert "not finished within 2 seconds" in facts["error"]
