"""From the options of `attendo train` and `attendo.train` to the config of a run."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from attendo.core.config import override, read_settings
from attendo.core.errors import ConfigError, suggest
from attendo.tasks.config import RunConfig
from attendo.tasks.run import FinishedRun, train_run
from attendo.tasks.warm_start import apply_init_from
from attendo.training.progress import NullReporter, Reporter

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attendo.corpora.fetch import FetchedCorpus

    Paths = str | Path | Sequence[str | Path] | None

DATA_KINDS = ("text", "series")


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """What to train, and on what: one field per option of `attendo train`.

    A file of settings comes first, then the other fields, then `settings`; later ones win.
    """

    config: str | Path | None = None
    """A TOML or JSON file with the settings of a run."""
    src: Paths = ()
    tgt: Paths = ()
    path: Paths = ()
    """Files with both sides: TSV, JSONL, TMX ..."""
    text: Paths = ()
    """Plain text, for a model of kind `encoder` or `decoder`."""
    dev_src: str | Path | None = None
    dev_tgt: str | Path | None = None
    dev_text: str | Path | None = None
    task: str | None = None
    """"text" or "series"; by default whatever is given."""
    series: Paths = ()
    dev_series: Paths = ()
    columns: Mapping[str, Any] | None = None
    """Settings of the table `series`, such as targets, time and window."""
    corpus: str | None = None
    """The name of a public corpus, with its `pair` of languages."""
    pair: str | None = None
    mirror: str | None = None
    preset: str | None = None
    model: str | None = None
    init_from: str | Path | None = None
    settings: Sequence[str] | None = ()
    """`key=value` texts."""

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Self:
        """Return a request from the arguments of a function, ignoring those that are not fields."""
        names = (field.name for field in fields(cls))
        return cls(**{name: arguments[name] for name in names if name in arguments})

    def build_config(self, *, reporter: Reporter | None = None) -> RunConfig:
        """Return the config of the run; download the corpus first if one is named."""
        self._check_options()
        base = _read_base(self.config)
        choices = {"preset": self.preset, "kind": self.model}
        base["model"] = {**base.get("model", {}), **{k: v for k, v in choices.items() if v}}
        settings = self.settings or ()
        if self._is_series_run(base):
            base["series"] = self._series_settings(base)
            base["model"] |= {"init_from": str(self.init_from)} if self.init_from else {}
            return RunConfig(**_resolve_paths(override(base, settings)))
        from attendo.tasks.classification.task import apply_label_defaults

        data = self._data_settings(base, reporter or NullReporter())
        overridden = override({**base, "data": data}, settings)
        resolved = apply_label_defaults(apply_init_from(self.init_from, overridden))
        if not resolved["data"].get("corpora"):
            raise ConfigError(
                "no corpus",
                hint="give --src a.ko --tgt a.en, --path a.tsv, --text a.txt, "
                "or --corpus and --pair; for numbers --series a.csv",
            )
        return RunConfig(**resolved)

    def _check_options(self) -> None:
        num_src, num_tgt = len(_as_list(self.src)), len(_as_list(self.tgt))
        if num_src != num_tgt:
            raise ConfigError(
                f"{num_src} --src but {num_tgt} --tgt",
                hint="give the two sides of each corpus, in the same order",
            )
        if bool(self.corpus) != bool(self.pair) or (self.mirror and not self.corpus):
            raise ConfigError(
                "--corpus needs --pair, and --pair and --mirror need --corpus",
                hint="name a corpus and its languages: --corpus multi30k --pair en-de",
            )
        if self.init_from and (self.preset or self.model):
            raise ConfigError(
                "--init-from already chooses the model, so --preset and --model cannot be used",
                hint="leave one of them out",
            )

    def _is_series_run(self, base: dict[str, Any]) -> bool:
        if self.task not in (None, *DATA_KINDS):
            raise ConfigError(f"no task '{self.task}'", hint=suggest(str(self.task), DATA_KINDS))
        is_series = bool(self.series) or "series" in base
        if self.task == "text" and is_series:
            raise ConfigError("--task text, but series are given", hint="leave one of them out")
        return self.task == "series" or is_series

    def _series_settings(self, base: dict[str, Any]) -> dict[str, Any]:
        settings = dict(base.get("series", {}))
        if self.series:
            settings["paths"] = [str(path) for path in _as_list(self.series)]
        if self.dev_series:
            settings["dev"] = [str(path) for path in _as_list(self.dev_series)]
        settings |= {name: value for name, value in (self.columns or {}).items() if value}
        if not settings.get("paths"):
            raise ConfigError("no series", hint="give --series a.csv --targets NAME")
        return settings

    def _data_settings(self, base: dict[str, Any], reporter: Reporter) -> dict[str, Any]:
        data: dict[str, Any] = dict(base.get("data", {}))
        sides = zip(_as_list(self.src), _as_list(self.tgt), strict=True)
        corpora: list[dict[str, Any]] = [{"src": str(src), "tgt": str(tgt)} for src, tgt in sides]
        corpora += [{"path": str(path)} for path in _as_list(self.path)]
        corpora += [{"text": str(path)} for path in _as_list(self.text)]
        if self.corpus and self.pair:
            downloaded = fetch_corpus(self.corpus, self.pair, self.mirror, reporter)
            languages = self.pair.split("-")
            data |= {"src_lang": languages[0], "tgt_lang": languages[-1]}
            data |= {"dev": downloaded.dev[0].model_dump(mode="json")} if downloaded.dev else {}
            corpora += [one.model_dump(mode="json") for one in downloaded.train]
        if corpora:
            data["corpora"] = corpora
        if self.dev_src or self.dev_tgt:
            sides_of_dev = {"src": self.dev_src, "tgt": self.dev_tgt}
            data["dev"] = {side: path and str(path) for side, path in sides_of_dev.items()}
        if self.dev_text:
            data["dev"] = {"text": str(self.dev_text)}
        return data


def train(
    *,
    out: str | Path,
    config: str | Path | None = None,
    src: str | Path | Sequence[str | Path] = (),
    tgt: str | Path | Sequence[str | Path] = (),
    path: str | Path | Sequence[str | Path] = (),
    text: str | Path | Sequence[str | Path] = (),
    dev_src: str | Path | None = None,
    dev_tgt: str | Path | None = None,
    dev_text: str | Path | None = None,
    task: str | None = None,
    series: str | Path | Sequence[str | Path] = (),
    dev_series: str | Path | Sequence[str | Path] = (),
    columns: dict[str, Any] | None = None,
    corpus: str | None = None,
    pair: str | None = None,
    mirror: str | None = None,
    preset: str | None = None,
    model: str | None = None,
    init_from: str | Path | None = None,
    settings: Sequence[str] = (),
    force: bool = False,
    reporter: Reporter | None = None,
) -> FinishedRun:
    """Train a model on files, up to a finished model folder, as `attendo train` does.

    A run that was interrupted resumes from its last checkpoint.

    Args:
        out: the run folder.
        config: a TOML or JSON file with the settings of a run; the arguments below override it.
        src: source sentences, one per line; one file or several.
        tgt: their translations, in the same order.
        path: files with both sides: TSV, JSONL, TMX ...
        text: plain text, for `model="encoder"` or `model="decoder"`.
        dev_src: source sentences of dev; by default dev is split off.
        dev_tgt: their translations.
        dev_text: plain text for dev.
        task: "text" or "series"; by default whatever is given.
        series: numbers over time: CSV, Parquet or NPZ.
        dev_series: series for dev; by default the last part of `series`.
        columns: the columns of `series`, e.g. `{"targets": ["typhoon"], "time": "date"}`.
        corpus: the name of a public corpus (`attendo corpus` lists them).
        pair: its languages, e.g. "en-de".
        mirror: a folder or an address to fetch it from.
        preset: "tiny", "small", "base", "big", or a row of the paper's Table 3.
        model: "transformer", "encoder", "decoder", "rnn-seq2seq", "rnn-attention" or "conv-s2s".
        init_from: a model folder whose weights and tokenizer the run starts with.
        settings: `key=value` texts, e.g. `["train.max_steps=100", "model.num_layers=2"]`.
        force: delete another run in `out`.
        reporter: receives the progress; by default messages are logged.

    Returns:
        The run folder, its model folder and its report.

    Raises:
        ConfigError: settings that do not exist or do not fit together.
        InputError: files that cannot be read, or a folder that is not a run.
        TrainingInterrupted: after Ctrl-C or SIGTERM, once a checkpoint was saved.

    """
    request = TrainRequest.from_arguments(locals())
    return train_run(request.build_config(reporter=reporter), out, force=force, reporter=reporter)


def fetch_corpus(name: str, pair: str, mirror: str | None, reporter: Reporter) -> FetchedCorpus:
    """Return a public corpus, downloaded if it is not in the cache."""
    from attendo.corpora.catalog import find_entry
    from attendo.corpora.fetch import corpora_dir, fetch

    return fetch(
        find_entry(name),
        pair,
        corpora_dir(),
        mirror=mirror,
        progress=lambda file, done, total: reporter.stage(f"fetching {file}", done, total),
    )


def _read_base(config: str | Path | None) -> dict[str, Any]:
    raw: dict[str, Any] = read_settings(Path(config)) if config else {}
    base = {name: value for name, value in raw.items() if value is not None}
    for name in ("data", "series", "model"):
        if not isinstance(base.get(name, {}), dict):
            reason = f"{config}: '{name}' is not a table of settings"
            raise ConfigError(reason, hint=f"write [{name}], and its settings below")
    return base


def _resolve_paths(settings: dict[str, Any]) -> dict[str, Any]:
    """Make the paths of series absolute: an evaluation reads the files again."""
    series = settings["series"]
    for name in ("paths", "dev"):
        if isinstance(series.get(name), list):
            series[name] = [str(Path(path).resolve()) for path in series[name]]
    return settings


def _as_list(value: Paths) -> list[str | Path]:
    if value is None:
        return []
    return [value] if isinstance(value, (str, Path)) else list(value)
