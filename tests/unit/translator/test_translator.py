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
from attendo.translator.backends import base

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


@pytest.fixture
def model(toy):
    return build_model("transformer", SIZES, toy.prepared.tokenizer)


def test_order_is_kept_and_empty_texts_stay_in_position(uppercaser):
    texts = ["ka to mi re", "", "so", "  \n", "lu ka", "\u200b", "mi"]
    assert uppercaser.translate(texts) == ["KA TO MI RE", "", "SO", "", "LU KA", "", "MI"]
    assert uppercaser.model.batches == [[2, 2, 3, 5]]


def test_nothing_to_translate(uppercaser):
    assert uppercaser.translate([]) == []
    assert uppercaser.translate([""]) == [""]
    assert uppercaser.model.batches == []


def test_batches_keep_to_their_tokens(uppercaser, monkeypatch):
    monkeypatch.setitem(base.BATCH_TOKENS, "cpu", 10)
    texts = [" ".join(["ka"] * count) for count in (1, 12, 2, 3, 1, 2, 4, 1)]
    assert uppercaser.translate(texts, beam_size=1) == [text.upper() for text in texts]
    assert uppercaser.model.batches == [[13], [4, 5], [2, 3, 3], [2, 2]]


def test_the_beam_takes_its_part_of_a_batch(uppercaser, monkeypatch):
    monkeypatch.setitem(base.BATCH_TOKENS, "cpu", 24)
    uppercaser.translate(["ka to", "ka mi", "so re"], beam_size=4)
    assert uppercaser.model.batches == [[3, 3], [3]]


def test_progress_is_reported_to_the_end(uppercaser, monkeypatch):
    monkeypatch.setitem(base.BATCH_TOKENS, "cpu", 3)
    reported = []
    uppercaser.translate(
        ["ka", "", "to mi", "so"], beam_size=1, progress=lambda *n: reported.append(n)
    )
    assert reported == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("beam_size", [1, 4])
def test_neighbors_do_not_matter(toy, model, beam_size):
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


def test_an_ensemble_of_other_tokenizers_is_rejected(toy, model, tmp_path):
    save_bundle(tmp_path / "a", model, toy.prepared.tokenizer)
    separate = build_model("transformer", SIZES, toy.separate.tokenizer)
    save_bundle(tmp_path / "b", separate, toy.separate.tokenizer)
    with pytest.raises(InputError, match="different tokenizers"):
        Translator.load(tmp_path / "a", tmp_path / "b", device="cpu")


@pytest.mark.parametrize("texts", ["나는 학생이다.", [b"ka"], [None]])
def test_only_a_list_of_texts_is_one(uppercaser, texts):
    with pytest.raises(InputError, match="list of texts"):
        uppercaser.translate(texts)


def test_options_are_one_value_or_keywords(uppercaser, monkeypatch):
    seen = []
    search = uppercaser.backend.search

    def spy(items, options, **more):
        seen.append(options)
        return search(items, options, **more)

    monkeypatch.setattr(uppercaser.backend, "search", spy)
    options = DecodingOptions(beam_size=2, do_sample=True)
    uppercaser.translate(["ka"], options=options)
    assert seen[-1] is options
    uppercaser.translate(["ka"], options=options, n_best=3)
    assert seen[-1] == options.replace(n_best=3)
    assert seen[-1].model_fields_set == {"beam_size", "do_sample", "n_best"}
    uppercaser.translate(["ka"], beam_size=3)
    assert seen[-1] == DecodingOptions(beam_size=3)


def test_a_wrong_option_is_named_with_the_nearest(uppercaser):
    with pytest.raises(ConfigError, match="did you mean 'beam_size'"):
        uppercaser.translate(["ka"], beam_sise=2)
    with pytest.raises(ConfigError, match="n_best 5 is more than beam_size 4"):
        uppercaser.translate(["ka"], n_best=5)
    with pytest.raises(ConfigError, match="did you mean 'never'"):
        uppercaser.translate(["ka"], split="nevr")


class TestSearches:
    def test_n_best_next_to_the_best(self, uppercaser):
        best = uppercaser.translate(["ka to"], beam_size=2, n_best=2)[0]
        (second,) = best.alternatives
        assert best == "KA TO"
        assert second != best
        assert best.score > second.score
        assert isinstance(second, Translation)

    def test_scores_are_those_of_the_model(self, uppercaser):
        best = uppercaser.translate(["ka to"], alpha=0.0)[0]
        vocab_size = len(uppercaser.model.targets)
        each = 4.0 - math.log(math.exp(4.0) + vocab_size - 1)
        assert best.log_prob == pytest.approx(3 * each, abs=1e-4)
        assert best.score == pytest.approx(3 * each, abs=1e-4)
        assert best.tokens == ["▁KA", "▁TO"]

    def test_continue_from_these_words(self, uppercaser):
        assert uppercaser.translate(["ka to mi"], prefix="SO") == ["SO TO MI"]
        assert uppercaser.translate(["ka to", "mi"], prefix=["LU", ""]) == ["LU TO", "MI"]
        with pytest.raises(InputError, match="1 prefixes for 2 texts"):
            uppercaser.translate(["ka", "to"], prefix=["LU"])

    def test_phrases_that_are_required_and_forbidden(self, uppercaser):
        (printed,) = uppercaser.translate(["ka to mi re"], required=["SO LU"])
        assert "SO LU" in printed
        (printed,) = uppercaser.translate(["ka to mi re"], forbidden=["TO"])
        assert "TO" not in printed.split()
        with pytest.raises(InputError, match="cannot write"):
            uppercaser.translate(["ka"], required=["☃"])

    def test_a_glossary_is_honoured_where_its_phrase_occurs(self, uppercaser, tmp_path):
        entries = {"to": "SO", "so": "LU KA"}
        first, second, third = uppercaser.translate(["ka to", "mi", "so re"], glossary=entries)
        assert "SO" in first.split()
        assert second == "MI"
        assert "LU KA" in third
        path = tmp_path / "terms.tsv"
        path.write_text("to\tSO\nso\tLU KA\n", encoding="utf-8")
        assert uppercaser.translate(["ka to", "mi", "so re"], glossary=path) == [
            first,
            second,
            third,
        ]

    def test_a_glossary_with_a_bad_line_names_it(self, uppercaser, tmp_path):
        path = tmp_path / "terms.tsv"
        path.write_text("to\tSO\nso LU\n", encoding="utf-8")
        with pytest.raises(InputError, match=r"terms\.tsv(.|\n)*line 2"):
            uppercaser.translate(["ka"], glossary=path)

    @pytest.mark.parametrize("requests", [{"required": "SO"}, {"forbidden": "SO"}])
    def test_one_phrase_is_not_a_list_of_phrases(self, uppercaser, requests):
        with pytest.raises(InputError, match="list of texts"):
            uppercaser.translate(["ka"], **requests)

    @pytest.mark.parametrize("requests", [{"prefix": "KA LU"}, {"glossary": {"ka": "LU"}}])
    def test_what_contradicts_itself_is_rejected(self, uppercaser, requests):
        with pytest.raises(InputError, match="'LU' is forbidden"):
            uppercaser.translate(["ka"], forbidden=["LU"], **requests)

    def test_a_prefix_that_cannot_be_written_is_rejected(self, uppercaser):
        with pytest.raises(InputError, match="cannot write"):
            uppercaser.translate(["ka"], prefix="☃")

    def test_what_could_not_be_kept_is_reported(self, uppercaser):
        (printed,) = uppercaser.translate(["ka"], required=["SO SO"], no_repeat_ngram=1)
        assert "without 'SO SO'" in printed.notes

    def test_diverse_alternatives_differ(self, uppercaser):
        best = uppercaser.translate(["ka to"], beam_size=8, num_groups=4, n_best=4)[0]
        printed = [best, *best.alternatives]
        assert len(printed) == len(set(printed)) >= 3

    def test_a_shortest_length_is_kept(self, uppercaser):
        (printed,) = uppercaser.translate(["ka"], min_length=70)
        assert len(printed.ids) >= 70

    def test_sampling_with_phrases_is_an_error(self, uppercaser):
        with pytest.raises(ConfigError, match="use beam search"):
            uppercaser.translate(["ka"], do_sample=True, required=["SO"])

    def test_sampling_is_the_seeds_affair(self, uppercaser):
        text = "ka to mi re so lu"
        draws = [uppercaser.translate([text], do_sample=True, seed=seed)[0] for seed in range(6)]
        again = uppercaser.translate(["mi", text], do_sample=True, seed=3)[1]
        assert again == draws[3]
        assert len(set(draws)) > 3


@pytest.mark.parametrize("device", ["banana", "cuda:77"])
def test_a_device_that_is_not_there_is_rejected(toy, model, tmp_path, device):
    save_bundle(tmp_path / "model", model, toy.prepared.tokenizer)
    with pytest.raises(InputError, match=f"device '{device}'"):
        Translator.load(tmp_path, device=device)


class TestDocuments:
    def test_several_sentences_are_read_one_by_one(self, uppercaser):
        (printed,) = uppercaser.translate(["ka to. Mi re? So."])
        assert len(uppercaser.model.batches[0]) == 3
        assert [note.code for note in printed.notes] == ["unknown_words"]

    def test_unless_the_model_has_learned_to_read_several(self, toy, uppercaser):
        about = {"num_sentences": 1.8}
        several = Translator(uppercaser.model, toy.prepared.tokenizer, about=about)
        several.translate(["ka to. Mi re? So."])
        assert len(uppercaser.model.batches[0]) == 1
        several.translate(["ka to. Mi re? So."], split="sentences")
        assert len(uppercaser.model.batches[1]) == 3

    def test_pieces_without_a_space_between_them_get_one(self, toy, uppercaser):
        translator = Translator(
            uppercaser.model, toy.prepared.tokenizer, about={"max_src_tokens": 3}
        )
        (printed,) = translator.translate(["ka。To。Mi"], unk="copy")
        assert printed == "ka。 To。 Mi"

    def test_lines_stay_lines(self, uppercaser):
        text = "ka to\n\n  mi re\nso\n"
        (printed,) = uppercaser.translate([text])
        assert printed == "KA TO\n\n  MI RE\nSO\n"
        assert printed.source == text
        assert printed.tokens == ["▁KA", "▁TO", "▁MI", "▁RE", "▁SO"]
        assert printed.notes == []

    def test_what_is_too_long_is_translated_in_pieces_and_reported(self, toy, uppercaser):
        translator = Translator(
            uppercaser.model, toy.prepared.tokenizer, about={"max_src_tokens": 5}
        )
        (printed,) = translator.translate([" ".join(["ka", "to", "mi"] * 5)])
        assert printed == " ".join(["KA", "TO", "MI"] * 5)
        assert printed.notes == ["translated in 4 pieces"]
        assert max(max(batch) for batch in uppercaser.model.batches) <= 5

    def test_nothing_is_cut_that_fits(self, uppercaser):
        (printed,) = uppercaser.translate(["ka to mi"])
        assert printed.notes == []
        assert uppercaser.model.batches == [[4]]

    def test_alternatives_and_traces_of_a_document(self, uppercaser):
        (printed,) = uppercaser.translate(["ka\nto"], n_best=2, trace=True)
        assert printed == "KA\nTO"
        assert len(printed.alternatives) == 1
        assert printed.alternatives[0].count("\n") == 1
        assert len(printed.trace) == 2

    def test_a_part_that_cannot_be_read_does_not_empty_the_rest(self, uppercaser):
        assert uppercaser.translate(["ka\n\u200b\nto"])[0] in ("KA\n\nTO", "KA\n\u200b\nTO")


class TestConfidence:
    def test_words_have_the_probability_of_their_tokens(self, uppercaser):
        (printed,) = uppercaser.translate(["ka to"], confidence=True)
        sure = printed.confidence
        each = math.exp(4) / (math.exp(4) + len(uppercaser.model.targets) - 1)
        assert [word.text for word in sure.words] == ["KA", "TO"]
        assert [word.probability for word in sure.words] == pytest.approx([each] * 2, abs=1e-4)
        assert sure.mean_token_probability == pytest.approx(each, abs=1e-4)
        assert sure.probability == pytest.approx(each**3, abs=1e-4)

    def test_the_calibrated_temperature_is_used(self, toy, uppercaser):
        about = {"calibration": {"temperature": 2.0}}
        cool = Translator(uppercaser.model, toy.prepared.tokenizer, about=about)
        (printed,) = cool.translate(["ka to"], confidence=True)
        each = math.exp(2) / (math.exp(2) + len(uppercaser.model.targets) - 1)
        assert printed.confidence.mean_token_probability == pytest.approx(each, abs=1e-4)
        assert (
            printed.score == uppercaser.translate(["ka to"])[0].score
        )  # the search is not touched

    def test_a_given_translation_is_scored(self, uppercaser):
        right, wrong = uppercaser.score(["ka to", "ka to"], ["KA TO", "KA MI"])
        assert right.probability > 10 * wrong.probability
        assert wrong.words[1].probability < 0.05 < wrong.words[0].probability
        with pytest.raises(InputError, match="2 sources and 1 translations"):
            uppercaser.score(["a", "b"], ["c"])

    def test_a_document_has_that_of_its_pieces(self, uppercaser):
        whole = uppercaser.translate(["ka to\nmi"], confidence=True)[0].confidence
        parts = [one.confidence for one in uppercaser.translate(["ka to", "mi"], confidence=True)]
        assert [w.text for w in whole.words] == ["KA", "TO", "MI"]
        assert whole.probability == pytest.approx(parts[0].probability * parts[1].probability)
        assert whole.mean_token_probability == pytest.approx(parts[0].mean_token_probability)


def test_the_trace_names_tokens_and_replays(uppercaser):
    (printed,) = uppercaser.translate(["ka to mi"], trace=True, n_best=2)
    (trace,) = json.loads(json.dumps(printed.trace, ensure_ascii=False))
    first = trace["steps"][0]["candidates"][0]
    assert (first["token"], first["outcome"]) == ("▁KA", "kept")
    ids = replay(trace)
    assert uppercaser.tokenizer.decode_tgt(ids) == [printed, *printed.alternatives]


def test_everything_as_json(uppercaser):
    (printed,) = uppercaser.translate(["ka to"], confidence=True, n_best=2)
    facts = json.loads(json.dumps(printed.to_dict(), ensure_ascii=False))
    assert facts["text"] == "KA TO"
    assert facts["confidence"]["words"][0]["text"] == "KA"
    assert facts["alternatives"][0]["text"] == printed.alternatives[0]
    assert "trace" not in facts


class TestUnknown:
    def test_is_avoided_by_default(self, uppercaser):
        (printed,) = uppercaser.translate(["ka zork to"])
        assert "⁇" not in printed

    def test_is_kept_where_that_is_asked_for(self, uppercaser):
        assert uppercaser.translate(["ka zork to"], unk="keep") == ["KA ⁇ TO"]

    def test_is_the_attended_source_word_where_it_is_copied(self, uppercaser):
        assert uppercaser.translate(["ka zork to"], unk="copy") == ["KA zork TO"]
        assert uppercaser.translate(["zork blip"], unk="copy", beam_size=1) == ["zork blip"]


def test_a_batch_that_does_not_fit_is_cut_in_half(uppercaser, monkeypatch):
    encode = uppercaser.model.encode

    def little_space(src_ids, src_mask=None):
        if len(src_ids) > 2:
            raise torch.OutOfMemoryError("no room")
        return encode(src_ids, src_mask)

    monkeypatch.setattr(uppercaser.model, "encode", little_space)
    texts = ["ka", "to", "mi", "so", "re"]
    assert uppercaser.translate(texts) == [text.upper() for text in texts]


def test_one_sentence_that_does_not_fit_is_an_error(uppercaser, monkeypatch):
    def no_space(src_ids, src_mask=None):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(uppercaser.model, "encode", no_space)
    with pytest.raises((torch.OutOfMemoryError, AttendoError)):
        uppercaser.translate(["ka"])


def test_any_iterable_of_texts_is_read_once(uppercaser):
    assert uppercaser.translate(text for text in ("ka to", "mi")) == ["KA TO", "MI"]
    assert uppercaser.translate({"ka": 1}.keys()) == ["KA"]
    with pytest.raises(InputError, match="got int"):
        uppercaser.translate(7)


def test_the_repr_names_the_model(uppercaser, monkeypatch):
    monkeypatch.setattr(uppercaser, "about", {"src_lang": "ko", "tgt_lang": "en"})
    shown = repr(uppercaser)
    assert shown.startswith("Translator(")
    assert "ko to en" in shown
    assert len(shown) < 200
