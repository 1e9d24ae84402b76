"""The models that are served: read from their folders, found by task, renewed as they change.

A folder is looked at now and then. Once its files have changed and then rested, the new model is
loaded beside the old one and takes its place; who has begun with the old one finishes with it. A
folder that cannot be loaded leaves the old model where it is.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path  # noqa: TC003 - doctests use it
from threading import Lock
from typing import TYPE_CHECKING

from attendo.core.errors import AttendoError, InputError, suggest
from attendo.core.logs import get_logger
from attendo.serving.served import AnyServed, Served, ServedSeries, find_task

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attendo.serving.served import Task
    from attendo.translator.converted import EngineName
    from attendo.translator.ctranslate2_runner import Precision
    from attendo.translator.half_engine import OwnPrecision

    Stamp = tuple[tuple[str, int, int, int], ...]

DOES = {
    "translation": ("translates", "ask /v1/translate"),
    "classification": ("classifies", "ask /v1/translate"),
    "language": ("goes on with a text", "ask /v1/sample"),
    "series": ("forecasts a series", "ask /v1/forecast"),
}
"""What a model of each task does, and where it is asked for it."""
AUTO = "auto"
INDEX = "bundle.json"
LOADERS = 4
_log = get_logger(__name__)


class Registry:
    """Models by name, by task and by languages, the first folder's before the others'."""

    def __init__(
        self,
        folders: Sequence[Path] = (),
        *,
        src_lang: str = AUTO,
        tgt_lang: str = AUTO,
        device: str | None = None,
        engine: EngineName = "attendo",
        precision: Precision | OwnPrecision = "auto",
    ) -> None:
        self._folders = name_folders(folders)
        self._languages, self._device = (src_lang, tgt_lang), device
        self._engine, self._precision = engine, precision
        self._served: dict[str, AnyServed] = {}
        self._loaded: dict[str, Stamp] = {}
        self._seen: dict[str, Stamp] = {}
        self._warming = Lock()

    def load(self) -> None:
        """Read every folder, several at once; one that cannot be read is an error."""
        with ThreadPoolExecutor(LOADERS, thread_name_prefix="attendo-load") as pool:
            for served in pool.map(self._load, self._folders):
                self.add(served)

    def add(self, served: AnyServed) -> None:
        """Serve a model that is loaded already."""
        self._served = {**self._served, served.name: served}

    @property
    def models(self) -> list[AnyServed]:
        """Every model, in the order in which the folders were given."""
        return list(self._served.values())

    def list_texts(self, *tasks: Task) -> list[Served]:
        """Give the models of text with these tasks, those of the first task first."""
        found = [one for one in self.models if isinstance(one, Served) and one.task in tasks]
        return sorted(found, key=lambda one: tasks.index(one.task))

    def get(self, name: str | None = None) -> AnyServed:
        """Give the model of a name; the first without one."""
        if name is None:
            return self.models[0]
        if name not in self._served:
            reason = f"no model '{name[:80]}'"
            raise InputError(reason, remedy=suggest(name[:80], self._served))
        return self._served[name]

    def get_text(self, name: str | None, *tasks: Task) -> Served:
        """Give a model of text by its name, or the first one, with one of these tasks."""
        if name is None:
            found = self.list_texts(*tasks)
            if found:
                return found[0]
            raise self._lacking(*tasks)
        served = self.get(name)
        if isinstance(served, Served) and served.task in tasks:
            return served
        reason, remedy = _word_task(served)
        raise InputError(reason, remedy=remedy)

    def get_series(self, name: str | None) -> ServedSeries:
        """Give a series model by its name, or the first one."""
        if name is None:
            found = [one for one in self.models if isinstance(one, ServedSeries)]
            if found:
                return found[0]
            raise self._lacking("series")
        served = self.get(name)
        if isinstance(served, ServedSeries):
            return served
        reason, remedy = _word_task(served)
        raise InputError(reason, remedy=remedy)

    def find(
        self,
        source: str | None = None,
        target: str | None = None,
        *,
        tasks: Sequence[Task] = ("translation",),
    ) -> Served:
        """Give the first model for a pair of languages; "auto" or None is any."""
        models = self.list_texts(*tasks)
        if not models:
            raise self._lacking(*tasks)
        ranked = [
            (max(one, other), served)
            for served in models
            if (one := _match(source, served.src)) is not None
            and (other := _match(target, served.tgt)) is not None
        ]
        if not ranked:
            pairs = ", ".join(f"{served.src} to {served.tgt}" for served in models)
            reason = f"no model translates {(source or AUTO)[:20]} to {(target or AUTO)[:20]}"
            raise InputError(reason, remedy=f"there are: {pairs}")
        return min(ranked, key=lambda pair: pair[0])[1]

    def targets(self) -> dict[str, list[str]]:
        """Give the languages that can be read, each with those that it can be turned into."""
        found: dict[str, list[str]] = {}
        for served in self.list_texts("translation"):
            known = found.setdefault(served.src, [])
            if served.tgt not in known:
                known.append(served.tgt)
        return found

    def refresh(self) -> list[str]:
        """Look at the folders once, and load what has changed and then rested; give the names."""
        renewed = []
        for name, folder in self._folders.items():
            stamp = _read_stamp(folder)
            rests, self._seen[name] = stamp == self._seen.get(name), stamp
            if not stamp or not rests or stamp == self._loaded[name]:
                continue
            try:
                self.add(self._load(name))
            except (AttendoError, OSError, RuntimeError, ValueError) as error:
                self._loaded[name] = stamp  # not again before it changes
                told = str(error).splitlines()[0]
                _log.warning("%s has changed but cannot be loaded, the old one stays: %s",
                             name, told)  # fmt: skip
            else:
                renewed.append(name)
                _log.info("%s has changed and is loaded anew", name)
        return renewed

    def _lacking(self, *tasks: Task) -> InputError:
        does, _ = DOES[tasks[0]]
        told = ", ".join(f"{served.name} ({served.task})" for served in self.models)
        return InputError(f"no model here {does}", remedy=f"there are: {told}")

    def _load(self, name: str) -> AnyServed:
        from attendo.bundle import find_source
        from attendo.forecaster import Forecaster

        folder = self._folders[name]
        if find_source(folder) == "text":
            return self._load_text(name)
        self._loaded[name] = self._seen[name] = _read_stamp(folder)  # before: a change is seen
        forecaster = Forecaster.load(folder, device=self._device)
        return ServedSeries(name, forecaster, forecaster.about)

    def _load_text(self, name: str) -> Served:
        from attendo.translator import Translator

        folder = self._folders[name]
        self._loaded[name] = self._seen[name] = _read_stamp(folder)  # before: a change is seen
        translator = Translator.load(
            folder, device=self._device, engine=self._engine, precision=self._precision
        )
        _log.info("%s is decoded by the engine '%s'", name, translator.engine.name)
        src, tgt = (
            str(translator.about.get(key) or told)
            for key, told in zip(("src_lang", "tgt_lang"), self._languages, strict=True)
        )
        task = find_task(getattr(translator.model, "kind", ""), translator.about)
        if task == "translation":
            with self._warming:  # one after the other: they time, and record on a GPU
                translator.engine.warm_up()
        about, engine = translator.about, translator.engine.name
        return Served(name, src, tgt, translator, about, engine, task)


def _word_task(served: AnyServed) -> tuple[str, str]:
    does, ask = DOES[served.task]
    return f"the model '{served.name}' {does}", ask


def name_folders(folders: Iterable[Path]) -> dict[str, Path]:
    """Name each folder after itself, a run's model after the run; none twice.

    >>> list(name_folders([Path("/runs/a"), Path("/runs/b/model"), Path("/old/a")]))
    ['a', 'b', 'a-2']
    """
    named: dict[str, Path] = {}
    for folder in folders:
        place = folder.absolute()
        stem = (place.parent.name if place.name == "model" else place.name) or "model"
        name, number = stem, 1
        while name in named:
            number += 1
            name = f"{stem}-{number}"
        named[name] = folder
    return named


def _match(asked: str | None, had: str) -> int | None:
    """Rank how well a language fits: as asked, by its main part, anything; None if it does not."""
    wanted = (asked or AUTO).casefold().replace("_", "-")
    known = had.casefold().replace("_", "-")
    if wanted in (AUTO, known):
        return 0
    if wanted.split("-")[0] == known.split("-")[0]:
        return 1
    return 2 if known == AUTO else None


def _read_stamp(folder: Path) -> Stamp:
    """Tell the state of the files of a model; of none, nothing."""
    place = folder if (folder / INDEX).is_file() else folder / "model"
    try:
        facts = [(path.name, path.stat()) for path in sorted(place.iterdir()) if path.is_file()]
    except OSError:  # it is just being replaced
        return ()
    if not any(name == INDEX for name, _ in facts):
        return ()
    return tuple((name, fact.st_mtime_ns, fact.st_size, fact.st_ino) for name, fact in facts)
