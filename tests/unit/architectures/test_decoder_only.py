"""One sequence from left to right, held against GPT-2 of another library and against itself."""

from __future__ import annotations

from math import sqrt

import pytest
import torch

from attendo.architectures.decoder_only import DecoderOnly
from attendo.core.errors import ConfigError, InputError

VOCAB, START, END = 23, 2, 3
SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 3}


def make(**options) -> DecoderOnly:
    torch.manual_seed(5)
    return DecoderOnly(**{"vocab_size": VOCAB, **SIZES, **options}).eval()


@pytest.fixture(
    params=[
        {},
        {"norm": "post", "activation": "relu"},
        {"positions": "learned", "max_length": 12},
        {"positions": "concatenated", "bias": False},
        {"tie_embeddings": "none", "tgt_vocab_size": VOCAB},
    ],
    ids=["gpt", "post-norm", "learned", "concatenated", "untied"],
)
def model(request) -> DecoderOnly:
    return make(**request.param)


def test_the_defaults_have_the_size_of_gpt_2():
    with torch.device("meta"):
        model = DecoderOnly(vocab_size=50257, positions="learned")
    assert model.num_parameters() == 124_439_808  # as published for the smallest GPT-2


def test_a_language_model_equals_gpt_2_of_another_library():
    transformers = pytest.importorskip("transformers")
    ours = make(positions="learned", max_length=12)
    theirs = transformers.GPT2LMHeadModel(
        transformers.GPT2Config(
            vocab_size=VOCAB,
            n_positions=12,
            n_embd=16,
            n_inner=32,
            n_head=4,
            n_layer=3,
            activation_function="gelu",
            tie_word_embeddings=False,
            attn_implementation="eager",
            bos_token_id=START,
            eos_token_id=END,
        )
    ).eval()
    with torch.no_grad():
        _copy(ours, theirs)
        ids = torch.tensor([[END, START, 7, 8, 9, 10], [END, START, 9, 9, 4, 22]])
        expected = theirs(ids).logits[:, 1:]
        printed = ours(ids[:, :1], ids[:, 1:])
    torch.testing.assert_close(printed, expected, rtol=0, atol=2e-5)


def _copy(ours: DecoderOnly, theirs) -> None:
    """Fill GPT-2, whose embeddings are not scaled and whose matrices lie transposed."""
    body = theirs.transformer
    body.wte.weight.copy_(ours.src_embedding.weight * sqrt(16))
    body.wpe.weight.copy_(ours.src_positions.weight)
    theirs.lm_head.weight.copy_(ours.output.weight)
    body.ln_f.load_state_dict(ours.stack.final_norm.state_dict())
    for own, block in zip(ours.layers, body.h, strict=True):
        attention, inner = own.self_attention, own.feed_forward
        parts = (attention.query, attention.key, attention.value)
        block.attn.c_attn.weight.copy_(torch.cat([part.weight for part in parts]).t())
        block.attn.c_attn.bias.copy_(torch.cat([part.bias for part in parts]))
        pairs = (
            (block.attn.c_proj, attention.output),
            (block.mlp.c_fc, inner.inner),
            (block.mlp.c_proj, inner.outer),
        )
        for there, here in pairs:
            there.weight.copy_(here.weight.t())
            there.bias.copy_(here.bias)
        block.ln_1.load_state_dict(own.self_add.norm.state_dict())
        block.ln_2.load_state_dict(own.feed_forward_add.norm.state_dict())


def test_source_and_target_are_one_sequence_wherever_it_is_cut():
    model = make()
    ids = torch.tensor([[4, 5, 6, END, START, 7, 8]])
    whole = model(ids[:, :1], ids[:, 1:])
    for cut in range(2, 7):
        parted = model(ids[:, :cut], ids[:, cut:])
        torch.testing.assert_close(parted, whole[:, cut - 1 :], rtol=0, atol=1e-5)


def test_steps_equal_the_whole_pass(model):
    src_ids = torch.tensor([[4, 5, END, 0], [6, 7, 8, END], [END, 0, 0, 0]])
    tgt_ids = torch.tensor([[START, 9, 10, 11, 12]]).expand(3, -1)
    logits, state = model(src_ids, tgt_ids), model.start(model.encode(src_ids))
    for position, ids in enumerate(tgt_ids.t()):
        stepped, state = model.step(ids, state)
        torch.testing.assert_close(stepped, logits[:, position], rtol=0, atol=1e-5)


def test_a_batch_of_different_lengths_equals_single_sentences(model):
    sources = [[4, 5, END], [6, END], [7, 8, 9, 10, END]]
    targets = [[START, 11], [START, 12, 13, 14], [START]]
    src_ids, tgt_ids = (_pad(rows) for rows in (sources, targets))
    together = model(src_ids, tgt_ids)
    for row, (source, target) in enumerate(zip(sources, targets, strict=True)):
        alone = model(torch.tensor([source]), torch.tensor([target]))
        torch.testing.assert_close(alone[0], together[row, : len(target)], rtol=0, atol=1e-5)


def test_padding_before_and_within_a_source_has_no_position_either(model):
    tgt_ids = torch.tensor([[START, 9, 10]])
    plain = model(torch.tensor([[4, 5, END]]), tgt_ids)
    parted = model(torch.tensor([[0, 4, 0, 0, 5, END]]), tgt_ids)
    torch.testing.assert_close(parted, plain, rtol=0, atol=1e-5)


def _pad(rows: list[list[int]]) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[0] * (longest - len(row))] for row in rows])


def test_no_gradient_comes_from_the_future():
    model = make(tie_embeddings="none", dropout=0.0)
    src_ids, tgt_ids = torch.tensor([[4, 5]]), torch.tensor([[6, 7, 8, 9]])  # each id once
    for position in range(4):
        model.zero_grad()
        model(src_ids, tgt_ids)[0, position].square().sum().backward()
        reached = model.tgt_embedding.weight.grad.abs().sum(-1)
        assert [bool(reached[number] > 0) for number in (6, 7, 8, 9)] == [
            other <= position for other in range(4)
        ]
        assert bool((model.src_embedding.weight.grad[4:6].abs().sum(-1) > 0).all())


def test_the_source_is_read_from_left_to_right_too():
    model = make()
    src_ids = torch.tensor([[4, 5, 6]])
    early = model.encode(src_ids).states[:, :2]
    changed = model.encode(torch.tensor([[4, 5, 9]])).states[:, :2]
    torch.testing.assert_close(early, changed, rtol=0, atol=1e-6)
    (first, *_) = model.explain(src_ids, torch.tensor([[START]])).encoder_self
    assert bool((first.triu(1) == 0).all())


def test_the_two_parts_of_a_row_sum_to_one_together():
    model = make()
    reported = model.explain(torch.tensor([[4, 5, END, 0]]), torch.tensor([[START, 7, 8]]))
    assert len(reported.cross) == len(reported.decoder_self) == len(reported.encoder_self) == 3
    for cross, own in zip(reported.cross, reported.decoder_self, strict=True):
        assert cross.shape == (1, 4, 3, 4)
        torch.testing.assert_close(cross.sum(-1) + own.sum(-1), torch.ones(1, 4, 3))
        assert bool((cross[..., 3] == 0).all())
        assert bool((own.triu(1) == 0).all())


def test_learned_positions_end_and_padding_uses_none_of_them():
    model = make(positions="learned", max_length=8)
    with pytest.raises(InputError, match="9 positions is longer than the 8 learned"):
        model(torch.full((1, 4), 5), torch.full((1, 5), 6))
    sources, targets = [[5] * 6, [5]], [[6, 7], [6] * 7]  # 13 columns, and no row above 8
    assert model(_pad(sources), _pad(targets)).isfinite().all()
    state = model.start(model.encode(torch.full((1, 7), 5)))
    _, state = model.step(torch.tensor([6]), state)
    with pytest.raises(InputError, match="9 positions"):
        model.step(torch.tensor([6]), state)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_heads": 5}, "d_model 16 cannot be split over num_heads 5"),
        ({"num_decoder_layers": 2}, "unknown key 'num_decoder_layers'"),
        ({"tgt_vocab_size": 9}, "needs one vocabulary"),
        ({"dropout": 1.5}, "dropout = 1.5"),
    ],
)
def test_wrong_options_are_named(options, words):
    with pytest.raises(ConfigError, match=words):
        make(**options)


def test_wrong_ids_and_masks_are_rejected():
    model, good = make(), torch.tensor([[4, 5]])
    with pytest.raises(InputError, match="src_ids holds id 23"):
        model(torch.tensor([[VOCAB]]), good)
    with pytest.raises(InputError, match="tgt_ids has type"):
        model(good, torch.ones(1, 2))
    with pytest.raises(InputError, match="src_mask has type"):
        model(good, good, src_mask=torch.ones(1, 1, 2, dtype=torch.long))
    with pytest.raises(InputError, match="ids has shape"):
        model.step(good, model.start(model.encode(good)))
