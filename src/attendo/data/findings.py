"""What a data check finds: a code, a severity, figures, an example, and what to do about it.

The texts belong to the codes, so that a finding that was stored as JSON can be shown in another
language later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, get_args

from attendo.core.errors import InputError
from attendo.core.message import join_messages, message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Severity = Literal["error", "warning", "info"]
SIDES = ("source", "target")
MAX_EXAMPLE_CHARACTERS = 120


class _Text(NamedTuple):
    message: str
    hint: str


TEXTS: MappingProxyType[str, _Text] = MappingProxyType(
    {
        "sides_shifted": _Text(
            "{corpus}: from about line {line} on the sides are shifted by {shift} "
            "({share} of the lines): source line {line} belongs to target line {other_line}",
            "compare both files around line {line}: a line was added, lost or split on one side. "
            "Fix it there, or cut both files before it",
        ),
        "sides_unrelated": _Text(
            "{corpus}: from about line {line} on ({share} of the lines) source and target do not "
            "belong together",
            "compare both files around line {line}: lines were added, lost or reordered on one "
            "side. Fix them, or cut both files before that line",
        ),
        "sides_shuffled": _Text(
            "{corpus}: source and target do not belong together: lengths, numbers, names and "
            "punctuation agree no better than in random pairs",
            "one side is shuffled, sorted or from another text: use files whose lines correspond",
        ),
        "sides_swapped": _Text(
            "{corpus}: the sides are swapped: the source looks like '{src_guess}', the target like "
            "'{tgt_guess}'",
            "swap --src and --tgt, or --src-lang and --tgt-lang",
        ),
        "corpus_swapped": _Text(
            "{corpus}: the sides are swapped compared with {other}",
            "swap the sides of one of them, so that all sources have the same language",
        ),
        "pairs_swapped": _Text(
            "{corpus}: the sides of at least {share} of the pairs are swapped: the source looks "
            "like '{tgt_guess}', the target like '{src_guess}'",
            "swap the sides of these lines; ignore this if the model is to translate in both "
            "directions",
        ),
        "wrong_language": _Text(
            "{corpus}: the {side} should be '{declared}', but looks like '{guess}'",
            "check the file, its name, and --src-lang and --tgt-lang",
        ),
        "same_language": _Text(
            "{corpus}: both sides look like '{guess}'",
            "check that the right files are given; ignore this if the task is not translation",
        ),
        "mixed_languages": _Text(
            "{corpus}: {share} of the {side} lines look like '{other}', not '{guess}'",
            "remove these pairs: they teach the model to output the wrong language",
        ),
        "header": _Text(
            "{corpus}: the first line looks like a header, not like a pair",
            "delete that line, or name the columns of a table with --src-field and --tgt-field",
        ),
        "tabs": _Text(
            "{corpus}: {share} of the {side} lines contain tabs: it looks like a table",
            "give a table with --path, and choose its columns with --src-field and --tgt-field",
        ),
        "id_column": _Text(
            "{corpus}: the {side} just counts up: it looks like a column of ids",
            "name the columns with the text with --src-field and --tgt-field",
        ),
        "duplicates": _Text(
            "duplicate pairs, each used once: {count} ({share})",
            "nothing to do, unless duplicates are meant to weigh more: data.cleaning."
            "drop_duplicates=false keeps them",
        ),
        "empty_sides": _Text(
            "pairs with an empty side, dropped: {count} ({share})",
            "check how the files were made: many empty lines often mean that one side is shifted",
        ),
        "long_lines": _Text(
            "very long pairs, dropped: {count} ({share})",
            "split them into sentences, or raise data.cleaning.max_words and max_characters",
        ),
        "length_ratios": _Text(
            "pairs with sides of very different length, dropped: {count} ({share})",
            "check some of them: they are rarely translations; data.cleaning.max_length_ratio sets "
            "the limit",
        ),
        "untranslated": _Text(
            "untranslated pairs (the target copies the source), dropped: {count} ({share})",
            "translate or remove them; data.cleaning.max_copy_words sets what is kept",
        ),
        "many_targets": _Text(
            "{share} of the pairs share their source with other pairs; one source has {count} "
            "targets",
            "nothing to do for synonyms; remove targets that contradict each other",
        ),
        "dev_in_train": _Text(
            "pairs of train that are also in dev, dropped from train: {count}",
            "nothing to do: scores on dev would measure memory otherwise",
        ),
        "small_dev": _Text(
            "dev has {count} pairs: a BLEU score on it is uncertain by about ± {margin}",
            "give 1,000 or more pairs that are not in train with --dev-src and --dev-tgt; until "
            "then do not trust small differences",
        ),
        "dev_language": _Text(
            "dev is from '{src_guess}' to '{tgt_guess}', but train from '{train_src}' to "
            "'{train_tgt}'",
            "give a dev set with the languages of train, source first",
        ),
        "no_pairs": _Text(
            "no pair is left to train on",
            "give other files, or a dev set that is not part of train",
        ),
        "too_few_pairs": _Text(
            "{count} pairs are too few for a translator: expect it to know some of them by heart",
            "collect at least 10,000 pairs, or start from a model with --init-from",
        ),
        "few_pairs": _Text(
            "{count} pairs are few: expect a phrase book for sentences like these",
            "add more pairs (100,000 give simple sentences, 1 million usable translations), start "
            "from a model with --init-from, or add back-translated text",
        ),
        "moderate_pairs": _Text(
            "{count} pairs: expect simple sentences to be right; about 1 million give usable "
            "translations",
            "add more pairs, start from a model with --init-from, or add back-translated text",
        ),
        "unknown_pieces": _Text(
            "the tokenizer of the model does not know {share} of the characters of the {side}",
            "check the languages of the model and of the files; train without --init-from if the "
            "model has other languages",
        ),
    }
)
"""The message and the hint of each code."""
WORD_FIGURES = frozenset({"side"})
"""Figures that are words of ours, and are translated with the message."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a data check.

    >>> print(Finding("small_dev", "warning", {"count": 30, "margin": "9"}).message)
    dev has 30 pairs: a BLEU score on it is uncertain by about ± 9
    """

    code: str
    severity: Severity
    figures: Mapping[str, Any] = field(default_factory=dict)
    example: str = ""

    @property
    def message(self) -> str:
        """What was found."""
        return message(TEXTS[self.code].message, **self._values())

    @property
    def hint(self) -> str:
        """What to do about it."""
        return message(TEXTS[self.code].hint, **self._values())

    def _values(self) -> dict[str, Any]:
        return {
            name: message(value) if name in WORD_FIGURES else value
            for name, value in self.figures.items()
        }

    def to_json(self) -> dict[str, Any]:
        """Return the finding as JSON, with its texts in English."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": str(self.message),
            "hint": str(self.hint),
            "example": self.example,
            "figures": dict(self.figures),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return a finding that was stored by `to_json`."""
        return cls(stored["code"], stored["severity"], stored["figures"], stored["example"])


def sort_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings, the most severe first, otherwise in the given order."""
    return sorted(findings, key=lambda finding: get_args(Severity).index(finding.severity))


def raise_errors(findings: Iterable[Finding]) -> None:
    """Raise one `InputError` with all findings of the severity "error", if there are any."""
    errors = [finding for finding in findings if finding.severity == "error"]
    if not errors:
        return
    way_out = message("attendo check shows everything; --set data.check=false trains anyway")
    raise InputError(
        join_messages("\n", [finding.message for finding in errors]),
        hint=join_messages("; ", dict.fromkeys([*(finding.hint for finding in errors), way_out])),
    )


def shorten(text: str, limit: int = MAX_EXAMPLE_CHARACTERS) -> str:
    """Return a text with at most `limit` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"
