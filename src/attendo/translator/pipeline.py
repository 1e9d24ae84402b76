"""Translates any number of lines: reading, tokenizing and detokenizing overlap with the search.

One thread reads the lines and prepares the windows, one searches, and the caller's thread makes the
translations while it iterates. At most a few windows are in memory.

A backend may decode continuously (`open_stream`): sentences of several windows are then searched at
the same time. All others search window after window.
"""

from __future__ import annotations

from contextlib import closing, nullcontext
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from attendo.core.interpreter import favor_throughput
from attendo.translator.background import BackgroundStage
from attendo.translator.stream_search import StreamSearch
from attendo.translator.windows import max_window_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from attendo.decoding.hypothesis import SearchResult
    from attendo.decoding.options import DecodingOptions
    from attendo.translator.backends.base import Progress
    from attendo.translator.translation import Translation
    from attendo.translator.windows import Window, WindowTranslator

    LineProgress = Callable[[int, int], None]

MAX_WINDOW_CHARACTERS = 2_000_000
"""A window with more ends, whatever the number of its lines."""


class DecodingStream(Protocol):
    """Searches sentences that join and leave at any step."""

    @property
    def num_slots(self) -> int:
        """Sentences that are searched at a time."""
        ...

    def __len__(self) -> int:
        """Return the number of sentences that were added and not returned."""
        ...

    def add(self, ticket: Hashable, src_ids: Sequence[int], options: DecodingOptions) -> bool:
        """Add a sentence; return whether it is short enough."""
        ...

    def step(self) -> Sequence[tuple[Hashable, SearchResult | Exception]]:
        """Advance all sentences and return those that finished, or failed."""
        ...


FIRST_SHARE = 8
"""The first window is smaller by this, so that the search begins soon; the next ones grow."""


def group_lines(lines: Iterable[str], max_lines: int) -> Iterator[list[str]]:
    """Yield the lines in windows, which depend on nothing but the lines.

    >>> [len(window) for window in group_lines(["a"] * 30, 8)]
    [1, 2, 4, 8, 8, 7]
    """
    size = max(1, max_lines // FIRST_SHARE)
    window: list[str] = []
    num_characters = 0
    try:
        for line in lines:
            window.append(line)
            num_characters += len(line)
            if len(window) >= size or num_characters >= MAX_WINDOW_CHARACTERS:
                yield window
                window, num_characters = [], 0
                size = min(2 * size, max_lines)
    except Exception:
        if window:  # what was read before the error is translated
            yield window
        raise
    if window:
        yield window


class Pipeline:
    """Translates windows of lines in order.

    Args:
        steps: from `Translator.make_steps`.
        windows: from `group_lines`, or the lines that have arrived.
        progress: called with the number of finished lines, about, and of those that were read.

    """

    def __init__(
        self,
        steps: WindowTranslator,
        windows: Iterable[Sequence[str]],
        progress: LineProgress | None = None,
    ) -> None:
        self.steps, self.windows, self.progress = steps, windows, progress
        self.seconds: dict[str, float] = {}
        """By stage, once all is translated."""
        self._num_read = self._num_searched = 0
        self._prepare_stage: BackgroundStage[Sequence[str], Window] | None = None
        self._search_stage: BackgroundStage[Window, Window] | None = None

    def run(self) -> Generator[list[Translation], None, None]:
        """Yield the translations of each window; the threads end when this iterator is closed."""
        prepare_stage = self._prepare_stage = BackgroundStage(self.windows, self._prepare)
        search_stage = self._search_stage = BackgroundStage(prepare_stage, self._search)
        finish_seconds = 0.0
        drives_gpu = self.steps.translator.backend.device_type == "cuda"
        with favor_throughput(drives_gpu=drives_gpu), search_stage:
            for window in search_stage:
                begin = perf_counter()
                translations = self.steps.finish(window)
                finish_seconds += perf_counter() - begin
                yield translations
        self.seconds = {
            "read": prepare_stage.seconds.source,
            "tokenize": prepare_stage.seconds.work,
            "search": search_stage.seconds.work,
            "wait": search_stage.seconds.source + search_stage.seconds.consumer,
            "detokenize": finish_seconds,
        }

    def translations(self) -> Generator[Translation, None, None]:
        """Yield the translation of each line."""
        with closing(self.run()) as windows:
            for translations in windows:
                yield from translations

    def _prepare(self, windows: Iterator[Sequence[str]]) -> Iterator[Window]:
        for texts in windows:
            self._num_read += len(texts)
            yield self.steps.prepare(texts)

    def _search(self, windows: Iterator[Window]) -> Iterator[Window]:
        with self._on_device(), self._open_stream() as stream:
            search = self._search_windows if stream is None else self._search_stream(stream)
            for window in search(windows):
                self._num_searched += len(window.texts)
                if self.progress is not None:
                    self.progress(self._num_searched, self._num_read)
                yield window

    def _on_device(self) -> AbstractContextManager[Any]:
        """Return a context in which this thread uses the GPU of the model."""
        backend = self.steps.translator.backend
        if backend.device_type != "cuda":
            return nullcontext()
        import torch

        return torch.cuda.device(backend.device)

    def _open_stream(self) -> AbstractContextManager[DecodingStream | None]:
        steps, translator = self.steps, self.steps.translator
        if steps.trace or steps.confidence or steps.builder:
            return nullcontext()
        return translator.backend.open_stream(steps.options, translator.max_src_tokens + 1)

    def _search_windows(self, windows: Iterator[Window]) -> Iterator[Window]:
        for window in windows:
            self.steps.search(window, partial(self._report, len(window.texts)))
            yield window

    def _search_stream(
        self, stream: DecodingStream
    ) -> Callable[[Iterator[Window]], Iterator[Window]]:
        has_next = partial(getattr, self._prepare_stage, "is_ready")
        return StreamSearch(self.steps, stream, has_next, self._report).run

    def _report(self, num_lines: int, num_done: int, num_items: int) -> None:
        """Report the progress within a window, and stop if nobody reads the results."""
        self._check()
        if self.progress is not None:
            done = num_lines * num_done // max(num_items, 1)
            self.progress(self._num_searched + min(done, num_lines - 1), self._num_read)

    def _check(self) -> None:
        if self._search_stage is not None:
            self._search_stage.check()


def translate_list(
    steps: WindowTranslator, texts: Sequence[str], progress: Progress | None = None
) -> list[Translation]:
    """Translate many texts; `progress` is called with the number of finished ones and of all."""
    line_progress: LineProgress | None = None
    if progress is not None:

        def line_progress(num_done: int, _num_read: int) -> None:
            progress(num_done, len(texts))

    max_lines = max_window_lines(steps.translator.backend.device_type)
    pipeline = Pipeline(steps, group_lines(texts, max_lines), line_progress)
    return list(pipeline.translations())
