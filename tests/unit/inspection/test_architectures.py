"""Looking inside what the Transformer replaced: all that the contract carries, and no more."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import attendo.inspection.html_page as pages
from attendo.bundle import build_model
from attendo.core.errors import InputError
from attendo.decoding.ensemble import Ensemble
from attendo.decoding.trace import replay
from attendo.inspection import Record, capture
from attendo.inspection.ablation import ablate_all_heads
from attendo.inspection.attribution import attribute
from attendo.inspection.bertviz import to_head_view, to_model_view
from attendo.inspection.inspect_sentence import inspect_sentence
from attendo.inspection.logit_lens import logit_lens
from attendo.inspection.model_info import check_model
from attendo.inspection.record import KINDS
from attendo.text.tokenizer import END_ID, START_ID
from attendo.translator import Translator

TEXT = "ka to mi re so"
SIZES = {
    "rnn-seq2seq": {"d_model": 16, "num_layers": 2, "d_state": 12},
    "rnn-attention": {"d_model": 16, "num_layers": 2},
    "conv-s2s": {"d_model": 16, "num_layers": 3, "num_decoder_layers": 2},
    "transformer": {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1},
}
BASELINES = tuple(SIZES)[:3]
NUM_ATTENTIONS = {"rnn-attention": 1, "conv-s2s": 2}


def make_translator(kind, tokenizer, **options) -> Translator:
    torch.manual_seed(7)
    model = build_model(kind, {**SIZES[kind], **options}, tokenizer)
    with torch.no_grad():
        for weight in model.parameters():  # far from even attention
            weight.add_(torch.randn_like(weight) * 0.4)
    return Translator(model.eval(), tokenizer)


@pytest.fixture(params=BASELINES)
def translator(request, toy) -> Translator:
    return make_translator(request.param, toy.prepared.tokenizer)


def ids_of(side) -> list[int]:
    return [token["id"] for token in side["tokens"]]


@torch.no_grad()
def loop(model, src_ids, output_ids) -> np.ndarray:
    """Return the probabilities (T, V) of a model that is fed one token after the other."""
    state, rows = model.start(model.encode(torch.tensor([src_ids]))), []
    for number in (START_ID, *output_ids[:-1]):
        logits, state = model.step(torch.tensor([number]), state)
        rows.append(logits[0].double().softmax(-1).numpy())
    return np.stack(rows)


@pytest.mark.parametrize(
    "options", [{"max_length": 7}, {"max_length": 7, "beam_size": 1}, {"tgt": "RE MI TO KA"}]
)
def test_steps_are_those_of_the_model_word_by_word(translator, options):
    record = inspect_sentence(translator, TEXT, **options)
    printed = ids_of(record.tgt)
    probabilities = loop(translator.model, ids_of(record.src), printed)
    for step, probability, number in zip(record.steps, probabilities, printed, strict=True):
        assert step["probability"] == pytest.approx(probability[number], rel=1e-3)
        assert step["entropy"] == pytest.approx(
            -(probability * np.log(probability)).sum(), rel=1e-3
        )
        assert [one["id"] for one in step["top"]][:3] == np.argsort(-probability)[:3].tolist()
    if "tgt" in options:
        assert record.beam is None
    else:
        assert replay(record.beam)[0] == [number for number in printed if number != END_ID]


def test_attention_is_what_the_model_explains(translator):
    record, kind = capture(translator, TEXT, "SO RE MI"), translator.model.kind
    assert record.kinds == (() if kind == "rnn-seq2seq" else ("cross",))
    with torch.no_grad():
        fed = torch.tensor([[START_ID, *ids_of(record.tgt)[:-1]]])
        reported = translator.model.explain(torch.tensor([ids_of(record.src)]), fed)
    assert len(reported.cross) == NUM_ATTENTIONS.get(kind, 0)
    for layer, weights in enumerate(reported.cross):
        assert np.allclose(record.attention("cross")[layer], weights[0].numpy(), atol=1e-6)
        assert weights.std(-1).max() > 0.05  # no even rows: a wrong one would show
    for other in ("encoder_self", "decoder_self"):
        with pytest.raises(InputError, match=f"no {other} attention"):
            record.attention(other)


def test_figures_of_a_single_head(toy):
    record = capture(make_translator("rnn-attention", toy.prepared.tokenizer), TEXT, "SO RE MI")
    weights = record.attention("cross")[0, 0].astype(np.float64)  # (T, S)
    ((figures,),) = record.measures["cross"]
    assert figures["entropy"] == pytest.approx(
        -(weights * np.log(weights)).sum(-1).mean(), abs=1e-3
    )
    assert figures["end"] == pytest.approx(weights[:, -1].mean(), abs=1e-3)
    assert figures["agreement"] == 1.0  # with nobody
    assert figures["previous"] is None
    assert record.measures["encoder_self"] == record.measures["decoder_self"] == []


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("rnn-seq2seq", {"num_layers": 2, "num_decoder_layers": 2, "num_heads": None}),
        # one attention, though there are two layers
        ("rnn-attention", {"num_layers": 2, "num_decoder_layers": 2, "num_heads": 1}),
        ("conv-s2s", {"num_layers": 3, "num_decoder_layers": 2, "num_heads": 1}),
    ],
)
def test_facts_of_the_model(toy, kind, sizes):
    translator = make_translator(kind, toy.prepared.tokenizer)
    facts = capture(translator, TEXT, "KA").model
    assert facts["kind"] == facts["name"] == kind
    assert {key: facts[key] for key in sizes} == sizes
    assert facts["d_model"] == 16
    assert facts["num_parameters"] == translator.model.num_parameters()


def test_a_decoder_has_as_many_layers_as_the_encoder_by_default(toy):
    translator = make_translator("conv-s2s", toy.prepared.tokenizer, num_decoder_layers=None)
    assert capture(translator, TEXT, "KA").model["num_decoder_layers"] == 3


# ---- what there is not -----------------------------------------------------------------------


def test_figures_that_need_a_transformer_are_omitted_with_a_note(translator):
    record, kind = inspect_sentence(translator, TEXT, "SO RE"), translator.model.kind
    assert record.logit_lens is record.attribution is record.ablation is None
    left = "left out: logit lens, attribution, head ablation"
    reported = [f"{left} (only for one Transformer; this is a model of kind '{kind}')"]
    none = ["attention: the model has none"] if kind == "rnn-seq2seq" else []
    assert record.notes == [*none, *reported]


def test_only_what_could_have_been_wanted_is_reported(translator):
    record = inspect_sentence(translator, TEXT, "SO RE", attribution=False, ablation=False)
    assert record.notes[-1].startswith("left out: logit lens (only")


@pytest.mark.parametrize("option", ["attribution", "ablation"])
def test_what_was_asked_for_is_rejected_before_anything_is_searched(
    translator, option, monkeypatch
):
    monkeypatch.setattr("attendo.inspection.inspect_sentence.capture", pytest.fail)
    kind = translator.model.kind
    with pytest.raises(InputError, match=f"{option} needs a Transformer.*kind '{kind}'") as caught:
        inspect_sentence(translator, TEXT, **{option: True})
    assert "'transformer'" in caught.value.hint


@pytest.mark.parametrize("study", [logit_lens, attribute, ablate_all_heads])
def test_each_study_rejects(translator, study):
    record = capture(translator, TEXT, "SO RE")
    with pytest.raises(InputError, match="needs a Transformer, and this is a model of kind"):
        study(translator, record)


def test_an_ensemble_has_the_notes_too(toy):
    tokenizer = toy.prepared.tokenizer
    models = [make_translator("transformer", tokenizer).model for _ in range(2)]
    ensemble = Translator(Ensemble(models), tokenizer)
    record = inspect_sentence(ensemble, TEXT, "SO RE")
    assert record.notes[-1].endswith("(only for one Transformer; this is an ensemble of 2)")
    assert record.logit_lens is None
    with pytest.raises(InputError, match="attribution belongs to one model"):
        inspect_sentence(ensemble, TEXT, "SO RE", attribution=True)


def test_a_transformer_is_looked_at_as_before(toy):
    record = inspect_sentence(make_translator("transformer", toy.prepared.tokenizer), TEXT, "SO RE")
    assert not any("left out" in note for note in record.notes)
    assert None not in (record.logit_lens, record.attribution, record.ablation)


def test_a_record_of_another_kind_or_size_is_known(toy):
    tokenizer = toy.prepared.tokenizer
    translators = {kind: make_translator(kind, tokenizer) for kind in SIZES}
    records = {kind: capture(one, TEXT, "KA") for kind, one in translators.items()}
    for kind, one in translators.items():
        check_model(one, records[kind])
        for other in set(SIZES) - {kind}:
            with pytest.raises(InputError, match=f"kind {other}, not {kind}"):
                check_model(one, records[other])
    wider = make_translator("rnn-attention", tokenizer, d_model=20)
    with pytest.raises(InputError, match="d_model 16, not 20"):
        check_model(wider, records["rnn-attention"])


# ---- embeddings and positions ----------------------------------------------------------------


@pytest.mark.parametrize("prepared", ["prepared", "separate"])
@pytest.mark.parametrize("kind", BASELINES)
def test_neighbors_by_the_embeddings(toy, kind, prepared):
    translator = make_translator(kind, getattr(toy, prepared).tokenizer)
    record = capture(translator, TEXT, "SO RE")
    for side, tokens in (("src", record.src), ("tgt", record.tgt)):
        table = getattr(translator.model, f"{side}_embedding").weight.detach().numpy()
        unit = table / np.linalg.norm(table, axis=1, keepdims=True)
        first = tokens["tokens"][0]["id"]
        cosines = unit @ unit[first]
        cosines[[0, 1, 2, 3, first]] = -2.0  # symbols are nobody's neighbors
        best = np.argsort(-cosines)[:5]
        near = record.embeddings[side][0]
        assert [one["id"] for one in near] == best.tolist()
        assert [one["similarity"] for one in near] == pytest.approx(cosines[best], abs=1e-4)


def test_only_convolutions_have_positions_and_a_longest_sentence(toy):
    tokenizer = toy.prepared.tokenizer
    convolutional = make_translator("conv-s2s", tokenizer, max_length=10)
    record = capture(convolutional, " ".join(["ka"] * 40))
    assert record.positions["kind"] == "learned"
    table = convolutional.model.src_positions.weight.detach().numpy()
    assert np.allclose(record.position_table(), table, atol=2e-3)
    assert record.notes[0] == "source: cut to a window of 10 tokens of 41"
    assert len(record.tgt["tokens"]) <= 10
    for kind in ("rnn-seq2seq", "rnn-attention"):
        long = capture(make_translator(kind, tokenizer), " ".join(["ka"] * 40), "KA")
        assert long.positions is None
        assert len(long.src["tokens"]) == 41


# ---- outlets ---------------------------------------------------------------------------------


def test_the_json_form_comes_back(translator, tmp_path):
    record = inspect_sentence(translator, TEXT, max_length=7)
    record.save(tmp_path / "record.json")
    again = Record.load(tmp_path / "record.json")
    assert again.kinds == record.kinds
    for kind in record.kinds:
        assert np.abs(again.attention(kind) - record.attention(kind)).max() < 1 / 65_535
    before, after = (json.loads(one.to_json()) for one in (record, again))
    assert after == before
    for kind in set(KINDS) - set(record.kinds):
        assert after["attention"][kind] is None
        assert after["measures"][kind] == []


def test_the_page_holds_the_record(translator, monkeypatch):
    monkeypatch.setattr(pages, "read_template", lambda: f"<p>{pages.RECORD_PLACEHOLDER}</p>")
    record = inspect_sentence(translator, TEXT, max_length=7)
    page = pages.render_page(record)
    assert json.loads(page.removeprefix("<p>").removesuffix("</p>")) == record.to_dict()
    assert len(set(record.notes)) == len(record.notes)  # the page lists each once


@pytest.mark.parametrize("kind", NUM_ATTENTIONS)
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # BertViz leaves its scripts open
def test_bertviz_draws_cross_attention_alone(toy, kind, bertviz, read_page):
    record = capture(make_translator(kind, toy.prepared.tokenizer), "ka to mi re", "RE MI TO")
    for name, convert in (("head_view", to_head_view), ("model_view", to_model_view)):
        view = getattr(bertviz, name)
        params = read_page(view(**convert(record), html_action="return").data)
        (block,) = params["attention"]
        assert np.array_equal(np.float32(block["attn"]), record.attention("cross"))
        assert block["left_text"] == ["<s>", " RE", " MI", " TO"]
        assert block["right_text"] == [" ka", " to", " mi", " re", "</s>"]
        assert params["include_layers"] == list(range(NUM_ATTENTIONS[kind]))


def test_bertviz_has_nothing_to_draw_without_attention(toy):
    record = capture(make_translator("rnn-seq2seq", toy.prepared.tokenizer), TEXT, "KA")
    with pytest.raises(InputError, match="the model has no attention to show") as caught:
        to_head_view(record)
    assert "attendo look" in caught.value.hint
