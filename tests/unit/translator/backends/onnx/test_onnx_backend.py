"""Behind the same `Translator`: the NumPy search over ONNX Runtime gives our own texts."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from support.half_trained import draw_texts

from attendo.core.errors import ConfigError, InputError
from attendo.interop.export import export
from attendo.translator import Translator

if TYPE_CHECKING:
    from pathlib import Path

TEXTS = draw_texts(60, seed=2)
EXACT = [
    {},
    {"beam_size": 1},
    {"beam_size": 5, "n_best": 5},
    {"beam_size": 2, "alpha": 0.0},
    {"alpha": 0.0, "n_best": 2},
    {"alpha": 1.6},
    {"alpha": -1.0},
    {"alpha": 1.0, "length_norm": "power"},
    {"max_length": 3, "n_best": 3},
    {"max_length": 3, "beam_size": 1},
    {"max_extra_tokens": 0, "n_best": 4},
    {"max_extra_tokens": 0, "alpha": 0.0},
    {"prefix": "KA"},
    {"prefix": "LU SO", "beam_size": 1},
    {"min_length": 6},
    {"beam_size": 1, "min_length": 6},
    {"no_repeat_ngram": 2},
    {"beam_size": 1, "no_repeat_ngram": 1},
    {"unk": "keep"},
    {"do_sample": True, "top_k": 1, "beam_size": 1},
]


@pytest.fixture(scope="module")
def exported(folder, tmp_path_factory) -> Path:
    directory = tmp_path_factory.mktemp("exports") / "onnx"
    export(folder, to="onnx", out=directory)
    return directory


@pytest.fixture(scope="module")
def own(folder) -> Translator:
    return Translator.load(folder, device="cpu")


@pytest.fixture(scope="module")
def light(exported) -> Translator:
    return Translator.load(exported)


def results_of(made) -> list[tuple[list[int], bool]]:
    return [(one.ids, one.is_finished) for one in (made, *made.alternatives)]


@pytest.mark.parametrize("options", EXACT, ids=str)
def test_the_same_hypotheses_and_scores_as_pytorch(own, light, options):
    assert light.backend.name == "onnx"
    for ours, theirs in zip(
        own.translate(TEXTS, **options), light.translate(TEXTS, **options), strict=True
    ):
        assert results_of(theirs) == results_of(ours)
        assert str(theirs) == str(ours)
        assert theirs.score == pytest.approx(ours.score, abs=1e-4)
        assert theirs.log_prob == pytest.approx(ours.log_prob, abs=1e-4)


def test_the_confidence_is_calibrated_as_with_pytorch(own, light):
    for ours, theirs in zip(
        own.translate(TEXTS, confidence=True), light.translate(TEXTS, confidence=True), strict=True
    ):
        assert theirs.confidence.probability == pytest.approx(ours.confidence.probability, abs=1e-5)
    given = [str(one) for one in own.translate(TEXTS[:6])]
    for ours, theirs in zip(
        own.score(TEXTS[:6], given), light.score(TEXTS[:6], given), strict=True
    ):
        assert theirs.probability == pytest.approx(ours.probability, abs=1e-5)


def test_a_sample_depends_on_its_seed_and_source_alone(light):
    options = {"do_sample": True, "n_best": 3, "beam_size": 1, "temperature": 1.5}
    first = light.translate(TEXTS, seed=1, **options)
    alone = light.translate(TEXTS[7:8], seed=1, **options)
    assert results_of(alone[0]) == results_of(first[7])
    others = light.translate(TEXTS, seed=2, **options)
    assert [str(one) for one in others] != [str(one) for one in first]
    narrow = light.translate(TEXTS, seed=1, **{**options, "top_p": 1e-6})
    assert [one.ids for one in narrow] == [one.ids for one in light.translate(TEXTS, beam_size=1)]


def test_numbers_and_addresses_are_copied(own, light):
    text = "ka https://a.example/x to 12345"
    assert "https://a.example/x" in light.translate([text])[0]
    assert light.translate(["77 https://a.example/x"]) == own.translate(["77 https://a.example/x"])


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"glossary": {"ka": "KA"}}, "glossary"),
        ({"required": ["KA"]}, "phrases"),
        ({"trace": True}, "trace"),
        ({"num_groups": 2}, "num_groups"),
        ({"unk": "copy"}, "unk"),
    ],
)
def test_what_the_search_lacks_is_an_error_with_a_hint(light, arguments, word):
    with pytest.raises(ConfigError, match=word) as error:
        light.translate(TEXTS[:1], **arguments)
    assert "load the model folder" in error.value.hint
    with pytest.raises(InputError, match="own weights"):
        _ = light.native


@pytest.mark.parametrize(
    "arguments", [{"engine": "ctranslate2"}, {"device": "cuda"}, {"precision": "int8"}]
)
def test_an_export_has_one_engine_device_and_precision(exported, arguments):
    with pytest.raises(ConfigError, match=next(iter(arguments))):
        Translator.load(exported, **arguments)


def test_the_engine_onnx_needs_an_export(folder):
    with pytest.raises(ConfigError, match="not an export for ONNX") as error:
        Translator.load(folder, engine="onnx")
    assert "attendo export MODEL --to onnx" in error.value.hint


def test_an_export_of_an_older_version_translates(exported, own, tmp_path):
    """It records only the languages and the maximum length."""
    shutil.copytree(exported, tmp_path / "old")
    path = tmp_path / "old/onnx.json"
    info = json.loads(path.read_text("utf-8"))
    del info["about"], info["num_parameters"]
    path.write_text(json.dumps(info), "utf-8")
    translator = Translator.load(tmp_path / "old")
    assert translator.about["src_lang"] == "ko"
    assert translator.max_src_tokens == 12
    assert translator.translate(TEXTS[:5]) == own.translate(TEXTS[:5])


@pytest.mark.parametrize("damage", [{"start_id": "1"}, {"max_positions": "x"}])
def test_a_damaged_description_is_named(exported, tmp_path, damage):
    shutil.copytree(exported, tmp_path / "bad")
    path = tmp_path / "bad/onnx.json"
    path.write_text(json.dumps({**json.loads(path.read_text("utf-8")), **damage}), "utf-8")
    with pytest.raises(InputError, match="damaged"):
        Translator.load(tmp_path / "bad")
