"""What must hold of the whole machine, whatever its options."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given

from attendo import Transformer
from attendo.core.errors import ConfigError, InputError
from attendo.model.masks import padding_mask

VOCAB = 23
OPTIONS = [
    {},
    {"norm": "pre"},
    {"positions": "learned", "max_length": 40},
    {"positions": "concatenated"},
    {"positions": "none"},
    {"position_layout": "halves", "activation": "gelu"},
    {"d_k": 3, "d_v": 5, "bias": False},
    {"attention_width": 3},
    {"scale": False},
    # One layer: through two without a way around, an untrained model hears nothing of the target.
    {"residual": False, "num_layers": 1},
    {"residual": False, "num_layers": 1, "scale": False, "norm": "pre"},
    {"tgt_vocab_size": 29, "tie_embeddings": "decoder"},
    {"tie_embeddings": "none", "num_decoder_layers": 1},
    {"pad_id": 3},
]
any_options = pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: "-".join(options) or "paper"
)


def draw_ids(batch: int, length: int, pad_id: int = 0) -> torch.Tensor:
    ids = torch.randint(0, VOCAB - 1, (batch, length))
    return ids + (ids >= pad_id)  # never the padding


@any_options
def test_a_future_target_token_changes_no_earlier_logit(make_model, options):
    model = make_model(**options)
    pad_id = options.get("pad_id", 0)
    src_ids, tgt_ids = draw_ids(2, 6, pad_id), draw_ids(2, 8, pad_id)
    logits = model(src_ids, tgt_ids)
    for position in range(1, 8):
        changed = tgt_ids.clone()
        changed[:, position] = (tgt_ids[:, position] - pad_id) % (VOCAB - 1) + pad_id + 1
        changed %= VOCAB
        changed[changed == pad_id] = (pad_id + 5) % VOCAB
        if torch.equal(changed, tgt_ids):
            continue
        other = model(src_ids, changed)
        torch.testing.assert_close(other[:, :position], logits[:, :position], rtol=0, atol=1e-6)
        assert not torch.allclose(other[:, position], logits[:, position], atol=1e-4)


@any_options
def test_more_padding_changes_no_real_position(make_model, options):
    model = make_model(**options)
    pad_id = options.get("pad_id", 0)
    src_ids, tgt_ids = draw_ids(2, 6, pad_id), draw_ids(2, 5, pad_id)
    logits = model(src_ids, tgt_ids)
    padded = model(
        torch.nn.functional.pad(src_ids, (0, 7), value=pad_id),
        torch.nn.functional.pad(tgt_ids, (0, 4), value=pad_id),
    )
    torch.testing.assert_close(padded[:, :5], logits, rtol=0, atol=1e-5)


@any_options
def test_a_batch_of_mixed_lengths_equals_the_single_runs(make_model, options):
    model = make_model(**options)
    pad_id = options.get("pad_id", 0)
    src_ids, tgt_ids = draw_ids(3, 9, pad_id), draw_ids(3, 7, pad_id)
    lengths = [(9, 2), (4, 7), (1, 1)]
    for row, (src_length, tgt_length) in enumerate(lengths):
        src_ids[row, src_length:] = pad_id
        tgt_ids[row, tgt_length:] = pad_id
    together = model(src_ids, tgt_ids)
    for row, (src_length, tgt_length) in enumerate(lengths):
        alone = model(src_ids[row : row + 1, :src_length], tgt_ids[row : row + 1, :tgt_length])
        torch.testing.assert_close(together[row, :tgt_length], alone[0], rtol=0, atol=1e-5)


@any_options
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_cached_steps_equal_the_full_pass_at_every_position(make_model, options, dtype):
    model = make_model(dtype, **options)
    pad_id = options.get("pad_id", 0)
    src_ids, tgt_ids = draw_ids(3, 6, pad_id), draw_ids(3, 10, pad_id)
    src_ids[1, 4:] = pad_id
    tolerance = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 0.08}[dtype]
    with torch.inference_mode():
        logits = model(src_ids, tgt_ids)
        state = model.start(model.encode(src_ids))
        for position in range(10):
            stepped, state = model.step(tgt_ids[:, position], state)
            torch.testing.assert_close(stepped, logits[:, position], rtol=0, atol=tolerance)


@any_options
def test_cached_steps_equal_the_full_pass_after_beams_are_reordered(make_model, options):
    model = make_model(**options)
    pad_id = options.get("pad_id", 0)
    src_ids = draw_ids(2, 6, pad_id)
    src_ids[1, 3:] = pad_id
    rows = torch.tensor([0, 0, 0, 1, 1, 1])  # each sentence thrice: N = B x beam
    history = torch.empty(6, 0, dtype=torch.long)
    with torch.inference_mode():
        state = model.reorder(model.start(model.encode(src_ids)), rows)
        for _ in range(6):
            ids = draw_ids(6, 1, pad_id)[:, 0]
            history = torch.cat((history, ids[:, None]), dim=1)
            before = state
            stepped, state = model.step(ids, state)
            full = model(src_ids[rows], history)[:, -1]
            torch.testing.assert_close(stepped, full, rtol=0, atol=1e-5)
            again, _ = model.step(ids, before)  # an old state stays good
            assert torch.equal(again, stepped)
            chosen = torch.cat((torch.randint(0, 3, (3,)), torch.randint(3, 6, (3,))))
            state, history, rows = model.reorder(state, chosen), history[chosen], rows[chosen]


@any_options
def test_explain_gives_every_head_of_every_layer(make_model, options):
    model = make_model(**options)
    pad_id = options.get("pad_id", 0)
    src_ids, tgt_ids = draw_ids(2, 6, pad_id), draw_ids(2, 5, pad_id)
    src_ids[1, 4:] = pad_id
    tgt_ids[1, 3:] = pad_id
    before = {name: dict(vars(module)) for name, module in model.named_modules()}
    explanation = model.explain(src_ids, tgt_ids)
    num_layers = options.get("num_layers", 2)
    num_decoder_layers = options.get("num_decoder_layers", num_layers)
    assert [w.shape for w in explanation.encoder_self] == [(2, 4, 6, 6)] * num_layers
    assert [w.shape for w in explanation.decoder_self] == [(2, 4, 5, 5)] * num_decoder_layers
    assert [w.shape for w in explanation.cross] == [(2, 4, 5, 6)] * num_decoder_layers
    torch.testing.assert_close(explanation.logits, model(src_ids, tgt_ids), rtol=0, atol=1e-5)
    for kind in ("encoder_self", "decoder_self", "cross"):
        for weights in explanation[kind]:
            real = tgt_ids.ne(pad_id) if kind != "encoder_self" else src_ids.ne(pad_id)
            sums = weights.sum(-1).transpose(1, 2)[real]
            torch.testing.assert_close(sums, torch.ones_like(sums))
    after = {name: dict(vars(module)) for name, module in model.named_modules()}
    assert [set(module) for module in after.values()] == [set(module) for module in before.values()]


def test_without_positions_the_encoder_is_equivariant_to_permutation(make_model):
    src_ids = draw_ids(2, 7)
    order = torch.randperm(7)
    assert not torch.equal(order, torch.arange(7))
    blind, seeing = make_model(positions="none"), make_model()
    torch.testing.assert_close(
        blind.encode(src_ids[:, order]).states,
        blind.encode(src_ids).states[:, order],
        rtol=0,
        atol=1e-5,
    )
    for positions in ({}, {"positions": "learned"}, {"positions": "concatenated"}):
        seeing = make_model(**positions)
        permuted, straight = seeing.encode(src_ids[:, order]), seeing.encode(src_ids)
        assert not torch.allclose(permuted.states, straight.states[:, order], atol=1e-2)


def test_prince_and_princess_need_positions(make_model):
    """왕자는 공주를 구했다 and 공주는 왕자를 구했다 hold the same pieces, in another order."""
    prince, topic, princess, objective, saved = 4, 5, 6, 7, 8
    first = torch.tensor([[prince, topic, princess, objective, saved]])
    second = torch.tensor([[princess, topic, prince, objective, saved]])
    verb = 4
    blind, seeing = make_model(positions="none"), make_model()
    torch.testing.assert_close(
        blind.encode(first).states[:, verb], blind.encode(second).states[:, verb], rtol=0, atol=1e-5
    )
    assert not torch.allclose(
        seeing.encode(first).states[:, verb], seeing.encode(second).states[:, verb], atol=1e-2
    )


def test_positions_beyond_any_training_length_work(make_model):
    model = make_model()
    src_ids, tgt_ids = draw_ids(1, 3000), draw_ids(1, 50)
    with torch.inference_mode():
        logits = model(src_ids, tgt_ids)
    assert bool(logits.isfinite().all())


def test_a_source_of_nothing_but_padding_gives_no_nan(make_model):
    model = make_model()
    src_ids = torch.zeros(2, 4, dtype=torch.long)
    src_ids[0] = 5
    logits = model(src_ids, draw_ids(2, 3))
    logits.sum().backward()
    assert bool(logits.isfinite().all())
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters())


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_restricted_attention_sees_only_its_neighborhood(make_model, width):
    explanation = make_model(attention_width=width).explain(draw_ids(1, 9), draw_ids(1, 9))
    distance = (torch.arange(9)[:, None] - torch.arange(9)[None, :]).abs()
    for weights in (*explanation.encoder_self, *explanation.decoder_self):
        assert bool((weights[..., distance > width // 2] == 0).all())
    for weights in explanation.encoder_self:
        assert bool((weights[..., distance <= width // 2] > 0).all())
    for weights in explanation.cross:
        assert bool((weights > 0).all())


@pytest.mark.parametrize("width", [1, 3, 32, 90])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_restricted_attention_of_long_sequences_is_that_of_the_mask(make_model, width, norm):
    """Long ones go by blocks, `explain` by the mask of all pairs."""
    model = make_model(torch.float64, attention_width=width, norm=norm)
    src_ids, tgt_ids = draw_ids(2, 190), draw_ids(2, 201)
    src_ids[1, 140:] = 0
    tgt_ids[0, 77:] = 0
    logits, explanation = model(src_ids, tgt_ids), model.explain(src_ids, tgt_ids)
    torch.testing.assert_close(logits, explanation.logits, rtol=0, atol=1e-11)
    found = torch.autograd.grad(logits.square().sum(), list(model.parameters()))
    expected = torch.autograd.grad(explanation.logits.square().sum(), list(model.parameters()))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize(
    "options", [{}, {"scale": False}, {"residual": False, "num_layers": 1}], ids=str
)
@pytest.mark.parametrize("width", [1, 2, 33, 80])
def test_restricted_steps_equal_the_full_pass_over_several_blocks(make_model, width, options):
    model = make_model(attention_width=width, **options)
    src_ids, tgt_ids = draw_ids(2, 170), draw_ids(2, 170)
    src_ids[1, 135:] = 0
    with torch.inference_mode():
        logits = model(src_ids, tgt_ids)
        state = model.start(model.encode(src_ids))
        for position in range(170):
            stepped, state = model.step(tgt_ids[:, position], state)
            torch.testing.assert_close(stepped, logits[:, position], rtol=0, atol=1e-5)


def test_restricted_stacks_make_no_matrix_of_all_pairs(make_model, watch_largest):
    model, long_ids, short_ids = make_model(attention_width=32), draw_ids(1, 2048), draw_ids(1, 3)
    for src_ids, tgt_ids in ((long_ids, short_ids), (short_ids, long_ids)):
        with watch_largest() as largest:
            model(src_ids, tgt_ids).sum().backward()
        assert largest.numbers < 2048**2 / 20
    with watch_largest() as largest, torch.inference_mode():
        model.explain(long_ids, short_ids)
    assert largest.numbers == 4 * 2048**2  # four heads: it would have been seen


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("residual", [True, False])
def test_only_residuals_lead_around_dead_sublayers(make_model, norm, residual):
    model = make_model(norm=norm, residual=residual)
    with torch.no_grad():
        for layer in (*model.encoder.layers, *model.decoder.layers):
            for name, parameter in layer.named_parameters():
                if "output" in name or "outer" in name:  # what every sub-layer ends with
                    parameter.zero_()
    src_ids, tgt_ids = draw_ids(2, 6), draw_ids(2, 5)
    tgt_ids[1] = tgt_ids[0] % (VOCAB - 1) + 1  # another token everywhere
    states, logits = model.encode(src_ids).states, model(src_ids, tgt_ids)
    assert torch.equal(states[0], states[1]) is not residual
    assert torch.equal(logits[0], logits[1]) is not residual


@pytest.mark.parametrize("options", [{"scale": False}, {"residual": False}], ids=str)
def test_what_is_off_has_no_parameters_and_changes_the_result(make_model, options):
    model, other = make_model(), make_model(**options)
    other.load_state_dict(model.state_dict())
    src_ids, tgt_ids = draw_ids(2, 6), draw_ids(2, 5)
    assert not torch.allclose(model(src_ids, tgt_ids), other(src_ids, tgt_ids), atol=1e-3)


def test_three_way_tied_embeddings_are_one_matrix(make_model):
    model = make_model()
    assert model.src_embedding.weight is model.tgt_embedding.weight is model.output.weight
    decoder_only = make_model(tie_embeddings="decoder")
    assert decoder_only.tgt_embedding.weight is decoder_only.output.weight
    assert decoder_only.src_embedding.weight is not decoder_only.output.weight
    none = make_model(tie_embeddings="none")
    assert (
        len(
            {
                id(w)
                for w in (none.src_embedding.weight, none.tgt_embedding.weight, none.output.weight)
            }
        )
        == 3
    )
    assert none.num_parameters() - model.num_parameters() == 2 * VOCAB * 16


def test_embeddings_are_scaled(make_model):
    model = make_model()
    ids = torch.tensor([[7]])
    torch.testing.assert_close(
        model.src_embedding(ids)[0, 0], model.src_embedding.weight[7] * 16**0.5
    )


def test_dropout_only_while_training(make_model):
    model = make_model(dropout=0.5)
    src_ids, tgt_ids = draw_ids(1, 5), draw_ids(1, 5)
    assert torch.equal(model(src_ids, tgt_ids), model(src_ids, tgt_ids))
    model.train()
    assert not torch.equal(model(src_ids, tgt_ids), model(src_ids, tgt_ids))


def test_dropout_falls_on_both_sums_of_embedding_and_position(make_model):
    """Section 5.4: with the dropout of every sub-layer off, dropout is left in the two sums."""
    model = make_model(dropout=0.5).train()
    for module in (*model.encoder.modules(), *model.decoder.modules()):
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0
    src_ids, tgt_ids = draw_ids(1, 5), draw_ids(1, 5)
    assert not torch.equal(model.encode(src_ids).states, model.encode(src_ids).states)
    memory = model.encode(src_ids)
    first, second = (model.step(tgt_ids[:, 0], model.start(memory))[0] for _ in range(2))
    assert not torch.equal(first, second)


def test_given_masks_replace_those_read_off_the_ids(make_model):
    model = make_model()
    src_ids, tgt_ids = draw_ids(2, 5), draw_ids(2, 4)
    mask = torch.ones(2, 1, 5, dtype=torch.bool)
    mask[:, :, 3:] = False
    hidden = model(src_ids, tgt_ids, src_mask=mask)
    torch.testing.assert_close(hidden, model(src_ids[:, :3], tgt_ids), rtol=0, atol=1e-5)
    assert torch.equal(
        model(src_ids, tgt_ids, padding_mask(src_ids), padding_mask(tgt_ids)),
        model(src_ids, tgt_ids),
    )


@given(
    norm=st.sampled_from(["post", "pre"]),
    positions=st.sampled_from(["sinusoidal", "learned", "concatenated", "none"]),
    heads=st.sampled_from([1, 2, 4]),
    d_k=st.one_of(st.none(), st.integers(1, 6)),
    layers=st.integers(1, 3),
    sizes=st.tuples(*[st.integers(1, 6)] * 3),
    dtype=st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)
def test_any_shape_trains(norm, positions, heads, d_k, layers, sizes, dtype):
    batch, source, target = sizes
    model = Transformer(
        vocab_size=VOCAB, d_model=8, d_ff=12, num_heads=heads, d_k=d_k, num_layers=layers,
        norm=norm, positions=positions, max_length=6,
    ).to(dtype)  # fmt: skip
    logits = model(
        torch.randint(0, VOCAB, (batch, source)), torch.randint(0, VOCAB, (batch, target))
    )
    assert logits.shape == (batch, target, VOCAB)
    assert logits.dtype == dtype
    torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), torch.ones(batch * target, dtype=torch.long)
    ).backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.isfinite().all()), name


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda m: m(torch.tensor([[23]]), torch.tensor([[1]])),
            r"src_ids holds id 23, outside the vocabulary 0 \.\.\. 22",
        ),
        (lambda m: m(torch.tensor([[1]]), torch.tensor([[-1]])), "tgt_ids holds id -1"),
        (
            lambda m: m(torch.tensor([1]), torch.tensor([[1]])),
            r"src_ids has shape \(1,\), not \(batch, length\)",
        ),
        (lambda m: m(torch.tensor([[1.0]]), torch.tensor([[1]])), "src_ids has type torch.float32"),
        (
            lambda m: m.step(torch.tensor([99]), m.start(m.encode(torch.tensor([[1]])))),
            "ids holds id 99",
        ),
        (
            lambda m: m.step(torch.tensor([[9]]), m.start(m.encode(torch.tensor([[1]])))),
            r"not \(batch,\)",
        ),
        (
            lambda m: m.encode(torch.tensor([[1, 2]]), torch.ones(1, 1, 2)),
            "src_mask has type torch.float32",
        ),
        (
            lambda m: m.encode(torch.tensor([[1, 2]]), torch.ones(1, 1, 3, dtype=torch.bool)),
            "src_mask has shape",
        ),
        (
            lambda m: m.encode(torch.tensor([[1, 2]]), torch.ones(1, 2, 2, dtype=torch.bool)),
            "src_mask has shape",
        ),
    ],
)
def test_bad_input_is_rejected_with_a_hint(make_model, call, words):
    with pytest.raises(InputError, match=words) as caught:
        call(make_model())
    assert caught.value.hint


def test_too_long_for_learned_positions(make_model):
    model = make_model(positions="learned", max_length=4)
    with pytest.raises(InputError, match="longer than the 4 learned"):
        model(draw_ids(1, 5), draw_ids(1, 2))
    state = model.start(model.encode(draw_ids(1, 3)))
    for _ in range(4):
        _, state = model.step(torch.tensor([1]), state)
    with pytest.raises(InputError, match="longer than the 4 learned"):
        model.step(torch.tensor([1]), state)


def test_heads_that_do_not_divide():
    with pytest.raises(ConfigError, match="use num_heads 2 or 4"):
        Transformer(vocab_size=10, d_model=8, num_heads=3)
