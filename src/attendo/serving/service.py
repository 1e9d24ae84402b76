"""The models of a server, each with its queue and thread, and a graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import threading
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from attendo.core.checkpoints import checkpoint, without_checkpoints
from attendo.core.device import use_threads
from attendo.core.errors import InputError
from attendo.core.logs import get_logger
from attendo.core.message import message
from attendo.memory.store import TranslationMemory, import_similarity
from attendo.serving.idle_models import IdleModels
from attendo.serving.metrics import SlotFigures
from attendo.serving.model_registry import ModelRegistry
from attendo.serving.scheduling.clients import current_client, one_time_limit, seconds_spent
from attendo.serving.scheduling.scheduler import Scheduler
from attendo.serving.served_model import (
    ModelHandle,
    Segment,
    SeriesModelHandle,
    TextModelHandle,
    count_rows,
)
from attendo.serving.unloaded_model import UnloadedTextModel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from attendo.serving.config import ServeConfig
    from attendo.serving.metrics import Metrics
    from attendo.tasks.forecasting.forecaster import Forecast
    from attendo.translator import Translation
    from attendo.translator.prefixes import PrefixedDocument
    from attendo.translator.translator import Split

RELOAD_SECONDS = 0.5
"""How long a folder must be unchanged before it is loaded on request."""
ResultT = TypeVar("ResultT")
CHARACTERS_PER_SEGMENT = 8
"""Added to the characters of each segment in its weight: its fixed costs."""
MIN_SEGMENT_CHARACTERS = 16
"""A full batch of segments of this size is never cut, however slow the engine is."""
AsideQueue = Literal["lessons", "checkpoints"]
ASIDE_QUEUES: dict[AsideQueue, int] = {"lessons": 32, "checkpoints": 8}
"""The queues of work that needs none of the models, and how many requests may wait in each."""
MAX_PLANNED_CHARACTERS = 4_000
"""Longer texts are split and joined in turns of their client, as they are translated."""
_log = get_logger(__name__)


@dataclass(frozen=True)
class BatchKey:
    """A model and its decoding options; requests with equal keys share a batch."""

    served: ModelHandle
    options_key: str
    """The options as JSON, for comparison."""
    options: dict[str, Any] = field(compare=False, hash=False)

    @property
    def kind(self) -> str:
        """What decodes: the time of a batch depends on it."""
        return self.served.engine_for(self.options)


class ModelEngine:
    """Decodes batches with the models that their keys name (`scheduling.scheduler.Engine`)."""

    def decode(self, key: BatchKey, payloads: list[Any]) -> list[Any]:
        """Decode the payloads with the options of the key."""
        return key.served.decode(key.options, payloads)

    def kind_of(self, key: BatchKey) -> str:
        """Return the library that decodes."""
        return key.kind


class Service:
    """Runs the models of a server; routes find it as `request.app.state.service`.

    `await service.translate(service.registry.find_for_languages("ko", "en"), ["나는 학생이다."])`
    returns the same translations as `Translator.translate`, whatever else is in the batch.
    """

    def __init__(
        self,
        config: ServeConfig,
        *,
        registry: ModelRegistry | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.config, self.metrics = config, metrics
        self.registry = registry or ModelRegistry(
            config.models,
            src_lang=config.src_lang,
            tgt_lang=config.tgt_lang,
            device=config.device,
            engine=config.engine,
            precision=config.precision,
            slot_widths=() if config.slots == 0 else (1, config.beam_size),
            num_slots=config.slots,
        )
        self.idle_models = IdleModels(self.registry, config.idle_seconds)
        self.registry.on_load, self.registry.on_unload = self._count_load, self._count_unload
        self.closing = asyncio.Event()
        """Set when the shutdown begins; endless loops must check it."""
        self.on_reload: Callable[[], None] = lambda: None
        """Called when a model was replaced."""
        self.memory = (
            None
            if config.memory is None
            else TranslationMemory(config.memory, max_units=config.max_memory_units)
        )
        """The corrections, if the server keeps any."""
        if self.memory is not None:
            import_similarity()  # what is missing is reported now, not by the first request
        self._schedulers: dict[str, Scheduler] = {}
        self._aside: dict[str, Scheduler] = {}
        self._reload_lock = asyncio.Lock()
        self._poll_task: asyncio.Task[None] | None = None
        self._idle_task: asyncio.Task[None] | None = None
        self._reload_task: asyncio.Task[None] | None = None

    def load(self) -> None:
        """Load the models, if they are not loaded yet."""
        use_threads(self.config.num_threads)
        if not self.registry.models:
            self.registry.load()

    async def start(self) -> None:
        """Load the models if need be, and start to process requests."""
        await asyncio.to_thread(self.load)
        for served in self.registry.models:
            self._schedulers[served.name] = self._make_scheduler(served.name)
        if self.config.watch_seconds:
            self._poll_task = asyncio.get_running_loop().create_task(self._poll_models())
        if self.config.idle_seconds:
            self._idle_task = asyncio.get_running_loop().create_task(self.idle_models.run())
        self._install_signal_handlers()

    def reload_models(self) -> None:
        """Check the model folders now; needs a running event loop."""
        self._reload_task = asyncio.get_running_loop().create_task(self._check_folders_now())

    async def stop(self) -> None:
        """Accept no more requests and finish those in progress."""
        self.closing.set()
        for task in (self._poll_task, self._idle_task):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        schedulers = (*self._schedulers.values(), *self._aside.values())
        await asyncio.gather(*(one.close() for one in schedulers))
        if self.memory is not None:
            await asyncio.to_thread(self.memory.close)

    async def translate(
        self,
        model: TextModelHandle | str,
        texts: Sequence[str],
        options: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Translation]:
        """Translate texts with options of `Translator.translate`, batched with other requests."""
        named = self._resolve_model(model)
        with one_time_limit(), self.idle_models.in_use(named.name):
            served = await self.idle_models.load(named)
            return await self._translate(served, texts, options, timeout=timeout)

    async def _translate(
        self,
        served: ModelHandle,
        texts: Sequence[str],
        options: Mapping[str, Any] | None,
        *,
        timeout: float | None,
    ) -> list[Translation]:
        if not isinstance(served, TextModelHandle):
            raise InputError(
                message("the model '{name}' does not read text", name=served.name),
                hint="use /v1/forecast",
            )
        defaults = {"beam_size": self.config.beam_size, "retry": self.config.retry}
        decoding_options = {**defaults, **(options or {})}
        # A path would open a file of the server.
        if isinstance(decoding_options.get("glossary"), (str, Path)):
            raise InputError("a glossary is a table of phrases", hint="pass pairs, not a path")
        prefixes = broadcast_prefix(decoding_options.pop("prefix", None), len(texts))
        split = decoding_options.pop("split", "auto")
        is_large = sum(map(len, texts)) > MAX_PLANNED_CHARACTERS
        run = partial(self.call, served, timeout=timeout) if is_large else _run_here
        keep_spans = decoding_options.get("copy_spans") != "never"
        documents = await run(
            self._split, served, texts, prefixes, split=split, keep_spans=keep_spans
        )
        segments = [segment for document in documents for segment in list_segments(document)]
        num_rows = count_rows(decoding_options)
        key_text = json.dumps(decoding_options, sort_keys=True, default=repr)
        translated: list[Translation] = await self._schedulers[served.name].submit(
            BatchKey(served, key_text, decoding_options),
            segments,
            weights=[(len(one.text) + CHARACTERS_PER_SEGMENT) * num_rows for one in segments],
            **self._limits(timeout),
            slots=served.slots_for(decoding_options, segments),
        )
        translations = await run(
            merge_documents,
            served,
            documents,
            translated,
            confidence=bool(decoding_options.get("confidence")),
        )
        if self.metrics is not None:
            self.metrics.count_texts(served.name, texts, translations)
        return translations

    async def forecast(
        self,
        served: SeriesModelHandle,
        window: NDArray[Any],
        times: Sequence[str],
        options: Mapping[str, Any],
    ) -> Forecast:
        """Forecast the steps after a window (window, features), batched with other requests."""
        forecast_options = dict(options)
        batch_key = BatchKey(served, json.dumps(forecast_options, sort_keys=True), forecast_options)
        codec = served.forecaster.codec
        num_sequences = int(forecast_options.get("num_samples", 1)) if codec.kind == "labels" else 1
        (result,) = await self._schedulers[served.name].submit(
            batch_key,
            [(window, times)],
            weights=[codec.window + num_sequences * codec.horizon],
            **self._limits(),
        )
        forecast: Forecast = result
        return forecast

    async def call(
        self,
        model: ModelHandle | str,
        function: Callable[..., ResultT],
        *args: Any,
        timeout: float | None = None,
        **kwargs: Any,
    ) -> ResultT:
        """Run a function in a thread of the model; at its checkpoints others get their turns."""
        served = self._resolve_model(model)
        with self.idle_models.in_use(served.name):
            await self.idle_models.load(served)
            scheduler = self._scheduler_of(served)
            return await scheduler.call(function, *args, **self._limits(timeout), **kwargs)

    async def call_aside(
        self, queue: AsideQueue, function: Callable[..., ResultT], *args: Any
    ) -> ResultT:
        """Run a function that needs none of the models, in turns of the clients of a queue.

        They run one at a time, each to its end: none is paused while its model is in memory.
        """

        def run() -> ResultT:
            with without_checkpoints():
                return function(*args)

        if queue not in self._aside:
            self._aside[queue] = Scheduler(ModelEngine(), max_queue=ASIDE_QUEUES[queue], name=queue)
            self._aside[queue].start()
        return await self._aside[queue].call(run, **self._limits())

    def stream(
        self,
        model: ModelHandle | str,
        make_iterator: Callable[[], Iterator[ResultT]],
        *,
        timeout: float | None = None,
    ) -> AsyncIterator[ResultT]:
        """Iterate in a thread of the model; items are yielded as they arrive."""
        served, limits = self._resolve_model(model), self._limits(timeout)

        async def iterate() -> AsyncIterator[ResultT]:
            with self.idle_models.in_use(served.name):
                await self.idle_models.load(served)
                items = self._scheduler_of(served).stream(make_iterator, **limits)
                async with contextlib.aclosing(items):
                    async for item in items:
                        yield item

        return iterate()

    def count_waiting(self) -> dict[str, int]:
        """Return the number of queued texts by model."""
        return {name: len(one) for name, one in self._schedulers.items()}

    def list_loaded(self) -> dict[str, bool]:
        """Return whether the weights of each model are loaded."""
        return {one.name: not isinstance(one, UnloadedTextModel) for one in self.registry.models}

    def _count_load(self, name: str, seconds: float) -> None:
        if self.metrics is not None:
            self.metrics.count_load(name, seconds)

    def _count_unload(self, name: str) -> None:
        if self.metrics is not None:
            self.metrics.count_unload(name)

    def describe_slots(self) -> dict[str, SlotFigures]:
        """Return the figures of the slots by model."""
        return {
            served.name: SlotFigures.of(served.slots)
            for served in self.registry.models
            if isinstance(served, TextModelHandle) and served.slots is not None
        }

    def _resolve_model(self, model: ModelHandle | str) -> ModelHandle:
        return self.registry.get(model) if isinstance(model, str) else model

    def _limits(self, timeout: float | None = None) -> dict[str, Any]:
        """Return the client and the time limit of the request that is being answered."""
        return {
            "client": current_client.get(),
            "timeout": timeout or self.config.timeout,
            "spent": seconds_spent(),
        }

    def _scheduler_of(self, model: ModelHandle | str) -> Scheduler:
        return self._schedulers[self._resolve_model(model).name]

    def _split(
        self,
        served: TextModelHandle,
        texts: Sequence[str],
        prefixes: Sequence[str],
        *,
        split: Split,
        keep_spans: bool,
    ) -> list[PrefixedDocument]:
        """Split texts into the segments that are translated one by one."""
        limits: dict[str, Any] = {
            "max_characters": self.config.max_characters,
            "keep_spans": keep_spans,
        }
        pairs = zip(texts, prefixes, strict=True)
        documents = []
        for text, prefix in pairs:
            checkpoint()
            documents.append(served.split(text, prefix, split, **limits))
        return documents

    def _make_scheduler(self, name: str) -> Scheduler:
        def record_batch(size: int) -> None:
            if self.metrics is not None:
                self.metrics.count_batch(name, size)

        scheduler = Scheduler(
            ModelEngine(),
            size=self.config.batch_size,
            max_weight=self.config.batch_characters * self.config.beam_size,
            min_weight=self.config.batch_size * self.config.beam_size * MIN_SEGMENT_CHARACTERS,
            wait=self.config.batch_wait_ms / 1000,
            max_queue=self.config.max_queue,
            name=name,
            on_batch=record_batch,
        )
        scheduler.start()
        return scheduler

    async def _poll_models(self) -> None:
        while True:
            await asyncio.sleep(self.config.watch_seconds)
            await self._check_folders()

    async def _check_folders_now(self) -> None:
        """Check twice: a folder must not change in between."""
        _log.info("checking the model folders")
        await self._check_folders()
        await asyncio.sleep(RELOAD_SECONDS)
        await self._check_folders()

    async def _check_folders(self) -> None:
        try:
            async with self._reload_lock:
                if await asyncio.to_thread(self.registry.reload_changed):
                    self.on_reload()
        except Exception as error:  # noqa: BLE001 - keep polling
            _log.error("the model folders cannot be checked: %s", type(error).__name__)

    def _install_signal_handlers(self) -> None:
        """Set `closing` on SIGTERM: uvicorn runs shutdown hooks only when all clients are gone."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for signum in (signal.SIGTERM, signal.SIGINT):
            previous = signal.getsignal(signum)
            if not callable(previous):
                continue

            def handle(received: int, frame: Any, previous: Callable[..., Any] = previous) -> None:
                with contextlib.suppress(RuntimeError):  # the loop is closed already
                    loop.call_soon_threadsafe(self.closing.set)
                previous(received, frame)

            signal.signal(signum, handle)


async def _run_here(function: Callable[..., ResultT], *args: Any, **kwargs: Any) -> ResultT:
    """Call a function: `asyncio.to_thread` without a thread."""
    return function(*args, **kwargs)


def list_segments(document: PrefixedDocument) -> list[Segment]:
    """Return the segments of a document, each with its prefix."""
    pairs = zip(document.document.segments, document.prefixes, strict=True)
    return [Segment(text, prefix, index == 0) for index, (text, prefix) in enumerate(pairs)]


def merge_documents(
    served: TextModelHandle,
    documents: Sequence[PrefixedDocument],
    translated: Sequence[Translation],
    *,
    confidence: bool,
) -> list[Translation]:
    """Return the translations of documents from those of their segments."""
    remaining, merged = iter(translated), []
    for document in documents:
        checkpoint()
        segments = [next(remaining) for _ in document.prefixes]
        merged.append(served.merge(document, segments, confidence=confidence))
    return merged


def broadcast_prefix(prefix: str | Sequence[str] | None, count: int) -> list[str]:
    """Return one prefix per text."""
    if prefix is None or isinstance(prefix, str):
        return [prefix or ""] * count
    if len(prefix) != count:
        reason = message(
            "{num_prefix} prefixes for {count} texts", num_prefix=len(prefix), count=count
        )
        raise InputError(reason, hint="pass one prefix per text, '' for none")
    return list(prefix)
