"""The config of `attendo clean`: corpora, monolingual texts, rules. It loads no tensor library."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import Field, model_validator

from attendo.core.config import Config, Count, Natural, Seed
from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.data.cleaning import CleaningConfig
from attendo.data.config import with_languages
from attendo.data.corpus_config import CorpusConfig
from attendo.data.pair_rules import PairRules

if TYPE_CHECKING:
    from collections.abc import Sequence

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.-]{0,63}$")]
"""The name of a corpus, which names its files."""
RESERVED_NAMES = ("dev", "report", "dropped", "kept")


class ParallelCorpus(CorpusConfig):
    """A corpus of pairs, with a name, and a label for each line."""

    name: Name
    labels: Path | None = None
    """A file that names the set of each line."""
    drop_labels: tuple[str, ...] = ()
    """Sets that are left out."""
    keep_labels: tuple[str, ...] = ()
    """The only sets that are used; by default all."""
    scores: Path | None = None
    """A file with a score for each line, from `attendo score`."""

    @model_validator(mode="after")
    def _check_labels(self) -> Self:
        if (self.drop_labels or self.keep_labels) and self.labels is None:
            reason = message("drop_labels and keep_labels need labels: the file that names them")
            raise ConfigError.from_reasons(type(self).__name__, [reason])
        return self

    @property
    def all_paths(self) -> list[Path]:
        """Every file that is read."""
        return [*self.paths, *(path for path in (self.labels, self.scores) if path is not None)]

    def uses(self, label: str) -> bool:
        """Return whether lines with this label are used."""
        is_kept = not self.keep_labels or label in self.keep_labels
        return is_kept and label not in self.drop_labels


class MonolingualText(Config):
    """A text in one language, one sentence per line, with a name."""

    name: Name
    text: Path
    lang: str | None = None
    """The language, which the lines must have."""
    max_lines: Count | None = None
    """Lines that are kept at most, evenly spaced; by default all."""


class CleanConfig(Config):
    """What `attendo clean` reads, and what it drops."""

    corpora: tuple[ParallelCorpus, ...] = ()
    texts: tuple[MonolingualText, ...] = ()
    src_lang: str | None = None
    tgt_lang: str | None = None
    exclude: tuple[Path, ...] = ()
    """Test sets, on either side: pairs and lines with one of their sentences are dropped."""
    cleaning: CleaningConfig = CleaningConfig()
    rules: PairRules = PairRules()
    keep: Annotated[float, Field(gt=0.0, le=1.0)] = 1.0
    """The share of the pairs with the best scores that is kept (of corpora with `scores`)."""
    dev_size: Natural = 0
    """Pairs that are split off as a dev set, at most 5 %."""
    seed: Seed = 1

    @model_validator(mode="before")
    @classmethod
    def _pass_languages_on(cls, settings: Any) -> Any:
        """Let each corpus in one file know the languages, which choose its columns or fields."""
        corpora = settings.get("corpora") if isinstance(settings, dict) else None
        names = ("src_lang", "tgt_lang")
        given = {
            name: settings[name]
            for name in names
            if isinstance(settings, dict) and settings.get(name)
        }
        if not given or not isinstance(corpora, list | tuple):
            return settings
        return {**settings, "corpora": [with_languages(one, given) for one in corpora]}

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        reasons = []
        if not self.corpora and not self.texts:
            reasons.append(message("no corpus and no text to clean"))
        counts = Counter([*(c.name for c in self.corpora), *(text.name for text in self.texts)])
        names = [name for name, count in counts.items() if count > 1 or name in RESERVED_NAMES]
        reasons += [
            message("the name '{name}' is used twice, or reserved", name=name) for name in names
        ]
        if self.keep < 1.0 and not any(corpus.scores for corpus in self.corpora):
            reasons.append(message("keep needs corpora with scores (attendo score)"))
        if reasons:
            raise ConfigError.from_reasons(type(self).__name__, reasons)
        return self

    @property
    def paths(self) -> list[Path]:
        """Every file that is read."""
        corpora = [path for corpus in self.corpora for path in corpus.all_paths]
        return [*corpora, *(one.text for one in self.texts), *self.exclude]

    @property
    def suffixes(self) -> tuple[str, str]:
        """The suffixes of the two sides of a cleaned corpus."""
        return self.src_lang or "src", self.tgt_lang or "tgt"


def name_corpora(entries: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the entries of a config, each with a name, by default that of its file.

    >>> [one["name"] for one in name_corpora([{"src": "a/train.ko.gz"}, {"src": "b/train.ko"}])]
    ['train', 'train-2']
    """
    used = Counter(str(entry["name"]) for entry in entries if entry.get("name"))
    named = []
    for entry in entries:
        name = entry.get("name")
        if not name:
            path = Path(entry.get("src") or entry.get("path") or entry.get("text") or "corpus")
            stem = path.name.removesuffix(".gz").rpartition(".")[0] or path.name
            stem = re.sub(r"[^\w.-]+", "-", stem, flags=re.ASCII).strip("-.") or "corpus"
            stem = f"{stem}-text" if stem in RESERVED_NAMES else stem
            used[stem] += 1
            name = stem if used[stem] == 1 else f"{stem}-{used[stem]}"
        named.append({**entry, "name": name})
    return named
