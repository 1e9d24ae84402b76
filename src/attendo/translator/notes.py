"""Notes about a translation: a code for programs, and a message with the words that it is about."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Self, TypeGuard

from attendo.core.message import Message
from attendo.text.tokenizer import UNK_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attendo.decoding.hypothesis import Hypothesis
    from attendo.text.tokenizer import Tokenizer
    from attendo.translator.backends.base import TranslationItem

UNKNOWN_WORDS, COPIED_WORDS = "unknown_words", "copied_words"
CORRECTED_SPANS = "corrected_placeholders"
MISSING_PHRASE, CUT, PIECES = "missing_phrase", "cut", "pieces"
NOT_ALIGNED, NO_ATTENTION = "not_aligned", "no_attention"
PIVOT_NOT_ALIGNED, NO_PYTORCH = "pivot_not_aligned", "no_pytorch"
FAILED = "failed"
RETRIED: Literal["retried"] = "retried"
EMPTY_OUTPUT: Literal["empty_output"] = "empty_output"
LOOP: Literal["loop"] = "loop"
UNTRANSLATED: Literal["untranslated"] = "untranslated"
TEMPLATES = {
    UNKNOWN_WORDS: "not in the vocabulary: {words}",
    COPIED_WORDS: "copied from the source: {words}",
    CORRECTED_SPANS: "placeholders or addresses corrected: {words}",
    MISSING_PHRASE: "without '{words}'",
    CUT: "cut after {count} tokens",
    PIECES: "translated in {count} pieces",
    NOT_ALIGNED: "no alignment: only the first {count} characters of a request are aligned",
    NO_ATTENTION: "no alignment: the model has no attention",
    NO_PYTORCH: "no alignment: the server has no PyTorch model that would show the attention",
    PIVOT_NOT_ALIGNED: "no alignment: the text is translated in two steps",
    FAILED: "failed: {words}",
    RETRIED: "translated with another search, since the first output was not a translation",
    EMPTY_OUTPUT: "no translation: the output is empty",
    LOOP: "no translation: the output repeats itself",
    UNTRANSLATED: "no translation: the output is a copy of the source",
}
JOINED = (UNKNOWN_WORDS, COPIED_WORDS, CORRECTED_SPANS)
"""The codes whose words are named once for a whole text."""
MAX_SHOWN_WORDS = 10
PUNCTUATION = ".,;:!?…\"'“”‘’()[]。、，！？「」"
"""Not named with a word."""


class Note(Message):
    """A note with a code, and the words or the number that it is about."""

    __slots__ = ("code", "words")

    code: str
    words: tuple[str, ...]

    def __new__(cls, code: str, words: Sequence[str] = (), *, count: int | None = None) -> Self:
        """Render the message of a code; it names the first words."""
        shown = ", ".join(words[:MAX_SHOWN_WORDS]) + ", …" * (len(words) > MAX_SHOWN_WORDS)
        values = {"words": shown} if count is None else {"count": count}
        self = super().__new__(cls, TEMPLATES[code], values)
        self.code, self.words = code, tuple(words)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-serializable dictionary."""
        count = {name: value for name, value in self.values.items() if name == "count"}
        return {"code": self.code, "text": str(self), "words": list(self.words), **count}

    def __reduce__(self) -> Any:
        return partial(Note, self.code, self.words, count=self.values.get("count")), ()


def join_notes(notes: Iterable[str]) -> list[str]:
    """Join the notes of the segments of a text: those about unknown or copied words become one.

    >>> cut = Note("cut", count=9)
    >>> join_notes([Note("unknown_words", ["a"]), cut, Note("unknown_words", ["b", "a"])])
    ['not in the vocabulary: a, b', 'cut after 9 tokens']
    """
    words: dict[str, list[str]] = {}
    joined: list[str] = []
    for note in notes:
        if not is_joined(note):
            joined.append(note)
            continue
        if note.code not in words:
            joined.append(note)
        words.setdefault(note.code, []).extend(note.words)
    return [
        Note(note.code, list(dict.fromkeys(words[note.code]))) if is_joined(note) else note
        for note in joined
    ]


def has_failed(notes: Iterable[str]) -> bool:
    """Return whether one of the notes says that the text could not be translated."""
    return any(isinstance(note, Note) and note.code == FAILED for note in notes)


def has_corrected_spans(notes: Iterable[str]) -> bool:
    """Return whether one of the notes says that placeholders or addresses were corrected."""
    return any(isinstance(note, Note) and note.code == CORRECTED_SPANS for note in notes)


def is_joined(note: str) -> TypeGuard[Note]:
    """Return whether the words of a note are named once for a whole text."""
    return isinstance(note, Note) and note.code in JOINED


def unknown_words(tokenizer: Tokenizer, source: str, ids: Sequence[int]) -> list[str]:
    """Return the words of a source that have unknown tokens.

    Of a word that is known but for a mark, such as "go!", only the mark is named.
    """
    if UNK_ID not in ids:
        return []
    words: list[str] = []
    unknown: list[str] = []  # what is unknown of each word
    for surface, token in zip(tokenizer.src_surfaces(source), ids, strict=False):
        if surface.startswith(" ") or not words:
            words.append("")
            unknown.append("")
        words[-1] += surface.strip()
        unknown[-1] += surface.strip() if token == UNK_ID else ""
    named = [
        part.strip(PUNCTUATION) or part
        for word, missing in zip(words, unknown, strict=True)
        if missing
        for part in (word if missing.strip(PUNCTUATION) else missing).split()
    ]  # several unknown words may be one token
    return list(dict.fromkeys(named))


def describe_search(hypothesis: Hypothesis, missing: Sequence[str]) -> list[str]:
    """Return notes on a hypothesis that was cut, and on required phrases that it lacks."""
    cut = [] if hypothesis.is_finished else [Note(CUT, count=len(hypothesis.ids))]
    return [*cut, *(Note(MISSING_PHRASE, [phrase]) for phrase in missing)]


def describe_words(tokenizer: Tokenizer, item: TranslationItem) -> list[str]:
    """Return notes on the words of a segment that the vocabulary lacks, and on the copied ones."""
    words = unknown_words(tokenizer, item.reduced or item.source, item.ids)
    copied = list(dict.fromkeys(span.text for span in item.removed))
    named = {UNKNOWN_WORDS: words, COPIED_WORDS: copied}
    return [Note(code, found) for code, found in named.items() if found]
