from __future__ import annotations

import re

import pytest

import attendo
from attendo.model import attention, masks, positional_encoding


def test_all_is_the_public_api():
    assert attendo.__all__ == [
        "AttendoError",
        "Forecaster",
        "MaskFiller",
        "TextGenerator",
        "Trainer",
        "Transformer",
        "TransformerConfig",
        "Translator",
        "__version__",
        "evaluate",
        "export_model",
        "finish_run",
        "import_model",
        "inspect_sentence",
        "train",
    ]
    for name in attendo.__all__:
        assert getattr(attendo, name) is not None
    assert set(attendo.__all__) <= set(dir(attendo))


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'Transfomer'"):
        attendo.Transfomer  # noqa: B018


def test_names_to_keep():
    assert attendo.Transformer.from_preset("tiny", vocab_size=10).config.vocab_size == 10
    assert attention.scaled_dot_product.__kwdefaults__["need_weights"] is False
    assert positional_encoding.sinusoidal.__kwdefaults__["layout"] == "interleaved"
    assert callable(masks.padding_mask)
    assert callable(masks.causal_mask)


def test_version_is_the_newest_in_the_changelog(repository):
    changelog = (repository / "CHANGELOG.md").read_text(encoding="utf-8")
    versions = re.findall(r"^## \[(.+?)\]", changelog, flags=re.MULTILINE)
    assert attendo.__version__ in versions[:2]
