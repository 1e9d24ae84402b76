"""The recipe of a build: corpora, languages, and what each step does.

This module loads no tensor library.
"""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads the annotations
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from attendo.core.config import Config, Count, Natural, Seed, override, read_settings
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.data.augmentation import AugmentationConfig
from attendo.data.clean_config import (
    RESERVED_NAMES,
    MonolingualText,
    ParallelCorpus,
    name_corpora,
)
from attendo.data.cleaning import CleaningConfig
from attendo.data.corpus_config import CorpusConfig  # noqa: TC001 - the same
from attendo.data.pair_rules import PairRules
from attendo.tasks.request import resolve_config_paths
from attendo.text.languages import find_language
from attendo.text.lines import read_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

Positive = Annotated[float, Field(gt=0.0)]
SizeName = Literal["tiny", "small", "base"]
MAX_TINY_PAIRS, MAX_SMALL_PAIRS = 30_000, 200_000
"""Pairs up to which the models of these sizes are built."""


class BuildCorpus(ParallelCorpus):
    """A corpus of a build."""

    filter: bool = True
    """Whether pairs with low scores of the models are dropped from it."""


class TrainingStep(Config):
    """Training of one model: settings of `attendo train`, those that are not given are chosen."""

    folder: Path | None = None
    """A model that is there already: nothing is trained."""
    model: dict[str, Any] = Field(default_factory=dict)
    train: dict[str, Any] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)
    is_complete: bool = False
    """Whether settings that are not given have the paper's values, and are not chosen."""


class TeacherStep(TrainingStep):
    """Training of the teacher, from the beginning or from the forward model."""

    init_from: Literal["forward"] | None = None
    """Start with the weights of the forward model: less time, and its vocabulary and layers."""

    @model_validator(mode="after")
    def _check_start(self) -> Self:
        if self.init_from is None:
            return self
        given = [f"model.{name}" for name in self.model if not name.endswith("dropout")]
        given += ["data.tokenizer"] * ("tokenizer" in self.data)
        if given:
            reason = message(
                "{names} cannot be chosen with init_from: they are those of the forward model",
                names=", ".join(given),
            )
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        return self


class FilterStep(Config):
    """Dropping of pairs that two models, one per direction, think unlikely."""

    enabled: bool | None = None
    """By default from 30,000 pairs on: models of fewer pairs judge badly."""
    keep: Annotated[float, Field(gt=0.0, le=1.0)] = 0.95
    """The share of the pairs that is kept."""


class BackTranslationStep(Config):
    """Translation of target-side text by the backward model: sampled by default, and tagged."""

    sample: bool = True
    """Sample, for variety; if not, search. Samples of a weak model, of a few hundred thousand
    pairs, are mostly noise (Edunov et al. 2018), and searching is several times as fast."""
    beam_size: Count = 1
    """Of the search."""
    temperature: Positive = 1.0
    top_k: Natural = 0
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    tag: str = "<bt>"
    """Begins each back-translated source, so that the model can tell it from a real one."""
    weight: Positive = 1.0
    """How often the pairs occur in an epoch, relative to the corpora."""


class FineTuningStep(TrainingStep):
    """The last part of the training of the teacher, on the corpora alone."""

    enabled: bool = True


class ForwardTranslationStep(Config):
    """Translation by the teacher of everything that the student learns from."""

    beam_size: Count = 4
    n_best: Count = 4
    """Candidates per source of the corpora: the one closest to the reference is used."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    batch_size: Count | None = None
    """Tokens of a batch, times the beam size; by default as in `attendo translate`."""


class StudentCorpus(Config):
    """Pairs from elsewhere, two files: translations by the teacher of the other direction, say."""

    src: Path
    tgt: Path
    weight: Positive = 1.0


class StudentStep(TrainingStep):
    """Training of the student on the translations of its teacher."""

    corpora: tuple[StudentCorpus, ...] = ()
    """More pairs, whose sources the teacher does not translate."""

    reference_weight: Annotated[float, Field(ge=0.0)] = 0.0
    """How often the original pairs occur in an epoch, together with the teacher's translations."""


class RatesConfig(Config):
    """Speed of a machine, as far as known: for estimates of time."""

    train_tokens_per_second: Positive | None = None
    """Of a base model (6 + 6 layers of 512), without R-Drop."""
    translate_lines_per_second: Positive | None = None
    """Of a base model at beam size 4."""
    start_seconds: Annotated[float, Field(ge=0.0)] = 30.0
    """Before training: the tokenizer, ids, the first steps."""


class CardData(Config):
    """A corpus in the model card."""

    name: str
    license: str
    origin: str = ""


class CardConfig(Config):
    """What the model card says beyond settings and figures."""

    license: str
    """Of the model."""
    data: tuple[CardData, ...] = ()
    limits: tuple[str, ...] = ()


class BuildConfig(Config):
    """A build: from corpora to a small translator."""

    src_lang: Annotated[str, Field(min_length=2)]
    tgt_lang: Annotated[str, Field(min_length=2)]
    corpora: Annotated[tuple[BuildCorpus, ...], Field(min_length=1)]
    mono_tgt: tuple[MonolingualText, ...] = ()
    """Text in the target language, which is back-translated."""
    mono_src: tuple[MonolingualText, ...] = ()
    """Text in the source language, which the teacher translates for the student."""
    dev: CorpusConfig | None = None
    """A dev set; split off the corpora if not given."""
    test: CorpusConfig | None = None
    """What the report scores; dev if not given. It is kept out of all training data."""
    exclude: tuple[Path, ...] = ()
    """Other test sets that are kept out of all training data."""
    size: Literal["auto", "tiny", "small", "base"] = "auto"
    """The size of the models; auto follows from the number of pairs."""
    seed: Seed = 1
    dev_size: Count = 1000
    cleaning: CleaningConfig = CleaningConfig()
    rules: PairRules = PairRules()
    filter: FilterStep = FilterStep()
    forward: TrainingStep = TrainingStep()
    """The model that scores pairs together with the backward one, or that the teacher starts
    from."""
    backward: TrainingStep = TrainingStep()
    back_translation: BackTranslationStep = BackTranslationStep()
    teacher: TeacherStep = TeacherStep()
    fine_tuning: FineTuningStep = FineTuningStep()
    forward_translation: ForwardTranslationStep = ForwardTranslationStep()
    student: StudentStep = StudentStep()
    augmentation: AugmentationConfig = AugmentationConfig(enabled=True)
    """Robustness of teacher and student (`data.augmentation`)."""
    rates: RatesConfig = RatesConfig()
    card: CardConfig | None = None
    """For `--publish`."""

    @model_validator(mode="before")
    @classmethod
    def _name_everything(cls, settings: Any) -> Any:
        """Name corpora and texts, and set the language of texts."""
        if not isinstance(settings, dict):
            return settings
        lists = [settings.get(key) or () for key in ("corpora", "mono_tgt", "mono_src")]
        if not all(isinstance(one, dict) for entries in lists for one in entries):
            return settings
        languages = [None, settings.get("tgt_lang"), settings.get("src_lang")]
        entries = [
            {**one, "lang": lang} if lang and not one.get("lang") else one
            for lang, entries in zip(languages, lists, strict=True)
            for one in entries
        ]
        named = iter(name_corpora(entries))
        filled = [tuple(next(named) for _ in entries) for entries in lists]
        return {
            **settings,
            **dict(zip(("corpora", "mono_tgt", "mono_src"), filled, strict=True)),
        }

    @model_validator(mode="after")
    def _check_combination(self) -> Self:
        reasons = []
        if self.src_lang == self.tgt_lang:
            reasons.append(message("src_lang and tgt_lang are both '{lang}'", lang=self.src_lang))
        texts = (*self.mono_tgt, *self.mono_src)
        names = [*(corpus.name for corpus in self.corpora), *(text.name for text in texts)]
        reasons += [
            message("the name '{name}' is used twice, or reserved", name=name)
            for name in dict.fromkeys(names)
            if names.count(name) > 1 or name in RESERVED_NAMES
        ]
        search = self.forward_translation
        if search.n_best > search.beam_size:
            reasons.append(
                message(
                    "n_best {count} is more than beam_size {beam}",
                    count=search.n_best,
                    beam=search.beam_size,
                )
            )
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    @property
    def resolved_size(self) -> SizeName:
        """The size of the models; by default from the lines of the corpora."""
        if self.size != "auto":
            return self.size
        missing = [path for corpus in self.corpora for path in corpus.paths if not path.exists()]
        if missing:
            raise ConfigError(
                message("{path} is not here, and size = auto follows from it", path=missing[0]),
                hint='name the size: --set size=base, or size = "base" in the recipe',
            )
        num_pairs = sum(_count_lines(corpus) for corpus in self.corpora)
        if num_pairs <= MAX_TINY_PAIRS:
            return "tiny"
        return "small" if num_pairs <= MAX_SMALL_PAIRS else "base"


def _count_lines(corpus: CorpusConfig) -> int:
    return sum(1 for _ in read_lines(corpus.paths[0]))


def load_recipe(
    path: Path | None, given: dict[str, Any], settings: Sequence[str] = ()
) -> BuildConfig:
    """Return the recipe of a file, with what is given on the command line.

    Paths in the file are relative to its folder, if they exist there.
    """
    base = resolve_config_paths(read_settings(path), path.parent) if path is not None else {}
    chosen = {name: value for name, value in given.items() if value not in (None, [], ())}
    for name in ("src_lang", "tgt_lang"):
        if isinstance(chosen.get(name), str):
            chosen[name] = find_language(chosen[name]) or chosen[name]
    merged = override({**base, **chosen}, settings)
    BuildConfig.check_tables(merged)
    if not merged.get("corpora"):
        raise ConfigError("no corpus", hint="give a recipe, or --src a.ko --tgt a.en")
    missing = [name for name in ("src_lang", "tgt_lang") if not merged.get(name)]
    if missing:
        raise ConfigError(
            message("no {names}", names=" and ".join(missing)),
            hint="name both languages: --src-lang ko --tgt-lang en",
        )
    return BuildConfig(**merged)
