"""Scores against sacreBLEU called directly, and against formulas written down a second time."""

from __future__ import annotations

import math
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest

from attendo.core.errors import AttendoError, ConfigError, InputError, MissingExtraError
from attendo.evaluation import metrics as measures_module
from attendo.evaluation import tokenized_bleu as tokenized_module
from attendo.evaluation.metrics import METRIC_NAMES, TokenizedReference, build_metrics
from attendo.evaluation.scores import compare_systems, compute_scores, score_outputs
from attendo.evaluation.tokenized_bleu import (
    build_normalizer,
    compound_split_normalizer,
    split_compounds,
)
from attendo.text.lines import read_lines

TEXT = "der Hund läuft über die Straße , und ein Mann-Frau-Paar sieht zu . Das ist gut !"
WORDS = TEXT.split()


def make_texts(seed: int, number: int = 60) -> list[str]:
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    return [" ".join(draw.choices(WORDS, k=draw.randint(4, 14))) for _ in range(number)]


def spoil(texts: list[str], share: float, seed: int) -> list[str]:
    draw = random.Random(seed)  # noqa: S311 - not for secrets
    return [
        " ".join(draw.choice(WORDS) if draw.random() < share else word for word in text.split())
        for text in texts
    ]


@pytest.fixture(scope="module")
def references() -> list[str]:
    return make_texts(1)


@pytest.fixture(scope="module")
def outputs(references) -> list[str]:
    return spoil(references, 0.3, 2)


def multi_bleu(outputs: list[str], references: list[str]) -> float:
    """Write multi-bleu.perl down again: bytes, ASCII white space, no smoothing."""
    matches, totals, printed, expected = Counter(), Counter(), 0, 0
    for output, reference in zip(outputs, references, strict=True):
        words, right = output.encode().split(), reference.encode().split()
        printed, expected = printed + len(words), expected + len(right)
        for n in range(1, 5):
            grams = Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
            known = Counter(tuple(right[i : i + n]) for i in range(len(right) - n + 1))
            matches[n] += sum((grams & known).values())
            totals[n] += sum(grams.values())
    if not all(matches[n] for n in range(1, 5)):
        return 0.0
    penalty = 1.0 if printed >= expected else math.exp(1 - expected / printed)
    return 100 * penalty * math.exp(sum(math.log(matches[n] / totals[n]) for n in range(1, 5)) / 4)


# --- the figures


@pytest.mark.parametrize(
    ("key", "metric"),
    [
        ("bleu", BLEU(force=True)),
        ("bleu-lc", BLEU(lowercase=True, force=True)),
        ("bleu-char", BLEU(tokenize="char", force=True)),
        ("chrf", CHRF()),
        ("chrf++", CHRF(word_order=2)),
        ("ter", TER()),
    ],
)
def test_value_interval_and_signature_are_those_of_sacrebleu(key, metric, outputs, references):
    (score,) = compute_scores(outputs, references, requested=[key], num_samples=200)
    expected = metric.corpus_score(outputs, [references], n_bootstrap=200)
    assert score.value == pytest.approx(expected.score, abs=1e-5)
    assert (score.high - score.low) / 2 == pytest.approx(expected._ci, abs=1e-4)
    assert score.low < score.value < score.high
    assert score.signature == str(metric.get_signature())
    assert score.name == METRIC_NAMES[key]


def test_korean_morphemes():
    references = ["나는 학교에 갔다.", "어머니가 저녁을 맛있게 만드셨다."]
    outputs = ["나는 학교에 갔다.", "어머니는 저녁을 맛있게 만들었다."]
    (score,) = compute_scores(outputs, references, requested=["bleu-ko"], num_samples=0)
    expected = BLEU(tokenize="ko-mecab").corpus_score(outputs, [references])
    assert score.value == pytest.approx(expected.score, abs=1e-5)
    (words,) = compute_scores(outputs, references, requested=["bleu"], num_samples=0)
    assert score.value > words.value  # a wrong ending does not cost the whole word
    assert "ko-mecab" in score.signature


def test_tokenized_is_multi_bleu(outputs, references):
    as_tokens = TokenizedReference(references, ["as-is"])
    used = build_metrics(references, requested=["bleu-tok"], tokenized=as_tokens).selected
    score = score_outputs(used, outputs, num_samples=0).scores[0]
    assert score.value == pytest.approx(multi_bleu(outputs, references), abs=1e-5)
    assert "tok:as-is" in score.signature
    assert "smooth:none" in score.signature


def test_tokenized_words_are_parted_by_ascii_spaces_alone():
    references = ["es kostet 10\u00a0000 Euro\u3000im Jahr genau hier", "a b c d e\x85f"]
    outputs = ["es kostet 10\u00a0000 Euro\u3000im Jahr", "a b c d e f"]
    as_tokens = TokenizedReference(references, ["as-is"])
    used = build_metrics(references, requested=["bleu-tok"], tokenized=as_tokens).selected
    found = score_outputs(used, outputs, num_samples=0).scores[0].value
    assert found == pytest.approx(multi_bleu(outputs, references), abs=1e-5)
    assert found != pytest.approx(
        BLEU(tokenize="none", smooth_method="none").corpus_score(outputs, [references]).score
    )


def test_without_a_matching_4gram_tokenized_is_zero_as_in_multi_bleu():
    as_tokens = TokenizedReference(["a b c x d"], ["as-is"])
    used = build_metrics(["a b c x d"], requested=["bleu-tok"], tokenized=as_tokens).selected
    assert score_outputs(used, ["a b c y d"], num_samples=0).scores[0].value == 0.0
    assert compute_scores(["a b c y d"], ["a b c x d"], requested=["bleu"])[0].value > 0.0


def test_split_compounds_as_perl_does():
    # perl -ple 's{(\S)-(\S)}{$1 ##AT##-##AT## $2}g': a match eats its right letter
    at = " ##AT##-##AT## "
    assert split_compounds("rich-text format") == f"rich{at}text format"
    assert split_compounds("Mann-Frau-Paar") == f"Mann{at}Frau{at}Paar"
    assert split_compounds("a-b-c") == f"a{at}b-c"
    assert split_compounds("- 5 -x y- --") == "- 5 -x y- --"
    assert split_compounds("---") == f"-{at}-"
    # over bytes: of ß it eats the first, and so sees the hyphen behind the second
    assert split_compounds("a-ß-c") == f"a{at}ß{at}c"


@pytest.mark.skipif(shutil.which("perl") is None, reason="no perl here")
def test_split_compounds_as_the_perl_script_does():
    draw = random.Random(7)  # noqa: S311 - not for secrets
    texts = ["".join(draw.choices("aßé한 -- .\u00a0", k=30)) for _ in range(200)]
    code = r"s{(\S)-(\S)}{$1 ##AT##-##AT## $2}g"
    done = subprocess.run(
        ["perl", "-ple", code], input="\n".join(texts).encode(), capture_output=True, check=True
    )
    assert "\n".join(map(split_compounds, texts)) == done.stdout.decode().removesuffix("\n")


def test_compound_split_by_hand():
    text = "Der Nord-Süd-Konflikt, „alt“ & neu."
    # &amp; is what tokenizer.perl writes
    expected = "Der Nord ##AT##-##AT## Süd ##AT##-##AT## Konflikt , „ alt “ &amp; neu ."
    assert compound_split_normalizer("de").apply(text) == expected
    outputs, references = [text, "Ein Test-Satz ist das ."], [text, "Ein Testsatz ist das."]
    (score,) = compute_scores(
        outputs, references, requested=["bleu-compound"], lang="de", num_samples=0
    )
    hand = [expected, "Ein Test ##AT##-##AT## Satz ist das ."], [expected, "Ein Testsatz ist das ."]
    assert score.value == pytest.approx(multi_bleu(*hand), abs=1e-5)
    for part in ("tok:moses-de", "compounds:split", "sacremoses:", "smooth:none"):
        assert part in score.signature


def test_steps_are_done_in_their_order_and_reported():
    steps = build_normalizer(["lower", "norm", "moses"], "de")
    assert steps.apply("Die „KIDS’ Bar“ – da!") == "die &quot; kids &apos; bar &quot; - da !"
    assert steps.signature.startswith("case:lc|norm:moses-de|tok:moses-de|sacremoses:")
    plain = build_normalizer(["moses-plain"], "en")
    assert plain.apply('Don\'t "x"') == 'Don \'t " x "'
    assert build_normalizer(["as-is"], None).apply("A ,b") == "A ,b"


@pytest.mark.corpus
@pytest.mark.parametrize(("lang", "num_different"), [("de", 0), ("en", 0), ("fr", 1)])
def test_the_steps_make_the_official_files_of_multi30k(repository, lang, num_different):
    folder = Path(os.environ.get("ATTENDO_CORPORA") or repository.parent / "shared" / "data")
    if not folder.is_dir():
        reason = f"no corpora at {folder}: set ATTENDO_CORPORA"
        pytest.fail(reason) if os.environ.get("CI") == "true" else pytest.skip(reason)
    raw, official = (
        list(read_lines(folder / "multi30k" / f"{name}.{lang}.gz"))
        for name in ("test_2016_flickr", "tok/test_2016_flickr.lc.norm.tok")
    )
    made = build_normalizer(["lower", "norm", "moses"], lang).apply_all(raw)
    assert len(made) == 1000
    assert sum(map(str.__ne__, made, official)) == num_different


# --- intervals and p-values


def test_p_values_are_those_of_sacrebleu(references, outputs):
    other = spoil(references, 0.34, 5)
    for key, metric in (("bleu", BLEU()), ("chrf", CHRF()), ("ter", TER())):
        used = build_metrics(references, requested=[key]).selected
        ours, theirs = (score_outputs(used, texts, num_samples=300) for texts in (outputs, other))
        test = PairedTest(
            [("theirs", other), ("ours", outputs)], {key: metric}, [references], "bs", 300
        )
        _, results = test()
        (row,) = compare_systems(ours, theirs)
        name = next(name for name in results if name != "System")
        assert row.p_value == pytest.approx(results[name][1].p_value)
        assert row.difference == pytest.approx(
            results[name][1].score - results[name][0].score, abs=1e-4
        )
        assert 0.0 < row.p_value < 1.0


def test_a_system_does_not_differ_from_itself(references, outputs):
    used = build_metrics(references, requested=["bleu"]).selected
    scored = score_outputs(used, outputs, num_samples=100)
    (row,) = compare_systems(scored, scored)
    assert (row.difference, row.p_value) == (0.0, 1.0)


def test_the_clearly_better_system_wins(references):
    used = build_metrics(references, requested=["bleu", "ter"]).selected
    good, bad = (
        score_outputs(used, spoil(references, share, 3), num_samples=200) for share in (0.1, 0.5)
    )
    bleu_row, ter_row = compare_systems(good, bad)
    assert bleu_row.difference > 0 > ter_row.difference
    assert max(bleu_row.p_value, ter_row.p_value) < 0.01
    assert ter_row.lower_is_better


def test_scores_do_not_depend_on_the_day(references, outputs):
    assert compute_scores(outputs, references) == compute_scores(outputs, references)


def test_intervals_can_be_left_out(references, outputs):
    for score in compute_scores(outputs, references, requested=["bleu", "chrf"], num_samples=0):
        assert score.low is score.high is None
        assert "bs:" not in score.signature


# --- which measures


def names(references, **options) -> list[str]:
    return [one.key for one in build_metrics(references, **options).selected]


def test_measures_follow_the_language(references):
    always = ["bleu", "bleu-lc", "chrf", "chrf++", "ter"]
    assert set(names(references, lang="de")) == {*always, "bleu-compound"}
    assert set(names(["나는 간다."], lang="ko")) == {*always, "bleu-ko", "bleu-char"}
    made = build_metrics(references)
    assert {one.key for one in made.selected} == set(always)
    assert len(made.skipped) == 1
    assert "compound-split" in made.skipped[0]
    assert "--lang de" in made.skipped[0]


@pytest.mark.parametrize(("key", "lang"), [("bleu-compound", "de"), ("bleu-ko", "ko")])
def test_a_missing_extra_is_named(key, lang, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacremoses", None)
    monkeypatch.setitem(sys.modules, "sacremoses.corpus", None)
    module = "sacrebleu.tokenizers.tokenizer_ko_mecab"
    __import__(module)
    monkeypatch.setattr(sys.modules[module], "MeCab", None)
    made = build_metrics(["나는 간다."], lang=lang)
    assert key not in [one.key for one in made.selected]
    assert any(METRIC_NAMES[key] in line and "attendo[metrics]" in line for line in made.skipped)
    assert "chrf" in [one.key for one in made.selected]
    with pytest.raises(MissingExtraError, match=r"attendo\[metrics\]"):
        build_metrics(["나는 간다."], lang=lang, requested=[key])


def test_tokenized_outputs_get_a_note_next_to_13a():
    texts = ["ein mann , der geht .", "eine frau ."] * 10
    noted = {one.key: one.note for one in compute_scores(texts, texts, num_samples=0)}
    assert "tokenized" in noted["bleu"]
    assert noted["chrf"] == ""
    plain = ["Ein Mann, der geht.", "Eine Frau."] * 10
    assert not any(one.note for one in compute_scores(plain, plain, num_samples=0))


def test_empty_lines_are_scored_in_order(references):
    outputs = ["", *references[1:]]
    for score in compute_scores(outputs, references, num_samples=20):
        assert score.value != (0.0 if score.lower_is_better else 100.0)
    for score in compute_scores([""] * 3, ["", "a b", "c"], num_samples=20):
        assert score.value == (100.0 if score.lower_is_better else 0.0)


def test_nothing_is_logged_and_no_process_started(references, caplog, monkeypatch):
    monkeypatch.setattr("multiprocessing.pool.Pool.__init__", lambda *_, **__: pytest.fail("pool"))
    as_tokens = [f"{text} ." for text in references * 3]
    compute_scores(as_tokens, as_tokens, lang="de", num_samples=10)
    assert not caplog.records


# --- bad requests


def test_unknown_measures_are_rejected_with_the_nearest(references):
    with pytest.raises(ConfigError, match="did you mean 'chrf'"):
        build_metrics(references, requested=["chfr"])


def test_nothing_to_score_is_rejected():
    with pytest.raises(InputError, match="nothing to score"):
        build_metrics([])


def test_tokenized_bleu_needs_its_reference(references):
    with pytest.raises(ConfigError, match="--tok-ref"):
        build_metrics(references, requested=["bleu-tok"])


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        (["lowr"], "did you mean 'lower'"),
        ([], "no step is named"),
        (["as-is", "lower"], "cannot be combined"),
        (["moses", "moses-plain"], "once"),
        (["lower", "lower"], "once"),
    ],
)
def test_wrong_steps_are_rejected(steps, message):
    with pytest.raises(ConfigError, match=message):
        build_normalizer(steps, "de")


def test_moses_needs_a_language_that_it_knows():
    with pytest.raises(ConfigError, match="--lang"):
        build_normalizer(["moses"], None)
    with pytest.raises(InputError, match="no rules for the language 'xx'"):
        build_normalizer(["norm"], "xx")
    with pytest.raises(AttendoError, match="does not support the language 'ko'"):
        build_metrics(["나"], requested=["bleu-compound"], lang="ko")


def test_spaces_that_represent_foreign_ones_are_private_letters():
    letters = tokenized_module.NON_ASCII_SPACES
    assert all(chr(source).isspace() for source in letters)
    assert all("\ue000" <= chr(target) <= "\uf8ff" for target in letters.values())
    every = {chr(code) for code in range(0x110000) if chr(code).isspace()}
    assert every == {chr(source) for source in letters} | set(" \t\n\r\f\v")


def test_every_measure_can_be_asked_for(references):
    as_tokens = TokenizedReference(references, ["lower", "norm", "moses"])
    made = build_metrics(references, requested=list(METRIC_NAMES), lang="de", tokenized=as_tokens)
    assert [one.key for one in made.selected] == list(measures_module.METRIC_NAMES)
