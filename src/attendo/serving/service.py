"""The models of a server, each with its queue and thread, and a graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from attendo.core.errors import InputError
from attendo.core.logs import get_logger
from attendo.serving.batcher import Batcher
from attendo.serving.model_registry import ModelRegistry
from attendo.serving.served_model import ModelHandle, SeriesModelHandle, TextModelHandle

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from attendo.serving.config import ServeConfig
    from attendo.serving.metrics import Metrics
    from attendo.tasks.forecasting.forecaster import Forecast
    from attendo.translator import Translation

ResultT = TypeVar("ResultT")
_log = get_logger(__name__)


@dataclass(frozen=True)
class BatchKey:
    """A model and its decoding options; requests with equal keys share a batch."""

    served: ModelHandle
    options_key: str
    """The options as JSON, for comparison."""
    options: dict[str, Any] = field(compare=False, hash=False)


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
        )
        self.closing = asyncio.Event()
        """Set when the shutdown begins; endless loops must check it."""
        self._batchers: dict[str, Batcher] = {}
        self._poll_task: asyncio.Task[None] | None = None

    def load(self) -> None:
        """Load the models, if they are not loaded yet."""
        import torch

        torch.set_num_threads(self.config.num_threads)
        if not self.registry.models:
            self.registry.load()

    async def start(self) -> None:
        """Load the models if need be, and start to process requests."""
        await asyncio.to_thread(self.load)
        for served in self.registry.models:
            self._batchers[served.name] = self._make_batcher(served.name)
        if self.config.watch_seconds:
            self._poll_task = asyncio.get_running_loop().create_task(self._poll_models())
        self._install_signal_handlers()

    async def stop(self) -> None:
        """Accept no more requests and finish those in progress."""
        self.closing.set()
        if self._poll_task is not None:
            self._poll_task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._poll_task
        await asyncio.gather(*(batcher.close() for batcher in self._batchers.values()))

    async def translate(
        self,
        model: TextModelHandle | str,
        texts: Sequence[str],
        options: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
    ) -> list[Translation]:
        """Translate texts with options of `Translator.translate`, batched with other requests."""
        served = self._resolve_model(model)
        if not isinstance(served, TextModelHandle):
            raise InputError(
                f"the model '{served.name}' does not read text", hint="use /v1/forecast"
            )
        decoding_options = {"beam_size": self.config.beam_size, **(options or {})}
        # A path would open a file of the server.
        if isinstance(decoding_options.get("glossary"), (str, Path)):
            raise InputError("a glossary is a table of phrases", hint="pass pairs, not a path")
        prefixes = broadcast_prefix(decoding_options.pop("prefix", None), len(texts))
        batch_key = BatchKey(
            served, json.dumps(decoding_options, sort_keys=True, default=repr), decoding_options
        )
        translations: list[Translation] = await self._batchers[served.name].submit(
            batch_key,
            list(zip(texts, prefixes, strict=True)),
            sizes=[len(text) + 1 for text in texts],
            timeout=timeout or self.config.timeout,
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
        (result,) = await self._batchers[served.name].submit(
            batch_key,
            [(window, times)],
            sizes=[codec.window + num_sequences * codec.horizon],
            timeout=self.config.timeout,
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
        """Run a function in the thread of the model, in queue order."""
        batcher = self._batchers[self._resolve_model(model).name]
        return await batcher.call(function, *args, timeout=timeout or self.config.timeout, **kwargs)

    def stream(
        self,
        model: ModelHandle | str,
        make_iterator: Callable[[], Iterator[ResultT]],
        *,
        timeout: float | None = None,
    ) -> AsyncIterator[ResultT]:
        """Iterate in the thread of the model; items are yielded as they arrive."""
        batcher = self._batchers[self._resolve_model(model).name]
        return batcher.stream(make_iterator, timeout=timeout or self.config.timeout)

    def count_waiting(self) -> dict[str, int]:
        """Return the number of queued texts by model."""
        return {name: len(batcher) for name, batcher in self._batchers.items()}

    def _resolve_model(self, model: ModelHandle | str) -> ModelHandle:
        return self.registry.get(model) if isinstance(model, str) else model

    def _make_batcher(self, name: str) -> Batcher:
        def record_batch(size: int) -> None:
            if self.metrics is not None:
                self.metrics.count_batch(name, size)

        batcher = Batcher(
            _decode_batch,
            size=self.config.batch_size,
            max_weight=self.config.batch_characters,
            wait=self.config.batch_wait_ms / 1000,
            max_queue=self.config.max_queue,
            name=name,
            on_batch=record_batch,
        )
        batcher.start()
        return batcher

    async def _poll_models(self) -> None:
        while True:
            await asyncio.sleep(self.config.watch_seconds)
            try:
                await asyncio.to_thread(self.registry.reload_changed)
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


def _decode_batch(batch_key: Any, payloads: list[Any]) -> list[Any]:
    results: list[Any] = batch_key.served.decode(batch_key.options, payloads)
    return results


def broadcast_prefix(prefix: str | Sequence[str] | None, count: int) -> list[str]:
    """Return one prefix per text."""
    if prefix is None or isinstance(prefix, str):
        return [prefix or ""] * count
    if len(prefix) != count:
        reason = f"{len(prefix)} prefixes for {count} texts"
        raise InputError(reason, hint="pass one prefix per text, '' for none")
    return list(prefix)
