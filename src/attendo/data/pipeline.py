"""From raw corpora to what training reads: cleaned, split, tokenised once, and kept for next time.

The result lies in a folder named after the content of the files and the settings (`content_key`).
If it is there it is used at once; otherwise the corpora stream by: a first pass cleans, a second
one takes dev out, then the tokenizer is trained and the ids are written. Memory grows by 8 bytes a
pair at most (for the duplicates). A killed process leaves nothing that the next would trust.
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
from attendo.data.cleaning import CleaningConfig
from attendo.data.corpus_config import CorpusConfig
from attendo.data.dev_split import DevSelector, DevSplitConfig
from attendo.data.fingerprint import check_disk_space, content_fingerprint
from attendo.data.pipeline_stages import PipelineRun, SubwordSampling, shard_folder_name
from attendo.data.readers import read_pairs
from attendo.data.shards import TokenizedCorpus
from attendo.text.lines import check_readable
from attendo.text.tokenizer import Tokenizer, TokenizerConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.data.pair import Pair

    Progress = Callable[[str, int, int | None], None]

FORMAT_VERSION = 1
"""Raised whenever the same input would be prepared differently."""
FINGERPRINT_LENGTH = 16


class DataConfig(Config):
    """Which corpora, how they are cleaned, and what is learnt from them before training."""

    corpora: Annotated[tuple[CorpusConfig, ...], Field(min_length=1)]
    dev: CorpusConfig | None = None
    """A dev set of its own; taken out of the corpora when not given."""
    dev_size: Count = 1000
    """Most pairs of a dev set that is taken out; never more than 5 % of the corpora."""
    disjoint: Literal["both", "source"] = "both"
    """Sides that such a dev set must not share with train."""
    max_tokens: Annotated[int, Field(ge=2)] = 256
    """Pairs with more tokens than this on a side are left out."""
    cleaning: CleaningConfig = CleaningConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    subword_dropout: Rate = 0.0
    """Departs from the paper: the chance that byte-pair encoding leaves a merge of train out
    (Provilkov et al. 2020), so that words are met in other pieces too; 0.1 is usual."""
    subword_samples: Count = 8
    """So many ways each pair of train is cut where `subword_dropout` is set; they take turns."""
    src_lang: str | None = None
    tgt_lang: str | None = None

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        kind = self.tokenizer.kind
        if not self.is_monolingual and any(corpus.text is not None for corpus in self.inputs):
            reason = "plain text (text) and pairs cannot be learnt from in one run"
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        if self.subword_dropout and kind != "bpe":
            reason = f"subword_dropout leaves out merges of a bpe tokenizer, not of kind '{kind}'"
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        return self

    @property
    def is_monolingual(self) -> bool:
        """Tell whether all corpora are plain text, without another side."""
        return all(corpus.text is not None for corpus in self.inputs)

    @property
    def num_subword_samples(self) -> int:
        """Give how many times train is tokenised."""
        return self.subword_samples if self.subword_dropout else 1

    @property
    def inputs(self) -> tuple[CorpusConfig, ...]:
        """The corpora, and dev where it is given."""
        return self.corpora if self.dev is None else (*self.corpora, self.dev)

    @property
    def paths(self) -> list[Path]:
        """Every file that is read."""
        return [path for corpus in self.inputs for path in corpus.paths]


class PreparedData(NamedTuple):
    """All that training needs of the data."""

    tokenizer: Tokenizer
    train: tuple[tuple[TokenizedCorpus, float], ...]
    """Each corpus with its weight, once for each way it is cut; empty ones are left out."""
    dev: TokenizedCorpus
    dev_pairs: list[Pair]
    """The texts of `dev`, pair by pair."""
    report: dict[str, Any]
    """What was kept and dropped and why, as in `report.json`: see `Preparation.write_report`."""
    directory: Path


def prepare_data(
    config: DataConfig,
    cache_dir: Path,
    *,
    seed: int = 1,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
) -> PreparedData:
    """Prepare the corpora in a folder below `cache_dir`, or find it there from an earlier call.

    A `tokenizer` that is given is used as it is. `progress` is told the stage, how much of it is
    done, and of how much (None where nobody knows yet).
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
            if not directory.is_dir():  # else another process has made it while this one waited
                _build_if_missing(config, directory, seed, tokenizer, report_progress)
    return _load(config, directory)


def _fingerprint_settings(
    config: DataConfig, seed: int, tokenizer: Tokenizer | None
) -> dict[str, Any]:
    """Give every setting that changes the outcome; weights and languages do not."""
    shape = {"src_field", "tgt_field", "allow_copies"}
    parts = {"dev_size", "disjoint", "max_tokens", "cleaning"}
    sampling = (
        [config.subword_dropout, config.num_subword_samples] if config.subword_dropout else None
    )
    return {
        "format": FORMAT_VERSION,
        **({"cuts": sampling} if sampling else {}),
        "seed": seed,
        "corpora": [(c.resolved_format, c.model_dump(include=shape)) for c in config.inputs],
        **({"is_plain": True} if config.is_monolingual else {}),
        "has_dev": config.dev is not None,
        "tokenizer": config.tokenizer.model_dump() if tokenizer is None else tokenizer.fingerprint,
        **config.model_dump(include=parts),
    }


def _check_readable(config: DataConfig) -> None:
    """Let the readers refuse what they can tell from the beginning, before any long work."""
    for corpus in config.inputs:
        with closing(read_pairs(corpus)) as pairs:  # type: ignore[type-var]
            next(pairs)


def _build_if_missing(
    config: DataConfig, directory: Path, seed: int, tokenizer: Tokenizer | None, progress: Progress
) -> None:
    try:
        _build(config, directory, seed, tokenizer, progress)
    except OSError as error:
        if not directory.is_dir():  # else another process was faster, where there are no locks
            reason = f"cannot write {directory}: {error.strerror or error}"
            raise InputError(reason, hint="make room, or choose another cache folder") from error


def _build(
    config: DataConfig, directory: Path, seed: int, tokenizer: Tokenizer | None, progress: Progress
) -> None:
    check_disk_space(config.paths, directory.parent)
    with new_directory(directory) as folder:
        pipeline = PipelineRun(config.corpora, folder, progress)
        if config.dev is None:
            selector = DevSelector(
                DevSplitConfig(size=config.dev_size, disjoint=config.disjoint, seed=seed)
            )
            pipeline.clean(config.cleaning, selector.observe)
            pipeline.split_dev(selector.select())
        else:
            pipeline.read_dev(config.dev, normalize=config.cleaning.normalise)
            pipeline.clean(config.cleaning, pipeline.count_overlap)
        tokenizer = tokenizer or pipeline.train_tokenizer(config.tokenizer, seed)
        tokenizer.save(folder / "tokenizer")
        sampling = SubwordSampling(
            config.num_subword_samples, config.subword_dropout, derive_seed(seed, "cuts")
        )
        pipeline.tokenize(tokenizer, config.max_tokens, sampling)
        pipeline.write_report()


def _load(config: DataConfig, directory: Path) -> PreparedData:
    try:
        report = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = f"{directory} is damaged: report.json cannot be read ({error})"
        raise InputError(reason, hint="delete the folder; it is made anew") from None
    train = []
    for number, (corpus, row) in enumerate(zip(config.corpora, report["corpora"], strict=True)):
        # The folder may have been made from the same texts in another place.
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
