from __future__ import annotations

import pytest

from attendo.text.kanji import has_japanese_kanji, is_japanese_kanji


@pytest.mark.parametrize("text", ["暗号化接続", "印刷設定", "参照番号", "画像 (gzip 圧縮)"])
def test_titles_without_kana_are_japanese(text) -> None:
    assert is_japanese_kanji(text)


@pytest.mark.parametrize(
    "text", ["中国", "北京大学", "中国人民", "配置文件位置", "不能返回集合", "本地文件"]
)
def test_simplified_chinese_in_common_characters_is_not_japanese(text) -> None:
    assert has_japanese_kanji(text)
    assert not is_japanese_kanji(text)


@pytest.mark.parametrize("text", ["無法建立", "使用者名稱", "自訂大小", "不完整的多位元組序列"])
def test_traditional_chinese_is_not_japanese(text) -> None:
    assert not is_japanese_kanji(text)
