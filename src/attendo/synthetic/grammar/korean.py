"""Korean morphology of the everyday corpus: particles and conjugation, by rule.

A Hangul syllable is one code point, 0xAC00 + (first * 21 + vowel) * 28 + final, so that finals can
be read, removed and added by arithmetic. A verb is its dictionary form; of several words (`갈 수
있다`) the last one inflects, so that auxiliaries chain: 가다 -> 가지 않다 -> 가지 않았다.
"""

from __future__ import annotations

from functools import cache

FINALS = ("", *"ㄱㄲㄳㄴㄵㄶㄷㄹㄺㄻㄼㄽㄾㄿㅀㅁㅂㅄㅅㅆㅇㅈㅊㅋㅌㅍㅎ")
VOWELS = "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ"

_FIRST_SYLLABLE = 0xAC00
_LAST_SYLLABLE = 0xD7A3

# The form after a consonant, which names the particle, and the form after a vowel.
_AFTER_VOWEL = {
    "은": "는",
    "이": "가",
    "을": "를",
    "과": "와",
    "으로": "로",
    "이랑": "랑",
    "이다": "다",
    "이었다": "였다",
    "이니": "니",
    "이었니": "였니",
}
# Pronouns whose stem changes before the subject particle: 나 + 가 -> 내가.
_SUBJECT_STEMS = {"나": "내", "너": "네"}

# Stems in ㅂ and ㅎ are irregular and those in ㄷ and ㅅ regular, except for these.
_REGULAR_B = frozenset({"입", "잡", "좁", "뽑", "접", "씹", "집", "업", "꼽"})
_REGULAR_H = frozenset({"좋", "놓", "넣", "쌓", "낳", "닿"})
_IRREGULAR_D = frozenset({"걷", "듣", "싣", "깨닫", "묻"})
_IRREGULAR_S = frozenset({"짓", "낫", "붓", "잇", "젓"})
# Stems in 르 double the ㄹ (부르다, 불러), except for these, which only drop the ㅡ (따르다, 따라).
_REGULAR_REU = frozenset({"따르", "들르", "치르", "다다르"})

_CONTRACTED = {"ㅗ": "ㅘ", "ㅜ": "ㅝ", "ㅣ": "ㅕ", "ㅚ": "ㅙ"}
_CONTRACTING_VOWELS = frozenset("ㅏㅓㅐㅔㅕㅑ")


def split_syllable(syllable: str) -> tuple[int, str, str]:
    """Split a syllable into the number of its first consonant, its vowel, and its final or "".

    >>> split_syllable("한")
    (18, 'ㅏ', 'ㄴ')
    """
    index = ord(syllable) - _FIRST_SYLLABLE
    return index // 588, VOWELS[index % 588 // 28], FINALS[index % 28]


def join_syllable(first: int, vowel: str, final: str = "") -> str:
    """Compose a syllable: the inverse of `split_syllable`."""
    return chr(_FIRST_SYLLABLE + (first * 21 + VOWELS.index(vowel)) * 28 + FINALS.index(final))


def final_consonant(word: str) -> str:
    """Return the final consonant of the last syllable; "" after a vowel or a foreign letter.

    >>> final_consonant("공원"), final_consonant("나무")
    ('ㄴ', '')
    """
    last = word[-1]
    is_hangul = _FIRST_SYLLABLE <= ord(last) <= _LAST_SYLLABLE
    return split_syllable(last)[2] if is_hangul else ""


def with_final(word: str, final: str) -> str:
    """Replace the final consonant of the last syllable.

    >>> with_final("가", "ㄴ")
    '간'
    """
    first, vowel, _ = split_syllable(word[-1])
    return word[:-1] + join_syllable(first, vowel, final)


@cache
def attach(word: str, particle: str) -> str:
    """Attach a particle, or the copula 이다, in the form that the end of the word requires.

    The particle is given in its form after a consonant; one with a single form is not changed.

    >>> attach("왕자", "은"), attach("지하철", "으로"), attach("학생", "이다")
    ('왕자는', '지하철로', '학생이다')
    """
    if particle == "이":
        word = _SUBJECT_STEMS.get(word, word)
    final = final_consonant(word)
    takes_vowel_form = not final or (particle == "으로" and final == "ㄹ")
    return word + (_AFTER_VOWEL.get(particle, particle) if takes_vowel_form else particle)


@cache
def infinitive(verb: str) -> str:
    """Conjugate into the form in 아/어, to which the past and many endings are added.

    >>> [infinitive(verb) for verb in ("가다", "마시다", "돕다", "듣다", "부르다", "쓰다")]
    ['가', '마셔', '도와', '들어', '불러', '써']
    """
    stem = verb[:-1]
    first, vowel, final = split_syllable(stem[-1])
    if stem[-1] == "하":
        return stem[:-1] + "해"
    if vowel == "ㅡ" and not final:
        return _infinitive_in_eu(stem)
    if _drops_h(stem):
        return stem[:-1] + join_syllable(first, {"ㅏ": "ㅐ", "ㅑ": "ㅒ", "ㅓ": "ㅐ"}[vowel])
    if _softens_b(stem):
        return with_final(stem, "") + ("와" if stem[-1] in "돕곱" else "워")
    if final:
        return _before_vowel(stem) + ("아" if vowel in "ㅏㅗㅑ" else "어")
    if vowel in _CONTRACTING_VOWELS:
        return stem
    if vowel in _CONTRACTED:
        return stem[:-1] + join_syllable(first, _CONTRACTED[vowel])
    return stem + "어"


def past(verb: str) -> str:
    """Return the past stem, to which 다, 니, 지만 and 을 때 are added.

    >>> past("건너다") + "다", past("하얗다") + "다"
    ('건넜다', '하얬다')
    """
    return with_final(infinitive(verb), "ㅆ")


@cache
def present(verb: str, *, descriptive: bool = False) -> str:
    """Return the plain present: a verb takes ㄴ다 or 는다, a descriptive verb is unchanged.

    >>> present("가다"), present("먹다"), present("만들다"), present("크다", descriptive=True)
    ('간다', '먹는다', '만든다', '크다')
    """
    stem = verb[:-1]
    if descriptive or stem[-1] in "있없":
        return verb
    if final_consonant(stem) in ("", "ㄹ"):
        return with_final(stem, "ㄴ") + "다"
    return stem + "는다"


@cache
def adnominal(verb: str) -> str:
    """Return the form of a descriptive verb before a noun.

    >>> [adnominal(verb) for verb in ("크다", "작다", "길다", "춥다", "빨갛다", "맛있다")]
    ['큰', '작은', '긴', '추운', '빨간', '맛있는']
    """
    stem = verb[:-1]
    return stem + "는" if stem[-1] in "있없" else _add_final(stem, "ㄴ", "은")


@cache
def prospective(verb: str) -> str:
    """Return the form in ㄹ/을, used before 것이다, 수 and 때.

    >>> [prospective(verb) for verb in ("가다", "먹다", "만들다", "돕다", "걷다")]
    ['갈', '먹을', '만들', '도울', '걸을']
    """
    return _add_final(verb[:-1], "ㄹ", "을")


@cache
def conditional(verb: str) -> str:
    """Return the form in 면/으면, "if".

    >>> [conditional(verb) for verb in ("오다", "좋다", "춥다", "불다")]
    ['오면', '좋으면', '추우면', '불면']
    """
    base, needs_eu = _stem_before_eu(verb[:-1])
    return base + ("으면" if needs_eu else "면")


@cache
def question(verb: str) -> str:
    """Return the plain question in the present.

    >>> question("가다"), question("만들다"), question("춥다")
    ('가니', '만드니', '춥니')
    """
    stem = verb[:-1]
    return (with_final(stem, "") if final_consonant(stem) == "ㄹ" else stem) + "니"


def stem(verb: str) -> str:
    """Return the stem, to which 고, 지, 지만, 자 and 더라 are added without changes."""
    return verb[:-1]


def _infinitive_in_eu(stem: str) -> str:
    """Conjugate a stem that ends in ㅡ: it is dropped, and in most stems in 르 the ㄹ doubled."""
    before, word = stem[:-1], _last_word(stem)
    first, _, _ = split_syllable(stem[-1])
    if len(word) == 1:
        return before + join_syllable(first, "ㅓ")
    _, vowel, _ = split_syllable(word[-2])
    if word[-1] == "르" and word not in _REGULAR_REU:
        before = with_final(before, "ㄹ")
    return before + join_syllable(first, "ㅏ" if vowel in "ㅏㅗ" else "ㅓ")


def _add_final(stem: str, final: str, syllable: str) -> str:
    """Add an ending that is a final consonant after a vowel and a syllable otherwise."""
    base, needs_eu = _stem_before_eu(stem)
    return base + syllable if needs_eu else with_final(base, final)


def _stem_before_eu(stem: str) -> tuple[str, bool]:
    """Return the stem before endings in (으), and whether the 으 is present."""
    if _softens_b(stem):
        return with_final(stem, "") + "우", False
    if _drops_h(stem):
        return with_final(stem, ""), False
    is_open = final_consonant(stem) in ("", "ㄹ")
    return _before_vowel(stem), not is_open


def _before_vowel(stem: str) -> str:
    """Return an irregular stem in its form before a vowel: 걷 -> 걸, 짓 -> 지."""
    word = _last_word(stem)
    if word in _IRREGULAR_D:
        return with_final(stem, "ㄹ")
    return with_final(stem, "") if word in _IRREGULAR_S else stem


def _softens_b(stem: str) -> bool:
    return final_consonant(stem) == "ㅂ" and _last_word(stem) not in _REGULAR_B


def _drops_h(stem: str) -> bool:
    return final_consonant(stem) == "ㅎ" and _last_word(stem) not in _REGULAR_H


def _last_word(stem: str) -> str:
    return stem.rsplit(" ", 1)[-1]
