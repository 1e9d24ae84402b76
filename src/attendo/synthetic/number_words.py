"""Numbers as Korean and English spell them, and their digits: a corpus of our own making.

`draw_numbers` gives pairs such as ("삼백이십오", "325"), always the same for one seed; turned round
they are ("325", "삼백이십오"), which only one language at a time can answer. Korean counts in units
of ten thousand (만, 억, 조) with Chinese numerals, and a few things with its own (서른다섯 명);
English counts in thousands. `draw_parts` serves other corpora of this kind too: it keeps apart what
is learnt and what is asked.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Literal, NamedTuple
from zlib import crc32

from attendo.core.errors import ConfigError, InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Lang = Literal["ko", "en", "both"]
MAX_COUNT = 1_000_000
"""The most examples that one call gives."""
MAX_DIGITS = 16
"""Up to 9,999조 and nine quadrillion."""
_MAX_CONSECUTIVE_REJECTIONS = 20_000
"""So many draws in a row without a new source, and there are no more."""

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


class Example(NamedTuple):
    """A source and its one right target."""

    src: str
    tgt: str
    form: str
    """How the source is written: the language, then the form."""
    key: str
    """What is meant; no two parts of a corpus share one."""


class ExampleSplits(NamedTuple):
    """A corpus in three: what stands in one part is in no form in another."""

    train: list[Example]
    dev: list[Example]
    test: list[Example]


def spell_sino(number: int, *, separator: str = " ", is_formal: bool = False) -> str:
    """Spell in Chinese numerals, a gap after each unit of ten thousand as the orthography asks.

    One is left out before 십, 백, 천, and before 만 where the number begins; formally, as on a
    cheque, every one is written.

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
    """Write digits with Korean units, as newspapers do.

    >>> spell_mixed(3_250_042)
    '325만 42'
    """
    groups = zip(*_split_groups(number, 10_000, SINO_UNITS), strict=True)
    return " ".join(f"{group}{unit}" for group, unit in groups) or "0"


def spell_native(number: int, *, counter: str = "") -> str:
    """Spell in Korean numerals (1 to 99; hundreds stay Chinese), alone or before a counter.

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
    """Spell in English words, British (with "and") or American; `one` may be "a" at the beginning.

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
    """Cut a number into groups that are not zero, the highest first, each with its unit."""
    groups = []
    for unit in units:
        number, group = divmod(number, size)
        if group:
            groups.append((group, unit))
    return [group for group, _ in reversed(groups)], [unit for _, unit in reversed(groups)]


# --- the corpus


def spellings(number: int, lang: Lang = "both") -> dict[str, list[str]]:
    """Give every way to write a number, by form; where two forms agree, the first one has it.

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
    """Give so many spelt numbers and their digits; a `share` of them each for dev and for test.

    Every length is drawn as often as every other one, as long as it has something new. No number
    stands in two parts, however it is spelt; zero is always in train, which has no other place to
    learn it. `is_turned` gives digits and the plain spelling of one language.
    """
    low, high = digits
    if not 1 <= low <= high <= MAX_DIGITS:
        reason = f"digits={low}-{high} is no range of lengths between 1 and {MAX_DIGITS}"
        raise ConfigError(reason, hint="ask for e.g. 1-10")
    if is_reversed and lang == "both":
        reason = "a number in digits has a spelling in each language"
        raise ConfigError(reason, hint="choose one with lang ko or lang en")
    plain = {"ko": "ko sino", "en": "en british"}

    def sample_example(rng: Random) -> Example:
        length = rng.randint(low, high)
        number = rng.randrange(10 ** (length - 1) if length > 1 else 0, 10**length)
        chosen: Lang = rng.choice(("ko", "en")) if lang == "both" else lang
        if is_reversed:
            form = plain[chosen]
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


# --- drawing


def synthesize_examples(
    sample_example: Callable[[Random], Example],
    count: int,
    *,
    seed: int,
    dev_fraction: float = 0.0,
    train_only_key: str | None = None,
    progress: Callable[[int], None] | None = None,
) -> ExampleSplits:
    """Draw until so many examples with different sources have come; share them out by their keys.

    A key belongs to one part, by chance; `always` names one that is learnt in any case. `progress`
    is told now and then how many are there.
    """
    _validate(count, dev_fraction)
    num_dev = round(count * dev_fraction)
    sizes = {"train": count - 2 * num_dev, "dev": num_dev, "test": num_dev}
    splits: dict[str, list[Example]] = {name: [] for name in sizes}
    rng = Random(seed)  # noqa: S311 - no secret
    for done, (name, example) in enumerate(
        _distinct_examples(sample_example, rng, seed, dev_fraction, train_only_key, sizes), 1
    ):
        splits[name].append(example)
        if progress is not None and (done % 1000 == 0 or done == count):
            progress(done)
    return ExampleSplits(**splits)


def _distinct_examples(
    sample_example: Callable[[Random], Example],
    rng: Random,
    seed: int,
    dev_fraction: float,
    train_only_key: str | None,
    sizes: dict[str, int],
) -> Iterator[tuple[str, Example]]:
    """Give new examples, each with the part that it belongs to and that still has room."""
    seen: set[str] = set()
    remaining = dict(sizes)
    num_rejected = 0
    while any(remaining.values()):
        example = sample_example(rng)
        name = (
            "train"
            if example.key == train_only_key
            else assign_split(example.key, seed, dev_fraction)
        )
        if remaining[name] and example.src not in seen:
            seen.add(example.src)
            remaining[name] -= 1
            num_rejected = 0
            yield name, example
            continue
        num_rejected += 1
        if num_rejected > _MAX_CONSECUTIVE_REJECTIONS:
            num_requested, num_distinct = sum(sizes.values()), len(seen)
            raise InputError(
                message(
                    "{asked} examples were asked for, and there are about {found} different ones",
                    asked=f"{num_requested:,}",
                    found=f"{num_distinct:,}",
                ),
                hint="ask for fewer, or for longer numbers or both languages",
            )


def assign_split(key: str, seed: int, dev_fraction: float) -> str:
    """Say which part a key belongs to, by a hash: `share` of all keys to dev, as many to test.

    >>> [choose_part(key, 1, 0.0) for key in "abc"]
    ['train', 'train', 'train']
    """
    position = crc32(f"{seed} {key}".encode()) / 2**32
    if position < dev_fraction:
        return "dev"
    return "test" if position < 2 * dev_fraction else "train"


def _validate(count: int, dev_fraction: float) -> None:
    if not 0 <= count <= MAX_COUNT:
        reason = f"count={count} is outside 0 to {MAX_COUNT}, what one call gives"
        raise InputError(reason, hint=f"ask for at most {MAX_COUNT} examples")
    if not 0.0 <= dev_fraction <= 0.4:
        reason = f"dev_fraction={dev_fraction} is outside 0 to 0.4: dev and test take as much each"
        raise ConfigError(reason, hint="ask for e.g. 0.05")
