"""The track from an empty file: every step fails on its stub, passes with its solution."""

from __future__ import annotations

import ast
import json
from importlib.resources import files
from types import SimpleNamespace

import pytest
import torch

from attendo import Transformer
from attendo.cli import lessons_build
from attendo.core.errors import InputError
from attendo.lessons.blocks import LANGUAGES
from attendo.lessons.contents import NUMBERS
from attendo.lessons.prose import load_fragments
from attendo.lessons.render.track_page import write_track_page
from attendo.lessons.track import finished
from attendo.lessons.track.check_file import CHECKS, check_file, main
from attendo.lessons.track.comparison import CheckError, compare, describe
from attendo.lessons.track.folder import TrackFolder, write_readme
from attendo.lessons.track.model_checks import weights_of
from attendo.lessons.track.run_checks import read_report, run_checks
from attendo.lessons.track.steps import STEPS, begin_file, finished_source, imports, last_step

FAST = [step for step in STEPS if step.number < 10]


def file_of(*parts):
    return "\n\n\n".join([imports(), *parts]) + "\n"


def solutions(until):
    return [step.solution for step in STEPS[:until]]


def write(path, *parts):
    path.write_text(file_of(*parts), encoding="utf-8")
    return path


def finished_without(name, **changed):
    """The finished module with other definitions."""
    own = {key: getattr(finished, key) for key in vars(finished) if not key.startswith("__")}
    return SimpleNamespace(**{**own, **changed})


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.names[0])
def test_every_step_fails_on_its_stub(step, tmp_path):
    path = write(tmp_path / "mine.py", *solutions(step.number - 1), step.stub)
    results = [one for one in check_file(path) if one["step"] == step.number]
    assert len(results) == len(CHECKS[step.number])
    assert all("NotImplementedError" in one["reason"]["en"] for one in results)


def test_every_step_passes_with_its_solution(tmp_path):
    path = write(tmp_path / "mine.py", *solutions(len(STEPS)))
    results = check_file(path)
    assert not [one for one in results if one["reason"]]
    assert [one["check"] for one in results] == [
        check.name for step in STEPS for check in CHECKS[step.number]
    ]


def test_the_steps_are_the_whole_finished_file():
    names = [name for step in STEPS for name in step.names]
    definitions = [
        one.name
        for one in ast.parse(finished_source()).body
        if isinstance(one, ast.FunctionDef | ast.ClassDef)
    ]
    assert names == definitions
    assert 200 <= len(finished_source().splitlines()) <= 280
    assert {number for step in STEPS for number in step.lessons} <= set(NUMBERS)
    rebuilt = ast.parse(file_of(*solutions(len(STEPS))))
    assert [ast.dump(one) for one in rebuilt.body] == [
        ast.dump(one) for one in ast.parse(finished_source()).body[1:]
    ]


@torch.no_grad()
def test_the_finished_model_is_equal_to_ours_with_the_same_weights():
    ours = Transformer(40, d_model=32, d_ff=64, num_heads=4, num_layers=3).eval()
    theirs = finished.Transformer(40, 32, 64, 4, 3, 0.1).eval()
    theirs.load_state_dict(weights_of(ours))
    assert sum(one.numel() for one in theirs.parameters()) == ours.num_parameters()
    generator = torch.Generator().manual_seed(3)
    src_ids, tgt_ids = (torch.randint(1, 40, (5, 9), generator=generator) for _ in range(2))
    src_ids[0, 6:] = tgt_ids[1, 5:] = 0
    torch.testing.assert_close(theirs(src_ids, tgt_ids), ours(src_ids, tgt_ids))
    states = ours.start(ours.encode(src_ids))
    ids, written = torch.full((5,), 1), []
    for _ in range(6):
        logits, states = ours.step(ids, states)
        ids = logits.argmax(-1)
        written.append(ids)
    # Padding that a model writes is hidden by the finished file, and not by a cached step.
    found = finished.greedy(theirs, src_ids, 1, 6)
    rows = ~(found == 0).any(dim=1)
    assert bool(rows.any())
    assert torch.equal(found[rows], torch.stack(written, 1)[rows])


ATTENTION = STEPS[0].solution
CAUSAL = STEPS[1].solution
HEADS = STEPS[2].solution
MISTAKES = [
    (1, ATTENTION, " / math.sqrt(query.size(-1))", "", "not-scaled"),
    (1, ATTENTION, "math.sqrt(query.size(-1))", "query.size(-1)", "scaled-by-size"),
    (1, ATTENTION, "dim=-1", "dim=-2", "softmax-axis"),
    (1, ATTENTION, "weights @ value, weights", "weights, weights @ value", "outputs-exchanged"),
    (1, ATTENTION, "(~mask,", "(mask,", "mask-reversed"),
    (1, ATTENTION, "mask is not None", "False", "mask-ignored"),
    (1, ATTENTION, "torch.finfo(scores.dtype).min", "0.0", "mask-zero-scores"),
    (2, CAUSAL, "ids.ne(", "ids.eq(", "mask-sense"),
    (2, CAUSAL, ".unsqueeze(1)", "", "mask-axis"),
    (2, CAUSAL, ".tril()", ".triu()", "mask-past"),
    (2, CAUSAL, ".tril()", ".tril(-1)", "mask-itself"),
    (2, CAUSAL, ".tril()", ".triu(1)", "mask-sense"),
    (2, CAUSAL, ", dtype=torch.bool", "", "mask-numbers"),
    (3, HEADS, "-1).transpose(1, 2)", "-1).view(batch, self.num_heads, length, -1)",
     "split-without-transpose"),
    (3, HEADS, "heads.transpose(1, 2).flatten(2)", "heads.reshape(query.shape)",
     "merged-without-transpose"),
    (3, HEADS, "self.output(heads.transpose(1, 2).flatten(2))", "heads.transpose(1, 2).flatten(2)",
     "no-output-projection"),
    (4, STEPS[3].solution, "torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)",
     "torch.cat((angles.sin(), angles.cos()), dim=1)", "position-halves"),
    (4, STEPS[3].solution, "torch.arange(length,", "torch.arange(1, length + 1,",
     "position-from-one"),
    (5, STEPS[4].solution, ".relu()", "", "no-relu"),
    (6, STEPS[5].solution, "self.weight[ids] * math.sqrt(self.weight.size(1))",
     "self.weight[ids]", "embedding-not-scaled"),
    (7, STEPS[6].solution, "self.norm(x + self.dropout(transformed))",
     "x + self.norm(transformed)", "norm-before-sum"),
    (7, STEPS[6].solution, "x + self.dropout(transformed)", "transformed", "no-residual"),
    (7, STEPS[6].solution, "x + self.dropout(transformed)", "self.dropout(x + transformed)",
     "dropout-of-sum"),
    (8, STEPS[7].solution, "(x, x, x, mask)", "(x, x, x)", "mask-ignored"),
    (9, STEPS[8].solution, " & causal_mask(x.size(1))", "", "no-look-ahead"),
    (9, STEPS[8].solution, "(x, memory, memory, cross_mask)", "(x, memory, memory)",
     "cross-mask-ignored"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("number", "solution", "right", "wrong", "mistake"), MISTAKES, ids=lambda one: str(one)[:24]
)
def test_a_typical_mistake_is_named(number, solution, right, wrong, mistake, tmp_path):
    assert right in solution
    changed = solution.replace(right, wrong)
    path = write(tmp_path / "mine.py", *solutions(number - 1), changed)
    reasons = [one["reason"] for one in check_file(path) if one["reason"]]
    expected = lessons_build.prose(f"mistake-{mistake}")
    assert {"en": expected.en, "ko": expected.ko} in reasons


def test_every_mistake_with_a_text_is_looked_for():
    folder = files("attendo.lessons.track")
    sources = "".join(
        (folder / f"{name}_checks.py").read_text(encoding="utf-8")
        for name in ("attention", "layer", "model")
    )
    for name in load_fragments("attendo.lessons.track", "en"):
        if name.startswith("mistake-"):
            assert f'"{name.removeprefix("mistake-")}"' in sources, name


LOSS_MISTAKES = {
    "loss-sum": lambda loss, valid: loss[valid].sum(),
    "loss-of-padding": lambda loss, _: loss.mean(),
    "loss-divided-by-all": lambda loss, valid: loss[valid].sum() / loss.numel(),
    "loss-sign": lambda loss, valid: -loss[valid].mean(),
}


@pytest.mark.parametrize("mistake", LOSS_MISTAKES)
def test_a_mistake_of_the_loss_is_named(mistake):
    def smoothed_loss(logits, labels, smoothing, pad_id=0):
        log_probs = logits.log_softmax(-1)
        of_label = log_probs.gather(-1, labels[..., None]).squeeze(-1)
        loss = -(1 - smoothing) * of_label - smoothing * log_probs.mean(-1)
        return LOSS_MISTAKES[mistake](loss, labels != pad_id)

    (check,) = (one for one in CHECKS[10] if one.name == "loss")
    module = finished_without("smoothed_loss", smoothed_loss=smoothed_loss)
    with pytest.raises(CheckError) as failed:
        check.run(module)
    assert failed.value.reason == lessons_build.prose(f"mistake-{mistake}")
    assert failed.value.expected
    assert failed.value.found


def test_shared_layers_and_names_of_weights_are_reported():
    class Shared(finished.Encoder):
        def __init__(self, d_model, d_ff, num_heads, num_layers, dropout):
            super().__init__(d_model, d_ff, num_heads, 1, dropout)
            self.layers = torch.nn.ModuleList([self.layers[0]] * num_layers)

    shared = next(one for one in CHECKS[8] if one.name == "layers-of-their-own")
    with pytest.raises(CheckError, match="same layer"):
        shared.run(finished_without("Encoder", Encoder=Shared))

    class Renamed(finished.FeedForward):
        def __init__(self, d_model, d_ff):
            super().__init__(d_model, d_ff)
            self.first = self.inner
            del self.inner

    with pytest.raises(CheckError, match=r"missing: inner\.bias, inner\.weight"):
        CHECKS[5][0].run(finished_without("FeedForward", FeedForward=Renamed))


def test_shapes_types_and_numbers_are_reported():
    with pytest.raises(CheckError, match=r"should be \(2, 3\) and is \(3, 2\)"):
        compare(torch.ones(3, 2), torch.ones(2, 3))
    with pytest.raises(CheckError, match="NoneType, not a tensor"):
        compare(None, torch.ones(1))
    with pytest.raises(CheckError) as failed:
        compare(torch.tensor([[0.5, 2.0]]), torch.tensor([[0.5, 1.25]]))
    assert (failed.value.expected, failed.value.found) == (
        "(1, 2) [[0.5, 1.25]]",
        "(1, 2) [[0.5, 2]]",
    )
    assert describe(torch.tensor([True, False])) == "(2,) [True, False]"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def scaled_dot_product(query:\n", "SyntaxError"),
        ("def scaled_dot_product(*_):\n    return 1 / 0\n", "line 2 (return 1 / 0)"),
        ("def scaled_dot_product(*_):\n    pass\n\nraise SystemExit\n", "SystemExit"),
        ("def padding_mask(*_):\n    pass\n", "Not defined in the file: scaled_dot_product"),
    ],
)
def test_errors_are_results(text, reason, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(text, encoding="utf-8")
    assert reason in check_file(path)[0]["reason"]["en"]


def test_an_endless_loop_is_ended(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text("def scaled_dot_product():\n    pass\n\nwhile True:\n    pass\n")
    report = run_checks(path, time_limit=0.5)
    assert not report.passes
    assert "does not end" in report.results[0].reason.en


def run_here(path):
    """Check in this process: a new one takes seconds to import PyTorch."""
    return read_report(json.loads(json.dumps(check_file(path))))


@pytest.fixture
def build(tmp_path, monkeypatch, capsys):
    """Run the command on a folder, and return whether it succeeded and what it printed."""
    monkeypatch.setattr(lessons_build, "run_checks", run_here)

    def run(lang="en", **options):
        given = {"num_hints": 0, "has_solution": False, **options}
        is_done = lessons_build.build_track(tmp_path / "track", lang, **given)
        return is_done, capsys.readouterr().out

    run.file = tmp_path / "track" / "my_transformer.py"
    return run


def test_the_track_grows_by_what_is_passed_and_changes_nothing(build):
    is_done, shown = build()
    assert is_done
    assert "step 1" in shown
    assert last_step(build.file.read_text()) == 1
    before = build.file.read_text()
    is_done, shown = build()
    assert not is_done
    assert "✗ 1. Scaled dot-product attention" in shown
    assert build.file.read_text() == before

    written = "# my own comment\n" + before.replace(STEPS[0].stub, STEPS[0].solution)
    build.file.write_text(written)
    is_done, shown = build("ko")
    assert is_done
    assert "✓ 1." in shown
    text = build.file.read_text()
    assert text.startswith(written)
    assert last_step(text) == 2
    assert "10단계 가운데 2단계" in text
    assert not build()[0]  # and step 2 is not there twice
    assert build.file.read_text() == text


def test_the_last_step_ends_the_track(build):
    build()
    build.file.write_text(file_of(*solutions(len(STEPS))))
    before = build.file.read_text()
    is_done, shown = build()
    assert is_done
    assert "All ten steps pass" in shown
    assert build.file.read_text() == before


def test_hints_get_clearer_and_the_solution_is_that_of_the_step(build):
    build()
    first, second = (build(num_hints=count)[1] for count in (1, 2))
    assert first != second
    assert build(num_hints=9)[1] == second
    _, shown = build(has_solution=True)
    assert STEPS[0].solution in shown
    compile(shown, "solution", "exec")


def test_an_emptied_file_gets_the_first_step_again(build):
    build()
    build.file.write_text("")
    assert not build()[0]
    assert last_step(build.file.read_text()) == 1
    build.file.write_bytes(b"\xff")
    with pytest.raises(InputError, match="not UTF-8"):
        build()


def test_a_readme_is_not_overwritten(tmp_path):
    (tmp_path / "README.md").write_text("mine")
    TrackFolder(tmp_path).create("en")
    assert (tmp_path / "README.md").read_text() == "mine"


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_texts_are_in_both_languages(lang):
    readme, page = write_readme(lang), write_track_page(lang)
    for step in STEPS:
        assert step.title.localize(lang) in readme
        assert f"## {step.number}. {step.title.localize(lang)}" in page
        assert step.stub in page
    assert page.count('??? question "') == sum(1 + step.num_hints for step in STEPS)
    assert all(len(line) <= 100 for line in begin_file(lang).splitlines())


def test_the_process_writes_its_results(tmp_path):
    path = write(tmp_path / "mine.py", STEPS[0].solution)
    main([str(path), str(tmp_path / "result.json")])
    report = read_report(json.loads((tmp_path / "result.json").read_text()))
    assert report.passes
    assert report.step == 1
