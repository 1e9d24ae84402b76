"""Marian folders compared with transformers itself: ids, logits, translations, and the way back."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from attendo.bundle import Bundle, build_model, get_weights
from attendo.core.errors import InputError
from attendo.interop.marian import model_folder
from attendo.text.foreign_tokenizer import NO_FOREIGN_ID, ForeignTokenizer
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID
from attendo.translator import Translator

SENTENCES = [
    "I am a student.",
    "The girl saved the lion.",
    "My friend reads a book ☃ 소녀",  # a character that no vocabulary has, words of the other side
    "the",
]
TARGETS = ["나는 학생이다.", "소녀는 사자를 구했다.", "내 친구는 책을 읽는다.", ""]
FORMS: dict[str, dict[str, Any]] = {
    "as OPUS-MT": {},
    "relu": {"activation_function": "relu", "scale_embedding": False},
    "gelu": {"activation_function": "gelu"},
    "silu": {"activation_function": "silu", "dropout": 0.2, "attention_dropout": 0.1},
    "two embeddings": {"share_encoder_decoder_embeddings": False},
    "two vocabularies": {"share_encoder_decoder_embeddings": False, "separate": True},
    "nothing tied": {
        "share_encoder_decoder_embeddings": False,
        "tie_word_embeddings": False,
        "separate": True,
    },
    "output not tied": {"tie_word_embeddings": False},
    "deep encoder": {"encoder_layers": 3, "decoder_layers": 1},
    "other decoder": {"decoder_attention_heads": 4, "decoder_ffn_dim": 24},
    "wide": {"d_model": 48, "encoder_attention_heads": 3, "decoder_attention_heads": 3},
    "own start": {"start": "<s>"},
    "starts with the end": {"start": "</s>"},
}
WAYS_BACK = [name for name in FORMS if name != "starts with the end"]


@pytest.fixture(params=FORMS)
def form(request) -> dict[str, Any]:
    return FORMS[request.param]


def their_tokenizer(folder) -> Any:
    from transformers import MarianTokenizer

    return MarianTokenizer.from_pretrained(folder)


def encode_theirs(tokenizer: Any, texts: list[str], *, target: bool = False) -> list[list[int]]:
    found = tokenizer(text_target=texts) if target else tokenizer(texts)
    return found.input_ids


def pad(rows: list[list[int]], number: int) -> torch.Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[number] * (longest - len(row))] for row in rows])


def their_logits(peer: Any, tokenizer: Any, sources: list[str], targets: list[str]) -> torch.Tensor:
    """What transformers computes from texts, by its own tokenizer."""
    config = peer.config
    src = encode_theirs(tokenizer, sources)
    labels = encode_theirs(tokenizer, targets, target=True)
    fed = pad([[config.decoder_start_token_id, *row[:-1]] for row in labels], config.eos_token_id)
    src_ids = pad(src, tokenizer.pad_token_id)
    mask = pad([[1] * len(row) for row in src], 0)
    with torch.no_grad():
        return peer(input_ids=src_ids, attention_mask=mask, decoder_input_ids=fed).logits


def our_logits(bundle: Bundle, sources: list[str], targets: list[str]) -> torch.Tensor:
    src = pad(bundle.tokenizer.encode_src(sources), PAD_ID)
    labels = bundle.tokenizer.encode_tgt(targets)
    fed = pad([[START_ID, *row[:-1]] for row in labels], END_ID)
    with torch.no_grad():
        return bundle.model(src, fed)


def test_logits_are_those_of_transformers(make_marian, form):
    """The same texts through both, each with its own tokenizer and its own ids."""
    folder, peer = make_marian(**form)
    bundle = model_folder.read(folder)
    theirs = their_logits(peer, their_tokenizer(folder), SENTENCES, TARGETS)
    ours = our_logits(bundle, SENTENCES, TARGETS)
    foreign_ids = bundle.tokenizer.vocabularies[-1].foreign_ids
    ids_without_logit = bundle.tokenizer.vocabularies[-1].ids_without_logit
    printed = [number for number in range(len(foreign_ids)) if number not in ids_without_logit]
    assert sorted(foreign_ids[number] for number in printed) == list(range(theirs.size(-1)))
    expected = theirs[..., [foreign_ids[number] for number in printed]]
    torch.testing.assert_close(ours[..., printed], expected, rtol=0, atol=1e-5)
    assert expected.std() > 1.0  # far from a model that says nothing
    assert not ours.softmax(-1)[
        ..., ids_without_logit
    ].any()  # what they have no column for is never said


def test_the_forms_are_as_many_as_promised():
    assert len(FORMS) >= 8


def test_texts_have_the_ids_of_their_tokenizer(make_marian):
    folder, _ = make_marian(codes=(">>fra<<", ">>deu<<"))
    tokenizer, theirs = model_folder.read(folder).tokenizer, their_tokenizer(folder)
    texts = [*SENTENCES, "", ">>deu<< I am a student.", ">>xxx<< the", "a\u00a0book", "…“quoted”"]
    (side,) = tokenizer.vocabularies
    ours = [[side.foreign_ids[number] for number in row] for row in tokenizer.encode_src(texts)]
    assert ours == encode_theirs(theirs, texts)
    ours = [[side.foreign_ids[number] for number in row] for row in tokenizer.encode_tgt(TARGETS)]
    assert ours == encode_theirs(theirs, TARGETS, target=True)
    assert UNK_ID in tokenizer.encode_src(["☃"])[0]
    printed = tokenizer.encode_tgt(TARGETS)
    assert tokenizer.decode_tgt(printed) == TARGETS
    expected = theirs.batch_decode(encode_theirs(theirs, TARGETS, target=True),
                                   skip_special_tokens=True)  # fmt: skip
    assert tokenizer.decode_tgt(printed) == expected


def test_a_code_goes_before_every_source(make_marian):
    folder, _ = make_marian(codes=(">>fra<<", ">>deu<<"))
    tokenizer = model_folder.read(folder, code=">>deu<<").tokenizer
    plain = model_folder.read(folder).tokenizer
    assert tokenizer.encode_src(["the"]) == plain.encode_src([">>deu<< the"])
    assert tokenizer.encode_src([">>fra<< the"]) == plain.encode_src([">>fra<< the"])
    ids = tokenizer.encode_src(["the book"])[0]
    assert len(tokenizer.src_surfaces("the book")) == len(ids)
    assert tokenizer.src_pieces(ids)[0] == ">>deu<<"
    assert tokenizer.fingerprint != plain.fingerprint
    with pytest.raises(InputError, match="no language code >>xyz<<") as raised:
        model_folder.read(folder, code=">>xyz<<")
    assert ">>fra<<, >>deu<<" in raised.value.hint


def generate(peer: Any, tokenizer: Any, texts: list[str], **options: Any) -> list[str | None]:
    """What `generate` says, by the rules that mean the same here (see tests/parity).

    None where the limit came before the end: there the rules differ.
    """
    batch = tokenizer(texts, return_tensors="pt", padding=True)
    never = {tokenizer.pad_token_id, tokenizer.unk_token_id, peer.config.decoder_start_token_id}
    found = peer.generate(
        **batch,
        num_beams=4,
        early_stopping="never",
        length_penalty=0.6,
        max_new_tokens=60,
        suppress_tokens=sorted(never - {peer.config.eos_token_id}),
        do_sample=False,
        **options,
    )
    ended = (found[:, 1:] == peer.config.eos_token_id).any(1).tolist()
    printed = tokenizer.batch_decode(found, skip_special_tokens=True)
    return [text if has_ended else None for text, has_ended in zip(printed, ended, strict=True)]


@pytest.mark.parametrize("name", ["as OPUS-MT", "two vocabularies", "own start", "nothing tied"])
def test_a_beam_of_four_equals_generate(make_marian, name):
    compared = []
    for seed in range(3):
        folder, peer = make_marian(f"marian-{seed}", seed=seed, **FORMS[name])
        bundle = model_folder.read(folder)
        translator = Translator(bundle.model, bundle.tokenizer, about=bundle.about)
        made = translator.translate(
            SENTENCES, beam_size=4, length_norm="power", max_length=60, split="never",
            no_repeat_ngram=2, min_length=6, copy_spans="never",
        )  # fmt: skip
        rules = {"no_repeat_ngram_size": 2, "min_new_tokens": 6}
        expected = generate(peer, their_tokenizer(folder), SENTENCES, **rules)
        compared += [pair for pair in zip(made, expected, strict=True) if pair[1] is not None]
    assert len(compared) >= 6
    assert all(ours == theirs for ours, theirs in compared)
    assert len({ours for ours, _ in compared}) >= 6  # what is read decides what is printed


def test_a_pickle_of_weights_alone_is_read(make_marian):
    """As older folders have it: half precision, tied matrices under all names, positions."""
    folder, peer = make_marian()
    expected = model_folder.read(folder)
    state = {name: tensor.half() for name, tensor in peer.state_dict().items()}
    assert {"lm_head.weight", "model.encoder.embed_positions.weight"} <= state.keys()
    torch.save(state, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    found = model_folder.read(folder)
    assert found.model.config == expected.model.config
    for name, tensor in get_weights(found.model).items():
        assert tensor.dtype == torch.float32
        torch.testing.assert_close(tensor, get_weights(expected.model)[name], rtol=1e-3, atol=1e-4)


def test_weights_in_several_files_are_read(make_marian):
    folder, peer = make_marian()
    expected = get_weights(model_folder.read(folder).model)
    (folder / "model.safetensors").unlink()
    peer.save_pretrained(folder, max_shard_size="20KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 1
    found = get_weights(model_folder.read(folder).model)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], tensor) for name, tensor in expected.items())


@pytest.mark.parametrize("name", ["as OPUS-MT", "two vocabularies"])
def test_a_vocabulary_padded_to_a_multiple_has_the_logits_of_transformers(make_marian, name):
    plain = make_marian("plain", **FORMS[name]).peer.config
    sizes = [-(-size // 64) * 64 for size in (plain.vocab_size, plain.decoder_vocab_size)]
    assert sizes != [plain.vocab_size, plain.decoder_vocab_size]
    folder, peer = make_marian(**FORMS[name], vocab_size=sizes[0], decoder_vocab_size=sizes[1])
    bundle = model_folder.read(folder)
    theirs = their_logits(peer, their_tokenizer(folder), SENTENCES, TARGETS)
    ours = our_logits(bundle, SENTENCES, TARGETS)
    foreign_ids = bundle.tokenizer.vocabularies[-1].foreign_ids
    silent = bundle.tokenizer.vocabularies[-1].ids_without_logit
    printed = [number for number in range(len(foreign_ids)) if number not in silent]
    assert sorted(foreign_ids[number] for number in printed) == list(range(sizes[1]))
    expected = theirs[..., [foreign_ids[number] for number in printed]]
    torch.testing.assert_close(ours[..., printed], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", WAYS_BACK)
def test_a_model_goes_back_as_it_came(make_marian, tmp_path, name):
    """Import, export: the same tensors to the bit. Import again: the same bundle to the bit."""
    folder, _ = make_marian(**FORMS[name])
    bundle = model_folder.read(folder)
    assert model_folder.unsupported_reasons(bundle) == []
    again = tmp_path / "again"
    again.mkdir()
    model_folder.write(bundle, again)
    before, after = (load_file(one / "model.safetensors") for one in (folder, again))
    used = {key for key in before if key != "model.shared.weight" or name != "output not tied"}
    assert after.keys() == used
    assert all(torch.equal(before[key], after[key]) for key in used)
    for file in ("source.spm", "target.spm"):
        assert (folder / file).read_bytes() == (again / file).read_bytes()
    tables = [json.loads((one / "vocab.json").read_text("utf-8")) for one in (folder, again)]
    assert tables[0] == tables[1]
    assert_same(bundle, model_folder.read(again))


OWN: dict[str, dict[str, Any]] = {
    "the paper's": {},
    "halves": {"position_layout": "halves", "activation": "swish", "output_bias": True},
    "nothing tied": {"tie_embeddings": "none", "activation": "gelu", "scale_embeddings": False},
    "decoder": {"tie_embeddings": "decoder", "num_decoder_layers": 1, "dropout": 0.3},
    "other decoder": {"num_decoder_heads": 4, "decoder_d_ff": 24, "max_length": 77},
    "named sizes": {"d_k": 8, "d_v": 8},
}


@pytest.mark.parametrize("vocabulary", ["prepared", "separate"])
@pytest.mark.parametrize("options", OWN.values(), ids=OWN)
def test_our_models_are_read_by_transformers_and_come_back(toy, tmp_path, options, vocabulary):
    from transformers import MarianMTModel

    if vocabulary == "separate" and "tie_embeddings" not in options:
        options = options | {"tie_embeddings": "decoder"}
    bundle = make_own(getattr(toy, vocabulary).tokenizer, options)
    folder = tmp_path / "marian"
    folder.mkdir()
    model_folder.write(bundle, folder)
    peer, report = MarianMTModel.from_pretrained(folder, output_loading_info=True)
    problems = ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs")
    assert not any(report[kind] for kind in problems if kind in report)
    sources, targets = ["ka to mi", "so lu re ka re"], ["MI TO", "RE KA"]
    theirs = their_logits(peer.eval(), their_tokenizer(folder), sources, targets)
    ours = our_logits(bundle, sources, targets)
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
    assert ours.std() > 0.3
    assert_same(bundle, model_folder.read(folder))


def make_own(tokenizer: Any, options: dict[str, Any]) -> Bundle:
    """A model of ours with random weights everywhere."""
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 2}
    model = build_model("transformer", {**sizes, **options}, tokenizer).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return Bundle(model, tokenizer, {"src_lang": "ko", "tgt_lang": "en", "note": "왕자"})


def assert_same(one: Bundle, other: Bundle) -> None:
    assert one.model.config == other.model.config
    weights, found = get_weights(one.model), get_weights(other.model)
    assert weights.keys() == found.keys()
    assert all(torch.equal(weights[name], found[name]) for name in weights)
    assert type(one.tokenizer) is type(other.tokenizer)
    assert one.tokenizer.fingerprint == other.tokenizer.fingerprint
    assert one.about == other.about


def test_the_reference_of_a_parity_report_uses_our_ids(make_marian):
    """`open_foreign` takes and gives ids of ours, whatever they are called there."""
    for name in ("as OPUS-MT", "two vocabularies", "own start"):
        folder, _ = make_marian(name, **FORMS[name])
        bundle = model_folder.read(folder)
        peer = model_folder.load_reference(folder)
        src = bundle.tokenizer.encode_src(SENTENCES)
        tgt = bundle.tokenizer.encode_tgt(TARGETS)
        ours = our_logits(bundle, SENTENCES, TARGETS)
        for row, ids, theirs in zip(ours, tgt, peer.logits(src, tgt), strict=True):
            torch.testing.assert_close(row[: len(ids)], theirs, rtol=0, atol=1e-5)
        translator = Translator(bundle.model, bundle.tokenizer)
        made = translator.translate(
            SENTENCES, length_norm="power", split="never", max_length=127, copy_spans="never"
        )
        ended = [one.is_finished for one in made]
        assert any(ended)
        for ids, one in zip(peer.translate(src, 4), made, strict=True):
            assert ids == [*one.ids, END_ID] or not one.is_finished


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"norm": "pre", "bias": False}, ["norm = 'pre'", "bias = False"]),
        (
            {"positions": "learned", "layer_norm_eps": 1e-6, "scale": False, "residual": False},
            ["positions = 'learned'", "layer_norm_eps = 1e-06", "scale", "residual"],
        ),
        ({"d_k": 4, "attention_width": 3}, ["d_k = 4", "attention_width = 3"]),
        ({"position_layout": "fairseq"}, ["position_layout = 'fairseq'"]),
    ],
)
def test_all_that_marian_does_not_support_is_reported_at_once(toy, tmp_path, options, named):
    bundle = make_own(toy.prepared.tokenizer, options)
    reasons = model_folder.unsupported_reasons(bundle)
    assert len(reasons) == len(named)
    for reason, name in zip(sorted(reasons), sorted(named), strict=True):
        assert reason.startswith(name)
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError) as raised:
        model_folder.write(bundle, tmp_path / "out", quantization="int8")
    assert all(reason in raised.value.reason for reason in reasons)
    assert "int8" in raised.value.reason
    assert not list((tmp_path / "out").iterdir())


def test_other_kinds_of_model_are_no_marian(toy):
    model = build_model("rnn-attention", {"d_model": 8, "num_layers": 1}, toy.prepared.tokenizer)
    assert (
        "rnn-attention"
        in model_folder.unsupported_reasons(Bundle(model, toy.prepared.tokenizer, {}))[0]
    )


def test_a_start_that_was_the_end_cannot_go_back(make_marian):
    folder, _ = make_marian(start="</s>")
    assert "end symbol" in model_folder.unsupported_reasons(model_folder.read(folder))[0]


def test_padding_is_new_where_it_starts_the_decoder(make_marian):
    folder, peer = make_marian()
    bundle = model_folder.read(folder)
    assert isinstance(bundle.tokenizer, ForeignTokenizer)
    table = json.loads((folder / "vocab.json").read_text("utf-8"))
    order = bundle.tokenizer.vocabularies[0].foreign_ids
    assert order[:4] == [NO_FOREIGN_ID, table["<unk>"], table["<pad>"], table["</s>"]]
    assert len(order) == len(table) + 1
    weight = bundle.model.src_embedding.weight
    assert torch.equal(weight[START_ID], peer.model.shared.weight[table["<pad>"]])
    assert not weight[PAD_ID].any()
    assert bundle.about["max_src_tokens"] == 128
    assert (bundle.about["src_lang"], bundle.about["tgt_lang"]) == ("en", "ko")
