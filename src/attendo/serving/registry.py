"""The models that are served: read from their folders, found by language, renewed as they change.

A folder is looked at now and then. Once its files have changed and then rested, the new model is
loaded beside the old one and takes its place; who has begun with the old one finishes with it. A
folder that cannot be loaded leaves the old model where it is.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - doctests use it
from typing import TYPE_CHECKING, Any, TypeVar

from attendo.core.errors import AttendoError, InputError, suggest
from attendo.core.logs import get_logger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from attendo.translator import Translator
    from attendo.translator.converted import EngineName
    from attendo.translator.ctranslate2_runner import Precision

    Stamp = tuple[tuple[str, int, int, int], ...]

ResultT = TypeVar("ResultT")
AUTO = "auto"
INDEX = "bundle.json"
LOADERS = 4
_log = get_logger(__name__)


@dataclass(frozen=True, eq=False)
class Served:
    """A model that is ready; another object takes its place when the folder changes."""

    name: str
    src: str
    """The code of its source language; "auto" where nobody told."""
    tgt: str
    translator: Translator
    about: dict[str, Any]
    engine: str = "attendo"
    """What decodes."""

    @property
    def own(self) -> Translator:
        """The model behind our own decoder, which shows its inside; loaded when it is needed."""
        return self.translator if self.engine == "attendo" else self.translator.reference

    def choose(self, options: Mapping[str, Any]) -> Translator:
        """Give the translator that can do what is asked.

        Draws that can be repeated, phrases and traces are our own decoder's.
        """
        if self.engine == "attendo":
            return self.translator
        from attendo.translator.ctranslate2_options import can_decode

        is_able = not options.get("sample") and can_decode(options)
        return self.translator if is_able else self.own

    def call_own(self, function: Callable[..., ResultT], *args: Any, **named: Any) -> ResultT:
        """Call a function with the model behind our own decoder."""
        return function(self.own, *args, **named)


class Registry:
    """Models by name and by pair of languages, the first folder's before the others'."""

    def __init__(
        self,
        folders: Sequence[Path] = (),
        *,
        src_lang: str = AUTO,
        tgt_lang: str = AUTO,
        device: str | None = None,
        engine: EngineName = "attendo",
        precision: Precision = "auto",
    ) -> None:
        self._folders = name_folders(folders)
        self._languages, self._device = (src_lang, tgt_lang), device
        self._engine, self._precision = engine, precision
        self._served: dict[str, Served] = {}
        self._loaded: dict[str, Stamp] = {}
        self._seen: dict[str, Stamp] = {}

    def load(self) -> None:
        """Read every folder, several at once; one that cannot be read is an error."""
        with ThreadPoolExecutor(LOADERS, thread_name_prefix="attendo-load") as pool:
            for served in pool.map(self._load, self._folders):
                self.add(served)

    def add(self, served: Served) -> None:
        """Serve a model that is loaded already."""
        self._served = {**self._served, served.name: served}

    @property
    def models(self) -> list[Served]:
        """Every model, in the order in which the folders were given."""
        return list(self._served.values())

    def get(self, name: str | None = None) -> Served:
        """Give the model of a name; the first without one."""
        if name is None:
            return self.models[0]
        if name not in self._served:
            reason = f"no model '{name[:80]}'"
            raise InputError(reason, remedy=suggest(name[:80], self._served))
        return self._served[name]

    def find(self, source: str | None = None, target: str | None = None) -> Served:
        """Give the first model for a pair of languages; "auto" or None is any."""
        ranked = [
            (max(one, other), served)
            for served in self.models
            if (one := _match(source, served.src)) is not None
            and (other := _match(target, served.tgt)) is not None
        ]
        if not ranked:
            pairs = ", ".join(f"{served.src} to {served.tgt}" for served in self.models)
            reason = f"no model translates {(source or AUTO)[:20]} to {(target or AUTO)[:20]}"
            raise InputError(reason, remedy=f"there are: {pairs}")
        return min(ranked, key=lambda pair: pair[0])[1]

    def targets(self) -> dict[str, list[str]]:
        """Give the languages that can be read, each with those that it can be turned into."""
        found: dict[str, list[str]] = {}
        for served in self.models:
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

    def _load(self, name: str) -> Served:
        from attendo.translator import Translator
        from attendo.translator.ctranslate2_engine import CTranslate2Engine

        folder = self._folders[name]
        self._loaded[name] = self._seen[name] = _read_stamp(folder)  # before: a change is seen
        translator = Translator.load(
            folder, device=self._device, engine=self._engine, precision=self._precision
        )
        if isinstance(translator.engine, CTranslate2Engine):
            translator.engine.warm_up()
        _log.info("%s is decoded by the engine '%s'", name, translator.engine.name)
        src, tgt = (
            str(translator.about.get(key) or told)
            for key, told in zip(("src_lang", "tgt_lang"), self._languages, strict=True)
        )
        return Served(name, src, tgt, translator, translator.about, translator.engine.name)


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
