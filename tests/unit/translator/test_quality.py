from __future__ import annotations

import pytest
from support.quality import TABLE

from attendo.translator import Confidence, Translator, Unfamiliarity
from attendo.translator.quality import Assessment, QualityTable, assess, lower_for_unseen


@pytest.fixture
def judged(uppercaser):
    """The uppercaser with a table: it gives each word the same probability, 0.78."""
    about = {"calibration": {"temperature": 1.0, "quality": TABLE}}
    return Translator(uppercaser.model, uppercaser.tokenizer, about=about)


def confidence(translator, text):
    return translator.translate([text], confidence=True)[0].confidence


def test_longer_texts_have_a_smaller_probability_and_a_lower_band(judged):
    short, long = confidence(judged, "ka"), confidence(judged, "ka to mi re so lu ka to")
    assert (short.quality, short.band) == (0.6, "check")
    assert (long.quality, long.band) == (0.2, "low")
    assert short.mean_token_probability == pytest.approx(long.mean_token_probability, rel=1e-3)


def test_below_every_score_of_dev_the_probability_is_the_limit(judged):
    reported = confidence(judged, "ka to mi re so lu " * 3)
    assert reported.probability < 0.1
    assert reported.quality == pytest.approx(reported.probability)
    assert reported.band == "low"


def test_a_text_has_the_band_of_its_worst_segment(judged):
    text = "ka\nka to mi re so lu ka to\n\nka"
    reported = confidence(judged, text)
    assert (reported.quality, reported.band) == (0.2, "low")


def test_every_alternative_has_a_band(judged):
    (printed,) = judged.translate(["ka to"], n_best=3, confidence=True)
    assert all(one.confidence.band == "low" for one in printed.alternatives)


def test_without_a_table_nothing_is_high(uppercaser):
    reported = confidence(uppercaser, "ka")
    assert (reported.quality, reported.band, reported.is_calibrated) == (None, "check", False)
    assert assess(None, [-1e-6]).band == "check"
    assert assess(None, [-0.1, -5.0]).band == "low"
    mixed = Confidence.join([reported, Confidence.of_empty_text()], [2, 1])
    assert (mixed.quality, mixed.band) == (None, "check")


def test_a_given_translation_has_no_band(judged):
    (reported,) = judged.score(["ka zork"], ["KA"])
    assert (reported.quality, reported.band) == (None, None)
    assert reported.unfamiliar == Unfamiliarity(2, 1, has_counts=False)


def test_everything_is_in_the_json(judged):
    facts = judged.translate(["ka"], confidence=True)[0].to_dict()["confidence"]
    assert {key: facts[key] for key in ("quality", "band", "is_calibrated", "unfamiliar")} == {
        "quality": 0.6,
        "band": "check",
        "is_calibrated": True,
        "unfamiliar": None,
    }


def test_unseen_tokens_lower_quality_and_band() -> None:
    table = QualityTable(
        score="probability",
        auroc=None,
        min_chrf=None,
        min_quality={"high": 0.9, "check": 0.5, "low": 0.0},
        num_sentences=200,
        exact_share=0.9,
        median_chrf=99.0,
        steps=(),
        bands={},
    )
    sure = Assessment(0.99, "high")
    assert lower_for_unseen(table, sure, 0.0) == Assessment(pytest.approx(0.7), "check")
    assert lower_for_unseen(table, sure, 0.5) == Assessment(pytest.approx(0.2475), "low")
    unmeasured = Assessment(None, "check")
    assert lower_for_unseen(None, unmeasured, 0.1) == unmeasured
    assert lower_for_unseen(None, unmeasured, 0.5) == Assessment(None, "low")
