"""The data pipeline: raw corpora are cleaned, split, tokenized once and cached for the next run.

The cache folder is named after the content of the files and the settings (`content_fingerprint`).
If it exists, it is loaded at once; otherwise this module runs the stages of
`attendo.data.pipeline_stages` in order: clean, split off dev, train the tokenizer, write the ids.
Memory grows by at most 8 bytes per pair (to detect duplicates). A killed process leaves only a
partial folder, which the next one deletes.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from attendo.core.config import Config, Count, Rate
from attendo.core.errors import ConfigError, InputError
from attendo.core.files import new_directory
from attendo.core.process_lock import process_lock
from attendo.core.seeding import derive_seed
from attendo.data.cleaning import OLD_NORMALIZE_KEY, CleaningConfig
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.dev_split import DevSelector, DevSplitConfig
from attendo.data.fingerprint import check_disk_space, content_fingerprint
from attendo.data.pipeline_stages import PipelineStages, SubwordSampling, shard_folder_name
from attendo.data.readers import read_pairs
from attendo.data.shards import TokenizedCorpus
from attendo.text.lines import check_readable
from attendo.text.tokenizer import Tokenizer, TokenizerConfig

if TYPE_CHECKING:
    from attendo.data.pipeline_stages import Progress

FORMAT_VERSION = 1
"""Increased whenever the same input would be prepared differently."""
FINGERPRINT_LENGTH = 16


class DataConfig(Config):
    """The corpora, and how they are cleaned, split and tokenized."""

    corpora: Annotated[tuple[CorpusConfig, ...], Field(min_length=1)]
    dev: CorpusConfig | None = None
    """A separate dev set; split off the corpora if not given."""
    dev_size: Count = 1000
    """Maximum size of a dev set that is split off; never more than 5 % of the corpora."""
    disjoint: Literal["both", "source"] = "both"
    """Sides that such a dev set must not share with train."""
    max_tokens: Annotated[int, Field(ge=2)] = 256
    """Pairs with more tokens than this on a side are dropped."""
    cleaning: CleaningConfig = CleaningConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    subword_dropout: Rate = 0.0
    """Departs from the paper: probability of skipping a BPE merge in train (BPE-dropout, Provilkov
    et al. 2020), so that a word is seen in several segmentations; 0.1 is usual."""
    subword_samples: Count = 8
    """Number of segmentations of each training pair with `subword_dropout`; they alternate."""
    src_lang: str | None = None
    tgt_lang: str | None = None

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        kind = self.tokenizer.kind
        if not self.is_monolingual and any(corpus.text is not None for corpus in self.inputs):
            reason = "one run cannot train on both monolingual text (text) and pairs"
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        if self.subword_dropout and kind != "bpe":
            reason = f"subword_dropout needs a tokenizer of kind 'bpe', not '{kind}'"
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        return self

    @property
    def is_monolingual(self) -> bool:
        """Whether all corpora are monolingual."""
        return all(corpus.text is not None for corpus in self.inputs)

    @property
    def num_subword_samples(self) -> int:
        """How many times train is tokenized."""
        return self.subword_samples if self.subword_dropout else 1

    @property
    def inputs(self) -> tuple[CorpusConfig, ...]:
        """The corpora, and dev if given."""
        return self.corpora if self.dev is None else (*self.corpora, self.dev)

    @property
    def paths(self) -> list[Path]:
        """Every file that is read."""
        return [path for corpus in self.inputs for path in corpus.paths]


class PreparedData(NamedTuple):
    """The prepared data that training needs."""

    tokenizer: Tokenizer
    train: tuple[tuple[TokenizedCorpus, float], ...]
    """Each corpus with its weight, once per segmentation; without empty ones."""
    dev: TokenizedCorpus
    dev_pairs: list[Pair]
    """The texts of `dev`."""
    report: dict[str, Any]
    """What was kept and dropped and why: the content of `report.json`."""
    directory: Path


def prepare_data(
    config: DataConfig,
    cache_dir: Path,
    *,
    seed: int = 1,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
) -> PreparedData:
    """Prepare the corpora in a folder below `cache_dir`, or load it from an earlier call.

    Args:
        config: The corpora and how they are prepared.
        cache_dir: The folder of all prepared data.
        seed: Seed of the dev set, the tokenizer and the subword dropout.
        tokenizer: Use this tokenizer instead of training one.
        progress: Called with the name of the stage, the amount done and the total (None if
            unknown).

    Returns:
        The tokenizer, the tokenized corpora and the report.

    Raises:
        InputError: If a corpus cannot be read, no pair is left, or the disk is full.

    """
    report_progress: Progress = progress or (lambda _stage, _done, _total: None)
    cache_dir = Path(cache_dir)
    for path in config.paths:
        check_readable(path)
    settings = _fingerprint_settings(config, seed, tokenizer)
    fingerprint = content_fingerprint(
        config.paths, settings, lambda *counts: report_progress("hash", *counts)
    )[:FINGERPRINT_LENGTH]
    directory = cache_dir / fingerprint
    if not directory.is_dir():
        _check_readable(config)
        cache_dir.mkdir(parents=True, exist_ok=True)
        with process_lock(cache_dir / f".{fingerprint}.lock"):
            if not directory.is_dir():  # else another process built it in the meantime
                _build_or_explain(config, directory, seed, tokenizer, report_progress)
    return _load(config, directory)


def _fingerprint_settings(
    config: DataConfig, seed: int, tokenizer: Tokenizer | None
) -> dict[str, Any]:
    """Return every setting that changes the result; weights and languages do not.

    The keys are older than the names of the settings: renaming them would invalidate the caches.
    """
    corpus_keys = {"src_field", "tgt_field", "allow_copies"}
    data_keys = {"dev_size", "disjoint", "max_tokens", "cleaning"}
    data_settings = config.model_dump(include=data_keys)
    cleaning = data_settings["cleaning"]
    cleaning[OLD_NORMALIZE_KEY] = cleaning.pop("normalize")
    sampling = (
        [config.subword_dropout, config.num_subword_samples] if config.subword_dropout else None
    )
    return {
        "format": FORMAT_VERSION,
        **({"cuts": sampling} if sampling else {}),
        "seed": seed,
        "corpora": [(c.resolved_format, c.model_dump(include=corpus_keys)) for c in config.inputs],
        **({"is_plain": True} if config.is_monolingual else {}),
        "has_dev": config.dev is not None,
        "tokenizer": config.tokenizer.model_dump() if tokenizer is None else tokenizer.fingerprint,
        **data_settings,
    }


def _check_readable(config: DataConfig) -> None:
    """Read the beginning of every corpus, so that errors show up before any long work."""
    for corpus in config.inputs:
        with closing(read_pairs(corpus)) as pairs:  # type: ignore[type-var]
            next(pairs)


def _build_or_explain(
    config: DataConfig, directory: Path, seed: int, tokenizer: Tokenizer | None, progress: Progress
) -> None:
    try:
        _build(config, directory, seed, tokenizer, progress)
    except OSError as error:
        if (
            not directory.is_dir()
        ):  # else another process was faster, on a file system without locks
            reason = f"cannot write {directory}: {error.strerror or error}"
            raise InputError(
                reason, hint="free some space, or choose another cache folder"
            ) from error


def _build(
    config: DataConfig, directory: Path, seed: int, tokenizer: Tokenizer | None, progress: Progress
) -> None:
    check_disk_space(config.paths, directory.parent)
    with new_directory(directory) as folder:
        stages = PipelineStages(config.corpora, folder, progress)
        if config.dev is None:
            selector = DevSelector(
                DevSplitConfig(size=config.dev_size, disjoint=config.disjoint, seed=seed)
            )
            stages.clean(config.cleaning, selector.observe)
            stages.split_dev(selector.select())
        else:
            stages.read_dev(config.dev, normalize=config.cleaning.normalize)
            stages.clean(config.cleaning, stages.count_overlap)
        tokenizer = tokenizer or stages.train_tokenizer(config.tokenizer, seed)
        tokenizer.save(folder / "tokenizer")
        sampling = SubwordSampling(
            config.num_subword_samples, config.subword_dropout, derive_seed(seed, "cuts")
        )
        stages.tokenize(tokenizer, config.max_tokens, sampling)
        stages.write_report()


def _load(config: DataConfig, directory: Path) -> PreparedData:
    try:
        report = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = f"{directory} is damaged: report.json cannot be read ({error})"
        raise InputError(reason, hint="delete the folder; it will be created again") from None
    train = []
    for number, (corpus, row) in enumerate(zip(config.corpora, report["corpora"], strict=True)):
        # The folder may have been built from copies of the same files.
        row |= {"title": corpus.title, "weight": corpus.weight}
        for sample_index in range(config.num_subword_samples if row["num_train"] else 0):
            shards = TokenizedCorpus.load(directory / shard_folder_name(number, sample_index))
            train.append((shards, corpus.weight / config.num_subword_samples))
    dev_text = CorpusConfig(src=directory / "dev.src", tgt=directory / "dev.tgt", allow_copies=True)
    return PreparedData(
        tokenizer=Tokenizer.load(directory / "tokenizer"),
        train=tuple(train),
        dev=TokenizedCorpus.load(directory / "dev"),
        dev_pairs=list(read_pairs(dev_text)),
        report=report,
        directory=directory,
    )
