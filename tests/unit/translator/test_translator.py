from __future__ import annotations

import json
import math

import pytest
import torch

from attendo.bundle import build_model, save_bundle
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.decoding.options import DecodingOptions
from attendo.decoding.trace import replay
from attendo.translator import Translation, Translator
from attendo.translator.backends import pytorch

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture
def model(toy):
    return build_model("transformer", SIZES, toy.prepared.tokenizer)


def test_order_is_kept_and_empty_texts_stay_in_place(parrot):
    texts = ["ka to mi re", "", "so", "  \n", "lu ka", "\u200b", "mi"]
    assert parrot.translate(texts) == ["KA TO MI RE", "", "SO", "", "LU KA", "", "MI"]
    assert parrot.model.batches == [[2, 2, 3, 5]]


def test_nothing_to_translate(parrot):
    assert parrot.translate([]) == []
    assert parrot.translate([""]) == [""]
    assert parrot.model.batches == []


def test_batches_keep_to_their_tokens(parrot, monkeypatch):
    monkeypatch.setitem(pytorch.BATCH_TOKENS, "cpu", 10)
    texts = [" ".join(["ka"] * count) for count in (1, 12, 2, 3, 1, 2, 4, 1)]
    assert parrot.translate(texts, beam_size=1) == [text.upper() for text in texts]
    assert parrot.model.batches == [[13], [4, 5], [2, 3, 3], [2, 2]]


def test_the_beam_takes_its_part_of_a_batch(parrot, monkeypatch):
    monkeypatch.setitem(pytorch.BATCH_TOKENS, "cpu", 24)
    parrot.translate(["ka to", "ka mi", "so re"], beam_size=4)
    assert parrot.model.batches == [[3, 3], [3]]


def test_progress_is_told_to_the_end(parrot, monkeypatch):
    monkeypatch.setitem(pytorch.BATCH_TOKENS, "cpu", 3)
    told = []
    parrot.translate(["ka", "", "to mi", "so"], beam_size=1, progress=lambda *n: told.append(n))
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_neighbours_do_not_matter(toy, model, beam_size):
    translator = Translator(model.double(), toy.prepared.tokenizer)
    texts = [" ".join(["ka", "to", "lu"][:count] * count) for count in (1, 2, 3)]
    together = translator.translate(texts, beam_size=beam_size)
    alone = [translator.translate([text], beam_size=beam_size)[0] for text in texts]
    assert together == alone
    assert [one.score for one in together] == pytest.approx([one.score for one in alone], abs=1e-4)
    assert translator.translate(texts[::-1], beam_size=beam_size) == together[::-1]


@pytest.mark.parametrize("is_training", [True, False])
def test_dropout_is_off_and_the_mode_comes_back(toy, is_training):
    model = build_model("transformer", {**SIZES, "dropout": 0.9}, toy.prepared.tokenizer)
    translator = Translator(model.train(is_training), toy.prepared.tokenizer)
    assert len({translator.translate(["ka to mi re so lu"])[0] for _ in range(4)}) == 1
    assert model.training is is_training


def test_a_model_learns_on_after_it_has_translated(toy, model):
    Translator(model.train(), toy.prepared.tokenizer).translate(["ka to mi"])
    model(torch.tensor([[5, 6]]), torch.tensor([[2, 7]])).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_loads_a_folder(toy, model, tmp_path):
    save_bundle(tmp_path / "model", model, toy.prepared.tokenizer, about={"max_src_tokens": 7})
    expected = Translator(model, toy.prepared.tokenizer).translate(["ka to", "mi"])
    loaded = Translator.load(tmp_path, device="cpu")
    assert loaded.translate(["ka to", "mi"]) == expected
    assert loaded.max_src_tokens == 7
    assert Translator.load(str(tmp_path / "model"), device="cpu").translate([]) == []


def test_several_folders_are_an_ensemble(toy, model, tmp_path):
    other = build_model("transformer", SIZES, toy.prepared.tokenizer)
    save_bundle(tmp_path / "a", model, toy.prepared.tokenizer)
    save_bundle(tmp_path / "b", other, toy.prepared.tokenizer)
    both = Translator.load(tmp_path / "a", tmp_path / "b", device="cpu")
    turned = Translator.load(tmp_path / "b", tmp_path / "a", device="cpu")
    alone = Translator.load(tmp_path / "a", device="cpu")
    text = ["ka to mi re"]
    assert both.translate(text)[0].score == pytest.approx(turned.translate(text)[0].score, abs=1e-5)
    assert both.translate(text)[0].score != pytest.approx(alone.translate(text)[0].score, abs=1e-3)


def test_an_ensemble_of_other_tokenizers_is_refused(toy, model, tmp_path):
    save_bundle(tmp_path / "a", model, toy.prepared.tokenizer)
    separate = build_model("transformer", SIZES, toy.separate.tokenizer)
    save_bundle(tmp_path / "b", separate, toy.separate.tokenizer)
    with pytest.raises(InputError, match="different tokenizers"):
        Translator.load(tmp_path / "a", tmp_path / "b", device="cpu")


@pytest.mark.parametrize("texts", ["나는 학생이다.", [b"ka"], [None]])
def test_only_a_list_of_texts_is_one(parrot, texts):
    with pytest.raises(InputError, match="list of texts"):
        parrot.translate(texts)


def test_options_are_one_value_or_keywords(parrot, monkeypatch):
    seen = []
    search = parrot.backend.search

    def spy(items, options, **more):
        seen.append(options)
        return search(items, options, **more)

    monkeypatch.setattr(parrot.backend, "search", spy)
    options = DecodingOptions(beam_size=2, do_sample=True)
    parrot.translate(["ka"], options=options)
    assert seen[-1] is options
    parrot.translate(["ka"], options=options, n_best=3)
    assert seen[-1] == options.replace(n_best=3)
    assert seen[-1].model_fields_set == {"beam_size", "do_sample", "n_best"}
    parrot.translate(["ka"], beam_size=3)
    assert seen[-1] == DecodingOptions(beam_size=3)


def test_a_wrong_option_is_named_with_the_nearest(parrot):
    with pytest.raises(ConfigError, match="did you mean 'beam_size'"):
        parrot.translate(["ka"], beam_sise=2)
    with pytest.raises(ConfigError, match="n_best 5 is more than beam_size 4"):
        parrot.translate(["ka"], n_best=5)
    with pytest.raises(ConfigError, match="did you mean 'never'"):
        parrot.translate(["ka"], split="nevr")


class TestSearches:
    def test_n_best_stands_beside_the_best(self, parrot):
        best = parrot.translate(["ka to"], beam_size=2, n_best=2)[0]
        (second,) = best.alternatives
        assert best == "KA TO"
        assert second != best
        assert best.score > second.score
        assert isinstance(second, Translation)

    def test_scores_are_those_of_the_model(self, parrot):
        best = parrot.translate(["ka to"], alpha=0.0)[0]
        vocab_size = len(parrot.model.says)
        each = 4.0 - math.log(math.exp(4.0) + vocab_size - 1)
        assert best.log_prob == pytest.approx(3 * each, abs=1e-4)
        assert best.score == pytest.approx(3 * each, abs=1e-4)
        assert best.tokens == ["▁KA", "▁TO"]

    def test_continue_from_these_words(self, parrot):
        assert parrot.translate(["ka to mi"], prefix="SO") == ["SO TO MI"]
        assert parrot.translate(["ka to", "mi"], prefix=["LU", ""]) == ["LU TO", "MI"]
        with pytest.raises(InputError, match="1 prefixes for 2 texts"):
            parrot.translate(["ka", "to"], prefix=["LU"])

    def test_phrases_that_must_and_must_not_stand(self, parrot):
        (said,) = parrot.translate(["ka to mi re"], required=["SO LU"])
        assert "SO LU" in said
        (said,) = parrot.translate(["ka to mi re"], forbidden=["TO"])
        assert "TO" not in said.split()
        with pytest.raises(InputError, match="cannot write"):
            parrot.translate(["ka"], required=["☃"])

    def test_a_glossary_is_honoured_where_its_phrase_occurs(self, parrot, tmp_path):
        entries = {"to": "SO", "so": "LU KA"}
        first, second, third = parrot.translate(["ka to", "mi", "so re"], glossary=entries)
        assert "SO" in first.split()
        assert second == "MI"
        assert "LU KA" in third
        path = tmp_path / "terms.tsv"
        path.write_text("to\tSO\nso\tLU KA\n", encoding="utf-8")
        assert parrot.translate(["ka to", "mi", "so re"], glossary=path) == [first, second, third]

    def test_a_glossary_with_a_bad_line_names_it(self, parrot, tmp_path):
        path = tmp_path / "terms.tsv"
        path.write_text("to\tSO\nso LU\n", encoding="utf-8")
        with pytest.raises(InputError, match=r"terms\.tsv(.|\n)*line 2"):
            parrot.translate(["ka"], glossary=path)

    @pytest.mark.parametrize("wishes", [{"required": "SO"}, {"forbidden": "SO"}])
    def test_one_phrase_is_no_list_of_phrases(self, parrot, wishes):
        with pytest.raises(InputError, match="list of texts"):
            parrot.translate(["ka"], **wishes)

    @pytest.mark.parametrize("wishes", [{"prefix": "KA LU"}, {"glossary": {"ka": "LU"}}])
    def test_what_contradicts_itself_is_refused(self, parrot, wishes):
        with pytest.raises(InputError, match="'LU' is forbidden"):
            parrot.translate(["ka"], forbidden=["LU"], **wishes)

    def test_a_prefix_that_cannot_be_written_is_refused(self, parrot):
        with pytest.raises(InputError, match="cannot write"):
            parrot.translate(["ka"], prefix="☃")

    def test_what_could_not_be_kept_is_told(self, parrot):
        (said,) = parrot.translate(["ka"], required=["SO SO"], no_repeat_ngram=1)
        assert "without 'SO SO'" in said.notes

    def test_diverse_alternatives_differ(self, parrot):
        best = parrot.translate(["ka to"], beam_size=8, num_groups=4, n_best=4)[0]
        said = [best, *best.alternatives]
        assert len(said) == len(set(said)) >= 3

    def test_a_shortest_length_is_kept(self, parrot):
        (said,) = parrot.translate(["ka"], min_length=70)
        assert len(said.ids) >= 70

    def test_sampling_cannot_keep_to_phrases_and_says_so(self, parrot):
        with pytest.raises(ConfigError, match="use beam search"):
            parrot.translate(["ka"], do_sample=True, required=["SO"])

    def test_sampling_is_the_seeds_affair(self, parrot):
        text = "ka to mi re so lu"
        draws = [parrot.translate([text], do_sample=True, seed=seed)[0] for seed in range(6)]
        again = parrot.translate(["mi", text], do_sample=True, seed=3)[1]
        assert again == draws[3]
        assert len(set(draws)) > 3


@pytest.mark.parametrize("device", ["banana", "cuda:77"])
def test_a_device_that_is_not_there_is_refused(toy, model, tmp_path, device):
    save_bundle(tmp_path / "model", model, toy.prepared.tokenizer)
    with pytest.raises(InputError, match="is not available"):
        Translator.load(tmp_path, device=device)


class TestDocuments:
    def test_several_sentences_are_read_one_by_one(self, parrot):
        (said,) = parrot.translate(["ka to. Mi re? So."])
        assert len(parrot.model.batches[0]) == 3
        assert said.notes == []

    def test_unless_the_model_has_learnt_to_read_several(self, toy, parrot):
        about = {"num_sentences": 1.8}
        several = Translator(parrot.model, toy.prepared.tokenizer, about=about)
        several.translate(["ka to. Mi re? So."])
        assert len(parrot.model.batches[0]) == 1
        several.translate(["ka to. Mi re? So."], split="sentences")
        assert len(parrot.model.batches[1]) == 3

    def test_pieces_without_a_space_between_them_get_one(self, toy, parrot):
        translator = Translator(parrot.model, toy.prepared.tokenizer, about={"max_src_tokens": 3})
        (said,) = translator.translate(["ka。To。Mi"], unk="copy")
        assert said == "ka。 To。 Mi"

    def test_lines_stay_lines(self, parrot):
        text = "ka to\n\n  mi re\nso\n"
        (said,) = parrot.translate([text])
        assert said == "KA TO\n\n  MI RE\nSO\n"
        assert said.source == text
        assert said.tokens == ["▁KA", "▁TO", "▁MI", "▁RE", "▁SO"]
        assert said.notes == []

    def test_what_is_too_long_is_translated_in_pieces_and_told(self, toy, parrot):
        translator = Translator(parrot.model, toy.prepared.tokenizer, about={"max_src_tokens": 5})
        (said,) = translator.translate([" ".join(["ka", "to", "mi"] * 5)])
        assert said == " ".join(["KA", "TO", "MI"] * 5)
        assert said.notes == ["translated in 4 pieces"]
        assert max(max(batch) for batch in parrot.model.batches) <= 5

    def test_nothing_is_cut_that_fits(self, parrot):
        (said,) = parrot.translate(["ka to mi"])
        assert said.notes == []
        assert parrot.model.batches == [[4]]

    def test_alternatives_and_traces_of_a_document(self, parrot):
        (said,) = parrot.translate(["ka\nto"], n_best=2, trace=True)
        assert said == "KA\nTO"
        assert len(said.alternatives) == 1
        assert said.alternatives[0].count("\n") == 1
        assert len(said.trace) == 2

    def test_a_part_that_cannot_be_read_does_not_empty_the_rest(self, parrot):
        assert parrot.translate(["ka\n\u200b\nto"])[0] in ("KA\n\nTO", "KA\n\u200b\nTO")


class TestConfidence:
    def test_words_have_the_probability_of_their_tokens(self, parrot):
        (said,) = parrot.translate(["ka to"], confidence=True)
        sure = said.confidence
        each = math.exp(4) / (math.exp(4) + len(parrot.model.says) - 1)
        assert [word.text for word in sure.words] == ["KA", "TO"]
        assert [word.probability for word in sure.words] == pytest.approx([each] * 2, abs=1e-4)
        assert sure.mean == pytest.approx(each, abs=1e-4)
        assert sure.probability == pytest.approx(each**3, abs=1e-4)

    def test_the_calibrated_temperature_is_used(self, toy, parrot):
        about = {"calibration": {"temperature": 2.0}}
        cool = Translator(parrot.model, toy.prepared.tokenizer, about=about)
        (said,) = cool.translate(["ka to"], confidence=True)
        each = math.exp(2) / (math.exp(2) + len(parrot.model.says) - 1)
        assert said.confidence.mean == pytest.approx(each, abs=1e-4)
        assert said.score == parrot.translate(["ka to"])[0].score  # the search is not touched

    def test_a_given_translation_is_scored(self, parrot):
        right, wrong = parrot.score(["ka to", "ka to"], ["KA TO", "KA MI"])
        assert right.probability > 10 * wrong.probability
        assert wrong.words[1].probability < 0.05 < wrong.words[0].probability
        with pytest.raises(InputError, match="2 sources and 1 translations"):
            parrot.score(["a", "b"], ["c"])

    def test_a_document_has_that_of_its_pieces(self, parrot):
        whole = parrot.translate(["ka to\nmi"], confidence=True)[0].confidence
        parts = [one.confidence for one in parrot.translate(["ka to", "mi"], confidence=True)]
        assert [w.text for w in whole.words] == ["KA", "TO", "MI"]
        assert whole.probability == pytest.approx(parts[0].probability * parts[1].probability)
        assert whole.mean == pytest.approx(parts[0].mean)


def test_the_trace_names_tokens_and_replays(parrot):
    (said,) = parrot.translate(["ka to mi"], trace=True, n_best=2)
    (trace,) = json.loads(json.dumps(said.trace, ensure_ascii=False))
    first = trace["steps"][0]["candidates"][0]
    assert (first["token"], first["fate"]) == ("▁KA", "kept")
    ids = replay(trace)
    assert parrot.tokenizer.decode_tgt(ids) == [said, *said.alternatives]


def test_everything_as_json(parrot):
    (said,) = parrot.translate(["ka to"], confidence=True, n_best=2)
    facts = json.loads(json.dumps(said.to_dict(), ensure_ascii=False))
    assert facts["text"] == "KA TO"
    assert facts["confidence"]["words"][0]["text"] == "KA"
    assert facts["alternatives"][0]["text"] == said.alternatives[0]
    assert "trace" not in facts


class TestUnknown:
    def test_is_avoided_by_default(self, parrot):
        (said,) = parrot.translate(["ka zork to"])
        assert "⁇" not in said

    def test_is_kept_where_that_is_asked_for(self, parrot):
        assert parrot.translate(["ka zork to"], unk="keep") == ["KA ⁇ TO"]

    def test_is_the_attended_source_word_where_it_is_copied(self, parrot):
        assert parrot.translate(["ka zork to"], unk="copy") == ["KA zork TO"]
        assert parrot.translate(["zork blip"], unk="copy", beam_size=1) == ["zork blip"]


def test_a_batch_that_does_not_fit_is_cut_in_half(parrot, monkeypatch):
    encode = parrot.model.encode

    def little_room(src_ids, src_mask=None):
        if len(src_ids) > 2:
            raise torch.OutOfMemoryError("no room")
        return encode(src_ids, src_mask)

    monkeypatch.setattr(parrot.model, "encode", little_room)
    texts = ["ka", "to", "mi", "so", "re"]
    assert parrot.translate(texts) == [text.upper() for text in texts]


def test_one_sentence_that_does_not_fit_is_an_error(parrot, monkeypatch):
    def no_room(src_ids, src_mask=None):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(parrot.model, "encode", no_room)
    with pytest.raises((torch.OutOfMemoryError, AttendoError)):
        parrot.translate(["ka"])
