from __future__ import annotations

from attendo.serving.scheduling.batch_limits import BatchLimits
from attendo.serving.scheduling.fair_queue import FairQueue, Request

HEAVY = 1000.0


def request(client: str, key, payloads, *, weight: float = 1.0, **options) -> Request:
    return Request(client, key, payloads, [weight] * len(payloads), **options)


def take(queue: FairQueue, max_items: int = 32, max_weight: float = 1e9, rate: float = 1.0):
    """Take a turn, charge its clients, and return its payloads."""
    items = queue.take(max_items, max_weight, rate)
    for item in items:
        queue.charge(item.request.client, item.weight * rate)
    return [item.payload for item in items]


def drain(queue: FairQueue, **options) -> list:
    turns = []
    while queue:
        turns.append(take(queue, **options))
    return turns


def test_clients_take_turns_whatever_is_queued() -> None:
    queue = FairQueue()
    queue.add(request("a", "k", [f"a{n}" for n in range(5)]))
    queue.add(request("b", "k", ["b0", "b1"]))
    assert [turn[0] for turn in drain(queue, max_items=1)] == [
        "a0", "b0", "a1", "b1", "a2", "a3", "a4",
    ]  # fmt: skip


def test_many_requests_of_one_client_share_its_turn_and_take_turns_themselves() -> None:
    queue = FairQueue()
    for number in range(3):
        queue.add(request("a", "k", [f"a{number}{n}" for n in range(2)]))
    queue.add(request("b", "k", ["b0", "b1"]))
    turns = [turn[0] for turn in drain(queue, max_items=1)]
    assert turns == ["a00", "b0", "a10", "b1", "a20", "a01", "a11", "a21"]


def test_heavy_items_cost_more_turns() -> None:
    queue = FairQueue()
    queue.add(request("heavy", "k", ["H0", "H1"], weight=4.0))
    queue.add(request("light", "k", [f"l{n}" for n in range(6)]))
    turns = [turn[0] for turn in drain(queue, max_items=1)]
    assert turns == ["H0", "l0", "l1", "l2", "l3", "H1", "l4", "l5"]


def test_a_new_client_is_next_but_saves_no_credit_while_idle() -> None:
    queue = FairQueue()
    queue.add(request("old", "k", list(range(100)), weight=HEAVY))
    for _ in range(3):
        take(queue, max_items=1)
    queue.add(request("new", "k", ["n0", "n1", "n2"], weight=HEAVY))
    turns = [take(queue, max_items=1)[0] for _ in range(4)]
    assert turns[0] == "n0"
    assert turns[1:].count("n1") == 1  # in turns, not all of them first
    assert any(isinstance(one, int) for one in turns)


def test_a_client_that_comes_back_at_once_does_not_starve_the_others() -> None:
    queue = FairQueue()
    queue.add(request("patient", "k", ["p"], weight=1.0))
    take(queue)
    queue.add(request("patient", "k", ["p"]))
    queue.add(request("big", "k", ["B"] * 10, weight=10.0))
    seen = []
    for _ in range(40):
        turn = take(queue, max_items=1)
        seen += turn
        if turn == ["p"]:
            queue.add(request("patient", "k", ["p"]))
    assert seen.count("B") >= 3
    assert seen.count("p") >= 20


def test_a_batch_has_one_key_and_items_of_as_many_clients_as_possible() -> None:
    queue = FairQueue()
    queue.add(request("hog", "k", [f"h{n}" for n in range(10)]))
    queue.add(request("other", "x", ["x0"]))
    for name in "abc":
        queue.add(request(name, "k", [name]))
    assert take(queue, max_items=6) == ["h0", "a", "b", "c", "h1", "h2"]
    assert take(queue, max_items=6) == ["x0"]


def test_a_batch_has_a_weight_but_takes_at_least_one_item() -> None:
    queue = FairQueue()
    queue.add(request("a", "k", ["a0", "a1", "a2"], weight=4.0))
    assert drain(queue, max_weight=8.0) == [["a0", "a1"], ["a2"]]
    queue.add(request("a", "k", ["huge", "next"], weight=HEAVY))
    assert drain(queue, max_weight=8.0) == [["huge"], ["next"]]


def test_a_call_is_a_turn_of_its_own_and_of_a_client_only_a_few_are_started() -> None:
    queue = FairQueue(max_paused=1)
    queue.add(request("a", None, ["call 1"]))
    queue.add(request("a", None, ["call 2"]))
    assert take(queue) == ["call 1"]
    queue.add(request("a", None, ["rest of 1"], is_paused=True))
    assert take(queue) == ["rest of 1"]
    assert take(queue) == ["call 2"]
    assert not queue


def test_a_removed_request_leaves_nothing_behind() -> None:
    queue = FairQueue()
    gone, stays = request("a", "k", ["gone"] * 3), request("b", "other", ["stays"])
    queue.add(gone)
    queue.add(stays)
    take(queue, max_items=1)
    assert (queue.count_waiting(), queue.count_waiting("a"), queue.only_key) == (3, 2, None)
    assert queue.count_waiting(at_most=1) == 2
    queue.remove(gone)
    queue.remove(gone)
    assert (queue.num_clients, queue.only_key, queue.total_weight()) == (1, "other", 1.0)
    assert drain(queue) == [["stays"]]


def test_clocks_of_disconnected_clients_are_deleted() -> None:
    queue = FairQueue()
    queue.add(request("waits", "other", ["w"], weight=HEAVY))
    take(queue)
    queue.add(request("waits", "other", ["w"]))
    seen = []
    for number in range(5000):
        queue.add(request(f"client {number}", "k", ["x"]))
        seen += take(queue, max_items=1)
    assert len(queue._clocks) < 3000
    assert "w" in seen  # however many new clients come
    queue = FairQueue()
    queue.add(request("a", "k", ["x"]))
    take(queue)
    queue.add(request("b", "k", ["x"]))
    assert queue.clock_of("b") == 1.0
    assert len(queue._clocks) == 1


def test_the_limit_of_a_batch_follows_the_time_that_batches_take() -> None:
    limits = BatchLimits(smallest=10.0, largest=1000.0, seconds=0.1)
    start = limits.get("engine")
    limits.record("engine", weight=start, seconds=0.01)
    assert limits.get("engine") == 2 * start
    limits.record("engine", weight=1.0, seconds=0.01)  # says nothing about heavy ones
    assert limits.get("engine") == 2 * start
    limits.record("engine", weight=100.0, seconds=0.2)
    assert limits.get("engine") == 50.0
    limits.record("engine", weight=1.0, seconds=9.0)
    assert limits.get("engine") == 10.0
    for _ in range(20):
        limits.record("engine", weight=limits.get("engine"), seconds=0.0)
    assert limits.get("engine") == 1000.0
    assert limits.get("another") == start


def test_free_slots_go_to_the_client_that_has_used_the_least() -> None:
    queue, engine, other = FairQueue(), object(), object()
    queue.add(request("a", "k", [f"a{n}" for n in range(9)], slots=engine))
    queue.add(request("b", "k", ["b0", "b1"], slots=engine, weight=3.0))
    queue.add(request("c", "k", ["c0"], slots=other))
    queue.add(request("a", "k", ["turn"]))
    free = {engine: 5, other: 0}
    taken = queue.take_for_slots(free.__getitem__, 1.0)
    assert [item.payload for item in taken] == ["a0", "b0", "a1", "a2", "b1"]
    assert (queue.num_clients, queue.count_waiting()) == (2, 8)
    assert queue.take_for_slots(lambda _: 0) == []
    assert take(queue) == ["turn"]
    queue.add(request("b", "k", ["b2"], slots=engine))
    queue.charge("a", 100.0)
    taken = queue.take_for_slots(lambda _: 2, 1.0)
    assert [item.payload for item in taken] == ["c0", "b2", "a3"]


def test_without_slots_what_is_left_takes_turns() -> None:
    queue, engine = FairQueue(), object()
    queue.add(request("a", "k", ["a0", "a1"], slots=engine))
    assert not queue.has_turns
    assert [item.payload for item in queue.take_for_slots(lambda _: 1)] == ["a0"]
    queue.end_slots(engine)
    assert queue.has_turns
    assert take(queue) == ["a1"]
    assert not queue
