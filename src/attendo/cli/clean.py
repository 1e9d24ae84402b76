"""`attendo clean`: corpora into clean files, before anything is trained on them."""

from __future__ import annotations

import json
from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attendo.cli.console import make_console
from attendo.cli.data_options import (  # noqa: TC001 - typer reads the annotations
    SrcLangOption,
    SrcOption,
    TgtLangOption,
    TgtOption,
)
from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.cli.options import JsonOption  # noqa: TC001 - typer reads the annotations
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from attendo.data.clean_config import CleanConfig
    from attendo.i18n.messages import Lang


def clean(
    config: Annotated[
        Path | None,
        typer.Argument(help="A TOML file with corpora and rules.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Output folder; must not exist yet.")
    ] = None,
    src: SrcOption = None,
    tgt: TgtOption = None,
    text: Annotated[
        list[str] | None,
        typer.Option(help="Monolingual text, LANG=FILE, e.g. en=news.en (repeatable)."),
    ] = None,
    src_lang: SrcLangOption = None,
    tgt_lang: TgtLangOption = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(help="Scores of the pairs from attendo score, one file per corpus."),
    ] = None,
    keep: Annotated[
        float | None,
        typer.Option(help="Fraction of the pairs to keep, those with the best scores, e.g. 0.9."),
    ] = None,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(help="A test set whose sentences must not occur (repeatable)."),
    ] = None,
    dev_size: Annotated[
        int | None, typer.Option(help="Number of pairs to split off as a dev set.")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="key=value, e.g. rules.numbers=false.")
    ] = None,
    as_json: JsonOption = False,
    lang: LangOption = None,
) -> None:
    """Clean corpora and monolingual text: rules, languages, duplicates, test sets, scores."""
    if out is None:
        raise ConfigError("no output folder", hint="give one with --out")
    given: dict[str, Any] = {
        "corpora": _parallel(src or [], tgt or [], scores or []),
        "texts": [_monolingual(one) for one in text or []],
        "src_lang": src_lang,
        "tgt_lang": tgt_lang,
        "keep": keep,
        "exclude": [str(path) for path in exclude or []],
        "dev_size": dev_size,
    }
    clean_config = read_config(config, given, settings or [])
    from attendo.data.clean_files import clean_files
    from attendo.training.progress import ProgressReporter

    output_lang = choose_language(lang)
    with ProgressReporter(make_console(stderr=True), lang=output_lang) as bar:
        report = clean_files(clean_config, out, progress=bar.stage)
    if as_json:
        typer.echo(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        print_report(report, out, output_lang)


def _parallel(sources: list[Path], targets: list[Path], scores: list[Path]) -> list[dict[str, str]]:
    if len(sources) != len(targets):
        raise ConfigError(
            message(
                "{num_src} --src but {num_tgt} --tgt", num_src=len(sources), num_tgt=len(targets)
            ),
            hint="give the two sides of each corpus, in the same order",
        )
    if scores and len(scores) != len(sources):
        raise ConfigError(
            message(
                "{num_scores} --scores but {num_src} --src",
                num_scores=len(scores),
                num_src=len(sources),
            ),
            hint="give one file of scores per corpus, in the same order",
        )
    corpora = [
        {"src": str(one), "tgt": str(two)} for one, two in zip(sources, targets, strict=True)
    ]
    return (
        [{**corpus, "scores": str(path)} for corpus, path in zip(corpora, scores, strict=True)]
        if scores
        else corpora
    )


def _monolingual(given: str) -> dict[str, str]:
    lang, equals, path = given.partition("=")
    if not equals or not lang or not path:
        raise ConfigError(
            message("--text {text} is not LANG=FILE", text=given),
            hint="write a language, =, and a file: --text en=news.en",
        )
    return {"text": path, "lang": lang}


def read_config(path: Path | None, given: dict[str, Any], settings: list[str]) -> CleanConfig:
    """Return the config of a file, with the options and the settings that are given."""
    from attendo.core.config import override, read_settings
    from attendo.data.clean_config import CleanConfig, name_corpora
    from attendo.tasks.request import resolve_config_paths

    base = resolve_config_paths(read_settings(path), path.parent) if path else {}
    chosen = {name: value for name, value in given.items() if value not in (None, [], 0)}
    merged = override({**base, **chosen}, settings)
    CleanConfig.check_tables(merged)
    entries = [*merged.get("corpora", ()), *merged.get("texts", ())]
    named = name_corpora(entries)
    num_corpora = len(merged.get("corpora", ()))
    merged["corpora"], merged["texts"] = named[:num_corpora], named[num_corpora:]
    return CleanConfig(**merged)


def print_report(report: dict[str, Any], out: Path, lang: Lang) -> None:
    """Print what was kept and dropped of each corpus, and what the check found."""
    from rich.table import Table

    from attendo.data.clean_files import DROPPED_FILE, KEPT_FILE
    from attendo.data.findings import Finding

    console = make_console()
    for corpus in report["corpora"]:
        console.print(f"[bold]{corpus['name']}[/]", soft_wrap=True)
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
        table.add_column()
        table.add_column(justify="right")
        table.add_column(justify="right", style="dim")
        for reason, count, share, _ in corpus["rows"]:
            table.add_row(translate_message(reason, lang), f"{count:,}", f"{share:.1%}")
        console.print(table)
    for stored in report["check"]:
        finding = Finding.from_json(stored)
        text = f"{translate_message(finding.severity, lang)}: "
        console.print(text + translate_message(finding.message, lang), soft_wrap=True, markup=False)
    note = message(
        "samples to look at: {kept} and {dropped}", kept=out / KEPT_FILE, dropped=out / DROPPED_FILE
    )
    console.print(translate_message(note, lang), style="dim", soft_wrap=True, markup=False)
