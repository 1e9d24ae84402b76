from __future__ import annotations

import json

import pytest

import attendo.inspection.html_page as pages
from attendo.core.errors import AttendoError
from attendo.inspection.html_page import RECORD_PLACEHOLDER, render_iframe, render_page
from attendo.inspection.inspect_sentence import inspect_sentence
from attendo.model.transformer import Transformer
from attendo.translator import Translator


@pytest.fixture(scope="module")
def record(toy):
    tokenizer = toy.prepared.tokenizer
    model = Transformer(
        tokenizer.src_vocab_size, d_model=16, d_ff=32, num_heads=2, num_layers=1
    ).eval()
    return inspect_sentence(Translator(model, tokenizer), "ka to </script> mi", max_length=6)


def test_a_small_model_is_looked_at_from_every_side(record):
    assert record.logit_lens is not None
    assert record.attribution is not None
    assert record.ablation is not None


def test_the_record_is_embedded_in_the_page_and_escaped(record, monkeypatch):
    template = f'<html><script type="application/json" id="r">{RECORD_PLACEHOLDER}</script></html>'
    monkeypatch.setattr(pages, "read_template", lambda: template)
    page = render_page(record)
    inside = page.split('id="r">')[1].split("</script>")[0]
    assert json.loads(inside) == record.to_dict()
    assert page.count("</script>") == 1


def test_a_notebook_gets_a_frame(record, monkeypatch):
    monkeypatch.setattr(pages, "read_template", lambda: f"<p>{RECORD_PLACEHOLDER}</p>")
    frame = record._repr_html_()
    assert frame == render_iframe(record)
    assert frame.startswith('<iframe srcdoc="&lt;p&gt;{')
    assert frame.count("<") == 2


def test_a_page_that_is_not_built_is_reported(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "files", lambda _: tmp_path)
    with pytest.raises(AttendoError, match=r"not built\n.*make web"):
        pages.read_template()
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "look.html").write_text("<html></html>", encoding="utf-8")
    with pytest.raises(AttendoError, match="no placeholder for a record"):
        pages.read_template()
