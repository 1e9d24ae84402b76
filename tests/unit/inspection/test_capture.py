"""The record of a sentence, against what is computed by hand."""

from __future__ import annotations

import math
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from attendo.bundle import build_model
from attendo.core.errors import AttendoError, ConfigError, InputError
from attendo.core.protocols import Explanation, Memory
from attendo.data.tokenizer_training import train_tokenizer
from attendo.decoding.ensemble import Ensemble
from attendo.decoding.trace import replay
from attendo.inspection import Record, capture
from attendo.inspection.record import KINDS
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID, TokenizerConfig
from attendo.translator import Translator

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 4, "num_layers": 2}
TEXT = "ka to mi re so"
KOREAN = ["나는", "너는", "학생이다", "학교에", "간다", "왕자는", "공주를", "구했다", "어제"]
ENGLISH = ["he", "you", "am", "a", "student", "go", "to", "school", "the", "prince", "saved", "it"]


@pytest.fixture
def make_translator(toy):
    """A small model with random weights; `about` and options of the model."""

    def make(about=None, *, tokenizer=None, **options) -> Translator:
        tokenizer = tokenizer or toy.prepared.tokenizer
        model = build_model("transformer", {**SIZES, **options}, tokenizer)
        with torch.no_grad():
            for weight in model.parameters():  # far from uniform attention, biases too
                weight.add_(torch.randn_like(weight) * 0.3)
        return Translator(model.eval(), tokenizer, about=about)

    return make


@pytest.fixture(scope="module")
def bpe(tmp_path_factory):
    """Byte pairs of Korean and English, with bytes for what was never seen."""
    folder = tmp_path_factory.mktemp("bpe")
    rng = random.Random(3)  # noqa: S311 - text, no secret
    for name, words in (("src", KOREAN), ("tgt", ENGLISH)):
        lines = (" ".join(rng.choices(words, k=rng.randint(2, 8))) for _ in range(400))
        (folder / name).write_text("".join(f"{line}.\n" for line in lines), encoding="utf-8")
    config = TokenizerConfig(vocab_size=330)
    return train_tokenizer(folder / "src", folder / "tgt", config, num_pairs=400, seed=1)


def ids_of(side) -> list[int]:
    return [token["id"] for token in side["tokens"]]


# ---- the paper's formulas, written out -------------------------------------------------------


def softmax(scores):
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def layer_norm(x, norm):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + norm.eps) * norm.weight.numpy() + norm.bias.numpy()


def linear(x, module):
    return x @ module.weight.numpy().T + module.bias.numpy()


def attend(attention, query, memory, mask):
    """Return the output (T, D) and the weights (H, T, S)."""
    q, k, v = (
        linear(query, attention.query),
        linear(memory, attention.key),
        linear(memory, attention.value),
    )
    outputs, weights = [], []
    queries, keys, values = (np.split(part, attention.num_heads, axis=1) for part in (q, k, v))
    for query, key, value in zip(queries, keys, values, strict=True):
        scores = query @ key.T / math.sqrt(query.shape[1])
        weights.append(softmax(np.where(mask, scores, -np.inf)))
        outputs.append(weights[-1] @ value)
    return linear(np.concatenate(outputs, axis=1), attention.output), np.stack(weights)


def embed(model, table, ids):
    d_model = table.weight.shape[1]
    directories = [
        [
            (math.sin if d % 2 == 0 else math.cos)(directory / 10_000 ** (2 * (d // 2) / d_model))
            for d in range(d_model)
        ]
        for directory in range(len(ids))
    ]
    return table.weight.numpy()[ids] * math.sqrt(d_model) + np.array(directories)


def feed_forward(layer, x):
    inner, outer = (m for m in layer.feed_forward.modules() if isinstance(m, torch.nn.Linear))
    out = linear(np.maximum(linear(x, inner), 0.0), outer)
    return layer_norm(x + out, layer.feed_forward_add.norm)


def explain_by_hand(model, src, fed):
    """Return the weights of every kind, (L, H, rows, columns), and the logits (T, V)."""
    reported = {kind: [] for kind in KINDS}
    x = embed(model, model.src_embedding, src)
    everything = np.ones((len(src), len(src)), dtype=bool)
    for layer in model.encoder.layers:
        out, weights = attend(layer.self_attention, x, x, everything)
        x = feed_forward(layer, layer_norm(x + out, layer.self_add.norm))
        reported["encoder_self"].append(weights)
    y = embed(model, model.tgt_embedding, fed)
    past = np.tril(np.ones((len(fed), len(fed)), dtype=bool))
    for layer in model.decoder.layers:
        out, weights = attend(layer.self_attention, y, y, past)
        y = layer_norm(y + out, layer.self_add.norm)
        reported["decoder_self"].append(weights)
        out, weights = attend(
            layer.cross_attention, y, x, np.ones((len(fed), len(src)), dtype=bool)
        )
        y = feed_forward(layer, layer_norm(y + out, layer.cross_add.norm))
        reported["cross"].append(weights)
    return {
        kind: np.stack(layers) for kind, layers in reported.items()
    }, y @ model.output.weight.numpy().T


@pytest.mark.parametrize("given", [None, "RE MI TO KA"])
def test_attention_and_steps_equal_the_formulas_of_the_paper(make_translator, given):
    translator = make_translator(d_k=3)  # a head size that is not d_model / num_heads
    model = translator.model.double().requires_grad_(False)
    record = capture(translator, TEXT, given)
    src, printed = ids_of(record.src), ids_of(record.tgt)
    assert src == translator.tokenizer.encode_src([TEXT])[0]
    weights, logits = explain_by_hand(model, src, [START_ID, *printed[:-1]])
    for kind in KINDS:
        assert np.abs(record.attention(kind) - weights[kind]).max() < 1e-6, kind
        assert weights[kind].std(-1).max() > 0.05  # no uniform rows: an error would show
    probabilities = softmax(logits)
    for step, probability, token in zip(record.steps, probabilities, printed, strict=True):
        assert step["probability"] == pytest.approx(probability[token], rel=1e-4)
        assert step["log_prob"] == pytest.approx(math.log(probability[token]), rel=1e-4)
        assert step["entropy"] == pytest.approx(
            -(probability * np.log(probability)).sum(), rel=1e-4
        )
        best = np.argsort(-probability)[:10].tolist()
        assert [one["id"] for one in step["top"]][:10] == best
        assert step["top"][0]["probability"] == pytest.approx(probability.max(), rel=1e-4)


# ---- any model that keeps the contract -------------------------------------------------------


class Pointer:
    """Says after each id what `follow` tells, and looks at the source token of that number.

    It has no self-attention.
    """

    def __init__(self, tokenizer, follow):
        size = tokenizer.tgt_vocab_size
        following = torch.tensor([follow(number) for number in range(size)])
        self.table = 9.0 * torch.nn.functional.one_hot(following, size).float()

    def encode(self, src_ids, *_masks):
        return Memory(src_ids, src_ids.ne(PAD_ID)[:, None])

    def start(self, memory):
        return memory.states

    def step(self, ids, state):
        return self.table[ids], state

    def reorder(self, state, index):
        return state[index]

    def forward(self, _src_ids, tgt_ids, **_masks):
        return self.table[tgt_ids]

    def explain(self, src_ids, tgt_ids, **_masks):
        columns = tgt_ids[0] % src_ids.size(1)
        cross = torch.nn.functional.one_hot(columns, src_ids.size(1)).float()[None, None]
        return Explanation(self.table[tgt_ids], (), (), (cross,))


def point(tokenizer, printed) -> Translator:
    """A model that says just that."""
    chain = dict(zip((START_ID, *printed), (*printed, END_ID), strict=True))
    return Translator(Pointer(tokenizer, lambda number: chain.get(number, END_ID)), tokenizer)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_row_belongs_to_the_step_that_outputs_its_token(toy, beam_size):
    tokenizer = toy.prepared.tokenizer
    printed = [9, 6, 8, 7, END_ID]
    record = capture(point(tokenizer, printed[:-1]), TEXT, beam_size=beam_size)
    assert ids_of(record.tgt) == printed
    num_src = len(record.src["tokens"])
    looked_at = record.attention("cross")[0, 0].argmax(-1).tolist()
    assert looked_at == [before % num_src for before in (START_ID, *printed[:-1])]
    sure = math.exp(9) / (math.exp(9) + tokenizer.tgt_vocab_size - 1)
    assert [step["probability"] for step in record.steps] == pytest.approx([sure] * 5, rel=1e-5)


def test_a_kind_that_the_model_has_not_is_null(toy):
    tokenizer = toy.prepared.tokenizer
    translator = point(tokenizer, [5, 6])
    translator.about["name"] = "pointer-1"
    record = capture(translator, TEXT)
    facts = record.to_dict()
    assert record.kinds == ("cross",)
    assert facts["attention"]["encoder_self"] is facts["attention"]["decoder_self"] is None
    assert facts["measures"]["encoder_self"] == facts["measures"]["decoder_self"] == []
    assert facts["positions"] is facts["embeddings"] is None
    assert facts["model"] == {
        "name": "pointer-1",
        "kind": "pointer",
        "num_layers": None,
        "num_decoder_layers": 1,
        "num_heads": 1,
        "d_model": None,
        "num_parameters": None,
        "src_lang": None,
        "tgt_lang": None,
    }
    assert Record.from_dict(facts).kinds == ("cross",)
    with pytest.raises(InputError, match="no encoder_self attention"):
        record.attention("encoder_self")


def test_an_ensemble_has_the_layers_of_all(make_translator, toy):
    models = [make_translator().model for _ in range(2)]
    tokenizer = toy.prepared.tokenizer
    record = capture(Translator(Ensemble(models), tokenizer), TEXT, "SO RE")
    alone = [capture(Translator(model, tokenizer), TEXT, "SO RE") for model in models]
    for kind in KINDS:
        both = np.concatenate([one.attention(kind) for one in alone])
        assert np.allclose(record.attention(kind), both)
    means = [np.mean([one.steps[t]["probability"] for one in alone]) for t in range(3)]
    assert [step["probability"] for step in record.steps] == pytest.approx(means, rel=1e-4)
    models[1] = make_translator(num_heads=2).model
    with pytest.raises(InputError, match="different numbers of heads"):
        capture(Translator(Ensemble(models), tokenizer), TEXT, "SO RE")


# ---- the search ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "method"),
    [
        ({"beam_size": 4}, "beam"),
        ({"beam_size": 1}, "greedy"),
        ({"do_sample": True, "seed": 5}, "sampling"),
    ],
)
def test_what_a_search_found_is_explained_exactly(make_translator, options, method):
    translator = make_translator()
    made = translator.translate([TEXT], **options)[0]
    record = capture(translator, TEXT, **options)
    printed = ids_of(record.tgt)
    assert record.tgt["text"] == made
    assert printed == [*made.ids, *([END_ID] if made.is_finished else [])]
    assert record.search["method"] == method
    assert record.search["log_prob"] == pytest.approx(made.log_prob, rel=1e-4)
    assert record.search["score"] == pytest.approx(made.score, rel=1e-4)
    assert record.search["is_finished"] is made.is_finished
    assert replay(record.beam)[0] == made.ids
    assert all("token" in one for step in record.beam["steps"] for one in step["candidates"])
    with torch.inference_mode():
        reported = translator.model.explain(
            torch.tensor([ids_of(record.src)]), torch.tensor([[START_ID, *printed[:-1]]])
        )
    for kind in KINDS:
        layers = np.stack([layer[0].numpy() for layer in reported[kind]])
        assert np.array_equal(record.attention(kind), layers)


def test_steps_sum_to_the_score_of_the_search(make_translator):
    record = capture(make_translator(), TEXT)
    total = sum(step["log_prob"] for step in record.steps)
    assert total == pytest.approx(record.search["log_prob"], rel=1e-4)


def test_a_given_target_is_scored(make_translator):
    translator = make_translator(about={"calibration": {"temperature": 3.0}})
    record = capture(translator, TEXT, "SO RE MI")
    tgt = translator.tokenizer.encode_tgt(["SO RE MI"])[0]
    scored = translator.backend.score(translator.tokenizer.encode_src([TEXT]), [tgt[:-1]])[0]
    assert ids_of(record.tgt) == tgt
    assert [step["log_prob"] for step in record.steps] == pytest.approx(scored, rel=1e-4)
    assert record.search["log_prob"] == pytest.approx(sum(scored), rel=1e-4)
    assert record.search["method"] == "given"
    assert record.search["is_finished"] is True
    assert record.beam is None


def test_an_unlikely_output_is_listed_too(make_translator):
    record = capture(make_translator(), TEXT, "SO RE MI KA TO LU", top=1)
    for step, token in zip(record.steps, record.tgt["tokens"], strict=True):
        ids = [one["id"] for one in step["top"]]
        assert ids[-1] == token["id"]
        assert len(ids) == (1 if ids[0] == token["id"] else 2)
        assert (
            step["top"][-1]["probability"] == step["probability"] <= step["top"][0]["probability"]
        )
    assert any(len(step["top"]) == 2 for step in record.steps)


def test_one_that_did_not_end_has_no_end_symbol(make_translator):
    record = capture(make_translator(), TEXT, max_length=3, min_length=3)
    assert len(record.tgt["tokens"]) == len(record.steps) == 3
    assert END_ID not in ids_of(record.tgt)
    assert record.search["is_finished"] is False
    assert record.notes == ["cut after 3 tokens"]


def test_a_sentence_that_ends_at_once(toy):
    tokenizer = toy.prepared.tokenizer
    record = capture(point(tokenizer, []), "ka")
    assert record.tgt["text"] == ""
    assert record.tgt["words"] == []
    assert ids_of(record.tgt) == [END_ID]
    assert record.attention("cross").shape == (1, 1, 1, 2)


# ---- masks -----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [None, 3])
def test_rows_sum_to_one_over_what_the_mask_allows(make_translator, width):
    record = capture(make_translator(attention_width=width), TEXT, "SO RE MI KA TO LU")
    for kind in KINDS:
        weights = record.attention(kind)
        assert np.allclose(weights.sum(-1), 1.0, atol=1e-6)
        rows, columns = np.indices(weights.shape[2:])
        may_see = np.ones(rows.shape, dtype=bool)
        if kind == "decoder_self":
            may_see &= columns <= rows
        if kind != "cross" and width:
            may_see &= abs(rows - columns) <= 1
        assert (weights[:, :, ~may_see] == 0).all()
        assert (weights[:, :, may_see] > 0).all()


def test_focus_counts_only_what_a_narrow_attention_may_see(make_translator):
    translator = make_translator(attention_width=3)
    with torch.no_grad():
        for layer in translator.model.encoder.layers:  # every score is the same
            layer.self_attention.query.weight.zero_()
            layer.self_attention.query.bias.zero_()
    record = capture(translator, TEXT, "SO")
    assert [head["focus"] for head in record.measures["encoder_self"][0]] == [0.0] * 4


def test_dropout_is_off_and_the_mode_comes_back(make_translator):
    translator = make_translator(dropout=0.8)
    quiet = capture(translator, TEXT)
    translator.model.train()
    loud = capture(translator, TEXT)
    assert translator.model.training
    assert loud.to_json() == quiet.to_json()


# ---- text ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "나는 학생이다.",
        "어제 뷁스러운 왕자는 😀😀 공주를 구했다.",
        "▁ 나는▁ \uf8fe1 <unk> <0x41>",
        "école 😀",
    ],
)
def test_tokens_join_to_words_and_words_to_the_text(make_translator, bpe, text):
    record = capture(make_translator(tokenizer=bpe), text, text)
    for side in (record.src, record.tgt):
        assert side["text"] == " ".join(side["words"]) == text
        assert side["words"] == text.split()
        for directory, word in enumerate(side["words"]):
            own = [token["text"] for token in side["tokens"] if token["word"] == directory]
            assert "".join(own) == word
        assert side["tokens"][-1] == {"id": END_ID, "piece": "</s>", "text": "", "word": None}
    assert record.src["tokens"] == record.tgt["tokens"]  # one vocabulary, one text


def test_the_last_byte_of_a_character_shows_it(make_translator, bpe):
    tokens = capture(make_translator(tokenizer=bpe), "나는 뷁", "I").src["tokens"]
    shown = [(token["piece"], token["text"], token["word"]) for token in tokens]
    assert shown == [
        ("▁나는", "나는", 0),
        ("▁", "", 1),
        ("<0xEB>", "", 1),
        ("<0xB7>", "", 1),
        ("<0x81>", "뷁", 1),
        ("</s>", "", None),
    ]


@pytest.mark.parametrize(
    ("pieces", "texts", "words"),
    [
        (["<0xEB>", "<0xB7>", "▁s"], ["", "�", "s"], ["�", "s"]),  # a character without its end
        (["▁s", "▁", "▁나는"], ["s", "", "나는"], ["s", "나는"]),  # a space by itself is no word
        (["▁s", "<unk>", "▁나는"], ["s", "⁇", "나는"], ["s⁇", "나는"]),
    ],
)
def test_pieces_that_no_text_gives_but_a_model_may_generate(bpe, pieces, texts, words):
    all_pieces = bpe.tgt_pieces(range(bpe.tgt_vocab_size))
    printed = [all_pieces.index(piece) for piece in pieces]
    side = capture(point(bpe, printed), "나는", unk="keep").tgt
    assert ids_of(side) == [*printed, END_ID]
    assert [token["text"] for token in side["tokens"]] == [*texts, ""]
    assert side["words"] == words


def test_an_unknown_word_is_shown_as_it_was_read(make_translator):
    record = capture(make_translator(), "ka zork ka", "KA ZORK KA")
    assert [token["id"] == UNK_ID for token in record.src["tokens"]] == [False, True, False, False]
    assert record.src["words"] == ["ka", "zork", "ka"]
    assert record.tgt["words"] == ["KA", "⁇", "KA"]
    assert record.tgt["text"] == "KA ZORK KA"


def test_lines_are_one_sentence(make_translator):
    record = capture(make_translator(), " ka to\n\nmi\u200b  re\n")
    assert record.src["text"] == "ka to mi re"
    assert record.beam["format"] == "attendo.trace"


# ---- too long --------------------------------------------------------------------------------


def test_500_tokens_are_cut_to_the_window_after_a_word(make_translator, bpe, caplog):
    text = " ".join(["왕자는", "뷁", "학교에"] * 100)  # the end of the window falls into a word
    assert len(bpe.encode_src([text])[0]) > 500
    with caplog.at_level("WARNING", logger="attendo"):
        record = capture(make_translator(tokenizer=bpe), text, max_length=5)
    count = len(bpe.encode_src([text])[0])
    assert record.notes[0] == f"source: cut to a window of 256 tokens of {count}"
    assert caplog.messages[0] == record.notes[0]
    words = record.src["words"]
    assert words == text.split()[: len(words)]
    assert 250 <= len(record.src["tokens"]) <= 256
    assert ids_of(record.src) == bpe.encode_src([" ".join(words)])[0]
    fuller = " ".join(text.split()[: len(words) + 1])
    assert len(bpe.encode_src([fuller])[0]) > 256  # no word less than fits


def test_a_given_target_is_cut_too(make_translator, bpe):
    tgt = " ".join(["the", "student", "saved", "it"] * 30)
    record = capture(make_translator(tokenizer=bpe), "나는 간다", tgt, window=20)
    whole = bpe.encode_tgt([tgt])[0]
    assert record.notes == [f"target: cut to a window of 20 tokens of {len(whole)}"]
    printed = ids_of(record.tgt)
    assert printed == whole[: len(printed)]
    assert 15 <= len(printed) <= 20
    assert record.tgt["words"] == tgt.split()[: len(record.tgt["words"])]
    assert record.search["is_finished"] is False


def test_one_endless_word_is_cut_inside_between_characters(make_translator, bpe):
    text = "뷁" * 300
    record = capture(make_translator(tokenizer=bpe), text, "I", window=64)
    assert len(record.src["tokens"]) <= 64
    assert record.src["words"] == ["뷁" * ((64 - 2) // 3)]


def test_a_translation_never_leaves_the_window(toy):
    tokenizer = toy.prepared.tokenizer
    endless = Translator(Pointer(tokenizer, lambda _: 4), tokenizer)
    record = capture(endless, TEXT, window=8)
    assert len(record.tgt["tokens"]) == 8
    assert record.notes == ["cut after 8 tokens"]


def test_longer_than_in_training_is_one_piece_with_a_note(make_translator):
    translator = make_translator(about={"max_src_tokens": 4})
    assert translator.translate([TEXT])[0].notes[0] == "translated in 2 pieces"
    record = capture(translator, TEXT, max_length=9)
    assert record.src["text"] == TEXT
    assert record.notes[0] == "source: 6 tokens, longer than any in training (4)"
    assert translator.max_src_tokens == 4
    assert "translated in 2 pieces" not in record.notes
    printed = [number for number in ids_of(record.tgt) if number != END_ID]
    whole = Translator(translator.model, translator.tokenizer)
    assert printed == replay(record.beam)[0] == whole.translate([TEXT], max_length=9)[0].ids


def test_learned_positions_end_the_window(make_translator):
    translator = make_translator(positions="learned", max_length=10)
    record = capture(translator, " ".join(["ka"] * 40))
    assert record.notes[0] == "source: cut to a window of 10 tokens of 41"
    assert len(record.src["tokens"]) == 10
    assert len(record.tgt["tokens"]) <= 10


# ---- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (("",), {}, "text is empty"),
        ((" \n\u200b",), {}, "text is empty"),
        ((["ka"],), {}, "text: expected str, got list"),
        (("ka", ""), {}, "tgt is empty"),
        (("ka", ["KA"]), {}, "tgt: expected str, got list"),
        (("ka", "KA"), {"alpha": 1.0}, "search options do not apply to a given target: alpha"),
        (("ka",), {"window": 7}, "window = 7: at least 8"),
        (("ka",), {"top": 0}, "top = 0: at least 1"),
        (("ka",), {"beam_sise": 3}, "beam_sise"),
    ],
)
def test_what_cannot_be_captured(make_translator, arguments, options, message):
    with pytest.raises((InputError, ConfigError), match=message) as caught:
        capture(make_translator(), *arguments, **options)
    assert caught.value.hint or caught.value.reasons


@pytest.mark.parametrize("tgt", [None, "KA"])
def test_a_broken_model_is_reported(make_translator, tgt):
    translator = make_translator()
    translator.model.output.weight.data[5] = torch.nan
    with pytest.raises(AttendoError, match="NaN"):
        capture(translator, TEXT, tgt)


def test_facts_of_the_model(make_translator):
    translator = make_translator(
        about={"src_lang": "ko", "tgt_lang": "en"}, num_layers=3, num_decoder_layers=1
    )
    record = capture(translator, TEXT, "KA")
    assert record.model == {
        "name": "ko-en",
        "kind": "transformer",
        "num_layers": 3,
        "num_decoder_layers": 1,
        "num_heads": 4,
        "d_model": 16,
        "num_parameters": translator.model.num_parameters(),
        "src_lang": "ko",
        "tgt_lang": "en",
    }
    assert record.attention("encoder_self").shape == (3, 4, 6, 6)
    assert record.attention("decoder_self").shape == (1, 4, 2, 2)
    assert record.attention("cross").shape == (1, 4, 2, 6)


def test_parts_can_be_left_out(make_translator):
    translator = make_translator()
    whole = capture(translator, TEXT, "KA")
    assert whole.positions["num_positions"] == 64
    assert [len(near) for near in whole.embeddings["src"]] == [5, 5, 5, 5, 5, 0]
    assert len(whole.embeddings["tgt"]) == 2
    less = capture(translator, TEXT, "KA", positions=False, neighbors=False)
    assert less.positions is less.embeddings is None
    assert SimpleNamespace(**less.to_dict()).positions is None
