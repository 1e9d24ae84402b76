"""Detects sides that do not belong together: shifted by some lines from a line on, or shuffled.

Lines that translate each other have similar relative lengths, similar punctuation, and share
numbers, names and cognates. Within a window of consecutive lines, each source line ranks the target
lines by this similarity. If the sides belong together, the target line with the same number ranks
high; if they are shifted by `k` lines, the one `k` lines later does. The mean rank of each shift
becomes a z-score, which is 0 on average for lines that have nothing to do with each other.

Memory is bounded: at most `MAX_WINDOWS` windows are scored, evenly spread over the corpus, and only
their scores are kept. The first line of a shift is found in a second reading of that part.
"""

from __future__ import annotations

import math
import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from attendo.data.corpus_config import Pair

    Floats = NDArray[np.float64]

WINDOW_LINES, MIN_WINDOW_LINES = 100, 40
MAX_SHIFT = 5
SHIFTS = tuple(range(-MAX_SHIFT, MAX_SHIFT + 1))
MAX_WINDOWS = 256
"""With more windows than this, every second one is dropped, and the stride is doubled."""
TOKEN = re.compile(r"\d+|[^\W\d_]+")
PUNCTUATION_KINDS = (
    "?？؟;",
    "!！",
    ",，、،",
    ":：",
    "(（[",
    "\"'“”„«»「」",
    "0123456789",
    "%<>=/_`@#*&$~",
)
PUNCTUATION = re.compile(f"[{re.escape(''.join(PUNCTUATION_KINDS))}]")
PUNCTUATION_COLUMNS = {sign: row for row, kind in enumerate(PUNCTUATION_KINDS) for sign in kind}
MAX_PUNCTUATION = 3
PREFIX_LENGTH = 4
"""Words are compared by their first letters: "doctor" and "docteur" are cognates."""
NUM_BUCKETS = 256
MAX_CHARACTERS = 400
"""The rest of a line is not compared, apart from its length."""
PUNCTUATION_WEIGHT, TOKEN_WEIGHT = 0.4, 0.3

MIN_SIGNIFICANCE = 6.0
"""Standard deviations by which a shift must explain a segment better than no shift."""
MIN_SHIFT_SCORE = 2.0
"""Mean z-score of a shift in such a segment."""
MIN_UNRELATED_WINDOWS = 5
FEW_UNRELATED_WINDOWS, STRONG_SCORE, UNRELATED_SHARE = 3, 8.0, 0.2
"""If the typical score is this high, few windows are enough, with a small share of that score."""
UNRELATED_SCORE = 0.7
"""Mean z-score below which a segment has no related lines; translations have 4 to 15."""
SHUFFLED_SCORE, RELATED_SCORE = 1.5, 2.5
"""Mean z-scores below which a corpus may be shuffled, and above which its lines are related."""
MIN_LENGTH_DEVIATION = 0.2
"""Standard deviation of log lengths from which lengths say something."""
MIN_DISTINCT_SHARE = 0.3
"""Targets that repeat more than this are labels, not translations."""


class Misalignment(NamedTuple):
    """A segment whose lines do not belong together."""

    first_line: int
    """Its first line, counted from 1."""
    last_line: int | None
    """Its last line, approximately; None if it reaches to the end."""
    shift: int | None
    """`src[i]` belongs to `tgt[i + shift]`; None if no shift explains the segment."""
    num_lines: int
    """Number of lines of the segment, approximately."""


class _Window(NamedTuple):
    number: int  # from 0
    scores: Floats  # (shifts,)
    has_varied_lengths: bool
    """Without, e.g. in a corpus that is sorted by length, unrelated lines cannot be detected."""


class AlignmentTracker:
    """Scores windows of lines as they stream by."""

    def __init__(self) -> None:
        self.num_lines = 0
        self._windows: list[_Window] = []
        self._stride = 1
        self._buffer: list[Pair] = []
        self._is_sampled = True
        self._num_sampled = self._num_distinct = 0

    def watch(self, pairs: Iterable[Pair]) -> Iterator[Pair]:
        """Yield the pairs, and score their windows."""
        for pair in pairs:
            index, offset = divmod(self.num_lines, WINDOW_LINES)
            if offset == 0:
                self._flush(index - 1)
                self._is_sampled = index % self._stride == 0
            if self._is_sampled:
                self._buffer.append(pair)
            self.num_lines += 1
            yield pair
        self._flush((self.num_lines - 1) // WINDOW_LINES)

    def _flush(self, index: int) -> None:
        pairs, self._buffer = self._buffer, []
        if len(pairs) < MIN_WINDOW_LINES:
            return
        self._num_sampled += len(pairs)
        self._num_distinct += len({pair.tgt for pair in pairs})
        self._windows.append(_score_window(index, pairs))
        if len(self._windows) >= MAX_WINDOWS:
            self._stride *= 2
            self._windows = [one for one in self._windows if one.number % self._stride == 0]

    @property
    def score(self) -> float | None:
        """The mean z-score of the lines as they are; None for less than one window."""
        scores = [window.scores[MAX_SHIFT] for window in self._windows]
        return float(np.mean(scores)) if scores else None

    def find_misalignment(self, reread: Callable[[], Iterable[Pair]]) -> Misalignment | None:
        """Return the first segment that is shifted, or unrelated while the rest is not.

        Args:
            reread: Opens the corpus again, to find the first line of the segment.

        """
        if not self._has_sentences():
            return None
        return self._find_shift(reread) or self._find_unrelated()

    def is_shuffled(self) -> bool:
        """Return whether no line of the corpus is related to the other side."""
        if not self._has_sentences() or not self._has_varied_lengths():
            return False
        mean = self._scores.mean(axis=0)
        noise = 2.0 / math.sqrt(len(self._windows))
        return bool(mean[MAX_SHIFT] + noise < SHUFFLED_SCORE and mean.max() < RELATED_SCORE + noise)

    @property
    def _scores(self) -> Floats:
        return np.stack([window.scores for window in self._windows])  # (windows, shifts)

    def _has_sentences(self) -> bool:
        is_distinct = self._num_distinct >= MIN_DISTINCT_SHARE * self._num_sampled
        return bool(self._windows) and is_distinct

    def _has_varied_lengths(self) -> bool:
        num_varied = sum(window.has_varied_lengths for window in self._windows)
        return 2 * num_varied > len(self._windows)

    def _find_shift(self, reread: Callable[[], Iterable[Pair]]) -> Misalignment | None:
        scores, found = self._scores, []
        for column, shift in enumerate(SHIFTS):
            if shift == 0:
                continue
            gain = scores[:, column] - scores[:, MAX_SHIFT]
            begin, end = max_segment(gain)
            segment = scores[begin:end, column]
            significance = gain[begin:end].sum() / math.sqrt(2 * max(end - begin, 1))
            if significance >= MIN_SIGNIFICANCE and segment.mean() >= MIN_SHIFT_SCORE:
                found.append((begin, end, shift))
        if not found:
            return None
        begin, end, shift = min(found)
        before = self._windows[begin - 1].number if begin else 0
        first = before * WINDOW_LINES
        last = min((self._windows[begin].number + 2) * WINDOW_LINES, self.num_lines)
        pairs = list(islice(reread(), first, last))
        return self._make(first + find_change(pairs, shift), end, shift)

    def _find_unrelated(self) -> Misalignment | None:
        if not self._has_varied_lengths():
            return None
        scores = self._scores[:, MAX_SHIFT]
        typical = float(np.percentile(scores, 90))
        begin, end = max_segment(typical / 2 - scores)
        length = end - begin
        is_strong = typical >= STRONG_SCORE and all(
            window.has_varied_lengths for window in self._windows[begin:end]
        )
        if (
            length < (FEW_UNRELATED_WINDOWS if is_strong else MIN_UNRELATED_WINDOWS)
            or length == len(scores)
            or typical < RELATED_SCORE
            or scores[begin:end].mean()
            > (UNRELATED_SHARE * typical if is_strong else UNRELATED_SCORE)
        ):
            return None
        return self._make(self._windows[begin].number * WINDOW_LINES, end, None)

    def _make(self, first: int, end: int, shift: int | None) -> Misalignment:
        """Return the segment from the line `first` (from 0) to the window before `end`."""
        is_to_end = end == len(self._windows)
        last = self.num_lines if is_to_end else self._windows[end].number * WINDOW_LINES
        return Misalignment(first + 1, None if is_to_end else last, shift, last - first)


class _Features(NamedTuple):
    """What is compared of the lines of one side."""

    lengths: Floats  # (lines,), standardized
    punctuation: Floats  # (lines, kinds)
    tokens: Floats  # (lines, buckets)
    has_varied_lengths: bool


def _score_window(index: int, pairs: Sequence[Pair]) -> _Window:
    """Return the z-score of each shift of `SHIFTS` in a window."""
    src, tgt = (_extract([pair[side] for pair in pairs]) for side in (0, 1))
    rows = np.arange(MAX_SHIFT, len(pairs) - MAX_SHIFT)
    matrix = _compare_all(src, tgt)[rows]  # (rows, lines)
    ranks = []
    for shift in SHIFTS:
        chosen = matrix[np.arange(len(rows)), rows + shift][:, None]
        below, equal = (matrix < chosen).sum(axis=1), (matrix == chosen).sum(axis=1) - 1
        ranks.append((below + 0.5 * equal).mean() / (len(pairs) - 1))
    scores = (np.array(ranks) - 0.5) * math.sqrt(12 * len(rows))
    return _Window(index, scores, src.has_varied_lengths and tgt.has_varied_lengths)


def find_change(pairs: Sequence[Pair], shift: int) -> int:
    """Return the index of the first line that a shift explains better, given lines around it."""
    rows = np.arange(max(0, -shift), len(pairs) - max(0, shift))
    if not len(rows):
        return 0
    src, tgt = (_extract([pair[side] for pair in pairs]) for side in (0, 1))
    gain = _compare(src, tgt, rows, rows + shift) - _compare(src, tgt, rows, rows)
    evidence = np.concatenate([[0.0], np.cumsum(gain)])  # the gain before each line
    return int(rows[0] + min(int(np.argmin(evidence)), len(rows) - 1))


def max_segment(gains: Floats) -> tuple[int, int]:
    """Return begin and end of the segment with the largest sum (Kadane's algorithm).

    >>> max_segment(np.array([1.0, -3.0, 2.0, 2.0, -1.0]))
    (2, 4)
    """
    best, best_sum, begin, total = (0, 0), 0.0, 0, 0.0
    for index, gain in enumerate(gains):
        if total <= 0.0:
            begin, total = index, 0.0
        total += float(gain)
        if total > best_sum:
            best, best_sum = (begin, index + 1), total
    return best


def _extract(texts: Sequence[str]) -> _Features:
    lengths = np.log([len(text) + 1.0 for text in texts])
    deviation = max(float(lengths.std()), MIN_LENGTH_DEVIATION)
    punctuation = np.zeros((len(texts), len(PUNCTUATION_KINDS)))
    tokens = np.zeros((len(texts), NUM_BUCKETS))
    for row, text in enumerate(texts):
        for sign in PUNCTUATION.findall(text, 0, MAX_CHARACTERS):
            punctuation[row, PUNCTUATION_COLUMNS[sign]] += 1.0
        words = TOKEN.findall(text[:MAX_CHARACTERS].casefold())
        tokens[row, [crc32(word[:PREFIX_LENGTH].encode()) % NUM_BUCKETS for word in words]] = 1.0
    np.minimum(punctuation, MAX_PUNCTUATION, out=punctuation)
    frequency = tokens.sum(axis=0)
    tokens *= np.sqrt(np.log(len(texts) / np.maximum(frequency, 1.0)))  # rare tokens count more
    return _Features(
        (lengths - lengths.mean()) / deviation,
        punctuation,
        tokens,
        deviation > MIN_LENGTH_DEVIATION,
    )


def _compare_all(src: _Features, tgt: _Features) -> Floats:
    """Return the similarity of every source line to every target line."""
    lengths = np.abs(src.lengths[:, None] - tgt.lengths)
    punctuation = np.abs(src.punctuation[:, None] - tgt.punctuation).sum(axis=-1)
    tokens = src.tokens @ tgt.tokens.T
    similarity: Floats = TOKEN_WEIGHT * tokens - lengths - PUNCTUATION_WEIGHT * punctuation
    return similarity


def _compare(src: _Features, tgt: _Features, i: NDArray[np.intp], j: NDArray[np.intp]) -> Floats:
    """Return the similarity of single pairs of lines."""
    lengths = np.abs(src.lengths[i] - tgt.lengths[j])
    punctuation = np.abs(src.punctuation[i] - tgt.punctuation[j]).sum(axis=-1)
    tokens = (src.tokens[i] * tgt.tokens[j]).sum(axis=-1)
    similarity: Floats = TOKEN_WEIGHT * tokens - lengths - PUNCTUATION_WEIGHT * punctuation
    return similarity
