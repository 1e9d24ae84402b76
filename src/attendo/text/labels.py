"""Labels of sources, e.g. `<polite>`, and the register of Korean sentences."""

from __future__ import annotations

import re

END_OF_SENTENCE = re.compile(r"[.!?…。！？][\s\"'”’)\]~]*$")
TRAILING = re.compile(r"[\s.!?…。！？\"'”’)\]~]+$")
POLITE = re.compile(r"(니다|니까|십시오|세요|에요|예요)$")  # vocabulary: ok, a verb ending
PLAIN = re.compile(r"[가-힣]다$")
POLITE_SENTENCE = re.compile(r"[가-힣][요죠]$")
PLAIN_SENTENCE = re.compile(r"([가-힣][까냐니라자마네지군걸게]|[어아야해돼봐줘래와가])$")
"""Nouns have these endings too: they count only before a full stop or a question mark."""


def label_token(label: str) -> str:
    """Return the word that a label adds to a source.

    >>> label_token("polite")
    '<polite>'
    """
    return f"<{label}>"


def label_source(source: str, label: str) -> str:
    """Return a source that asks for a label; one without words stays as it is.

    >>> label_source("I am a student.", "polite")
    '<polite> I am a student.'
    """
    return f"{label_token(label)} {source}" if source.strip() else source


def korean_register(text: str) -> str | None:
    """Return the register of a Korean sentence by its ending; None if it has no known ending.

    >>> [korean_register(text) for text in ("저는 학생입니다.", "나는 학생이다.", "어디 가?")]
    ['polite', 'plain', 'plain']
    >>> korean_register("서비스 개요")
    """
    words = TRAILING.sub("", text)
    is_sentence = END_OF_SENTENCE.search(text) is not None
    if POLITE.search(words) or (is_sentence and POLITE_SENTENCE.search(words)):
        return "polite"
    if PLAIN.search(words) or (is_sentence and PLAIN_SENTENCE.search(words)):
        return "plain"
    return None
