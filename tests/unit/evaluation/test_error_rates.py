from __future__ import annotations

import random
from functools import cache
from itertools import permutations

import pytest

from attendo.evaluation.error_rates import edit_distance, error_rates, error_rates_by
from attendo.evaluation.evaluate import evaluate


def test_any_reference_of_a_source_will_do():
    sources = ["read", "read", "cat", "dog"]
    outputs = ["R EH D", "R EH D", "K AE D", "D AO G Z"]
    references = ["R IY D", "R EH D", "K AE T", "D AO G"]
    found = error_rates(sources, outputs, references)
    assert found.num_cases == 3
    assert found.sequence == pytest.approx(2 / 3)
    assert found.token == pytest.approx(2 / 9)


def test_nothing_and_everything_wrong():
    assert error_rates([], [], []) == (0.0, 0.0, 0)
    assert error_rates(["a"], [""], ["A B"]) == (1.0, 1.0, 1)
    assert error_rates(["a"], ["A B C"], ["A"]).token == 2.0


# CMUdict has all of these pronunciations.
WORDS = {
    "read": ("R EH D", "R IY D"),
    "route": ("R UW T", "R AW T"),
    "data": ("D EY T AH", "D AE T AH", "D AA T AH"),
    "our": ("AW ER", "AW R", "AA R"),
    "cat": ("K AE T",),
}


def as_lines(printed: dict[str, str], order: int = 0) -> list[tuple[str, str, str]]:
    """One line a pronunciation, as the files have them, in one of several orders."""
    lines = [(word, printed[word], one) for word, ways in WORDS.items() for one in ways]
    random.Random(order).shuffle(lines)  # noqa: S311 - no secret
    return lines


def test_every_pronunciation_of_a_word_is_right_in_any_order():
    for word, ways in WORDS.items():
        for way in ways:
            for lines in permutations(ways):
                found = error_rates([word] * len(ways), [way] * len(ways), lines)
                assert found == (0.0, 0.0, 1), (word, way)


@pytest.mark.parametrize("order", range(5))
def test_the_nearest_pronunciation_counts_and_a_word_counts_once(order):
    """Edits: read 0, route 1 (to either of 3), data 1 (to D EY T AH), our 1 (AW R), cat 3."""
    printed = {"read": "R IY D", "route": "R OW T", "data": "D EY T ER", "our": "AW", "cat": ""}
    found = error_rates(*zip(*as_lines(printed, order), strict=True))
    assert found.num_cases == 5
    assert found.sequence == pytest.approx(4 / 5)
    assert found.token == pytest.approx((0 + 1 + 1 + 1 + 3) / (3 + 3 + 4 + 2 + 3))


def test_of_equally_near_pronunciations_the_longer_one_is_the_measure():
    """ "AA W R" is one edit away from both, whichever line comes first."""
    for ways in permutations(("AA R", "AA W R S")):
        assert error_rates(["our"] * 2, ["AA W R"] * 2, ways).token == pytest.approx(1 / 4)


def test_a_mark_of_stress_is_part_of_its_phone():
    marked = error_rates(["record"], ["R EH1 K ER0 D"], ["R AH0 K AO1 R D"])
    wrong_stress = error_rates(["record"], ["R EH0 K ER0 D"], ["R EH1 K ER0 D"])
    assert marked.token == pytest.approx(3 / 6)
    assert wrong_stress == (1.0, 1 / 5, 1)


def test_the_report_of_an_evaluation_knows_several_pronunciations(tmp_path):
    """As `attendo evaluate --error-rates` tells them: lines are 11, words 5."""
    printed = {
        "read": "R EH D",
        "route": "R AW T",
        "data": "D AA T",
        "our": "AA R",
        "cat": "K AE T",
    }
    columns = zip(*as_lines(printed), strict=True)
    files = dict(zip(("src", "outputs", "ref"), columns, strict=True))
    for name, lines in files.items():
        text = "".join(f"{' '.join(line) if name == 'src' else line}\n" for line in lines)
        (tmp_path / name).write_text(text, encoding="utf-8")
    report = evaluate(
        src=tmp_path / "src",
        outputs=tmp_path / "outputs",
        ref=tmp_path / "ref",
        metrics=["chrf"],
        num_samples=0,
        error_rates=True,
    ).report
    rates = report["system"]["error_rates"]
    assert rates == {"sequence": 1 / 5, "token": 1 / 15, "num_cases": 5}
    assert report["data"]["num_sentences"] == 11


def test_each_kind_of_line_on_its_own_the_worst_first():
    kinds = ["date", "number", "date", "number", "date"]
    sources = ["5 May", "three", "6 May", "four", "5 May"]
    outputs = ["05-05", "3", "05-07", "4", "05-05"]
    references = ["05-05", "3", "05-06", "4", "5.5."]
    found = error_rates_by(kinds, sources, outputs, references)
    assert list(found) == ["date", "number"]
    assert found["date"] == (0.5, 0.5, 2)
    assert found["number"] == (0.0, 0.0, 2)
    assert error_rates_by([], [], [], []) == {}
    with pytest.raises(ValueError, match="longer"):
        error_rates_by(["date"], sources, outputs, references)


def test_edits_equal_the_definition():
    draw = random.Random(1)  # noqa: S311 - not for secrets
    for _ in range(100):
        one, other = (tuple(draw.choices("abc", k=draw.randint(0, 6))) for _ in range(2))

        @cache
        def distance(i: int, j: int, one=one, other=other) -> int:
            if not i or not j:
                return i + j
            same = distance(i - 1, j - 1) + (one[i - 1] != other[j - 1])
            return min(same, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

        assert edit_distance(one, other) == distance(len(one), len(other))
        distance.cache_clear()
