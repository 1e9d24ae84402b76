"""What a model from elsewhere can do once it is here: everything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import torch
from safetensors.torch import load_file

from attendo.bundle import get_weights, load_bundle
from attendo.cli.main import run
from attendo.core.errors import ConfigError, InputError
from attendo.evaluation.evaluate import evaluate
from attendo.inspection.inspect_sentence import inspect_sentence
from attendo.interop.marian import model_folder
from attendo.synthetic.everyday import synthesize_pairs
from attendo.tasks.request import train
from attendo.text.phrase_constraints import IncrementalDetokenizer
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, Tokenizer
from attendo.translator import Translator

if TYPE_CHECKING:
    from pathlib import Path

SENTENCES = ["I am a student.", "The girl saved the lion."]
STEPS = (
    "train.max_steps=3", "train.save_every=3", "train.log_every=1", "train.batch_tokens=400",
    "train.average_checkpoints=1", "train.bleu_sentences=2", "train.warmup_steps=10",
)  # fmt: skip


@pytest.fixture
def marian(make_marian) -> Any:
    return make_marian(decoder_attention_heads=4)


@pytest.fixture
def model_dir(marian, tmp_path, capsys) -> Path:
    """A Marian model, imported by the command."""
    out = tmp_path / "models" / "en-ko"
    with pytest.raises(SystemExit) as raised:
        run(["import", f"hf:{marian.folder}", "-o", str(out)])
    assert not raised.value.code
    reported = capsys.readouterr().out
    assert "marian: en to ko" in reported
    assert f"attendo translate {out}" in reported
    return out


@pytest.fixture
def files(tmp_path, monkeypatch) -> dict[str, Path]:
    monkeypatch.setenv("ATTENDO_CACHE", str(tmp_path / "cache"))
    found = {}
    for language in ("en", "ko"):
        found[language] = tmp_path / f"corpus.{language}"
        lines = [getattr(pair, language) for pair in synthesize_pairs(120, seed=2)]
        found[language].write_text("\n".join(lines) + "\n", encoding="utf-8")
    return found


def test_the_folder_is_like_any_other(model_dir, marian):
    bundle, expected = load_bundle(model_dir), model_folder.read(marian.folder)
    assert bundle.model.config == expected.model.config
    assert bundle.tokenizer.fingerprint == expected.tokenizer.fingerprint
    weights = get_weights(bundle.model)
    assert all(torch.equal(weights[key], one) for key, one in get_weights(expected.model).items())
    (model_dir / "tokenizer.vocab.json").write_text('{"code": null, "sides": []}')
    with pytest.raises(InputError, match="do not match the checksum"):
        Tokenizer.load(model_dir)


def test_it_translates_with_every_option(model_dir):
    translator = Translator.load(model_dir)
    made = translator.translate(SENTENCES, n_best=2, confidence=True, trace=True)
    assert [len(one.alternatives) for one in made] == [1, 1]
    assert all(0 <= one.confidence.mean_token_probability <= 1 for one in made)
    kept = translator.translate(SENTENCES, required=["사자"], prefix="나는", max_length=40)
    assert all("사자" in one and one.startswith("나는") for one in kept)
    assert translator.translate([""]) == [""]
    scored = translator.score(SENTENCES, ["나는 학생이다.", "소녀는 사자를 구했다."])
    assert all(one.mean_token_probability < 1 for one in scored)


def test_the_text_of_ids_is_the_same_for_constraints(model_dir):
    tokenizer = load_bundle(model_dir).tokenizer
    view = IncrementalDetokenizer(tokenizer)
    torch.manual_seed(3)
    for length in range(1, 30):
        ids = torch.randint(0, tokenizer.tgt_vocab_size, (length,)).tolist()
        assert view.decode(ids) == tokenizer.decode_tgt([ids])[0]


def test_it_can_be_looked_into(model_dir, marian):
    """Every head that transformers computes, weight by weight."""
    translator = Translator.load(model_dir)
    source, target = SENTENCES[0], "나는 학생이다."
    record = inspect_sentence(translator, source, target)
    assert [record.attention(kind).shape[:2] for kind in ("encoder_self", "cross")] == [
        (2, 2),
        (2, 4),
    ]
    assert record.logit_lens is not None
    foreign_ids = translator.tokenizer.vocabularies[0].foreign_ids
    src = [[foreign_ids[number] for number in translator.tokenizer.encode_src([source])[0]]]
    printed = [foreign_ids[number] for number in translator.tokenizer.encode_tgt([target])[0]]
    marian.peer.set_attn_implementation("eager")
    with torch.no_grad():
        theirs = marian.peer(
            input_ids=torch.tensor(src),
            decoder_input_ids=torch.tensor([[foreign_ids[START_ID], *printed[:-1]]]),
            output_attentions=True,
        )
    for kind, layers in (
        ("encoder_self", theirs.encoder_attentions),
        ("decoder_self", theirs.decoder_attentions),
        ("cross", theirs.cross_attentions),
    ):
        expected = torch.stack([layer[0] for layer in layers])
        found = torch.from_numpy(record.attention(kind).copy())
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_it_is_evaluated(model_dir, files):
    found = evaluate(
        model_dir, src=files["en"], ref=files["ko"], num_samples=0, metrics=["bleu", "chrf"],
        beam_size=1, max_length=10,
    )  # fmt: skip
    system = found.report["system"]
    assert [score["key"] for score in system["scores"]] == ["bleu", "chrf"]
    assert 1 < system["likelihood"]["perplexity"] < 1e6  # silent symbols cost nothing


def test_it_is_served(model_dir):
    from fastapi.testclient import TestClient

    from attendo.serving.app import create_app
    from attendo.serving.config import ServeConfig

    config = ServeConfig(models=[model_dir], watch_seconds=0, threads=1)
    with TestClient(create_app(config), base_url="http://localhost") as client:
        asked = {"q": SENTENCES[0], "source": "en", "target": "ko"}
        answer = client.post("/translate", json=asked)
    assert answer.status_code == 200, answer.text
    expected = Translator.load(model_dir).translate(SENTENCES[:1])[0]
    assert answer.json()["translatedText"] == expected


def fine_tune(model_dir: Path, files: dict[str, Path], out: Path, *settings: str) -> Any:
    return train(
        init_from=model_dir, src=files["en"], tgt=files["ko"], out=out, settings=(*STEPS, *settings)
    )


def test_three_steps_of_fine_tuning(model_dir, files, tmp_path):
    finished = fine_tune(model_dir, files, tmp_path / "run", "model.dropout=0.2")
    before, after = load_bundle(model_dir), load_bundle(finished.model_dir)
    assert after.model.config == before.model.config.replace(dropout=0.2)
    assert after.tokenizer.fingerprint == before.tokenizer.fingerprint
    assert (after.about["src_lang"], after.about["tgt_lang"]) == ("en", "ko")
    changes = {
        name: float((weight - get_weights(before.model)[name]).abs().max())
        for name, weight in get_weights(after.model).items()
    }
    assert all(0 < change < 0.1 for change in changes.values())
    config = json.loads((tmp_path / "run" / "config.json").read_text("utf-8"))
    assert config["model"]["init_from"] == str(model_dir)
    reported = json.loads((tmp_path / "run" / "data.json").read_text("utf-8"))["lines"]
    name = f"model: transformer that starts from {model_dir}, "
    assert any(name in line for line in reported)
    again = fine_tune(model_dir, files, tmp_path / "run", "model.dropout=0.2")  # it is finished
    assert again.report == finished.report


def test_training_begins_with_the_weights_that_came(model_dir, files, tmp_path):
    rate = "train.lr_scale=1e-12"  # so little is learned that nothing is
    finished = fine_tune(model_dir, files, tmp_path / "run", rate)
    before, after = load_bundle(model_dir), load_bundle(finished.model_dir)
    for name, weight in get_weights(after.model).items():
        torch.testing.assert_close(weight, get_weights(before.model)[name], rtol=0, atol=1e-6)


def test_a_fine_tuned_model_goes_back_to_transformers(model_dir, marian, files, tmp_path):
    finished = fine_tune(model_dir, files, tmp_path / "run")
    bundle = load_bundle(finished.model_dir)
    folder = tmp_path / "back"
    folder.mkdir()
    model_folder.write(bundle, folder)
    before, after = (one / "vocab.json" for one in (marian.folder, folder))
    assert json.loads(after.read_text("utf-8")) == json.loads(before.read_text("utf-8"))
    peer = model_folder.load_reference(folder)
    src, tgt = bundle.tokenizer.encode_src(SENTENCES), bundle.tokenizer.encode_tgt(["나는", "책"])
    with torch.no_grad():
        for source, target, theirs in zip(src, tgt, peer.logits(src, tgt), strict=True):
            fed = torch.tensor([[START_ID, *target[:-1]]])
            ours = bundle.model(torch.tensor([source]), fed)[0]
            torch.testing.assert_close(ours[:, START_ID:], theirs[:, START_ID:], rtol=0, atol=1e-5)
    again, weights = get_weights(model_folder.read(folder).model), get_weights(bundle.model)
    for name, weight in weights.items():
        first = START_ID if name in ("src_embedding.weight", "output.bias") else 0
        rows = slice(None) if not first else [n for n in range(len(weight)) if n != PAD_ID]
        assert torch.equal(again[name][rows], weight[rows])  # but for our own padding
    files = [load_file(one / "model.safetensors") for one in (marian.folder, folder)]
    assert files[0].keys() == files[1].keys()


def test_a_run_from_a_model_of_ours(toy, files, tmp_path):
    """Not only imported models begin a run."""
    sizes = ("model.d_model=16", "model.d_ff=32", "model.num_heads=2", "model.num_layers=1")
    first = train(src=files["en"], tgt=files["ko"], out=tmp_path / "one", settings=(*STEPS, *sizes))
    second = fine_tune(first.directory, files, tmp_path / "two")  # the folder of the run will do
    before, after = load_bundle(first.model_dir), load_bundle(second.model_dir)
    assert after.model.config == before.model.config
    assert after.tokenizer.fingerprint == before.tokenizer.fingerprint


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        (["model.num_layers=6"], ["model.num_layers = 6: the model has 2"]),
        (
            ["model.kind=conv-s2s", "data.tokenizer.vocab_size=500", "data.tokenizer.kind=char"],
            [
                "model.kind = 'conv-s2s': the model has 'transformer'",
                "data.tokenizer.vocab_size = 500",
                "data.tokenizer.kind = 'char': the model has 'unigram'",
            ],
        ),
    ],
)
def test_settings_that_do_not_fit_the_model(model_dir, files, tmp_path, settings, named):
    with pytest.raises(ConfigError) as raised:
        fine_tune(model_dir, files, tmp_path / "run", *settings)
    assert len(raised.value.reasons) == len(named)
    for reason in named:
        assert reason in str(raised.value)
    assert not (tmp_path / "run").exists()


def test_a_preset_next_to_a_model_is_rejected(model_dir, files, tmp_path):
    with pytest.raises(ConfigError, match="--init-from already chooses the model"):
        train(
            init_from=model_dir, preset="base", src=files["en"], tgt=files["ko"],
            out=tmp_path / "run",
        )  # fmt: skip


def test_the_end_symbol_ends_the_output(model_dir):
    tokenizer = load_bundle(model_dir).tokenizer
    ids = tokenizer.encode_tgt(["나는"])[0]
    noisy = [START_ID, *ids[:-1], PAD_ID, END_ID, *ids]
    assert tokenizer.decode_tgt([noisy, [END_ID], [], [PAD_ID]]) == ["나는", "", "", ""]
