"""`attendo adapt`: train a model on corrections, and publish it if it lost nothing."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import TYPE_CHECKING, Annotated

import typer

from attendo.cli.console import make_console
from attendo.cli.data_options import DevTgtOption  # noqa: TC001 - typer reads the annotations
from attendo.cli.localization import LangOption  # noqa: TC001 - typer reads the annotations
from attendo.cli.options import (  # noqa: TC001 - typer reads the annotations
    DeviceOption,
    RunSettingsOption,
    StepsOption,
    ThreadsOption,
)
from attendo.core.errors import ConfigError
from attendo.core.message import message

if TYPE_CHECKING:
    from rich.console import Console

    from attendo.i18n.messages import Lang
    from attendo.tasks.translation.adaptation import Adaptation


def adapt(
    model: Annotated[
        Path, typer.Argument(help="A model folder or run folder; with --rollback, the --out.")
    ],
    corrections: Annotated[
        Path | None,
        typer.Option(help="The file of attendo serve --memory, or pairs: TMX, JSONL, TSV ..."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where the model is published: OUT/model; may be MODEL."),
    ] = None,
    dev_src: Annotated[
        Path | None,
        typer.Option(help="Source side of the dev set; by default that of the model's run."),
    ] = None,
    dev_tgt: DevTgtOption = None,
    replay_src: Annotated[
        list[Path] | None,
        typer.Option(
            help="Earlier training data; by default that of the model's run (repeatable)."
        ),
    ] = None,
    replay_tgt: Annotated[
        list[Path] | None, typer.Option(help="Its translations, in the same order.")
    ] = None,
    replay_share: Annotated[
        float, typer.Option(help="Fraction of each epoch that is earlier data.", min=0.01, max=0.99)
    ] = 0.9,
    max_drop: Annotated[
        float,
        typer.Option(
            help="Largest loss in points of BLEU or chrF; a model that loses more is not published."
        ),
    ] = 0.3,
    steps: StepsOption = None,
    budget: Annotated[
        str | None, typer.Option(help="Time that training may take, e.g. 10m.")
    ] = None,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Publish the previous version again.")
    ] = False,
    device: DeviceOption = None,
    threads: ThreadsOption = None,
    settings: RunSettingsOption = None,
    lang: LangOption = None,
) -> None:
    """Adapt a model to corrections: fine-tune, compare on dev, publish or refuse, roll back."""
    from attendo.i18n.messages import choose_language

    output_lang = choose_language(lang)
    console = make_console()
    if rollback:
        _roll_back(out or model, console, output_lang)
        return
    if corrections is None or out is None:
        raise ConfigError(
            "--corrections and --out are needed",
            hint="attendo adapt MODEL --corrections memory.db --out runs/adapted",
        )
    from attendo.tasks.translation.adaptation import (
        AdaptationRefusedError,
        AdaptRequest,
        adapt_model,
    )
    from attendo.training.progress import ProgressReporter

    request = AdaptRequest(
        model=model,
        corrections=corrections,
        out=out,
        dev=_pair_up([dev_src], [dev_tgt], "dev")[0] if dev_src or dev_tgt else None,
        replay=_pair_up(replay_src or [], replay_tgt or [], "replay"),
        replay_share=replay_share,
        max_drop=max_drop,
        steps=steps,
        budget=budget,
        settings=tuple(settings or ()),
        device=device,
        threads=threads,
    )
    with ProgressReporter(console, lang=output_lang) as bar:
        result = adapt_model(request, reporter=bar)
    _print_result(result, console, output_lang)
    if result.reasons:
        raise AdaptationRefusedError(result, max_drop=max_drop)


def _pair_up(
    sources: list[Path | None] | list[Path], targets: list[Path | None] | list[Path], name: str
) -> list[tuple[Path, Path]]:
    pairs = [
        (src, tgt)
        for src, tgt in zip(sources, targets, strict=False)
        if src is not None and tgt is not None
    ]
    if len(pairs) != len(sources) or len(pairs) != len(targets):
        raise ConfigError(
            message("--{name}-src and --{name}-tgt belong together", name=name),
            hint="give both, in the same order",
        )
    return pairs


def _roll_back(out: Path, console: Console, lang: Lang) -> None:
    from attendo.core.model_versions import PublishedModel
    from attendo.i18n.messages import translate_message

    published = PublishedModel(out)
    if not published.model.exists():
        published.roll_back()  # raises the error, before a lock file is written
    with published.lock():
        restored = published.roll_back()
    text = message("restored version {name}: {path}", name=restored.name, path=published.model.path)
    console.print(translate_message(text, lang), highlight=False, soft_wrap=True)


def _print_result(result: Adaptation, console: Console, lang: Lang) -> None:
    """Print the scores before and after, and where the models are."""
    from attendo.i18n.messages import translate_message

    lines = [
        message(
            "{count} corrections, {replayed} old pairs to replay",
            count=f"{result.num_corrections:,}",
            replayed=f"{result.num_replayed:,}",
        )
    ]
    for one in result.comparisons:
        lines.append(
            message(
                "{set} ({count} lines): BLEU {bleu} -> {new_bleu}, chrF {chrf} -> {new_chrf}",
                set=message(one.name),
                count=f"{one.num_lines:,}",
                bleu=f"{one.before.bleu:.1f}",
                new_bleu=f"{one.after.bleu:.1f}",
                chrf=f"{one.before.chrf:.1f}",
                new_chrf=f"{one.after.chrf:.1f}",
            )
        )
        if one.chrf_change is not None:
            text = message("  95 % interval of the change in chrF: {low} to {high}",
                           low=f"{one.chrf_change.low:+.1f}",
                           high=f"{one.chrf_change.high:+.1f}")  # fmt: skip
            lines.append(text)
    if result.share < 1:
        text = message("weights: {share} of the new model, the rest of the old one",
                       share=f"{result.share:.0%}")  # fmt: skip
        lines.insert(1, text)
    if not result.reasons:
        lines.append(message("published: {path}", path=result.model_dir))
        if result.previous is not None:
            lines.append(
                message(
                    "before: {path} (attendo adapt {out} --rollback)",
                    path=result.previous,
                    out=result.model_dir.parent,
                )
            )
    for line in lines:
        console.print(translate_message(line, lang), highlight=False, soft_wrap=True)
