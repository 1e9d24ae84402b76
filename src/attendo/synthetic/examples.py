"""Samples distinct examples into train, dev and test, for the corpora of dates and numbers.

The examples are the same for the same seed. A key (a date, a number) belongs to one split only,
however it is written.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple
from zlib import crc32

from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Lang = Literal["ko", "en", "both"]
MAX_COUNT = 1_000_000
"""Maximum number of examples per call."""
_MAX_CONSECUTIVE_REJECTIONS = 20_000
"""After this many samples without a new source, there are probably no more."""


class Example(NamedTuple):
    """A source and its only correct target."""

    src: str
    tgt: str
    form: str
    """How the source is written: the language, then the form."""
    key: str
    """The meaning; no two splits share a key."""


class ExampleSplits(NamedTuple):
    """Three splits that share no key."""

    train: list[Example]
    dev: list[Example]
    test: list[Example]


def synthesize_examples(
    sample_example: Callable[[Random], Example],
    count: int,
    *,
    seed: int,
    dev_fraction: float = 0.0,
    train_only_key: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExampleSplits:
    """Sample examples with distinct sources, and assign them to splits by their keys.

    Args:
        sample_example: Returns a random example.
        count: Number of examples in all splits together.
        seed: Seed of the samples and of the assignment of keys to splits.
        dev_fraction: Fraction of the examples in dev, and the same in test.
        train_only_key: A key that always belongs to train.
        progress: Called now and then with the number of examples so far.

    Returns:
        The three splits.

    Raises:
        InputError: If there are fewer distinct examples, or `count` is out of range.
        ConfigError: If `dev_fraction` is out of range.

    """
    _validate(count, dev_fraction)
    num_dev = round(count * dev_fraction)
    sizes = {"train": count - 2 * num_dev, "dev": num_dev, "test": num_dev}
    splits: dict[str, list[Example]] = {name: [] for name in sizes}
    rng = Random(seed)  # noqa: S311 - no secret
    for done, (name, example) in enumerate(
        _distinct_examples(sample_example, rng, seed, dev_fraction, train_only_key, sizes), 1
    ):
        splits[name].append(example)
        if progress is not None and (done % 1000 == 0 or done == count):
            progress(done)
    return ExampleSplits(**splits)


def _distinct_examples(
    sample_example: Callable[[Random], Example],
    rng: Random,
    seed: int,
    dev_fraction: float,
    train_only_key: str | None,
    sizes: dict[str, int],
) -> Iterator[tuple[str, Example]]:
    """Yield new examples with their split, as long as that split is not full."""
    seen: set[str] = set()
    remaining = dict(sizes)
    num_rejected = 0
    while any(remaining.values()):
        example = sample_example(rng)
        name = (
            "train"
            if example.key == train_only_key
            else assign_split(example.key, seed, dev_fraction)
        )
        if remaining[name] and example.src not in seen:
            seen.add(example.src)
            remaining[name] -= 1
            num_rejected = 0
            yield name, example
            continue
        num_rejected += 1
        if num_rejected > _MAX_CONSECUTIVE_REJECTIONS:
            num_requested, num_distinct = sum(sizes.values()), len(seen)
            raise InputError(
                message(
                    "{asked} examples were requested, but there are only about {found} different "
                    "ones",
                    asked=f"{num_requested:,}",
                    found=f"{num_distinct:,}",
                ),
                hint="request fewer examples, longer numbers or both languages",
            )


def assign_split(key: str, seed: int, dev_fraction: float) -> str:
    """Return the split of a key, by a hash: `dev_fraction` of all keys to dev, as many to test.

    >>> [assign_split(key, 1, 0.0) for key in "abc"]
    ['train', 'train', 'train']
    """
    position = crc32(f"{seed} {key}".encode()) / 2**32
    if position < dev_fraction:
        return "dev"
    return "test" if position < 2 * dev_fraction else "train"


def _validate(count: int, dev_fraction: float) -> None:
    if not 0 <= count <= MAX_COUNT:
        reason = message(
            "count={count} is not between 0 and {max_count}", count=count, max_count=MAX_COUNT
        )
        raise InputError(reason, hint=message("choose at most {max_count}", max_count=MAX_COUNT))
    if not 0.0 <= dev_fraction <= 0.4:
        reason = message(
            "dev_fraction={dev_fraction} is not between 0 and 0.4 (dev and test have it each)",
            dev_fraction=dev_fraction,
        )
        raise ConfigError(reason, hint="choose e.g. 0.05")
