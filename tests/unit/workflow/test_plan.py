from __future__ import annotations

import json

import pytest

from attendo.core.errors import ConfigError, InputError
from attendo.workflow.commands import split_command
from attendo.workflow.plan import BuildPlan
from attendo.workflow.recipe import load_recipe
from attendo.workflow.sizes import SIZES, relative_cost
from attendo.workflow.step import StepPaths


@pytest.fixture
def files(tmp_path):
    for name in ("a.ko", "a.en", "m.en", "m.ko", "t.ko", "t.en"):
        (tmp_path / name).write_text("줄\nline\n", encoding="utf-8")
    return tmp_path


def make_recipe(folder, *settings, **given):
    base = {
        "corpora": [{"src": str(folder / "a.ko"), "tgt": str(folder / "a.en")}],
        "src_lang": "ko",
        "tgt_lang": "English",
    }
    return load_recipe(None, {**base, **given}, settings)


def texts(folder, name):
    return [{"text": str(folder / name)}]


def names(config):
    return [step.name for step in BuildPlan(config).graph().steps]


def test_the_steps_follow_from_what_is_given(files):
    end = ["int8", "translate-test", "report"]
    short = ["clean", "teacher", "forward-translate", "student", *end]
    assert names(make_recipe(files)) == short
    back = ["clean", "backward", "back-translate", "teacher", "fine-tune", *short[2:]]
    assert names(make_recipe(files, mono_tgt=texts(files, "m.en"))) == back
    filtered = make_recipe(files, "filter.enabled=true", mono_tgt=texts(files, "m.en"))
    models = ["forward", "backward", "score", "filter"]
    assert names(filtered) == ["clean", *models, "back-translate", *back[3:]]
    known = make_recipe(files, "filter.enabled=true", "fine_tuning.enabled=false")
    assert names(known) == ["clean", *models, *short[1:]]


def commands_of(config, name, folder):
    step = BuildPlan(config).graph()[name]
    inputs = {key: folder / key for key in (*step.files, *step.needs)}
    for path in inputs.values():
        if not path.exists():
            path.write_text("", encoding="utf-8")
    return step, step.commands(StepPaths(folder, inputs))


def test_the_teacher_learns_from_tagged_translations_and_then_from_the_corpora(files):
    config = make_recipe(
        files,
        "size=base",
        "filter.enabled=false",
        "back_translation.weight=0.5",
        'back_translation.tag="<synthetic>"',
        mono_tgt=texts(files, "m.en"),
    )
    _, (command,) = commands_of(config, "teacher", files)
    settings = json.loads((files / "train.json").read_text(encoding="utf-8"))
    corpora = settings["data"]["corpora"]
    assert [corpus["weight"] for corpus in corpora] == [1.0, 0.5]
    assert corpora[1]["src"].endswith("bt.m")
    assert corpora[1]["tgt"].endswith("m.text")
    assert settings["data"]["augmentation"]["enabled"]
    assert "train.rdrop_weight=1.0" in command.run
    _, back = commands_of(config, "back-translate", files)
    words = list(back[1].run)
    assert "--sample" in words
    assert words[words.index("--tag") + 1] == "<synthetic>"
    _, (tuned,) = commands_of(config, "fine-tune", files)
    settings = json.loads((files / "train.json").read_text(encoding="utf-8"))
    assert len(settings["data"]["corpora"]) == 1
    assert "--init-from" in tuned.run


def test_the_backward_model_reads_the_target(files):
    config = make_recipe(files, mono_tgt=texts(files, "m.en"))
    commands_of(config, "backward", files)
    data = json.loads((files / "train.json").read_text(encoding="utf-8"))["data"]
    assert (data["src_lang"], data["tgt_lang"]) == ("en", "ko")
    assert data["corpora"][0]["src"].endswith("a.tgt")
    assert data["dev"]["src"].endswith("dev.tgt")
    assert "augmentation" not in data


def test_the_student_learns_from_its_teacher(files):
    given = {"mono_src": texts(files, "m.ko")}
    commands_of(make_recipe(files, **given), "student", files)
    data = json.loads((files / "train.json").read_text(encoding="utf-8"))["data"]
    assert [corpus["tgt"].rsplit("/", 1)[1] for corpus in data["corpora"]] == [
        "teacher.a",
        "teacher.m",
    ]
    config = make_recipe(files, "student.reference_weight=0.5", **given)
    commands_of(config, "student", files)
    data = json.loads((files / "train.json").read_text(encoding="utf-8"))["data"]
    assert data["corpora"][1]["tgt"].endswith("a.tgt")
    assert data["corpora"][1]["weight"] == 0.5


def test_the_student_learns_from_pairs_that_were_made_elsewhere(files):
    extra = {"src": str(files / "t.ko"), "tgt": str(files / "t.en"), "weight": 2.0}
    step, _ = commands_of(make_recipe(files, student={"corpora": [extra]}), "student", files)
    assert [path.name for path in step.files.values()] == ["t.ko", "t.en"]
    data = json.loads((files / "train.json").read_text(encoding="utf-8"))["data"]
    assert data["corpora"][-1]["src"].endswith("extra.0.src")
    assert data["corpora"][-1]["weight"] == 2.0


def test_the_number_of_lines_of_a_text_is_a_setting_of_the_cleaning(files):
    text = {"text": str(files / "m.en"), "max_lines": 7}
    commands_of(make_recipe(files, mono_tgt=[text]), "clean", files)
    settings = json.loads((files / "clean.json").read_text(encoding="utf-8"))
    assert [one["max_lines"] for one in settings["texts"]] == [7]


def test_the_forward_translation_agrees_with_references_where_there_are_some(files):
    config = make_recipe(files, mono_src=texts(files, "m.ko"))
    _, made = commands_of(config, "forward-translate", files)
    translations = [list(command.run) for command in made if not callable(command.run)]
    assert len(translations) == 2
    assert "--agree-with" in translations[0]
    assert "--agree-with" not in translations[1]
    assert all(command.can_resume for command in made if not callable(command.run))
    plain = make_recipe(files, "forward_translation.n_best=1")
    _, made = commands_of(plain, "forward-translate", files)
    assert not any("--agree-with" in c.run for c in made if not callable(c.run))


def test_a_cluster_translates_in_shards_that_are_joined(files):
    config = make_recipe(files)
    alone = BuildPlan(config).graph()["forward-translate"]
    step = BuildPlan(config, cluster="auto").graph()["forward-translate"]
    assert (step.settings, step.version) == (alone.settings, alone.version)  # the same result
    paths = StepPaths(files, dict.fromkeys(step.needs, files / "a.ko"))
    made = list(step.commands(paths))
    position, command = next((i, c) for i, c in enumerate(made) if not callable(c.run))
    words = list(command.run)
    assert words[words.index("--cluster") + 1] == "auto"
    assert not command.has_begun()
    folder = command.output.parent
    folder.mkdir(parents=True)
    (folder.parent / "_job.json").write_text("{}")
    assert command.has_begun()
    for number in (100_000, 0, 1):  # six digits come after five
        (folder / f"part-{number:05}.txt").write_text(f"{number}\n")
    made[position + 1].run()
    assert made[position + 1].output.read_text() == "0\n1\n100000\n"


def test_a_complete_training_has_no_open_settings(files):
    config = make_recipe(files, "teacher.is_complete=true", "teacher.train.max_steps=7")
    step, (command,) = commands_of(config, "teacher", files)
    settings = json.loads((files / "train.json").read_text(encoding="utf-8"))
    assert settings["train"]["max_steps"] == 7
    assert "--set" not in command.run
    assert step.work is not None


def test_a_model_that_is_there_is_not_trained(files, toy, tmp_path):
    from attendo.bundle import build_model, save_bundle

    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
    model = build_model("transformer", sizes, toy.prepared.tokenizer)
    save_bundle(tmp_path / "known", model, toy.prepared.tokenizer)
    config = make_recipe(
        files, f'backward.folder="{tmp_path / "known"}"', mono_tgt=texts(files, "m.en")
    )
    assert "backward" not in names(config)
    assert BuildPlan(config).graph()["back-translate"].files["backward"] == tmp_path / "known"


def test_a_recipe_has_names_languages_and_paths_of_its_own(files, monkeypatch):
    (files / "r.toml").write_text(
        'src_lang = "ko"\ntgt_lang = "en"\n[[corpora]]\nsrc = "a.ko"\ntgt = "a.en"\n'
        '[[mono_tgt]]\ntext = "m.en"\n[[mono_src]]\ntext = "m.ko"\nname = "korean"\n'
        '[test]\nsrc = "t.ko"\ntgt = "t.en"\n',
        encoding="utf-8",
    )
    monkeypatch.chdir("/")
    config = load_recipe(files / "r.toml", {}, ["dev_size=5"])
    assert [corpus.name for corpus in config.corpora] == ["a"]
    assert [(text.name, text.lang) for text in config.mono_tgt] == [("m", "en")]
    assert [(text.name, text.lang) for text in config.mono_src] == [("korean", "ko")]
    assert config.resolved_size == "tiny"
    clean = BuildPlan(config).graph()["clean"]
    assert set(clean.files) >= {"a.src", "a.tgt", "m.text", "exclude.0", "exclude.1"}
    assert all(path.is_file() for path in clean.files.values())


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ({"corpora": []}, []),
        ({"tgt_lang": ""}, []),
        ({"tgt_lang": "ko"}, []),
        ({}, ["forward_translation.n_best=9"]),
        ({}, ["student.modle.d_model=4", "techer.x=1"]),
        ({}, ["student.model.d_modle=4"]),
        ({}, ["teacher.train.max_stepz=4"]),
        ({}, ["student.data.tokenizer.vocab_size=none"]),
        ({"mono_tgt": [{"text": "x", "name": "n"}, {"text": "y", "name": "n"}]}, []),
        ({"mono_tgt": [{"text": "x", "name": "dev"}]}, []),
    ],
)
def test_a_recipe_that_cannot_be_built_is_rejected(files, given, settings):
    with pytest.raises(ConfigError):
        BuildPlan(make_recipe(files, *settings, **given)).graph()


def test_students_are_narrow_and_teachers_deep():
    for size in SIZES.values():
        assert size.teacher["num_layers"] > size.teacher["num_decoder_layers"]
        assert size.student["num_decoder_layers"] <= 2
        assert relative_cost(size.student) < 0.6 * relative_cost(size.teacher)
    assert relative_cost({"preset": "base"}) == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("name", ["ko-en", "en-ko"])
def test_the_shipped_recipes_are_whole_and_their_students_small(repository, name):
    from attendo.model.transformer import Transformer
    from attendo.tasks.config import RunConfig

    config = load_recipe(repository / "configs/build" / f"{name}.toml", {})
    graph = BuildPlan(config).graph()
    assert (config.src_lang, config.tgt_lang) == tuple(name.split("-"))
    for step in graph.steps:
        if "model" not in (step.settings or ()) or not step.settings["model"]:
            continue
        settings = step.settings
        data = {**settings["data"], "corpora": [{"src": "a", "tgt": "b"}]}
        RunConfig(data=data, model=settings["model"], train=settings["train"])
        assert step.work.amount / config.rates.train_tokens_per_second < 500  # of 600 seconds
    student = graph["student"].settings
    options = RunConfig(data=data, model=student["model"], train=student["train"]).model.options
    vocab_size = student["data"]["tokenizer"]["vocab_size"]
    assert Transformer(vocab_size=vocab_size, **options).num_parameters() < 25e6
    licenses = {data.name: data.license for data in config.card.data}
    assert set(licenses) >= {corpus.name for corpus in config.corpora} | {
        text.name for text in (*config.mono_src, *config.mono_tgt)
    }
    if any("SA" in one for one in licenses.values()):  # MDN, KorSTS: share alike
        assert config.card.license.startswith("CC BY-SA 4.0")
    assert not any("debian" in str(path) for corpus in config.corpora for path in corpus.paths)


def test_cleaning_is_the_same_for_both_directions(files):
    given = {
        "corpora": [{"name": "a", "src": str(files / "a.ko"), "tgt": str(files / "a.en")}],
        "mono_tgt": texts(files, "m.en"),
        "mono_src": [{"text": str(files / "m.ko"), "name": "korean"}],
        "test": {"src": str(files / "t.ko"), "tgt": str(files / "t.en")},
    }
    other = {
        "corpora": [{"name": "a", "src": str(files / "a.en"), "tgt": str(files / "a.ko")}],
        "mono_tgt": [{"text": str(files / "m.ko"), "name": "korean"}],
        "mono_src": texts(files, "m.en"),
        "test": {"src": str(files / "t.en"), "tgt": str(files / "t.ko")},
    }
    one = BuildPlan(make_recipe(files, **given)).graph()["clean"]
    two = BuildPlan(make_recipe(files, src_lang="en", tgt_lang="ko", **other)).graph()["clean"]
    assert one.settings == two.settings
    assert one.files == two.files
    assert set(one.outputs) == set(two.outputs)


def test_a_teacher_can_start_from_the_forward_model(files):
    config = make_recipe(files, "filter.enabled=false", 'teacher.init_from="forward"')
    assert names(config)[:3] == ["clean", "forward", "teacher"]
    _, (command,) = commands_of(config, "teacher", files)
    words = list(command.run)
    assert words[words.index("--init-from") + 1].endswith("forward")
    with pytest.raises(ConfigError, match="init_from"):
        make_recipe(files, 'teacher.init_from="forward"', "teacher.model.num_layers=3")


def test_empty_translations_are_an_error(files):
    (files / "a.src").write_text("하나\n둘\n", encoding="utf-8")
    (files / "text.out").write_text("\n\n", encoding="utf-8")
    command = split_command(StepPaths(files, {}), "text", [files / "a.src"], [files / "out"])
    with pytest.raises(InputError, match="empty"):
        command.run()
    assert not (files / "out").exists()
