from __future__ import annotations

import pytest

from attendo.text.languages import LANGUAGE_NAMES, find_language, match_language


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("en", "en"),
        ("KOR", "ko"),
        ("pt-BR", "pt-br"),
        ("zh_CN", "zh-cn"),
        ("zh-Hant-TW", "zh-hant-tw"),
        ("es-419", "es-419"),
        ("English", "en"),
        ("FRANÇAIS", "fr"),
        ("日本語", "ja"),
        ("독일어", "de"),
        (" simplified_chinese ", "zh"),
        ("Norwegian Bokmål", "nb"),
        ("question", None),
        ("xx", None),
        ("", None),
        ("en fr", None),
        ("I", None),
    ],
)
def test_languages_are_known_by_code_and_name(text, code):
    assert find_language(text) == code


def test_every_code_and_name_means_its_own_language():
    for code, name in LANGUAGE_NAMES.items():
        assert find_language(code) == find_language(name) == find_language(name.upper()) == code


@pytest.mark.parametrize(
    ("requested", "available", "found"),
    [
        ("en", ["fr", "en-GB", "en"], "en"),
        ("en", ["fr", "en_GB"], "en_GB"),
        ("en-US", ["fr", "English"], "English"),
        ("pt-BR", ["pt-PT"], None),
        ("tlh", ["TLH", "en"], "TLH"),
        ("de", [], None),
    ],
)
def test_the_nearest_language_is_matched(requested, available, found):
    assert match_language(requested, available) == found
