"""What a user who reads only Korean sees: make, quickstart, inspection, server, every lesson.

Every line that is met there is searched for a run of English words. The same search must find the
English of the same way, or it would find nothing in Korean either.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import socket
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from typing import TYPE_CHECKING, NamedTuple

import pytest

import attendo.tasks.translation.quickstart as quickstart_module
from attendo.cli import main
from attendo.i18n.messages import translate_error
from attendo.lessons.chapters.ch14_decoding.beam_steps import CORPUS
from attendo.lessons.chapters.ch16_subwords.lesson import CORPUS as SUBWORD_CORPUS
from attendo.lessons.chapters.ch18_judging.lesson import (
    NEGATED_REFERENCE,
    PAIRS,
    REFERENCE,
    RIGHT_TRANSLATIONS,
)
from attendo.lessons.chapters.ch18_judging.small_test_set import make_test_set
from attendo.lessons.chapters.ch19_relatives.tiny_relatives import CORPUS as RELATIVES_CORPUS
from attendo.lessons.contents import NUMBERS
from attendo.lessons.excerpts.by_lesson import build_code
from attendo.synthetic.everyday import LESSON_PAIRS, synthesize_splits
from attendo.training.signals import TrainingInterrupted

if TYPE_CHECKING:
    from pathlib import Path

LANGUAGES = ("ko", "en")
VERBS = ("quickstart", "look", "lessons", "serve")
TYPERS_OWN = "Show this message and exit."
LONGEST_RUN = 2
"""English words in a row that may be a name."""
EXAMPLES = {
    word.casefold()
    for sentence in (
        *(pair.en for pair in LESSON_PAIRS),
        *CORPUS,
        *RELATIVES_CORPUS,
        SUBWORD_CORPUS,
        "lo w e r est",  # pieces of it
        "thanks",
        "This is my car",
    )
    for word in re.findall(r"[A-Za-z']+", sentence)
}
"""Words of the English sentences that lessons and the quickstart translate."""
NOT_PROSE = re.compile(
    r"^\s*(?:attendo|pip|make|export) .*|\battendo [a-z]+ [a-z]+"  # a command
    r"|`[^`]*`|“[^”]*”|'[^']*'|\"[^\"]*\""  # what is quoted
    r"|\([^()]*\)|\[[^\[\]]*\]"  # the term next to its Korean, choices, defaults
    r"|\S*[/_=\\.<>|:-]\S*[^\s,;.:]",  # paths, options, code
)
WORDS = re.compile(r"[A-Za-z][a-z']+(?: [A-Za-z]?[a-z']+)+")  # commas part the names of a list
SMALL = {
    "model": {"preset": "tiny", "num_layers": 1, "d_model": 16, "d_ff": 32, "num_heads": 2},
    "train": {"max_steps": 4, "batch_tokens": 512, "warmup_steps": 20, "save_every": 2,
              "validate_every": 2, "average_checkpoints": 2, "bleu_sentences": 2, "log_every": 2},
}  # fmt: skip


def find_english(text: str) -> list[str]:
    """Return the runs of English words that are neither names nor code nor examples."""
    lines = text.replace(TYPERS_OWN, "").splitlines()
    columns = [part for line in lines for part in re.split(r"\s{2,}|│", NOT_PROSE.sub(" | ", line))]
    runs = [run for column in columns for run in WORDS.findall(column)]
    return [
        run
        for run in runs
        if sum(word not in EXAMPLES for word in run.casefold().split()) > LONGEST_RUN
    ]


def without_code(text: str, number: int) -> str:
    """Leave out the lines of the source that a lesson shows."""
    code = {
        line.strip() for block in build_code(number) for one in block.listings
        for line in one.text.splitlines()
    }  # fmt: skip
    kept = "\n".join(line for line in text.splitlines() if line.strip() not in code)
    for sentence in judged_sentences() if number == 18 else ():
        kept = kept.replace(sentence, "")
    return kept


def judged_sentences() -> list[str]:
    """Return the English translations that lesson 18 scores."""
    test_set = make_test_set()
    return [
        *RIGHT_TRANSLATIONS,
        REFERENCE,
        NEGATED_REFERENCE,
        *(pair.hypothesis for pair in PAIRS),
        *test_set.references,
        *test_set.outputs["A"],
    ]


def check(lang: str, text: str) -> None:
    """Hold a text against its language."""
    assert text.strip()
    if lang == "ko":
        assert find_english(text) == []
        assert re.search("[가-힣]", text)
    else:
        assert find_english(text)


class Reported(NamedTuple):
    code: int
    out: str
    errors: str


def attendo(*words: object) -> Reported:
    """Run the command in this process."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors), pytest.raises(SystemExit) as ended:
        main.run([str(word) for word in words])
    return Reported(int(ended.value.code or 0), out.getvalue(), errors.getvalue())


@pytest.fixture(params=LANGUAGES)
def lang(request, monkeypatch) -> str:
    """Speak a language, on wide paper."""
    monkeypatch.setenv("ATTENDO_LANG", request.param)
    monkeypatch.setenv("COLUMNS", "300")
    return request.param


@pytest.fixture
def elsewhere(tmp_path, monkeypatch) -> Path:
    """Work where nothing lies."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_english_is_found_and_names_are_not():
    for text in (
        "the web page was never built",
        "│ --lang   <str>  What it speaks and what it does not │",
        "오류: cannot listen on that port here",
    ):
        assert find_english(text), text
    for text in (
        "  attendo train --src my.ko --tgt my.en --out runs/my-model",
        "잔차 연결(residual connection as it is called) `model.add_and_norm of the layer`",
        "1       <sos> i am a student <eos>     0.99",
        "sacreBLEU nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0, 탐욕 탐색",
        "논문 3.2.1 · src/attendo/model/attention.py:32",
    ):
        assert not find_english(text), text


# --- make


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
@pytest.mark.parametrize("target", ["help", ".venv/.ready-plots,serve"])
def test_make_prints_messages_in_the_language(repository, tmp_path, lang, target):
    shutil.copy(repository / "Makefile", tmp_path)
    for name in ("constraints.txt", "pyproject.toml", "frontend/src/x", "frontend/plugins/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    command = ["make", "-C", str(tmp_path), "--no-print-directory", target]
    dry = [] if target == "help" else ["--dry-run"]
    done = subprocess.run([*command, *dry], capture_output=True, text=True, check=True)
    printed = re.findall(r'echo "([^"]*)"', done.stdout) if dry else done.stdout.splitlines()
    assert len(printed) > 3
    for line in printed if lang == "ko" else ():
        assert not find_english(re.sub(r"\$\(.*\)|^  make \w+", "", line))
        assert re.search("[가-힣]", line)
    assert lang == "ko" or not re.search("[가-힣]", done.stdout)


def test_every_message_of_make_has_both_languages(repository):
    text = (repository / "Makefile").read_text(encoding="utf-8")
    korean, english = (
        set(re.findall(r"^(MSG_\w+) :?= \S", block, flags=re.MULTILINE))
        for block in re.split(r"^else$", text.split("endif")[0], flags=re.MULTILINE)
    )
    assert korean == english
    reported = re.findall(r'echo "([^"]*)"', text)
    assert reported
    assert all(re.match(r"\s*\$\((MSG_\w+)\)", one) for one in reported), reported
    targets = re.findall(r"^[a-z]+:.*?## (.*)$", text, flags=re.MULTILINE)
    assert all(re.search(" ## .*[가-힣]", one) for one in targets), targets


# --- the command


@pytest.mark.parametrize("verb", VERBS)
def test_help(verb, lang):
    done = subprocess.run(
        [sys.executable, "-m", "attendo", verb, "--help"],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env={**os.environ, "NO_COLOR": "1", "TERM": "dumb"},
        check=True,
    )
    check(lang, done.stdout)


@pytest.mark.parametrize("words", [["--lang", "ko"], ["--lang=ko"]])
def test_the_option_alone_turns_the_help_and_the_errors(words):
    command = [sys.executable, "-m", "attendo", "lessons"]
    options = {"capture_output": True, "text": True, "encoding": "utf-8", "check": False}
    check("ko", subprocess.run([*command, *words, "--help"], **options).stdout)
    refused = subprocess.run([*command, "99", *words], **options)
    assert refused.returncode == 2
    assert refused.stderr.startswith("오류: 99번 강의는 없습니다\n  해결 방법: 있는 강의: 0, 1, 2,")


REFUSED = {
    "direction": ("quickstart", "--direction", "ko-fr"),
    "language": ("quickstart", "--lang", "kor"),
    "another run": ("quickstart", "--out", "full"),
    "no model": ("look", "nothing", "나는 학생이다."),
    "page exists": ("look", "nothing", "나는 학생이다.", "-o", "there.html"),
    "page in no folder": ("look", "nothing", "나는 학생이다.", "-o", "no/there.html"),
    "page has a long name": ("look", "nothing", "나는 학생이다.", "-o", f"{'x' * 300}.html"),
    "no lesson": ("lessons", 99),
    "inputs": ("lessons", 4, "--set", "scale=maybe", "--set", "w=1", "--set", "x=[[1]]"),
    "input is no pair": ("lessons", 4, "--set", "scale"),
    "answer": ("lessons", 4, "--answer", "one=4"),
    "question": ("lessons", 4, "--answer", "9=4"),
    "lesson's model": ("lessons", 4, "--model", "nothing"),
    "served model": ("serve", "nothing"),
    "served runs": ("serve", "model", "--runs", "nothing"),
    "setting": ("serve", "model", "--set", "max_character=3", "--set", "port=70000"),
    "damaged": ("serve", "model", "--port", "0"),
}


@pytest.fixture
def littered(elsewhere) -> Path:
    """Work where a page, a damaged model and somebody's own files lie."""
    (elsewhere / "there.html").touch()
    (elsewhere / "full/ko-en").mkdir(parents=True)
    (elsewhere / "full/ko-en/mine.txt").touch()
    (elsewhere / "model").mkdir()
    (elsewhere / "model/bundle.json").write_text("{}", encoding="utf-8")
    return elsewhere


@pytest.mark.parametrize("words", REFUSED.values(), ids=REFUSED)
def test_invalid_settings_are_rejected(littered, words, monkeypatch):
    monkeypatch.setenv("ATTENDO_LANG", "ko")
    reported = attendo(*words)
    assert reported.code == 2
    check("ko", reported.errors)
    assert reported.errors.startswith("오류: ")
    assert ("\n  해결 방법: " in reported.errors) or "\n  - " in reported.errors
    assert "hint" not in reported.errors


def test_the_search_finds_what_is_rejected_in_english(littered):
    reported = {name: attendo(*words).errors for name, words in REFUSED.items()}
    assert all(text.startswith("error: ") for text in reported.values())
    found = [name for name, text in reported.items() if find_english(text)]
    assert 3 * len(found) > 2 * len(reported), sorted(
        set(reported) - set(found)
    )  # some have no sentence


def test_a_port_that_is_taken(littered, lang):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        reported = attendo("serve", "model", "--port", taken.getsockname()[1])
    assert reported.code == 2
    check(lang, reported.errors)


def test_an_extra_that_is_not_installed(littered, lang, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    reported = attendo("serve", "model")
    assert reported.code == 2
    assert "pip install 'attendo[serve]'" in reported.errors
    if lang == "ko":
        check(lang, reported.errors)


def test_a_run_that_is_stopped():
    reported = translate_error(TrainingInterrupted(300, 2), "ko")
    check("ko", reported)
    assert "300스텝" in reported


def test_messages_of_the_server_at_the_start(littered, lang, monkeypatch):
    import attendo.serving.server as server

    def run(_, *, on_ready, warnings):
        print(*warnings, file=sys.stderr)
        on_ready("http://127.0.0.1:1")

    monkeypatch.setattr(server, "run", run)
    reported = attendo("serve", "model", "--host", "0.0.0.0")  # noqa: S104
    assert reported.code == 0
    assert re.fullmatch(r"http://127\.0\.0\.1:1  \(.+\)\n", reported.out)
    check(lang, reported.errors)
    assert ("준비에" in reported.out) is (lang == "ko")


# --- the lessons


def test_the_list_of_lessons(lang):
    check(lang, attendo("lessons").out)


@pytest.mark.parametrize("number", NUMBERS)
def test_a_lesson_with_its_answers(elsewhere, number, monkeypatch):
    monkeypatch.setenv("ATTENDO_LANG", "ko")
    monkeypatch.setenv("COLUMNS", "300")
    reported = attendo("lessons", number, "--answers")
    assert reported.code == 0
    check("ko", without_code(reported.out + reported.errors, number))


# --- the quickstart and what it leads to


@pytest.fixture(scope="module", params=LANGUAGES)
def started(request, tmp_path_factory):
    """Run a tiny quickstart; give its language, its folder and what it said."""
    folder = tmp_path_factory.mktemp("quickstart")

    def cut(*, train: int):
        parts = synthesize_splits(train=train)
        return parts._replace(dev=parts.dev[:20], test=parts.test[:4])

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("ATTENDO_LANG", request.param)
        patch.setenv("ATTENDO_CACHE", str(folder / "cache"))
        patch.setenv("COLUMNS", "300")
        patch.setattr(quickstart_module, "SETTINGS", SMALL)
        patch.setattr(quickstart_module, "NUM_TRAIN", 3000)
        patch.setattr(quickstart_module, "synthesize_splits", cut)
        first, second = attendo("quickstart"), attendo("quickstart")
        yield request.param, folder, first, second


def test_the_quickstart(started):
    lang, folder, first, second = started
    assert (first.code, second.code) == (0, 0), first.errors + second.errors
    head = "원문" if lang == "ko" else "source"
    for reported in (first, second):
        before, _, after = reported.out.partition(f"\n{head}")
        check(lang, before + reported.errors)
        check(lang, after.partition("\n\n")[2])  # the table's translations are English
    assert (folder / "runs/quickstart/ko-en/model/bundle.json").is_file()
    assert "다시 하려면" in second.out or lang == "en"


def test_looking_inside(started, tmp_path):
    lang, folder, *_ = started
    model = folder / "runs/quickstart/ko-en"
    page = tmp_path / "look.json"
    reported = attendo("look", model, "나는 학생이다. 너는 누구니?", "-o", page)
    assert reported.code == 0
    assert ("원문: 2문장을 한꺼번에" in reported.errors) is (lang == "ko")  # a warning
    assert ("기록만 적었습니다" in reported.errors) is (lang == "ko")
    for words in (("", "-o", tmp_path / "other.json"), ("가", "-o", page)):
        refused = attendo("look", model, *words)
        assert refused.code == 2
        if lang == "ko":
            check(lang, refused.errors)


def test_pictures_without_the_extra(started, tmp_path, monkeypatch):
    lang, folder, *_ = started
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    model, page = folder / "runs/quickstart/ko-en", tmp_path / "look.json"
    reported = attendo("look", model, "가", "-o", page, "--pictures", tmp_path / "pictures")
    assert reported.code == 2
    assert "pip install 'attendo[plots]'" in reported.errors
    if lang == "ko":
        check(lang, reported.errors)


@pytest.mark.parametrize("number", [1, 4, 9, 13, 15])
def test_a_lesson_on_a_model_of_the_user(started, number):
    lang, folder, *_ = started
    reported = attendo("lessons", number, "--model", folder / "runs/quickstart/ko-en")
    assert reported.code == 0
    head = "여러분의 모델에서" if lang == "ko" else "On your own model"
    check(lang, reported.out.partition(f"\n{head}\n")[2])
