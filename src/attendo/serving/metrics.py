"""Prometheus metrics: requests, latency, batches, queues, tokens. Each process has its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from attendo.translator import Translation

LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
BATCH_SIZE_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """Metrics of one application, in a registry of their own."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = registry = CollectorRegistry()
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
        self._texts = Counter("attendo_texts", "Translated texts.", ["model"], registry=registry)
        self._characters = Counter(
            "attendo_source_characters", "Source characters read.", ["model"], registry=registry
        )
        self._tokens = Counter(
            "attendo_target_tokens", "Target tokens generated.", ["model"], registry=registry
        )

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

    def render(self, count_waiting: Callable[[], dict[str, int]]) -> bytes:
        """Return all metrics in the Prometheus text format."""
        from prometheus_client import generate_latest

        for model, count in count_waiting().items():
            self._queued.labels(model).set(count)
        return generate_latest(self.registry)
