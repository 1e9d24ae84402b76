"""Unloads models that nobody has used for a while, so that others get their memory.

A model is used from the beginning of a request to its end. Its next request loads it again, and
waits for that. Requests that have begun keep the weights that they began with.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from contextlib import contextmanager, suppress
from time import monotonic
from typing import TYPE_CHECKING

from attendo.core.device import empty_device_cache
from attendo.core.logs import get_logger
from attendo.serving.unloaded_model import UnloadedTextModel

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from attendo.serving.model_registry import ModelRegistry
    from attendo.serving.served_model import ModelHandle

    Clock = Callable[[], float]

CHECKS_PER_PERIOD = 4
MAX_CHECK_SECONDS = 30.0
"""Models are checked this often at least."""
_log = get_logger(__name__)


class IdleModels:
    """The uses of the models of a registry.

    Args:
        registry: has the models.
        idle_seconds: how long a model stays loaded without being used; 0 is for ever.
        clock: returns the seconds since any moment.

    """

    def __init__(
        self, registry: ModelRegistry, idle_seconds: float, *, clock: Clock = monotonic
    ) -> None:
        self.registry, self.idle_seconds = registry, idle_seconds
        self._clock, self._start = clock, clock()
        self._num_uses: dict[str, int] = {}
        self._last_used: dict[str, float] = {}

    @contextmanager
    def in_use(self, name: str) -> Iterator[None]:
        """Keep a model loaded in this context."""
        self._num_uses[name] = self._num_uses.get(name, 0) + 1
        try:
            yield
        finally:
            self._num_uses[name] -= 1
            self._last_used[name] = self._clock()

    async def load(self, served: ModelHandle) -> ModelHandle:
        """Return a model, loaded if it was not; other requests are answered meanwhile."""
        if not isinstance(served, UnloadedTextModel):
            return served
        return await asyncio.to_thread(served.load)

    async def run(self) -> None:
        """Unload idle models until the task is cancelled."""
        pause = min(self.idle_seconds / CHECKS_PER_PERIOD, MAX_CHECK_SECONDS)
        while True:
            await asyncio.sleep(pause)
            try:
                await self.unload_idle()
            except Exception as error:  # noqa: BLE001 - go on: others can be unloaded
                _log.error("idle models cannot be unloaded: %s", type(error).__name__)

    async def unload_idle(self) -> list[str]:
        """Unload the models that have been idle for too long, and return their names."""
        idle = [served.name for served in self.registry.models if self._is_idle(served.name)]
        unloaded = [name for name in idle if await asyncio.to_thread(self.registry.unload, name)]
        if unloaded:
            await asyncio.to_thread(_free_memory)
        return unloaded

    def _is_idle(self, name: str) -> bool:
        if self._num_uses.get(name):
            return False
        last_used = max(self._last_used.get(name, self._start), self.registry.loaded_at(name))
        return self._clock() - last_used >= self.idle_seconds


def _free_memory() -> None:
    """Return the memory of unloaded models to the system: allocators keep it for later."""
    gc.collect()
    empty_device_cache()
    if sys.platform.startswith("linux"):
        with suppress(OSError, AttributeError):  # another C library than glibc
            ctypes.CDLL(None).malloc_trim(0)
