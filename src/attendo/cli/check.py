"""`attendo check`: check corpora before training on them.

Exits with 0 if there is no error among the findings, with 1 if there is, and with 2 if the files or
the options cannot be used.
"""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.console import make_console
from attendo.cli.data_options import (
    ConfigArgument,
    CorpusOption,
    DevPathOption,
    DevSrcOption,
    DevTextOption,
    DevTgtOption,
    MirrorOption,
    PairOption,
    PathOption,
    PathSrcLangOption,
    PathTgtLangOption,
    SrcFieldOption,
    SrcOption,
    TextOption,
    TgtFieldOption,
    TgtOption,
    only_config,
)
from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.cli.options import (  # noqa: TC001 - typer reads the annotations
    JsonOption,
    RunSettingsOption,
)
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from attendo.data.check import CheckResult
    from attendo.i18n.messages import Lang

SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "info": "dim"}
ERROR_EXIT_CODE = 1


def check(
    config: ConfigArgument = None,
    src: SrcOption = None,
    tgt: TgtOption = None,
    path: PathOption = None,
    text: TextOption = None,
    dev_src: DevSrcOption = None,
    dev_tgt: DevTgtOption = None,
    dev_path: DevPathOption = None,
    dev_text: DevTextOption = None,
    src_lang: PathSrcLangOption = None,
    tgt_lang: PathTgtLangOption = None,
    src_field: SrcFieldOption = None,
    tgt_field: TgtFieldOption = None,
    corpus: CorpusOption = None,
    pair: PairOption = None,
    mirror: MirrorOption = None,
    init_from: Annotated[
        Path | None,
        typer.Option(help="Also check that the tokenizer of this model folder knows the text."),
    ] = None,
    settings: RunSettingsOption = None,
    as_json: JsonOption = False,
    lang: LangOption = None,
) -> None:
    """Check corpora before training: alignment, languages, duplicates, dev set, size."""
    arguments = {**locals(), "config": only_config(config)}
    output_lang = choose_language(lang)
    result = run_check(arguments, output_lang)
    if as_json:
        typer.echo(to_json(result))
    else:
        print_result(result, output_lang)
    if any(finding.severity == "error" for finding in result.findings):
        raise typer.Exit(ERROR_EXIT_CODE)


def run_check(arguments: dict[str, Any], lang: Lang) -> CheckResult:
    """Check the corpora of a request, with a progress bar on stderr."""
    from attendo.data.check import check_data
    from attendo.data.readers import find_selection
    from attendo.tasks.request import TrainRequest
    from attendo.tasks.warm_start import inherited_tokenizer
    from attendo.training.progress import ProgressReporter

    with ProgressReporter(make_console(stderr=True), lang=lang) as bar:
        config = TrainRequest.from_arguments(arguments).check(reporter=bar)
        if config.data is None:
            raise ConfigError("time series are given", hint="attendo check reads text only")
        for selection in map(find_selection, config.data.inputs):
            if selection is not None and not selection.is_requested:
                bar.message(selection.describe())
        return check_data(
            config.data,
            tokenizer=inherited_tokenizer(config),
            progress=lambda count: bar.stage("checking the data", count, None),
        )


def to_json(result: CheckResult) -> str:
    """Return the figures and the findings as one JSON object."""
    findings = [finding.to_json() for finding in result.findings]
    return json.dumps(
        {"corpora": result.figures, "findings": findings}, ensure_ascii=False, indent=2
    )


def print_result(result: CheckResult, lang: Lang) -> None:
    """Print the figures as a table, and below it the findings with examples and hints."""
    from rich.table import Table
    from rich.text import Text

    def localize(words: str) -> str:
        return translate_message(words, lang)

    console = make_console()
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("corpus", "pairs read", "kept", "languages", "characters", "agreement"):
        table.add_column(localize(heading), overflow="fold")
    for row in result.figures:
        table.add_row(*format_row(row, lang))
    console.print(table)
    for finding in result.findings:
        style = SEVERITY_STYLES[finding.severity]
        title = Text(f"{localize(finding.severity)}: ", style=style)
        console.print(Text("\n").append(title).append(localize(finding.message)), soft_wrap=True)
        if finding.example:
            example = message("example: {example}", example=finding.example)
            console.print(f"  {localize(example)}", style="dim", markup=False, soft_wrap=True)
        hint = f"  {localize('hint')}: {localize(finding.hint)}"
        console.print(hint, markup=False, soft_wrap=True)
    if not result.findings:
        console.print("\n" + localize("no problems found"), style="green")


def format_row(row: dict[str, Any], lang: Lang) -> list[str]:
    """Return the cells of one corpus."""
    name = row["name"]
    if row["is_dev"]:
        name = translate_message(message("{name} (dev)", name=name), lang)
    languages = [row[f"{side}_language"] or row[f"{side}_script"] or "?" for side in ("src", "tgt")]
    return [
        name,
        f"{row['num_read']:,}",
        f"{row['num_kept']:,}",
        " - ".join(languages),
        f"{row['src_characters']:.0f} - {row['tgt_characters']:.0f}",
        "" if row["alignment"] is None else f"{row['alignment']:.1f}",
    ]
