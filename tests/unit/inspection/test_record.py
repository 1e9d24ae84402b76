"""The JSON form: what it says, how large it is, that it comes back, and what is refused."""

from __future__ import annotations

import base64
import copy
import json
import struct

import numpy as np
import pytest

from attendo.bundle import build_model
from attendo.core.errors import AttendoError, InputError
from attendo.core.version import __version__
from attendo.inspection import Record, capture
from attendo.inspection.array_codec import encode_positions
from attendo.inspection.record import KINDS
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}
LIMIT = 3_000_000


@pytest.fixture
def record(toy) -> Record:
    tokenizer = toy.prepared.tokenizer
    model = build_model("transformer", SIZES, tokenizer)
    return capture(Translator(model, tokenizer), "ka to mi re")


def make_record(weights, *, num_src: int, num_tgt: int, **parts) -> Record:
    """A record of nothing but its attention."""
    sides = [
        {
            "text": "",
            "words": [],
            "tokens": [{"id": 4, "piece": "x", "text": "x", "word": None}] * count,
        }
        for count in (num_src, num_tgt)
    ]
    step = {"probability": 0.5, "log_prob": -0.7, "entropy": 0.1, "top": []}
    return Record(
        model={}, search={}, src=sides[0], tgt=sides[1], weights=weights, steps=[step] * num_tgt,
        **parts,
    )  # fmt: skip


def test_the_form_is_as_documented(record):
    facts = json.loads(record.to_json())
    assert (facts["format"], facts["version"], facts["attendo"]) == (
        "attendo.record",
        1,
        __version__,
    )
    assert set(facts) == {
        "format", "version", "attendo", "model", "search", "src", "tgt", "attention", "steps",
        "beam", "measures", "logit_lens", "attribution", "ablation", "positions", "embeddings",
        "series", "notes",
    }  # fmt: skip
    assert facts["logit_lens"] is facts["attribution"] is facts["ablation"] is None
    assert facts["src"]["words"] == ["ka", "to", "mi", "re"]
    assert facts["src"]["tokens"][1] | {"id": 0} == {
        "id": 0,
        "piece": "▁to",
        "text": "to",
        "word": 1,
    }
    assert list(facts["attention"]) == list(facts["measures"]) == list(KINDS)
    packed = facts["attention"]["cross"]
    num_tgt = len(facts["tgt"]["tokens"])
    assert {key: packed[key] for key in packed if key != "data"} == {
        "layers": 2, "heads": 4, "rows": num_tgt, "columns": 5, "encoding": "u16",
    }  # fmt: skip
    assert len(facts["steps"]) == len(facts["embeddings"]["tgt"]) == num_tgt
    assert facts["beam"]["format"] == "attendo.trace"


def test_the_packed_numbers_by_hand():
    weights = np.array(
        [[[[1.0, 0.0, 0.0], [0.25, 0.0, 0.75]], [[0.125, 0.25, 0.625], [0.5, 0.5, 0.0]]]]
    )
    record = make_record({"cross": weights.astype(np.float32)}, num_src=3, num_tgt=2)
    packed = record.to_dict()["attention"]["cross"]
    assert [packed[key] for key in ("layers", "heads", "rows", "columns")] == [1, 2, 2, 3]
    values = struct.unpack("<12H", base64.b64decode(packed["data"]))
    # Of the third row, the sums are 8191.875, 24575.625 and 65535.
    assert values == (65535, 0, 0, 16384, 0, 49151, 8192, 16384, 40959, 32768, 32767, 0)


def test_every_row_is_whole_and_what_is_hidden_stays_hidden(record):
    for kind, packed in record.to_dict()["attention"].items():
        numbers = np.frombuffer(base64.b64decode(packed["data"]), "<u2").astype(int)
        rows = numbers.reshape([packed[key] for key in ("layers", "heads", "rows", "columns")])
        assert (rows.sum(-1) == 65_535).all()
        assert (rows[record.attention(kind) == 0] == 0).all()


def test_it_comes_back(record, tmp_path):
    path = tmp_path / "record.json"
    filled = record.replace(
        ablation={"heads": [], "log_prob": -1.5},
        notes=["학생", "a note"],
        logit_lens={"layers": []},
    )
    filled.save(path)
    again = Record.load(path)
    for kind in KINDS:
        difference = np.abs(again.attention(kind) - record.attention(kind)).max()
        assert 0 < difference <= 1 / 65_535 + 1e-7
        assert again.attention(kind).dtype == np.float32
    for part in ("model", "search", "src", "tgt", "steps", "beam", "measures", "positions"):
        assert getattr(again, part) == getattr(record, part), part
    assert again.embeddings == record.embeddings
    assert again.ablation == {"heads": [], "log_prob": -1.5}
    assert again.notes == ["학생", "a note"]
    assert again.to_json() == filled.to_json()  # nothing is lost the second time
    assert record.ablation is None
    assert "학생" in path.read_text(encoding="utf-8")


def test_the_positions_come_back():
    table = np.linspace(-1, 1, 12).reshape(4, 3)
    packed = encode_positions(table, kind="learned", layout=None)
    values = struct.unpack("<12e", base64.b64decode(packed["data"]))
    assert np.allclose(values, table.ravel(), atol=5e-4)
    assert (packed["num_positions"], packed["d_model"], packed["encoding"]) == (4, 3, "f16")
    record = make_record({}, num_src=1, num_tgt=1, positions=packed)
    assert np.allclose(record.position_table(), table, atol=5e-4)
    assert make_record({}, num_src=1, num_tgt=1).position_table() is None


def test_60_tokens_on_both_sides_of_a_base_model_stay_under_3_mb(toy):
    tokenizer = toy.prepared.tokenizer
    model = build_model("transformer", {"d_ff": 8, "num_layers": 6, "num_heads": 8}, tokenizer)
    text = " ".join(["ka", "to", "mi"] * 19 + ["so", "lu"])
    record = capture(Translator(model, tokenizer), text, max_length=60, min_length=60)
    assert record.attention("cross").shape == (6, 8, 60, 60)
    assert record.attention("encoder_self").shape == record.attention("decoder_self").shape
    assert len(record.beam["steps"]) == 60
    token = {"id": 12_345, "piece": "▁everything", "probability": 0.123456}
    lens = {"top": [token] * 5, "rank": 12_345, "probability": 0.123456}
    heads = {"kind": "decoder_self", "layer": 5, "head": 7, "log_prob": -12.345678}
    full = record.replace(
        logit_lens={"layers": [[lens] * 60] * 6},
        attribution={"tokens": [[-0.123456] * 60] * 60, "words": [[-0.123456] * 60] * 60},
        ablation={"heads": [heads | {"change": -1.234567, "text": "everything " * 60}] * 144},
    )
    assert 1_000_000 < len(full.to_json().encode()) < LIMIT


def test_a_newer_version_is_rejected_with_a_hint(record):
    facts = record.to_dict() | {"version": 2, "attention": "of another kind"}
    with pytest.raises(InputError, match=r"version 2; attendo .* knows 1") as caught:
        Record.from_dict(facts)
    assert "update Attendo" in caught.value.hint


def test_keys_of_the_future_are_passed_over(record):
    facts = record.to_dict()
    facts["weather"] = "fine"
    facts["src"]["tokens"][0]["tag"] = "noun"
    assert Record.from_dict(facts).src["text"] == "ka to mi re"


def put(*path, value):
    def change(facts):
        for key in path[:-1]:
            facts = facts[key]
        facts[path[-1]] = value

    return change


def drop(*path):
    def change(facts):
        for key in path[:-1]:
            facts = facts[key]
        del facts[path[-1]]

    return change


@pytest.mark.parametrize(
    ("harm", "message"),
    [
        (put("format", value="attendo.trace"), "not an Attendo record"),
        (put("version", value="1"), "version"),
        (put("version", value=0), "version"),
        (drop("tgt"), "'tgt' is missing"),
        (drop("steps", 0, "entropy"), "'entropy' is missing"),
        (put("src", "tokens", 0, "id", value="four"), "id is 'four'"),
        (put("src", "tokens", value="abc"), "tokens"),
        (put("steps", 0, "top", value=[7]), "malformed"),
        (put("steps", value=None), "malformed"),
        (drop("steps", 0), "steps for"),
        (drop("src", "tokens", 0), "encoder_self of shape"),
        (drop("attention", "cross", "data"), "'data' is missing"),
        (put("attention", "cross", "data", value="?"), "not base64"),
        (put("attention", "cross", "data", value="AAAA"), "malformed"),
        (put("attention", "cross", "data", value=None), "malformed"),
        (put("attention", "cross", "encoding", value="u8"), "the encoding is 'u8'"),
        (put("attention", "cross", "heads", value=3), "malformed"),
        (put("attention", "cross", "heads", value=10**12), "malformed"),
        (put("attention", "cross", "layers", value=-1), "malformed"),
        (put("positions", "d_model", value=5), "malformed"),
        (put("embeddings", value=3), "malformed"),
        (put("model", value="ko-en"), "malformed"),
    ],
)
def test_a_broken_record_is_rejected(record, harm, message):
    facts = copy.deepcopy(record.to_dict())
    harm(facts)
    with pytest.raises(InputError, match=message) as caught:
        Record.from_dict(facts)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "not valid JSON"),
        ("{", "not valid JSON"),
        ("[1]", "not an Attendo record"),
        (b"\xff\xfe", "not valid"),
    ],
)
def test_a_file_that_is_not_a_record(tmp_path, content, message):
    path = tmp_path / "record.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=message):
        Record.load(path)


def test_files_that_cannot_be_read_or_written(record, tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        Record.load(tmp_path / "missing.json")
    with pytest.raises(AttendoError, match="could not be written"):
        record.save(tmp_path / "missing" / "record.json")


@pytest.mark.parametrize("part", ["weights", "steps"])
def test_numbers_that_json_has_not_leave_the_old_file(record, tmp_path, part):
    path = tmp_path / "record.json"
    record.save(path)
    before = path.read_bytes()
    if part == "weights":
        record.attention("cross")[0, 0, 0, 0] = np.nan
    else:
        record.steps[0]["log_prob"] = -np.inf
    with pytest.raises(InputError, match="not finite"):
        record.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["record.json"]


def test_it_is_short_on_a_screen(record):
    assert repr(record) == f"<Record 'ka to mi re' -> {record.tgt['text']!r}>"


def test_kinds_are_checked(record):
    with pytest.raises(InputError, match="no kind of attention 'cros'") as caught:
        record.attention("cros")
    assert "did you mean 'cross'?" in caught.value.hint
