"""Cleans a corpus as a stream, and counts what is dropped and why.

Text is normalized (`attendo.text.normalize`); then pairs are dropped that would not help or would
harm training: an empty side, a very long side, sides of very different length, an untranslated
copy, a duplicate. Memory grows by 8 bytes per kept pair for the detection of duplicates (see
`HashSet64`), and not at all if `drop_duplicates` is off.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field, model_validator

from attendo.core.config import Config, Count, Natural
from attendo.data.corpus_config import Pair
from attendo.data.dedup import HashSet64, hash_pair
from attendo.text.normalize import normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Reason = Literal[
    "empty side",
    "too long",
    "length ratio",
    "untranslated copy",
    "duplicate",
    "shares a side with dev",
    "also in dev",
    "left-out set",
    "damaged characters",
    "wrong language",
    "few letters",
    "repeated words",
    "other numbers",
    "other placeholders",
    "near duplicate",
    "also in a test set",
    "low score",
]
OLD_NORMALIZE_KEY = "normalise"  # vocabulary: ok, a key of old configs
MAX_EXAMPLE_CHARACTERS = 60
MAX_COPY_CHARACTERS = 30
"""In languages without spaces a sentence is one word: a longer copy is not a name."""


class CleaningConfig(Config):
    """Which pairs are dropped; None switches off a filter."""

    normalize: bool = True
    """Normalize both sides to NFC, single spaces and visible characters."""
    max_words: Count | None = 250
    """Maximum number of words per side, separated by white space."""
    max_characters: Count | None = 1500
    """Maximum number of characters per side; relevant for Chinese, Japanese or Thai."""
    max_length_ratio: Annotated[float, Field(ge=1.0)] | None = 9.0
    """Maximum ratio of the longer to the shorter side, in bytes of UTF-8: an ideograph or a Hangul
    syllable has three bytes, and carries about as much information as three letters."""
    drop_duplicates: bool = True
    """Keep only the first of several identical pairs (both sides equal)."""
    max_copy_words: Natural | None = 2
    """A target equal to its source is kept if it has at most this many words (and 30 characters):
    names, numbers and commands are their own translation. 0 drops every copy, None keeps all."""

    @model_validator(mode="before")
    @classmethod
    def _migrate_spelling(cls, settings: Any) -> Any:
        """Accept the old spelling in stored configs."""
        if isinstance(settings, dict) and OLD_NORMALIZE_KEY in settings:
            settings = dict(settings)
            settings["normalize"] = settings.pop(OLD_NORMALIZE_KEY)
        return settings


class ReportRow(NamedTuple):
    """A row of the report: a label, the number and fraction of pairs, an example."""

    what: str
    num_pairs: int
    share: float
    example: str


@dataclass(slots=True)
class CleaningReport:
    """How many pairs were read, kept, and dropped for which reason, with an example of each."""

    num_read: int = 0
    num_kept: int = 0
    num_dropped: dict[Reason, int] = field(default_factory=dict)
    examples: dict[Reason, Pair] = field(default_factory=dict)

    def count_kept(self) -> None:
        """Count a pair as read and kept."""
        self.num_read += 1
        self.num_kept += 1

    def count_dropped(self, reason: Reason, pair: Pair) -> None:
        """Count a pair as read and dropped."""
        self.num_read += 1
        self.num_dropped[reason] = self.num_dropped.get(reason, 0) + 1
        if reason not in self.examples:
            self.examples[reason] = Pair(*(_truncate(text) for text in pair))

    def move_to_dropped(self, reason: Reason, pair: Pair) -> None:
        """Count a pair as dropped that was counted as kept."""
        self.num_read -= 1
        self.num_kept -= 1
        self.count_dropped(reason, pair)

    def rows(self) -> list[ReportRow]:
        """Return the table: read, kept, then each reason that occurred, in a fixed order."""
        total = max(self.num_read, 1)
        table = [ReportRow("read", self.num_read, 1.0, "")]
        table.append(ReportRow("kept", self.num_kept, self.num_kept / total, ""))
        for reason in get_args(Reason):
            if reason in self.num_dropped:
                count = self.num_dropped[reason]
                example = " | ".join(self.examples[reason])
                table.append(ReportRow(reason, count, count / total, example))
        return table


def _truncate(text: str) -> str:
    return text if len(text) <= MAX_EXAMPLE_CHARACTERS else text[: MAX_EXAMPLE_CHARACTERS - 1] + "…"


def clean_pairs(
    pairs: Iterable[Pair],
    config: CleaningConfig,
    report: CleaningReport,
    *,
    seen_hashes: HashSet64 | None = None,
    dev_hashes: HashSet64 | None = None,
) -> Iterator[Pair]:
    """Yield the pairs that pass all filters, normalized, and count the others in `report`.

    Pass the same `seen_hashes` for several corpora to drop duplicates across them; each pass over a
    corpus needs a new set. Pairs whose hash is in `dev_hashes` are dropped: they would be trained
    on and scored too.

    >>> report = CleaningReport()
    >>> pairs = [Pair("a ", "b"), Pair("a", " b"), Pair("", "c")]
    >>> list(clean_pairs(pairs, CleaningConfig(), report))
    [Pair(src='a', tgt='b')]
    >>> [(row.what, row.num_pairs) for row in report.rows()]
    [('read', 3), ('kept', 1), ('empty side', 1), ('duplicate', 1)]
    """
    seen_hashes = HashSet64() if seen_hashes is None else seen_hashes
    for raw in pairs:
        pair = Pair(normalize(raw.src), normalize(raw.tgt)) if config.normalize else raw
        reason = _rejection_reason(pair, config)
        if reason is None and (config.drop_duplicates or dev_hashes):
            pair_hash = hash_pair(*pair)
            if dev_hashes is not None and pair_hash in dev_hashes:
                reason = "also in dev"
            elif config.drop_duplicates and not seen_hashes.add(pair_hash):
                reason = "duplicate"
        if reason is None:
            report.count_kept()
            yield pair
        else:
            report.count_dropped(reason, pair)


def _rejection_reason(pair: Pair, config: CleaningConfig) -> Reason | None:
    src, tgt = pair
    if not src.strip() or not tgt.strip():
        return "empty side"
    if _is_too_long(src, config) or _is_too_long(tgt, config):
        return "too long"
    if config.max_length_ratio is not None and _length_ratio(src, tgt) > config.max_length_ratio:
        return "length ratio"
    if src == tgt and not _may_be_copy(src, config.max_copy_words):
        return "untranslated copy"
    return None


def _is_too_long(text: str, config: CleaningConfig) -> bool:
    if config.max_characters is not None and len(text) > config.max_characters:
        return True
    return config.max_words is not None and len(text.split()) > config.max_words


def _length_ratio(src: str, tgt: str) -> float:
    lengths = [len(text.encode("utf-8", "surrogatepass")) for text in (src, tgt)]
    return max(lengths) / min(lengths)


def _may_be_copy(text: str, max_words: int | None) -> bool:
    if max_words is None:
        return True
    return len(text.split()) <= max_words and len(text) <= MAX_COPY_CHARACTERS
