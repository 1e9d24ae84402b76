"""Turns text constraints (prefix, phrases, glossary) into constraints on ids."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.decoding.options import Constraints
from attendo.text.glossary import Glossary
from attendo.text.phrase_constraints import ForbiddenPhrase, RequiredPhrase
from attendo.text.tokenizer import END_ID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attendo.text.phrase_constraints import IncrementalDetokenizer


@dataclass(frozen=True)
class ConstraintRequest:
    """The constraints of a call; `required` and `forbidden` hold for every text."""

    prefixes: str | Sequence[str] = ()
    """One for all texts, or one per text; an empty one constrains nothing."""
    required: Sequence[str] = ()
    forbidden: Sequence[str] = ()
    glossary: Glossary | None = None

    @classmethod
    def from_arguments(
        cls,
        prefixes: str | Sequence[str],
        required: Sequence[str],
        forbidden: Sequence[str],
        glossary: Glossary | Mapping[str, str] | str | Path | None,
    ) -> ConstraintRequest:
        """Return the constraints of a call; the glossary may be a mapping or the path of a file."""
        if isinstance(glossary, (str, Path)):
            glossary = Glossary.load(glossary)
        elif glossary is not None and not isinstance(glossary, Glossary):
            glossary = Glossary(glossary)
        return cls(prefixes, required, forbidden, glossary)


class ConstraintBuilder:
    """Builds the constraints of each segment; every phrase is tokenized once.

    `num_texts` is None if it is not known, which only a prefix per text requires.
    """

    def __init__(
        self,
        detokenizer: IncrementalDetokenizer,
        request: ConstraintRequest,
        *,
        num_texts: int | None,
    ) -> None:
        self.detokenizer, self.request = detokenizer, request
        is_per_text = bool(request.prefixes) and not isinstance(request.prefixes, str)
        if is_per_text and len(request.prefixes) != num_texts:
            raise InputError(
                message(
                    "{count} prefixes for {num_texts} texts",
                    count=len(request.prefixes),
                    num_texts=num_texts,
                ),
                hint="give one prefix per text, '' for none",
            )
        self.phrase_cache: dict[str, RequiredPhrase] = {}
        self.forbidden = tuple(ForbiddenPhrase(detokenizer, phrase) for phrase in request.forbidden)

    def build(self, text_index: int, segment_index: int, source: str) -> Constraints | None:
        """Return the constraints of one segment of a text, None if it has none.

        The prefix and the required phrases belong to the first segment of a text; the glossary and
        the forbidden phrases hold for all segments.
        """
        request = self.request
        phrases = [*(request.required if segment_index == 0 else ())]
        if request.glossary is not None:
            phrases += request.glossary.find_targets(source)
        prefix: tuple[int, ...] = ()
        if segment_index == 0 and (text := self._prefix(text_index)).strip():
            prefix = self._required_phrase(text).tokens
        required = tuple(self._required_phrase(phrase) for phrase in dict.fromkeys(phrases))
        ending_ids = self.detokenizer.ending_ids if required else frozenset()
        return Constraints(prefix, required, self.forbidden, ending_ids) or None

    def without_glossary(self) -> Constraints | None:
        """Return the constraints of a segment whose only phrases are those of the glossary."""
        return Constraints((), (), self.forbidden, frozenset()) or None

    def _prefix(self, text_index: int) -> str:
        prefixes = self.request.prefixes
        return prefixes if isinstance(prefixes, str) else prefixes[text_index] if prefixes else ""

    def _required_phrase(self, phrase: str) -> RequiredPhrase:
        if phrase not in self.phrase_cache:
            required = RequiredPhrase(self.detokenizer, phrase)
            for other in self.forbidden:
                if contains_forbidden(required.tokens, other):
                    reason = message(
                        "'{phrase}' is required, but '{other}' is forbidden",
                        phrase=required.phrase,
                        other=other.phrase,
                    )
                    raise InputError(reason, hint="remove one of them")
            self.phrase_cache[phrase] = required
        return self.phrase_cache[phrase]


def contains_forbidden(ids: tuple[int, ...], forbidden: ForbiddenPhrase) -> bool:
    """Return whether a forbidden phrase occurs in the required one `ids`."""
    continuations = enumerate((*ids, END_ID))
    return any(forbidden.violates(ids[:index], next_id) for index, next_id in continuations)
