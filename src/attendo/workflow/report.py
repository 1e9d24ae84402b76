"""The report of a build: teacher, student and int8 side by side, in English and Korean."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import AttendoError
from attendo.core.files import new_directory, write_atomically
from attendo.core.message import message
from attendo.i18n.messages import translate_message
from attendo.text.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from attendo.i18n.messages import Lang
    from attendo.translator import Translator
    from attendo.translator.backends.base import EngineName
    from attendo.workflow.step import StepPaths

REPORT_KIND = "attendo build"
REPORT_FILE = "report.json"
REPORT_PAGES: dict[Lang, str] = {"en": "report.md", "ko": "report.ko.md"}
REPORT_FILES = (REPORT_FILE, *REPORT_PAGES.values())
OUTPUTS_DIR, SYSTEMS_FILE = "outputs", "systems.json"
"""What `write_test_outputs` writes: a file per system, and their speeds and sizes."""
BATCH_SENTENCES = 64
SPEED_SENTENCES = 512
NUM_EXAMPLES = 10
HEADINGS = ("system", "search", "BLEU", "chrF", "sentences/s", "device", "MB")


class BuiltSystem(NamedTuple):
    """A model of the build, and how it translates."""

    name: str
    input: str
    """Its folder, as an input of the step."""
    beam_size: int
    engine: EngineName = "attendo"

    @property
    def file(self) -> str:
        """The file of its translations."""
        return f"{self.name}.{self.beam_size}.txt"


FULL_SYSTEMS = (
    BuiltSystem("teacher", "teacher", 4),
    BuiltSystem("student", "student", 4),
    BuiltSystem("student", "student", 1),
)
"""These translate the test set where they were trained."""
INT8_SYSTEMS = (BuiltSystem("int8", "int8", 4, "auto"), BuiltSystem("int8", "int8", 1, "auto"))
"""These translate it where the report is written: with CTranslate2, on a CPU that has it."""


def write_test_outputs(paths: StepPaths, out: Path) -> None:
    """Translate the test set with teacher and student, and write the translations and speeds."""
    outputs, rows = _run_systems(paths, FULL_SYSTEMS)
    with new_directory(out) as partial:
        for system, lines in zip(FULL_SYSTEMS, outputs, strict=True):
            write_atomically(partial / system.file, "".join(f"{line}\n" for line in lines))
        write_atomically(partial / SYSTEMS_FILE, json.dumps(rows, indent=2) + "\n")


def write_build_report(paths: StepPaths, settings: dict[str, Any]) -> None:
    """Translate the test set in int8, score the translations of all models, write the report."""
    sources = list(read_lines(paths["test.src"]))
    references = list(read_lines(paths["test.tgt"]))
    folder = paths["outputs"]
    outputs = [list(read_lines(folder / system.file)) for system in FULL_SYSTEMS]
    rows = json.loads((folder / SYSTEMS_FILE).read_text(encoding="utf-8"))
    more_outputs, more_rows = _run_systems(paths, INT8_SYSTEMS)
    outputs, rows = [*outputs, *more_outputs], [*rows, *more_rows]
    note = _add_scores(rows, outputs, references, str(settings["tgt_lang"]))
    report = {
        "kind": REPORT_KIND,
        "num_sentences": len(sources),
        "is_test": settings["is_test"],
        "systems": rows,
        "note": note,
        "examples": [
            {
                "source": sources[index],
                "reference": references[index],
                "outputs": [one[index] for one in outputs],
            }
            for index in _choose_examples(len(sources))
        ],
    }
    for lang, name in REPORT_PAGES.items():
        write_atomically(paths.folder / name, render(report, lang))
    text = json.dumps(report, indent=2, ensure_ascii=False)
    write_atomically(paths.folder / REPORT_FILE, text + "\n")


def _run_systems(
    paths: StepPaths, systems: Sequence[BuiltSystem]
) -> tuple[list[list[str]], list[dict[str, Any]]]:
    """Return the translations of the test set by each system, and its speed and size."""
    from attendo.translator import Translator

    sources = list(read_lines(paths["test.src"]))
    outputs, rows = [], []
    loaded: dict[str, Translator] = {}
    for system in systems:
        folder = paths[system.input]
        if system.input not in loaded:
            loaded = {system.input: Translator.load(folder, engine=system.engine)}
        translated, speed, device = _translate(loaded[system.input], sources, system)
        outputs.append(translated)
        rows.append(
            {
                "name": system.name,
                "beam_size": system.beam_size,
                "sentences_per_second": speed,
                "device": device,
                "megabytes": _folder_megabytes(folder),
            }
        )
    return outputs, rows


def _translate(
    translator: Translator, sources: Sequence[str], system: BuiltSystem
) -> tuple[list[str], float, str]:
    """Return the translations, the sentences per second in batches of 64, and the device."""
    options: dict[str, Any] = {"beam_size": system.beam_size}
    lines = [str(text).replace("\n", " ") for text in translator.translate(sources, **options)]
    timed = list(sources[:SPEED_SENTENCES])
    started = time.perf_counter()
    for first in range(0, len(timed), BATCH_SENTENCES):
        translator.translate(timed[first : first + BATCH_SENTENCES], **options)
    seconds = time.perf_counter() - started
    return lines, round(len(timed) / max(seconds, 1e-9), 1), _find_device(translator)


def _find_device(translator: Translator) -> str:
    import torch

    if translator.backend.name == "ctranslate2":
        return f"CPU ({torch.get_num_threads()})"
    device = next(iter(translator.model.parameters())).device  # type: ignore[attr-defined]
    return f"CPU ({torch.get_num_threads()})" if device.type == "cpu" else "GPU"


def _folder_megabytes(folder: Path) -> float:
    num_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return round(num_bytes / 1e6, 1)


def _add_scores(
    rows: list[dict[str, Any]], outputs: list[list[str]], references: list[str], lang: str
) -> str | None:
    """Add the scores to the rows, with p-values against the first; return a note."""
    from attendo.evaluation.metrics import build_metrics
    from attendo.evaluation.scores import compare_systems, score_outputs

    note = None
    bleu = {"ko": "bleu-ko", "ja": "bleu-char", "zh": "bleu-char"}.get(lang, "bleu")
    try:
        metrics = build_metrics(references, requested=[bleu, "chrf"], lang=lang).selected
    except AttendoError as error:  # the extra is missing
        note = error.reason
        metrics = build_metrics(references, requested=["bleu-char", "chrf"], lang=lang).selected
    scored = [score_outputs(metrics, one) for one in outputs]
    for row, scores in zip(rows, scored, strict=True):
        comparison = compare_systems(scores, scored[0])
        row["scores"] = [
            {**score._asdict(), "p_value": None if scores is scored[0] else other.p_value}
            for score, other in zip(scores.scores, comparison, strict=True)
        ]
    return note


def _choose_examples(count: int) -> list[int]:
    return sorted({index * count // NUM_EXAMPLES for index in range(NUM_EXAMPLES)})[:count]


# -- pages


def render(report: dict[str, Any], lang: Lang) -> str:
    """Return the report as Markdown in a language."""

    def localize(text: str) -> str:
        return translate_message(text, lang)

    kind = "a test set" if report["is_test"] else "dev"
    about = message(
        "{count} sentences of {kind}", count=report["num_sentences"], kind=message(kind)
    )
    headings = [localize(heading) for heading in HEADINGS]
    signatures = dict.fromkeys(
        f"`{score['signature']}`" for row in report["systems"] for score in row["scores"]
    )
    stars = "* p < 0.05, ** p < 0.01, paired bootstrap against the teacher"
    parts = [
        f"# {localize('Report of the build')}",
        localize(about) + ".",
        format_table(headings, [format_row(row, localize) for row in report["systems"]]),
        localize(stars) + ". " + localize("In brackets: 95 % interval."),
        "\n".join(f"- {one}" for one in signatures),
        *([localize(report["note"])] if report["note"] else []),
        f"## {localize('Examples')}",
        "\n\n".join(
            _format_example(one, report["systems"], localize) for one in report["examples"]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def format_row(row: dict[str, Any], localize: Callable[[str], str]) -> list[str]:
    """Return the cells of a system; `localize` translates a message."""
    search = "greedy" if row["beam_size"] == 1 else message("beam {size}", size=row["beam_size"])
    scores = [_format_score(score) for score in row["scores"]]
    speed = f"{row['sentences_per_second']:,.1f}"
    return [
        localize(row["name"]),
        localize(search),
        *scores,
        speed,
        row["device"],
        f"{row['megabytes']:.1f}",
    ]


def _format_score(score: dict[str, Any]) -> str:
    p_value = score["p_value"]
    stars = (
        "" if p_value is None else "\\*\\*" if p_value < 0.01 else "\\*" if p_value < 0.05 else ""
    )
    interval = "" if score["low"] is None else f" ({score['low']:.1f}-{score['high']:.1f})"
    return f"{score['value']:.1f}{stars}{interval}"


def _format_example(
    example: dict[str, Any], systems: list[dict[str, Any]], localize: Callable[[str], str]
) -> str:
    shown: dict[str, str] = {}
    for row, output in zip(systems, example["outputs"], strict=True):
        shown.setdefault(str(row["name"]), output)
    lines = [(localize("source"), example["source"]), (localize("reference"), example["reference"])]
    lines += [(localize(name), output) for name, output in shown.items()]
    return "\n".join(f"- {name}: {_escape(text)}" for name, text in lines)


def _escape(text: str) -> str:
    return "".join(f"\\{one}" if one in "\\`*_<>[]|" else one for one in text)


def format_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table in Markdown."""
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
