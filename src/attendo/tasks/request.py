"""From the options of `attendo train` and `attendo.train` to the config of a run.

Settings and paths are checked before a tensor library is imported.
"""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, fields
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from attendo.core.config import override, read_settings
from attendo.core.errors import ConfigError, suggest
from attendo.core.message import message
from attendo.core.run_folder import RunFolder
from attendo.core.shipped_models import raise_if_not_shipped, resolve_shipped
from attendo.data.readers import find_selection
from attendo.tasks.classification.settings import apply_label_defaults
from attendo.tasks.config import RunConfig
from attendo.tasks.planner import QUALITIES, find_open_settings
from attendo.tasks.registry import task_name
from attendo.tasks.remote_inputs import fetch_inputs
from attendo.tasks.replay import add_replay
from attendo.tasks.resume import check_run_folder
from attendo.tasks.warm_start import apply_init_from
from attendo.text.languages import parse_language
from attendo.text.lines import check_exists, check_readable, find_address
from attendo.training.progress import NullReporter, Reporter
from attendo.training.show_progress import show_progress

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from attendo.corpora.fetch import FetchedCorpus
    from attendo.tasks.run import FinishedRun

    Paths = str | Path | Sequence[str | Path] | None

DATA_KINDS = ("text", "series")


@dataclass(frozen=True, kw_only=True)
class TrainRequest:
    """What to train, and on what: one field per option of `attendo train`.

    A file of settings comes first, then the other fields, then `settings`; later ones win.
    """

    config: str | Path | None = None
    """A TOML or JSON file with the settings of a run; its paths are relative to its folder."""
    src: Paths = ()
    tgt: Paths = ()
    path: Paths = ()
    """Files with both sides: TSV, CSV, JSON, Parquet, TMX ..."""
    text: Paths = ()
    """Plain text, for a model of kind `encoder` or `decoder`."""
    dev_src: str | Path | None = None
    dev_tgt: str | Path | None = None
    dev_path: str | Path | None = None
    """A dev set with both sides in one file."""
    dev_text: str | Path | None = None
    src_lang: str | None = None
    """The language of the source, which also chooses it in the files with both sides."""
    tgt_lang: str | None = None
    src_field: str | int | None = None
    """The column or the field of the source in the files with both sides."""
    tgt_field: str | int | None = None
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
    replay_src: Paths = ()
    """Old training data that is mixed into fine-tuning (`init_from`)."""
    replay_tgt: Paths = ()
    replay_share: float | None = None
    """The share of every epoch that is old; 0.3 by default."""
    steps: int | None = None
    """The number of training steps; by default chosen from the data."""
    budget: str | None = None
    """The time that training may take: `30m`, `2h`, `90s`."""
    quality: str | None = None
    """"fast", "balanced" or "best": how long to train for the last points."""
    settings: Sequence[str] | None = ()
    """`key=value` texts."""

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> Self:
        """Return a request from the arguments of a function, ignoring those that are not fields."""
        names = (field.name for field in fields(cls))
        return cls(**{name: arguments[name] for name in names if name in arguments})

    def check(
        self,
        *,
        reporter: Reporter | None = None,
        out: str | Path | None = None,
        force: bool = False,
    ) -> RunConfig:
        """Return the config of the run; raise an error if it cannot be started.

        Files must be there, with known formats and columns, and the run folder `out`, if it is
        given, must be new or have the same run.
        """
        for path in self._named_files():  # before a model folder is loaded or a corpus downloaded
            if find_address(path) is None:
                check_readable(Path(path))
        if self.init_from:
            raise_if_not_shipped(Path(self.init_from))
            if resolve_shipped(self.init_from) == Path(self.init_from):  # not a name of ours
                check_exists(Path(self.init_from))
        config = self.build_config(reporter=reporter)
        for path in config.paths:
            check_readable(path)
        for corpus in config.data.inputs if config.data else ():
            find_selection(corpus)
        if out is not None:
            task_name(config)
        # Under torchrun, other processes may have created the folder already.
        if out is not None and os.environ.get("RANK", "0") == "0":
            folder, shown = RunFolder(Path(out)), reporter or NullReporter()
            check_run_folder(config, folder, shown, force=force, compares_files=False)
        return config

    def build_config(self, *, reporter: Reporter | None = None) -> RunConfig:
        """Return the config of the run; download the corpus first if one is named."""
        self._check_options()
        base = _read_base(self.config)
        choices = {"preset": self.preset, "kind": self.model}
        base["model"] = {**base.get("model", {}), **{k: v for k, v in choices.items() if v}}
        settings = [str(one) for one in _as_list(self.settings)]  # or one text
        if self.steps is not None:
            settings.append(f"train.max_steps={self.steps}")
        is_recipe = "train" in base
        shown = reporter or NullReporter()
        if self._is_series_run(base):
            base["series"] = self._series_settings(base)
            base["model"] |= {"init_from": str(self.init_from)} if self.init_from else {}
            given = _without_null(override(base, settings), "series", "model")
            RunConfig.check_tables(given)
            given = _resolve_paths(fetch_inputs(given, shown))
            return self._finish_config(given, is_recipe=is_recipe)
        data = self._data_settings(base, shown)
        overridden = _without_null(override({**base, "data": data}, settings), "data", "model")
        RunConfig.check_tables(overridden)
        overridden = fetch_inputs(overridden, shown)
        resolved = apply_label_defaults(apply_init_from(self.init_from, overridden))
        if not resolved["data"].get("corpora"):
            raise ConfigError(
                "no corpus",
                hint="give --src a.ko --tgt a.en, --path a.tsv, --text a.txt, "
                "or --corpus and --pair; for numbers --series a.csv",
            )
        return self._finish_config(resolved, is_recipe=is_recipe)

    def _finish_config(self, given: dict[str, Any], *, is_recipe: bool) -> RunConfig:
        """Return the config; settings that are not given are left to the planner."""
        if self.quality is not None and self.quality not in QUALITIES:
            raise ConfigError(
                message("{option} {value}: unknown value", option="--quality", value=self.quality),
                hint=suggest(self.quality, QUALITIES),
            )
        auto = find_open_settings(given, is_recipe=is_recipe)
        budget = None if self.budget is None else parse_minutes(self.budget)
        if (budget is not None or self.quality) and not auto:
            raise ConfigError(
                message(
                    "--budget and --quality cannot be used: {config} has all settings of the run",
                    config=self.config,
                ),
                hint="leave out the config file, or set train.max_minutes and train.max_steps",
            )
        if budget is not None and "max_minutes" not in given.get("train", {}):
            auto = (*auto, "train.max_minutes")
        plan = {"auto": auto, "quality": self.quality or "balanced", "budget_minutes": budget}
        return RunConfig(**{**given, "plan": plan})

    def _check_options(self) -> None:
        num_src, num_tgt = len(_as_list(self.src)), len(_as_list(self.tgt))
        if num_src != num_tgt:
            raise ConfigError(
                message("{num_src} --src but {num_tgt} --tgt", num_src=num_src, num_tgt=num_tgt),
                hint="give the two sides of each corpus, in the same order",
            )
        if bool(self.dev_src) != bool(self.dev_tgt):
            given, missing = ("src", "tgt") if self.dev_src else ("tgt", "src")
            raise ConfigError(
                message("--dev-{given} without --dev-{missing}", given=given, missing=missing),
                hint="give both sides of dev, or one file with both as --dev-path",
            )
        if sum(map(bool, (self.dev_src, self.dev_path, self.dev_text))) > 1:
            raise ConfigError(
                "more than one dev set",
                hint="give --dev-src and --dev-tgt, or --dev-path, or --dev-text",
            )
        if (self.src_field is None) != (self.tgt_field is None):
            raise ConfigError(
                "--src-field and --tgt-field belong together", hint="give both, or none of them"
            )
        if bool(self.corpus) != bool(self.pair) or (self.mirror and not self.corpus):
            raise ConfigError(
                "--corpus needs --pair, and --pair and --mirror need --corpus",
                hint="name a corpus and its languages: --corpus multi30k --pair en-de",
            )
        replay = (len(_as_list(self.replay_src)), len(_as_list(self.replay_tgt)))
        if replay[0] != replay[1] or (self.replay_share is not None and not replay[0]):
            raise ConfigError(
                message("{src} --replay-src but {tgt} --replay-tgt", src=replay[0], tgt=replay[1]),
                hint="give the two sides of the old training data, in the same order",
            )
        if replay[0] and not self.init_from:
            raise ConfigError(
                "--replay-src without --init-from",
                hint="replay is for fine-tuning; give all corpora with --src and --tgt otherwise",
            )
        if self.init_from and (self.preset or self.model):
            raise ConfigError(
                "--init-from already chooses the model, so --preset and --model cannot be used",
                hint="leave one of them out",
            )

    def _named_files(self) -> list[str | Path]:
        """Return the files that are named, except within the config file and the settings."""
        several = (self.src, self.tgt, self.path, self.text, self.series, self.dev_series)
        single = (self.config, self.dev_src, self.dev_tgt, self.dev_path, self.dev_text)
        return [*chain.from_iterable(map(_as_list, several)), *(path for path in single if path)]

    def _is_series_run(self, base: dict[str, Any]) -> bool:
        if self.task not in (None, *DATA_KINDS):
            raise ConfigError(
                message("no task '{task}'", task=self.task),
                hint=suggest(str(self.task), DATA_KINDS),
            )
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
        corpora += [{"path": str(path), **self._fields} for path in _as_list(self.path)]
        corpora += [{"text": str(path)} for path in _as_list(self.text)]
        if self.corpus and self.pair:
            downloaded = fetch_corpus(self.corpus, self.pair, self.mirror, reporter)
            languages = self.pair.split("-")
            data |= {"src_lang": languages[0], "tgt_lang": languages[-1]}
            data |= {"dev": downloaded.dev[0].model_dump(mode="json")} if downloaded.dev else {}
            corpora += [one.model_dump(mode="json") for one in downloaded.train]
        if self.replay_src:
            old = zip(_as_list(self.replay_src), _as_list(self.replay_tgt), strict=True)
            corpora = add_replay(corpora or data.get("corpora", []), list(old), self.replay_share)
        if corpora:
            data["corpora"] = corpora
        if self.dev_src and self.dev_tgt:
            data["dev"] = {"src": str(self.dev_src), "tgt": str(self.dev_tgt)}
        if self.dev_path:
            data["dev"] = {"path": str(self.dev_path), **self._fields}
        if self.dev_text:
            data["dev"] = {"text": str(self.dev_text)}
        requested = {"src_lang": self.src_lang, "tgt_lang": self.tgt_lang}
        data |= {name: parse_language(lang) for name, lang in requested.items() if lang}
        return data if not self._fields else self._apply_fields(data)

    @property
    def _fields(self) -> dict[str, str | int]:
        """The chosen columns or fields; a number is the position of a column."""
        chosen = {"src_field": self.src_field, "tgt_field": self.tgt_field}
        return {
            name: int(field) if str(field).isdecimal() else field
            for name, field in chosen.items()
            if field is not None
        }

    def _apply_fields(self, data: dict[str, Any]) -> dict[str, Any]:
        """Choose the columns or fields in the corpora and the dev set of a config file too."""
        corpora, dev = data.get("corpora", []), data.get("dev")
        if not any(map(_is_one_file, [*corpora, dev])):
            raise ConfigError(
                "--src-field and --tgt-field choose columns or fields of one file with both sides",
                hint="give it with --path, or leave the two out",
            )
        if not self.path and not self.corpus:
            corpora = [{**one, **self._fields} if _is_one_file(one) else one for one in corpora]
        dev = {**dev, **self._fields} if dev and _is_one_file(dev) else dev
        return {**data, "corpora": corpora, "dev": dev}


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
    dev_path: str | Path | None = None,
    dev_text: str | Path | None = None,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    src_field: str | int | None = None,
    tgt_field: str | int | None = None,
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
    replay_src: str | Path | Sequence[str | Path] = (),
    replay_tgt: str | Path | Sequence[str | Path] = (),
    replay_share: float | None = None,
    steps: int | None = None,
    budget: str | None = None,
    quality: str | None = None,
    settings: Sequence[str] = (),
    device: str | None = None,
    threads: int | None = None,
    storage: str | Path | None = None,
    force: bool = False,
    reporter: Reporter | Literal["auto"] | None = "auto",
) -> FinishedRun:
    """Train a model on files, up to a finished model folder, as `attendo train` does.

    A run that was interrupted resumes from its last checkpoint.

    Args:
        out: the run folder.
        config: a TOML or JSON file with the settings of a run; the arguments below override it.
        src: source sentences, one per line; one file or several.
        tgt: their translations, in the same order.
        path: files with both sides: TSV, CSV, JSON, Parquet, TMX ...
        text: plain text, for `model="encoder"` or `model="decoder"`.
        dev_src: source sentences of dev; by default dev is split off.
        dev_tgt: their translations.
        dev_path: a dev set with both sides in one file.
        dev_text: plain text for dev.
        src_lang: the language of the source; it also chooses the source in the files of `path`.
        tgt_lang: the language of the target.
        src_field: the column (name or number) or field of the source in the files of `path`.
        tgt_field: the same for the target.
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
        replay_src: sources of old training data, mixed in so that the model does not forget it.
        replay_tgt: their translations.
        replay_share: the share of every epoch that is old; 0.3 by default.
        steps: the number of training steps; by default it follows from the data.
        budget: the time that training may take, e.g. "30m" or "2h".
        quality: "fast", "balanced" (the default) or "best".
        settings: `key=value` texts, e.g. `["train.max_steps=100", "model.num_layers=2"]`.
        device: "cpu", "cuda", "cuda:1" or "mps" (Apple); by default a GPU if there is one.
        threads: CPU threads; by default as many as there are cores.
        storage: an address of fsspec, such as "s3://bucket/runs/mine", to which checkpoints and the
            finished model are copied, and from which the run continues where `out` is empty.
        force: delete another run in `out` and `storage`.
        reporter: receives the progress. "auto" (the default) shows a bar on a terminal or in a
            notebook; None shows nothing, and messages are logged.

    Returns:
        The run folder, its model folder and its report.

    Raises:
        ConfigError: settings that do not exist or do not fit together.
        InputError: files that cannot be read, or a folder that is not a run.
        TrainingInterrupted: after Ctrl-C or SIGTERM, once a checkpoint was saved.

    """
    request = TrainRequest.from_arguments(locals())
    with show_progress(reporter) as shown:
        run_config = request.check(reporter=shown, out=out, force=force)
        from attendo.tasks.run import train_run

        return train_run(
            run_config,
            out,
            storage=storage,
            force=force,
            device=device,
            threads=threads,
            reporter=shown,
        )


def fetch_corpus(name: str, pair: str, mirror: str | None, reporter: Reporter) -> FetchedCorpus:
    """Return a public corpus, downloaded if it is not in the cache."""
    from attendo.corpora.catalog import find_entry
    from attendo.corpora.fetch import corpora_dir, fetch

    return fetch(
        find_entry(name),
        pair,
        corpora_dir(),
        mirror=mirror,
        progress=lambda file, done, total: reporter.stage(
            message("fetching {file}", file=file), done, total
        ),
    )


def parse_minutes(text: str) -> float:
    """Return a duration in minutes.

    >>> parse_minutes("90s"), parse_minutes("30m"), parse_minutes("1h30m"), parse_minutes("45")
    (1.5, 30.0, 90.0, 45.0)
    """
    units = {"s": 1 / 60, "m": 1.0, "h": 60.0, "d": 1440.0}
    parts = re.findall(r"(\d+(?:\.\d+)?)\s*([smhd]?)", text.strip().lower())
    is_whole = "".join(number + unit for number, unit in parts) == re.sub(r"\s", "", text.lower())
    minutes = sum(float(number) * units[unit or "m"] for number, unit in parts)
    if not is_whole or not 0 < minutes < math.inf:
        raise ConfigError(
            message("'{text}' is not a duration", text=text),
            hint="write 90s, 30m, 2h or 1h30m",
        )
    return minutes


def _read_base(config: str | Path | None) -> dict[str, Any]:
    if config and Path(config).suffix not in (".toml", ".json"):
        raise ConfigError(
            message("{path} is not a config file: its name ends in .toml or .json", path=config),
            hint="give text files with --src and --tgt, or one file with both sides with --path",
        )
    raw: dict[str, Any] = read_settings(Path(config)) if config else {}
    base = {name: value for name, value in raw.items() if value is not None}
    RunConfig.check_tables(base)
    return resolve_config_paths(base, Path(config).parent) if config else base


PATH_KEYS = frozenset(
    {"src", "tgt", "path", "text", "paths", "dev", "init_from", "src_from"}
    | {"labels", "scores", "exclude", "folder"}
)
"""Settings of a config file that name files or folders."""


def resolve_config_paths(settings: Any, folder: Path, name: str = "") -> Any:
    """Make the paths of a config file relative to its folder, where they exist there.

    Otherwise they stay relative to the current folder, as a run writes them in its own config.
    """
    if isinstance(settings, dict):
        return {key: resolve_config_paths(one, folder, key) for key, one in settings.items()}
    if isinstance(settings, list):
        return [resolve_config_paths(one, folder, name) for one in settings]
    if name not in PATH_KEYS or not isinstance(settings, str):
        return settings
    absolute = Path(os.path.normpath(folder.resolve() / settings))
    if not settings or not absolute.exists():
        return settings
    is_below = absolute.is_relative_to(Path.cwd())
    return str(absolute.relative_to(Path.cwd()) if is_below else absolute)


def _without_null(settings: dict[str, Any], *required: str) -> dict[str, Any]:
    """Return the settings without tables that are null; those that are required are empty."""
    given = {name: table for name, table in settings.items() if table is not None}
    return {**{name: {} for name in required}, **given}


def _is_one_file(corpus: Any) -> bool:
    return isinstance(corpus, dict) and bool(corpus.get("path"))


def _resolve_paths(settings: dict[str, Any]) -> dict[str, Any]:
    """Make the paths of series absolute: an evaluation reads the files again."""
    series = settings["series"]
    for name in ("paths", "dev"):
        if isinstance(series.get(name), list):
            series[name] = [
                str(Path(path).resolve()) if isinstance(path, str) else path
                for path in series[name]
            ]
    return settings


def _as_list(value: Paths) -> list[str | Path]:
    if value is None:
        return []
    return [value] if isinstance(value, (str, Path)) else list(value)
