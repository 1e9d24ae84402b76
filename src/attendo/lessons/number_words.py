"""Numbers that learners write in words, in English and Korean."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

NUMBERS = dict(
    re.findall(
        r"(\S+)=(\S+)",
        "zero=0 one=1 two=2 three=3 four=4 five=5 six=6 seven=7 eight=8 nine=9 ten=10 eleven=11 "
        "twelve=12 sixteen=16 twenty=20 twenty-one=21 half=1/2 "
        "하나=1 둘=2 셋=3 넷=4 다섯=5 여섯=6 일곱=7 여덟=8 아홉=9 열둘=12 열여섯=16 스물=20 "
        "한=1 두=2 세=3 네=4 열두=12",
    )
)
ORDINALS = dict(
    re.findall(
        r"(\S[^=]*)=(\d)",
        "first=1 second=2 third=3 fourth=4 fifth=5 sixth=6 "
        "첫째=1 둘째=2 셋째=3 넷째=4 다섯째=5 여섯째=6 "
        "두 번째=2 세 번째=3 네 번째=4 다섯 번째=5 여섯 번째=6",
    )
)
ENDING = r"(?=(?:번|개|칸|배|입니다|이다|이에요|예요)?(?![^\W\d_]))"


def replace_words(text: str, numbers: Mapping[str, str]) -> str:
    """Return a text with words replaced by digits; Korean ones may have an ending or a counter.

    >>> replace_words("all five, 넷입니다", NUMBERS), replace_words("the second word", ORDINALS)
    ('all 5, 4입니다', 'the 2 word')
    >>> replace_words("someone, often, 두루", NUMBERS)
    'someone, often, 두루'
    """
    words = "|".join(sorted(map(re.escape, numbers), key=len, reverse=True))
    found = re.compile(rf"(?<![^\W\d_])({words}){ENDING}")
    return found.sub(lambda match: numbers[match[1]], text)
