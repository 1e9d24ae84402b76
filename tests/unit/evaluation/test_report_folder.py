from __future__ import annotations

import json
import struct
import sys
import zlib

import pytest

from attendo.core.errors import AttendoError, InputError
from attendo.evaluation import report_folder as report_module
from attendo.evaluation.evaluate import evaluate
from attendo.evaluation.markdown import other_metrics, render_markdown
from attendo.evaluation.plots import plot_report
from attendo.evaluation.report_folder import prepare_folder, save_report, to_json

SOURCES = [f"word {' '.join('x' * (directory % 12 + 1))}" for directory in range(24)]
REFERENCES = [f"나는 {directory}번째 | 학생이다 *정말* `코드`" for directory in range(24)]
OUTPUTS = [
    text.replace("정말", "참") if directory % 2 else text
    for directory, text in enumerate(REFERENCES)
]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def files(tmp_path):
    return {
        "src": write(tmp_path / "test.src", SOURCES),
        "ref": write(tmp_path / "test.ref", REFERENCES),
        "outputs": write(tmp_path / "ours.txt", OUTPUTS),
    }


@pytest.fixture
def report(files, tmp_path):
    other = write(tmp_path / "theirs.txt", ["그는 학생이다"] * 24)
    return evaluate(**files, against=other, num_samples=20).report


def read_png(data: bytes) -> tuple[int, int, int]:
    """Return width, height and the number of different bytes in the pixels of a PNG."""
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", data[16:24])
    directory, packed = 8, b""
    while directory < len(data):
        (size,) = struct.unpack(">I", data[directory : directory + 4])
        if data[directory + 4 : directory + 8] == b"IDAT":
            packed += data[directory + 8 : directory + 8 + size]
        directory += size + 12
    return width, height, len(set(zlib.decompress(packed)))


def test_the_page_names_every_score_with_its_signature(report):
    page = render_markdown(report, [])
    for score in report["system"]["scores"]:
        assert f"| {score['value']:.2f} | {score['low']:.2f} to {score['high']:.2f} |" in page
        assert f"- {score['name']}: `{score['signature']}`" in page
    for row in report["comparison"]:
        assert f"{row['difference']:+.2f} | {row['p_value']:.3f} |" in page
    for heading in ("Scores", "Against", "Other metrics", "By source length", "Worst sentences"):
        assert f"\n## {heading}" in page


def test_texts_are_on_the_page_as_they_are(report):
    page = render_markdown(report, [])
    worst = report["system"]["worst"][0]
    assert f"```text\nsource     {worst['source']}\noutput     {worst['output']}\n" in page
    assert "*정말* `코드`" in page


def test_tables_have_as_many_cells_in_every_row(report):
    page = render_markdown(report, ["chrf_spread.png"])
    rows = [line for line in page.split("\n") if line.startswith("|")]
    tables = [block for block in page.split("\n\n") if block.startswith("|")]
    assert len(tables) == 4
    assert rows
    for table in tables:
        assert len({line.count("|") for line in table.split("\n")}) == 1


def test_figures_that_were_not_measured_are_left_out(report):
    assert [row[0].split()[0] for row in other_metrics(report)] == ["length", "outputs", "empty"]
    assert all(len(row) == 3 for row in other_metrics(report))


def test_pictures_are_drawn_and_not_blank(report):
    pictures = plot_report(report)
    assert set(pictures) == {"bleu_by_length.png", "chrf_spread.png"}
    for data in pictures.values():
        width, height, num_values = read_png(data)
        assert width > 800
        assert height > 400
        assert num_values > 50


def test_without_sources_there_is_no_picture_by_length(files):
    report = evaluate(ref=files["ref"], outputs=files["outputs"], num_samples=0).report
    assert set(plot_report(report)) == {"chrf_spread.png"}
    assert "By source length" not in render_markdown(report, [])


def test_without_matplotlib_the_report_comes_without_pictures(files, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = evaluate(**files, num_samples=0, out=tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"outputs.txt", "report.json", "report.md"}
    page = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "attendo[plots]" in page
    assert "![" not in page
    assert any("attendo[plots]" in note for note in found.report["notes"])


def test_json_has_no_nan(report):
    report["system"]["likelihood"] = {"perplexity": float("nan"), "loss": float("inf")}
    read = json.loads(to_json(report), parse_constant=lambda name: pytest.fail(name))
    assert read["system"]["likelihood"] == {"perplexity": None, "loss": None}
    assert "나는" in to_json(report)


# --- the folder


@pytest.mark.parametrize(
    "names", [["notes.txt"], ["outputs.txt"], ["report.json"], ["outputs.txt", "thesis.tex"]]
)
def test_a_folder_with_files_of_others_is_rejected_and_left_alone(files, tmp_path, names):
    folder = tmp_path / "mine"
    folder.mkdir()
    for name in names:
        (folder / name).write_text("[1]", encoding="utf-8")
    with pytest.raises(InputError, match="nothing in it was changed"):
        evaluate(**files, num_samples=0, out=folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert all((folder / name).read_text(encoding="utf-8") == "[1]" for name in names)


def test_the_folder_of_an_earlier_evaluation_is_written_again(files, tmp_path):
    out = tmp_path / "out"
    other = write(tmp_path / "theirs.txt", REFERENCES)
    evaluate(**files, against=other, num_samples=0, out=out)
    assert (out / "against.txt").read_text(encoding="utf-8").split("\n")[:-1] == REFERENCES
    evaluate(ref=files["ref"], outputs=other, num_samples=0, out=out)
    names = {path.name for path in out.iterdir()}
    assert names == {"outputs.txt", "report.json", "report.md", "chrf_spread.png"}
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["system"]["scores"][0]["value"] == 100.0
    assert report["against"] is None


def test_a_file_instead_of_the_folder_is_rejected(tmp_path):
    path = write(tmp_path / "file", ["x"])
    for directory in (path, path / "below"):
        with pytest.raises(InputError, match="cannot be created"):
            prepare_folder(directory)


def test_outputs_survive_a_failure_of_the_scoring(files, tmp_path, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("attendo.evaluation.evaluator.score_outputs", fail)
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        evaluate(**files, out=out)
    assert (out / "outputs.txt").read_text(encoding="utf-8").split("\n")[:-1] == OUTPUTS
    assert json.loads((out / "report.json").read_text(encoding="utf-8"))["finished"] is False
    monkeypatch.undo()
    again = evaluate(ref=files["ref"], outputs=out / "outputs.txt", num_samples=0, out=out)
    assert again.report["finished"]
    assert (out / "outputs.txt").read_text(encoding="utf-8").split("\n")[:-1] == OUTPUTS


def test_a_full_disk_is_reported_with_what_is_safe(report, tmp_path, monkeypatch):
    def fail(path, content):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(report_module, "write_atomically", fail)
    with pytest.raises(AttendoError, match=r"No space left.*\n.*outputs\.txt holds with --outputs"):
        save_report(tmp_path, report)
