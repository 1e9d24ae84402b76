"""Loads the served models, finds them by task and language, and reloads changed folders.

Folders are polled. When the files have changed and been stable for one interval, the new model is
loaded and replaces the old one; requests in progress finish with the old one. If a folder cannot be
loaded, or is deleted, the old model stays. Nothing is read from a folder after the model was
loaded: the PyTorch model that shows the inside is loaded with the one that translates, from the
same files.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path  # noqa: TC003 - used by doctests
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING

from attendo.core.device import require_torch
from attendo.core.errors import AttendoError, InputError, suggest
from attendo.core.files import cache_dir
from attendo.core.interpreter import let_threads_alternate
from attendo.core.logs import get_logger
from attendo.core.message import join_messages, message
from attendo.core.run_folder import (
    EXPORT_INDEX_FILES,
    MODEL_DIR,
    MODEL_INDEX_FILE,
    ModelFolder,
    export_engine,
)
from attendo.serving.has_attention import has_attention
from attendo.serving.served_model import (
    TEXT_OUTPUT_TASKS,
    ModelHandle,
    SegmentSlots,
    SeriesModelHandle,
    TextModelHandle,
    task_of,
)
from attendo.serving.unloaded_model import UnloadedTextModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from attendo.serving.served_model import Task
    from attendo.translator import Translator
    from attendo.translator.backends.base import EngineName, NativePrecision
    from attendo.translator.backends.ctranslate2.loader import Precision

    Signature = tuple[tuple[str, int, int, int], ...]

TASK_HELP = {
    "translation": ("translation", "use /v1/translate"),
    "classification": ("classification", "use /v1/translate"),
    "language": ("text generation", "use /v1/generate"),
    "series": ("time series forecasting", "use /v1/forecast"),
}
"""The name of each task, and the route for it."""
INDEX_FILES = (MODEL_INDEX_FILE, *EXPORT_INDEX_FILES.values())
"""One of them makes a folder a model."""
ANY_LANGUAGE = "auto"
ANY_RANK = 2
"""How well a model without languages matches; see `match_language`."""
NATIVE_ENGINE = "attendo"
NUM_LOADER_THREADS = 4
NUM_LOAD_ATTEMPTS = 3
_log = get_logger(__name__)


class UnknownModelError(InputError):
    """A request names a model or languages that the server does not have; repeats these names."""


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
        slot_widths: Sequence[int] = (),
        num_slots: int | None = None,
    ) -> None:
        self._folders = unique_names(folders)
        self._slot_widths, self._num_slots = slot_widths, num_slots
        self._languages, self._device = (src_lang, tgt_lang), device
        self._engine, self._precision = engine, precision
        self._served: dict[str, ModelHandle] = {}
        self._loaded_signatures: dict[str, Signature] = {}
        self._last_signatures: dict[str, Signature] = {}
        self._warm_up_lock = Lock()
        self._loading_locks = {name: Lock() for name in self._folders}
        self._loaded_at: dict[str, float] = {}
        self.on_load: Callable[[str, float], None] = lambda _name, _seconds: None
        """Called with the name of a model that was loaded again, and how long it took."""
        self.on_unload: Callable[[str], None] = lambda _name: None
        """Called with the name of a model that was unloaded."""
        self._missing: set[str] = set()
        """Models whose folders have gone."""

    def load(self) -> None:
        """Load every folder, several at once."""
        with ThreadPoolExecutor(NUM_LOADER_THREADS, thread_name_prefix="attendo-load") as pool:
            for served in pool.map(self._load, self._folders):
                self.add(served)

    def add(self, served: ModelHandle) -> None:
        """Add a loaded model."""
        self._served = {**self._served, served.name: served}
        self._loaded_at[served.name] = monotonic()

    def loaded_at(self, name: str) -> float:
        """Return when a model was loaded, on the monotonic clock."""
        return self._loaded_at[name]

    def unload(self, name: str) -> bool:
        """Drop the weights of a text model until `load_again`; return whether it was loaded.

        A model whose folder is gone, or has changed and cannot be loaded, is kept.
        """
        served = self._served[name]
        if not isinstance(served, TextModelHandle) or isinstance(served, UnloadedTextModel):
            return False
        signature = folder_signature(self._folders[name]) if name in self._folders else ()
        if not signature or signature != self._loaded_signatures[name]:
            return False
        num_bytes = served.translator.backend.num_bytes
        unloaded = UnloadedTextModel.of(
            served,
            partial(self.load_again, name),
            has_attention=has_attention(served.translator),
        )
        with self._loading_locks[name]:
            if self._served[name] is not served:  # its folder has changed just now
                return False
            self._served = {**self._served, name: unloaded}
        _log.info("%s: unloaded, nobody used it; %.1f MB of weights are free",
                  name, num_bytes / 1e6)  # fmt: skip
        self.on_unload(name)
        return True

    def load_again(self, name: str) -> TextModelHandle:
        """Return a model, loaded from its folder if it was unloaded."""
        with self._loading_locks[name]:
            served = self._served[name]
            if isinstance(served, UnloadedTextModel):
                start = monotonic()
                served = self._load_text_model(name)
                self.add(served)
                seconds = monotonic() - start
                _log.info("%s: loaded again in %.1f s", name, seconds)
                self.on_load(name, seconds)
            if not isinstance(served, TextModelHandle):  # the folder has another model now
                raise InputError(message("no model '{name}'", name=name))
            return served

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
            raise UnknownModelError(reason, hint=suggest(name[:80], self._served))
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
        if models[0].task == tasks[0]:  # a classifier has no languages: it would fit any
            ranked = [
                (rank, one) for rank, one in ranked if one.task == tasks[0] or rank < ANY_RANK
            ]
        if not ranked:
            pairs = join_messages(
                ", ",
                [message("{src} to {tgt}", src=one.src, tgt=one.tgt) for one in models],
            )
            reason = message(
                "no model translates {src} to {tgt}",
                src=(source or ANY_LANGUAGE)[:20],
                tgt=(target or ANY_LANGUAGE)[:20],
            )
            raise UnknownModelError(reason, hint=message("available: {pairs}", pairs=pairs))
        return min(ranked, key=lambda pair: pair[0])[1]

    def find_by_run(self, run: Path) -> str | None:
        """Return the name of the model that was loaded from the folder of a run, or None.

        The folder that was named may be the run, its model or one of its checkpoints.
        """
        resolved = run.resolve()
        for name, folder in self._folders.items():
            path = folder.resolve()
            if resolved in (path, path.parent) or ModelFolder(path).run.path == resolved:
                return name
        return None

    def target_languages(self) -> dict[str, list[str]]:
        """Return the target languages by source language."""
        targets: dict[str, list[str]] = {}
        for served in self.list_text_models("translation"):
            known = targets.setdefault(served.src, [])
            if served.tgt not in known:
                known.append(served.tgt)
        return targets

    def language_codes(self) -> list[str]:
        """Return all source languages, then the other target languages."""
        targets = self.target_languages()
        codes = [*targets, *(code for several in targets.values() for code in several)]
        return list(dict.fromkeys(codes))

    def reload_changed(self) -> list[str]:
        """Check the folders once, reload changed ones, and return their names."""
        reloaded = []
        for name, folder in self._folders.items():
            signature = folder_signature(folder)
            is_stable, self._last_signatures[name] = (
                signature == self._last_signatures.get(name),
                signature,
            )
            if is_stable:
                self._report_missing(name, is_missing=not signature)
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

    def mentions_folder(self, text: str) -> bool:
        """Return whether a text names a folder of a model, which no client may learn.

        A relative path of one part is the name of the model, which clients know.
        """
        relative = [path for path in self._folders.values() if len(path.parts) > 1]
        absolute = [path.absolute() for path in self._folders.values()]
        return any(str(folder) in text for folder in (*relative, *absolute, cache_dir()))

    def _report_missing(self, name: str, *, is_missing: bool) -> None:
        """Log once that a folder has gone or is back."""
        if is_missing and name not in self._missing:
            self._missing.add(name)
            _log.warning("the folder of %s has been deleted; the loaded model keeps working", name)
        elif not is_missing and name in self._missing:
            self._missing.remove(name)
            _log.info("the folder of %s is back", name)

    def _no_model_error(self, *tasks: Task) -> InputError:
        task, _ = TASK_HELP[tasks[0]]
        available = ", ".join(f"{served.name} ({served.task})" for served in self.models)
        return InputError(
            message("no model for {task} is loaded", task=message(task)),
            hint=message("available: {pairs}", pairs=available),
        )

    def _load(self, name: str) -> ModelHandle:
        from attendo.bundle import read_input_type

        folder = self._folders[name]
        if export_engine(folder) is not None or read_input_type(folder) == "text":
            return self._load_text_model(name)
        require_torch()
        from attendo.tasks.forecasting.forecaster import Forecaster

        self._remember_signature(name)
        forecaster = Forecaster.load(folder, device=self._device)
        return SeriesModelHandle(name, forecaster, forecaster.about)

    def _load_text_model(self, name: str) -> TextModelHandle:
        translator = self._load_translator(name)
        src, tgt = (
            str(translator.about.get(key) or default)
            for key, default in zip(("src_lang", "tgt_lang"), self._languages, strict=True)
        )
        task = task_of(getattr(translator.model, "kind", ""), translator.about)
        if task == "translation":
            with self._warm_up_lock:  # one at a time: it measures speed and captures CUDA graphs
                translator.backend.warm_up()
        self._log_weights(name, translator)
        slots = self._make_slots(name, translator) if task in TEXT_OUTPUT_TASKS else None
        about, engine = translator.about, translator.backend.name
        return TextModelHandle(name, src, tgt, translator, about, engine, task, slots)

    def _make_slots(self, name: str, translator: Translator) -> SegmentSlots | None:
        """Return the slots of a model that the native decoder decodes, warmed up."""
        if not self._slot_widths or translator.backend.name != NATIVE_ENGINE:
            return None
        from attendo.kernels.dispatch import kernel_cache_dir
        from attendo.translator.inflight import InflightTranslator

        with self._warm_up_lock:
            try:
                inflight = InflightTranslator.for_translator(
                    translator, widths=self._slot_widths, num_slots=self._num_slots
                )
                if inflight is None:
                    return None
                warm_up = inflight.warm_up()
                is_right = not warm_up.num_captures or inflight.agrees_with_search()
            except Exception as error:  # noqa: BLE001 - such as too small a memory
                _log.warning("%s: texts are decoded in batches, not in slots: %s", name,
                             type(error).__name__)  # fmt: skip
                return None
        if not is_right:
            _log.error("%s: slots and batches disagree; texts are decoded in batches", name)
            return None
        _log.info("%s: %d slots, %d CUDA graphs captured; warm-up %.1f s",
                  name, warm_up.num_slots, warm_up.num_captures, warm_up.seconds)  # fmt: skip
        if inflight.translator.backend.device_type == "cuda":
            let_threads_alternate()
        if warm_up.num_captures:
            _log.info("built kernels are kept in %s: the next warm-up is shorter",
                      kernel_cache_dir())  # fmt: skip
        return SegmentSlots(inflight, warm_up)

    def _load_translator(self, name: str) -> Translator:
        """Load a translator and its PyTorch model from the same state of the folder."""
        from attendo.translator import Translator

        for _ in range(NUM_LOAD_ATTEMPTS):
            self._remember_signature(name)
            translator = Translator.load(
                self._folders[name],
                device=self._device,
                engine=self._engine,
                precision=self._precision,
            )
            if translator.backend.has_native:
                _ = translator.native  # loaded now
            if folder_signature(self._folders[name]) == self._loaded_signatures[name]:
                break
        else:
            reason = "the folder changes while it is read"
            raise InputError(reason, hint="try again when its files are complete")
        return translator

    def _log_weights(self, name: str, translator: Translator) -> None:
        backend = translator.backend
        own = 0
        if backend.has_native and (reference := translator.native.backend) is not backend:
            own = reference.num_bytes
        _log.info("%s: engine '%s', %.1f MB of weights, of which %.1f MB to show the inside",
                  name, backend.name, backend.num_bytes / 1e6, own / 1e6)  # fmt: skip

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
    return ANY_RANK if available_code == ANY_LANGUAGE else None


def folder_signature(folder: Path) -> Signature:
    """Return names, times and sizes of the files of a model; () if there is no model.

    Of a run that is not finished they are those of its best checkpoint, so that the next one that
    is better is loaded in turn.
    """
    try:
        model_folder = ModelFolder.find(folder)
        paths = sorted(model_folder.path.iterdir())
        stats = [(path.name, path.stat()) for path in paths if path.is_file()]
    except OSError:  # being replaced right now
        return ()
    if not any(name in INDEX_FILES for name, _ in stats):
        return ()
    return tuple((name, stat.st_mtime_ns, stat.st_size, stat.st_ino) for name, stat in stats)
