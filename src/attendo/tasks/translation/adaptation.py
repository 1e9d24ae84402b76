"""Adapt a model to corrections: fine-tune it, measure what it gained and lost, publish it or not.

Training starts from the first model each time, with all corrections and a sample of the data that
it was trained on (`attendo.tasks.replay`): what one adaptation forgets does not add up. The new
weights are mixed with the old ones in several shares (Wortsman et al. 2022). Of the mixtures that
lost no more than a given number of points of BLEU or chrF, on dev and on corrections that the
model has not seen, the one with the largest gain on these is published
(`attendo.core.model_versions`).
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from attendo.bundle import read_about
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.files import write_atomically
from attendo.core.message import join_messages, message
from attendo.core.model_versions import PublishedModel
from attendo.core.run_folder import ModelFolder
from attendo.core.shipped_models import raise_if_not_shipped
from attendo.data.corpus_config import CorpusConfig
from attendo.tasks.request import TrainRequest
from attendo.tasks.translation.adaptation_scores import ModelComparer
from attendo.tasks.translation.corrections import (
    read_corrections,
    sample_pairs,
    write_pairs,
)
from attendo.text.lines import check_readable
from attendo.text.tokenizer import Tokenizer
from attendo.training.progress import NullReporter
from attendo.training.schedule import PAPER_WARMUP_STEPS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.core.run_folder import RunFolder
    from attendo.data.corpus_config import Pair
    from attendo.tasks.translation.adaptation_scores import Comparison
    from attendo.tasks.translation.corrections import Corrections
    from attendo.training.progress import Reporter

WORK_DIR, RUN_DIR, MIXTURE_DIR = "adapt", "run", "mixture"
DEV, HELD_BACK = "dev", "the corrections that were held back"
MIXTURES = (1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
"""Shares of the new weights that are tried."""
MAX_DROP = 0.3
"""Points of BLEU and chrF that the model may lose."""
REPLAY_SHARE = 0.9
MAX_REPLAYED, MAX_DEV_LINES = 20_000, 1000
"""Old pairs that are sampled from, and lines of dev that are translated."""
EPOCHS, MIN_STEPS = 20, 100
"""Passes over the corrections; the old pairs among them are others in every pass."""
BATCH_TOKENS, MAX_BATCH_TOKENS, STEPS_PER_EPOCH = 512, 4096, 8
"""The smallest and the largest batch; between them, an epoch has this number of steps."""
WARMUP_SHARE = 0.1
RATE = 1.0
"""Peak learning rate, relative to the paper's (equation 3 at 4,000 steps). The mixture with the old
weights undoes what is too much."""
FINE_TUNING_SETTINGS = (
    "data.check=false",
    "train.average=last",
    "train.average_checkpoints=1",
    "train.early_stopping_metric=loss",
    "train.patience=1000",
    "train.bleu_sentences=0",
    "model.dropout=0.0",
)
"""The last weights are the model, and training does not end early: dev would choose the weights
that have learned least. The old data was checked when the model was trained. Without dropout the
model gains more on the corrections and loses less on dev."""


@dataclass(frozen=True, kw_only=True)
class AdaptRequest:
    """What is adapted, to what, and what may be lost."""

    model: Path
    corrections: Path
    out: Path
    dev: tuple[Path, Path] | None = None
    """Source and target; by default the dev set of the run that trained the model."""
    replay: Sequence[tuple[Path, Path]] = ()
    """Old training data; by default that of the run."""
    replay_share: float = REPLAY_SHARE
    max_drop: float = MAX_DROP
    steps: int | None = None
    budget: str | None = None
    settings: Sequence[str] = field(default_factory=tuple)
    device: str | None = None
    threads: int | None = None


class Adaptation(NamedTuple):
    """What an adaptation has measured, and what became of its model."""

    model_dir: Path
    """The published model; the new one if it was refused."""
    previous: Path | None
    """Where the model is now that was published before."""
    comparisons: list[Comparison]
    reasons: list[str]
    """Why the new model was not published; empty if it was."""
    num_corrections: int
    num_replayed: int
    share: float = 1.0
    """The share of the new weights in the model."""


def adapt_model(request: AdaptRequest, *, reporter: Reporter | None = None) -> Adaptation:
    """Fine-tune a model on corrections, and publish it if it lost nothing.

    Raises:
        ConfigError: neither dev nor the run of the model is known, or settings do not fit.
        InputError: no model, or too few corrections.

    """
    shown = reporter or NullReporter()
    base = _find_base(request)
    about = read_about(base)
    languages = find_languages(about, base)
    run = ModelFolder.find(request.model).run
    run_settings = _locate_data(run.read_config(), run.path) if run.exists() else {}
    dev = _find_dev(request, run_settings)
    replay_corpora = _find_replay(request, run_settings)
    corrections = read_corrections(request.corrections, *languages)
    published = PublishedModel(request.out)
    with published.lock():
        published.keep_first(base)
        work = request.out / WORK_DIR
        work.mkdir(exist_ok=True)
        if dev is None:
            dev_pairs = _split_off_dev(run, shown)[:MAX_DEV_LINES]
        else:
            dev_pairs = sample_pairs([dev], MAX_DEV_LINES)
        measured = [*dev_pairs, *corrections.held_back]
        replayed = sample_pairs(replay_corpora, MAX_REPLAYED, without=measured)
        files = _TrainingFiles.write(work, corrections, replayed, dev_pairs)
        adapted = _train(request, base, languages, files, work / RUN_DIR, shown)
        sets = {DEV: dev_pairs, HELD_BACK: corrections.held_back}
        comparer = ModelComparer(sets, _translation(request, shown), base)
        mixtures = _Mixtures(base, adapted, work / MIXTURE_DIR)
        chosen = _choose_mixture(mixtures, comparer, request.max_drop)
        result = Adaptation(
            mixtures.write(chosen.share), None, chosen.comparisons, chosen.reasons,
            corrections.total, len(replayed), chosen.share,
        )  # fmt: skip
        if result.reasons:
            return result
        if result.share < 1:
            _recalibrate(result.model_dir, dev_pairs, request)
        previous = published.publish(result.model_dir, _describe(result))
        return result._replace(model_dir=published.model.path, previous=previous)


class _Mixtures(NamedTuple):
    """Models whose weights lie between those of two models."""

    base: Path
    adapted: Path
    out: Path

    def write(self, share: float) -> Path:
        """Write the model with a share of the new weights, and return its folder."""
        return self.adapted if share == 1 else _mix(self.base, self.adapted, share, self.out)


class _Candidate(NamedTuple):
    """A mixture, what it gained and lost, and why it must not be published."""

    share: float
    comparisons: list[Comparison]
    reasons: list[str]


def _choose_mixture(mixtures: _Mixtures, comparer: ModelComparer, max_drop: float) -> _Candidate:
    """Return the mixture with the largest gain in chrF on the corrections that were held back.

    Mixtures that lost too much are left out; if all of them have, the one that lost least on dev is
    returned. Dev is large: it is translated in order of the gain, until a mixture is good enough.
    """
    held_back = {share: comparer.compare(mixtures.write(share), HELD_BACK) for share in MIXTURES}
    rejected = []
    for share in sorted(MIXTURES, key=lambda one: held_back[one].chrf_gain, reverse=True):
        comparisons = [comparer.compare(mixtures.write(share), DEV), held_back[share]]
        reasons = [reason for one in comparisons for reason in one.drops(max_drop)]
        candidate = _Candidate(share, comparisons, reasons)
        if not reasons:
            return candidate
        rejected.append(candidate)
    return max(rejected, key=lambda one: one.comparisons[0].chrf_gain)


class _TrainingFiles(NamedTuple):
    corrections: tuple[Path, Path]
    replayed: tuple[Path, Path]
    dev: tuple[Path, Path]

    @classmethod
    def write(
        cls, folder: Path, corrections: Corrections, replayed: list[Pair], dev: list[Pair]
    ) -> _TrainingFiles:
        return cls(
            write_pairs(folder, "corrections", corrections.train),
            write_pairs(folder, "replay", replayed),
            write_pairs(folder, "dev", dev),
        )


class _Schedule(NamedTuple):
    """The size of a batch, and the steps for the epochs."""

    batch_tokens: int
    num_steps: int

    @classmethod
    def fit(cls, base: Path, files: tuple[Path, Path], replay_share: float) -> _Schedule:
        """Return the schedule for the tokens of the corrections and of what is replayed."""
        tokenizer = Tokenizer.load(base)
        src, tgt = (path.read_text(encoding="utf-8").splitlines() for path in files)
        pairs = zip(tokenizer.encode_src(src), tokenizer.encode_tgt(tgt), strict=True)
        num_tokens = sum(max(map(len, pair)) for pair in pairs) / (1 - replay_share)
        batch_tokens = min(max(int(num_tokens / STEPS_PER_EPOCH), BATCH_TOKENS), MAX_BATCH_TOKENS)
        return cls(batch_tokens, max(math.ceil(EPOCHS * num_tokens / batch_tokens), MIN_STEPS))


def _peak_lr(base: Path) -> float:
    """Return the highest learning rate for the width of a model."""
    d_model = int(ModelFolder(base).read_index()["config"]["d_model"])
    return float(f"{RATE * (d_model * PAPER_WARMUP_STEPS) ** -0.5:.2g}")


def _find_base(request: AdaptRequest) -> Path:
    """Return the model that training starts from: the first version of a published one."""
    raise_if_not_shipped(request.model)
    found = ModelFolder.find(request.model)
    if not found.exists():
        read_about(request.model)  # raises the error
    versions = PublishedModel(request.out).versions
    is_published = found.path.resolve() == PublishedModel(request.out).model.path.resolve()
    return versions[0].path if is_published and versions else found.path


def find_languages(about: dict[str, Any], base: Path) -> tuple[str, str]:
    """Return the languages of a model, or raise an error: corrections are chosen by them."""
    src, tgt = about.get("src_lang"), about.get("tgt_lang")
    if not isinstance(src, str) or not isinstance(tgt, str):
        raise InputError(
            message("{path} does not record its languages", path=base),
            hint="train it with --src-lang and --tgt-lang",
        )
    return src, tgt


def _locate_data(settings: dict[str, Any], run: Path) -> dict[str, Any]:
    """Return the settings of a run with paths to its data that hold in this directory.

    Relative paths are those of the directory in which the run was started, which is mostly above
    the run: a schedule starts elsewhere.
    """

    def locate(name: str) -> str:
        given = Path(name)
        if given.is_absolute() or given.exists():
            return name
        found = (parent / given for parent in run.resolve().parents)
        return str(next((one for one in found if one.exists()), given))

    data = settings.get("data") or {}
    described = [*(data.get("corpora") or []), *([data["dev"]] if data.get("dev") else [])]
    for corpus in described:
        for side in ("src", "tgt", "path"):
            if isinstance(corpus.get(side), str):
                corpus[side] = locate(corpus[side])
    return settings


def _find_dev(request: AdaptRequest, settings: dict[str, Any]) -> CorpusConfig | None:
    """Return the dev set; None if the run of the model has split one off its corpora."""
    if request.dev is not None:
        return _corpus({"src": str(request.dev[0]), "tgt": str(request.dev[1])})
    dev = (settings.get("data") or {}).get("dev")
    if isinstance(dev, dict) and (dev.get("src") or dev.get("path")):
        return _corpus(dev)
    if settings.get("data"):
        return None
    raise ConfigError(
        message("{path} does not name a dev set", path=request.model),
        hint="give one with --dev-src and --dev-tgt: what the model must not lose",
    )


def _split_off_dev(run: RunFolder, reporter: Reporter) -> list[Pair]:
    """Return the dev set that a run has split off its corpora."""
    from attendo.core.files import cache_dir
    from attendo.tasks.config import RunConfig
    from attendo.tasks.translation.task import TranslationTask
    from attendo.training.distributed import ProcessGroup

    processes = ProcessGroup("cpu")
    try:
        task = TranslationTask.prepare(
            RunConfig(**run.read_config()),
            run.path,
            processes=processes,
            cache=cache_dir(),
            reporter=reporter,
            resumed_key=run.read_data().get("key"),
        )
    finally:
        processes.close()
    return list(task.prepared.dev_pairs)


def _find_replay(request: AdaptRequest, settings: dict[str, Any]) -> list[CorpusConfig]:
    if request.replay:
        return [_corpus({"src": str(src), "tgt": str(tgt)}) for src, tgt in request.replay]
    corpora = (settings.get("data") or {}).get("corpora") or []
    if corpora:
        return [_corpus({**one, "weight": 1.0}) for one in corpora]
    raise ConfigError(
        message("the training data of {path} is not known", path=request.model),
        hint="give some with --replay-src and --replay-tgt, so that the model does not forget it",
    )


def _corpus(settings: dict[str, Any]) -> CorpusConfig:
    config = CorpusConfig(**settings)
    for path in config.paths:
        check_readable(path)
    return config


def _train(
    request: AdaptRequest,
    base: Path,
    languages: tuple[str, str],
    files: _TrainingFiles,
    out: Path,
    reporter: Reporter,
) -> Path:
    """Fine-tune the model, and return the folder of the new one."""
    schedule = _Schedule.fit(base, files.corrections, request.replay_share)
    num_steps = request.steps or schedule.num_steps
    train_request = TrainRequest(
        src=files.corrections[0],
        tgt=files.corrections[1],
        replay_src=files.replayed[0],
        replay_tgt=files.replayed[1],
        replay_share=request.replay_share,
        dev_src=files.dev[0],
        dev_tgt=files.dev[1],
        src_lang=languages[0],
        tgt_lang=languages[1],
        init_from=base,
        steps=None if request.budget and not request.steps else num_steps,
        budget=request.budget,
        settings=(
            *FINE_TUNING_SETTINGS,
            f"train.batch_tokens={schedule.batch_tokens}",
            f"train.peak_lr={_peak_lr(base)}",
            # A rate that is given leaves the other two to the paper: a warm-up of 4,000 steps.
            "train.schedule=cosine",
            f"train.warmup_steps={math.ceil(WARMUP_SHARE * num_steps)}",
            f"train.validate_every={num_steps}",
            *request.settings,
        ),
    )
    config = train_request.check(reporter=reporter, out=out, force=True)
    from attendo.tasks.run import train_run

    run = train_run(
        config, out, force=True, device=request.device, threads=request.threads, reporter=reporter
    )
    return run.model_dir


def _mix(base: Path, adapted: Path, share: float, out: Path) -> Path:
    """Write a model whose weights lie between those of two models."""
    import torch

    from attendo.bundle import get_weights, load_bundle, save_bundle, set_weights

    old, new = load_bundle(base), load_bundle(adapted)
    old_weights = get_weights(old.model)
    mixed = {
        name: torch.lerp(old_weights[name], weight, share)
        for name, weight in get_weights(new.model).items()
    }
    set_weights(new.model, mixed)
    about = {name: value for name, value in new.about.items() if name != "dev"}
    save_bundle(out, new.model, new.tokenizer, about=about)
    return out


def _recalibrate(model: Path, dev: list[Pair], request: AdaptRequest) -> None:
    """Fit the confidence of a mixture on dev: it has that of the fine-tuned model."""
    from attendo.evaluation.recalibration import recalibrate
    from attendo.translator import Translator

    translator = Translator.load(model, device=request.device)
    folder = ModelFolder(model)
    index = folder.read_index()
    try:
        fitted = recalibrate(translator, [pair.src for pair in dev], [pair.tgt for pair in dev])
        index["about"]["calibration"] = fitted.model_dump(mode="json")
    except InputError:  # too few sentences
        index["about"].pop("calibration", None)
    text = json.dumps(index, indent=2, ensure_ascii=False)
    write_atomically(folder.index_path, text + "\n")


def _translation(
    request: AdaptRequest, reporter: Reporter
) -> Callable[[Path, list[str]], list[str]]:
    """Return a function that translates lines with the model in a folder."""
    from attendo.translator import Translator

    def translate(model: Path, sources: list[str]) -> list[str]:
        outputs = Translator.load(model, device=request.device).translate(
            sources,
            split="never",
            progress=lambda done, total: reporter.stage("translating", done, total),
        )
        return [str(one) for one in outputs]

    return translate


def _describe(result: Adaptation) -> dict[str, Any]:
    """Return what is written into the folder of the published model."""
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "corrections": result.num_corrections,
        "replayed_pairs": result.num_replayed,
        "share": result.share,
        "scores": {
            one.name: {
                "lines": one.num_lines,
                "before": one.before._asdict(),
                "after": one.after._asdict(),
            }
            for one in result.comparisons
        },
    }


class AdaptationRefusedError(AttendoError):
    """A new model that lost more than it may; the published one is unchanged."""

    exit_code = 1

    def __init__(self, result: Adaptation, *, max_drop: float) -> None:
        super().__init__(
            message(
                "the new model was not published: {reasons}",
                reasons=join_messages("; ", result.reasons),
            ),
            hint=message(
                "at most {limit} points may be lost (--max-drop): use a larger --replay-share, "
                "fewer --steps, or more corrections; the refused model is {path}",
                limit=f"{max_drop:g}",
                path=result.model_dir,
            ),
        )
