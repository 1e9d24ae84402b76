"""The search with slots on a GPU, with its graphs. Skipped by name where there is none."""

from __future__ import annotations

import pytest
import torch

from attendo import Transformer
from attendo.decoding.inflight.decoder import InflightDecoder
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.search import search

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device here")
SYMBOLS = SpecialIds(start_id=2, end_id=3, pad_id=0, unk_id=1)
VOCAB = 5000


@pytest.mark.parametrize("width", [1, 4])
def test_finds_on_the_gpu_what_the_search_finds_on_the_cpu(width):
    torch.manual_seed(4)
    sizes = {"d_model": 64, "d_ff": 128, "num_heads": 4, "num_layers": 2}
    model = Transformer(VOCAB, tie_embeddings="none", **sizes).eval()
    for parameter in model.parameters():
        parameter.data.mul_(2.0)
    chosen = torch.Generator().manual_seed(1)
    sources = [
        torch.randint(4, VOCAB, (1 + 5 * n % 40,), generator=chosen).tolist() for n in range(70)
    ]
    options = DecodingOptions(beam_size=width, max_extra_tokens=9, min_length=2)
    expected = [
        search(model, torch.tensor([ids]), SYMBOLS, options)[0].hypotheses[0].score
        for ids in sources
    ]
    decoder = InflightDecoder.for_model(
        model.cuda(), SYMBOLS, widths=(width,), max_src_length=64, num_slots=20
    )
    assert decoder is not None
    warm_up = decoder.warm_up()
    assert warm_up.num_captures > 10
    found = {}
    for ticket, ids in enumerate(sources):
        assert decoder.add(ticket, ids, options)
        found |= dict(decoder.step())
    while len(decoder):
        found |= dict(decoder.step())
    scores = [found[ticket].hypotheses[0].score for ticket in range(len(sources))]
    assert scores == pytest.approx(expected, abs=1e-3)
    assert decoder.captures.num_captures == warm_up.num_captures
    assert decoder.captures.num_late == 0
