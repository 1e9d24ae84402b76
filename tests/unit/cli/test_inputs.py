"""A mistyped name is reported before a tensor library is imported, which takes seconds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

import attendo
from attendo.cli import bench, inputs
from attendo.cli.main import VERB_HELP
from attendo.core.errors import ConfigError, InputError

MISTAKES = [
    "train --src nothing --tgt a --out r",
    "train --src a --tgt a --dev-src nothing --dev-tgt a --out r",
    "train --init-from nothing --src a --tgt a --out r",
    "train --path nothing.tsv --out r",
    "train --series nothing.csv --targets x --out r",
    "train nothing.toml --out r",
    "train --src a --tgt a",
    "train --src a --tgt a --out r --unknown x",
    "train --src a --tgt a --out r --set trian.seed=1",
    "train --src a --tgt a --out r --set train.seed=x",
    "train --src a --tgt a --out r --set data.tokenizer=bpe",
    "train --src a --tgt a --out r --model rnn-atention",
    "train --src a --tgt a --out r --model rnn-attention --set model.cell=x",
    "train --src a --tgt a --out r --preset bsae",
    "train --src a --tgt a --out r --quality x",
    "train --src a --tgt a --out r --device gpu",
    "train --src a --tgt a --out r --src-lang Frensh",
    "train --src a --tgt a --out a",
    "train --src a --tgt a --out foreign",
    "train --src a --tgt a --out foreign --force",
    "train --path a --out r",
    "train --path b.csv --src-field en --tgt-field frr --out r",
    "train --text a --out r",
    "train a --out r",
    "check --src nothing --tgt a",
    "check --path b.csv --src-field en --tgt-field frr",
    "check --src a --tgt a --set data.seed=1",
    "clean",
    "clean --src a --out r",
    "clean --src nothing --tgt a --out r",
    "clean --src a --tgt a --keep 0.5 --out r",
    "build",
    "build nothing.toml",
    "build --src a --tgt a",
    "build --src a --tgt a --src-lang ko --tgt-lang ko",
    "build --src a --tgt a --src-lang ko --tgt-lang en --set student.model.d_modle=4",
    "build --src a --tgt a --src-lang ko --tgt-lang en --only nothing",
    "build --src a --tgt a --src-lang ko --tgt-lang en --force",
    "build --src nothing --tgt a --src-lang ko --tgt-lang en",
    "score nothing --src a --tgt a -o x",
    "score empty --src a --tgt a -o x",
    "score model --src nothing --tgt a -o x",
    "translate nothing x",
    "translate empty x",
    "translate empty x --engine foo",
    "translate empty x --split foo",
    "translate model x --device gpu",
    "translate model -i nothing",
    "translate model x --glossary nothing",
    "translate model x --set beam=3",
    "translate model x --ensemble nothing",
    "evaluate nothing --ref a --src a",
    "evaluate --ref nothing --outputs a",
    "evaluate --ref a --outputs a --against nothing",
    "evaluate --ref a --outputs a --measure blue",
    "evaluate model --src a --ref a --measure blue",
    "evaluate model --src a --ref a --device gpu",
    "generate nothing x",
    "fill nothing x",
    "forecast nothing a",
    "forecast model nothing",
    "look nothing x",
    "look model x --output no/folder.html",
    "serve nothing",
    "serve model --set max_beam=x",
    "import nothing -o x",
    "import hf:nothing -o x",
    "export nothing --to onnx -o x",
    "export model --to onxn -o x",
    "export model --to onnx -o x --sentences nothing",
    "bench trian",
    "bench --size hgue",
    "lessons 99",
    "lessons 4 --model nothing",
    "synthesize nothing -o x",
    "corpus nothing",
    "quickstart --direction xx",
    "adapt nothing --corrections b.csv --out x",
    "calibrate nothing --path b.csv",
    "calibrate empty --path b.csv",
    "doctor nothing",
    "finish nothing",
    "finish empty",
    "finish foreign",
    "runs nothing",
]
CODE = """
import sys
from attendo.cli.main import run

for line in sys.argv[1:]:
    try:
        run(line.split())
    except SystemExit as error:
        outcome = error.code
    if "torch" in sys.modules:
        outcome = "torch"
    print(outcome, line, sep="|")
    if outcome == "torch":
        break
"""


def test_no_tensor_library_is_loaded_to_report_a_mistake(tmp_path):
    assert {line.split()[0] for line in MISTAKES} == {*VERB_HELP}
    (tmp_path / "a").write_text("one line\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("en,fr\nHi.,Salut.\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "config.json").write_text('{"model_type": "bart"}', encoding="utf-8")
    (tmp_path / "model").mkdir()
    index = {"format_version": 2, "kind": "transformer", "config": {}, "about": {}}
    (tmp_path / "model" / "bundle.json").write_text(json.dumps(index), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", CODE, *MISTAKES],
        capture_output=True,
        text=True,
        encoding="utf-8",
        stdin=subprocess.DEVNULL,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(Path(attendo.__file__).parents[1])},
        check=True,
        timeout=600,
    )
    assert [line for line in done.stdout.splitlines() if "|" in line] == [
        f"2|{line}" for line in MISTAKES
    ], done.stderr


def test_the_choices_are_those_of_the_options():
    from attendo.bench.config import SIZES
    from attendo.translator.backends.base import EngineName, NativePrecision
    from attendo.translator.backends.ctranslate2.loader import Precision
    from attendo.translator.translator import CopyMode, Split

    assert get_args(EngineName) == inputs.ENGINES
    assert {*get_args(Precision), *get_args(NativePrecision)} == {*inputs.PRECISIONS}
    assert get_args(Split) == inputs.SPLITS
    assert get_args(CopyMode) == inputs.COPY_MODES
    assert {*bench.SIZES} == {*SIZES}


def test_a_run_that_is_not_finished_is_left_to_the_verb(tmp_path):
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    inputs.check_models(tmp_path, None)
    with pytest.raises(InputError):
        inputs.check_models(tmp_path / "nothing")


def test_a_choice_names_the_nearest():
    inputs.check_choice("--engine", None, inputs.ENGINES)
    with pytest.raises(ConfigError) as caught:
        inputs.check_choice("--engine", "ctranslate", inputs.ENGINES)
    assert "ctranslate2" in caught.value.hint
