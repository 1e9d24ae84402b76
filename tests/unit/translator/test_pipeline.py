"""Many lines: the same translations as one by one, in order, and nothing is lost by an error."""

from __future__ import annotations

import copy
import pickle
import random
import threading
from contextlib import contextmanager
from itertools import count, islice

import pytest

from attendo.core.errors import ConfigError, InputError
from attendo.translator import Translator, windows
from attendo.translator.backends.base import TranslationItem
from attendo.translator.notes import has_failed
from attendo.translator.pipeline import Pipeline, group_lines
from attendo.translator.windows import split_and_tokenize

WORDS = ("ka", "to", "mi", "re", "so", "lu")


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch):
    monkeypatch.setitem(windows.MAX_WINDOW_LINES, "cpu", 8)


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert not [one for one in threading.enumerate() if one.name == "attendo-stage"]


def make_lines(number: int) -> list[str]:
    draw = random.Random(number)  # noqa: S311 - texts of a test
    return [
        draw.choice(["", "  ", "\t"])
        + draw.choice([" ", ". ", "\n", "! 7 "]).join(draw.choices(WORDS, k=draw.randint(0, 9)))
        + draw.choice(["", ".", "\n", " http://a.kr 12345 😀"])
        for _ in range(number)
    ]


def to_dicts(translations) -> list[dict]:
    return [{**one.to_dict(), "segments": one.segments} for one in translations]


@pytest.mark.parametrize("num_lines", [0, 1, 2, 7, 8, 9, 23, 60])
def test_the_same_as_one_by_one_wherever_windows_end(uppercaser, num_lines):
    uppercaser.max_src_tokens = 9  # long sentences are cut
    lines = make_lines(num_lines)
    alone = to_dicts(uppercaser.translate([line])[0] for line in lines)
    assert to_dicts(uppercaser.translate(lines)) == alone
    assert to_dicts(uppercaser.translate_lines(iter(lines))) == alone
    assert any("pieces" in str(one.get("notes")) for one in alone) or num_lines < 60


@pytest.mark.parametrize(
    "options",
    [{"n_best": 2, "confidence": True}, {"prefix": "RE"}, {"required": ["SO"]}, {"trace": True},
     {"unk": "copy"}, {"split": "never", "copy_spans": "never"}],
)  # fmt: skip
def test_every_option_holds_for_streams(uppercaser, options):
    lines = make_lines(20)
    alone = to_dicts(uppercaser.translate([line], **options)[0] for line in lines)
    assert to_dicts(uppercaser.translate_lines(lines, **options)) == alone
    assert to_dicts(uppercaser.translate(lines, **options)) == alone


def test_a_prefix_for_each_text_meets_its_text(uppercaser):
    prefixes = [word.upper() for word in islice(iter(WORDS * 9), 20)]
    made = uppercaser.translate(["ka to"] * 20, prefix=prefixes)
    assert [one.split()[0] for one in made] == prefixes
    with pytest.raises(InputError, match="19 prefixes for 20 texts"):
        uppercaser.translate(["ka"] * 20, prefix=prefixes[1:])


def test_windows_grow_and_end_early_if_their_lines_are_long(monkeypatch):
    assert [len(one) for one in group_lines(["a"] * 30, 8)] == [1, 2, 4, 8, 8, 7]
    monkeypatch.setattr("attendo.translator.pipeline.MAX_WINDOW_CHARACTERS", 10)
    assert [len(one) for one in group_lines(["a" * 4] * 30, 8)][:5] == [1, 2, 3, 3, 3]


def test_an_endless_stream_is_read_only_as_far_as_necessary(uppercaser):
    read = []

    def endless():
        for number in count():
            read.append(number)
            yield "ka to"

    stream = uppercaser.translate_lines(endless())
    assert list(islice(stream, 10)) == ["KA TO"] * 10
    stream.close()
    assert len(read) < 10 * 8


def test_wrong_arguments_are_reported_before_anything_is_read(uppercaser):
    with pytest.raises(ConfigError, match="did you mean 'beam_size'"):
        uppercaser.translate_lines([], beam_sise=2)
    with pytest.raises(ConfigError, match="did you mean 'never'"):
        uppercaser.translate_lines([], split="nevr")
    with pytest.raises(InputError, match="list of texts"):
        list(uppercaser.translate_lines(["ka", b"to"]))
    with pytest.raises(InputError, match="list of texts"):
        uppercaser.translate_lines("ka")


def test_what_was_read_before_an_error_is_translated(uppercaser):
    def broken():
        yield from ["ka"] * 12
        raise InputError("line 13 is broken")

    stream = uppercaser.translate_lines(broken())
    assert list(islice(stream, 12)) == ["KA"] * 12
    with pytest.raises(InputError, match="line 13 is broken"):
        next(stream)


@pytest.fixture
def fragile(uppercaser, monkeypatch) -> Translator:
    """Fails at the word re."""
    encode = uppercaser.model.encode
    bad = uppercaser.tokenizer.encode_src(["re"])[0][0]

    def fail(src_ids, src_mask=None):
        if bool(src_ids.eq(bad).any()):
            raise RuntimeError("cannot be read\nsecond line")
        return encode(src_ids, src_mask)

    monkeypatch.setattr(uppercaser.model, "encode", fail)
    return uppercaser


def test_an_error_of_the_model_comes_after_the_windows_before_it(fragile):
    stream = fragile.translate_lines(["ka", "to", "to", "mi", "re", *["ka"] * 50])
    assert [next(stream) for _ in range(3)] == ["KA", "TO", "TO"]
    with pytest.raises(RuntimeError, match="cannot be read"):
        next(stream)
    with pytest.raises(RuntimeError, match="cannot be read"):
        fragile.translate(["ka"] * 20 + ["re"])


def test_a_line_that_fails_is_empty_and_explains_why_and_the_others_are_not_lost(fragile):
    lines = ["ka", "re", "to", "", "to mi"] * 4
    made = list(fragile.translate_lines(lines, skip_failed=True))
    assert made == ["KA", "", "TO", "", "TO MI"] * 4
    assert made[1].notes == ["failed: cannot be read"]
    assert has_failed(made[1].notes)
    assert not has_failed([*made[0].notes, "failed: a text of the user"])
    assert not made[1].is_finished
    assert made[0].notes == []


def test_progress_counts_lines(uppercaser, monkeypatch):
    monkeypatch.setattr(uppercaser.backend, "max_batch_tokens", 6)
    reported: list[tuple[int, int]] = []
    list(
        uppercaser.translate_lines(
            ["ka to"] * 20, beam_size=1, progress=lambda *n: reported.append(n)
        )
    )
    assert reported == sorted(reported)
    assert reported[-1] == (20, 20)
    assert len({done for done, _ in reported}) > 4  # also within windows
    reported.clear()
    uppercaser.translate(["ka to"] * 20, progress=lambda *n: reported.append(n))
    assert reported[-1] == (20, 20)
    assert {total for _, total in reported} == {20}


def test_an_error_of_the_consumer_ends_the_threads(uppercaser):
    def write(lines):
        for _ in lines:
            raise OSError(28, "No space left on device")

    pipeline = Pipeline(uppercaser.make_steps(), group_lines(["ka"] * 100, 8))
    stream = pipeline.translations()
    with pytest.raises(OSError, match="No space left"):
        write(stream)
    stream.close()
    assert pipeline.seconds == {}


def test_the_time_of_each_stage_is_known(uppercaser):
    pipeline = Pipeline(uppercaser.make_steps(), group_lines(["ka to"] * 20, 8))
    assert len(list(pipeline.translations())) == 20
    assert set(pipeline.seconds) == {"read", "tokenize", "search", "wait", "detokenize"}
    assert all(value >= 0 for value in pipeline.seconds.values())


class Stream:
    """Decodes `num_slots` items at a time and returns the last one first."""

    def __init__(self, backend, *, num_slots: int, fails_at: int = -1, limit: int = 999) -> None:
        self.backend, self.num_slots, self.limit = backend, num_slots, limit
        self.fails_at, self.waiting, self.num_streams = fails_at, [], 0

    def __len__(self) -> int:
        return len(self.waiting)

    def __getattr__(self, name):
        return getattr(self.backend, name)

    @contextmanager
    def open_stream(self, options, _max_src_length):
        self.num_streams += options.beam_size == 4
        yield self if options.beam_size == 4 else None

    def add(self, ticket, src_ids, options) -> bool:
        if len(src_ids) > self.limit:
            return False
        self.waiting.append((ticket, src_ids, options))
        return True

    def step(self):
        batch, self.waiting = self.waiting[: self.num_slots], self.waiting[self.num_slots :]
        items = [TranslationItem("", ids) for _, ids, _ in batch]
        results = self.backend.search(items, batch[0][2])
        found = [(ticket, one) for (ticket, *_), one in zip(batch, results, strict=True)]
        return [
            (ticket, RuntimeError("out of order") if ticket == self.fails_at else one)
            for ticket, one in reversed(found)
        ]


@pytest.mark.parametrize("num_slots", [1, 3, 100])
def test_a_backend_may_decode_continuously(uppercaser, num_slots):
    lines = make_lines(40) + [""] * 9 + ["ka"]
    alone = to_dicts(uppercaser.translate([line])[0] for line in lines)
    stream = uppercaser.backend = Stream(uppercaser.backend, num_slots=num_slots)
    assert to_dicts(uppercaser.translate_lines(lines)) == alone
    assert stream.num_streams == 1
    list(uppercaser.translate_lines(lines, beam_size=2))
    list(uppercaser.translate_lines(lines, confidence=True))
    assert stream.num_streams == 1


@pytest.mark.parametrize("skip_failed", [False, True])
def test_what_a_stream_cannot_decode_is_decoded_in_batches(uppercaser, caplog, skip_failed):
    lines = make_lines(40)
    expected = list(uppercaser.translate_lines(lines))
    backend = uppercaser.backend
    uppercaser.backend = Stream(backend, num_slots=3, fails_at=30, limit=4)
    assert list(uppercaser.translate_lines(lines, skip_failed=skip_failed)) == expected
    assert "searched again: RuntimeError" in caplog.text


def test_a_window_is_returned_before_the_next_line_arrives(uppercaser):
    """A person who types a line waits for its translation."""
    uppercaser.backend = Stream(uppercaser.backend, num_slots=2)
    seen: list[str] = []

    def type_lines():
        for number, line in enumerate(["ka", "", "ka to mi"]):
            assert len(seen) == number
            yield [line]

    windows = type_lines()
    lock = threading.Semaphore(1)

    def wait_and_read():
        while True:
            lock.acquire()
            window = next(windows, None)
            if window is None:
                return
            yield window

    pipeline = Pipeline(uppercaser.make_steps(), wait_and_read())
    for translations in pipeline.run():
        seen.extend(map(str, translations))
        lock.release()
    assert seen == ["KA", "", "KA TO MI"]


def test_a_copied_or_pickled_translation_is_complete(uppercaser):
    (made,) = uppercaser.translate(["ka to"], n_best=2)
    stored = pickle.dumps(made)
    assert len(stored) < 2000  # without the tokenizer
    for other in (pickle.loads(stored), copy.copy(made), copy.deepcopy(made)):  # noqa: S301 - ours
        assert other == made
        assert other.to_dict() == made.to_dict()
        assert other.segments == made.segments
        assert other.alternatives[0].tokens == made.alternatives[0].tokens


def test_texts_are_split_as_one_by_one(uppercaser):
    uppercaser.max_src_tokens = 6
    texts = [*make_lines(60), "ka " * 500, "http://a.kr/" + "ka " * 30, "가" * 50, "x" * 5000]
    for split in ("auto", "sentences", "never"):
        for keep in (False, True):
            documents, ids = split_and_tokenize(uppercaser, texts, split, keep_spans=keep)
            assert documents == [
                uppercaser.split_text(one, split, keep_spans=keep) for one in texts
            ]
            assert ids == uppercaser.tokenizer.encode_src(
                [source for document in documents for source in document.segments]
            )
