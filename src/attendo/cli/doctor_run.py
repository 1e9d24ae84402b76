"""`attendo doctor RUN`: what the log of a run says, then the comparison with the paper's recipe.

No tensor library is loaded.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import typer

from attendo.cli.console import make_console
from attendo.core.errors import InputError
from attendo.core.message import join_messages, message
from attendo.core.run_folder import MODEL_DIR, RunFolder
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rich.console import Console

    from attendo.diagnosis.diagnose import Diagnosis
    from attendo.diagnosis.run_summary import RunSummary
    from attendo.diagnosis.training_record import RunRecord, TrainingFinding
    from attendo.i18n.messages import Lang

MARKS = {
    "error": ("✗", "red"),
    "warning": ("!", "yellow"),
    "info": ("-", "dim"),
    "good": ("✓", "green"),
}
PLOT_WIDTH, PLOT_MARGIN = 60, 16
"""Width of the curves, and of their axis and labels."""


def diagnose_run(directory: Path, *, as_json: bool) -> None:
    """Print what the log of a run says, and its differences from the paper's recipe."""
    from attendo.diagnosis.diagnose import diagnose
    from attendo.diagnosis.run_summary import read_run_summary
    from attendo.diagnosis.training_checks import check_training
    from attendo.diagnosis.training_record import RunRecord

    folder = _find_run(directory)
    record = RunRecord.read(folder) if folder.exists() else None
    findings = check_training(record) if record is not None else []
    facts, diagnosis, reason = None, None, ""
    try:
        facts = read_run_summary(directory)
        diagnosis = diagnose(facts)
    except InputError as error:  # another kind of model, or time series
        if record is None or not record.config.get("train"):
            raise
        reason = error.reason
    if as_json:
        typer.echo(run_to_json(directory, record, findings, facts, diagnosis))
        return

    console, lang = make_console(), choose_language()
    if record is not None:
        print_training(console, record, findings, lang)
    if facts is not None and diagnosis is not None:
        print_diagnosis(console, facts, diagnosis, lang)
    else:
        console.print(reason, style="dim", markup=False)


def _find_run(directory: Path) -> RunFolder:
    """Return the run that is named, by its folder or by that of its model."""
    run, parent = RunFolder(directory), RunFolder(directory.parent)
    is_model = directory.name == MODEL_DIR and not run.exists() and parent.exists()
    return parent if is_model else run


def run_to_json(
    directory: Path,
    record: RunRecord | None,
    training: Sequence[TrainingFinding],
    facts: RunSummary | None,
    diagnosis: Diagnosis | None,
) -> str:
    """Return everything about a run as one JSON object."""
    payload: dict[str, Any] = {"run": str(directory)}
    if record is not None:
        best = record.log.best
        payload |= {
            "is_finished": record.is_finished,
            "steps": record.log.last_step,
            "metric": record.log.metric,
            "best_score": best.value if best else None,
            "best_step": best.step if best else None,
            "training": [finding.to_json() for finding in training],
        }
    if facts is not None and diagnosis is not None:
        payload |= {
            "run": str(facts.directory),
            "is_finished": facts.is_finished,
            "steps": facts.steps,
            "pairs": facts.num_pairs,
            "dev_bleu": facts.dev.get("bleu"),
            "recipe": diagnosis.recipe.name,
            "paper_bleu": diagnosis.recipe.newstest2014,
            "findings": [finding.to_json() for finding in diagnosis.findings],
            "as_in_the_paper": diagnosis.matching,
            "unknown": diagnosis.unknown,
        }
    return json.dumps(payload, ensure_ascii=False, indent=2)


# -- the training


def print_training(
    console: Console, record: RunRecord, findings: Sequence[TrainingFinding], lang: Lang
) -> None:
    """Print what the log says, each with the next command, and the curves."""
    from rich.text import Text

    console.print(translate_message(headline(record), lang), markup=False, style="bold")
    for finding in findings:
        mark, color = MARKS[finding.severity]
        text = Text(f"{mark} ", style=f"bold {color}")
        console.print(text.append(translate_message(finding.text, lang), style="not bold default"))
        if finding.hint:
            hint = f"{translate_message('hint', lang)}: {translate_message(finding.hint, lang)}"
            console.print(f"  {hint}", markup=False)
        if finding.command:  # in one line, so that it can be copied
            console.print(f"  {finding.command}", style="bold", markup=False, soft_wrap=True)
    for row in curve_lines(record, min(PLOT_WIDTH, console.width - PLOT_MARGIN), lang):
        console.print(row, markup=False, soft_wrap=True)
    console.print()


def headline(record: RunRecord) -> str:
    """Return one line on how far the run has come and which validation was the best."""
    from attendo.diagnosis.run_log import LABELS, format_score

    log, max_steps = record.log, record.train.get("max_steps")
    progress = message("step {step}", step=f"{log.last_step:,}")
    if max_steps is not None:
        progress = message(
            "step {step} of {count}", step=f"{log.last_step:,}", count=f"{max_steps:,}"
        )
    if log.best is None:
        return message("{run}: {progress}", run=record.folder.path, progress=progress)
    return message(
        "{run}: {progress}, best {metric} {value} at step {best}",
        run=record.folder.path,
        progress=progress,
        metric=message(LABELS[log.metric]),
        value=format_score(log.metric, log.best.value),
        best=f"{log.best.step:,}",
    )


def curve_lines(record: RunRecord, width: int, lang: Lang) -> list[str]:
    """Return the losses, and the metric that chooses the best checkpoint, as curves."""
    from attendo.diagnosis.run_log import LABELS
    from attendo.diagnosis.text_plot import plot_curves

    log = record.log
    if len(log.dev_loss) < 2 and len(log.train_loss) < 2:
        return []
    names = [translate_message(text, lang) for text in ("train loss", "dev loss")]
    axis = translate_message("step", lang)
    curves = dict(zip(names, (log.train_loss, log.dev_loss), strict=True))
    lines = ["", *plot_curves(curves, width=width, axis=axis)]
    if log.metric != "loss" and len(log.dev_score) > 1:
        title = message("{metric} on dev", metric=message(LABELS[log.metric]))
        curve = {translate_message(title, lang): log.dev_score}
        lines += ["", *plot_curves(curve, width=width, height=7, axis=axis)]
    return lines


# -- the paper's recipe


HEADINGS = {
    "below": ("red", "lowers the score"),
    "measure": ("yellow", "measured differently from the paper"),
    "on purpose": ("green", "intended for a corpus of {pairs} pairs"),
    "no loss known": ("dim", "differs without a known effect"),
}


def print_diagnosis(console: Console, facts: RunSummary, diagnosis: Diagnosis, lang: Lang) -> None:
    """Print the differences, the most costly first, with effects and hints."""
    from rich.table import Table
    from rich.text import Text

    def localized(text: str) -> str:
        return translate_message(text, lang)

    for line in introduction_lines(facts, diagnosis):
        console.print(Text(localized(line)))
    for verdict, (color, heading) in HEADINGS.items():
        chosen = [finding for finding in diagnosis.findings if finding.verdict == verdict]
        if not chosen:
            continue
        title = message(heading, pairs=f"{facts.num_pairs or 0:,}")
        console.print(Text(f"\n{localized(title)}", style=f"bold {color}"))
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), expand=console.is_terminal)
        for name, share in (("", 3), ("this run", 3), ("the paper", 3), ("known effect", 8)):
            table.add_column(localized(name), overflow="fold", ratio=share)
        for finding in chosen:
            effect = localized(finding.effect)
            if finding.hint:
                effect += f"\n{localized('hint')}: {localized(finding.hint)}"
            space = "\n" if finding is not chosen[-1] else ""
            what = message("{name}", name=finding.what)  # the name of a setting stays as it is
            cells = map(localized, (what, finding.ours, finding.paper))
            table.add_row(*map(Text, (*cells, effect + space)))
        console.print(table)
    console.print()
    for line in conclusion_lines(diagnosis):
        console.print(Text(localized(line)))


def introduction_lines(facts: RunSummary, diagnosis: Diagnosis) -> list[str]:
    """Return lines that name the run and the recipe."""
    name, bleu = diagnosis.recipe.name, diagnosis.recipe.newstest2014
    run = str(facts.directory)
    if not facts.is_finished:
        run = message(
            "{run}, not finished: step {step} of {count}",
            run=facts.directory,
            step=facts.steps,
            count=facts.planned_steps,
        )
    comparison = message(
        "compared with the paper's {name} model: {bleu} BLEU on English-German newstest2014, "
        "tokenized, with compound splitting",
        name=name,
        bleu=bleu,
    )
    lines = [run, comparison]
    if "bleu" in facts.dev:
        lines.append(message("this run on its dev: {bleu:.1f} BLEU", bleu=facts.dev["bleu"]))
    if not facts.train:
        lines.append(
            "a model folder does not record how it was trained and on how much text, and a small "
            "corpus needs another recipe: pass the run folder"
        )
    return lines


def conclusion_lines(diagnosis: Diagnosis) -> list[str]:
    """Return lines with what matches the paper, what is unknown, and how to use the hints."""
    matching = join_messages(", ", diagnosis.matching or [message("nothing")])
    lines = [message("as in the paper: {names}", names=matching)]
    if diagnosis.unknown:
        names = join_messages(", ", diagnosis.unknown)
        lines.append(message("not recorded in this folder: {names}", names=names))
    if any(finding.hint.startswith("--") for finding in diagnosis.findings):
        lines.append(
            "effects do not add up; pass --set and --preset to attendo train, with a new --out"
        )
    return lines
