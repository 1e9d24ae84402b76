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
from support.quality import TABLE

from attendo.bundle import build_model, save_bundle
from attendo.data.tokenizer_training import train_tokenizer
from attendo.inspection import capture
from attendo.serving import presenters
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
          "watch_seconds": 0, "log_requests": False, "engine": "attendo",
          "retry": False}  # fmt: skip


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
    about = {"src_lang": "ko", "tgt_lang": "en",
             "labels": ["polite", "plain"], "calibration": {"temperature": 1.3, "quality": TABLE},
             "dev": {"bleu": 12.5, "loss": float("nan"), "decoding": "greedy"},
             "training": {"num_examples": 20_000, "corpora": ["train.ko + train.en"]}}  # fmt: skip
    model = build_model("transformer", SIZES, tokenizer)
    save_bundle(folder / "ko-en", model, tokenizer, about=about)
    blind = build_model("rnn-seq2seq", {"d_model": 16, "num_layers": 1}, tokenizer)
    save_bundle(folder / "blind", blind, tokenizer, about={"src_lang": "en", "tgt_lang": "ko"})
    return [folder / "ko-en", folder / "blind"]


@pytest.fixture(scope="module")
def client(folders) -> Iterator[TestClient]:
    with TestClient(
        create_app(ServeConfig(models=folders, **LIMITS)), base_url="http://localhost"
    ) as client:
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


def test_models_are_reported(client, translator):
    first, second = client.get("/v1/models").json()["models"]
    assert first == {
        "name": "ko-en", "source": "ko", "target": "en", "kind": "transformer",
        "num_parameters": sum(weight.numel() for weight in translator.model.parameters()),
        "memory_bytes": translator.backend.num_bytes,
        "loaded": True, "has_attention": True, "default": True, "max_characters": 300,
        "task": "translation", "series": None,
        "dev": {"bleu": 12.5, "loss": None, "decoding": "greedy"},
        "quality": {
            "num_sentences": 200, "min_chrf": None,
            "min_quality": {"high": 0.9, "check": 0.5, "low": 0.0},
            "bands": {
                "high": {"count": 100, "num_right": 97},
                "check": {"count": 60, "num_right": 36},
                "low": {"count": 40, "num_right": 7},
            },
        },
        "labels": ["polite", "plain"], "vocab_sizes": [translator.tokenizer.src_vocab_size] * 2,
        "training": {"num_examples": 20_000, "corpora": ["train.ko + train.en"]},
    }  # fmt: skip
    assert (second["name"], second["has_attention"], second["default"]) == ("blind", False, False)
    assert second["dev"] is second["training"] is None


def test_a_translation_is_the_translators(client, translator):
    found = post(client, "translate", text=KOREAN[:3], n_best=3, beam_size=5, alpha=1.0)
    wanted = translator.translate(KOREAN[:3], n_best=3, beam_size=5, alpha=1.0)
    assert (found["model"], found["source"], found["target"]) == ("ko-en", "ko", "en")
    assert found["seconds"] >= 0
    assert len(found["translations"]) == 3
    for reported, expected in zip(found["translations"], wanted, strict=True):
        assert reported["text"] == expected
        assert reported["source_text"] == expected.source
        assert reported["is_finished"] == expected.is_finished
        assert reported["score"] == pytest.approx(expected.score, abs=1e-4)
        assert reported["log_prob"] == pytest.approx(expected.log_prob, abs=1e-3)
        assert reported["words"] == expected.split()
        assert [one["text"] for one in reported["alternatives"]] == expected.alternatives
        assert reported["confidence"] is None
        assert reported["alignment"] is None
        assert reported["notes"] == expected.notes


def test_a_single_text_gives_a_list_of_one_and_an_empty_one_stays_empty(client):
    (reported,) = post(client, "translate", text=KOREAN[0])["translations"]
    assert reported["text"]
    (reported,) = post(client, "translate", text=" ", confidence=True, alignment=True)[
        "translations"
    ]
    assert (reported["text"], reported["words"]) == ("", [])
    assert reported["confidence"] == {
        "probability": 1.0, "mean_token_probability": 1.0, "quality": 1.0, "band": "high",
        "is_calibrated": True, "unfamiliar": None, "words": [],
    }  # fmt: skip
    assert reported["alignment"] is None
    assert reported["sentences"] == []


def test_confidence_is_reported_by_word(client, translator):
    (reported,) = post(client, "translate", text=KOREAN[0], confidence=True, n_best=2)[
        "translations"
    ]
    sure = translator.translate(KOREAN[:1], confidence=True, n_best=2)[0].confidence
    assert [word["text"] for word in reported["confidence"]["words"]] == reported["words"]
    assert [word["probability"] for word in reported["confidence"]["words"]] == pytest.approx(
        [word.probability for word in sure.words], abs=1e-3
    )
    assert reported["confidence"]["mean_token_probability"] == pytest.approx(
        sure.mean_token_probability, abs=1e-3
    )
    assert reported["alternatives"][0]["confidence"]["words"]


def test_band_and_familiarity_are_reported(client, translator):
    texts = [KOREAN[0], f"{KOREAN[0]} zork"]
    reported = post(client, "translate", text=texts, confidence=True, beam_size=1)["translations"]
    expected = translator.translate(texts, confidence=True, beam_size=1)
    assert are_near(
        [one["confidence"] for one in reported], [one.confidence.to_dict() for one in expected]
    )
    assert reported[0]["confidence"]["band"] == "low"  # the model is not trained


def test_an_output_that_is_not_a_translation_is_named(client, translator):
    (expected,) = translator.translate(KOREAN[:1], beam_size=1, retry=True, confidence=True)
    assert expected.notes  # an untrained model repeats itself
    fields = {"beam_size": 1, "confidence": True}
    found, plain = (
        post(client, "translate", text=KOREAN[0], retry=retry, **fields)["translations"][0]
        for retry in (True, False)
    )
    assert found["text"] == expected
    assert found["notes"] == expected.notes
    assert {one["code"] for one in found["note_details"]} <= {"loop", "retried", "empty_output"}
    assert not plain["notes"] or "cut" in plain["notes"][0]


def test_translations_are_accepted_from_a_confidence_on(client):
    answer = post(client, "translate", text=KOREAN[:2], min_confidence=0.5)
    for one in answer["translations"]:  # the model is not trained
        assert one["confidence"]["quality"] < 0.5
        assert one["accepted"] is False
        assert [part["accepted"] for part in one["sentences"]] == [False]
    (any_is_good,) = post(client, "translate", text=KOREAN[0], min_confidence=0.0)["translations"]
    assert any_is_good["accepted"] is True
    (unasked,) = post(client, "translate", text=KOREAN[0])["translations"]
    assert unasked["accepted"] is None
    refused = post(client, "translate", 400, text="I am.", model="blind", min_confidence=0.5)
    assert "not calibrated" in refused["error"]
    post(client, "translate", 400, text=KOREAN[0], min_confidence=1.5)
    post(client, "stream", 400, text=KOREAN[0], min_confidence=0.5)


def test_a_label_is_passed_on_and_an_unknown_one_refused(client, translator):
    fields = {"text": KOREAN[0], "beam_size": 1}
    for label in ("polite", "plain"):
        (found,) = post(client, "translate", **fields, label=label)["translations"]
        (expected,) = translator.translate(KOREAN[:1], beam_size=1, label=label)
        assert found["text"] == expected
        assert found["source_text"] == KOREAN[0]
    assert "no label 'rude'" in post(client, "translate", 400, **fields, label="rude")["error"]
    post(client, "stream", 400, text=KOREAN[0], label="rude")


def test_alignment_is_by_words(client):
    (reported,) = post(client, "translate", text=KOREAN[0], alignment=True)["translations"]
    found = reported["alignment"]
    assert found["source_words"] == KOREAN[0].split()
    assert found["target_words"] == reported["words"]
    assert len(found["weights"]) == len(reported["words"])
    for row in found["weights"]:
        assert len(row) == len(found["source_words"])
        assert all(0.0 <= weight <= 1.0 for weight in row)
        assert sum(row) <= 1.001


@pytest.mark.parametrize(
    ("text", "model", "note"),
    [
        (" ".join([KOREAN[0]] * 9), "ko-en", "characters of a request"),
        (KOREAN[0], "blind", "no attention"),
    ],
)
def test_what_cannot_be_aligned_explains_why(client, monkeypatch, text, model, note):
    monkeypatch.setattr(presenters, "MAX_ALIGNED_CHARACTERS", 50)
    (reported,) = post(client, "translate", text=text, model=model, alignment=True)["translations"]
    assert reported["text"]
    assert reported["alignment"] is None
    assert reported["sentences"][-1]["alignment"] is None
    assert note in reported["notes"][-1]


def test_each_sentence_has_its_position_and_its_alignment(client, translator):
    text = f"  {KOREAN[0]} {KOREAN[1]}\n\n{KOREAN[2]} "
    options = {"alignment": True, "confidence": True, "beam_size": 1}
    (reported,) = post(client, "translate", text=text, **options)["translations"]
    sentences = reported["sentences"]
    sources = [text[one["source_start"] : one["source_end"]] for one in sentences]
    assert sources == KOREAN[:3]
    alone = translator.translate(sources, beam_size=1)
    assert [reported["text"][one["start"] : one["end"]] for one in sentences] == alone
    for sentence, source, translation in zip(sentences, sources, alone, strict=True):
        assert sentence["alignment"]["source_words"] == source.split()
        assert sentence["alignment"]["target_words"] == translation.split()
        assert sentence["band"] == "low"
    assert reported["alignment"] is None


def test_requests_are_kept(client):
    text = KOREAN[0]
    (reported,) = post(client, "translate", text=text, required=["lion"], prefix="The")[
        "translations"
    ]
    assert reported["text"].startswith("The")
    assert "lion" in reported["text"].lower()
    word = text.split()[0]
    (reported,) = post(client, "translate", text=text, glossary={word: "tiger"})["translations"]
    assert "tiger" in reported["text"].lower()


def test_probability_is_the_same_for_a_seed(client, translator):
    draw = {"do_sample": True, "top_k": 5, "temperature": 0.7, "n_best": 2}
    options = {"text": KOREAN[0], **draw}
    first, again, other = (post(client, "translate", seed=n, **options) for n in (1, 1, 2))
    assert first["translations"] == again["translations"] != other["translations"]
    expected = translator.translate(KOREAN[:1], seed=1, **draw)[0]
    assert first["translations"][0]["text"] == expected


@pytest.mark.parametrize(
    ("text", "model", "language"),
    [("나는 학생이다.", "ko-en", "ko"), ("The prince saved the princess.", "blind", "en")],
)
def test_auto_detects_the_language_on_every_route(client, text, model, language):
    found = post(client, "translate", text=text, source="auto")
    assert (found["model"], found["detected"]["language"]) == (model, language)
    pairs = [{"source_text": text, "target_text": "a"}]
    found = post(client, "score", pairs=pairs, source="auto")
    assert (found["model"], found["detected"]["language"]) == (model, language)
    found = post(client, "alternatives", text=text, source="auto")
    assert found["detected"]["language"] == language
    assert listen(client, text=text, source="auto")[-1][1]["detected"]["language"] == language
    answer = client.post("/v1/inspect", json={"text": text, "source": "auto"})
    assert answer.headers["x-detected-language"] == language
    assert post(client, "translate", text=text)["detected"] is None


def test_auto_rejects_a_language_that_no_model_has(client):
    reported = post(client, "translate", 400, text="これは日本語です。", source="auto")
    assert "Japanese" in reported["error"]
    assert post(client, "translate", text="これは日本語です。", source="ko")["model"] == "ko-en"


def test_models_are_found_by_name_and_by_languages(client):
    assert post(client, "translate", text="a")["model"] == "ko-en"
    assert post(client, "translate", text="a", source="en", target="ko")["model"] == "blind"
    assert post(client, "translate", text="a", source="en-US")["model"] == "blind"
    assert post(client, "translate", text="a", model="blind", source="auto")["model"] == "blind"
    reported = post(client, "translate", 400, text="a", model="blind", source="ko")["error"]
    assert "'blind' translates en to ko" in reported
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
        ("translate", {"text": "a", "top_k": 3}, "need sampling"),
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
def test_what_is_rejected_explains_why(client, route, body, reason):
    status = 413 if reason.startswith(("characters", "texts")) else 400
    assert reason in post(client, route, status, **body)["error"]


def test_more_alternatives_than_the_usual_beam_widen_it(client):
    (reported,) = post(client, "translate", text=KOREAN[0], n_best=4)["translations"]
    assert len(reported["alternatives"]) == 3


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


def test_what_needs_a_search_is_sent_as_a_whole(client):
    ((kind, done),) = listen(client, text=KOREAN[0], required=["lion"])
    assert kind == "done"
    assert "lion" in done["text"].lower()
    ((kind, done),) = listen(client, text="")
    assert (kind, done["text"]) == ("done", "")


def test_alternatives_continue_from_a_prefix(client):
    first, *others = post(client, "alternatives", text=KOREAN[0], prefix="The", top=4)["words"]
    assert len(others) <= 3
    assert 0.0 < first["probability"] <= 1.0
    assert first["prefix"].startswith("The")
    (reported,) = post(client, "translate", text=KOREAN[0], prefix=first["prefix"])["translations"]
    assert reported["text"].startswith(first["prefix"])


def test_a_prefix_may_reach_over_several_sentences(client):
    """Going on from a word of the second sentence leaves the first as it was."""
    text = f"{KOREAN[0]} {KOREAN[2]}\n{KOREAN[1]}"
    (alone,) = post(client, "translate", text=KOREAN[0], prefix="The lion.")["translations"]
    body = {"text": text, "prefix": "The lion. A tiger", "confidence": True}
    (reported,) = post(client, "translate", **body)["translations"]
    assert reported["text"].startswith(f"{alone['text']} A tiger")
    assert reported["source_text"] == text
    assert reported["text"].count("\n") == 1
    assert [word["text"] for word in reported["confidence"]["words"]] == reported["words"]
    (last,) = post(client, "translate", text=KOREAN[1])["translations"]
    assert reported["text"].endswith(f"\n{last['text']}")  # what comes after is free
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
    for reported, (source, target) in zip(found, pairs, strict=True):
        src_ids = torch.tensor(translator.tokenizer.encode_src([source]))
        tgt = translator.tokenizer.encode_tgt([target])[0]
        with torch.no_grad():
            logits = translator.model(src_ids, torch.tensor([[2, *tgt[:-1]]]))[0]
        expected = logits.log_softmax(-1)[range(len(tgt)), tgt]
        assert reported["num_tokens"] == len(tgt)
        assert [one["log_prob"] for one in reported["tokens"]] == pytest.approx(
            expected.tolist(), abs=1e-4
        )
        assert reported["log_prob"] == pytest.approx(float(expected.sum()), abs=1e-3)
        assert reported["perplexity"] == pytest.approx(math.exp(-float(expected.mean())), rel=1e-3)
        assert "".join(one["text"] for one in reported["tokens"]) == target


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
    with TestClient(create_app(config), base_url="http://localhost") as client:
        pairs = [{"source_text": "가", "target_text": target} for target in ("a", "a " * 2000)]
        reported = post(client, "score", 400, pairs=pairs)["error"]
        assert "pair 1" in reported
        assert "at most 512" in reported


def test_openapi_describes_every_route_with_an_example(client):
    schema = client.get("/openapi.json").json()
    routes = {"models": "get", "translate": "post", "stream": "post", "alternatives": "post",
              "inspect": "post", "score": "post", "runs": "get"}  # fmt: skip
    for name, method in routes.items():
        reported = schema["paths"][f"/v1/{name}"][method]
        assert reported["summary"]
        assert "422" not in reported["responses"]
        if method == "post":
            shape = reported["requestBody"]["content"]["application/json"]["schema"]["$ref"]
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
    """Speak ASGI to the application and go away after this many events."""
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
    await asyncio.wait_for(app(scope, receive, send), 120)
    return got


def test_a_disconnected_listener_stops_the_work(folders):
    async def run() -> tuple[Slow, int, list[bytes]]:
        config = ServeConfig(models=folders[:1], **LIMITS)
        service = Service(config)
        app = create_app(config, service)
        await service.start()
        translator = service.registry.get().translator
        translator.model = slow = Slow(translator.model)
        body = json.dumps({"text": "가 나 다 라 마 바 사 아"}).encode()
        got = await run_stream(app, body, leave_after=2)
        num_equal, before = 0, -1
        while num_equal < 5:  # the step that was begun may end
            num_equal, before = num_equal + 1 if slow.count == before else 0, slow.count
            await asyncio.sleep(0.1)
        await service.stop()
        return slow, before, got

    slow, count, got = asyncio.run(run())
    assert len(got) >= 2
    assert slow.count == count < 40  # the limit would be more than 50


def test_a_stream_that_comes_too_late_reports_it(folders):
    config = ServeConfig(models=folders[:1], **LIMITS, timeout=2.0)
    with TestClient(create_app(config), base_url="http://localhost") as client:
        translator = client.app.state.service.registry.get().translator
        translator.model = Slow(translator.model)
        *_, (kind, facts) = listen(client, text="가 나 다 라 마 바 사 아")
        assert kind == "error"
        assert "not finished within 2 seconds" in facts["error"]
