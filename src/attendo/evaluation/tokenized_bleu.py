r"""Tokenized BLEU as in the literature: Moses steps and compound splitting.

Papers before sacreBLEU ran `multi-bleu.perl` over text that their own scripts had tokenized, so
a figure can only be reproduced by the same steps: the paper's 27.3 by those of tensor2tensor's
`get_ende_bleu.sh`, Multi30k's 41.02 by those that made its official `lc.norm.tok` files. Moses is
used through its port sacremoses (extra `metrics`).
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import ConfigError, InputError, MissingExtraError, suggest
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

AS_IS = "as-is"
NORMALIZATION_STEPS = {
    "lower": "lower-case",
    "norm": "normalize punctuation as Moses does",
    "moses": "tokenize as Moses does, with its &quot; and &apos;",
    "moses-plain": "tokenize as Moses does with -no-escape",
}
"""The steps and their descriptions."""
HYPHENATED_COMPOUND = re.compile(rb"(\S)-(\S)")
"""Over bytes, as in Perl: decides whether the hyphen after a single letter matches."""
NON_ASCII_SPACES = {
    ord(letter): 0xE000 + index
    for index, letter in enumerate(
        "\x1c\x1d\x1e\x1f\x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008"
        "\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
    )
}
"""White space for Python that is a letter for multi-bleu.perl, with replacement letters."""


class TextNormalizer(NamedTuple):
    """The preprocessing of texts before they are compared, and its name in the signature."""

    apply: Callable[[str], str]
    signature: str

    def apply_all(self, texts: Sequence[str]) -> list[str]:
        """Preprocess a text; an empty one stays empty."""
        return [self.apply(text) for text in texts]


def build_normalizer(steps: Sequence[str], lang: str | None) -> TextNormalizer:
    """Return a normalizer with the named steps, in order; "as-is" has none.

    >>> build_normalizer(["lower", "moses"], "de").apply("Ein „Hund“, braun-weiß.")
    'ein „ hund “ , braun-weiß .'
    """
    check_steps(steps)
    if list(steps) == [AS_IS]:
        return TextNormalizer(str, "tok:as-is")
    step_normalizers = [_build_step(step, lang) for step in steps]
    signature = "|".join(step.signature for step in step_normalizers)
    if any(step != "lower" for step in steps):
        signature += f"|sacremoses:{_sacremoses_version()}"
    return TextNormalizer(_compose([step.apply for step in step_normalizers]), signature)


def check_steps(steps: Sequence[str]) -> None:
    """Raise an error for steps that are unknown or contradict each other."""
    known = [AS_IS, *NORMALIZATION_STEPS]
    reasons = [f"no step '{step}': {suggest(step, known)}" for step in steps if step not in known]
    if not steps:
        reasons.append(message("no step is named. Known: {names}", names=", ".join(known)))
    if AS_IS in steps and len(steps) > 1:
        reasons.append(message("'{step}' cannot be combined with other steps", step=AS_IS))
    if len(set(steps)) < len(steps) or {"moses", "moses-plain"} <= set(steps):
        reasons.append("each step may be given once")
    if reasons:
        raise ConfigError.from_reasons("the steps to a tokenized output", reasons)


def compound_split_normalizer(lang: str) -> TextNormalizer:
    """Tokenize as Moses does, then split compounds at hyphens, as for the paper's 27.3."""
    tokenize = _build_step("moses", lang)
    signature = f"{tokenize.signature}|compounds:split|sacremoses:{_sacremoses_version()}"
    return TextNormalizer(_compose([tokenize.apply, split_compounds]), signature)


def split_compounds(text: str) -> str:
    """Split words at hyphens as tensor2tensor's script does, which skips every second one.

    >>> split_compounds("rich-text format , a-b-c - d")
    'rich ##AT##-##AT## text format , a ##AT##-##AT## b-c - d'
    """
    return HYPHENATED_COMPOUND.sub(rb"\1 ##AT##-##AT## \2", text.encode()).decode()


def escape_non_ascii_spaces(text: str) -> str:
    r"""Escape white space other than ASCII, which multi-bleu.perl does not split at.

    >>> len(escape_non_ascii_spaces("10\xa0000 Euro").split())
    2
    """
    return text if text.isascii() and text.isprintable() else text.translate(NON_ASCII_SPACES)


def _build_step(step: str, lang: str | None) -> TextNormalizer:
    if step == "lower":
        return TextNormalizer(str.lower, "case:lc")
    if lang is None:
        hint = "name the target language, e.g. --lang de"
        raise ConfigError(
            message("the step '{step}' depends on the language", step=step), hint=hint
        )
    moses = _import_sacremoses()
    _check_language(moses, lang)
    if step == "norm":
        return TextNormalizer(moses.MosesPunctNormalizer(lang).normalize, f"norm:moses-{lang}")
    tokenizer, is_escaped = moses.MosesTokenizer(lang), step == "moses"

    def tokenize(text: str) -> str:
        return str(tokenizer.tokenize(text, escape=is_escaped, return_str=True)).strip()

    return TextNormalizer(tokenize, f"tok:{step}-{lang}")


def _compose(steps: Sequence[Callable[[str], str]]) -> Callable[[str], str]:
    def apply(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return apply


def supports_compound_split(lang: str) -> bool:
    """Return whether Moses supports a language and compound splitting is meaningful for it."""
    known = set(_import_sacremoses().corpus.NonbreakingPrefixes().available_langs.values())
    return lang in known - {"yue", "zh"}


def _check_language(moses: Any, lang: str) -> None:
    known = {*moses.corpus.NonbreakingPrefixes().available_langs.values(), "ja", "ko"}
    if lang not in known:  # sacremoses would silently use the rules of English
        reason = message("Moses has no rules for the language '{lang}'", lang=lang)
        raise InputError(reason, hint=suggest(lang, sorted(known)))


def _import_sacremoses() -> Any:
    try:
        import_module("sacremoses.corpus")
        return import_module("sacremoses")
    except ImportError:
        raise MissingExtraError("sacremoses", "metrics") from None


def _sacremoses_version() -> str:
    from attendo.core.hardware import installed_version

    return installed_version("sacremoses") or "unknown"
