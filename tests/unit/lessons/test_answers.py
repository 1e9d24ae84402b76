"""Answers as learners type them: right ones are accepted, wrong and unclear ones are not."""

from __future__ import annotations

import pytest

from attendo.lessons.contents import load_lesson

RIGHT = {
    (1, 1): ("a", "first", "the first word", "첫 단어", "첫 단어요", "1"),
    (1, 2): ("1/3", "0.333", "0,333", "33.3%", "약 0.33"),
    (2, 2): ("row 6", "6번 행", "E의 6번 행"),
    (3, 3): ("10 and 12", "10,12", "10 & 12", "10과 12"),
    (3, 2): ("5", "five", "all five", "다섯", "다섯 개"),
    (4, 1): ("4", "four", "Four.", "넷입니다"),
    (4, 2): (
        *("x2", "X₂", "x_2", "b", "B)", "2", "②", "the second word, x2", "x2입니다"),
        *("second", "the second word", "둘째", "두 번째 단어"),
    ),
    (5, 3): ("it doubles", "doubled", "2배", "두 배가 된다"),
    (7, 1): ("10", "10 cells", "10칸", "it hides 10"),
    (8, 2): ("batch norm", "Batch", "배치 정규화"),
    (9, 3): ("-0.166", "−0.166", "-.166", "-1.66 × 10⁻¹"),
    (11, 1): ("5x7", "5 x 7", "5 × 7", "5*7", "5 by 7", "5행 7열", "a", "5 rows and 7 columns"),
    (11, 2): ("1,051,648", "1051648", "1 051 648", "1.051.648", "105만 1648", "105만 1,648개"),
    (11, 3): ("encoder layer 6", "the sixth encoder layer", "인코더 6층"),
    (12, 3): (
        *("stays the same", "I think it stays the same.", "그대로예요", "그대로입니다"),
        *("unchanged", "It does not change", "it doesn't change", "nothing", "변하지 않는다"),
        *("바뀌지 않습니다", "변화가 없다"),
    ),
    (13, 2): ("the true one", "정답", "정답 단어입니다"),
    (13, 3): ("2", "1/2", "half", "two", "절반", "두 배"),
    (15, 1): ("self attention", "Self-Attention", "셀프 어텐션"),
    (22, 3): ("8", "1/8", "8배", "eight"),
}
WRONG = {
    (1, 1): ("the last word", "first and last", "not the first", "word", "9", "j"),
    (4, 1): ("five", "four or five", "다섯"),
    (4, 2): ("x1", "x1 and x2", "not x2", "c", "word", "the first word", "not the second", "셋째"),
    (5, 3): ("4배", "it stays the same"),
    (8, 2): ("both", "둘 다", "layer norm or batch norm"),
    (9, 3): ("0.166", "-0.125 or -0.166", "-"),
    (11, 1): ("7 x 5", "7", "5", "7 rows and 5 columns"),
    (11, 2): ("1 051 649", "1 051 648 or 5", "105만"),
    (11, 3): ("the third layer", "the fourth encoder layer", "decoder layer 3"),
    (12, 3): ("it rises", "커집니다", "it does not stay the same", "it changes", "바뀝니다"),
    (13, 3): ("1/4", "4", "0"),
}


def cases(table):
    return [(*position, text) for position, texts in table.items() for text in texts]


@pytest.mark.parametrize(("lesson", "number", "text"), cases(RIGHT))
def test_a_right_answer_is_accepted_as_people_type_it(lesson, number, text):
    assert load_lesson(lesson).question(number).check(text)


@pytest.mark.parametrize(("lesson", "number", "text"), cases(WRONG))
def test_a_wrong_or_unclear_answer_is_not(lesson, number, text):
    assert not load_lesson(lesson).question(number).check(text)


def test_a_long_text_takes_no_time():
    for number in (1, 2):
        assert not load_lesson(4).question(number).check("1" + " 가나다x" * 40 + "(" * 60)
