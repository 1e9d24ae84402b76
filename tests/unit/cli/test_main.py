from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import attendo
from attendo.cli import doctor as doctor_module
from attendo.cli import main
from attendo.core.errors import InputError
from attendo.core.hardware import Requirement, inspect_system


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"}
    return subprocess.run(
        [sys.executable, "-m", "attendo", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=environment,
        timeout=600,
        check=False,
    )


def test_version():
    for flag in ("--version", "-V"):
        done = run(flag)
        assert (done.returncode, done.stdout) == (0, f"attendo {attendo.__version__}\n")


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], []])
def test_help_lists_every_verb(arguments):
    done = run(*arguments)
    assert done.returncode == (0 if arguments else 2)
    for verb, summary in main.VERB_HELP.items():
        assert verb in done.stdout
        assert summary.split()[0] in done.stdout


@pytest.mark.parametrize("verb", main.VERB_HELP)
def test_each_verb_has_the_help_that_the_list_shows(verb):
    assert main.load_verb(verb).__doc__.splitlines()[0] == main.VERB_HELP[verb]
    assert run(verb, "--help").returncode == 0


def test_unknown_verb_names_the_nearest():
    done = run("docter")
    assert done.returncode == 2
    assert "doctor" in done.stderr


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["doctor"], ["doctor", "--json"]])
def test_no_tensor_library_is_loaded_where_none_is_needed(arguments):
    code = (
        "import sys\nfrom attendo.cli.main import run\n"
        f"try: run({arguments!r})\n"
        "except SystemExit: pass\n"
        "assert not {'torch', 'numpy'} & set(sys.modules), 'heavy import'\n"
        "assert ('attendo.cli.doctor' in sys.modules) == ('doctor' in sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_importing_attendo_loads_no_tensor_library():
    code = "import attendo, sys; attendo.__version__; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_errors_of_ours_are_printed_without_a_traceback(monkeypatch, capsys):
    def broken() -> None:
        raise InputError("the file is empty", hint="give a line")

    monkeypatch.setattr(main, "load_verb", lambda _: broken)
    with pytest.raises(SystemExit) as caught:
        main.run(["doctor"])
    assert caught.value.code == 2
    assert capsys.readouterr().err == "error: the file is empty\n  hint: give a line\n"


def test_other_errors_are_not_hidden(monkeypatch):
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(main, "load_verb", lambda _: broken)
    with pytest.raises(ZeroDivisionError):
        main.run(["doctor"])


def test_doctor_shows_machine_versions_and_extras():
    done = run("doctor")
    assert done.returncode == 0
    for word in ("python", "cpu", "memory", "gpu", "threads", "torch 2.", "extra plots"):
        assert word in done.stdout


def test_doctor_prints_json():
    facts = json.loads(run("doctor", "--json").stdout)
    assert facts["attendo"] == attendo.__version__
    assert facts["needed"]["torch"]
    pyproject = Path(__file__).parents[3] / "pyproject.toml"
    project = tomllib.loads(pyproject.read_text("utf-8"))["project"]
    assert set(facts["extras"]) == set(project["optional-dependencies"]) - {"all"}
    assert facts["tensors"] is None


def test_doctor_checks_tensors():
    facts = json.loads(run("doctor", "--json", "--tensors").stdout)
    assert "largest difference" in facts["tensors"]["fused = explicit"]


def test_doctor_names_a_hint_for_what_is_wrong():
    machine = inspect_system()._replace(
        cores=2,
        threads="16",
        memory_gib=1.0,
        free_disk_gib=0.5,
        compiler=None,
        gpus=[],
        needed=[Requirement("torch", None)],
    )
    findings = doctor_module.find_problems(machine)
    assert len(findings) == 5
    assert all(finding.hint for finding in findings)
    healthy = machine._replace(
        threads=None, memory_gib=8.0, free_disk_gib=50.0, compiler="g++", needed=[]
    )
    assert doctor_module.find_problems(healthy) == []
