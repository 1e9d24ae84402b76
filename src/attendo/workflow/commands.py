"""Commands that several steps of a build have in common: cleaning, translation of joined files."""

from __future__ import annotations

import json
import shutil
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from attendo.core.errors import InputError
from attendo.core.files import sync, write_atomically
from attendo.core.message import message
from attendo.data.readers import read_pairs
from attendo.text.lines import read_lines
from attendo.workflow.step import Command

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from attendo.data.corpus_config import CorpusConfig
    from attendo.workflow.step import StepPaths


MAX_EMPTY_SHARE = 0.9
HELD_OUT_DIR = "held-out"
"""Copies of given dev and test sets: later steps need no file from outside the build."""


def write_config(path: Path, settings: dict[str, Any]) -> Path:
    """Write the settings of a command and return their path."""
    write_atomically(path, json.dumps(settings, indent=2, ensure_ascii=False) + "\n")
    return path


def clean_command(paths: StepPaths, settings: dict[str, Any], out: Path) -> Command:
    """Return the command that cleans corpora and texts."""
    file = write_config(paths.folder / "clean.json", settings)
    return Command(("clean", str(file), "--out", str(out)), out)


def held_out_commands(
    paths: StepPaths, corpora: Mapping[str, CorpusConfig], languages: Sequence[str]
) -> list[Command]:
    """Return the commands that copy dev and test sets, as two files each."""

    def copy(corpus: CorpusConfig, outputs: Sequence[Path]) -> None:
        outputs[0].parent.mkdir(exist_ok=True)
        pairs = list(read_pairs(corpus))
        for side, output in enumerate(outputs):
            lines = (pair[side].replace("\n", " ") for pair in pairs)
            write_atomically(output, "".join(f"{line}\n" for line in lines))

    files = {
        name: [paths.folder / HELD_OUT_DIR / f"{name}.{lang}" for lang in languages]
        for name in corpora
    }
    return [
        Command(partial(copy, corpus, files[name]), files[name][-1])
        for name, corpus in corpora.items()
    ]


def inputs_of(paths: StepPaths, name: str, keys: Sequence[str]) -> dict[str, str]:
    """Return the inputs of a corpus that it has."""
    inputs = {key: f"{name}.{key}" for key in keys}
    return {key: str(paths[one]) for key, one in inputs.items() if one in paths.inputs}


def translate_commands(
    paths: StepPaths,
    model: str,
    stem: str,
    inputs: Sequence[Path],
    words: Sequence[str],
    *,
    cluster: str | None = None,
) -> list[Command]:
    """Return the commands that join texts into one file and translate it.

    On a cluster the translation is written in shards, which are then joined: the same bytes.
    """
    source, output = paths.folder / f"{stem}.in", paths.folder / f"{stem}.out"
    joined = join_command(paths, source.name, inputs)
    start = ("translate", str(paths[model]), "--input", str(source), "--output")
    if cluster is not None:
        shards = paths.folder / f"{stem}.shards"
        run = (*start, str(shards), "--cluster", cluster, *words)
        done = shards / source.name / "_SUCCESS"
        begun = shards / "_job.json"
        translated = Command(run, done, can_resume=True, begun=begun)
        return [joined, translated, _join_shards(done.parent, output)]
    run = (*start, str(output), *words)
    partial_path = output.with_name(f".{output.name}.partial")
    total = sum(1 for path in inputs for _ in read_lines(path)) if inputs else 0
    watched = ("lines", partial_path, total)
    return [joined, Command(run, output, can_resume=True, watched=watched)]


def _join_shards(folder: Path, output: Path) -> Command:
    """Return the command that joins the shards of a file."""

    def join() -> None:
        partial_path = output.with_name(f".{output.name}.joined")
        with partial_path.open("wb") as target:
            for part in sorted(folder.glob("part-*"), key=_shard_number):
                with part.open("rb") as source:
                    shutil.copyfileobj(source, target)
        sync(partial_path)
        partial_path.replace(output)

    return Command(join, output)


def _shard_number(part: Path) -> int:
    return int(part.name.split("-")[1].split(".")[0])


def join_command(paths: StepPaths, name: str, inputs: Sequence[Path]) -> Command:
    """Return the command that writes texts one after the other into a file."""
    output = paths.folder / name

    def join() -> None:
        text = "".join(f"{line}\n" for path in inputs for line in read_lines(path))
        write_atomically(output, text)

    return Command(join, output)


def split_command(
    paths: StepPaths, stem: str, inputs: Sequence[Path], outputs: Sequence[Path]
) -> Command:
    """Return the command that cuts a translation into the files that were joined."""

    def split() -> None:
        _check_translations(paths.folder / f"{stem}.out")
        lines = read_lines(paths.folder / f"{stem}.out")
        for source, output in zip(inputs, outputs, strict=True):
            count = sum(1 for _ in read_lines(source))
            write_atomically(output, "".join(f"{line}\n" for line in islice(lines, count)))

    return Command(split, outputs[-1])


def _check_translations(path: Path) -> None:
    """Raise an error if nearly all translations are empty: nothing can be learned from them."""
    lengths = [len(line.strip()) for line in read_lines(path)]
    num_empty = lengths.count(0)
    if num_empty > MAX_EMPTY_SHARE * len(lengths):
        raise InputError(
            message(
                "{num_empty} of {count} translations are empty",
                num_empty=num_empty,
                count=len(lengths),
            ),
            hint="the model has learned too little: read its report.md, and train it longer",
        )
