"""What a text asks of its translation, from words to ids: a beginning, phrases, a glossary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message
from attendo.decoding.options import Constraints
from attendo.text.phrase_constraints import ForbiddenPhrase, RequiredPhrase
from attendo.text.tokenizer import END_ID

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.text.glossary import Glossary
    from attendo.text.phrase_constraints import IncrementalDetokenizer


@dataclass(frozen=True)
class ConstraintRequest:
    """What a user asks for; `must` and `must_not` hold for every text."""

    prefixes: Sequence[str] = ()
    """One for each text; an empty one asks for nothing."""
    required: Sequence[str] = ()
    forbidden: Sequence[str] = ()
    glossary: Glossary | None = None


class ConstraintBuilder:
    """Turns wishes into demands, phrase by phrase; each phrase is looked at once."""

    def __init__(
        self, detokenizer: IncrementalDetokenizer, request: ConstraintRequest, *, num_texts: int
    ) -> None:
        self.detokenizer, self.request = detokenizer, request
        if request.prefixes and len(request.prefixes) != num_texts:
            raise InputError(
                f"{len(request.prefixes)} prefixes for {num_texts} texts",
                hint="give one for each text, '' where there is none",
            )
        self.phrase_cache: dict[str, RequiredPhrase] = {}
        self.forbidden = tuple(ForbiddenPhrase(detokenizer, phrase) for phrase in request.forbidden)

    def build(self, text_index: int, segment_index: int, source: str) -> Constraints:
        """Give what one piece of a text has to keep.

        The prefix and the required phrases are the first piece's, the rest is everyone's.
        """
        request = self.request
        phrases = [*(request.required if segment_index == 0 else ())]
        if request.glossary is not None:
            phrases += request.glossary.find_targets(source)
        prefix: tuple[int, ...] = ()
        if segment_index == 0 and request.prefixes and request.prefixes[text_index].strip():
            prefix = self._required_phrase(request.prefixes[text_index]).tokens
        required = tuple(self._required_phrase(phrase) for phrase in dict.fromkeys(phrases))
        return Constraints(prefix, required, self.forbidden)

    def _required_phrase(self, phrase: str) -> RequiredPhrase:
        if phrase not in self.phrase_cache:
            required = RequiredPhrase(self.detokenizer, phrase)
            for other in self.forbidden:
                if _contains_forbidden(required.tokens, other):
                    reason = message(
                        "'{phrase}' is asked for, and '{other}' is forbidden",
                        phrase=required.phrase,
                        other=other.phrase,
                    )
                    raise InputError(reason, hint="leave one of them out")
            self.phrase_cache[phrase] = required
        return self.phrase_cache[phrase]


def _contains_forbidden(ids: tuple[int, ...], forbidden: ForbiddenPhrase) -> bool:
    """Tell whether a forbidden phrase stands in what is asked for."""
    continuations = enumerate((*ids, END_ID))
    return any(forbidden.violates(ids[:index], number) for index, number in continuations)
