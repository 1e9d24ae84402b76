from __future__ import annotations

import pytest

from attendo.core.errors import InputError
from attendo.i18n.messages import translate_message
from attendo.serving.language_detection import detect, identify
from attendo.serving.model_registry import ModelRegistry
from attendo.serving.served_model import TextModelHandle
from attendo.serving.source_language import detect_source

KOREAN_AND_ENGLISH = ["ko", "en"]


def make_registry(*pairs: tuple[str, str]) -> ModelRegistry:
    registry = ModelRegistry()
    for src, tgt in pairs:
        registry.add(TextModelHandle(f"{src}-{tgt}", src, tgt, None, {}))
    return registry


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("나는 학생이다.", "ko"),
        ("나는 TV를 본다.", "ko"),
        ("The prince saved the princess.", "en"),
        ("The weather is nice today.", "en"),
    ],
)
def test_languages_of_the_models_are_recognized(text, code) -> None:
    found = identify(text, KOREAN_AND_ENGLISH)
    assert found.other is None
    assert found.ranked[0].language == code
    assert found.ranked[0].confidence > 50


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("これは日本語です", "ja"),
        ("你好，世界，今天天气很好", "zh"),
        ("Bonjour, je suis étudiant.", "fr"),
        ("Der Hund läuft über die Straße.", "de"),
        ("Ο σκύλος τρέχει στον δρόμο.", "el"),
        ("Привет, как у тебя дела сегодня?", "ru"),
    ],
)
def test_none_of_these_is_an_answer(text, code) -> None:
    found = identify(text, KOREAN_AND_ENGLISH)
    assert found.other is not None
    assert found.other.language == code
    assert detect(text, KOREAN_AND_ENGLISH)[0].confidence < 10


def test_a_script_that_no_model_has_is_another_language_however_unsure() -> None:
    assert identify("Да", KOREAN_AND_ENGLISH).other is not None
    assert identify("Да", ["ru", "en"]).ranked[0].language == "ru"


def test_a_short_text_that_may_be_in_a_known_language_counts_as_one() -> None:
    for text in ("Hello", "TV", "Tom left.", "12345", ""):
        assert identify(text, ["en", "ko"]).other is None
        assert identify(text, ["en", "ko"]).ranked[0].language == "en"


def test_codes_with_regions_and_unknown_ones() -> None:
    assert detect("Das ist ein Haus", ["xx", "de-AT", "ko"])[0].language == "de-AT"
    assert detect("나는 간다", ["ko-KR", "en"])[0].language == "ko-KR"


def test_a_text_in_another_language_is_rejected_with_the_known_ones() -> None:
    registry = make_registry(("ko", "en"), ("en", "ko"))
    assert detect_source(registry, "나는 학생이다.", "en").language == "ko"
    with pytest.raises(InputError, match="French") as caught:
        detect_source(registry, "Bonjour, je suis étudiant.", "en")
    assert "ko to en" in caught.value.hint
    assert "en to ko" not in caught.value.hint
    assert "to" not in translate_message(caught.value.hint, "ko").split()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("OpenType 字体", "zh"),
        ("Cisco VPN 设置", "zh"),
        ("英语（Macintosh）", "zh"),
        ("QuickTime 動画", "ja"),
        ("暗号化接続", "ja"),
        ("JPEG 画像", "ja"),
        ("Sony SR2 raw 画像", "ja"),
        ("NTVMSLNM (言語名)", "ja"),
        ("PKCS#10 証明書署名要求", "ja"),
        ("RealMedia 文档", "zh"),
        ("WMLScript 程序", "zh"),
        ("MicroDVD 字幕", "zh"),
        ("中国", "zh"),
        ("gssapi, 和sspi", "zh"),
        ("Photoshop を開く", "ja"),
        ("primary_conninfo 설정도 없음", "ko"),
        ("The name of Tokyo is 東京 in Japanese.", "en"),
    ],
)
def test_names_in_latin_letters_do_not_decide(text, code) -> None:
    assert detect(text, ["en", "de", "fr", "ko", "ja", "zh"])[0].language == code


def test_a_title_in_chinese_characters_is_japanese_where_only_japanese_is_served() -> None:
    assert identify("英語", ["ja", "en"]).other is None
    assert detect("英語", ["ja", "en"])[0].language == "ja"
    assert identify("视频和字体", ["ja", "en"]).other.language == "zh"
    assert detect("字幕", ["ja", "zh-TW"])[0].language == "zh-TW"
