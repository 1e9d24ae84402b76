"""A synthetic corpus of numbers: spelled in Korean or English words, with their digits.

`synthesize_numbers` returns pairs such as ("삼백이십오", "325"), the same for the same seed;
reversed, ("325", "삼백이십오"), they need a single language. Korean groups digits by ten thousand
(만, 억, 조) with Sino-Korean numerals, and counts small numbers of things with native numerals
(서른다섯 명); English groups them by thousand.

The spelling is hand-written because num2words covers two of the eleven forms, and spells 10,000
inside a Korean number differently (만 instead of 일만).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.core.errors import ConfigError
from attendo.core.message import message
from attendo.synthetic.examples import Example, synthesize_examples

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    from attendo.synthetic.examples import ExampleSplits, Lang

MAX_DIGITS = 16
"""The units reach up to 9,999조 and nine quadrillion."""

SINO_DIGITS = "영일이삼사오육칠팔구"
SINO_POWERS = ("", "십", "백", "천")
SINO_UNITS = ("", "만", "억", "조")
NATIVE_ONES = ("", "하나", "둘", "셋", "넷", "다섯", "여섯", "일곱", "여덟", "아홉")
NATIVE_TENS = ("", "열", "스물", "서른", "마흔", "쉰", "예순", "일흔", "여든", "아흔")
DETERMINER_FORMS = {"하나": "한", "둘": "두", "셋": "세", "넷": "네", "스물": "스무"}
COUNTERS = ("개", "명", "마리", "권", "잔", "장", "대", "번")

ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"),
    *("ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
TENS = (
    *("", "ten", "twenty", "thirty", "forty"),
    *("fifty", "sixty", "seventy", "eighty", "ninety"),
)
UNITS = ("", "thousand", "million", "billion", "trillion", "quadrillion")


def spell_sino(number: int, *, separator: str = " ", is_formal: bool = False) -> str:
    """Spell a number in Sino-Korean numerals, with a space after each group of four digits.

    The numeral one is omitted before 십, 백 and 천, and before a leading 만; the formal style, as
    on a check, always writes it.

    >>> spell_sino(325), spell_sino(11_020_003), spell_sino(1_110, is_formal=True)
    ('삼백이십오', '천백이만 삼', '일천일백일십')
    """
    if number == 0:
        return SINO_DIGITS[0]
    groups: list[str] = []
    for group, unit in zip(*_split_groups(number, 10_000, SINO_UNITS), strict=True):
        is_bare = group == 1 and unit == "만" and not groups and not is_formal
        groups.append(("" if is_bare else _spell_group(group, is_formal)) + unit)
    return separator.join(groups)


def _spell_group(group: int, is_formal: bool) -> str:
    text = ""
    for power, digit in enumerate(map(int, reversed(str(group)))):
        if digit:
            is_bare = digit == 1 and power > 0 and not is_formal
            text = ("" if is_bare else SINO_DIGITS[digit]) + SINO_POWERS[power] + text
    return text


def spell_mixed(number: int) -> str:
    """Write digits with Korean units, in newspaper style.

    >>> spell_mixed(3_250_042)
    '325만 42'
    """
    groups = zip(*_split_groups(number, 10_000, SINO_UNITS), strict=True)
    return " ".join(f"{group}{unit}" for group, unit in groups) or "0"


def spell_native(number: int, *, counter: str = "") -> str:
    """Spell a number in native Korean numerals (hundreds are Sino-Korean), alone or with a counter.

    >>> spell_native(35), spell_native(20, counter="살"), spell_native(121, counter="명")
    ('서른다섯', '스무 살', '백스물한 명')
    """
    hundreds, rest = divmod(number, 100)
    words = [NATIVE_TENS[rest // 10], NATIVE_ONES[rest % 10]]
    if counter:
        last = 1 if words[1] else 0
        words[last] = DETERMINER_FORMS.get(words[last], words[last])
    text = (spell_sino(100 * hundreds) if hundreds else "") + "".join(words)
    return f"{text} {counter}" if counter else text


def spell_english(number: int, *, has_and: bool = True, comma: str = "", one: str = "one") -> str:
    """Spell a number in English, British (with "and") or American; `one` may be a leading "a".

    >>> spell_english(325), spell_english(325, has_and=False), spell_english(1_005, one="a")
    ('three hundred and twenty-five', 'three hundred twenty-five', 'a thousand and five')
    """
    if number == 0:
        return ONES[0]
    conjunction = " and " if has_and else " "
    groups = list(zip(*_split_groups(number, 1000, UNITS), strict=True))
    words = [f"{_spell_hundreds(group, conjunction)} {unit}".rstrip() for group, unit in groups]
    ends_small = len(groups) > 1 and groups[-1][0] < 100 and not groups[-1][1]
    last = conjunction + words.pop() if ends_small else ""
    text = f"{comma} ".join(words) + last
    return text if one == "one" else text.replace("one ", f"{one} ", 1)


def _spell_hundreds(group: int, conjunction: str) -> str:
    hundreds, rest = divmod(group, 100)
    words = [f"{ONES[hundreds]} hundred"] if hundreds else []
    if rest:
        words.append(spell_below_hundred(rest))
    return conjunction.join(words)


def spell_below_hundred(number: int) -> str:
    """Spell 0 to 99.

    >>> [spell_below_hundred(number) for number in (7, 19, 40, 42)]
    ['seven', 'nineteen', 'forty', 'forty-two']
    """
    tens, ones = divmod(number, 10)
    if number < 20:
        return ONES[number]
    return f"{TENS[tens]}-{ONES[ones]}" if ones else TENS[tens]


def _split_groups(number: int, size: int, units: tuple[str, ...]) -> tuple[list[int], list[str]]:
    """Return the nonzero groups of digits of a number, the highest first, and their units."""
    groups = []
    for unit in units:
        number, group = divmod(number, size)
        if group:
            groups.append((group, unit))
    return [group for group, _ in reversed(groups)], [unit for _, unit in reversed(groups)]


# --- the corpus


def spellings(number: int, lang: Lang = "both") -> dict[str, list[str]]:
    """Return every spelling of a number by form; equal spellings belong to the first form.

    >>> spellings(325, "en")
    {'en british': ['three hundred and twenty-five'], 'en american': ['three hundred twenty-five']}
    """
    forms = {} if lang == "en" else _spell_korean(number)
    forms |= {} if lang == "ko" else _spell_english(number)
    seen: set[str] = set()
    result = {}
    for form, texts in forms.items():
        new = [text for text in texts if text not in seen]
        seen.update(new)
        if new:
            result[form] = new
    return result


def _spell_korean(number: int) -> dict[str, list[str]]:
    forms = {
        "ko sino": [spell_sino(number)],
        "ko joined": [spell_sino(number, separator="")],
        "ko formal": [spell_sino(number, is_formal=True)],
    }
    if number >= 10_000:
        forms["ko mixed"] = [spell_mixed(number)]
    if 0 < number < 100:
        forms["ko native"] = [spell_native(number)]
    if 0 < number < 1000:
        forms["ko counted"] = [spell_native(number, counter=counter) for counter in COUNTERS]
    return forms


def _spell_english(number: int) -> dict[str, list[str]]:
    plain = spell_english(number)
    forms = {
        "en british": [plain],
        "en american": [spell_english(number, has_and=False)],
        "en commas": [spell_english(number, comma=",")],
    }
    if 1000 < number < 10_000 and number % 100 == 0 and number % 1000:
        forms["en hundreds"] = [f"{spell_below_hundred(number // 100)} hundred"]
    if plain.startswith("one "):
        forms["en article"] = [spell_english(number, one="a")]
    return forms


def synthesize_numbers(
    count: int,
    *,
    seed: int = 1,
    lang: Lang = "both",
    digits: tuple[int, int] = (1, 10),
    dev_fraction: float = 0.0,
    is_reversed: bool = False,
    progress: Callable[[int], None] | None = None,
) -> ExampleSplits:
    """Return distinct spelled numbers with their digits.

    All lengths are equally frequent, as long as there are new numbers. No number is in two splits,
    however it is spelled; zero is always in train, since nothing else teaches its name.

    Args:
        count: Number of examples in all splits together.
        seed: Seed of the corpus.
        lang: Language of the spelling.
        digits: Minimum and maximum number of digits.
        dev_fraction: Fraction of the examples in dev, and the same in test.
        is_reversed: Translate digits to the standard spelling of one language.
        progress: Called now and then with the number of examples so far.

    Returns:
        The three splits.

    Raises:
        ConfigError: If an option is out of range.
        InputError: If there are fewer distinct examples.

    """
    low, high = digits
    if not 1 <= low <= high <= MAX_DIGITS:
        reason = message(
            "digits={low}-{high} is not a range of lengths between 1 and {max_digits}",
            low=low,
            high=high,
            max_digits=MAX_DIGITS,
        )
        raise ConfigError(reason, hint="choose e.g. 1-10")
    if is_reversed and lang == "both":
        reason = "a number in digits has a spelling in each language"
        raise ConfigError(reason, hint="choose one with lang ko or lang en")
    standard_form = {"ko": "ko sino", "en": "en british"}

    def sample_example(rng: Random) -> Example:
        length = rng.randint(low, high)
        number = rng.randrange(10 ** (length - 1) if length > 1 else 0, 10**length)
        chosen: Lang = rng.choice(("ko", "en")) if lang == "both" else lang
        if is_reversed:
            form = standard_form[chosen]
            return Example(str(number), spellings(number, chosen)[form][0], form, str(number))
        forms = spellings(number, chosen)
        form = rng.choice(list(forms))
        return Example(rng.choice(forms[form]), str(number), form, str(number))

    return synthesize_examples(
        sample_example,
        count,
        seed=seed,
        dev_fraction=dev_fraction,
        train_only_key="0",
        progress=progress,
    )
