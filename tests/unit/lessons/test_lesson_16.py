"""Lesson 16: subwords."""

from __future__ import annotations

import io

import pytest
import sentencepiece

from attendo.lessons.blocks import Chart, Steps, Table, localize
from attendo.lessons.chapters.ch16_subwords.lesson import CORPUS, KOREAN_CORPUS, LESSON
from attendo.lessons.chapters.ch16_subwords.measurements import (
    SIZES,
    corpus,
    encode_unknown,
    measure_costs,
    rank_splits,
)
from attendo.lessons.chapters.ch16_subwords.merges import learn_merges, split_word
from attendo.text.tokenizer import SPECIAL_IDS


def table_with(view, header, **given):
    """Return the first table that has a header of this name."""
    tables = view.blocks(Table, given)
    return next(one for one in tables if header in [localize(name, "en") for name in one.headers])


def train_sentencepiece(text, num_merges):
    model = io.BytesIO()
    num_characters = len({"▁", *text.replace(" ", "")})
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([text]),
        model_writer=model,
        model_type="bpe",
        vocab_size=len(SPECIAL_IDS) + num_characters + num_merges,
        normalization_rule_name="identity",
        character_coverage=1.0,
        minloglevel=2,
        **SPECIAL_IDS,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


@pytest.mark.parametrize("text", [CORPUS, KOREAN_CORPUS, "aa aaa aaaa ab abab"])
def test_the_merges_are_those_of_sentencepiece(text):
    merges = learn_merges(text, 10)
    real = train_sentencepiece(text, len(merges))
    start = len(SPECIAL_IDS)
    ids = range(start, start + len(merges))
    assert [real.id_to_piece(number) for number in ids] == [one.piece for one in merges]
    for word in {*text.split(), "lowest", "친구에게"}:
        if set(word) <= set(text):
            assert list(split_word(word, merges)) == real.encode(word, out_type=str)


def test_counts_and_lengths_by_hand(view):
    first, second, *_ = learn_merges(CORPUS, 6)
    assert (first.left, first.right, first.frequency) == ("e", "s", 6 + 3)
    assert (second.piece, second.frequency) == ("est", 9)
    assert first.num_tokens == sum(len(word) + 1 for word in CORPUS.split()) - first.frequency
    table = table_with(view, "new piece")
    assert [row[2] for row in table.rows] == [9, 9, 7, 7, 7, 6]
    (steps,) = view.blocks(Steps)
    assert len(steps.frames) == len(table.rows)
    assert ["newest", 6, "▁ n ew est"] in steps.frames[-1].blocks[0].rows


def test_merging_ends_when_every_word_is_one_piece(view):
    assert [one.piece for one in learn_merges("ab", 20)] == ["ab", "▁ab"]
    assert len(view.blocks(Steps, {"corpus": "ab", "merges": 20})[0].frames) == 2


def test_a_new_word_is_split_by_the_same_merges(view):
    rows = table_with(view, "merge", new_word="newer xx").rows
    assert rows
    text = view.text("en", new_word="newer 또")
    assert "<unk>" in text
    assert split_word("lowest", learn_merges(CORPUS, 6)) == ("▁low", "est")


def test_korean_particles_become_pieces(view):
    merges = learn_merges(KOREAN_CORPUS, 13)
    assert merges[-1].splits["학교에서"] == ("▁학교", "에서")
    assert split_word("친구에게", merges) == ("▁친구", "에게")
    assert "▁친구 에게" in view.text("ko")


def test_unigram_ranks_the_splits_of_a_word():
    ranked = rank_splits("함께", 4)
    assert [one.log_prob for one in ranked] == sorted(
        (one.log_prob for one in ranked), reverse=True
    )
    assert all("".join(one.pieces) == "▁함께" for one in ranked)


def test_byte_fallback_restores_what_is_unknown_without_it():
    plain, with_bytes = (encode_unknown("나는 🐙", byte_fallback=is_on) for is_on in (False, True))
    assert plain.num_unknown == 1
    assert "🐙" not in plain.decoded
    assert with_bytes.num_unknown == 0
    assert with_bytes.decoded == "나는 🐙"
    assert [one for one in with_bytes.pieces if one.startswith("<0x")] == [
        f"<0x{byte:02X}>" for byte in "🐙".encode()
    ]


def test_a_larger_vocabulary_makes_shorter_sentences(view):
    costs = measure_costs()
    characters, *bpe, words = costs
    sentences = [pair[0] for pair in corpus()[1000:]]
    # One piece per character, and one for the space before the first word.
    assert characters.num_ko == pytest.approx(sum(len(one) + 1 for one in sentences) / 200)
    assert [one.vocab_size for one in bpe] == list(SIZES)
    for side in ("num_ko", "num_en"):
        lengths = [getattr(one, side) for one in bpe]
        assert lengths == sorted(lengths, reverse=True)
        assert getattr(words, side) < lengths[-1]
    assert words.num_unknown > bpe[-1].num_unknown
    (chart,) = view.blocks(Chart)
    assert chart.series[0].values == [one.num_ko for one in bpe]


def test_your_own_tokenizer(make_translator):
    translator = make_translator(num_layers=1)
    reported, words, pieces = LESSON.own_model_blocks(translator, "ka to mi")
    ids = translator.tokenizer.encode_src(["ka to mi"])[0]
    assert [row[1] for row in pieces.rows] == ids
    assert [row[0] for row in pieces.rows] == translator.tokenizer.src_pieces(ids)
    assert [row[0] for row in words.rows] == ["ka", "to", "mi"]
    assert f"{translator.tokenizer.src_vocab_size:,}" in reported.words.ko
