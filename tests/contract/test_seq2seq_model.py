"""The requirements of the protocol, for every model; a new model is a line in MODELS."""

from __future__ import annotations

import pytest
import torch

from attendo import Transformer
from attendo.architectures.conv_s2s import ConvS2S
from attendo.architectures.decoder_only import DecoderOnly
from attendo.architectures.encoder_only import EncoderOnly
from attendo.architectures.rnn_attention import RnnAttention
from attendo.architectures.rnn_seq2seq import RnnSeq2Seq
from attendo.architectures.time_series import SeriesTransformer
from attendo.core.protocols import Memory, Seq2SeqModel
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.scoring import score
from attendo.decoding.search import search
from attendo.decoding.trace import replay

VOCAB = 19


class SeriesOfIds(SeriesTransformer):
    """Reads each id as a row of numbers, and padding as missing ones."""

    def _embed_source(self, ids, mask):
        rows = torch.randn(VOCAB, 3, generator=torch.Generator().manual_seed(1))
        rows[0] = torch.nan
        return super()._embed_source(rows[ids], mask)


MODELS = {
    "transformer": lambda: Transformer(
        vocab_size=VOCAB, d_model=16, d_ff=32, num_heads=2, num_layers=2
    ),
    "transformer restricted": lambda: Transformer(
        vocab_size=VOCAB, d_model=16, d_ff=32, num_heads=2, num_layers=2, attention_width=3
    ),
    "transformer without scale": lambda: Transformer(
        vocab_size=VOCAB, d_model=16, d_ff=32, num_heads=2, num_layers=2, scale=False
    ),
    # One layer: through two without a way around, an untrained model hears nothing of the target.
    "transformer without residuals": lambda: Transformer(
        vocab_size=VOCAB, d_model=16, d_ff=32, num_heads=2, num_layers=1, residual=False
    ),
    "rnn-seq2seq lstm": lambda: RnnSeq2Seq(vocab_size=VOCAB, d_model=16, num_layers=2),
    "rnn-seq2seq gru": lambda: RnnSeq2Seq(vocab_size=VOCAB, d_model=16, cell="gru"),
    "rnn-attention additive": lambda: RnnAttention(vocab_size=VOCAB, d_model=16, num_layers=2),
    "rnn-attention multiplicative": lambda: RnnAttention(
        vocab_size=VOCAB, d_model=16, cell="gru", attention="multiplicative"
    ),
    "rnn-attention input feeding": lambda: RnnAttention(
        vocab_size=VOCAB, d_model=16, num_layers=2, input_feeding=True
    ),
    "conv-s2s": lambda: ConvS2S(vocab_size=VOCAB, d_model=16, num_layers=2),
    "series": lambda: SeriesOfIds(
        vocab_size=VOCAB, num_features=3, d_model=16, d_ff=32, num_heads=2, num_layers=2
    ),
    "decoder": lambda: DecoderOnly(
        vocab_size=VOCAB, d_model=16, d_ff=32, num_heads=2, num_layers=2
    ),
    "decoder post-norm, learned positions": lambda: DecoderOnly(
        vocab_size=VOCAB,
        d_model=16,
        d_ff=32,
        num_heads=2,
        num_layers=2,
        norm="post",
        positions="learned",
        max_length=100,
    ),
    "encoder": lambda: EncoderOnly(
        vocab_size=VOCAB, d_model=16, d_ff=32, num_heads=2, num_layers=2
    ),
    "encoder reading each position": lambda: EncoderOnly(
        vocab_size=VOCAB, d_model=16, d_ff=32, num_heads=2, num_layers=2, reads="each"
    ),
    "encoder of classes": lambda: EncoderOnly(
        vocab_size=VOCAB, d_model=16, d_ff=32, num_heads=2, num_layers=2, tgt_length=1
    ),
    "encoder pre-norm, restricted, with an output of its own": lambda: EncoderOnly(
        vocab_size=VOCAB,
        d_model=16,
        d_ff=32,
        num_heads=2,
        num_layers=2,
        norm="pre",
        attention_width=3,
        tie_embeddings="none",
    ),
}


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]().eval()


@pytest.fixture
def ids():
    src_ids, tgt_ids = torch.randint(1, VOCAB, (3, 6)), torch.randint(1, VOCAB, (3, 5))
    src_ids[1, 4:] = 0
    return src_ids, tgt_ids


def test_keeps_the_protocol(model):
    assert isinstance(model, Seq2SeqModel)


def test_encode_gives_a_memory_with_its_mask(model, ids):
    memory = model.encode(ids[0])
    assert isinstance(memory, Memory)
    assert memory.states.shape[:2] == (3, 6)
    assert torch.equal(memory.mask, ids[0].ne(0)[:, None])


def test_steps_equal_forward(model, ids):
    logits = model(*ids)
    assert logits.shape == (3, 5, VOCAB)
    state = model.start(model.encode(ids[0]))
    for position in range(5):
        stepped, state = model.step(ids[1][:, position], state)
        torch.testing.assert_close(stepped, logits[:, position], rtol=0, atol=1e-5)


def test_reorder_moves_rows(model, ids):
    index = torch.tensor([2, 0, 0, 1])
    state = model.start(model.encode(ids[0]))
    _, state = model.step(ids[1][:, 0], state)
    straight, _ = model.step(ids[1][:, 1], state)
    moved, _ = model.step(ids[1][index, 1], model.reorder(state, index))
    torch.testing.assert_close(moved, straight[index], rtol=0, atol=1e-5)


def test_padding_is_never_read(model, ids):
    src_ids, tgt_ids = ids
    longer = torch.nn.functional.pad(src_ids, (0, 3))
    torch.testing.assert_close(model(longer, tgt_ids), model(*ids), rtol=0, atol=1e-5)


def test_the_future_is_never_read(model, ids):
    src_ids, tgt_ids = ids
    changed = tgt_ids.clone()
    changed[:, 3] = changed[:, 3] % (VOCAB - 1) + 1
    logits, other = model(src_ids, tgt_ids), model(src_ids, changed)
    torch.testing.assert_close(logits[:, :3], other[:, :3], rtol=0, atol=1e-6)
    is_deaf = model.kind == EncoderOnly.kind  # nothing of the target is read at all
    assert torch.allclose(logits[:, 3:], other[:, 3:], atol=1e-4) == is_deaf


def test_explain_agrees_with_forward_and_its_rows_are_distributions(model, ids):
    explanation = model.explain(*ids)
    torch.testing.assert_close(explanation.logits, model(*ids), rtol=0, atol=1e-5)
    own, cross = explanation.decoder_self, explanation.cross
    if model.kind == DecoderOnly.kind:  # one softmax over both: each has a part of the whole
        assert all(bool((weights.sum(-1) < 1).all()) for weights in (*own, *cross))
        own = tuple(torch.cat(pair, dim=-1) for pair in zip(own, cross, strict=True))
        cross = ()
    for weights in (*explanation.encoder_self, *own, *cross):
        real = weights.sum(-1) > 0
        torch.testing.assert_close(weights.sum(-1)[real], torch.ones(int(real.sum())))
    for weights in explanation.cross:
        assert bool((weights[1, :, :, 4:] == 0).all())


def test_gradients_reach_every_parameter(model, ids):
    model(*ids).sum().backward()
    missing = [name for name, p in model.named_parameters() if p.grad is None]
    assert not missing


@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 4, "n_best": 3},
        {"beam_size": 4, "n_best": 4, "num_groups": 2},
        {"do_sample": True, "n_best": 2},
    ],
    ids=["greedy", "beam", "diverse", "sampling"],
)
def test_every_search_returns_the_probabilities_of_the_model(model, ids, options):
    src_ids, symbols = ids[0], SpecialIds(start_id=2, end_id=3, pad_id=0, unk_id=1)
    chosen = DecodingOptions(max_extra_tokens=5, **options)
    found = search(model, src_ids, symbols, chosen, trace=True)
    pairs = [(row, one) for row, each in enumerate(found) for one in each.hypotheses]
    for each in found:
        printed = {tuple(one.ids) for one in each.hypotheses}
        # groups of a diverse beam may come to the same sentence, which is reported once
        fewest = 1 if chosen.num_groups > 1 else chosen.n_best
        assert fewest <= len(each.hypotheses) <= chosen.n_best
        assert chosen.do_sample or len(printed) == len(each.hypotheses)
    rows = torch.tensor([row for row, _ in pairs])
    scored = score(model, src_ids[rows], [one.ids for _, one in pairs], symbols)
    for figures, (_, one) in zip(scored, pairs, strict=True):
        assert not {0, 1, 2, 3} & set(one.ids)
        reported = one.token_log_probs
        assert figures[: len(reported)] == pytest.approx(reported, abs=1e-4)
    for each in found:
        reported = each.trace.to_dict()
        assert replay(reported) == [one.ids for one in each.hypotheses[: reported["n_best"]]]
    (alone,) = search(model, src_ids[1:2, :4], symbols, chosen)
    assert [one.ids for one in alone.hypotheses] == [one.ids for one in found[1].hypotheses]
