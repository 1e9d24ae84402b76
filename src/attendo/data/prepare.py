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
from attendo.core.seeding import derive_seed
from attendo.data.cleaning import CleaningConfig
from attendo.data.content_key import check_disk, content_key
from attendo.data.corpus_config import CorpusConfig
from attendo.data.dev_split import DevChooser, DevSplitConfig
from attendo.data.lines import check_file
from attendo.data.preparation import Cuts, Preparation, name_shards
from attendo.data.process_lock import hold_lock
from attendo.data.readers import read_pairs
from attendo.data.shards import TokenizedCorpus
from attendo.data.tokenizer import Tokenizer, TokenizerConfig

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.data.pair import Pair

    Progress = Callable[[str, int, int | None], None]

FORMAT = 1
"""Raised whenever the same input would be prepared differently."""
KEY_LENGTH = 16


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
    def _check_together(self) -> Self:
        kind = self.tokenizer.kind
        if not self.is_plain and any(corpus.text is not None for corpus in self.inputs):
            reason = "plain text (text) and pairs cannot be learnt from in one run"
            raise ConfigError.gather(type(self).__name__, [reason])
        if self.subword_dropout and kind != "bpe":
            reason = f"subword_dropout leaves out merges of a bpe tokenizer, not of kind '{kind}'"
            raise ConfigError.gather(type(self).__name__, [reason])
        return self

    @property
    def is_plain(self) -> bool:
        """Tell whether all corpora are plain text, without another side."""
        return all(corpus.text is not None for corpus in self.inputs)

    @property
    def num_cuts(self) -> int:
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


def prepare(
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
    tell: Progress = progress or (lambda _stage, _done, _total: None)
    cache_dir = Path(cache_dir)
    for path in config.paths:
        check_file(path)
    settings = _settings(config, seed, tokenizer)
    key = content_key(config.paths, settings, lambda *counts: tell("hash", *counts))[:KEY_LENGTH]
    directory = cache_dir / key
    if not directory.is_dir():
        _check_heads(config)
        cache_dir.mkdir(parents=True, exist_ok=True)
        with hold_lock(cache_dir / f".{key}.lock"):
            if not directory.is_dir():  # else another process has made it while this one waited
                _build_or_find(config, directory, seed, tokenizer, tell)
    return _load(config, directory)


def _settings(config: DataConfig, seed: int, tokenizer: Tokenizer | None) -> dict[str, Any]:
    """Give every setting that changes the outcome; weights and languages do not."""
    shape = {"src_field", "tgt_field", "allow_copies"}
    parts = {"dev_size", "disjoint", "max_tokens", "cleaning"}
    cuts = [config.subword_dropout, config.num_cuts] if config.subword_dropout else None
    return {
        "format": FORMAT,
        **({"cuts": cuts} if cuts else {}),
        "seed": seed,
        "corpora": [(c.resolved_format, c.model_dump(include=shape)) for c in config.inputs],
        **({"is_plain": True} if config.is_plain else {}),
        "has_dev": config.dev is not None,
        "tokenizer": config.tokenizer.model_dump() if tokenizer is None else tokenizer.fingerprint,
        **config.model_dump(include=parts),
    }


def _check_heads(config: DataConfig) -> None:
    """Let the readers refuse what they can tell from the beginning, before any long work."""
    for corpus in config.inputs:
        with closing(read_pairs(corpus)) as pairs:  # type: ignore[type-var]
            next(pairs)


def _build_or_find(
    config: DataConfig, directory: Path, seed: int, tokenizer: Tokenizer | None, tell: Progress
) -> None:
    try:
        _build(config, directory, seed, tokenizer, tell)
    except OSError as error:
        if not directory.is_dir():  # else another process was faster, where there are no locks
            reason = f"cannot write {directory}: {error.strerror or error}"
            raise InputError(reason, remedy="make room, or choose another cache folder") from error


def _build(
    config: DataConfig, directory: Path, seed: int, tokenizer: Tokenizer | None, tell: Progress
) -> None:
    check_disk(config.paths, directory.parent)
    with new_directory(directory) as folder:
        work = Preparation(config.corpora, folder, tell)
        if config.dev is None:
            chooser = DevChooser(
                DevSplitConfig(size=config.dev_size, disjoint=config.disjoint, seed=seed)
            )
            work.clean(config.cleaning, chooser.observe)
            work.take_dev(chooser.choose())
        else:
            work.read_dev(config.dev, normalise=config.cleaning.normalise)
            work.clean(config.cleaning, work.count_leak)
        tokenizer = tokenizer or work.train_tokenizer(config.tokenizer, seed)
        tokenizer.save(folder / "tokenizer")
        cuts = Cuts(config.num_cuts, config.subword_dropout, derive_seed(seed, "cuts"))
        work.tokenise(tokenizer, config.max_tokens, cuts)
        work.write_report()


def _load(config: DataConfig, directory: Path) -> PreparedData:
    try:
        report = json.loads((directory / "report.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = f"{directory} is damaged: report.json cannot be read ({error})"
        raise InputError(reason, remedy="delete the folder; it is made anew") from None
    train = []
    for number, (corpus, row) in enumerate(zip(config.corpora, report["corpora"], strict=True)):
        # The folder may have been made from the same texts in another place.
        row |= {"title": corpus.title, "weight": corpus.weight}
        for cut in range(config.num_cuts if row["num_train"] else 0):
            shards = TokenizedCorpus.load(directory / name_shards(number, cut))
            train.append((shards, corpus.weight / config.num_cuts))
    dev_text = CorpusConfig(src=directory / "dev.src", tgt=directory / "dev.tgt", allow_copies=True)
    return PreparedData(
        tokenizer=Tokenizer.load(directory / "tokenizer"),
        train=tuple(train),
        dev=TokenizedCorpus.load(directory / "dev"),
        dev_pairs=list(read_pairs(dev_text)),
        report=report,
        directory=directory,
    )
