"""What a text asks of its translation, from words to ids: a beginning, phrases, a glossary."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.data.phrases import ForbiddenPhrase, RequiredPhrase
from attendo.data.tokenizer import END_ID
from attendo.decoding.options import Demands

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.data.glossary import Glossary
    from attendo.data.phrases import TextView


@dataclass(frozen=True)
class Wishes:
    """What a user asks for; `must` and `must_not` hold for every text."""

    prefixes: Sequence[str] = ()
    """One for each text; an empty one asks for nothing."""
    must: Sequence[str] = ()
    must_not: Sequence[str] = ()
    glossary: Glossary | None = None


class Granter:
    """Turns wishes into demands, phrase by phrase; each phrase is looked at once."""

    def __init__(self, view: TextView, wishes: Wishes, *, num_texts: int) -> None:
        self.view, self.wishes = view, wishes
        if wishes.prefixes and len(wishes.prefixes) != num_texts:
            raise InputError(
                f"{len(wishes.prefixes)} prefixes for {num_texts} texts",
                remedy="give one for each text, '' where there is none",
            )
        self.known: dict[str, RequiredPhrase] = {}
        self.forbidden = tuple(ForbiddenPhrase(view, phrase) for phrase in wishes.must_not)

    def demands(self, text: int, piece: int, source: str) -> Demands:
        """Give what one piece of a text has to keep.

        The prefix and the required phrases are the first piece's, the rest is everyone's.
        """
        wishes = self.wishes
        wanted = [*(wishes.must if piece == 0 else ())]
        if wishes.glossary is not None:
            wanted += wishes.glossary.find(source)
        prefix: tuple[int, ...] = ()
        if piece == 0 and wishes.prefixes and wishes.prefixes[text].strip():
            prefix = self._require(wishes.prefixes[text]).tokens
        required = tuple(self._require(phrase) for phrase in dict.fromkeys(wanted))
        return Demands(prefix, required, self.forbidden)

    def _require(self, phrase: str) -> RequiredPhrase:
        if phrase not in self.known:
            wanted = RequiredPhrase(self.view, phrase)
            for other in self.forbidden:
                if _says(wanted.tokens, other):
                    reason = f"'{wanted.phrase}' is asked for, and '{other.phrase}' is forbidden"
                    raise InputError(reason, remedy="leave one of them out")
            self.known[phrase] = wanted
        return self.known[phrase]


def _says(ids: tuple[int, ...], forbidden: ForbiddenPhrase) -> bool:
    """Tell whether a forbidden phrase stands in what is asked for."""
    following = enumerate((*ids, END_ID))
    return any(forbidden.would_break(ids[:place], number) for place, number in following)
