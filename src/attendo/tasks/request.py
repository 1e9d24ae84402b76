"""From the words of `attendo train` (or of `attendo.train`) to the config of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attendo.core.config import override, read_settings
from attendo.core.errors import ConfigError, suggest
from attendo.tasks.classification.settings import apply_label_defaults
from attendo.tasks.config import RunConfig
from attendo.tasks.run import FinishedRun, train_run
from attendo.tasks.warm_start import apply_init_from
from attendo.training.progress import NullReporter, Reporter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.corpora.fetch import FetchedCorpus

TASKS = ("text", "series")


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
    """Do what `attendo train` does; give the run's folder, its model folder and its report.

    `settings` are `key=value` texts, e.g. `["train.max_steps=100", "model.num_layers=2"]`;
    `columns` says what is what in `series`, e.g. `{"targets": ["typhoon"], "time": "date"}`.
    """
    resolved = build_config(
        config,
        settings,
        src=_as_list(src),
        tgt=_as_list(tgt),
        path=_as_list(path),
        text=_as_list(text),
        dev_src=dev_src,
        dev_tgt=dev_tgt,
        dev_text=dev_text,
        task=task,
        series=_as_list(series),
        dev_series=_as_list(dev_series),
        columns=columns,
        corpus=corpus,
        pair=pair,
        mirror=mirror,
        preset=preset,
        model=model,
        init_from=init_from,
        reporter=reporter,
    )
    return train_run(resolved, out, force=force, reporter=reporter)


def build_config(
    config: str | Path | None,
    settings: Sequence[str],
    *,
    src: Sequence[str | Path] = (),
    tgt: Sequence[str | Path] = (),
    path: Sequence[str | Path] = (),
    text: Sequence[str | Path] = (),
    dev_src: str | Path | None = None,
    dev_tgt: str | Path | None = None,
    dev_text: str | Path | None = None,
    task: str | None = None,
    series: Sequence[str | Path] = (),
    dev_series: Sequence[str | Path] = (),
    columns: dict[str, Any] | None = None,
    corpus: str | None = None,
    pair: str | None = None,
    mirror: str | None = None,
    preset: str | None = None,
    model: str | None = None,
    init_from: str | Path | None = None,
    reporter: Reporter | None = None,
) -> RunConfig:
    """Join a TOML file, the options and the `key=value` settings; later ones win."""
    if len(src) != len(tgt):
        raise ConfigError(
            f"{len(src)} --src but {len(tgt)} --tgt",
            hint="give the two sides of each corpus, in the same order",
        )
    if bool(corpus) != bool(pair) or (mirror and not corpus):
        raise ConfigError(
            "--corpus and --pair belong together, --mirror to both",
            hint="name a corpus and its languages: --corpus multi30k --pair en-de",
        )
    if init_from and (preset or model):
        raise ConfigError(
            "--init-from brings its model, and --preset or --model names another",
            hint="leave one of them out",
        )
    base = _read_base(config)
    model_options = {name: value for name, value in (("preset", preset), ("kind", model)) if value}
    base["model"] = {**base.get("model", {}), **model_options}
    if _is_series_run(task, base, series):
        base["series"] = _series_settings(base, series, dev_series, columns or {})
        base["model"] |= {"init_from": str(init_from)} if init_from else {}
        return RunConfig(**_resolve_paths(override(base, settings)))
    data: dict[str, Any] = dict(base.get("data", {}))
    corpora = [{"src": str(s), "tgt": str(t)} for s, t in zip(src, tgt, strict=True)]
    corpora += [{"path": str(one)} for one in path]
    corpora += [{"text": str(one)} for one in text]
    if corpus and pair:
        downloaded = fetch_corpus(corpus, pair, mirror, reporter or NullReporter())
        data |= {"src_lang": pair.split("-")[0], "tgt_lang": pair.split("-")[-1]}
        data |= {"dev": downloaded.dev[0].model_dump(mode="json")} if downloaded.dev else {}
        corpora += [one.model_dump(mode="json") for one in downloaded.train]
    if corpora:
        data["corpora"] = corpora
    if dev_src or dev_tgt:
        data["dev"] = {"src": dev_src and str(dev_src), "tgt": dev_tgt and str(dev_tgt)}
    if dev_text:
        data["dev"] = {"text": str(dev_text)}
    overridden = override({**base, "data": data}, settings)
    resolved = apply_label_defaults(apply_init_from(init_from, overridden))
    if not resolved["data"].get("corpora"):
        raise ConfigError(
            "no corpus",
            hint="give --src a.ko --tgt a.en, --path a.tsv, --text a.txt, "
            "or --corpus and --pair; for numbers --series a.csv",
        )
    return RunConfig(**resolved)


def _is_series_run(task: str | None, base: dict[str, Any], series: Sequence[str | Path]) -> bool:
    """Tell a run on series by the task that is named, else by what is given."""
    if task not in (None, *TASKS):
        raise ConfigError(f"no task '{task}'", hint=suggest(str(task), TASKS))
    is_series = bool(series) or "series" in base
    if task == "text" and is_series:
        raise ConfigError("--task text, and series are given", hint="leave one of them out")
    return task == "series" or is_series


def _series_settings(
    base: dict[str, Any],
    series: Sequence[str | Path],
    dev_series: Sequence[str | Path],
    columns: dict[str, Any],
) -> dict[str, Any]:
    """Join the table `series` of a config with the words of the command."""
    settings = dict(base.get("series", {}))
    if series:
        settings["paths"] = [str(path) for path in series]
    if dev_series:
        settings["dev"] = [str(path) for path in dev_series]
    settings |= {name: value for name, value in columns.items() if value}
    if not settings.get("paths"):
        raise ConfigError("no series", hint="give --series a.csv --targets NAME")
    return settings


def _resolve_paths(settings: dict[str, Any]) -> dict[str, Any]:
    """Name the files of series by whole paths: an evaluation looks for them again."""
    series = settings["series"]
    for name in ("paths", "dev"):
        if isinstance(series.get(name), list):
            series[name] = [str(Path(path).resolve()) for path in series[name]]
    return settings


def _read_base(config: str | Path | None) -> dict[str, Any]:
    raw: dict[str, Any] = read_settings(Path(config)) if config else {}
    base = {name: value for name, value in raw.items() if value is not None}
    for name in ("data", "series", "model"):
        if not isinstance(base.get(name, {}), dict):
            reason = f"{config}: '{name}' is no table of settings"
            raise ConfigError(reason, hint=f"write [{name}], and its settings below")
    return base


def fetch_corpus(name: str, pair: str, mirror: str | None, reporter: Reporter) -> FetchedCorpus:
    """Bring a known corpus here, or find it here from before."""
    from attendo.corpora.catalog import find_entry
    from attendo.corpora.fetch import corpora_dir, fetch

    return fetch(
        find_entry(name),
        pair,
        corpora_dir(),
        mirror=mirror,
        progress=lambda file, done, total: reporter.stage(f"fetching {file}", done, total),
    )


def _as_list(value: str | Path | Sequence[str | Path]) -> list[str | Path]:
    return [value] if isinstance(value, (str, Path)) else list(value)
