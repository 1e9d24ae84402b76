"""The lessons as pages of the documentation, with a trained model and without."""

from __future__ import annotations

import re

import pytest

from attendo.bundle import build_model, save_bundle
from attendo.lessons.blocks import Chart, Frame, LocalizedText, Paragraph, Series, Steps
from attendo.lessons.contents import load_lesson
from attendo.lessons.render import site
from attendo.lessons.render.markdown import MarkdownPage
from attendo.lessons.render.markdown import write_block as write_block

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")


@pytest.fixture(scope="module")
def model(toy, tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    tokenizer = toy.prepared.tokenizer
    save_bundle(folder, build_model("transformer", SIZES, tokenizer), tokenizer)
    return folder


@pytest.fixture
def lessons(monkeypatch):
    """Two lessons tell as much as all: one with pictures of a model, one with charts, too."""
    chosen = [load_lesson(4), load_lesson(9)]
    monkeypatch.setattr(site, "load_lessons", lambda: chosen)
    return chosen


def write(folder, *options):
    site.main([str(folder), *map(str, options)])
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("lesson-*.md")}


@pytest.mark.parametrize(
    ("page", "captions"),
    [
        (
            "lesson-04.md",
            ["Q, K and V of one word", "score, softmax, weighted sum", "all scores of the head"],
        ),
        ("lesson-04.ko.md", ["한 단어의 Q, K, V", "점수, 소프트맥스, 가중합", "헤드의 모든 점수"]),
    ],
)
def test_a_model_is_drawn_where_one_is_given(page, captions, lessons, model, tmp_path):
    pages = write(tmp_path, "--model", model, "--text", "ka to mi")
    text = pages[page]
    found = [one for one in PICTURE.findall(text) if one[1].endswith(".png")]
    assert [caption for caption, _ in found] == captions
    for _, file in found:
        assert (tmp_path / file).read_bytes().startswith(b"\x89PNG")
    assert "ka to mi" in text
    assert "make quickstart" not in "".join(pages.values())


def test_without_a_model_every_page_explains_how_to_get_one(lessons, tmp_path):
    pages = write(tmp_path)
    assert len(pages) == 4
    for name, text in pages.items():
        heading = "여러분의 모델에서" if name.endswith(".ko.md") else "On your own model"
        _, own = text.split(f"## {heading}\n")
        assert "make quickstart" in own
        assert "make docs" in own
        assert ("2분" if name.endswith(".ko.md") else "two minutes") in own


def test_the_lesson_about_the_machine_embeds_it_where_the_page_was_made(
    model, monkeypatch, tmp_path
):
    monkeypatch.setattr(site, "load_lessons", lambda: [load_lesson(0)])
    monkeypatch.setattr(site, "_write_page", lambda *_: None)
    pages = write(tmp_path, "--model", model, "--text", "ka to mi")
    assert 'src="../translator-page/index.html#machine"' in pages["lesson-00.md"]
    assert 'src="../../../lessons/translator-page/index.html#machine"' in pages["lesson-00.ko.md"]
    monkeypatch.setattr(site, "_write_page", lambda *_: "no page")
    assert "iframe" not in "".join(write(tmp_path, "--model", model).values())


def test_pictures_of_an_earlier_model_do_not_stay(lessons, model, tmp_path):
    write(tmp_path, "--model", model, "--text", "ka to mi")
    assert list(tmp_path.glob("*.png"))
    (tmp_path / "mine.png").touch()
    write(tmp_path)
    assert [path.name for path in tmp_path.glob("*.png")] == ["mine.png"]


def test_frames_of_one_chart_each_are_a_table_on_paper():
    def frame(number):
        chart = Chart(
            "bars", LocalizedText("looks", "보는 곳"), ["a", "b"], [Series("share", [number, 0.5])]
        )
        return Frame(f"step {number}", [chart])

    page = MarkdownPage("lesson", "ko")
    write_block(Steps(LocalizedText("steps", "단계"), [frame(0.25), frame(0.75)]), page)
    assert not page.images
    assert page.text.endswith("| step 0.25 | 0.250 | 0.500 |\n| step 0.75 | 0.750 | 0.500 |\n")
    mixed = Steps(
        LocalizedText("steps", "단계"),
        [frame(0.25), Frame("next", [Paragraph(LocalizedText("on", "계속"))])],
    )
    write_block(mixed, page)
    assert len(page.images) == 1


def test_a_folder_without_a_model_is_reported(tmp_path, capsys):
    with pytest.raises(SystemExit) as left:
        site.main([str(tmp_path / "pages"), "--model", str(tmp_path / "nothing")])
    assert left.value.code == 2
    assert "is not a model folder" in capsys.readouterr().err
