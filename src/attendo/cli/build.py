"""`attendo build`: from corpora to a small, fast, measured translator, step by step."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.console import make_console, survive_closed_terminal
from attendo.cli.data_options import (  # noqa: TC001 - typer reads the annotations
    DevSrcOption,
    DevTgtOption,
    SrcLangOption,
    SrcOption,
    TgtLangOption,
    TgtOption,
)
from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.cli.options import JsonOption  # noqa: TC001 - typer reads the annotations
from attendo.core.errors import AttendoError, ConfigError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from attendo.i18n.messages import Lang
    from attendo.workflow.recipe import BuildConfig
    from attendo.workflow.runner import BuildRunner
    from attendo.workflow.states import StepStatus
    from attendo.workflow.step import Step

STATE_COLORS = {
    "done": "green",
    "stale": "yellow",
    "interrupted": "cyan",
    "failed": "red",
    "to do": "dim",
}


def build(
    recipe: Annotated[
        Path | None, typer.Argument(help="A TOML file with the recipe.", show_default=False)
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The build folder; by default builds/ and the recipe."),
    ] = None,
    src: SrcOption = None,
    tgt: TgtOption = None,
    mono_tgt: Annotated[
        list[Path] | None,
        typer.Option(help="Text in the target language, to be back-translated (repeatable)."),
    ] = None,
    mono_src: Annotated[
        list[Path] | None,
        typer.Option(help="Text in the source language, for the student (repeatable)."),
    ] = None,
    src_lang: SrcLangOption = None,
    tgt_lang: TgtLangOption = None,
    dev_src: DevSrcOption = None,
    dev_tgt: DevTgtOption = None,
    test_src: Annotated[
        Path | None, typer.Option(help="Source of the test set of the report.")
    ] = None,
    test_tgt: Annotated[Path | None, typer.Option(help="Its references.")] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="key=value, e.g. student.train.max_steps=100."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the state of each step; run nothing.")
    ] = False,
    only: Annotated[str | None, typer.Option(help="Run only this step.")] = None,
    until: Annotated[str | None, typer.Option(help="Run this step and those it needs.")] = None,
    first: Annotated[
        str | None, typer.Option("--from", help="Run this step and those that need it.")
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Run the steps of --only or --from again.")
    ] = False,
    pack: Annotated[
        Path | None,
        typer.Option(help="Write the results of the chosen steps into a new folder, in parts."),
    ] = None,
    with_models: Annotated[
        bool, typer.Option("--with-models", help="With --pack: trained models too.")
    ] = False,
    unpack: Annotated[
        Path | None, typer.Option(help="Put the results of such a folder into the build.")
    ] = None,
    publish_to: Annotated[
        Path | None,
        typer.Option(
            "--publish", help="Copy the finished int8 student into a new folder, with a model card."
        ),
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Translate on a Ray cluster: auto, local or HOST:PORT."
        ),
    ] = None,
    as_json: JsonOption = False,
    lang: LangOption = None,
) -> None:
    """Build a small, fast translator: clean, back-translate, teacher, student, int8, report."""
    output_lang = choose_language(lang)
    corpora = _corpora(src or [], tgt or [])
    given: dict[str, Any] = {
        "corpora": corpora,
        "mono_tgt": [{"text": str(path)} for path in mono_tgt or []],
        "mono_src": [{"text": str(path)} for path in mono_src or []],
        "src_lang": src_lang,
        "tgt_lang": tgt_lang,
        "dev": _pair("dev", dev_src, dev_tgt),
        "test": _pair("test", test_src, test_tgt),
    }
    from attendo.workflow.recipe import load_recipe

    config = load_recipe(recipe, given, settings or [])
    folder = out or _default_folder(recipe, config)
    _check_choice(only, first, force=force)
    console = make_console(stderr=as_json)
    runner = make_runner(config, folder, console, output_lang, cluster=cluster)
    steps = runner.graph.select(only=only, until=until, first=first)
    if unpack is not None:
        _unpack(runner, unpack, console, output_lang)
        return
    if publish_to is not None:
        from attendo.workflow.model_card import publish_model

        publish_model(config, folder, publish_to, recipe=str(recipe or "..."))
        text = message("{path} has the model and its card", path=publish_to)
        console.print(translate_message(text, output_lang), soft_wrap=True, markup=False)
        return
    if pack is not None:
        _pack(runner, steps, pack, console, output_lang, with_models=with_models)
        return
    if not dry_run:
        with survive_closed_terminal():
            runner.run(steps, force=force)
    statuses = runner.inspect()
    if not dry_run:
        publish(runner, statuses)
    if as_json:
        typer.echo(json.dumps(to_json(runner, statuses), ensure_ascii=False, indent=2))
        return
    print_states(console, runner, list(statuses.values()), output_lang)
    if all(status.is_done for status in statuses.values()):
        print_report(console, folder, output_lang)


def _corpora(sources: list[Path], targets: list[Path]) -> list[dict[str, str]]:
    if len(sources) != len(targets):
        raise ConfigError(
            message(
                "{num_src} --src but {num_tgt} --tgt", num_src=len(sources), num_tgt=len(targets)
            ),
            hint="give the two sides of each corpus, in the same order",
        )
    return [{"src": str(one), "tgt": str(two)} for one, two in zip(sources, targets, strict=True)]


def _pair(name: str, src: Path | None, tgt: Path | None) -> dict[str, str] | None:
    if (src is None) != (tgt is None):
        given, missing = ("src", "tgt") if src else ("tgt", "src")
        raise ConfigError(
            message(
                "--{name}-{given} without --{name}-{missing}",
                name=name,
                given=given,
                missing=missing,
            ),
            hint="give both sides",
        )
    return None if src is None else {"src": str(src), "tgt": str(tgt)}


def _default_folder(recipe: Path | None, config: BuildConfig) -> Path:
    name = recipe.stem if recipe is not None else f"{config.src_lang}-{config.tgt_lang}"
    return Path("builds") / name


def _check_choice(only: str | None, first: str | None, *, force: bool) -> None:
    if force and only is None and first is None:
        raise ConfigError(
            "--force without --only or --from",
            hint="name the steps to run again, e.g. --from student --force; "
            "delete the build folder to begin again",
        )


def make_runner(
    config: BuildConfig, folder: Path, console: Console, lang: Lang, *, cluster: str | None = None
) -> BuildRunner:
    """Return the runner of a recipe, which prints to a console."""
    from attendo.workflow.estimates import RecipeRates
    from attendo.workflow.plan import BuildPlan
    from attendo.workflow.runner import BuildRunner

    def report(text: str) -> None:
        shown = translate_message(text, lang)
        console.print(shown, style="bold", highlight=False, markup=False, soft_wrap=True)

    graph = BuildPlan(config, cluster=cluster).graph()
    return BuildRunner(graph, folder, run_verb, rates=RecipeRates(config.rates), report=report)


def run_verb(words: Sequence[str]) -> None:
    """Run a command of `attendo` in this process; raise an error if it fails."""
    from attendo.cli.main import build_app

    code = build_app(words[0])(list(words), prog_name="attendo", standalone_mode=False)
    if code:
        raise AttendoError(
            message("attendo {verb} ended with exit code {code}", verb=words[0], code=code),
            hint="see its messages above",
        )
    _free_memory()


def _free_memory() -> None:
    """Release what a step has left on the GPU."""
    import gc

    from attendo.core.device import empty_device_cache

    gc.collect()
    empty_device_cache()


# -- results


def publish(runner: BuildRunner, statuses: dict[str, StepStatus]) -> None:
    """Copy student, export and report to where they are easy to find, if they have changed."""
    from attendo.workflow.report import REPORT_FILES

    student = statuses.get("student")
    has_student = student is not None and student.is_done and not student.absent
    wanted = {
        "student": [("run/model", "model")],
        # Where only the int8 weights of the student have arrived, they are the model.
        "int8": [("int8", "int8"), *([] if has_student else [("int8", "model")])],
        "report": [(name, name) for name in REPORT_FILES],
    }
    for name, files in wanted.items():
        status = statuses.get(name)
        if status is None or not status.is_done or status.absent:
            continue
        source = runner.folder.step_dir(name, str(status.key))
        for made, shown in files:
            target = runner.folder.path / shown
            if target.exists() and runner.digests.digest(target) == runner.digests.digest(
                source / made
            ):
                continue
            _copy(source / made, target)


def _copy(source: Path, target: Path) -> None:
    partial = target.with_name(f".{target.name}.partial")
    if source.is_dir():
        shutil.rmtree(partial, ignore_errors=True)
        shutil.copytree(source, partial)
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
    else:
        shutil.copyfile(source, partial)
        partial.replace(target)


def print_report(console: Console, folder: Path, lang: Lang) -> None:
    """Print the figures of the finished build, and what to do with it."""
    from rich.table import Table

    from attendo.workflow.report import HEADINGS, REPORT_FILE, REPORT_PAGES, format_row

    report = json.loads((folder / REPORT_FILE).read_text(encoding="utf-8"))
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, heading in enumerate(HEADINGS):
        table.add_column(
            translate_message(heading, lang), justify="right" if number > 1 else "left"
        )
    for row in report["systems"]:
        cells = format_row(row, lambda text: translate_message(text, lang))
        table.add_row(*(cell.replace("\\*", "*") for cell in cells))
    console.print()
    console.print(table)
    text = message(
        "report: {report}; the student: attendo translate {folder} ...",
        report=folder / REPORT_PAGES[lang],
        folder=folder,
    )
    console.print(translate_message(text, lang), soft_wrap=True, markup=False)


# -- states


def print_states(
    console: Console, runner: BuildRunner, statuses: Sequence[StepStatus], lang: Lang
) -> None:
    """Print the steps with their states, times and reasons."""
    from rich.table import Table
    from rich.text import Text

    def localize(text: str) -> str:
        return translate_message(text, lang)

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for number, heading in enumerate(("build step", "state", "minutes", "needs", "")):
        table.add_column(
            localize(heading) if heading else "",
            justify="right" if number == 2 else "left",
            overflow="fold",
        )
    for status in statuses:
        seconds = status.seconds if status.is_done else runner.estimate(status)
        minutes = "" if seconds is None else f"{seconds / 60:.1f}"
        if minutes and not status.is_done:
            minutes = f"~{minutes}"
        reason = status.reason
        if status.absent:
            reason = message("made on another machine")
        table.add_row(
            status.step.name,
            Text(localize(status.state), style=STATE_COLORS[status.state]),
            minutes,
            ", ".join(status.step.parents),
            Text(localize(reason), style="dim"),
        )
    console.print(table)
    left = runner.time_left(statuses)
    if left is not None:
        text = message("time left, as far as known: {minutes} minutes", minutes=f"{left / 60:.0f}")
        console.print(localize(text), highlight=False)


def to_json(runner: BuildRunner, statuses: dict[str, StepStatus]) -> dict[str, Any]:
    """Return the states as JSON."""
    return {
        "folder": str(runner.folder.path),
        "steps": [
            {
                "name": status.step.name,
                "state": status.state,
                "reason": status.reason,
                "key": status.key,
                "needs": status.step.parents,
                "seconds": status.seconds if status.is_done else None,
                "estimate": None if status.is_done else runner.estimate(status),
                "absent": list(status.absent),
            }
            for status in statuses.values()
        ],
    }


# -- packs


def _pack(
    runner: BuildRunner,
    steps: Sequence[Step],
    out: Path,
    console: Console,
    lang: Lang,
    *,
    with_models: bool,
) -> None:
    from attendo.workflow.pack import pack_steps

    statuses = runner.inspect()
    chosen = [statuses[step.name] for step in steps]
    names = {name for step in steps for name in runner.graph.ancestors(step.name)}
    before = [statuses[step.name] for step in runner.graph.steps if step.name in names]
    parts = pack_steps(runner.folder, chosen, out, before=before, with_models=with_models)
    size = sum(part.stat().st_size for part in parts) / 1e6
    text = message(
        "{count} files, {size} MB in {path}", count=len(parts), size=f"{size:.1f}", path=out
    )
    console.print(translate_message(text, lang), soft_wrap=True, markup=False)


def _unpack(runner: BuildRunner, packed: Path, console: Console, lang: Lang) -> None:
    from attendo.workflow.pack import unpack_steps

    if not packed.is_dir():
        raise ConfigError(
            message("no folder {path}", path=packed), hint="name the folder of a pack"
        )
    names = unpack_steps(packed, runner.folder)
    text = message("unpacked: {names}", names=", ".join(names))
    console.print(translate_message(text, lang), soft_wrap=True, markup=False)
