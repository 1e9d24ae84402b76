"""The rules of the data check on languages: swapped sides, wrong, mixed or equal languages."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from attendo.data.findings import SIDES, Finding, shorten
from attendo.text.language_guess import (
    LanguageGuess,
    are_related,
    base_language,
    count_languages,
    guess_language,
    guess_other_language,
    language_script,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from attendo.data.config import DataConfig
    from attendo.data.corpus_probe import CorpusProbe, SideLanguages
    from attendo.data.findings import Severity

MAX_OTHER_LANGUAGE_SHARE = 0.03
MAX_SWAPPED_SHARE = 0.01
TWO_SCRIPTS = frozenset({"sr", "kk", "uz", "az", "mn", "ku", "bs"})
"""Languages that are written in two scripts."""


def check_languages(corpora: Sequence[CorpusProbe], config: DataConfig) -> Iterator[Finding]:
    """Compare the sides with what they should be, with each other, and line by line."""
    first = corpora[0]
    for probe in corpora:
        sides = probe.languages
        if _are_swapped(sides, first.languages):
            yield Finding("corpus_swapped", "error", {"corpus": probe.name, "other": first.name})
        yield from _compare_with_declared(probe, sides, config)
        if (
            match_languages(sides.src.language, sides.tgt.language)
            and not probe.config.allow_copies
        ):
            figures = {"corpus": probe.name, "guess": sides.src.language}
            yield Finding("same_language", "warning", figures, probe.example)
        swapped = _find_swapped_pairs(probe, sides)
        yield from swapped
        if not swapped:
            yield from _find_mixed_languages(probe, sides)


def _compare_with_declared(
    probe: CorpusProbe, sides: SideLanguages, config: DataConfig
) -> Iterator[Finding]:
    """Compare the languages with the settings, or with the suffixes of the files."""
    names = (probe.config.src, probe.config.tgt)
    settings = (config.src_lang, config.tgt_lang)
    declared = [
        setting or _suffix_language(path) for setting, path in zip(settings, names, strict=True)
    ]
    severity: Severity = "error" if all(settings) else "warning"
    wrong = [
        language is not None and _is_other(guess, language)
        for guess, language in zip(sides, declared, strict=True)
    ]
    if (
        all(wrong)
        and match_languages(sides.src.language, declared[1])
        and match_languages(sides.tgt.language, declared[0])
    ):
        figures = {"src_guess": sides.src.language, "tgt_guess": sides.tgt.language}
        yield Finding("sides_swapped", severity, {"corpus": probe.name} | figures, probe.example)
        return
    for side, guess, language, is_wrong in zip(SIDES, sides, declared, wrong, strict=True):
        if is_wrong:
            looks = guess.language or guess.script
            figures = {"side": side, "declared": language, "guess": looks}
            example = probe.example
            yield Finding("wrong_language", severity, {"corpus": probe.name} | figures, example)


def _find_mixed_languages(probe: CorpusProbe, sides: SideLanguages) -> Iterator[Finding]:
    for index, (side, guess) in enumerate(zip(SIDES, sides, strict=True)):
        others = [(guess_other_language(pair[index], guess), pair) for pair in probe.sample]
        counts = Counter(language for language, _ in others if language is not None)
        share = counts.total() / max(len(probe.sample), 1)
        if share <= MAX_OTHER_LANGUAGE_SHARE:
            continue
        other = counts.most_common(1)[0][0]
        lines = [pair[index] for language, pair in others if language == other]
        figures = {
            "corpus": probe.name,
            "side": side,
            "share": f"{share:.1%}",
            "other": guess_language(lines).language or other,  # a script may be all that is known
            "guess": guess.language or guess.script,
        }
        yield Finding("mixed_languages", "warning", figures, shorten(lines[0]))


def _find_swapped_pairs(probe: CorpusProbe, sides: SideLanguages) -> list[Finding]:
    """Return a finding if some pairs have the source where the others have the target."""
    src = _main_language(probe, 0, sides.src)
    tgt = _main_language(probe, 1, sides.tgt, other_than=src.language)
    swapped = [
        pair
        for pair in probe.sample
        if _is_in(guess_other_language(pair.src, src), tgt)
        and _is_in(guess_other_language(pair.tgt, tgt), src)
    ]
    share = len(swapped) / max(len(probe.sample), 1)
    if share <= MAX_SWAPPED_SHARE:
        return []
    figures = {
        "corpus": probe.name,
        "share": f"{share:.1%}",
        "src_guess": src.language or src.script,
        "tgt_guess": tgt.language or tgt.script,
    }
    return [Finding("pairs_swapped", "warning", figures, shorten(" | ".join(swapped[0])))]


def _main_language(
    probe: CorpusProbe, side: int, guess: LanguageGuess, other_than: str | None = None
) -> LanguageGuess:
    """Return the most frequent language of a side, also if a second one is as frequent."""
    if guess.script is None or (guess.language and guess.language != other_than):
        return guess
    votes = count_languages((pair[side] for pair in probe.sample), guess.script)
    names = [name for name, _ in votes.most_common() if not match_languages(name, other_than)]
    return guess._replace(language=next(iter(names), guess.language))


def _is_in(language: str | None, guess: LanguageGuess) -> bool:
    """Return whether the language or the script of a line is that of a guess."""
    return language is not None and (
        language == guess.script or match_languages(language, guess.language)
    )


def match_languages(first: str | None, second: str | None) -> bool:
    """Return whether both languages are known, and are the same or too similar."""
    return first is not None and second is not None and are_related(first, second)


def _are_swapped(sides: SideLanguages, others: SideLanguages) -> bool:
    return (
        match_languages(sides.src.language, others.tgt.language)
        and match_languages(sides.tgt.language, others.src.language)
        and not match_languages(sides.src.language, sides.tgt.language)
    )


def _is_other(guess: LanguageGuess, declared: str) -> bool:
    """Return whether text is clearly not in the declared language."""
    language, script = base_language(declared), language_script(declared)
    if script is None or guess.script is None or language in TWO_SCRIPTS:
        return False
    is_known = guess.language is not None
    return guess.script != script or (is_known and not match_languages(guess.language, language))


def _suffix_language(path: Path | None) -> str | None:
    """Return the language that the name of a file ends with: `train.en.gz` is "en"."""
    if path is None:
        return None
    suffix = path.name.removesuffix(".gz").rpartition(".")[2]
    return suffix if language_script(suffix) else None


def compare_dev_languages(dev: CorpusProbe, train: CorpusProbe) -> Iterator[Finding]:
    """Compare the languages of a dev set with those of a training corpus."""
    ours, theirs = dev.languages, train.languages
    is_other = any(
        one.script != other.script
        or (one.language and other.language and not are_related(one.language, other.language))
        for one, other in zip(ours, theirs, strict=True)
        if one.script and other.script
    )
    if is_other:
        names = ("src_guess", "tgt_guess", "train_src", "train_tgt")
        looks = [guess.language or guess.script or "?" for guess in (*ours, *theirs)]
        yield Finding("dev_language", "error", dict(zip(names, looks, strict=True)), dev.example)
