from __future__ import annotations

import copy

import pytest
import torch

from attendo.bundle import build_model
from attendo.core.errors import InputError
from attendo.decoding.ensemble import Ensemble
from attendo.decoding.options import DecodingOptions
from attendo.decoding.search import search
from attendo.inspection import capture
from attendo.inspection.ablation import (
    BatchedAblation,
    Head,
    ablate,
    ablate_all_heads,
    heads_off,
)
from attendo.inspection.heads import get_attention, list_heads
from attendo.inspection.record import KINDS
from attendo.translator import Translator
from attendo.translator.backends.base import SPECIAL_IDS

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}
TEXT = "ka to mi re so"


def sharpen(model):
    """Let an untrained model mean what it says: its heads then matter."""
    with torch.no_grad():
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.mul_(2.5)
    return model


@pytest.fixture
def translator(toy) -> Translator:
    model = build_model("transformer", SIZES, toy.prepared.tokenizer)
    return Translator(sharpen(model).double().eval(), toy.prepared.tokenizer)


def without(model, *heads: Head):
    """Copy a model and zero what belongs to these heads in W_O."""
    changed = copy.deepcopy(model)
    for head in heads:
        attention = get_attention(changed, head.kind, head.layer)
        size = attention.value.out_features // attention.num_heads
        with torch.no_grad():
            attention.output.weight[:, head.head * size : (head.head + 1) * size] = 0.0
    return changed


def loop(model, src_ids, tgt_ids):
    """Decode step by step with the cache."""
    state = model.start(model.encode(src_ids))
    found = []
    for ids in tgt_ids.T:
        logits, state = model.step(ids, state)
        found.append(logits)
    return torch.stack(found, dim=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("options", [{}, {"norm": "pre", "d_k": 3, "d_v": 5}, {"bias": False}])
def test_a_head_that_is_off_equals_zeros_in_its_part_of_the_projection(
    make_model, make_ids, kind, options
):
    model = make_model(torch.float64, **options)
    src_ids, tgt_ids = make_ids(3, 6, lengths=[6, 4, 2]), make_ids(3, 5)
    head = Head(kind, 1, 2)
    expected = without(model, head)
    before = model(src_ids, tgt_ids)
    with heads_off(model, [head]):
        torch.testing.assert_close(model(src_ids, tgt_ids), expected(src_ids, tgt_ids))
        assert not torch.allclose(model(src_ids, tgt_ids), before)
        torch.testing.assert_close(loop(model, src_ids, tgt_ids), loop(expected, src_ids, tgt_ids))
        seen, wanted = model.explain(src_ids, tgt_ids), expected.explain(src_ids, tgt_ids)
        torch.testing.assert_close(seen.logits, wanted.logits)
        for each in KINDS:
            torch.testing.assert_close(seen[each], wanted[each])


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_is_off_learns_nothing_and_the_others_learn_as_without_it(
    make_model, make_ids, kind
):
    model = make_model(torch.float64, dropout=0.3).train()
    head = Head(kind, 0, 1)
    expected = without(model, head)
    src_ids, tgt_ids = make_ids(2, 5), make_ids(2, 4)
    losses = []
    with heads_off(model, [head]):
        for each in (model, expected):
            torch.manual_seed(3)
            losses.append(each(src_ids, tgt_ids).square().mean())
    assert losses[0] == losses[1]
    for loss in losses:
        loss.backward()
    own, other = (get_attention(each, kind, 0) for each in (model, expected))
    for name in ("query", "key", "value"):
        gradient = getattr(own, name).weight.grad
        torch.testing.assert_close(gradient, getattr(other, name).weight.grad)
        assert gradient[4:8].abs().max() == 0.0
        assert gradient[:4].abs().max() > 0.0


def test_without_any_cross_attention_the_source_does_not_matter(make_model, make_ids):
    model = make_model()
    tgt_ids = make_ids(2, 4)
    first, second = make_ids(2, 6), make_ids(2, 6)
    assert not torch.allclose(model(first, tgt_ids), model(second, tgt_ids))
    with heads_off(model, list_heads(model, ["cross"])):
        torch.testing.assert_close(model(first, tgt_ids), model(second, tgt_ids))


def test_the_model_is_as_before_even_after_an_error(make_model, make_ids):
    model = make_model()
    src_ids, tgt_ids = make_ids(2, 5), make_ids(2, 4)
    before = model(src_ids, tgt_ids)
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    with pytest.raises(InputError), heads_off(model, list_heads(model)):
        model(src_ids, tgt_ids + 1000)
    assert torch.equal(model(src_ids, tgt_ids), before)
    assert all(torch.equal(value, weights[name]) for name, value in model.state_dict().items())


def test_nested_choices_add_up_and_end_one_after_the_other(make_model, make_ids):
    model = make_model(torch.float64)
    src_ids, tgt_ids = make_ids(1, 5), make_ids(1, 4)
    first, second = Head("cross", 0, 0), Head("encoder_self", 1, 3)
    with heads_off(model, [first]):
        with heads_off(model, [second, second]):
            both = model(src_ids, tgt_ids)
        one = model(src_ids, tgt_ids)
    torch.testing.assert_close(both, without(model, first, second)(src_ids, tgt_ids))
    torch.testing.assert_close(one, without(model, first)(src_ids, tgt_ids))


@pytest.mark.parametrize("beam_size", [1, 4])
def test_rows_with_heads_of_their_own_are_searched_as_if_alone(translator, beam_size):
    model, options = (
        translator.model,
        DecodingOptions(beam_size=beam_size, n_best=1, max_extra_tokens=5),
    )
    choices = [[], *([head] for head in list_heads(model)), list_heads(model, ["cross"])]
    ids = torch.tensor(translator.tokenizer.encode_src([TEXT]))
    together = search(
        BatchedAblation(model, choices), ids.repeat(len(choices), 1), SPECIAL_IDS, options
    )
    for heads, found in zip(choices, together, strict=True):
        alone = search(without(model, *heads), ids, SPECIAL_IDS, options)[0].hypotheses[0]
        assert found.hypotheses[0].ids == alone.ids
        assert found.hypotheses[0].log_prob == pytest.approx(alone.log_prob, abs=1e-4)
    assert len({tuple(found.hypotheses[0].ids) for found in together}) > 1


def test_rows_and_choices_must_be_as_many(translator):
    rows = BatchedAblation(translator.model, [[Head("cross", 0, 0)], []])
    with pytest.raises(InputError, match="3 rows for 2 sets"):
        rows.encode(torch.ones(3, 4, dtype=torch.long))


def test_ablate_translates_without_the_heads(translator):
    heads = list_heads(translator.model, ["cross"])
    found = ablate(translator, TEXT, heads, beam_size=2)
    other = Translator(without(translator.model, *heads), translator.tokenizer)
    expected = other.translate([TEXT], beam_size=2)[0]
    assert found == expected != translator.translate([TEXT], beam_size=2)[0]
    assert found.score == pytest.approx(expected.score, abs=1e-6)


@pytest.mark.parametrize("options", [{}, {"beam_size": 1}, {"max_length": 3}])
def test_sweep_reports_each_head(translator, options):
    record = capture(translator, TEXT, **options)
    section = ablate_all_heads(translator, record)
    assert section["log_prob"] == pytest.approx(
        sum(step["log_prob"] for step in record.steps), abs=1e-4
    )
    heads = [Head(one["kind"], one["layer"], one["head"]) for one in section["heads"]]
    assert heads == list_heads(translator.model)
    assert len(heads) == 3 * 2 * 4
    for head, one in zip(heads, section["heads"], strict=True):
        other = Translator(without(translator.model, head), translator.tokenizer)
        reported = capture(other, TEXT, record.tgt["text"]).steps[: len(record.steps)]
        assert one["log_prob"] == pytest.approx(sum(s["log_prob"] for s in reported), abs=1e-4)
        assert one["change"] == pytest.approx(one["log_prob"] - section["log_prob"], abs=2e-6)
        asked = {key: record.search[key] for key in ("beam_size", "alpha")}
        assert one["text"] == other.translate([TEXT], **asked)[0]


def test_sweep_may_leave_translating_out_and_look_at_some_kinds(translator):
    record = capture(translator, TEXT, "RE MI TO")
    section = ablate_all_heads(translator, record, kinds=["cross"], translate=False)
    assert [one["kind"] for one in section["heads"]] == ["cross"] * 8
    assert {one["text"] for one in section["heads"]} == {None}
    greedy = ablate_all_heads(translator, record, kinds=["cross"], beam_size=1)
    expected = [
        ablate(translator, TEXT, [head], beam_size=1)
        for head in list_heads(translator.model, ["cross"])
    ]
    assert [one["text"] for one in greedy["heads"]] == expected


def test_a_sweep_in_small_batches_is_the_same(translator, monkeypatch):
    record = capture(translator, TEXT)
    whole = ablate_all_heads(translator, record)
    monkeypatch.setattr("attendo.inspection.ablation.SCORING_BATCH_TOKENS", 20)
    monkeypatch.setattr("attendo.inspection.ablation.SEARCH_BATCH_TOKENS", 1)
    parts = ablate_all_heads(translator, record)
    assert [one["text"] for one in parts["heads"]] == [one["text"] for one in whole["heads"]]
    assert [one["change"] for one in parts["heads"]] == pytest.approx(
        [one["change"] for one in whole["heads"]], abs=1e-5
    )


def test_dropout_is_off_and_the_mode_comes_back(toy):
    model = build_model("transformer", {**SIZES, "dropout": 0.8}, toy.prepared.tokenizer).train()
    translator = Translator(model, toy.prepared.tokenizer)
    record = capture(translator, TEXT)
    assert ablate_all_heads(translator, record) == ablate_all_heads(translator, record)
    assert model.training


def test_learned_positions_are_not_overrun(toy):
    options = {**SIZES, "positions": "learned", "max_length": 12}
    model = build_model("transformer", options, toy.prepared.tokenizer)
    translator = Translator(sharpen(model).eval(), toy.prepared.tokenizer)
    section = ablate_all_heads(translator, capture(translator, TEXT))
    assert all(len(one["text"].split()) <= 12 for one in section["heads"])


@pytest.mark.parametrize(
    ("head", "reason", "hint"),
    [
        (Head("crss", 0, 0), "no kind of attention 'crss'", "did you mean 'cross'"),
        (Head("cross", 2, 0), "no layer 2 of cross attention", "from 0 to 1"),
        (Head("cross", -1, 0), "no layer -1", "from 0 to 1"),
        (Head("decoder_self", 0, 4), "no head 4 in layer 0 of decoder_self", "from 0 to 3"),
    ],
)
def test_a_head_that_is_not_there_is_rejected(translator, head, reason, hint):
    with pytest.raises(InputError, match=reason) as error, heads_off(translator.model, [head]):
        pass
    assert hint in error.value.hint


def test_only_one_transformer_has_heads_to_switch_off(translator):
    ensemble = Translator(Ensemble([translator.model] * 2), translator.tokenizer)
    with pytest.raises(InputError, match="an ensemble of 2") as error:
        ablate(ensemble, TEXT, [Head("cross", 0, 0)])
    assert "alone" in error.value.hint
    with pytest.raises(InputError, match="needs a Transformer"), heads_off(object(), []):
        pass


def test_a_record_of_another_model_is_rejected(toy, translator):
    other = build_model("transformer", {**SIZES, "num_layers": 1}, toy.prepared.tokenizer)
    record = capture(Translator(other, toy.prepared.tokenizer), TEXT)
    with pytest.raises(InputError, match="another model: num_layers 1, not 2"):
        ablate_all_heads(translator, record)
