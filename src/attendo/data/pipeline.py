"""The data pipeline: raw corpora are cleaned, split, tokenized once and cached for the next run.

The cache folder is named after the content of the files and the settings (`content_fingerprint`).
If it exists, it is loaded at once; otherwise this module runs the stages of
`attendo.data.pipeline_stages` in order: clean, split off dev, train the tokenizer, write the ids.
Memory grows by at most 8 bytes per pair (to detect duplicates). A killed process leaves only a
partial folder, which the next one deletes.
"""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.core.errors import InputError
from attendo.core.files import new_directory
from attendo.core.logs import get_logger
from attendo.core.message import message
from attendo.core.os_errors import write_error_hint
from attendo.core.process_lock import process_lock
from attendo.core.seeding import derive_seed
from attendo.data.cleaning import OLD_NORMALIZE_KEY
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.dev_split import DevSelector, DevSplitConfig
from attendo.data.findings import Finding
from attendo.data.fingerprint import (
    check_disk_space,
    combine_digests,
    find_damaged_file,
    hash_files,
    write_checksums,
)
from attendo.data.labels import LABEL_VERSION
from attendo.data.pipeline_stages import (
    REPORT_FILE,
    PipelineStages,
    SubwordSampling,
    shard_folder_name,
)
from attendo.data.readers import find_selection, read_pairs
from attendo.data.shards import TokenizedCorpus
from attendo.text.labels import label_token
from attendo.text.lines import check_readable
from attendo.text.tokenizer import Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from attendo.data.config import DataConfig
    from attendo.data.pipeline_stages import Progress

    FindingsHandler = Callable[[list[Finding]], None]

logger = get_logger(__name__)
FORMAT_VERSION = 2
"""Increased whenever the same input would be prepared differently."""
AUGMENTATION_VERSION = 1
"""Increased whenever pairs would be changed differently (`attendo.data.augmentation`)."""
SELECTION_VERSION = 2
"""Increased whenever other columns or fields of the same file would be chosen."""
FINGERPRINT_LENGTH = 16
DISJOINT_SUFFIX = "-disjoint"
"""Ends the key of data whose train lost pairs that are also in its dev set."""


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
    file_digests: tuple[str, ...] = ()
    """The SHA-256 of each file of the corpora."""

    @property
    def findings(self) -> list[Finding]:
        """What the data check has found; nothing if the data was prepared before it existed."""
        return [Finding.from_json(stored) for stored in self.report.get("check", ())]


class _Build(NamedTuple):
    """The arguments of a preparation."""

    config: DataConfig
    seed: int
    tokenizer: Tokenizer | None
    progress: Progress
    on_findings: FindingsHandler
    keep_overlap: bool


def prepare_data(
    config: DataConfig,
    cache_dir: Path,
    *,
    seed: int = 1,
    tokenizer: Tokenizer | None = None,
    progress: Progress | None = None,
    on_findings: FindingsHandler | None = None,
    resumed_key: str | None = None,
) -> PreparedData:
    """Prepare the corpora in a folder below `cache_dir`, or load it from an earlier call.

    Args:
        config: The corpora and how they are prepared.
        cache_dir: The folder of all prepared data.
        seed: Seed of the dev set, the tokenizer and the subword dropout.
        tokenizer: Use this tokenizer instead of training one.
        progress: Called with the name of the stage, the amount done and the total (None if
            unknown).
        on_findings: Called with what the data check finds, before the tokenizer is trained; it may
            raise an error.
        resumed_key: The key of the data that a resumed run has trained on. If that was prepared
            before pairs of dev were dropped from train, they stay.

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
    digests = hash_files(config.paths, lambda *counts: report_progress("hash", *counts))
    key = combine_digests(digests, settings)[:FINGERPRINT_LENGTH]
    keep_overlap = key == resumed_key
    handle_findings: FindingsHandler = on_findings or (lambda _: None)
    prepared = _load_intact(config, cache_dir, key, keep_overlap=keep_overlap)
    if prepared is None:
        _check_readable(config)
        _make_cache(cache_dir)
        build = _Build(config, seed, tokenizer, report_progress, handle_findings, keep_overlap)
        with process_lock(cache_dir / f".{key}.lock"):
            # Another process may have built it in the meantime.
            prepared = _load_intact(config, cache_dir, key, keep_overlap=keep_overlap)
            if prepared is None:
                _delete_damaged(cache_dir, key)
                directory = _build_or_explain(build, cache_dir, key)
                return _load(config, directory)._replace(file_digests=tuple(digests))
    handle_findings(prepared.findings)
    return prepared._replace(file_digests=tuple(digests))


def _load_intact(
    config: DataConfig, cache_dir: Path, key: str, *, keep_overlap: bool
) -> PreparedData | None:
    """Load prepared data; return None if there is none, or if it is damaged."""
    if any(map(_is_damaged, _possible_directories(cache_dir, key))):
        return None
    directory = _find_directory(cache_dir, key, keep_overlap=keep_overlap)
    return _load(config, directory) if directory.is_dir() else None


def _possible_directories(cache_dir: Path, key: str) -> tuple[Path, Path]:
    """Return where prepared data with this key may be."""
    return cache_dir / key, cache_dir / f"{key}{DISJOINT_SUFFIX}"


def _is_damaged(directory: Path) -> bool:
    return directory.is_dir() and find_damaged_file(directory) is not None


def _delete_damaged(cache_dir: Path, key: str) -> None:
    for directory in filter(_is_damaged, _possible_directories(cache_dir, key)):
        text = (
            "warning: {file} in the prepared data {folder} is damaged; the data is prepared again"
        )
        logger.warning(message(text, file=find_damaged_file(directory), folder=directory))
        shutil.rmtree(directory)


def _find_directory(cache_dir: Path, key: str, *, keep_overlap: bool) -> Path:
    """Return the folder of prepared data if it exists, or where it might be.

    Train pairs that are also in a given dev set were once kept. Data without such pairs is the same
    as then, and so is its key; data without the pairs that it had has a key of its own.
    """
    directory, disjoint = _possible_directories(cache_dir, key)
    if keep_overlap:
        return directory
    if directory.is_dir() and not _read_report(directory)["dev"].get("num_in_train"):
        return directory
    return disjoint if directory.is_dir() or disjoint.is_dir() else directory


def _fingerprint_settings(
    config: DataConfig, seed: int, tokenizer: Tokenizer | None
) -> dict[str, Any]:
    """Return every setting that changes the result; weights and languages do not.

    The keys are older than the names of the settings: renaming them would invalidate the caches.
    """
    data_keys = {"dev_size", "disjoint", "max_tokens", "cleaning"}
    data_settings = config.model_dump(include=data_keys)
    cleaning = data_settings["cleaning"]
    cleaning[OLD_NORMALIZE_KEY] = cleaning.pop("normalize")
    sampling = (
        [config.subword_dropout, config.num_subword_samples] if config.subword_dropout else None
    )
    augmentation = None
    if config.augmentation.enabled:
        augmentation = [AUGMENTATION_VERSION, config.augmentation.model_dump()]
    return {
        "format": FORMAT_VERSION,
        **({"cuts": sampling} if sampling else {}),
        **({"augmentation": augmentation} if augmentation else {}),
        **(
            {"labels": [LABEL_VERSION, config.label_rule, config.all_labels]}
            if config.all_labels
            else {}
        ),
        "seed": seed,
        "corpora": [_corpus_settings(corpus) for corpus in config.inputs],
        **({"is_plain": True} if config.is_monolingual else {}),
        "has_dev": config.dev is not None,
        "tokenizer": config.tokenizer.model_dump() if tokenizer is None else tokenizer.fingerprint,
        **data_settings,
    }


def _corpus_settings(corpus: CorpusConfig) -> tuple[str, dict[str, Any]]:
    """Return the format and the settings that change which pairs are read."""
    settings = corpus.model_dump(include={"src_field", "tgt_field", "allow_copies"})
    if corpus.path is not None and corpus.src_field is None:
        settings["selection"] = [SELECTION_VERSION, *corpus.languages]
    return corpus.resolved_format, settings


def _check_readable(config: DataConfig) -> None:
    """Read the beginning of every corpus, so that errors show up before any long work."""
    for corpus in config.inputs:
        with closing(read_pairs(corpus)) as pairs:  # type: ignore[type-var]
            next(pairs)


def _build_or_explain(build: _Build, cache_dir: Path, key: str) -> Path:
    try:
        return _build(build, cache_dir, key)
    except OSError as error:
        directory = _find_directory(cache_dir, key, keep_overlap=build.keep_overlap)
        if directory.is_dir():  # another process was faster, on a file system without locks
            return directory
        raise _cache_error(directory, error) from error


def _make_cache(cache_dir: Path) -> None:
    try:
        cache_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cache_error(cache_dir, error) from error


def _cache_error(path: Path, error: OSError) -> InputError:
    detail = error.strerror or error
    hint = message(
        "{detail}; the variable ATTENDO_CACHE names the cache folder",
        detail=write_error_hint(error),
    )
    return InputError(
        message("{path} could not be written: {detail}", path=path, detail=detail), hint=hint
    )


def _build(build: _Build, cache_dir: Path, key: str) -> Path:
    """Prepare the data in a new folder, and return it."""
    drops_overlap = build.config.dev is not None and not build.keep_overlap
    directory = cache_dir / f"{key}{DISJOINT_SUFFIX if drops_overlap else ''}"
    check_disk_space(build.config.paths, cache_dir)
    with new_directory(directory) as folder:
        stages = PipelineStages(build.config.corpora, folder, build.progress)
        _run_stages(stages, build)
        write_checksums(folder)
    if drops_overlap and not stages.num_overlapping:
        return directory.rename(cache_dir / key)
    return directory


def _run_stages(stages: PipelineStages, build: _Build) -> None:
    config, seed = build.config, build.seed
    if config.dev is None:
        selector = DevSelector(
            DevSplitConfig(size=config.dev_size, disjoint=config.disjoint, seed=seed)
        )
        stages.clean(config.cleaning, selector.observe)
        build.on_findings(stages.check(config, build.tokenizer))
        stages.split_dev(selector.select())
    else:
        stages.read_dev(config.dev, normalize=config.cleaning.normalize)
        stages.clean(config.cleaning, keep_overlap=build.keep_overlap)
        build.on_findings(stages.check(config, build.tokenizer))
    tokenizer = build.tokenizer or stages.train_tokenizer(
        config.tokenizer, seed, symbols=[label_token(label) for label in config.all_labels]
    )
    tokenizer.save(stages.folder / "tokenizer")
    sampling = SubwordSampling(
        config.num_subword_samples,
        config.subword_dropout,
        derive_seed(seed, "cuts"),
        config.augmentation,
        config.label_rule,
    )
    stages.tokenize(tokenizer, config.max_tokens, sampling)
    stages.write_report()


def _read_report(directory: Path) -> dict[str, Any]:
    try:
        report: dict[str, Any] = json.loads((directory / REPORT_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        reason = message(
            "{directory} is damaged: report.json cannot be read ({error})",
            directory=directory,
            error=error,
        )
        raise InputError(reason, hint="delete the folder; it will be created again") from None
    return report


def _load(config: DataConfig, directory: Path) -> PreparedData:
    report = _read_report(directory)
    train = []
    for number, (corpus, row) in enumerate(zip(config.corpora, report["corpora"], strict=True)):
        # The folder may have been built from copies of the same files.
        row |= {"title": corpus.title, "weight": corpus.weight}
        selection = find_selection(corpus)
        row |= {"src": selection.src, "tgt": selection.tgt} if selection else {}
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
