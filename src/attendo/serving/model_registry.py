"""Loads the served models, finds them by task and language, and reloads changed folders.

Folders are polled. When the files have changed and been stable for one interval, the new model is
loaded and replaces the old one; requests in progress finish with the old one. If a folder cannot be
loaded, the old model stays.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path  # noqa: TC003 - used by doctests
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
    "translation": ("translation", "use /v1/translate"),
    "classification": ("classification", "use /v1/translate"),
    "language": ("text generation", "use /v1/generate"),
    "series": ("time series forecasting", "use /v1/forecast"),
}
"""The name of each task, and the route for it."""
ANY_LANGUAGE = "auto"
NUM_LOADER_THREADS = 4
_log = get_logger(__name__)


class ModelRegistry:
    """Models by name, task and languages, in the order of their folders."""

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
        """Load every folder, several at once."""
        with ThreadPoolExecutor(NUM_LOADER_THREADS, thread_name_prefix="attendo-load") as pool:
            for served in pool.map(self._load, self._folders):
                self.add(served)

    def add(self, served: ModelHandle) -> None:
        """Add a loaded model."""
        self._served = {**self._served, served.name: served}

    @property
    def models(self) -> list[ModelHandle]:
        """All models, in the order of their folders."""
        return list(self._served.values())

    def list_text_models(self, *tasks: Task) -> list[TextModelHandle]:
        """Return the text models with these tasks, ordered by task."""
        models = [
            one for one in self.models if isinstance(one, TextModelHandle) and one.task in tasks
        ]
        return sorted(models, key=lambda one: tasks.index(one.task))

    def get(self, name: str | None = None) -> ModelHandle:
        """Return a model by name, or the first one."""
        if name is None:
            return self.models[0]
        if name not in self._served:
            reason = message("no model '{name}'", name=name[:80])
            raise InputError(reason, hint=suggest(name[:80], self._served))
        return self._served[name]

    def get_text_model(self, name: str | None, *tasks: Task) -> TextModelHandle:
        """Return a text model with one of these tasks, by name or the first one."""
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
        """Return a series model by name, or the first one."""
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
        """Return the best model for a pair of languages; "auto" or None matches any."""
        models = self.list_text_models(*tasks)
        if not models:
            raise self._no_model_error(*tasks)
        ranked = [
            (max(src_rank, tgt_rank), served)
            for served in models
            if (src_rank := match_language(source, served.src)) is not None
            and (tgt_rank := match_language(target, served.tgt)) is not None
        ]
        if not ranked:
            pairs = ", ".join(f"{served.src} to {served.tgt}" for served in models)
            reason = message(
                "no model translates {src} to {tgt}",
                src=(source or ANY_LANGUAGE)[:20],
                tgt=(target or ANY_LANGUAGE)[:20],
            )
            raise InputError(reason, hint=message("available: {pairs}", pairs=pairs))
        return min(ranked, key=lambda pair: pair[0])[1]

    def target_languages(self) -> dict[str, list[str]]:
        """Return the target languages by source language."""
        targets: dict[str, list[str]] = {}
        for served in self.list_text_models("translation"):
            known = targets.setdefault(served.src, [])
            if served.tgt not in known:
                known.append(served.tgt)
        return targets

    def reload_changed(self) -> list[str]:
        """Check the folders once, reload changed ones, and return their names."""
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
                self._loaded_signatures[name] = signature  # no retry before it changes again
                first_line = str(error).splitlines()[0]
                _log.warning("%s has changed but cannot be loaded; keeping the old model: %s",
                             name, first_line)  # fmt: skip
            else:
                reloaded.append(name)
                _log.info("%s has changed and was reloaded", name)
        return reloaded

    def _no_model_error(self, *tasks: Task) -> InputError:
        task, _ = TASK_HELP[tasks[0]]
        available = ", ".join(f"{served.name} ({served.task})" for served in self.models)
        return InputError(
            message("no model for {task} is loaded", task=message(task)),
            hint=message("available: {pairs}", pairs=available),
        )

    def _load(self, name: str) -> ModelHandle:
        from attendo.bundle import read_input_type
        from attendo.tasks.forecasting.forecaster import Forecaster

        folder = self._folders[name]
        if read_input_type(folder) == "text":
            return self._load_text_model(name)
        self._remember_signature(name)
        forecaster = Forecaster.load(folder, device=self._device)
        return SeriesModelHandle(name, forecaster, forecaster.about)

    def _load_text_model(self, name: str) -> TextModelHandle:
        from attendo.translator import Translator

        self._remember_signature(name)
        translator = Translator.load(
            self._folders[name], device=self._device, engine=self._engine, precision=self._precision
        )
        _log.info("%s: engine '%s'", name, translator.backend.name)
        src, tgt = (
            str(translator.about.get(key) or default)
            for key, default in zip(("src_lang", "tgt_lang"), self._languages, strict=True)
        )
        task = task_of(getattr(translator.model, "kind", ""), translator.about)
        if task == "translation":
            with self._warm_up_lock:  # one at a time: it measures speed and captures CUDA graphs
                translator.backend.warm_up()
        about, engine = translator.about, translator.backend.name
        return TextModelHandle(name, src, tgt, translator, about, engine, task)

    def _remember_signature(self, name: str) -> None:
        """Record the state of a folder before it is read, so that later changes are noticed."""
        signature = folder_signature(self._folders[name])
        self._loaded_signatures[name] = self._last_signatures[name] = signature


def _describe_task(served: ModelHandle) -> tuple[str, str]:
    task, hint = TASK_HELP[served.task]
    return message("the model '{name}' is for {task}", name=served.name, task=message(task)), hint


def unique_names(folders: Iterable[Path]) -> dict[str, Path]:
    """Return the folders by unique name; OUT/model is named after OUT.

    >>> list(unique_names([Path("/runs/a"), Path("/runs/b/model"), Path("/old/a")]))
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


def match_language(requested: str | None, available: str) -> int | None:
    """Return how well a language matches: 0 exactly, 1 without region, 2 any; None if it does not.

    >>> [match_language("en-GB", code) for code in ("en-gb", "en", "auto", "ko")]
    [0, 1, 2, None]
    """
    requested_code = (requested or ANY_LANGUAGE).casefold().replace("_", "-")
    available_code = available.casefold().replace("_", "-")
    if requested_code in (ANY_LANGUAGE, available_code):
        return 0
    if requested_code.split("-")[0] == available_code.split("-")[0]:
        return 1
    return 2 if available_code == ANY_LANGUAGE else None


def folder_signature(folder: Path) -> Signature:
    """Return names, times and sizes of the files of a model; () if there is no model."""
    model_folder = ModelFolder(folder)
    if not model_folder.exists():
        model_folder = RunFolder(folder).model
    try:
        paths = sorted(model_folder.path.iterdir())
        stats = [(path.name, path.stat()) for path in paths if path.is_file()]
    except OSError:  # being replaced right now
        return ()
    if not any(name == MODEL_INDEX_FILE for name, _ in stats):
        return ()
    return tuple((name, stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in stats)
