from __future__ import annotations

import gzip
import json
import unicodedata

import pytest
import torch

from attendo.bundle import build_model, save_bundle
from attendo.core.errors import ConfigError, InputError
from attendo.evaluation.bleu import bleu
from attendo.evaluation.evaluate import evaluate
from attendo.evaluation.perplexity import compute_likelihood
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read(path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


@pytest.fixture(scope="module")
def folders(toy, tmp_path_factory):
    """Two untrained models that say different things."""
    made = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = build_model("transformer", SIZES, toy.prepared.tokenizer)
        made.append(tmp_path_factory.mktemp(f"model{seed}"))
        save_bundle(made[-1] / "model", model, toy.prepared.tokenizer, about={"tgt_lang": "de"})
    return made


@pytest.fixture
def files(toy, tmp_path):
    sources, references = (read(path)[:30] for path in (toy.src, toy.tgt))
    sources[3] = ""
    return {
        "src": write(tmp_path / "test.src", sources),
        "ref": write(tmp_path / "test.ref", references),
    }


def value(report, key: str) -> float:
    return next(score["value"] for score in report["system"]["scores"] if score["key"] == key)


def test_a_model_is_translated_scored_and_reported(folders, files, tmp_path):
    out = tmp_path / "new" / "out"
    found = evaluate(folders[0], **files, num_samples=50, out=out, device="cpu")
    translator = Translator.load(folders[0], device="cpu")
    sources, references = read(files["src"]), read(files["ref"])
    printed = [str(text) for text in translator.translate(sources)]
    assert read(out / "outputs.txt") == printed
    assert printed[3] == ""
    assert value(found.report, "bleu") == pytest.approx(bleu(printed, references).score, abs=1e-4)
    likelihood = compute_likelihood(translator.model, translator.tokenizer, sources, references)
    reported = found.report["system"]["likelihood"]
    assert reported["perplexity"] == pytest.approx(likelihood.perplexity)
    assert reported["accuracy"] == likelihood.accuracy
    assert reported["num_skipped"] == 1
    assert found.report == json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert found.report["data"] == {
        "src": str(files["src"]),
        "ref": str(files["ref"]),
        "tok_ref": None,
        "num_sentences": 30,
        "lang": "de",
    }
    assert (out / "report.md").read_text(encoding="utf-8").startswith("# Evaluation of ")


def test_options_of_decoding_reach_the_translator(folders, files, monkeypatch):
    reported = {}

    def translate(self, texts, *, progress=None, **options):
        reported.update(options)
        progress(len(texts), len(texts))
        return [f"{text}\nmore" for text in texts]

    monkeypatch.setattr(Translator, "translate", translate)
    stages = []
    found = evaluate(
        folders[0],
        **files,
        metrics=["chrf"],
        num_samples=0,
        progress=lambda stage, done, total: stages.append((stage, done, total)),
        beam_size=3,
        alpha=0.9,
    )
    assert reported == found.report["system"]["decoding"] == {"beam_size": 3, "alpha": 0.9}
    assert stages[0] == ("translating", 30, 30)
    assert {stage for stage, *_ in stages} == {"translating", "perplexity", "scoring"}
    assert all("\n" not in sentence["output"] for sentence in found.report["system"]["worst"])


def test_two_models_are_compared(folders, files, tmp_path):
    out = tmp_path / "out"
    found = evaluate(folders[0], **files, against=folders[1], num_samples=50, out=out)
    report = found.report
    assert read(out / "outputs.txt") != read(out / "against.txt")
    assert report["against"]["likelihood"]["perplexity"] > 1
    assert report["against"]["model"] == str(folders[1])
    ours = {score["key"]: score["value"] for score in report["system"]["scores"]}
    theirs = {score["key"]: score["value"] for score in report["against"]["scores"]}
    for row in report["comparison"]:
        assert row["difference"] == pytest.approx(ours[row["key"]] - theirs[row["key"]])
        assert 0 < row["p_value"] <= 1


def test_outputs_are_scored_without_a_model(files):
    found = evaluate(ref=files["ref"], outputs=files["ref"], num_samples=0)
    system = found.report["system"]
    assert value(found.report, "bleu") == 100.0
    assert (system["likelihood"], system["by_source_length"], system["decoding"]) == (None,) * 3
    assert system["num_exact"] == 30
    assert found.directory is None


def test_outputs_and_a_model_give_scores_and_perplexity(folders, files):
    found = evaluate(folders[0], **files, outputs=files["ref"], num_samples=0)
    assert value(found.report, "bleu") == 100.0
    assert found.report["system"]["likelihood"]["perplexity"] > 1
    assert found.report["system"]["outputs"] == str(files["ref"])


def test_tokenized_bleu_of_plain_outputs(tmp_path):
    plain = ["Ein „Hund“, der läuft.", "Zwei Männer – drei Frauen."] * 3
    tokenized = [
        "ein &quot; hund &quot; , der läuft .",
        "zwei männer - drei frauen .",
    ] * 3
    given = {
        "ref": write(tmp_path / "ref", plain),
        "outputs": write(tmp_path / "out", plain),
        "tok_ref": write(tmp_path / "tok", tokenized),
        "num_samples": 0,
    }
    found = evaluate(**given, tok_steps=["lower", "norm", "moses"], lang="de")
    assert value(found.report, "bleu-tok") == 100.0
    raw = evaluate(**given, tok_steps=["as-is"], lang="de")
    assert value(raw.report, "bleu-tok") < 50.0


def test_packed_files_and_line_separators_inside_a_line(tmp_path):
    lines = ["a b c d\u2028e", "f g h\x85 i\r", "j k l m"]
    (tmp_path / "ref.gz").write_bytes(gzip.compress("".join(f"{x}\n" for x in lines).encode()))
    outputs = write(tmp_path / "out", ["a b c d e", "f g h i", "j k l m"])
    found = evaluate(ref=tmp_path / "ref.gz", outputs=outputs, num_samples=0)
    assert found.report["data"]["num_sentences"] == 3
    assert value(found.report, "bleu") == 100.0


def test_korean_targets_are_known_by_their_letters(tmp_path):
    ref = write(tmp_path / "ref", ["나는 학생이다.", "너는 선생님이다."])
    report = evaluate(ref=ref, outputs=ref, num_samples=0).report
    assert report["data"]["lang"] == "ko"
    assert {"bleu-ko", "bleu-char"} <= {score["key"] for score in report["system"]["scores"]}


def test_oddities_are_reported_with_their_lines(tmp_path):
    texts = ["나는 간다", "", unicodedata.normalize("NFD", "나는 학생이다"), "온다"]
    ref = write(tmp_path / "ref", texts)
    notes = evaluate(ref=ref, src=ref, outputs=ref, num_samples=0).report["notes"]
    assert any("1 of the sources are empty, the first is line 2" in note for note in notes)
    assert any("not in Unicode's NFC, the first is line 3" in note for note in notes)
    assert any("identical in 4 lines" in note for note in notes)


def test_a_sentence_too_long_for_the_model_costs_the_perplexity_alone(toy, files, tmp_path):
    options = {**SIZES, "positions": "learned", "max_length": 4}
    model = build_model("transformer", options, toy.prepared.tokenizer)
    save_bundle(tmp_path / "short", model, toy.prepared.tokenizer)
    found = evaluate(
        tmp_path / "short", **files, outputs=files["ref"], metrics=["chrf"], num_samples=0
    )
    assert found.report["system"]["likelihood"] is None
    assert any("no perplexity" in note and "line " in note for note in found.report["notes"])


# --- bad input


def test_line_counts_must_agree_and_all_are_named(files, tmp_path, folders):
    short = write(tmp_path / "short", ["a", "b"])
    with pytest.raises(InputError) as caught:
        evaluate(folders[0], src=files["src"], ref=short)
    assert "test.src has 30 lines" in str(caught.value)
    assert "short has 2 lines" in str(caught.value)
    with pytest.raises(InputError, match="short has 2 lines"):
        evaluate(ref=files["ref"], outputs=files["ref"], against=short)


def test_files_that_cannot_be_read_are_named_before_any_work(files, tmp_path, folders):
    out = tmp_path / "out"
    with pytest.raises(InputError, match="did you mean"):
        evaluate(folders[0], src=files["src"], ref=tmp_path / "test.reff", out=out)
    (tmp_path / "bad").write_bytes("가\n나\n".encode("cp949"))
    with pytest.raises(InputError, match=r"bad, line 1, byte 0: 0xb0 is not valid UTF-8"):
        evaluate(ref=tmp_path / "bad", outputs=tmp_path / "bad")
    empty = write(tmp_path / "empty", ["", " "])
    with pytest.raises(InputError, match="empty has no text"):
        evaluate(ref=empty, outputs=empty)
    assert not any(out.iterdir())


def test_requests_that_do_not_go_together_are_rejected_at_once(files, tmp_path):
    with pytest.raises(ConfigError) as caught:
        evaluate(ref=files["ref"], tok_ref=files["ref"], against=tmp_path, num_samples=1)
    assert len(caught.value.reasons) == 4
    for word in ("--outputs", "--src", "--tok-steps", "1 bootstrap samples"):
        assert word in str(caught.value)
    with pytest.raises(ConfigError, match="needs --tok-ref"):
        evaluate(ref=files["ref"], outputs=files["ref"], tok_steps=["lower"])


def test_a_folder_that_is_not_a_model_is_rejected(files, tmp_path):
    with pytest.raises(InputError, match="is not a model folder"):
        evaluate(tmp_path, **files)
    with pytest.raises(InputError, match="is not a model folder"):
        evaluate(**files, outputs=files["ref"], against=tmp_path)


def test_an_unavailable_metric_is_rejected_before_translating(folders, files, monkeypatch):
    monkeypatch.setattr(Translator, "translate", lambda *_, **__: pytest.fail("translated"))
    with pytest.raises(ConfigError, match="no metric 'blue'"):
        evaluate(folders[0], **files, metrics=["blue"])
