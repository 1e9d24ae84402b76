"""Checks whether a corpus looks like something that a model can learn from.

Probes watch the corpora while they are cleaned (`attendo.data.corpus_probe`), and rules judge what
they have kept (`attendo.data.check_rules`). The data pipeline does so before anything expensive;
`check_data` does so alone, for `attendo check`. Findings are errors (training would be useless),
warnings and infos.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.data.check_rules import CheckedData, find_problems
from attendo.data.cleaning import CleaningConfig, clean_pairs
from attendo.data.corpus_probe import CorpusProbe
from attendo.data.dedup import HashSet64, hash_pair
from attendo.data.readers import read_pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from attendo.data.config import DataConfig
    from attendo.data.corpus_config import Pair
    from attendo.data.findings import Finding
    from attendo.text.tokenizer import Tokenizer

DROP_EMPTY_ONLY = CleaningConfig(
    max_words=None,
    max_characters=None,
    max_length_ratio=None,
    drop_duplicates=False,
    max_copy_words=None,
)
"""A dev set that is given is used as it is."""


class CheckResult(NamedTuple):
    """The figures and the findings of a data check."""

    figures: list[dict[str, Any]]
    """One row per corpus, the last one is dev if it was given."""
    findings: list[Finding]


def check_data(
    config: DataConfig,
    *,
    tokenizer: Tokenizer | None = None,
    progress: Callable[[int], None] | None = None,
) -> CheckResult:
    """Read and check the corpora of a config, without writing anything.

    Args:
        config: The corpora.
        tokenizer: The tokenizer of the model that a run would start from.
        progress: Called with the number of pairs read so far.

    Returns:
        Figures of each corpus, and the findings, the most severe first.

    Raises:
        InputError: If a corpus cannot be read.

    """
    dev_hashes, dev_probe = HashSet64(), None
    if config.dev is not None:
        dev_probe = CorpusProbe(config.dev)
        for pair in read_dev_pairs(dev_probe, normalize=config.cleaning.normalize):
            dev_hashes.add(hash_pair(*pair))
    probes = [CorpusProbe(corpus) for corpus in config.corpora]
    seen = HashSet64()
    for probe in probes:
        raw = _count(read_pairs(probe.config), progress)
        cleaned = clean_corpus(raw, probe, config.cleaning, seen_hashes=seen, dev_hashes=dev_hashes)
        for _ in cleaned:
            pass
    checked = CheckedData(config, probes, dev_probe, tokenizer)
    figures = [describe_probe(probe, is_dev=probe is dev_probe) for probe in checked.probes]
    return CheckResult(figures, find_problems(checked))


def clean_corpus(
    raw: Iterable[Pair],
    probe: CorpusProbe,
    cleaning: CleaningConfig,
    *,
    seen_hashes: HashSet64,
    dev_hashes: HashSet64,
) -> Iterator[Pair]:
    """Yield the cleaned pairs of a corpus, without those of dev, while its probe watches."""
    if probe.config.text is not None:
        cleaning = cleaning.replace(max_copy_words=None)
    pairs = clean_pairs(
        probe.watch(raw), cleaning, probe.report, seen_hashes=seen_hashes, dev_hashes=dev_hashes
    )
    for pair in pairs:
        probe.observe(pair)
        yield pair


def read_dev_pairs(probe: CorpusProbe, *, normalize: bool) -> Iterator[Pair]:
    """Yield the pairs of a dev set that was given; only those with an empty side are dropped."""
    return clean_corpus(
        read_pairs(probe.config),
        probe,
        DROP_EMPTY_ONLY.replace(normalize=normalize),
        seen_hashes=HashSet64(),
        dev_hashes=HashSet64(),
    )


def _count(pairs: Iterable[Pair], progress: Callable[[int], None] | None) -> Iterator[Pair]:
    for number, pair in enumerate(pairs, 1):
        yield pair
        if progress is not None and number % 10_000 == 0:
            progress(number)


def describe_probe(probe: CorpusProbe, *, is_dev: bool) -> dict[str, Any]:
    """Return the figures of one corpus."""
    sides = probe.languages
    num_sampled = max(len(probe.sample), 1)
    score = probe.alignment.score
    return {
        "corpus": probe.config.title,
        "name": probe.name,
        "is_dev": is_dev,
        "num_read": probe.report.num_read,
        "num_kept": probe.report.num_kept,
        "src_language": sides.src.language,
        "tgt_language": sides.tgt.language,
        "src_script": sides.src.script,
        "tgt_script": sides.tgt.script,
        "src_characters": round(sum(len(pair.src) for pair in probe.sample) / num_sampled, 1),
        "tgt_characters": round(sum(len(pair.tgt) for pair in probe.sample) / num_sampled, 1),
        "alignment": None if score is None else round(score, 1),
    }
