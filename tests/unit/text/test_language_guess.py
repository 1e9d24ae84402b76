from __future__ import annotations

import pytest

from attendo.text.language_guess import (
    LanguageGuess,
    are_related,
    find_script,
    guess_language,
    guess_other_language,
    language_script,
)

SENTENCES = {
    "en": "I do not know what she said, but it was not about the books that you have.",
    "de": "Ich weiß nicht, was sie gesagt hat, aber es war nicht über die Bücher, die du hast.",
    "fr": "Je ne sais pas ce qu'elle a dit, mais ce n'est pas sur les livres que vous avez.",
    "es": "No sé lo que ella dijo, pero no era sobre los libros que usted tiene en su casa.",
    "pt": "Eu não sei o que ela disse, mas não foi sobre os livros que você tem em sua casa.",
    "it": "Non so che cosa ha detto, ma non era per i libri che hai nella tua casa con lui.",
    "nl": "Ik weet niet wat ze zei, maar het was niet over de boeken die je in je huis hebt.",
    "sv": "Jag vet inte vad hon sa, men det var inte om de böcker som du har i ditt hus.",
    "pl": "Nie wiem, co ona powiedziała, ale to nie było o książkach, które są w tym domu.",
    "fi": "En tiedä mitä hän sanoi, mutta se ei ollut niistä kirjoista, jotka ovat tässä.",
    "tr": "Onun ne söylediğini bilmiyorum ama bu senin için olan kitaplar ile ilgili değil.",
    "ru": "Я не знаю, что она сказала, но это было не о тех книгах, которые есть у вас.",
    "bg": "Не знам какво каза тя, но това не беше за книгите, които ти имаш и са при мен.",
    "ko": "나는 그녀가 뭐라고 했는지 모르지만 네가 가진 책에 대한 것은 아니었다.",
    "ja": "彼女が何と言ったのか分かりませんが、あなたの本についてではありませんでした。",
    "zh": "我不知道她说了什么,但那不是关于你家里的书。",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_texts_are_recognized(language):
    assert guess_language([SENTENCES[language]] * 4).language == language


def test_too_little_text_and_nonsense_stay_open():
    assert guess_language(["Tom"]) == LanguageGuess(None, "Latin")
    assert guess_language(["qwrt zxcv plmk"] * 100) == LanguageGuess(None, "Latin")
    assert guess_language(["12 + 4", ""]) == LanguageGuess(None, None)


def test_scripts():
    assert find_script("3월의 Windows 10 업데이트") == "Latin"
    assert find_script("윈도우 10 업데이트") == "Hangul"
    assert find_script("Привет, Tom!") == "Cyrillic"
    assert find_script("日本") == "Han"
    assert find_script("… 12 %") is None


def test_a_line_of_another_language_is_noticed():
    french = guess_language([SENTENCES["fr"]] * 4)
    assert guess_other_language(SENTENCES["de"], french) == "de"
    assert guess_other_language(SENTENCES["ru"], french) == "Cyrillic"
    assert guess_other_language(SENTENCES["fr"], french) is None
    assert guess_other_language("Tom, New York 2020", french) is None


def test_names_and_code_in_latin_letters_are_usual_in_other_scripts():
    korean = LanguageGuess("ko", "Hangul")
    assert guess_other_language("import numpy as np를 실행합니다", korean) is None
    assert guess_other_language("numpy", korean) is None
    assert guess_other_language("This line was not translated.", korean) == "Latin"


def test_codes():
    assert are_related("pt_BR", "pt")
    assert are_related("nb", "da")
    assert not are_related("de", "nl")
    assert [language_script(code) for code in ("ko-KR", "fr", "sr", "xx")] == [
        "Hangul",
        "Latin",
        "Cyrillic",
        None,
    ]
