"""The example without PyTorch: its tokenizer and its two searches are Attendo's, word by word."""

from __future__ import annotations

import json
import runpy

import pytest
import torch

from attendo.bundle import Bundle, build_model
from attendo.data.tokenizer_training import train_tokenizer
from attendo.decoding.options import DecodingOptions, SpecialIds
from attendo.decoding.search import search
from attendo.interop.marian import model_folder
from attendo.interop.onnx import export as interop
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.foreign_tokenizer import ForeignSymbols, ForeignTokenizer, ForeignVocabulary
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID, TokenizerConfig
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}
SYMBOLS = SpecialIds(START_ID, END_ID, PAD_ID, UNK_ID)
TEXTS = [
    "ka to mi",
    "  so\u3000lu \u00a0re\t",  # spaces of every kind
    "\ufeffka\u200b t\u00ado",  # invisible characters
    "cafe\u0301 \u1100\u1161",  # NFD, in Latin and in Hangul
    "ka\u3164to\uffa0mi",  # Hangul fillers
    "ka \u2581to \uf8fe1 \uf8fe",  # SentencePiece's space, and our escape
    "unknown WORDS ☃ 1,000",
    "\x07ka\x00",
    ">>eng<< ka to",
    "ka >>eng<< to",
]


@pytest.fixture(scope="module")
def example(repository):
    return runpy.run_path(str(repository / "examples" / "onnx_translate.py"))


@pytest.fixture
def export(example, tmp_path):
    """Write a bundle and open it as the example does: its tokenizer and its model."""

    def make(bundle: Bundle):
        interop.write(bundle, tmp_path)
        info = json.loads((tmp_path / "onnx.json").read_text(encoding="utf-8"))
        return example["Tokenizer"](tmp_path, info), example["Model"](tmp_path, info)

    return make


def make_bundle(tokenizer, **options) -> Bundle:
    """Make a model that ends some translations early, some late and some not at all."""
    sizes = {**SIZES, "tie_embeddings": "none", "output_bias": True, **options}
    model = build_model("transformer", sizes, tokenizer).eval()
    with torch.no_grad():
        model.output.weight.normal_()
        model.output.bias.zero_()[END_ID] = 0.5
        model.output.bias[UNK_ID] = 2.0  # it would like to say what no search lets it say
    return Bundle(model, tokenizer, {})


def import_tokenizer(toy, code: str | None) -> ForeignTokenizer:
    """Map the pieces of the toy to the ids of a Marian model: shuffled, padding last."""
    own = toy.separate.tokenizer
    pieces = own.src_pieces(range(4, own.src_vocab_size)) + own.tgt_pieces(
        range(4, own.tgt_vocab_size)
    )
    listed = ["</s>", "<unk>", ">>eng<<", *reversed(pieces), ">>kor<<", "<pad>"]
    last = len(listed) - 1
    symbols = ForeignSymbols(pad=last, unk=1, start=last, end=0)
    return ForeignTokenizer(own.models, [ForeignVocabulary(listed, symbols)], language_code=code)


TOKENIZERS = {
    "words": lambda toy: toy.prepared.tokenizer,
    "words of two sides": lambda toy: toy.separate.tokenizer,
    "pieces and bytes": lambda toy: train_tokenizer(
        toy.src, toy.tgt, TokenizerConfig(), num_pairs=200, seed=1
    ),
    "imported": lambda toy: import_tokenizer(toy, None),
    "imported with a code": lambda toy: import_tokenizer(toy, ">>kor<<"),
}


@pytest.mark.parametrize("make", TOKENIZERS.values(), ids=TOKENIZERS)
def test_texts_become_the_same_ids_and_ids_the_same_texts(toy, export, make):
    tokenizer = make(toy)
    found, _ = export(make_bundle(tokenizer))
    assert [found.encode(text) for text in TEXTS] == tokenizer.encode_src(TEXTS)
    assert [found.encode(text) for text in ("", " \u200b\n")] == [[], []]
    rows = [
        list(range(4, tokenizer.tgt_vocab_size)),
        [5, 4, 4],
        [7],
        tokenizer.encode_tgt(TEXTS)[5],
    ]
    rows[3] = [number for number in rows[3] if number not in (UNK_ID, END_ID)]
    assert [found.decode(row) for row in rows] == tokenizer.decode_tgt(rows)


@pytest.mark.parametrize("alpha", [0.6, 2.0])
@pytest.mark.parametrize("likes_to_end", [0.5, 3.0])
@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_searches_find_the_same_ids(toy, example, export, beam_size, likes_to_end, alpha):
    bundle = make_bundle(toy.prepared.tokenizer)
    with torch.no_grad():
        bundle.model.output.bias[END_ID] = likes_to_end
    size = bundle.tokenizer.src_vocab_size
    sources = [
        [*torch.randint(4, size, (number % 9 + 1,)).tolist(), END_ID] for number in range(40)
    ]
    _, model = export(bundle)
    model.info["decoding"]["alpha"] = alpha
    found = example["search"](model, sources, beam_size)
    options = DecodingOptions(beam_size=beam_size, alpha=alpha)
    batch = torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in sources], True)
    best = [one.hypotheses[0] for one in search(bundle.model, batch, SYMBOLS, options)]
    assert found == [one.ids for one in best]
    assert len({len(one.ids) for one in best}) > 2  # it ends early, late, or not at all


def test_a_translation_ends_at_the_last_learned_position(toy, example, export):
    bundle = make_bundle(toy.prepared.tokenizer, positions="learned", max_length=12)
    with torch.no_grad():  # it never ends by itself
        bundle.model.output.bias[END_ID] = -1e4
    _, model = export(bundle)
    for beam_size in (1, 4):
        (found,) = example["search"](model, [[4, 5, END_ID]], beam_size)
        options = DecodingOptions(beam_size=beam_size, max_length=12)
        (expected,) = search(bundle.model, torch.tensor([[4, 5, END_ID]]), SYMBOLS, options)
        assert found == expected.hypotheses[0].ids
        assert len(found) == 12


def test_more_texts_than_a_batch_come_back_in_order(toy, example, export, tmp_path):
    bundle = make_bundle(toy.prepared.tokenizer)
    export(bundle)
    texts = toy.src.read_text(encoding="utf-8").splitlines()[:70]
    texts[3] = texts[40] = ""
    found = list(example["translate"](tmp_path, texts, beam_size=1))
    assert found == Translator(bundle.model, bundle.tokenizer).translate(texts, beam_size=1)
    assert list(example["translate"](tmp_path, ["", " "], beam_size=4)) == ["", ""]


@pytest.mark.parametrize(
    "options",
    [
        {"codes": (">>fra<<", ">>deu<<")},
        {"separate": True, "share_encoder_decoder_embeddings": False},
    ],
    ids=["codes", "two vocabularies"],
)
def test_an_imported_model_has_the_same_output(make_marian, example, export, tmp_path, options):
    bundle = model_folder.read(make_marian(**options).folder)
    with torch.no_grad():  # it says something before it ends
        bundle.model.output.bias[END_ID] -= 2.0
    export(bundle)
    texts = [pair.en for pair in synthesize_pairs(20, seed=3)]
    if "codes" in options:
        texts[4] = f">>deu<< {texts[4]}"
    translator = Translator(bundle.model, bundle.tokenizer)
    for beam_size in (1, 4):
        expected = translator.translate(texts, beam_size=beam_size, split="never")
        assert list(example["translate"](tmp_path, texts, beam_size)) == expected
        assert len(set(expected)) > 3, expected
