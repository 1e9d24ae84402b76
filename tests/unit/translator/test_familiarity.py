from __future__ import annotations

import json

import numpy as np
import pytest

from attendo.text.tokenizer import END_ID, UNK_ID
from attendo.translator.familiarity import Familiarity, Unfamiliarity, check_familiarity

COUNTS = np.array([0, 7, 0, 100, 1, 2, 1000, 50_000, 3_000_000_000, 0])
A, B, COMMON, NEVER = 4, 5, 7, 9


def fit(texts=("ab",) * 100, ids=((COMMON, COMMON, END_ID),) * 100):
    return Familiarity.fit(COUNTS, texts, ids)


def test_counts_come_back_from_json_within_five_percent():
    stored = Familiarity(**json.loads(json.dumps(fit().model_dump(mode="json"))))
    seen = COUNTS > 0
    seen[[UNK_ID, END_ID]] = False
    assert stored.counts[seen] == pytest.approx(COUNTS[seen], rel=0.05)
    assert not stored.counts[~seen].any()


def test_tokens_that_never_occurred_are_counted():
    assert fit().check("ab", [COMMON, COMMON, END_ID]) is None
    found = fit().check("abc", [COMMON, NEVER, UNK_ID, END_ID])
    assert (found.num_tokens, found.num_unseen) == (3, 2)
    assert any("2 of 3" in reason for reason in found.reasons)


def test_more_bits_per_character_than_dev_are_unfamiliar():
    limit = fit().max_bits_per_character
    bits = -np.log2((COUNTS[COMMON] + 1) / (COUNTS.sum() - 107 + len(COUNTS)))
    assert limit == pytest.approx(bits, rel=0.02)  # two tokens, two characters
    assert fit().check("a b", [COMMON, COMMON, END_ID]) is None  # a space is no character
    found = fit().check("ab", [A, B, END_ID])
    assert (found.num_unseen, found.max_bits_per_character) == (0, limit)
    assert found.bits_per_character > limit
    assert len(found.reasons) == 1
    assert fit().check("abcdefghi", [A, B, END_ID]) is None  # long pieces: familiar words


def test_the_limit_is_that_of_99_percent_of_dev():
    ids = [(COMMON, END_ID)] * 980 + [(A, END_ID)] * 20
    assert Familiarity.fit(COUNTS, ["a"] * 1000, ids).check("a", [A, END_ID]) is None
    ids = [(COMMON, END_ID)] * 995 + [(A, END_ID)] * 5
    assert Familiarity.fit(COUNTS, ["a"] * 1000, ids).check("a", [A, END_ID]) is not None


def test_a_small_dev_set_gives_no_limit():
    small = fit(("ab",) * 99, ((COMMON, END_ID),) * 99)
    assert small.max_bits_per_character is None
    assert small.check("ab", [A, END_ID]) is None
    assert small.check("ab", [NEVER, END_ID]).num_unseen == 1


def test_without_counts_only_unknown_tokens_are_unfamiliar():
    assert check_familiarity(None, "ab", [NEVER, END_ID]) is None
    found = check_familiarity(None, "ab", [NEVER, UNK_ID, END_ID])
    assert (found.num_tokens, found.num_unseen, found.has_counts) == (2, 1, False)
    assert len(found.reasons) == 1


def test_a_text_adds_up_its_unfamiliar_segments():
    parts = [
        Unfamiliarity(5, 2),
        None,
        Unfamiliarity(3, 0, 9.0, 8.0),
        Unfamiliarity(4, 1, 8.5, 8.0),
    ]
    assert Unfamiliarity.join(parts) == Unfamiliarity(12, 3, 9.0, 8.0)
    assert Unfamiliarity.join([None, None]) is None


def test_an_empty_text_is_familiar():
    assert fit().check("", [END_ID]) is None
