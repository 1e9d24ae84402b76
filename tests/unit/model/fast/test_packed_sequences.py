"""Packed rows: the same model, without padding."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attendo import Transformer
from attendo.model.attention import MultiHeadAttention
from attendo.model.fast.packed_attention import packed_attention
from attendo.model.fast.packed_sequences import PackedMask, Packing
from attendo.model.masks import causal_mask, padding_mask

LENGTHS = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=6)


def pack(*lengths: int, longest: int | None = None) -> Packing:
    return Packing.from_lengths(torch.tensor(lengths), max_seqlen=longest)


def pad(rows: list[torch.Tensor]) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)


def test_sentences_spread_and_join():
    packing = pack(2, 0, 3, longest=4)
    ids = torch.arange(1.0, 6.0)
    rows = packing.to_padded(ids)
    assert rows.tolist() == [[1, 2, 0, 0], [0, 0, 0, 0], [3, 4, 5, 0]]
    assert packing.to_packed(rows).tolist() == ids.tolist()
    assert packing.padding_mask()[:, 0].int().sum(1).tolist() == [2, 0, 3]


@given(lengths=LENGTHS, is_causal=st.booleans(), seed=st.integers(0, 99))
def test_attention_stays_within_each_sentence(lengths, is_causal, seed):
    generator = torch.Generator().manual_seed(seed)
    draw = lambda count: torch.randn(count, 2, 4, generator=generator, dtype=torch.float64)  # noqa: E731
    queries = [src for src, _ in lengths]
    keys = queries if is_causal else [tgt for _, tgt in lengths]
    query, key, value = draw(sum(queries)), draw(sum(keys)), draw(sum(keys))
    mask = PackedMask(pack(*queries), pack(*keys), is_causal)
    found = packed_attention(query, key, value, mask).split(queries)
    for q, k, v, ours in zip(
        query.split(queries), key.split(keys), value.split(keys), found, strict=True
    ):
        scores = torch.einsum("qhd,khd->hqk", q, k) / 2.0
        if is_causal:
            scores = scores.masked_fill(~causal_mask(len(q)), -torch.inf)
        expected = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)
        torch.testing.assert_close(ours, expected)


def test_a_sentence_without_keys_attends_to_nothing():
    draw = torch.randn(3, 1, 4)
    mask = PackedMask(pack(2, 1), pack(0, 3))
    found = packed_attention(draw, draw, draw, mask)
    assert found[:2].abs().max() == 0
    assert found[2].abs().max() > 0


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"norm": "pre"},
        {"positions": "learned", "max_length": 16},
        {"positions": "concatenated"},
        {"positions": "none", "bias": False, "scale": False},
        {"d_k": 3, "d_v": 5, "num_decoder_layers": 1},
    ],
)
@settings(max_examples=8, deadline=None)
@given(lengths=LENGTHS)
def test_a_packed_pass_equals_a_padded_one(options, lengths):
    torch.manual_seed(0)
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}
    model = Transformer(30, **{**sizes, **options}).double().eval()
    src, tgt = ([torch.randint(1, 30, (pair[side],)) for pair in lengths] for side in (0, 1))
    padded = model(pad(src), pad(tgt))
    packings = [pack(*map(len, side), longest=12) for side in (src, tgt)]
    states = model.forward_packed(torch.cat(src)[None], torch.cat(tgt)[None], *packings)
    expected = torch.cat([padded[row, : len(ids)] for row, ids in enumerate(tgt)])
    torch.testing.assert_close(model.output(states)[0], expected)


def test_what_cannot_be_packed_reports_it():
    sizes = {"d_model": 8, "d_ff": 8, "num_heads": 1, "num_layers": 1}
    assert Transformer(9, **sizes).supports_packing
    assert not Transformer(9, attention_width=3, **sizes).supports_packing
    assert not Transformer(9, attention_dropout=0.1, **sizes).supports_packing


def test_projections_at_once_are_those_one_by_one():
    torch.manual_seed(0)
    attention = MultiHeadAttention(12, 3, d_k=5, d_v=4)
    x, mask = torch.randn(2, 7, 12), padding_mask(torch.ones(2, 7))
    at_once, _ = attention.train()(x, x, x, mask)
    one_by_one, _ = attention.eval()(x, x, x, mask)
    torch.testing.assert_close(at_once, one_by_one)
