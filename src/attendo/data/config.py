"""The config of the corpora of a run. This module loads no tensor library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from attendo.core.config import MAX_COUNT, Config, Count, Rate
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.data.augmentation import AugmentationConfig
from attendo.data.cleaning import CleaningConfig
from attendo.data.corpus_config import CorpusConfig
from attendo.data.labels import RULES, LabelName, LabelRule
from attendo.text.tokenizer import TokenizerConfig

if TYPE_CHECKING:
    from pathlib import Path


class DataConfig(Config):
    """The corpora, and how they are cleaned, split and tokenized."""

    corpora: Annotated[tuple[CorpusConfig, ...], Field(min_length=1)]
    dev: CorpusConfig | None = None
    """A separate dev set; split off the corpora if not given."""
    dev_size: Count = 1000
    """Maximum size of a dev set that is split off; never more than 5 % of the corpora."""
    disjoint: Literal["both", "source"] = "both"
    """Sides that such a dev set must not share with train."""
    max_tokens: Annotated[int, Field(ge=2, le=MAX_COUNT)] = 256
    """Pairs with more tokens than this on a side are dropped."""
    cleaning: CleaningConfig = CleaningConfig()
    tokenizer: TokenizerConfig = TokenizerConfig()
    subword_dropout: Rate = 0.0
    """Departs from the paper: probability of skipping a BPE merge in train (BPE-dropout, Provilkov
    et al. 2020), so that a word is seen in several segmentations; 0.1 is usual."""
    subword_samples: Count = 8
    """Number of segmentations of each training pair with `subword_dropout`; they alternate."""
    augmentation: AugmentationConfig = AugmentationConfig()
    """Robustness: some training pairs in upper case, with typos, without their full stop ..."""
    labels: tuple[LabelName, ...] = ()
    """Control tokens: the sources of pairs that have a label begin with it, as `<formal>`."""
    label_rule: LabelRule | None = None
    """Label half of the pairs by their targets: "ko-register" by the endings of Korean sentences,
    as polite or plain."""
    src_lang: str | None = None
    """The language of the source; it also chooses columns, fields or languages in the corpora."""
    tgt_lang: str | None = None
    """The same for the target."""
    check: bool = True
    """Stop before training if the data check finds an error, and print its warnings."""

    @model_validator(mode="before")
    @classmethod
    def _pass_languages_on(cls, settings: Any) -> Any:
        """Let each corpus in one file know the languages, unless it has settings of its own."""
        if not isinstance(settings, dict):
            return settings
        languages = {name: settings.get(name) for name in ("src_lang", "tgt_lang")}
        given = {name: lang for name, lang in languages.items() if isinstance(lang, str) and lang}
        if not given or len({*given.values()}) < len(given):  # a task within one language
            return settings
        corpora, dev = settings.get("corpora"), settings.get("dev")
        if isinstance(corpora, list | tuple):
            settings = {**settings, "corpora": [with_languages(one, given) for one in corpora]}
        return {**settings, "dev": with_languages(dev, given)} if dev else settings

    @model_validator(mode="after")
    def _validate_combination(self) -> Self:
        kind = self.tokenizer.kind
        if not self.is_monolingual and any(corpus.text is not None for corpus in self.inputs):
            reason = message("one run cannot train on both monolingual text (text) and pairs")
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        if self.subword_dropout and kind != "bpe":
            reason = message(
                "subword_dropout needs a tokenizer of kind 'bpe', not '{kind}'", kind=kind
            )
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        return self

    @property
    def all_labels(self) -> tuple[str, ...]:
        """The labels, and those of the rule."""
        found = RULES[self.label_rule][0] if self.label_rule is not None else ()
        return tuple(dict.fromkeys((*self.labels, *found)))

    @property
    def is_monolingual(self) -> bool:
        """Whether all corpora are monolingual."""
        return all(corpus.text is not None for corpus in self.inputs)

    @property
    def num_subword_samples(self) -> int:
        """How many times train is tokenized."""
        num_segmentations = self.subword_samples if self.subword_dropout else 1
        num_versions = self.augmentation.samples if self.augmentation.enabled else 1
        return max(num_segmentations, num_versions)

    @property
    def inputs(self) -> tuple[CorpusConfig, ...]:
        """The corpora, and dev if given."""
        return self.corpora if self.dev is None else (*self.corpora, self.dev)

    @property
    def paths(self) -> list[Path]:
        """Every file that is read."""
        return [path for corpus in self.inputs for path in corpus.paths]


def with_languages(corpus: Any, languages: dict[str, str]) -> Any:
    """Return the settings of a corpus with the languages of the run, if they can choose in it."""
    settings = corpus.model_dump() if isinstance(corpus, CorpusConfig) else corpus
    own = ("src_field", "tgt_field", "src_lang", "tgt_lang")
    if not isinstance(settings, dict) or not settings.get("path"):
        return corpus
    return corpus if any(settings.get(name) for name in own) else {**settings, **languages}
