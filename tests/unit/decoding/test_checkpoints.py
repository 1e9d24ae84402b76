"""Every kind of search can be paused between its steps, and gives the same as without."""

from __future__ import annotations

import pytest
import torch

from attendo.core.checkpoints import on_checkpoint
from attendo.decoding.beam import beam
from attendo.decoding.greedy import greedy, sample
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.scoring import score
from attendo.decoding.search import search
from attendo.decoding.streaming import GreedyStream

SPECIAL_IDS = SpecialIds(2, 3, 0, 1)
SEARCHES = {
    "beam": lambda model, src: beam(model, src, SPECIAL_IDS, DecodingOptions(beam_size=3)),
    "static": lambda model, src: search(model, src, SPECIAL_IDS, DecodingOptions(beam_size=3)),
    "greedy": lambda model, src: greedy(model, src, SPECIAL_IDS, DecodingOptions(beam_size=1)),
    "sample": lambda model, src: sample(
        model, src, SPECIAL_IDS, DecodingOptions(do_sample=True, seed=1)
    ),
    "score": lambda model, src: score(model, src, [[5, 6], [7]], SPECIAL_IDS),
    "stream": lambda model, src: list(GreedyStream(model, src[:1], SPECIAL_IDS)),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_in_between_changes_nothing(name, make_model, make_ids) -> None:
    model, src = make_model(), make_ids(2, 5)
    expected = SEARCHES[name](model, src)
    count = 0

    def search_another() -> None:
        nonlocal count
        count += 1
        with on_checkpoint(None), torch.inference_mode(False):
            SEARCHES["beam"](model, make_ids(1, 3))

    with on_checkpoint(search_another):
        assert SEARCHES[name](model, src) == expected
    assert count >= (1 if name == "score" else 2)
