from __future__ import annotations

import pytest

from attendo.text.copy_spans import find_copy_spans, missing_spans


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("자세한 것은 https://a.kr/b?c=1&d=2#e 를 보라.", "url", ["https://a.kr/b?c=1&d=2#e"]),
        ("See (http://example.com/x).", "url", ["http://example.com/x"]),
        ("www.attendo.org에서", "url", ["www.attendo.org"]),
        ("mail kim.lee+x@mail.example.co.kr!", "email", ["kim.lee+x@mail.example.co.kr"]),
        ("kim@example.com으로", "email", ["kim@example.com"]),
        ("😀👍🏽 👩‍👩‍👧‍👦 🇰🇷 ❤️ 1️⃣", "emoji", ["😀👍🏽", "👩‍👩‍👧‍👦", "🇰🇷", "❤️", "1️⃣"]),
        ("3명, 12,345.67원, -5°, 10%, 2024-03-05", "number",
         ["3", "12,345.67", "-5°", "10%", "2024-03-05"]),
        ("http://a.kr/{id}?q=${Q} www.{x}.kr", "url", ["http://a.kr/{id}?q=${Q}", "www.{x}.kr"]),
        ("www.{ $host } https://{ $host }", "placeholder", ["{ $host }", "{ $host }"]),
        ("%s: %d of %2$s, %(name)s %5.1f%% %lu", "placeholder",
         ["%s", "%d", "%2$s", "%(name)s", "%5.1f", "%%", "%lu"]),
        ("{name} {} { $n } {0:.2f} {{x.y}} ${HOME} $x %{a} #{b} @v@", "placeholder",
         ["{name}", "{}", "{ $n }", "{0:.2f}", "{{x.y}}", "${HOME}", "$x", "%{a}", "#{b}", "@v@"]),
        ('{ -brand-name } { learn-more } { NUMBER($x, style: "percent") } { "" } %1$S %S %1%',
         "placeholder", ["{ -brand-name }", "{ learn-more }", '{ NUMBER($x, style: "percent") }',
                         '{ "" }', "%1$S", "%S", "%1%"]),
        ("%1 of %L2 at %H:%M, &amp; &#39; <0/> <1>a</1>", "placeholder",
         ["%1", "%L2", "%H", "%M", "&amp;", "&#39;", "<0/>", "<1>", "</1>"]),
        ("%% of %s", "placeholder", ["%%", "%s"]),
        ("$3.50 and 7:45.", "number", ["$3.50", "7:45"]),
    ],
)  # fmt: skip
def test_spans_are_found(text, kind, found) -> None:
    spans = find_copy_spans(text)
    assert [span.text for span in spans] == found
    assert {span.kind for span in spans} == {kind}
    assert all(text[span.start : span.end] == span.text for span in spans)


@pytest.mark.parametrize(
    "text",
    [
        "5 % of"[1:],
        "a {set, of} things",
        "R&D; A&B",
        "10 % e"[2:],
        "GPT4 and mp3",
        "the 3rd",
        "a_1",
        "© Attendo ™ 없음"[:1],
        "no: at",
    ],
)
def test_words_with_digits_and_plain_text_have_none(text) -> None:
    assert find_copy_spans(text) == []


def test_a_span_is_missing_as_often_as_it_is_not_reproduced() -> None:
    spans = find_copy_spans("3 plus 3 is 6")
    assert [span.text for span in missing_spans(spans, "3 und 36 macht sechs")] == ["3", "6"]


def test_long_text_takes_linear_time() -> None:
    for text in ("1," * 100_000, "a." * 100_000, "👩‍" * 50_000, "x@" * 100_000, "www." * 50_000,
                 "%(" * 100_000, "{a" * 100_000, "${a" * 100_000, "&a" * 100_000, "%-" * 100_000,
                 "%(" + "a" * 200_000, "{ " * 100_000):  # fmt: skip
        find_copy_spans(text)
