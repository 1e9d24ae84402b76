from __future__ import annotations

import math

import pytest
import torch

from attendo.bundle import build_model
from attendo.core.errors import ConfigError, InputError
from attendo.core.protocols import Memory
from attendo.data.tokenizer_training import train_tokenizer
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.tokenizer import END_ID, START_ID, TokenizerConfig
from attendo.translator import Translator
from attendo.translator.word_suggestions import next_words

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


class Table:
    """The next token depends on the last alone: `table[last]` are the probabilities of ids."""

    def __init__(self, table: dict[int, dict[int, float]], size: int) -> None:
        self.table, self.size = table, size
        self.read: list[list[int]] = []

    def encode(self, src_ids, *_masks) -> Memory:
        self.read += src_ids.tolist()
        return Memory(src_ids, src_ids[:, None].ne(0))

    def start(self, memory):
        return torch.zeros(len(memory.states))

    def step(self, ids, state):
        assert len(ids) == len(state)
        logits = torch.full((len(ids), self.size), -30.0)
        for row, last in enumerate(ids.tolist()):
            for number, probability in self.table.get(last, {END_ID: 1.0}).items():
                logits[row, number] = math.log(probability)
        return logits, state

    def reorder(self, state, index):
        return state[index]


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    """One of byte-pair pieces, one of letters, both of Korean and English."""
    folder = tmp_path_factory.mktemp("texts")
    paths = [folder / name for name in ("ko", "en")]
    for path in paths:
        lines = [getattr(pair, path.name) for pair in synthesize_pairs(300, seed=1)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {
        kind: train_tokenizer(
            *paths, TokenizerConfig(kind=kind, vocab_size=size), num_pairs=300, seed=1
        )
        for kind, size in (("bpe", 800), ("char", None))
    }


@pytest.fixture
def generate(tokenizers):
    """Make a translator of a table whose tokens are written as pieces."""

    def make(kind: str, table: dict[str, dict[str, float]]) -> Translator:
        tokenizer = tokenizers[kind]
        size = tokenizer.tgt_vocab_size
        ids = {piece: n for n, piece in enumerate(tokenizer.tgt_pieces(range(size)))}
        ids |= {"START": START_ID, "END": END_ID}
        numbered = {ids[a]: {ids[b]: p for b, p in row.items()} for a, row in table.items()}
        return Translator(Table(numbered, size), tokenizer)

    return make


def reported(words) -> dict[str, float]:
    return {word.text: round(word.probability, 4) for word in words}


def test_words_are_completed_and_sorted_by_probability(generate):
    translator = generate(
        "bpe",
        {
            "START": {"▁I": 0.6, "▁The": 0.3, "▁s": 0.1},
            "▁s": {"he": 0.7, "▁the": 0.3},
            "he": {"▁the": 0.9, "END": 0.1},
            "▁I": {"▁the": 1.0},
        },
    )
    assert reported(next_words(translator, "나는")) == {"I": 0.6, "The": 0.3, "she": 0.07}
    assert [word.prefix for word in next_words(translator, "나는", top=2)] == ["I", "The"]


def test_a_word_that_is_spelt_in_two_ways_is_one(generate):
    translator = generate(
        "bpe", {"START": {"▁t": 0.5, "▁the": 0.4, "▁I": 0.1}, "▁t": {"h": 1.0},
                "h": {"e": 0.8, "END": 0.2}}
    )  # fmt: skip
    found = reported(next_words(translator, "나는"))
    assert found == {"the": 0.8, "I": 0.1}  # 0.4 + 0.5 * 1.0 * 0.8


def test_after_a_prefix_come_words_and_marks_not_the_rest_of_its_last_word(generate):
    table = {"START": {"▁the": 1.0}, "▁the": {"y": 0.5, "▁I": 0.2, ".": 0.1, "END": 0.2}}
    found = next_words(generate("bpe", table), "나는", "the")
    assert reported(found) == {"I": 0.2, ".": 0.1}
    assert [word.prefix for word in found] == ["the I", "the."]


def test_letters_make_words_too(generate):
    table = {
        "START": {"▁": 1.0},
        "▁": {"w": 0.6, "s": 0.4},
        "w": {"e": 0.9, "▁": 0.1},
        "s": {"h": 1.0},
        "h": {"e": 1.0},
        "e": {"▁": 0.7, "END": 0.3},
    }
    assert reported(next_words(generate("char", table), "나는")) == {"we": 0.54, "she": 0.4}


def test_a_word_without_an_end_is_cut(generate):
    (found,) = next_words(
        generate("bpe", {"START": {"▁s": 1.0}, "▁s": {"e": 1.0}, "e": {"e": 1.0}}), "나"
    )
    assert found.text == "s" + "e" * 16


def find_slowly(translator: Translator, text: str, prefix: str) -> dict[str, float]:
    """Every first token that begins a word, completed by whole passes without a cache."""
    tokenizer, model = translator.tokenizer, translator.model.eval()
    src_ids = torch.tensor(tokenizer.encode_src([text]))
    printed = tokenizer.encode_tgt([prefix])[0][:-1] if prefix else []
    pieces = tokenizer.tgt_pieces(range(tokenizer.tgt_vocab_size))

    def next_probs(ids: list[int]) -> torch.Tensor:
        logits = model(src_ids, torch.tensor([[START_ID, *ids]]))[0, -1]
        return (logits / translator.temperature).softmax(-1)

    found: dict[str, float] = {}
    for first, probability in enumerate(next_probs(printed).tolist()):
        if first <= END_ID or not pieces[first].startswith("▁") or pieces[first] == "▁":
            continue
        ids = [first]
        while len(ids) <= 16:
            probs = next_probs([*printed, *ids])
            probs[:END_ID] = 0.0  # never said: padding, unknown, start
            best = int(probs.argmax())
            if best == END_ID or pieces[best].startswith("▁"):
                break
            probability *= float(probs[best])
            ids.append(best)
        word = tokenizer.decode_tgt([ids])[0]
        found[word] = found.get(word, 0.0) + probability
    return found


@torch.no_grad()
@pytest.mark.parametrize("prefix", ["The boy", "It is"])
def test_words_and_probabilities_are_those_of_the_model(tokenizers, prefix):
    torch.manual_seed(3)
    tokenizer = tokenizers["bpe"]
    about = {"calibration": {"temperature": 0.8}}
    translator = Translator(build_model("transformer", SIZES, tokenizer), tokenizer, about=about)
    slow = find_slowly(translator, "소년은 학생이다.", prefix)
    # of all words, or a short word of a less likely token might come before a long one
    found = next_words(translator, "소년은 학생이다.", prefix, top=64)
    whole = {word.text: word.probability for word in found if word.text[0].isalnum()}
    shared = whole.keys() & slow.keys()
    assert len(shared) >= 10
    assert {w: whole[w] for w in shared} == pytest.approx({w: slow[w] for w in shared}, rel=1e-3)
    assert max(slow, key=slow.__getitem__) in whole
    assert [word.probability for word in found] == sorted(
        (word.probability for word in found), reverse=True
    )


def test_of_several_sentences_the_one_that_the_prefix_has_reached(generate):
    translator = generate("bpe", {"START": {"▁I": 1.0}, "▁I": {"▁the": 1.0}})
    text = "나는 간다. 소년은 온다."
    read = translator.model.read = []
    (found,) = next_words(translator, text, "He goes.")
    assert (found.text, found.prefix) == ("I", "He goes. I")
    (found,) = next_words(translator, text, "He goes. I")
    assert (found.text, found.prefix) == ("the", "He goes. I the")
    (found,) = next_words(translator, "나는\n소년은", "the\n")
    assert (found.text, found.prefix) == ("I", "the\nI")
    next_words(translator, text, "He")
    wanted = ["소년은 온다.", "소년은 온다.", "소년은", "나는 간다."]
    assert read == translator.tokenizer.encode_src(wanted)


def test_rejects_what_cannot_be(uppercaser):
    with pytest.raises(InputError, match="empty"):
        next_words(uppercaser, " \n ")
    with pytest.raises(InputError, match="cannot write"):
        next_words(uppercaser, "ka", "☃")
    with pytest.raises(ConfigError, match="top = 0"):
        next_words(uppercaser, "ka", top=0)
