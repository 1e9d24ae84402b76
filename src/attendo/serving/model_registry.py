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
from attendo.core.message import message
from attendo.core.run_folder import MODEL_DIR, MODEL_INDEX_FILE, ModelFolder, RunFolder
from attendo.serving.served_model import ModelHandle, SeriesModelHandle, TextModelHandle, task_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from attendo.serving.served_model import Task
    from attendo.translator.backends.ctranslate2.conversion_cache import EngineName
    from attendo.translator.backends.ctranslate2.loader import Precision
    from attendo.translator.backends.pytorch import NativePrecision

    Signature = tuple[tuple[str, int, int, int], ...]

TASK_HELP = {
    "translation": ("translates", "ask /v1/translate"),
    "classification": ("classifies", "ask /v1/translate"),
    "language": ("goes on with a text", "ask /v1/generate"),
    "series": ("forecasts a series", "ask /v1/forecast"),
}
"""What a model of each task does, and where it is asked for it."""
ANY_LANGUAGE = "auto"
NUM_LOADER_THREADS = 4
_log = get_logger(__name__)


class ModelRegistry:
    """Models by name, by task and by languages, the first folder's before the others'."""

    def __init__(
        self,
        folders: Sequence[Path] = (),
        *,
        src_lang: str = ANY_LANGUAGE,
        tgt_lang: str = ANY_LANGUAGE,
        device: str | None = None,
        engine: EngineName = "attendo",
        precision: Precision | NativePrecision = "auto",
    ) -> None:
        self._folders = unique_names(folders)
        self._languages, self._device = (src_lang, tgt_lang), device
        self._engine, self._precision = engine, precision
        self._served: dict[str, ModelHandle] = {}
        self._loaded_signatures: dict[str, Signature] = {}
        self._last_signatures: dict[str, Signature] = {}
        self._warm_up_lock = Lock()

    def load(self) -> None:
        """Read every folder, several at once; one that cannot be read is an error."""
        with ThreadPoolExecutor(NUM_LOADER_THREADS, thread_name_prefix="attendo-load") as pool:
            for served in pool.map(self._load, self._folders):
                self.add(served)

    def add(self, served: ModelHandle) -> None:
        """Serve a model that is loaded already."""
        self._served = {**self._served, served.name: served}

    @property
    def models(self) -> list[ModelHandle]:
        """Every model, in the order in which the folders were given."""
        return list(self._served.values())

    def list_text_models(self, *tasks: Task) -> list[TextModelHandle]:
        """Give the models of text with these tasks, those of the first task first."""
        models = [
            one for one in self.models if isinstance(one, TextModelHandle) and one.task in tasks
        ]
        return sorted(models, key=lambda one: tasks.index(one.task))

    def get(self, name: str | None = None) -> ModelHandle:
        """Give the model of a name; the first without one."""
        if name is None:
            return self.models[0]
        if name not in self._served:
            reason = message("no model '{name}'", name=name[:80])
            raise InputError(reason, hint=suggest(name[:80], self._served))
        return self._served[name]

    def get_text_model(self, name: str | None, *tasks: Task) -> TextModelHandle:
        """Give a model of text by its name, or the first one, with one of these tasks."""
        if name is None:
            models = self.list_text_models(*tasks)
            if models:
                return models[0]
            raise self._no_model_error(*tasks)
        served = self.get(name)
        if isinstance(served, TextModelHandle) and served.task in tasks:
            return served
        reason, hint = _describe_task(served)
        raise InputError(reason, hint=hint)

    def get_series_model(self, name: str | None) -> SeriesModelHandle:
        """Give a series model by its name, or the first one."""
        if name is None:
            models = [one for one in self.models if isinstance(one, SeriesModelHandle)]
            if models:
                return models[0]
            raise self._no_model_error("series")
        served = self.get(name)
        if isinstance(served, SeriesModelHandle):
            return served
        reason, hint = _describe_task(served)
        raise InputError(reason, hint=hint)

    def find_for_languages(
        self,
        source: str | None = None,
        target: str | None = None,
        *,
        tasks: Sequence[Task] = ("translation",),
    ) -> TextModelHandle:
        """Give the first model for a pair of languages; "auto" or None is any."""
        models = self.list_text_models(*tasks)
        if not models:
            raise self._no_model_error(*tasks)
        ranked = [
            (max(src_rank, tgt_rank), served)
            for served in models
            if (src_rank := _match_rank(source, served.src)) is not None
            and (tgt_rank := _match_rank(target, served.tgt)) is not None
        ]
        if not ranked:
            pairs = ", ".join(f"{served.src} to {served.tgt}" for served in models)
            reason = message(
                "no model translates {src} to {tgt}",
                src=(source or ANY_LANGUAGE)[:20],
                tgt=(target or ANY_LANGUAGE)[:20],
            )
            raise InputError(reason, hint=message("there are: {pairs}", pairs=pairs))
        return min(ranked, key=lambda pair: pair[0])[1]

    def target_languages(self) -> dict[str, list[str]]:
        """Give the languages that can be read, each with those that it can be turned into."""
        targets: dict[str, list[str]] = {}
        for served in self.list_text_models("translation"):
            known = targets.setdefault(served.src, [])
            if served.tgt not in known:
                known.append(served.tgt)
        return targets

    def reload_changed(self) -> list[str]:
        """Look at the folders once, and load what has changed and then rested; give the names."""
        reloaded = []
        for name, folder in self._folders.items():
            signature = folder_signature(folder)
            is_stable, self._last_signatures[name] = (
                signature == self._last_signatures.get(name),
                signature,
            )
            if not signature or not is_stable or signature == self._loaded_signatures[name]:
                continue
            try:
                self.add(self._load(name))
            except (AttendoError, OSError, RuntimeError, ValueError) as error:
                self._loaded_signatures[name] = signature  # not again before it changes
                first_line = str(error).splitlines()[0]
                _log.warning("%s has changed but cannot be loaded, the old one stays: %s",
                             name, first_line)  # fmt: skip
            else:
                reloaded.append(name)
                _log.info("%s has changed and is loaded anew", name)
        return reloaded

    def _no_model_error(self, *tasks: Task) -> InputError:
        ability, _ = TASK_HELP[tasks[0]]
        available = ", ".join(f"{served.name} ({served.task})" for served in self.models)
        return InputError(
            message("no model here {does}", does=ability),
            hint=message("there are: {pairs}", pairs=available),
        )

    def _load(self, name: str) -> ModelHandle:
        from attendo.bundle import read_input_type
        from attendo.tasks.forecasting.forecaster import Forecaster

        folder = self._folders[name]
        if read_input_type(folder) == "text":
            return self._load_text_model(name)
        self._loaded_signatures[name] = self._last_signatures[name] = folder_signature(
            folder
        )  # before: a change is seen
        forecaster = Forecaster.load(folder, device=self._device)
        return SeriesModelHandle(name, forecaster, forecaster.about)

    def _load_text_model(self, name: str) -> TextModelHandle:
        from attendo.translator import Translator

        folder = self._folders[name]
        self._loaded_signatures[name] = self._last_signatures[name] = folder_signature(
            folder
        )  # before: a change is seen
        translator = Translator.load(
            folder, device=self._device, engine=self._engine, precision=self._precision
        )
        _log.info("%s is decoded by the engine '%s'", name, translator.backend.name)
        src, tgt = (
            str(translator.about.get(key) or default)
            for key, default in zip(("src_lang", "tgt_lang"), self._languages, strict=True)
        )
        task = task_of(getattr(translator.model, "kind", ""), translator.about)
        if task == "translation":
            with self._warm_up_lock:  # one after the other: they time, and record on a GPU
                translator.backend.warm_up()
        about, engine = translator.about, translator.backend.name
        return TextModelHandle(name, src, tgt, translator, about, engine, task)


def _describe_task(served: ModelHandle) -> tuple[str, str]:
    ability, hint = TASK_HELP[served.task]
    return message("the model '{name}' {does}", name=served.name, does=ability), hint


def unique_names(folders: Iterable[Path]) -> dict[str, Path]:
    """Name each folder after itself, a run's model after the run; none twice.

    >>> list(name_folders([Path("/runs/a"), Path("/runs/b/model"), Path("/old/a")]))
    ['a', 'b', 'a-2']
    """
    named: dict[str, Path] = {}
    for folder in folders:
        path = folder.absolute()
        stem = (path.parent.name if path.name == MODEL_DIR else path.name) or MODEL_DIR
        name, number = stem, 1
        while name in named:
            number += 1
            name = f"{stem}-{number}"
        named[name] = folder
    return named


def _match_rank(requested: str | None, available: str) -> int | None:
    """Rank how well a language fits: as asked, by its main part, anything; None if it does not."""
    requested_code = (requested or ANY_LANGUAGE).casefold().replace("_", "-")
    available_code = available.casefold().replace("_", "-")
    if requested_code in (ANY_LANGUAGE, available_code):
        return 0
    if requested_code.split("-")[0] == available_code.split("-")[0]:
        return 1
    return 2 if available_code == ANY_LANGUAGE else None


def folder_signature(folder: Path) -> Signature:
    """Tell the state of the files of a model; of none, nothing."""
    model_folder = ModelFolder(folder)
    if not model_folder.exists():
        model_folder = RunFolder(folder).model
    try:
        paths = sorted(model_folder.path.iterdir())
        stats = [(path.name, path.stat()) for path in paths if path.is_file()]
    except OSError:  # it is just being replaced
        return ()
    if not any(name == MODEL_INDEX_FILE for name, _ in stats):
        return ()
    return tuple((name, stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in stats)
