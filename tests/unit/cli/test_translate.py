"""`attendo translate`, in front of a model without weights."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
import threading

import pytest
from support.quality import TABLE

from attendo.cli.main import run
from attendo.cli.translation.confidence import describe_bands
from attendo.translator import Translator
from attendo.translator.quality import QualityTable


class Pipe:
    """A standard input of bytes."""

    def __init__(self, content: bytes) -> None:
        self.buffer = io.BytesIO(content)

    def fileno(self) -> int:
        raise io.UnsupportedOperation

    def isatty(self) -> bool:
        return False


@pytest.fixture
def attendo(uppercaser, monkeypatch, capsys):
    """Run the verb; give its lines, its errors and its exit code."""
    monkeypatch.setattr(Translator, "load", lambda *_, **__: uppercaser)
    monkeypatch.setattr("attendo.cli.inputs.check_models", lambda *_: None)

    def call(*words: object, piped: bytes | None = None) -> tuple[list[str], str, int]:
        if piped is not None:
            monkeypatch.setattr("sys.stdin", Pipe(piped))
        with pytest.raises(SystemExit) as ended:
            run(["translate", "runs/any", *map(str, words)])
        shown = capsys.readouterr()
        return shown.out.splitlines(), shown.err, int(ended.value.code or 0)

    return call


def test_words(attendo):
    assert attendo("ka to", "", "mi") == (["KA TO", "", "MI"], "", 0)


def test_a_pipe_gives_a_line_for_a_line(attendo):
    lines, errors, code = attendo(piped="\ufeffka to\r\n\nmi\n".encode())
    assert (lines, errors, code) == (["KA TO", "", "MI"], "", 0)


def test_bytes_that_are_not_utf8_are_reported_and_the_rest_continues(attendo):
    lines, errors, code = attendo(piped=b"ka\nto \xff\nmi\n")
    assert (lines[0], lines[2], len(lines), code) == ("KA", "MI", 3, 0)
    assert "line 2: invalid UTF-8" in errors


@pytest.mark.parametrize("is_packed", [False, True])
def test_a_file_and_an_output(attendo, tmp_path, is_packed):
    source, output = tmp_path / "in.ko", tmp_path / "out.en"
    content = b"ka to\n\nmi\n"
    source.write_bytes(gzip.compress(content) if is_packed else content)
    assert attendo("-i", source, "-o", output) == ([], "", 0)
    assert output.read_text(encoding="utf-8") == "KA TO\n\nMI\n"
    _, errors, code = attendo("-i", source, "-o", output)
    assert "out.en exists" in errors.replace("\n", "")
    assert code == 2
    assert attendo("-i", source, "-o", output, "--force")[2] == 0


def test_the_input_is_never_written_over(attendo, tmp_path):
    source = tmp_path / "same.ko"
    source.write_text("ka to\n", encoding="utf-8")
    for option in ("-o", "--trace"):
        _, errors, code = attendo("-i", source, option, source, "--force")
        assert "is the input file" in errors.replace("\n", "")
        assert code == 2
    assert source.read_text(encoding="utf-8") == "ka to\n"


def test_what_fails_touches_no_file(attendo, tmp_path):
    old = tmp_path / "old.en"
    old.write_text("mine\n", encoding="utf-8")
    assert attendo("ka", "--n-best", 9, "-o", old, "--force")[2] == 2
    assert attendo("ka", "--required", "☃", "-o", old, "--force")[2] == 2
    assert old.read_text(encoding="utf-8") == "mine\n"
    assert attendo("ka", "--n-best", 9, "-o", tmp_path / "new.en")[2] == 2
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".en"] == ["old.en"]


def test_a_packed_output_is_packed(attendo, tmp_path):
    output = tmp_path / "out.en.gz"
    assert attendo("ka to", "mi", "-o", output)[2] == 0
    assert gzip.decompress(output.read_bytes()) == b"KA TO\nMI\n"


def test_a_named_pipe_is_read_once(attendo, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text("ka\nto mi\n", encoding="utf-8"))
    writer.start()
    assert attendo("-i", pipe)[0] == ["KA", "TO MI"]
    writer.join()


def test_utf16_in_a_pipe_is_rejected(attendo):
    _, errors, code = attendo(piped="ka\n".encode("utf-16"))
    assert "UTF-16" in errors
    assert code == 2


def test_columns_hold_for_empty_lines_too(attendo):
    lines, _, _ = attendo("", "ka", "--n-best", 2, "--confidence")
    assert [line.count("\t") for line in lines] == [4, 4, 4]


def test_n_best_is_ranked(attendo):
    lines, _, _ = attendo("ka to", "--n-best", 2)
    ranks, scores, texts = zip(*(line.split("\t") for line in lines), strict=True)
    assert ranks == ("1", "2")
    assert float(scores[0]) > float(scores[1])
    assert texts[0] == "KA TO"


def test_confidence_is_two_columns_of_a_pipe(attendo, uppercaser):
    ((line,), errors, _) = attendo("ka to", "--confidence")
    text, probability, band = line.split("\t")
    assert text == "KA TO"
    (printed,) = uppercaser.translate(["ka to"], confidence=True)
    assert float(probability) == pytest.approx(printed.confidence.probability, abs=1e-3)
    assert band.startswith("? check")  # a model without a table is never sure
    assert errors.count("\n") == 1


def test_a_calibrated_band_has_its_share_and_its_evidence(attendo, uppercaser, monkeypatch):
    monkeypatch.setattr(uppercaser, "quality", QualityTable(**TABLE))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    lines, errors, _ = attendo("ka", "ka to mi re so lu ka to", "zork", "--confidence")
    bands = [line.split("\t")[2] for line in lines]
    assert [band.split()[:3] for band in bands] == [
        ["?", "check", "(60%"],
        ["✗", "low", "(20%"],
        ["✗", "low", "(<1%"],
    ]
    assert ["1 of 1" in band for band in bands] == [False, False, True]
    assert "✓ high 97% of 100" in errors


def test_a_band_that_no_dev_sentence_had_is_left_out():
    none = {"count": 0, "num_right": 0, "num_exact": 0}
    table = QualityTable(**TABLE | {"bands": TABLE["bands"] | {"high": none}})
    assert "✓ high" in describe_bands(QualityTable(**TABLE))
    assert "✓ high" not in describe_bands(table)
    assert "? check" in describe_bands(table)


@pytest.mark.parametrize(
    ("below", "shown"), [("empty", ["KA", "", ""]), ("mark", ["KA", "?? KA TO MI RE SO", "?? "])]
)
def test_lines_that_are_not_sure_enough_are_empty_or_marked(
    attendo, uppercaser, monkeypatch, below, shown
):
    monkeypatch.setattr(uppercaser, "quality", QualityTable(**TABLE))
    texts = ["ka", "ka to mi re so", "zork"]
    lines, errors, _ = attendo(*texts, "--min-confidence", 0.6, "--below", below)
    assert lines[:2] == shown[:2]
    assert lines[2].startswith(shown[2])
    assert "1 of 3 translations" in errors


def test_a_minimum_needs_a_calibrated_model(attendo):
    lines, errors, code = attendo("ka", "--min-confidence", 0.6)
    assert (lines, code) == ([], 2)
    assert "attendo calibrate" in errors


def test_json_and_a_trace(attendo, tmp_path):
    steps = tmp_path / "steps.jsonl"
    lines, _, _ = attendo("ka", "to mi", "--json", "--trace", steps, "--beam-size", 2)
    assert [json.loads(line)["text"] for line in lines] == ["KA", "TO MI"]
    traces = [json.loads(line) for line in steps.read_text(encoding="utf-8").splitlines()]
    assert [trace[0]["beam_size"] for trace in traces] == [2, 2]
    assert all("trace" not in json.loads(line) for line in lines)


def test_a_batch_has_at_most_the_given_tokens(attendo, uppercaser):
    assert attendo("ka", "to", "mi re", "--batch-size", 5, "--beam-size", 1)[0] == [
        "KA",
        "TO",
        "MI RE",
    ]
    assert uppercaser.model.batches == [[3], [2, 2]]


def test_every_option_reaches_the_search(attendo, tmp_path):
    terms = tmp_path / "terms.tsv"
    terms.write_text("to\tSO\n", encoding="utf-8")
    assert attendo("ka to", "--prefix", "LU")[0] == ["LU TO"]
    assert "SO" in attendo("ka to", "--glossary", terms)[0][0].split()
    assert "RE" in attendo("ka to", "--required", "RE")[0][0].split()
    assert "TO" not in attendo("ka to", "--forbidden", "TO")[0][0].split()
    assert attendo("ka zork", "--set", "unk=copy")[0] == ["KA zork"]
    drawn = {attendo("ka to mi re", "--sample", "--seed", seed)[0][0] for seed in range(5)}
    assert len(drawn) > 1


def test_a_line_that_fails_is_empty_and_the_exit_code_tells(attendo, uppercaser, monkeypatch):
    encode = uppercaser.model.encode

    def fragile(src_ids, src_mask=None):
        if src_ids.size(1) > 4:
            raise RuntimeError("too much")
        return encode(src_ids, src_mask)

    monkeypatch.setattr(uppercaser.model, "encode", fragile)
    lines, errors, code = attendo("ka", "ka to mi re so", "mi")
    assert lines == ["KA", "", "MI"]
    assert "line 2: failed: too much" in errors
    assert "lines without a translation, whose output is empty: 1" in errors
    assert code == 1


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["ka", "--set", "beam_sise=3"], "did you mean 'beam_size'"),
        (["ka", "--input", "x.txt"], "both texts and --input"),
        (["ka", "--set", "progress=1"], "unknown key 'progress'"),
        (["ka", "--set", "num_groups"], "is not key=value"),
        (["ka", "--temperature", "0.5"], "need sampling"),
        (["ka", "-o", "no-such-folder/x"], "no folder"),
        (["ka", "--required", "SO LU", "--forbidden", "LU"], "'SO LU' is required"),
        (["--input", "no-such-file.ko"], "does not exist"),
        (["ka", "--n-best", "9"], "n_best 9 is more than beam_size 4"),
        (["ka", "--glossary", "none.tsv"], "none.tsv"),
    ],
)
def test_bad_input_is_reported_with_a_hint(attendo, words, reported):
    lines, errors, code = attendo(*words)
    assert lines == []
    assert reported in errors.replace("\n", "")
    assert code == 2


def test_lines_begin_with_a_tag(attendo, tmp_path):
    (tmp_path / "in").write_text("ka to\nmi\n", encoding="utf-8")
    attendo("-i", tmp_path / "in", "-o", tmp_path / "out", "--tag", "<bt>")
    assert (tmp_path / "out").read_text(encoding="utf-8") == "<bt> KA TO\n<bt> MI\n"


def test_the_translation_that_agrees_with_the_reference_is_written(attendo, tmp_path):
    (tmp_path / "in").write_text("ka to\nmi re so\n", encoding="utf-8")
    ranked, _, _ = attendo("-i", tmp_path / "in", "--n-best", "4")
    texts = [line.split("\t")[2] for line in ranked]
    second = [texts[1], texts[5]]
    assert second != [texts[0], texts[4]]
    (tmp_path / "ref").write_text("".join(f"{text}\n" for text in second), encoding="utf-8")
    given = ("-i", tmp_path / "in", "--n-best", "4", "--agree-with", tmp_path / "ref")
    assert attendo(*given)[0] == second
    assert attendo(*given, "-o", tmp_path / "out")[2] == 0
    assert (tmp_path / "out").read_text(encoding="utf-8").splitlines() == second


@pytest.mark.parametrize("more", [[], ["--n-best", "4", "--json"], ["--n-best", "4"]])
def test_agreement_needs_a_choice_and_a_reference_for_each_line(attendo, tmp_path, more):
    (tmp_path / "in").write_text("ka to\n", encoding="utf-8")
    (tmp_path / "ref").write_text("ka to\nmi\n", encoding="utf-8")
    _, errors, code = attendo("-i", tmp_path / "in", "--agree-with", tmp_path / "ref", *more)
    assert code == 2
    assert "hint" in errors


def test_bug_text_that_the_model_does_not_know_must_not_be_translated_silently(attendo):
    assert "never occurred in training" in attendo("ㅎㅎ ㅋㅋ")[1]
    assert "never occurred in training" not in attendo("ka to", "ka ㅎ to mi")[1]


@pytest.fixture
def without_attention(monkeypatch):
    """The model without weights has no attention to align words with."""
    from attendo.documents import alignment

    monkeypatch.setattr(alignment, "_align", lambda *_: None)
    monkeypatch.setattr("attendo.bundle.read_about", lambda _: {"tgt_lang": "de"})


@pytest.mark.parametrize("words", [("-i", "{path}"), ("{path}",)])
def test_a_document_comes_back_whole(attendo, without_attention, tmp_path, words):
    path, output = tmp_path / "a.html", tmp_path / "a.de.html"
    page = '<html lang="{}"><meta charset="utf-8"><p>{} <b>{}</b></p></html>'
    path.write_text(page.format("en", "ka", "to"), "utf-8")
    lines, errors, code = attendo(*(one.format(path=path) for one in words), "-o", output)
    assert (lines, code) == ([], 0)
    assert f"1 texts translated: {output}" in errors
    assert output.read_text("utf-8") == page.format("de", "KA", "TO")
    _, errors, code = attendo("-i", path, "-o", output)
    assert (code, "exists" in errors) == (2, True)


@pytest.mark.parametrize("name", ["a.txt", "news.2026.ko"])
def test_bug_the_name_of_a_text_file_must_not_be_translated(attendo, tmp_path, name):
    path, output = tmp_path / name, tmp_path / "out.txt"
    path.write_text("ka\nto mi\n", "utf-8")
    assert attendo(path, "-o", output)[2] == 0
    assert output.read_text("utf-8") == "KA\nTO MI\n"
    assert len(attendo(str(path))[0]) == 1  # without --output it is a text
    assert attendo("ka", "-o", tmp_path / "text.txt")[2] == 0
    assert (tmp_path / "text.txt").read_text("utf-8") == "KA\n"


def test_the_format_decides_whether_a_file_is_lines(attendo, without_attention, tmp_path):
    path, output = tmp_path / "a.json", tmp_path / "b.json"
    path.write_text('{"ka": "to"}', "utf-8")
    assert attendo("-i", path, "-o", output)[2] == 0
    assert output.read_text("utf-8") == '{"ka": "TO"}'
    assert attendo("-i", path, "-o", output, "--format", "txt", "--force")[2] == 0
    assert output.read_text("utf-8") != '{"ka": "TO"}'
    path.write_text("ka\n\nto\n", "utf-8")
    assert attendo("-i", path, "-o", output, "--format", "md", "--force")[2] == 0
    assert output.read_text("utf-8") == "KA\n\nTO\n"


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("-i", "{path}"), "a document needs --output"),
        (("-i", "{path}", "-o", "x", "--json", "--n-best", "2"), "--json, --n-best"),
        (("-i", "{path}", "-o", "x", "--format", "pdf"), "--format pdf: unknown value"),
        (("-i", "{path}", "-o", "x.docx"), "damaged"),
        (("{path}",), "a document needs --output"),
        (("missing.docx", "-o", "x.docx"), "missing.docx"),
        (("-i", "{path}", "-o", "x.odt"), "the output is a docx document"),
        (("-i", "{path}", "-o", "x.docx", "--below", "mark"), "--below: not for documents"),
        (("-i", "{path}", "-o", "x.docx", "--min-confidence", "0.9"), "damaged"),
        (("-i", "{path}", "-o", "{path}", "--force"), "is the input file"),
    ],
)
def test_what_cannot_be_done_with_a_document_is_reported(
    attendo, without_attention, tmp_path, words, reported
):
    path = tmp_path / "a.docx"
    path.write_bytes(b"no document")
    _, errors, code = attendo(*(one.format(path=path) for one in words))
    assert (code, reported in errors) == (2, True), errors


@pytest.mark.parametrize(
    ("name", "source", "expected"),
    [
        ("a.json", '{"a": "ka", "b": "ka to mi re so"}', '{"a": "KA", "b": "ka to mi re so"}'),
        ("a.po", 'msgid "ka"\nmsgstr ""\n\nmsgid "ka to mi re so"\nmsgstr ""\n',
         '#, fuzzy\nmsgid "ka"\nmsgstr "KA"\n\nmsgid "ka to mi re so"\nmsgstr ""\n'),
    ],
)  # fmt: skip
def test_unsure_texts_of_a_document_stay_untranslated(
    attendo, uppercaser, without_attention, monkeypatch, tmp_path, name, source, expected
):
    monkeypatch.setattr(uppercaser, "quality", QualityTable(**TABLE))
    path, output = tmp_path / name, tmp_path / f"out.{name}"
    path.write_text(source, "utf-8")
    _, errors, code = attendo("-i", path, "-o", output, "--min-confidence", 0.6)
    assert code == 0, errors
    assert output.read_text("utf-8") == expected
    assert "texts left untranslated, as not sure: 1" in errors


def test_an_unsure_unit_of_xliff_has_no_target(
    attendo, uppercaser, without_attention, monkeypatch, tmp_path
):
    monkeypatch.setattr(uppercaser, "quality", QualityTable(**TABLE))
    path, output = tmp_path / "a.xlf", tmp_path / "b.xlf"
    unit = '<trans-unit id="{}"><source>{}</source></trans-unit>'
    body = unit.format(1, "ka") + unit.format(2, "ka to mi re so")
    path.write_text(f'<xliff version="1.2"><file original="a"><body>{body}</body></file></xliff>')
    assert attendo("-i", path, "-o", output, "--min-confidence", 0.6)[2] == 0
    assert output.read_text("utf-8").count("<target") == 1
