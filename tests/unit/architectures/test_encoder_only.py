"""The encoder half alone: what it reads, what it cannot read, and that a class can be learned."""

from __future__ import annotations

import pytest
import torch

from attendo.architectures.encoder_only import EncoderOnly
from attendo.core.errors import ConfigError, InputError
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.scoring import score
from attendo.decoding.search import search
from attendo.model.fast.packed_sequences import Packing

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}
END, START = 3, 2
SYMBOLS = SpecialIds(start_id=START, end_id=END, pad_id=0, unk_id=1)


def make(**options) -> EncoderOnly:
    return EncoderOnly(23, **{**SIZES, **options}).double().eval()


def draw(*lengths: int) -> torch.Tensor:
    """Sources of these lengths, an end symbol last, padded."""
    ids = torch.zeros(len(lengths), max(lengths), dtype=torch.long)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.randint(4, 23, (length,))
        ids[row, length - 1] = END
    return ids


@pytest.mark.parametrize("reads", ["summary", "each"])
def test_a_batch_equals_one_by_one_also_behind_the_end_of_the_source(reads):
    model, src_ids = make(reads=reads), draw(7, 3, 1)
    tgt_ids = torch.full((3, 9), START)
    together = model(src_ids, tgt_ids)
    for row, length in enumerate((7, 3, 1)):
        alone = model(src_ids[row : row + 1, :length], tgt_ids[:1])
        torch.testing.assert_close(together[row : row + 1], alone, rtol=0, atol=1e-12)


def test_each_position_is_read_by_hand():
    """Logits at t are the output projection of the encoder's state at t, the last one for ever."""
    model, src_ids = make(reads="each"), draw(4)
    states = model.encode(src_ids).states[0]
    logits = model(src_ids, torch.full((1, 6), START))[0]
    expected = states[[0, 1, 2, 3, 3, 3]] @ model.src_embedding.weight.T
    torch.testing.assert_close(logits, expected)


def test_a_summary_is_read_at_the_end_symbol_alone():
    model, src_ids = make(), draw(5, 3)
    memory = model.encode(src_ids)
    logits, _ = model.step(torch.tensor([START, START]), model.start(memory))
    others = memory.states.clone()
    others[0, :4], others[1, :2], others[1, 3:] = 7.0, 7.0, 7.0  # all but the two end symbols
    again, _ = model.step(torch.tensor([9, 9]), model.start(memory._replace(states=others)))
    torch.testing.assert_close(again, logits)


def test_every_word_on_both_sides_reaches_the_summary():
    model, src_ids = make(), draw(6)
    before = model(src_ids, torch.full((1, 1), START))
    for index in range(5):
        changed = src_ids.clone()
        changed[0, index] = 4 + (src_ids[0, index] - 3) % 19
        assert not torch.allclose(model(changed, torch.full((1, 1), START)), before, atol=1e-6)


def test_hidden_words_are_read_from_both_sides():
    """No look-ahead mask: what stands behind a position changes its logits."""
    model, src_ids = make(reads="each"), draw(6)
    changed = src_ids.clone()
    changed[0, 4] = 4 + (src_ids[0, 4] - 3) % 19
    tgt_ids = torch.full((1, 6), START)
    differences = (model(src_ids, tgt_ids) - model(changed, tgt_ids)).abs().amax(-1)[0]
    assert bool((differences > 1e-6).all())


@pytest.mark.parametrize("reads", ["summary", "each"])
def test_packed_rows_give_the_same_logits(reads):
    model, lengths = make(reads=reads), torch.tensor([5, 2, 7])
    src_ids, tgt_ids = draw(5, 2, 7), torch.full((3, 3), START)
    padded = model(src_ids, tgt_ids)
    flat = torch.cat([src_ids[row, :length] for row, length in enumerate(lengths)])[None]
    src, tgt = Packing.from_lengths(lengths), Packing.from_lengths(torch.tensor([3, 3, 3]))
    packed = model.output(model.forward_packed(flat, tgt_ids.view(1, -1), src, tgt))
    torch.testing.assert_close(packed.view(3, 3, -1), padded)


def test_a_packed_target_may_leave_indices_out():
    model, lengths = make(reads="each"), torch.tensor([5, 4])
    src_ids = draw(5, 4)
    padded = model(src_ids, torch.full((2, 5), START))
    flat = torch.cat([src_ids[0], src_ids[1, :4]])[None]
    asked = Packing(torch.tensor([0, 2, 3]).int(), torch.tensor([1, 3, 2]), 5)
    packed = model.output(
        model.forward_packed(flat, torch.full((1, 3), START), Packing.from_lengths(lengths), asked)
    )
    expected = torch.stack([padded[0, 1], padded[0, 3], padded[1, 2]])
    torch.testing.assert_close(packed[0], expected)


def test_what_cannot_be_packed_reports_it():
    assert make().supports_packing
    assert not make(attention_width=3).supports_packing
    assert not make(attention_dropout=0.1).supports_packing
    assert not make(tgt_length=1).supports_packing  # what is packed leaves the logits to others


def test_parameters_are_counted_by_hand():
    d, f, v = 16, 32, 23
    layer = 4 * (d * d + d) + (d * f + f) + (f * d + d) + 2 * 2 * d
    assert make(reads="each").num_parameters() == v * d + 2 * layer
    assert make(reads="each", tie_embeddings="none").num_parameters() == 2 * v * d + 2 * layer
    indices = 2 * d * d
    labels = {"tgt_vocab_size": 7, "tie_embeddings": "decoder"}
    assert make(**labels).num_parameters() == v * d + 7 * d + 2 * layer + indices
    assert make(**labels, tgt_length=1).num_parameters() == v * d + 7 * d + 2 * layer


def test_explain_returns_only_the_attention_of_the_encoder():
    model, src_ids = make(), draw(5, 3)
    reported = model.explain(src_ids, torch.full((2, 2), START))
    assert [weights.shape for weights in reported.encoder_self] == [(2, 4, 5, 5)] * 2
    assert reported.decoder_self == ()
    assert reported.cross == ()
    assert bool((reported.encoder_self[0][1, :, :, 3:] == 0).all())


@pytest.mark.parametrize("length", [1, 2])
def test_the_end_comes_where_all_targets_have_theirs(length):
    model, src_ids = make(tgt_length=length), draw(5, 3)
    with torch.no_grad():
        probabilities = model(src_ids, torch.full((2, 4), START)).softmax(-1)
    assert float(probabilities[:, :length, END].max()) < 1e-60
    assert float(probabilities[:, length:, END].min()) == 1
    free = make(reads="summary", tie_embeddings="three-way")
    assert bool((free(src_ids, torch.full((2, 4), START)).softmax(-1)[..., END] > 0).all())


def test_the_end_is_learned_by_default():
    torch.manual_seed(2)
    model = EncoderOnly(20, tgt_vocab_size=7, tie_embeddings="decoder", dropout=0.0, **SIZES)
    train(model, 150)
    src_ids, _ = make_examples(100)
    with torch.no_grad():
        probabilities = model(src_ids, torch.full((100, 2), START)).softmax(-1)
    assert float(probabilities[:, 1, END].min()) > 0.95


@pytest.fixture(scope="module")
def classifier() -> EncoderOnly:
    """Learnt in seconds: 4 where a 10 stands somewhere, 5 where an 11 does, else 6; then END."""
    torch.manual_seed(1)
    model = EncoderOnly(
        20,
        tgt_vocab_size=7,
        tgt_length=1,
        tie_embeddings="decoder",
        dropout=0.0,
        positions="none",
        **SIZES,
    )
    return train(model, 250)


def train(model: EncoderOnly, num_steps: int) -> EncoderOnly:
    optimizer = torch.optim.Adam(model.parameters(), 5e-3)
    for _ in range(num_steps):
        src_ids, classes = make_examples(32)
        labels = torch.stack([classes, torch.full_like(classes, END)], dim=1)
        logits = model(src_ids, torch.full_like(labels, START))
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.eval()


def make_examples(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    src_ids = torch.randint(12, 20, (count, 6))
    src_ids[:, -1] = END
    kinds = torch.randint(0, 3, (count,))
    indices = torch.randint(0, 5, (count,))
    rows = torch.arange(count)
    src_ids[rows, indices] = torch.where(kinds < 2, kinds + 10, src_ids[rows, indices])
    return src_ids, kinds + 4


def test_a_class_is_learned_and_the_end_is_certain_after_it(classifier):
    src_ids, classes = make_examples(200)
    found = search(classifier, src_ids, SYMBOLS, DecodingOptions(beam_size=1, max_extra_tokens=5))
    printed = [one.hypotheses[0].ids for one in found]
    right = sum(ids == [int(label)] for ids, label in zip(printed, classes, strict=True))
    assert right >= 195
    assert all(one.hypotheses[0].is_finished for one in found)
    with torch.no_grad():
        logits = classifier(src_ids, torch.full((200, 4), START))
    assert float(logits[:, 1].softmax(-1)[:, END].min()) == 1


def test_n_best_is_the_classes_in_order_of_their_probability(classifier):
    src_ids, _ = make_examples(20)
    options = DecodingOptions(beam_size=3, n_best=3, max_extra_tokens=5)
    with torch.no_grad():
        probabilities = classifier(src_ids, torch.full((20, 2), START)).softmax(-1)
    for row, found in enumerate(search(classifier, src_ids, SYMBOLS, options)):
        order = (4 + probabilities[row, 0, 4:].argsort(descending=True)).tolist()
        assert [one.ids for one in found.hypotheses] == [[number] for number in order]
        whole = [
            float(probabilities[row, 0, number] * probabilities[row, 1, END]) for number in order
        ]
        reported = [one.log_prob for one in found.hypotheses]
        assert torch.tensor(reported).exp().tolist() == pytest.approx(whole, rel=1e-3, abs=1e-6)
        scored = score(
            classifier, src_ids[row : row + 1].expand(3, -1), [[n] for n in order], SYMBOLS
        )
        assert [sum(figures) for figures in scored] == pytest.approx(reported, abs=1e-3)


def test_wrong_settings_and_ids_are_rejected():
    with pytest.raises(ConfigError, match="num_heads"):
        EncoderOnly(23, d_model=16, num_heads=3)
    with pytest.raises(ConfigError, match="reads"):
        EncoderOnly(23, reads="all", **SIZES)
    with pytest.raises(ConfigError, match="num_decoder_layers"):
        EncoderOnly(23, num_decoder_layers=2, **SIZES)
    model = make()
    with pytest.raises(InputError, match="src_ids holds id 23"):
        model(torch.tensor([[23]]), torch.tensor([[START]]))
    with pytest.raises(InputError, match="tgt_mask has type"):
        model(torch.tensor([[5]]), torch.tensor([[START]]), tgt_mask=torch.ones(1, 1, 1))
