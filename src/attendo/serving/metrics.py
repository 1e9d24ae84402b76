"""Prometheus metrics: requests, latency, batches, queues, tokens. Each process has its own."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.serving.served_model import SegmentSlots
    from attendo.translator import Translation

LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
MAX_RENDER_SHARE = 0.1
"""How much of the time may be spent on rendering."""
MAX_AGE_SECONDS = 0.1
"""The age of the figures at most, also on a busy machine."""
BATCH_SIZE_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)
SLOT_GAUGES = (
    ("num_slots", "slots", "Sentences that are searched at a time."),
    ("num_active", "slots_in_use", "Sentences that are searched right now."),
    ("num_captures", "graph_captures", "CUDA graphs captured so far."),
    ("num_late", "graph_captures_after_warm_up", "CUDA graphs captured after the warm-up."),
    ("warm_up_seconds", "warm_up_seconds", "Seconds of the warm-up."),
)
"""Field of `SlotFigures`, name and description of each gauge."""


class SlotFigures(NamedTuple):
    """The slots of one model."""

    num_slots: int
    num_active: int
    num_captures: int
    """CUDA graphs that were captured."""
    num_late: int
    """Those after the warm-up, while requests waited."""
    warm_up_seconds: float

    @classmethod
    def of(cls, slots: SegmentSlots) -> SlotFigures:
        """Return the figures of the slots of a model."""
        decoder = slots.translator.decoder
        counts = (decoder.captures.num_captures, decoder.captures.num_late)
        return cls(slots.num_slots, decoder.num_active, *counts, slots.warm_up.seconds)


class Metrics:
    """Metrics of one application, in a registry of their own."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = registry = CollectorRegistry()
        self._rendered, self._valid_until = b"", 0.0
        self._requests = Counter(
            "attendo_requests", "Requests by route and status.",
            ["route", "method", "status"], registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "attendo_request_seconds", "Request latency in seconds.",
            ["route"], buckets=LATENCY_BUCKETS, registry=registry,
        )  # fmt: skip
        self._batches = Histogram(
            "attendo_batch_texts", "Texts per batch.",
            ["model"], buckets=BATCH_SIZE_BUCKETS, registry=registry,
        )  # fmt: skip
        self._queued = Gauge(
            "attendo_queue_texts", "Texts in the queue.", ["model"], registry=registry
        )
        self._slots = {
            name: Gauge(f"attendo_{key}", description, ["model"], registry=registry)
            for name, key, description in SLOT_GAUGES
        }
        self._texts = Counter("attendo_texts", "Translated texts.", ["model"], registry=registry)
        self._characters = Counter(
            "attendo_source_characters", "Source characters read.", ["model"], registry=registry
        )
        self._tokens = Counter(
            "attendo_target_tokens", "Target tokens generated.", ["model"], registry=registry
        )

        self._loaded = Gauge(
            "attendo_model_loaded", "Whether the weights of a model are loaded.",
            ["model"], registry=registry,
        )  # fmt: skip
        self._unloads = Counter(
            "attendo_model_unloads", "How often an idle model was unloaded.",
            ["model"], registry=registry,
        )  # fmt: skip
        self._loads = Histogram(
            "attendo_model_load_seconds", "Seconds to load an unloaded model again.",
            ["model"], buckets=LATENCY_BUCKETS, registry=registry,
        )  # fmt: skip

    def count_unload(self, model: str) -> None:
        """Count one model that was unloaded."""
        self._unloads.labels(model).inc()

    def count_load(self, model: str, seconds: float) -> None:
        """Count one model that was loaded again."""
        self._loads.labels(model).observe(seconds)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one request; the route is its pattern, never the path of the client."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_batch(self, model: str, size: int) -> None:
        """Count one batch."""
        self._batches.labels(model).observe(size)

    def count_texts(
        self, model: str, texts: Sequence[str], translations: Sequence[Translation]
    ) -> None:
        """Count the texts of one request and their translations."""
        self._texts.labels(model).inc(len(texts))
        self._characters.labels(model).inc(sum(map(len, texts)))
        self._tokens.labels(model).inc(sum(len(getattr(one, "ids", ())) for one in translations))

    def render(
        self,
        count_waiting: Callable[[], dict[str, int]],
        describe_slots: Callable[[], dict[str, SlotFigures]] = dict,
        list_loaded: Callable[[], dict[str, bool]] = dict,
    ) -> bytes:
        """Return all metrics in the Prometheus text format.

        They are up to `MAX_AGE_SECONDS` old if clients ask all the time.
        """
        from prometheus_client import generate_latest

        start = perf_counter()
        if start < self._valid_until:
            return self._rendered
        for model, count in count_waiting().items():
            self._queued.labels(model).set(count)
        for model, figures in describe_slots().items():
            for name, gauge in self._slots.items():
                gauge.labels(model).set(getattr(figures, name))
        for model, is_loaded in list_loaded().items():
            self._loaded.labels(model).set(is_loaded)
        self._rendered = generate_latest(self.registry)
        now = perf_counter()
        self._valid_until = now + min((now - start) / MAX_RENDER_SHARE, MAX_AGE_SECONDS)
        return self._rendered
