"""The progress of a file as server-sent events: `progress`, then `done` or `error`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from attendo.core.errors import AttendoError
from attendo.serving.errors import conceal, format_error, preferred_language
from attendo.serving.routes.v1 import format_event

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from starlette.requests import Request

    from attendo.serving.document_jobs import Progress

    Run = Callable[[Progress], Awaitable[dict[str, Any]]]
    Update = tuple[str, dict[str, Any]]

END = "end"


class FileProgress:
    """A job that runs while its events are sent.

    Args:
        run: translates, and calls its argument with the number of finished texts and of all.

    """

    def __init__(self, run: Run) -> None:
        self._updates: asyncio.Queue[Update] = asyncio.Queue()
        self._task = asyncio.create_task(self._work(run))

    async def _work(self, run: Run) -> None:
        def report(num_done: int, num_texts: int) -> None:
            self._updates.put_nowait(("progress", {"done": num_done, "total": num_texts}))

        try:
            self._updates.put_nowait(("done", await run(report)))
        finally:
            self._updates.put_nowait((END, {}))

    async def start(self) -> Update:
        """Return the first event; an error before it is raised, and gets a status code."""
        try:
            first = await self._updates.get()
            if first[0] == END:
                await self._task
        except asyncio.CancelledError:
            self._task.cancel()
            raise
        return first

    async def events(self, first: Update, request: Request) -> AsyncIterator[str]:
        """Yield the events; the job is cancelled when the client disconnects."""
        lang = preferred_language(request.headers)
        try:
            kind, payload = first
            while kind != END:
                yield format_event(kind, payload)
                kind, payload = await self._updates.get()
            await self._task
        except AttendoError as caught:
            request_id = request.scope.get("state", {}).get("request_id", "")
            error = conceal(caught, request.app.state.service.registry, request_id=request_id)
            yield format_event("error", {"error": format_error(error.reason, error.hint, lang)})
        except Exception:
            yield format_event("error", {"error": format_error("internal error", None, lang)})
            raise
        finally:
            self._task.cancel()
