"""The output of `attendo translate`: lines of text or JSON, notes, and the trace."""

from __future__ import annotations

import gc
import gzip
import json
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import typer

from attendo.core.message import message
from attendo.i18n.messages import choose_language, translate_message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import IO

    from attendo.cli.translation.confidence import ConfidenceFilter
    from attendo.translator import Confidence, Translation, Translator

HIGH_CONFIDENCE, LOW_CONFIDENCE = 0.8, 0.5
"""Words with lower probabilities are shown in yellow and red."""
MAX_NOTES = 20
"""Notes that are printed when the output is a file."""


@contextmanager
def open_output(path: Path | None) -> Iterator[IO[str]]:
    """Open a file for writing (compressed if it ends in .gz), or return standard output.

    An existing file is replaced only when the new one is complete.
    """
    if path is None or str(path) == "-":
        yield sys.stdout
        return
    if path.exists() and not path.is_file():  # a device
        with path.open("w", encoding="utf-8") as stream:
            yield stream
        return
    partial = path.with_name(f".{path.name}.partial")
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(partial, "wt", encoding="utf-8") as stream:
        yield stream
    partial.replace(path)


def write_to(stream: IO[str]) -> Callable[[str, int], None]:
    """Return a function that writes the lines of some texts to a stream at once."""

    def write(lines: str, _num_texts: int) -> None:
        stream.write(lines)
        stream.flush()

    return write


class NoteReporter:
    """Prints the notes of translations on stderr.

    Args:
        limit: how many are printed; None prints all.

    """

    def __init__(self, limit: int | None = None) -> None:
        self.limit = limit
        self.num_notes = self.num_failed = 0

    def report(self, translations: Iterable[Translation], first_number: int) -> None:
        """Print the notes, and count the texts that could not be translated."""
        from attendo.translator.notes import has_failed

        for number, translation in enumerate(translations, first_number):
            for note in translation.notes:
                if self.limit is None or self.num_notes < self.limit:
                    text = message("line {number}: {error}", number=number, error=note)
                    typer.echo(translate_message(text, choose_language()), err=True)
                self.num_notes += 1
            self.num_failed += has_failed(translation.notes)

    def count_rest(self) -> None:
        """Print how many notes were not printed."""
        if self.limit is not None and self.num_notes > self.limit:
            text = message("{count:,} more notes are not shown", count=self.num_notes - self.limit)
            typer.echo(translate_message(text, choose_language()), err=True)


class TranslationWriter:
    """Writes groups of translations: lines, notes and the trace.

    Args:
        write: writes the lines of some texts.
        notes: prints the notes.
        line_format: how a translation is written.
        confidence_filter: leaves translations that are not sure enough empty.
        trace: the file of the search traces.
        num_done: texts that were written before.

    """

    def __init__(
        self,
        write: Callable[[str, int], None],
        notes: NoteReporter,
        *,
        line_format: LineFormat,
        confidence_filter: ConfidenceFilter | None = None,
        trace: IO[str] | None = None,
        num_done: int = 0,
    ) -> None:
        self._write, self.notes, self.line_format = write, notes, line_format
        self.confidence_filter, self.trace, self.num_done = confidence_filter, trace, num_done

    def write(self, translations: list[Translation]) -> None:
        """Write the translations of consecutive texts."""
        self.notes.report(translations, self.num_done + 1)
        kept = translations
        if self.confidence_filter is not None:
            kept = self.confidence_filter(translations)
        lines = [f"{self.line_format.format(one)}\n" for one in kept]
        self._write("".join(lines), len(lines))
        self.num_done += len(lines)
        if self.trace is not None:
            self.trace.writelines(
                json.dumps(one.trace or [], ensure_ascii=False) + "\n" for one in translations
            )


def report_unfamiliar(translator: Translator, translations: list[Translation]) -> None:
    """Say on stderr if the model knows hardly anything of the first texts."""
    from attendo.translator.familiarity import warn_unfamiliar

    warning = warn_unfamiliar(translator, [one.source for one in translations])
    if warning is not None:
        typer.echo(translate_message(warning, choose_language()), err=True)


@contextmanager
def frozen_objects() -> Iterator[None]:
    """Exclude the model and libraries from garbage collection: they stay until the end."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@dataclass(frozen=True)
class LineFormat:
    """How a translation is written on a line, or its n-best list on several.

    Args:
        as_json: as one JSON object.
        n_best: translations per text; with several, each has its rank and score.
        tag: begins each output.
        has_confidence: add the confidence.
        is_screen: whether the output may be a terminal, which shows colors.

    """

    as_json: bool = False
    n_best: int = 1
    tag: str = ""
    has_confidence: bool = False
    is_screen: bool = False

    def format(self, translation: Translation) -> str:
        """Return a translation as text, without the line end."""
        text = self._format(translation)
        return f"{self.tag} {text}" if self.tag else text

    def _format(self, translation: Translation) -> str:
        if self.as_json:
            data = translation.to_dict()
            data.pop("trace", None)  # --trace writes it to its own file
            return json.dumps(data, ensure_ascii=False)
        if self.n_best == 1:
            return self._show(translation)
        ranked = enumerate([translation, *translation.alternatives], 1)
        return "\n".join(f"{rank}\t{one.score:.4f}\t{self._show(one)}" for rank, one in ranked)

    def _show(self, translation: Translation) -> str:
        """Return the text and, if known, its probability and band; colored on a terminal."""
        confidence = translation.confidence
        if confidence is None or not self.has_confidence:
            return str(translation)
        from attendo.cli.translation.confidence import COLORS, describe_confidence

        probability = f"{confidence.probability:.3f}"
        description = describe_confidence(confidence)
        if not (self.is_screen and sys.stdout.isatty()):
            return f"{translation}\t{probability}\t{description}"
        band_color = COLORS[confidence.band] if confidence.band else None
        shown = typer.style(translate_message(description, choose_language()), fg=band_color)
        return f"{_color_words(confidence)}\t{probability}\t{shown}"


def _color_words(confidence: Confidence) -> str:
    words = []
    for text, probability in confidence.words:
        color = (
            None
            if probability >= HIGH_CONFIDENCE
            else "yellow"
            if probability >= LOW_CONFIDENCE
            else "red"
        )
        words.append(typer.style(text, fg=color) if color else text)
    return " ".join(words)
