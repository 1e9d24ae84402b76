"""The model card of a finished build: data with licenses, recipe, figures, limits."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

from attendo.core.errors import ConfigError, InputError
from attendo.core.files import new_directory, write_atomically
from attendo.core.message import message
from attendo.core.shipped_models import MODEL_CARD
from attendo.i18n.messages import translate_message
from attendo.text.languages import language_name
from attendo.workflow.report import HEADINGS, REPORT_FILE, format_row, format_table

if TYPE_CHECKING:
    from pathlib import Path

    from attendo.workflow.recipe import BuildConfig

TRAINING_STEPS = ("forward", "backward", "teacher", "fine-tune", "student")


def publish_model(config: BuildConfig, build: Path, out: Path, *, recipe: str) -> None:
    """Copy the student in int8 into a new folder, with a model card.

    Args:
        config: the recipe.
        build: the folder of the finished build.
        out: the new folder.
        recipe: the name of the recipe, as a command has it.

    """
    if out.exists():
        raise InputError(message("{path} exists", path=out), hint="choose a new folder")
    missing = [name for name in ("int8", REPORT_FILE) if not (build / name).exists()]
    if missing:
        raise InputError(
            message("{path} has no {names}", path=build, names=" and ".join(missing)),
            hint="finish the build first; attendo build --dry-run shows what is left",
        )
    if config.card is None:
        raise ConfigError(
            "the recipe has no table card",
            hint="name licenses and limits: [card], license, data and limits",
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    with new_directory(out) as partial:
        shutil.copytree(build / "int8", partial, dirs_exist_ok=True)
        write_atomically(partial / MODEL_CARD, render_card(config, build, out.name, recipe))


def render_card(config: BuildConfig, build: Path, name: str, recipe: str) -> str:
    """Return the model card as Markdown."""
    card = config.card
    if card is None:
        return ""
    report = json.loads((build / REPORT_FILE).read_text(encoding="utf-8"))
    languages = [language_name(code) for code in (config.src_lang, config.tgt_lang)]
    counts = _count_pairs(build)
    data = [[one.name, counts.get(one.name, ""), one.license, one.origin] for one in card.data]
    rows = [
        format_row(row, lambda text: translate_message(text, "en")) for row in report["systems"]
    ]
    kind = "a test set" if report["is_test"] else "dev"
    signatures = {score["signature"] for row in report["systems"] for score in row["scores"]}
    parts = [
        f"# {name}: {languages[0]} to {languages[1]}",
        f"A translator of {_count_megabytes(build / 'int8'):.0f} MB (int8), built by Attendo.",
        f'```sh\nattendo translate {name} "..."\nattendo serve {name}\n```',
        f"License: {card.license}",
        "## Data",
        format_table(["name", "lines", "license", "origin"], data),
        "## Recipe",
        f"`attendo build {recipe}`",
        format_table(["step", "model", "training"], _training_rows(config)),
        "## Figures",
        f"{report['num_sentences']} sentences of {kind}, none of them in the training data.",
        format_table(list(HEADINGS), rows),
        "\n".join(f"- `{one}`" for one in sorted(signatures)),
        "## Limits",
        "\n".join(f"- {limit}" for limit in card.limits),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _count_pairs(build: Path) -> dict[str, str]:
    """Return the lines of each corpus and text that are left after cleaning."""
    folder = build / "latest/clean/clean"
    names: dict[str, str] = {}
    for path in sorted(folder.glob("*.*")):
        if path.suffix not in (".tsv", ".json"):
            with path.open("rb") as stream:
                names[path.stem] = f"{sum(1 for _ in stream):,}"
    return names


def _training_rows(config: BuildConfig) -> list[list[str]]:
    steps = {
        name: getattr(config, name.replace("fine-tune", "fine_tuning")) for name in TRAINING_STEPS
    }
    return [
        [name, _settings(step.model), _settings(step.train)]
        for name, step in steps.items()
        if step.model or step.train
    ]


def _settings(given: dict[str, Any]) -> str:
    names = ("save_every", "bleu_sentences", "average_checkpoints")
    return ", ".join(f"{key} {value}" for key, value in given.items() if key not in names)


def _count_megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6
