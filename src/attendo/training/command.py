"""From the words of `attendo train` (or of `attendo.train`) to the config of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attendo.core.config import override, read_settings
from attendo.core.errors import ConfigError
from attendo.training.config import RunConfig
from attendo.training.init_from import begin_with
from attendo.training.progress import Reporter, Silence
from attendo.training.run import FinishedRun, train_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.data.fetch import CorpusFiles


def train(
    *,
    out: str | Path,
    config: str | Path | None = None,
    src: str | Path | Sequence[str | Path] = (),
    tgt: str | Path | Sequence[str | Path] = (),
    path: str | Path | Sequence[str | Path] = (),
    dev_src: str | Path | None = None,
    dev_tgt: str | Path | None = None,
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

    `settings` are `key=value` texts, e.g. `["train.max_steps=100", "model.num_layers=2"]`.
    """
    resolved = build_config(
        config,
        settings,
        src=_as_list(src),
        tgt=_as_list(tgt),
        path=_as_list(path),
        dev_src=dev_src,
        dev_tgt=dev_tgt,
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
    dev_src: str | Path | None = None,
    dev_tgt: str | Path | None = None,
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
            remedy="give the two sides of each corpus, in the same order",
        )
    if bool(corpus) != bool(pair) or (mirror and not corpus):
        raise ConfigError(
            "--corpus and --pair belong together, --mirror to both",
            remedy="name a corpus and its languages: --corpus multi30k --pair en-de",
        )
    if init_from and (preset or model):
        raise ConfigError(
            "--init-from brings its model, and --preset or --model names another",
            remedy="leave one of them out",
        )
    base = _read_base(config)
    data: dict[str, Any] = dict(base.get("data", {}))
    corpora = [{"src": str(s), "tgt": str(t)} for s, t in zip(src, tgt, strict=True)]
    corpora += [{"path": str(one)} for one in path]
    if corpus and pair:
        fetched = fetch_corpus(corpus, pair, mirror, reporter or Silence())
        data |= {"src_lang": pair.split("-")[0], "tgt_lang": pair.split("-")[-1]}
        data |= {"dev": fetched.dev[0].model_dump(mode="json")} if fetched.dev else {}
        corpora += [one.model_dump(mode="json") for one in fetched.train]
    if corpora:
        data["corpora"] = corpora
    if dev_src or dev_tgt:
        data["dev"] = {"src": dev_src and str(dev_src), "tgt": dev_tgt and str(dev_tgt)}
    chosen = {name: value for name, value in (("preset", preset), ("kind", model)) if value}
    merged = {**base, "data": data, "model": {**base.get("model", {}), **chosen}}
    resolved = begin_with(init_from, override(merged, settings))
    if not resolved["data"].get("corpora"):
        raise ConfigError(
            "no corpus", remedy="give --src a.ko --tgt a.en, --path a.tsv, or --corpus and --pair"
        )
    return RunConfig(**resolved)


def _read_base(config: str | Path | None) -> dict[str, Any]:
    base: dict[str, Any] = read_settings(Path(config)) if config else {}
    for name in ("data", "model"):
        if not isinstance(base.get(name, {}), dict):
            reason = f"{config}: '{name}' is no table of settings"
            raise ConfigError(reason, remedy=f"write [{name}], and its settings below")
    return base


def fetch_corpus(name: str, pair: str, mirror: str | None, reporter: Reporter) -> CorpusFiles:
    """Bring a known corpus here, or find it here from before."""
    from attendo.data.catalog import find_entry
    from attendo.data.fetch import corpora_dir, fetch

    return fetch(
        find_entry(name),
        pair,
        corpora_dir(),
        mirror=mirror,
        progress=lambda file, done, total: reporter.stage(f"fetching {file}", done, total),
    )


def _as_list(given: str | Path | Sequence[str | Path]) -> list[str | Path]:
    return [given] if isinstance(given, (str, Path)) else list(given)
