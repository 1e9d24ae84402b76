"""Lesson 19: the relatives."""

from __future__ import annotations

import math
import shlex
from collections import Counter

import pytest
import torch
from typer.main import get_command

from attendo.architectures.decoder_only import DecoderOnly
from attendo.architectures.encoder_only import EncoderOnly
from attendo.bundle import LANGUAGE_MODEL_TASK, MASKED_LM_TASK, build_model, save_bundle
from attendo.cli.main import build_app
from attendo.lessons.blocks import LANGUAGES, Note, Paragraph, Table, parse_markup
from attendo.lessons.chapters.ch19_relatives.lesson import GAP_TEXT, LESSON, SENTENCE
from attendo.lessons.chapters.ch19_relatives.masking_rule import read_masked
from attendo.lessons.chapters.ch19_relatives.task_prefixes import make_pairs, run_tasks
from attendo.lessons.chapters.ch19_relatives.tiny_relatives import (
    CORPUS,
    count_fills,
    fill_probabilities,
    next_probabilities,
    next_word_losses,
)
from attendo.lessons.chapters.ch19_relatives.visibility import base_models, measure_visibility
from attendo.lessons.own_model import build_task_blocks
from attendo.model.transformer import Transformer
from attendo.synthetic.number_words import synthesize_numbers

STEPS = 200
SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}


def table(view, header, **given):
    """Return the table with an English header."""
    blocks = view.blocks(Table, values=given)
    return next(
        one for one in blocks if header in [getattr(label, "en", label) for label in one.headers]
    )


def test_masks_are_those_of_the_models():
    seen = measure_visibility(5)
    square, triangle = torch.ones(5, 5).bool(), torch.ones(5, 5).tril().bool()
    for mask in (seen.encoder_only, seen.source, seen.target_to_source):
        assert torch.tensor(mask).equal(square)
    for mask in (seen.decoder_only, seen.target):
        assert torch.tensor(mask).equal(triangle)


def test_each_reading_masks_other_words_by_the_seed(view):
    rows = table(view, "what the model reads").rows
    words = SENTENCE.split()
    for _, text, hidden, _ in rows:
        read = text.split()
        changed = [index for index, word in enumerate(words) if read[index] != word]
        assert len(read) == len(words)
        assert len(hidden.split(", ")) == 2  # 15 % of 10 words
        assert {words[index] for index in changed} <= set(hidden.split(", "))
    assert len({text for _, text, *_ in rows}) > 1
    assert table(view, "what the model reads", seed=2).rows != rows


def test_of_the_selected_words_80_10_10_percent_are_masked_random_unchanged(view):
    for _, rule, counted in table(view, "rule").rows:
        assert counted == pytest.approx(rule, abs=0.03)
    actions = Counter(one for reading in read_masked("a b c d", 4, 500) for one in reading.actions)
    assert actions.total() == 500  # at least one word of a short sentence


def test_both_models_learn_the_shares_of_the_corpus():
    for gap in (GAP_TEXT, "the ___ sings a song", "the dog ___ meat"):
        shares = count_fills(gap, is_left_only=False)
        found = dict(fill_probabilities(gap, STEPS))
        assert sum(found[word] for word in shares) > 0.9
    for gap in ("the ___", "the cat ___", "the dog eats ___"):
        shares = count_fills(gap, is_left_only=True)
        found = dict(next_probabilities(gap, STEPS))
        assert {word: found[word] for word in shares} == pytest.approx(shares, abs=0.05)


def test_what_is_right_of_the_gap_changes_the_encoder_alone():
    other = "the ___ reads a book"
    assert next_probabilities(GAP_TEXT, STEPS) == next_probabilities(other, STEPS)
    assert fill_probabilities(GAP_TEXT, STEPS)[0].word == "cat"
    assert fill_probabilities(other, STEPS)[0].word in ("boy", "girl")


def test_untrained_models_do_not_know_the_corpus(view):
    right = dict(fill_probabilities(GAP_TEXT, 0))["cat"]
    assert right < 0.5 < dict(fill_probabilities(GAP_TEXT, STEPS))["cat"]
    assert table(view, "corpus, left side", steps=0).rows != table(view, "corpus, left side").rows


def test_an_unknown_word_or_no_gap_raises_no_error(view):
    for gap in ("the zebra ___", "the cat", "___"):
        assert table(view, "corpus, left side", gap=gap).rows


def test_the_perplexity_is_the_exponential_of_the_mean_loss(view):
    probabilities = [one.probability for one in next_word_losses(CORPUS[0], STEPS)]
    rows = table(view, "−log p").rows
    assert [row[2] for row in rows] == pytest.approx(probabilities)
    mean = sum(row[3] for row in rows) / len(rows)
    assert f"= {math.exp(mean):.3f}" in view.text("en")


def test_one_model_follows_the_task_prefix():
    pairs = dict(make_pairs())
    for number in (2, 9):
        for one in run_tasks(number):
            assert one.output == pairs[one.src]
            assert one.probability > 0.9


def test_the_pairs_are_those_of_the_recipe():
    """A pair with the same words is in the corpus of numbers that the recipe generates."""
    numbers = synthesize_numbers(40, seed=1, digits=(1, 1))
    spelled = {(one.tgt, one.src) for one in numbers.train}
    assert ("3", "three") in spelled
    assert ("3", "삼") in spelled


def test_the_parameters_are_counted_once(view):
    models = base_models()
    total = table(view, "parameters", seed=1).rows[-1][1:]
    assert total == [model.num_parameters() for model in models.values()]
    for row in zip(*table(view, "parameters").rows, strict=True):
        if isinstance(row[0], int):
            assert sum(row[:-1]) == row[-1]
    shapes = [
        [tuple(one.shape) for one in models[kind].parameters()]
        for kind in ("encoder-only", "decoder-only")
    ]
    assert sorted(shapes[0]) == sorted(shapes[1])  # the mask has no parameters


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_commands_exist_with_their_options(lang, view):
    commands = [
        shlex.split(text)
        for block in view.blocks(Paragraph)
        for style, text in parse_markup(block.words.localize(lang))
        if style == "code" and text.startswith("attendo ")
    ]
    assert len(commands) == 7
    for _, verb, *arguments in commands:
        command = get_command(build_app(verb)).get_command(None, verb)
        command.make_context(verb, arguments, resilient_parsing=True)
        known = {option for one in command.params for option in one.opts}
        assert {one for one in arguments if one.startswith("--")} <= known


@pytest.fixture(scope="module")
def make_folder(toy, tmp_path_factory):
    def make(kind, task, **options):
        folder = tmp_path_factory.mktemp(task)
        tokenizer = toy.prepared.tokenizer
        model = build_model(kind, {**SIZES, **options}, tokenizer)
        save_bundle(folder, model, tokenizer, about={"task": task})
        return folder

    return make


def test_a_masked_language_model_of_the_learner_fills_the_gap(make_folder):
    folder = make_folder("encoder", MASKED_LM_TASK, reads="each")
    paragraph, guesses = build_task_blocks(LESSON, folder, "ka ___ mi")
    assert "ka ___ mi" in paragraph.words.ko
    assert len(guesses.rows) == 5
    paragraph, _ = build_task_blocks(LESSON, folder, "ka to mi")
    assert "ka to ___" in paragraph.words.en  # a text without a gap gets one
    assert build_task_blocks(LESSON, folder)


def test_a_language_model_of_the_learner_continues_a_text(make_folder):
    folder = make_folder("decoder", LANGUAGE_MODEL_TASK)
    paragraph, texts = build_task_blocks(LESSON, folder, "ka to")
    assert "ka to" in paragraph.words.ko
    assert len(texts.rows) == 3
    assert len(build_task_blocks(LESSON, folder)[1].rows) == 3  # from the beginning


def test_a_translator_has_no_section_of_another_task(toy, tmp_path):
    tokenizer = toy.prepared.tokenizer
    save_bundle(tmp_path, build_model("transformer", SIZES, tokenizer), tokenizer)
    assert build_task_blocks(LESSON, tmp_path) is None


def test_a_translator_section_names_what_its_relatives_use(make_translator):
    translator = make_translator()
    _, parts, _ = LESSON.own_model_blocks(translator, "ka to")
    encoder, decoder, both = (row[2] for row in parts.rows)
    model = translator.model
    assert isinstance(model, Transformer)
    assert encoder == sum(one.numel() for one in model.encoder.parameters())
    assert both == encoder + sum(one.numel() for one in model.decoder.parameters())
    assert encoder < both - encoder
    assert decoder < both - encoder
    (note,) = LESSON.own_model_blocks(make_translator("rnn-seq2seq"), "ka to")
    assert isinstance(note, Note)


def test_the_lesson_shows_the_architectures_of_the_project():
    assert {one.name for one in LESSON.code} >= {EncoderOnly.__name__, DecoderOnly.__name__}
