from __future__ import annotations

from html.parser import HTMLParser
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attendo.serving.html_segments import split_html

PARTS = ["<", ">", "</", "<p", "<b>", "</b>", "<!--", "-->", "<script>", "</script>", "<svg>",
         "</svg>", "'", '"', "=", " ", "\n", "a", "가", "&amp;", "&", "/", "!", "?", "x='", "<br/>",
         "translate=no"]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("plain words", ["plain words"]),
        ("<p>one</p><p> two </p>", ["one", "two"]),
        ("<p title='a > b'>x</p>", ["x"]),
        ("a &lt; b &amp;amp; 가", ["a < b &amp; 가"]),
        ("<!-- no --><!doctype html><?php no ?>yes", ["yes"]),
        ("<script>if (a < b) '<p>no</p>'</script>yes", ["yes"]),
        ("<STYLE>p { no }</STYLE>yes<textarea>no</textarea>", ["yes"]),
        ("<code>no <code>no</code> no</code>yes", ["yes"]),
        ("<div translate='no'>no <b>no</b><br></div>yes", ["yes"]),
        ("<img translate=no>yes<br/>yes too", ["yes", "yes too"]),
        ("1 < 2 and 3 > 2", ["1 < 2 and 3 > 2"]),
        ("<p>...</p><p>  </p><p>7</p>", ["7"]),
        ("<p>open <b", ["open <b"]),
        ("<script>never closed", []),
        ("", []),
    ],
)
def test_what_a_reader_sees_is_what_is_translated(source, texts) -> None:
    page = split_html(source)
    assert page.texts == texts
    assert "".join(page.segments) == source


def test_all_but_the_texts_stays_to_the_letter() -> None:
    source = (
        "<!doctype html>\n<P CLASS=x >\n  one&nbsp;two <b>three</b>\r\n</P><script>1<2</script>"
    )
    made = split_html(source).replace_texts(["1", "2"])
    assert made == "<!doctype html>\n<P CLASS=x >\n  1 <b>2</b>\r\n</P><script>1<2</script>"


def test_a_translation_brings_no_tags_along() -> None:
    evil = "<script>alert('x')</script> & <img src=x onerror=alert(1)>"

    class Tags(HTMLParser):
        found: list[str] = []  # noqa: RUF012 - of one test

        def handle_starttag(self, tag, _attrs) -> None:
            self.found.append(tag)

    made = split_html("<p>words</p>").replace_texts([evil])
    tags = Tags()
    tags.feed(made)
    assert tags.found == ["p"]


@given(st.lists(st.sampled_from(PARTS), max_size=40).map("".join))
def test_no_page_is_lost_and_every_text_has_its_place(source) -> None:
    page = split_html(source)
    assert "".join(page.segments) == source
    assert len(page.texts) == len(page.text_indices)
    assert all(text.strip() for text in page.texts)
    split_html(page.replace_texts(["new" for _ in page.texts]))


@pytest.mark.parametrize(
    "part", ["<a ", "<!--", "<", "&", "</", "<svg>", "<a x='", "<?", "= ", "<script>", " "]
)
def test_pages_that_are_made_to_hurt_take_no_longer_than_they_are(part) -> None:
    """The standard library's parser needs minutes for the first."""
    source = f"<p>x</p>{part * (120_000 // len(part))}"
    begin = process_time()
    page = split_html(source)
    page.replace_texts(page.texts)
    assert process_time() - begin < 20  # CPU time: how busy the machine is does not count
    assert "".join(page.segments) == source
