from __future__ import annotations

import random

import pytest

from attendo.core.errors import InputError
from attendo.data.check import check_data
from attendo.data.config import DataConfig
from attendo.data.corpus_config import CorpusConfig, Pair
from attendo.data.corpus_probe import MAX_COUNTED_SOURCES, SAMPLE_SIZE, CorpusProbe, SourceCounter
from attendo.data.findings import TEXTS, Finding, raise_errors, sort_findings
from attendo.data.tokenizer_training import train_tokenizer
from attendo.i18n.messages import load_catalogue
from attendo.text.tokenizer import TokenizerConfig

FRENCH = "Je ne sais pas ce que vous avez dit, mais ce n'est pas dans le livre."


@pytest.fixture(scope="module")
def pairs(everyday_pairs):
    return everyday_pairs[:1500]


def write(folder, pairs, names=("corpus.ko", "corpus.en")):
    folder.mkdir(exist_ok=True)
    paths = [folder / name for name in names]
    for side, path in enumerate(paths):
        path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return CorpusConfig(src=paths[0], tgt=paths[1])


def check(folder, pairs, known=None, **settings):
    config = DataConfig(corpora=(write(folder, pairs),), **settings)
    return {finding.code: finding for finding in check_data(config, tokenizer=known).findings}


def severities(findings):
    return {code: finding.severity for code, finding in findings.items()}


def test_good_pairs_have_no_error_and_true_warnings(tmp_path, pairs):
    result = check_data(DataConfig(corpora=(write(tmp_path, pairs),)))
    (row,) = result.figures
    assert (row["src_language"], row["tgt_language"]) == ("ko", "en")
    assert row["num_read"] == len(pairs)
    codes = {finding.code for finding in result.findings if finding.severity != "info"}
    assert codes == {"too_few_pairs", "small_dev"}


def test_a_lost_line(tmp_path, pairs):
    targets = [pair.tgt for pair in pairs]
    del targets[800]
    shifted = [Pair(pair.src, tgt) for pair, tgt in zip(pairs, [*targets, "End."], strict=True)]
    finding = check(tmp_path, shifted)["sides_shifted"]
    assert finding.severity == "error"
    assert finding.figures["shift"] == -1
    assert abs(finding.figures["line"] - 802) <= 10


def test_shuffled_sides(tmp_path, pairs):
    targets = [pair.tgt for pair in pairs]
    random.Random(1).shuffle(targets)  # noqa: S311
    shuffled = [Pair(pair.src, tgt) for pair, tgt in zip(pairs, targets, strict=True)]
    assert check(tmp_path, shuffled)["sides_shuffled"].severity == "error"


@pytest.mark.parametrize(
    ("settings", "severity"), [({"src_lang": "ko", "tgt_lang": "en"}, "error"), ({}, "warning")]
)
def test_swapped_sides(tmp_path, pairs, settings, severity):
    swapped = [pair.swapped() for pair in pairs]
    findings = check(tmp_path, swapped, **settings)
    assert findings["sides_swapped"].severity == severity
    assert "wrong_language" not in findings


def test_a_corpus_that_is_swapped_compared_with_the_first(tmp_path, pairs):
    first = write(tmp_path, pairs[:800], ("a.txt", "b.txt"))
    second = write(tmp_path, [pair.swapped() for pair in pairs[800:]], ("c.txt", "d.txt"))
    result = check_data(DataConfig(corpora=(first, second)))
    codes = [finding.code for finding in result.findings]
    assert codes.count("corpus_swapped") == 1


@pytest.mark.parametrize("every", [2, 10])
def test_bug_pairs_that_are_swapped_among_others_must_be_reported(tmp_path, pairs, every):
    some = [pair.swapped() if index % every == 0 else pair for index, pair in enumerate(pairs)]
    findings = check(tmp_path, some)
    assert findings["pairs_swapped"].severity == "warning"
    assert "mixed_languages" not in findings


def test_bug_swapped_pairs_in_one_script_must_be_reported(tmp_path, pairs):
    french = [Pair(pair.tgt, f"{FRENCH} {index}") for index, pair in enumerate(pairs)]
    half = [pair.swapped() if index % 2 else pair for index, pair in enumerate(french)]
    figures = check(tmp_path, half)["pairs_swapped"].figures
    assert {figures["src_guess"], figures["tgt_guess"]} == {"en", "fr"}
    assert "pairs_swapped" not in check(tmp_path, french)


def test_bug_a_table_given_as_a_text_file_must_be_reported(tmp_path, pairs):
    numbered = [Pair(f"{index}\t{pair.src}", pair.tgt) for index, pair in enumerate(pairs)]
    figures = check(tmp_path, numbered)["tabs"].figures
    assert (figures["side"], figures["share"]) == ("source", "100%")
    assert "tabs" not in check(tmp_path, pairs)


def test_a_wrong_language(tmp_path, pairs):
    finding = check(tmp_path, pairs, src_lang="ko", tgt_lang="fr")["wrong_language"]
    assert finding.severity == "error"
    assert (finding.figures["side"], finding.figures["guess"]) == ("target", "en")


def test_a_language_that_is_not_known_is_not_judged(tmp_path, pairs):
    assert "wrong_language" not in check(tmp_path, pairs, src_lang="ko", tgt_lang="xx")


def test_mixed_languages(tmp_path, pairs):
    mixed = [
        Pair(pair.src, f"{FRENCH} {index}") if index % 10 < 3 else pair
        for index, pair in enumerate(pairs)
    ]
    finding = check(tmp_path, mixed)["mixed_languages"]
    assert finding.figures["other"] == "fr"
    assert finding.figures["share"].startswith(("29", "30"))
    assert FRENCH in finding.example


def test_the_same_language_twice(tmp_path, pairs):
    english = [Pair(pair.tgt, f"{pair.tgt} {pair.tgt}") for pair in pairs]
    assert check(tmp_path, english)["same_language"].severity == "warning"


def test_labels_are_not_judged_as_translations(tmp_path, pairs):
    rng = random.Random(1)  # noqa: S311
    labeled = [Pair(pair.src, rng.choice(("question", "order"))) for pair in pairs]
    settings = {"tokenizer": {"shared": False, "tgt_kind": "label"}}
    findings = check(tmp_path, labeled, **settings)
    assert not {"sides_shuffled", "too_few_pairs", "small_dev", "mixed_languages"} & set(findings)


def test_what_cleaning_drops_is_counted(tmp_path, pairs):
    noise = [
        *pairs[:600],
        *[Pair("", "x")] * 9,
        Pair("가 " * 400, "long " * 400),
        *[Pair(f"{n} a", "different " * 30) for n in range(7)],
        *[Pair(f"not translated at all {n}", f"not translated at all {n}") for n in range(3)],
    ]
    findings = check(tmp_path, [*pairs, *noise])
    counts = {code: finding.figures.get("count") for code, finding in findings.items()}
    assert (counts["duplicates"], counts["empty_sides"], counts["long_lines"]) == ("600", "9", "1")
    assert (counts["length_ratios"], counts["untranslated"]) == ("7", "3")
    assert findings["duplicates"].severity == "warning"
    assert findings["empty_sides"].severity == "info"


def test_many_targets_of_a_source(tmp_path, pairs):
    repeated = [*pairs, *[Pair("안녕하세요", f"hello number {n}") for n in range(300)]]
    finding = check(tmp_path, repeated)["many_targets"]
    assert (finding.figures["count"], finding.example) == ("300", "안녕하세요")


def test_a_dev_set_inside_train(tmp_path, pairs):
    dev = write(tmp_path, pairs[:400], ("dev.ko", "dev.en"))
    finding = check(tmp_path, pairs, dev=dev)["dev_in_train"]
    assert finding.figures["count"] == "400"
    assert finding.example == " | ".join(pairs[0])


def test_a_dev_set_that_is_all_of_train(tmp_path, pairs):
    dev = write(tmp_path, pairs, ("dev.ko", "dev.en"))
    finding = check(tmp_path, pairs, dev=dev)["no_pairs"]
    assert finding.severity == "error"


def test_a_dev_set_inside_the_second_corpus(tmp_path, pairs):
    dev = write(tmp_path, pairs[-400:], ("dev.ko", "dev.en"))
    first = write(tmp_path, [*pairs[:700], pairs[0]], ("a.ko", "a.en"))
    config = DataConfig(corpora=(first, write(tmp_path, pairs[700:])), dev=dev)
    (finding,) = [one for one in check_data(config).findings if one.code == "dev_in_train"]
    assert (finding.figures["count"], finding.example) == ("400", " | ".join(pairs[-400]))


def test_a_dev_set_in_other_languages(tmp_path, pairs):
    dev = write(tmp_path, [pair.swapped() for pair in pairs[:400]], ("d.ko", "d.en"))
    findings = check(tmp_path, pairs[400:], dev=dev)
    assert findings["dev_language"].severity == "error"
    assert "small_dev" not in findings


def test_headers_and_ids(tmp_path, pairs):
    table = tmp_path / "table.tsv"
    rows = [f"{number}\t{pair.tgt}\n" for number, pair in enumerate(pairs)]
    table.write_text("id\tenglish\n" + "".join(rows), encoding="utf-8")
    corpus = CorpusConfig(path=table, src_field=1, tgt_field=2)
    findings = {f.code: f for f in check_data(DataConfig(corpora=(corpus,))).findings}
    assert severities(findings)["id_column"] == "error"
    assert "header" not in findings  # the reader has found it
    titled = check(tmp_path, [Pair("source", "target"), *pairs])
    assert severities(titled)["header"] == "warning"


@pytest.mark.parametrize(("byte_fallback", "kind"), [(True, "bpe"), (False, "unigram")])
def test_text_that_the_tokenizer_does_not_know(tmp_path, pairs, byte_fallback, kind):
    english = write(tmp_path, [Pair(pair.tgt, pair.tgt) for pair in pairs], ("x", "y"))
    settings = TokenizerConfig(kind=kind, byte_fallback=byte_fallback, vocab_size=400)
    tokenizer = train_tokenizer(english.src, english.tgt, settings, num_pairs=1500, seed=1)
    findings = check(tmp_path, pairs, tokenizer)
    finding = findings["unknown_pieces"]
    assert (finding.severity, finding.figures["side"]) == ("error", "source")
    assert "too_few_pairs" not in findings  # the model has seen more
    knows_both = [Pair(pair.tgt, pair.tgt.upper().lower()) for pair in pairs]
    assert "unknown_pieces" not in check(tmp_path / "known", knows_both, tokenizer)


# --- findings


def test_findings_survive_storage():
    figures = {"corpus": "a", "side": "source", "declared": "en", "guess": "fr"}
    finding = Finding("wrong_language", "error", figures, "x | y")
    assert Finding.from_json(finding.to_json()) == finding
    assert Finding.from_json(finding.to_json()).message == finding.message


def test_every_text_has_a_translation():
    catalogue = load_catalogue("ko")
    assert [text for texts in TEXTS.values() for text in texts if text not in catalogue] == []


def test_errors_come_first_and_are_raised_together():
    small = Finding("small_dev", "warning", {"count": "3", "margin": "29"})
    header = Finding("header", "error", {"corpus": "a"})
    shuffled = Finding("sides_shuffled", "error", {"corpus": "b"})
    assert sort_findings([small, header, shuffled]) == [header, shuffled, small]
    raise_errors([small])
    with pytest.raises(InputError) as caught:
        raise_errors([small, header, shuffled])
    assert header.message in caught.value.reason
    assert shuffled.message in caught.value.reason
    assert small.message not in caught.value.reason
    assert "data.check=false" in caught.value.hint


def test_two_findings_with_one_hint_name_it_once():
    figures = {"corpus": "a", "declared": "ko", "guess": "en"}
    sides = [
        Finding("wrong_language", "error", {**figures, "side": side})
        for side in ("source", "target")
    ]
    with pytest.raises(InputError) as caught:
        raise_errors(sides)
    assert caught.value.hint.count(sides[0].hint) == 1
    assert all(finding.message in caught.value.reason for finding in sides)


# --- probes


def test_the_sample_is_bounded_and_unbiased():
    probe = CorpusProbe(CorpusConfig(path="a.tsv"))
    for number in range(5 * SAMPLE_SIZE):
        probe.observe(Pair(str(number), "x"))
    assert len(probe.sample) == SAMPLE_SIZE
    mean = sum(int(pair.src) for pair in probe.sample) / SAMPLE_SIZE
    assert mean == pytest.approx(2.5 * SAMPLE_SIZE, rel=0.03)


def test_repeated_sources_are_estimated_in_bounded_memory():
    counter = SourceCounter()
    for number in range(5 * MAX_COUNTED_SOURCES):
        counter.add(f"once {number}")
        if number % 3 == 0:
            counter.add(f"twice {number}")
            counter.add(f"twice {number}")
    assert len(counter._counts) <= MAX_COUNTED_SOURCES
    assert counter.repeated_share == pytest.approx(0.4, abs=0.03)
