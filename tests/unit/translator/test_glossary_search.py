"""Glossary terms take the place of the words that the model would write."""

from __future__ import annotations

import pytest

from attendo.decoding.hypothesis import SearchResult
from attendo.translator import glossary_search
from attendo.translator.glossary_search import substitute

PRINCE = ["The", "prince", "saved", "the", "princess."]
SOURCE = "왕자는 공주를 구했다."
ALIGNED = [1, 4, 2]


@pytest.mark.parametrize(
    ("matches", "expected"),
    [
        ([(0, 2, "crown prince")], "The crown prince saved the princess."),
        ([(4, 6, "queen"), (0, 2, "king")], "The king saved the queen."),
        ([(0, 6, "they")], "The they"),
    ],
    ids=["one", "two", "a phrase of two words"],
)
def test_a_term_keeps_what_is_around_it(matches, expected):
    found = substitute(SOURCE, PRINCE, [""] * 5, ALIGNED, matches)
    assert found is not None
    assert found.rstrip(".") == expected.rstrip(".")


@pytest.mark.parametrize(
    ("aligned", "particles"),
    [([None, 4, 2], [""] * 5), ([4, 4, 2], [""] * 5), (ALIGNED, ["", None, "", "", ""])],
    ids=["no word", "the same word twice", "an unclear particle"],
)
def test_a_term_without_a_clear_position_is_left_to_the_search(aligned, particles):
    matches = [(0, 2, "king"), (4, 6, "queen")]
    assert substitute(SOURCE, PRINCE, particles, aligned, matches) is None


def test_the_first_word_keeps_its_capital():
    words = ["Lions", "run."]
    assert (
        substitute("사자는 달린다.", words, ["", ""], [0, 1], [(0, 2, "tigers")]) == "Tigers run."
    )


def test_korean_words_keep_their_particles():
    words, particles = ["왕자는", "공주를", "구했다."], ["는", "를", "다"]
    matches = [(4, 10, "선생님"), (21, 29, "왕비")]
    found = substitute("The prince saved the princess.", words, particles, [0, 0, 2, 1, 1], matches)
    assert found == "선생님은 왕비를 구했다."


@pytest.mark.parametrize("n_best", [1, 3])
def test_the_term_comes_where_the_word_was(uppercaser, n_best):
    (found,) = uppercaser.translate(
        ["ka to mi"], n_best=n_best, glossary={"to": "LU RE"}, confidence=True
    )
    assert str(found) == "KA LU RE MI"
    assert found.is_finished
    assert found.notes == []
    assert [word.text for word in found.confidence.words] == str(found).split()
    others = [str(one) for one in found.alternatives]
    assert len(others) <= n_best - 1
    assert bool(others) == (n_best > 1)
    assert all("LU RE" in one for one in others)
    assert len({str(found), *others}) == len(others) + 1


def test_the_alternatives_are_in_the_order_of_their_scores_with_the_terms(uppercaser, monkeypatch):
    """They were in the order of those without the terms."""
    search, scores = uppercaser.backend.search, iter([-2.0, -5.0, -3.0, -4.0])

    def rescore(items, options, **arguments):
        results = search(items, options, **arguments)
        if options.n_best > 1:  # without the terms
            return results
        return [
            SearchResult([result.hypotheses[0]._replace(score=next(scores))]) for result in results
        ]

    monkeypatch.setattr(uppercaser.backend, "search", rescore)
    (found,) = uppercaser.translate(["ka to mi"], n_best=4, glossary={"to": "LU RE"})
    assert [found.score, *(one.score for one in found.alternatives)] == [-2.0, -3.0, -4.0, -5.0]


def test_a_term_does_not_lower_the_confidence(uppercaser):
    glossary = {"to": "LU"}
    (plain,) = uppercaser.translate(["ka to mi"], confidence=True)
    (found,) = uppercaser.translate(["ka to mi"], glossary=glossary, confidence=True)
    shown = {word.text: word.probability for word in found.confidence.words}
    assert shown["LU"] == 1.0
    assert shown["KA"] == pytest.approx(plain.confidence.words[0].probability)
    assert found.confidence.band == plain.confidence.band


@pytest.mark.parametrize("options", [{"prefix": "SO"}, {"trace": True}])
def test_a_prefix_and_a_trace_keep_to_one_search(uppercaser, monkeypatch, options):
    monkeypatch.setattr(glossary_search, "align_source_words", None)
    (found,) = uppercaser.translate(["ka to"], glossary={"to": "LU"}, **options)
    assert "LU" in str(found).split()


def test_what_is_required_and_forbidden_still_holds(uppercaser):
    glossary = {"to": "LU"}
    (found,) = uppercaser.translate(["ka to"], glossary=glossary, required=["SO"], forbidden=["RE"])
    assert {"LU", "SO"} <= set(str(found).split())
    (found,) = uppercaser.translate(["ka to"], glossary=glossary, forbidden=["KA LU"])
    assert "LU" in str(found).split()
    assert "KA LU" not in str(found)
