"""Lesson 14: speaking."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise, product

import pytest

from attendo.decoding.trace import replay
from attendo.inspection import capture
from attendo.lessons.blocks import Chart, ModelPlot, Steps, Table
from attendo.lessons.chapters.ch14_decoding.beam_steps import (
    CORPUS,
    SRC,
    beam_search_steps,
    greedy_table,
    run_search,
    train_model,
)
from attendo.lessons.chapters.ch14_decoding.cache_cost import count_work, vector_table, work_chart
from attendo.lessons.chapters.ch14_decoding.decoder_steps import MAX_STEPS
from attendo.lessons.chapters.ch14_decoding.lesson import LESSON, cache_difference

WORDS = ["a", "am", "i", "thanks", "student", "<eos>"]
D, F, LAYERS = 512, 2048, 6


def log_prob(tgt: str) -> float:
    """Add up a whole sentence by one teacher-forced pass, `<eos>` included."""
    tiny = train_model()
    log_probs = tiny.teacher_force(SRC, tgt).logits.double().log_softmax(-1)
    ids = [WORDS.index(word) for word in [*tgt.split(), "<eos>"]]
    return sum(float(log_probs[position, number]) for position, number in enumerate(ids))


def penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


@cache
def all_sentences() -> list[str]:
    """Every sentence of up to four words, the likeliest first."""
    streamed = (product(WORDS[:-1], repeat=length) for length in range(5))
    return sorted((" ".join(one) for each in streamed for one in each), key=lambda t: -log_prob(t))


class TestTinyModel:
    def test_it_has_learned_the_nine_sentences(self):
        assert sum(CORPUS.values()) == 9
        for tgt, count in CORPUS.items():
            assert math.exp(log_prob(tgt)) == pytest.approx(count / 9, abs=0.005)


class TestGreedy:
    def test_takes_the_likeliest_word_until_the_end(self):
        tiny, printed, total = train_model(), [], 0.0
        for row in greedy_table().rows:
            log_probs = tiny.teacher_force(SRC, " ".join(printed)).logits[-1].log_softmax(-1)
            first, second = log_probs.topk(2).indices.tolist()
            total += float(log_probs[first])
            assert row[1] == " ".join(["<sos>", *printed])
            assert row[2] == f"{WORDS[first]} {math.exp(log_probs[first]):.3f}"
            assert row[3] == f"{WORDS[second]} {math.exp(log_probs[second]):.3f}"
            assert row[4] == pytest.approx(math.exp(total), abs=1e-5)
            printed.append(WORDS[first])
        assert printed == ["student", "i", "am", "<eos>"]

    def test_misses_the_likeliest_sentence(self):
        assert all_sentences()[0] == "i am a student"
        greedy = run_search(beam_size=1).hypotheses[0]
        assert math.exp(greedy.log_prob) < math.exp(log_prob("i am a student"))


class TestBeam:
    def test_two_give_the_two_best_of_all_sentences(self, view):
        (table,) = (one for one in view.blocks(Table, alpha=0.0) if "P" in one.headers)
        assert [row[1] for row in table.rows] == [f"{tgt} <eos>" for tgt in all_sentences()[:2]]
        for row, tgt in zip(table.rows, all_sentences(), strict=False):
            assert row[2] == pytest.approx(math.exp(log_prob(tgt)), abs=1e-5)
            assert row[3] == row[4] == pytest.approx(log_prob(tgt), abs=1e-4)  # no penalty

    @pytest.mark.parametrize("alpha", [0.6, 1.5])
    def test_scores_are_over_the_length_penalty(self, view, alpha):
        (table,) = (one for one in view.blocks(Table, alpha=alpha) if "P" in one.headers)
        assert table.rows[0][1] == "i am a student <eos>"
        for row, tgt, length in zip(
            table.rows, ("i am a student", "student i am"), (5, 4), strict=True
        ):
            expected = log_prob(tgt) / penalty(length, alpha)
            assert row[4] == pytest.approx(expected, rel=1e-5)

    @pytest.mark.parametrize("beam_size", [1, 2, 3])
    def test_every_candidate_of_the_tree_has_its_true_score(self, view, beam_size):
        (frames,) = view.blocks(Steps, beam_size=beam_size)
        tiny = train_model()
        for step, frame in enumerate(frames.frames):
            for name, probability, total, score, _ in frame.blocks[0].rows:
                start, *printed = name.split()
                assert start == "<sos>"
                assert len(printed) == step + 1
                log_probs = tiny.teacher_force(SRC, " ".join(printed[:-1])).logits.log_softmax(-1)
                own = [float(log_probs[at, WORDS.index(word)]) for at, word in enumerate(printed)]
                assert probability == pytest.approx(math.exp(own[-1]), abs=1e-5)
                assert total == pytest.approx(sum(own), abs=1e-4)
                assert score == pytest.approx(sum(own) / penalty(step + 1, 0.6), abs=1e-4)

    @pytest.mark.parametrize("beam_size", [2, 4])
    def test_the_best_continue(self, beam_size):
        for frame in beam_search_steps(beam_size=beam_size).frames:
            rows = frame.blocks[0].rows
            totals = [row[2] for row in rows]
            assert totals == sorted(totals, reverse=True)
            outcomes = [row[4].en for row in rows]
            assert outcomes.count("kept") == beam_size
            goes_on = [
                one for row, one in zip(rows, outcomes, strict=True) if "<eos>" not in row[0]
            ]
            assert "pruned" not in goes_on[:beam_size]

    def test_a_finished_sentence_is_not_a_parent(self):
        frames = beam_search_steps(beam_size=3).frames
        for earlier, later in pairwise(frames):
            num_cached = {row[0] for row in earlier.blocks[0].rows if row[4].en == "kept"}
            parents = {row[0].rsplit(" ", 1)[0] for row in later.blocks[0].rows}
            assert parents <= num_cached

    def test_the_frames_lead_to_what_is_returned(self):
        found = run_search(beam_size=2)
        assert replay(found.trace.to_dict()) == [one.ids for one in found.hypotheses]
        last = beam_search_steps(beam_size=2).frames[-1].blocks[0].rows[0]
        assert last[0] == "<sos> i am a student <eos>"
        assert last[4].en == "finished"

    def test_a_beam_of_one_is_greedy(self, view):
        (table,) = (one for one in view.blocks(Table, beam_size=1) if "P" in one.headers)
        assert [row[1] for row in table.rows] == ["student i am <eos>"]


class TestCache:
    @pytest.mark.parametrize(("source", "target"), [(20, 20), (3, 5)])
    def test_multiply_adds_by_hand(self, source, target):
        """Per layer: 4 + 2 projections, two products in each attention, two in the network."""
        work = count_work(source, target)
        steps = range(1, target + 1)
        memory = 2 * source * D * D
        assert work.plain.multiply_adds == [
            LAYERS * (memory + t * (6 * D * D + 2 * t * D + 2 * source * D + 2 * D * F))
            for t in steps
        ]
        assert work.cached.multiply_adds == [
            LAYERS * ((t == 1) * memory + 6 * D * D + 2 * t * D + 2 * source * D + 2 * D * F)
            for t in steps
        ]

    def test_what_is_computed_again(self):
        rows = {row[0].en: row[1:] for row in vector_table(source_length=7, target_length=4).rows}
        triangle = 1 + 2 + 3 + 4
        assert rows == {
            "self-attention: queries": [triangle, 4],
            "self-attention: keys (and values)": [triangle, 4],
            "cross-attention: queries": [triangle, 4],
            "cross-attention: keys (and values)": [4 * 7, 7],
            "feed-forward": [triangle, 4],
        }

    def test_what_is_kept(self):
        assert count_work(7, 4).num_cached == LAYERS * 2 * D * (7 + 4)

    def test_the_words_are_the_same(self):
        assert cache_difference() < 1e-4

    def test_the_chart_and_the_inputs(self, view):
        (chart,) = view.blocks(Chart, source_length=3, target_length=5)
        assert chart == work_chart(source_length=3, target_length=5)
        work = count_work(3, 5)
        assert chart.series[0].values == [n / 1e6 for n in work.plain.multiply_adds]
        assert chart.series[1].values == [n / 1e6 for n in work.cached.multiply_adds]
        assert chart.x == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("kind", ["transformer", "rnn-seq2seq"])
def test_your_own_model(make_translator, kind):
    translator = make_translator(kind, num_layers=1)
    _, table, frames, drawing = LESSON.own_model_blocks(translator, "ka to mi")
    best = translator.translate(["ka to mi"], beam_size=2, n_best=2)[0]
    assert [row[1] for row in table.rows] == [str(best), str(best.alternatives[0])]
    assert [row[3] for row in table.rows] == sorted((row[3] for row in table.rows), reverse=True)
    assert isinstance(drawing, ModelPlot)
    assert drawing.name == "beam_tree"
    record = capture(translator, "ka to mi")
    printed = [token["piece"] for token in record.tgt["tokens"]]
    assert len(frames.frames) == min(len(printed), MAX_STEPS)
    for position, (frame, step) in enumerate(zip(frames.frames, record.steps, strict=False)):
        read = " ".join(["<s>", *printed[:position]])
        assert frame.title == f"{read} → {printed[position]} ({step['probability']:.2f})"
        (block,) = frame.blocks
        if kind == "transformer":
            weights = record.attention("cross")[0, :, position]  # (H, S), of the only layer
            assert block.series[0].values == pytest.approx(weights.mean(0), abs=1e-6)
            assert block.x == [token["piece"] for token in record.src["tokens"]]
        else:
            assert [row[1] for row in block.rows] == [one["probability"] for one in step["top"][:4]]
