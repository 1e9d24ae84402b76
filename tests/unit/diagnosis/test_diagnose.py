"""Runs compared with the paper's recipe: shipped configs, single deviations, real folders."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest

from attendo.core.errors import InputError
from attendo.diagnosis.diagnose import diagnose
from attendo.diagnosis.paper_recipe import table_effect, table_rows
from attendo.diagnosis.run_summary import read_run_summary
from attendo.tasks.request import TrainRequest
from attendo.tasks.run import train_run

WMT, MULTI30K = 4_500_000, 29_000


@pytest.fixture
def make_run(repository, tmp_path):
    """Write the JSON files of a run of a shipped config, some settings changed (__ for the dot)."""

    def make(config="wmt14_base", *, pairs=WMT, steps=None, dev=None, vocab_size=None, **changes):
        settings = [
            f"{key.replace('__', '.')}={json.dumps(value)}" for key, value in changes.items()
        ]
        path = repository / "configs" / f"{config}.toml"
        resolved = TrainRequest(
            config=path, settings=settings, src=["a.en"], tgt=["a.de"]
        ).build_config()
        folder = tmp_path / "run"
        folder.mkdir(exist_ok=True)
        resolved.save(folder / "config.json")
        size = vocab_size or resolved.data.tokenizer.vocab_size
        data = {"pairs": pairs, "src_vocab_size": size, "tgt_vocab_size": size}
        if pairs is not None:
            (folder / "data.json").write_text(json.dumps(data))
        if steps is not None:
            averaged = list(range(resolved.train.average_checkpoints))
            report = {"steps": steps, "averaged_steps": averaged, "data": data, "dev": dev or {}}
            (folder / "report.json").write_text(json.dumps(report))
        return folder

    return make


@pytest.fixture
def judge(make_run):
    """Return the findings of such a run by their name."""

    def judge(*args, **changes):
        found = diagnose(read_run_summary(make_run(*args, **changes))).findings
        assert len({finding.what for finding in found}) == len(found)
        return {finding.what: finding for finding in found}

    return judge


@pytest.mark.parametrize("config", ["wmt14_base", "wmt14_big"])
@pytest.mark.parametrize("pairs", [WMT, None])
def test_the_configs_of_the_paper_have_no_finding_but_the_score(make_run, config, pairs):
    diagnosis = diagnose(read_run_summary(make_run(config, pairs=pairs)))
    assert [(found.what, found.verdict) for found in diagnosis.findings] == [("score", "measure")]
    assert f"wmt14_{diagnosis.recipe.name}" == config
    assert {"num_layers", "d_model", "dropout", "label_smoothing", "averaging", "Adam"} <= {
        *diagnosis.matching
    }
    assert ("corpus" in diagnosis.unknown) == (pairs is None)


@pytest.mark.parametrize(("config", "pairs"), [("sample", 20_000), ("multi30k", MULTI30K)])
def test_small_corpora_depart_on_purpose(judge, config, pairs):
    found = judge(config, pairs=pairs)
    assert {one.verdict for one in found.values()} <= {"measure", "on purpose", "no loss known"}
    for what in ("d_model", "num_layers", "vocabulary size", "training length"):
        assert found[what].verdict == "on purpose"
        assert not found[what].hint
    assert [name for name, one in found.items() if one.verdict == "measure"] == ["score"]


def test_pre_norm_suits_a_small_corpus(judge):
    found = judge("sample", pairs=20_000, model__norm="pre")["norm"]
    assert (found.verdict, found.hint) == ("on purpose", "")
    assert judge("sample", pairs=WMT, model__norm="pre")["norm"].verdict == "below"


def test_the_same_settings_on_a_large_corpus_are_faults(judge):
    found = judge("sample", pairs=WMT)
    for what in ("d_model", "num_layers", "d_ff", "num_heads", "vocabulary size", "averaging"):
        assert found[what].verdict == "below"
        assert found[what].hint


def test_the_papers_recipe_on_a_small_corpus_is_the_fault(judge):
    found = judge("wmt14_base", pairs=MULTI30K)
    first = next(iter(found.values()))
    assert (first.what, first.verdict) == ("model for a small corpus", "below")
    assert "7.3 BLEU" in first.effect
    assert "--preset tiny" in first.hint
    assert "model for a small corpus" not in judge(pairs=MULTI30K, model__dropout=0.3)
    assert "model for a small corpus" not in judge(pairs=WMT)


@pytest.mark.parametrize(
    ("setting", "value", "reported"),
    [
        ("model.num_layers", 2, "-2.1 BLEU"),
        ("model.num_layers", 4, "-0.5 BLEU"),
        ("model.d_model", 256, "-1.3 BLEU"),
        ("model.d_model", 128, "256 has 24.5"),
        ("model.d_ff", 1024, "-0.4 BLEU"),
        ("model.num_heads", 1, "-0.9 BLEU"),
        ("model.d_k", 16, "-0.7 BLEU"),
        ("model.dropout", 0.0, "-1.2 BLEU"),
        ("model.dropout", 0.05, "0.0 has 24.6 and 0.1 has 25.8"),
        ("model.dropout", 0.3, "0.2 has 25.5"),
        ("model.positions", "learned", "-0.1 BLEU"),
        ("train.label_smoothing", 0.0, "-0.5 BLEU"),
        ("train.label_smoothing", 0.2, "-0.1 BLEU"),
    ],
)
def test_table_3(judge, setting, value, reported):
    found = judge(**{setting.replace(".", "__"): value})
    finding = found.pop(setting.split(".")[1])
    assert finding.verdict == "below"
    assert reported in finding.effect
    assert "newstest2013" in finding.effect
    assert finding.ours == str(value)
    assert finding.hint == f"--set {setting}={finding.paper}"
    assert {"score"} <= set(found) <= {"score", "warm-up and peak learning rate"}


def test_what_gains_in_table_3_is_not_a_fault(judge):
    for setting, reported in (("model__d_ff", 4096), ("model__num_heads", 16)):
        finding = judge(**{setting: reported})[setting.removeprefix("model__")]
        assert finding.verdict == "no loss known"
    assert "+0.4 BLEU" in judge(model__d_ff=4096)["d_ff"].effect


def test_the_table_is_the_papers():
    assert table_rows("d_model") == {512: 25.8, 256: 24.5, 1024: 26.0}
    assert table_rows("num_heads") == {8: 25.8, 1: 24.9, 4: 25.5, 16: 25.8, 32: 25.4}
    assert table_rows("dropout") == {0.1: 25.8, 0.0: 24.6, 0.2: 25.5}
    assert table_rows("label_smoothing") == {0.1: 25.8, 0.0: 25.3, 0.2: 25.7}
    assert table_effect("positions", "none") is None


def test_big_is_recognized_by_its_preset_or_its_width(judge, make_run):
    assert diagnose(read_run_summary(make_run("wmt14_big"))).recipe.average_checkpoints == 20
    wide = {"d_ff": 4096, "num_heads": 16, "d_model": 1024}
    folder = make_run(**{f"model__{key}": value for key, value in wide.items()})
    assert diagnose(read_run_summary(folder)).recipe.name == "big"
    row = diagnose(read_run_summary(make_run(model__preset="C-dmodel-1024")))
    assert row.recipe.name == "base"
    assert {one.what: one.verdict for one in row.findings}["d_model"] == "no loss known"
    found = judge("wmt14_big", model__dropout=0.1)
    assert (found["dropout"].verdict, found["dropout"].paper) == ("below", "0.3")
    assert "BLEU on" not in found["dropout"].effect  # the table is base's
    french = judge("wmt14_big", model__dropout=0.1, data__tgt_lang="fr")
    assert "dropout" not in french


def test_training_settings_one_by_one(judge):
    small = judge(train__batch_tokens=4096, train__accumulation_steps=2)
    assert small["batch (tokens per step, all GPUs)"].verdict == "below"
    assert "--set train.accumulation_steps=14" in small["batch (tokens per step, all GPUs)"].hint
    assert small["training length"].ours.startswith("100,000 steps, 16.4% of")
    assert "train.max_steps=610352" in small["training length"].hint
    large = judge(train__batch_tokens=100_000)
    assert large["batch (tokens per step, all GPUs)"].verdict == "no loss known"
    assert set(judge(train__batch_tokens=24_576)) == {"score"}  # eight times 3072

    assert (
        "2.0e-03"
        in judge(train__schedule="inverse_sqrt", train__peak_lr=2e-3)[
            "warm-up and peak learning rate"
        ].ours
    )
    same_curve = judge(train__schedule="inverse_sqrt", train__peak_lr=6.99e-4)
    assert set(same_curve) == {"score"}
    assert judge(train__warmup_steps=8000)["warm-up and peak learning rate"].verdict == "below"
    assert judge(train__schedule="cosine")["warm-up and peak learning rate"].ours.endswith(
        "(cosine)"
    )

    adam = judge(train__beta_2=0.999)["Adam"]
    assert (adam.ours, adam.paper) == ("0.9 0.999 1e-09", "0.9 0.98 1e-09")
    assert judge(train__clip_norm=1.0)["clip_norm"].verdict == "no loss known"
    assert judge(model__norm="pre")["norm"].verdict == "below"
    assert judge(model__activation="gelu")["activation"].verdict == "no loss known"
    assert judge(model__num_decoder_layers=2)["num_decoder_layers"].verdict == "below"
    assert judge(data__tokenizer__kind="word")["tokenizer"].verdict == "below"
    separate = judge(data__tokenizer__shared=False)
    assert separate["vocabulary"].verdict == "no loss known"


def test_averaging(judge):
    none = judge(train__average_checkpoints=1)["averaging"]
    assert (none.verdict, none.ours) == ("below", "none")
    assert (
        judge("sample", pairs=20_000, train__average_checkpoints=1)["averaging"].verdict == "below"
    )
    assert judge(train__ema_decay=0.999)["averaging"].verdict == "no loss known"
    assert "averaging" not in judge(train__average_checkpoints=10, train__keep_last=10)


def test_a_run_that_ends_before_its_warm_up_is_reported_first(judge):
    found = judge("multi30k", pairs=MULTI30K, train__max_steps=500)
    first = next(iter(found.values()))
    assert first.what == "end of the warm-up"
    assert "25.0% of its peak" in first.effect
    assert "train.warmup_steps=166" in first.hint


def test_a_run_that_patience_stopped(judge):
    found = judge(steps=20_000, train__patience=5)["training length"]
    assert found.verdict == "below"
    assert "patience" in found.hint
    assert "resumes the run" in judge(steps=20_000)["training length"].hint


def test_a_middling_corpus(judge):
    found = judge(pairs=1_000_000)
    assert (found["corpus"].verdict, found["corpus"].ours) == ("below", "1,000,000 pairs")
    assert set(found) == {"corpus", "score"}


@pytest.mark.parametrize(
    ("decoding", "is_papers"),
    [
        ("greedy", False),
        ("beam 4, alpha 0.6", True),
        ("beam 5, alpha 0.6", False),
        ("beam 4, alpha 1", False),
    ],
)
def test_the_search_behind_the_score(judge, decoding, is_papers):
    found = judge(steps=100_000, dev={"decoding": decoding, "bleu": 25.0})
    assert ("search" not in found) == is_papers
    if not is_papers:
        assert (found["search"].verdict, found["search"].ours) == ("measure", decoding)


def test_the_score_of_another_language_pair_is_not_split_into_compounds(judge):
    german = judge(data__tgt_lang="de")["score"]
    assert "1.5" in german.effect
    assert "attendo evaluate" in german.hint
    english = judge(data__tgt_lang="en", dev={"bleu_signature": "nrefs:1|tok:zh"}, steps=100_000)
    assert english["score"].ours == "sacreBLEU tok:zh on dev"
    assert "newstest2014" not in english["score"].hint


def test_the_costliest_come_first_and_every_finding_has_a_hint(judge):
    found = list(judge("sample", pairs=WMT, train__label_smoothing=0.0).values())
    below = [one for one in found if one.verdict == "below"]
    assert [one.verdict for one in found] == sorted(
        (one.verdict for one in found), key=["below", "measure", "no loss known"].index
    )
    assert [one.estimated_loss for one in below] == sorted(
        (one.estimated_loss for one in below), reverse=True
    )
    names = [one.what for one in below]
    assert names.index("num_layers") < names.index("label_smoothing") < names.index("num_heads")
    assert all(one.hint and one.effect and one.ours and one.paper for one in below)


def test_following_every_hint_gives_the_papers_recipe(judge, make_run):
    """Each `--set key=value` and `--preset` that is named exists, and does what it promises."""
    departures = {
        "train__label_smoothing": 0.0,
        "train__beta_2": 0.999,
        "train__batch_tokens": 5000,
        "train__schedule": "cosine",
        "model__norm": "pre",
        "model__positions": "learned",
        "model__tie_embeddings": "decoder",
        "data__tokenizer__kind": "word",
    }
    found = judge("sample", pairs=WMT, **departures)
    changes: dict[str, object] = {}
    for finding in found.values():
        for key, value in re.findall(r"--set ([\w.]+)=(\S+?),?(?: |$)", finding.hint):
            changes[key.replace(".", "__")] = json.loads(value) if value[0].isdigit() else value
        if name := re.search(r"--preset (\w+)", finding.hint):
            changes["model__preset"] = name[1]
    changes["train__max_steps"] = 100_000
    assert len(changes) >= 12
    fixed = judge("sample", pairs=WMT, **changes)
    assert set(fixed) == {"score"}


def test_an_unfinished_run_is_judged_by_its_plan_and_its_log(make_run):
    folder = make_run()
    events = [{"event": "started", "step": 0}, {"event": "train", "step": 120}]
    (folder / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events) + '{"')
    facts = read_run_summary(folder)
    assert (facts.is_finished, facts.steps, facts.planned_steps) == (False, 120, 100_000)
    assert {one.what for one in diagnose(facts).findings} == {"score"}
    short = read_run_summary(make_run(train__max_steps=1000))
    assert "training length" in {one.what for one in diagnose(short).findings}


def test_a_real_run_and_its_model_folder_alone(toy, tmp_path):
    settings = [
        *("data.tokenizer.kind=word", "model.num_layers=1", "model.d_model=16", "model.d_ff=32"),
        *(
            "model.num_heads=2",
            "train.max_steps=2",
            "train.warmup_steps=9",
            "train.save_every=1",
            "train.average_checkpoints=2",
        ),
        *("train.bleu_sentences=1", "train.batch_tokens=192"),
    ]
    config = TrainRequest(settings=settings, src=[toy.src], tgt=[toy.tgt]).build_config()
    run = train_run(config, tmp_path / "run", cache=toy.cache)
    facts = read_run_summary(run.directory)
    assert (facts.steps, facts.is_finished, facts.num_averaged) == (2, True, 2)
    assert facts.num_pairs == run.report["data"]["pairs"]
    assert facts.model["d_model"] == 16
    assert facts.vocab_size == toy.prepared.tokenizer.src_vocab_size
    assert facts.dev == run.report["dev"]
    assert read_run_summary(run.model_dir) == facts  # the run around it tells more
    found = {one.what: one for one in diagnose(facts).findings}
    assert found["end of the warm-up"].verdict == "below"
    assert found["d_model"].verdict == "on purpose"

    alone = tmp_path / "elsewhere"
    shutil.copytree(run.model_dir, alone)
    facts = read_run_summary(alone)
    assert (facts.model["d_model"], facts.steps, facts.num_averaged) == (16, 2, 2)
    assert facts.model_dir == alone
    diagnosis = diagnose(facts)
    assert {"corpus", "label_smoothing", "Adam"} <= set(diagnosis.unknown)
    assert "search" in {one.what for one in diagnosis.findings}
    holder = tmp_path / "holder"
    shutil.copytree(alone, holder / "model")
    assert read_run_summary(holder).model == facts.model


def test_folders_that_are_not_runs(tmp_path, make_run):
    with pytest.raises(InputError, match="neither config") as raised:
        read_run_summary(tmp_path)
    assert "--out" in str(raised.value.hint)
    with pytest.raises(InputError, match="is not a folder"):
        read_run_summary(tmp_path / "nowhere")
    folder = make_run()
    (folder / "config.json").write_text('{"something": "else"}')
    with pytest.raises(InputError, match="not those of a run"):
        read_run_summary(folder)
    (folder / "config.json").write_text("{")
    with pytest.raises(InputError, match="not valid JSON"):
        read_run_summary(folder)


def test_no_tensor_library_is_loaded(make_run):
    code = (
        "import sys\nfrom attendo.diagnosis.diagnose import diagnose\n"
        "from attendo.diagnosis.run_summary import read_run_summary\n"
        "assert diagnose(read_run_summary(sys.argv[1])).findings\n"
        "assert not {'torch', 'numpy', 'sentencepiece'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(make_run())], check=True)
