"""Languages by code and by name: `fr`, `fra`, `pt-BR`, `French`, `français`, `프랑스어`.

Headers of tables, fields of JSON and the options `--src-lang` and `--tgt-lang` name languages in
any of these ways. The names and codes follow CLDR and ISO 639.
"""

from __future__ import annotations

import re
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING

from attendo.core.errors import InputError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Iterable

TABLE = """\
af Afrikaans afr 아프리칸스어
ar Arabic arb ara العربية 아랍어
az Azerbaijani azj aze azərbaycan 아제르바이잔어
be Belarusian bel беларуская 벨라루스어
bg Bulgarian bul български 불가리아어
bn Bengali ben বাংলা 벵골어
ca Catalan cat català 카탈로니아어
cs Czech ces cze čeština 체코어 český
cy Welsh cym wel cymraeg 웨일스어
da Danish dan dansk 덴마크어
de German deu ger deutsch 독일어
el Greek ell gre ελληνικά 그리스어
en English eng 영어 영문
eo Esperanto epo 에스페란토어
es Spanish spa español 스페인어 castellano
et Estonian ekk est eesti 에스토니아어
eu Basque eus baq euskara 바스크어
fa Persian pes fas per فارسی 페르시아어 farsi
fi Finnish fin suomi 핀란드어
fr French fra fre français 프랑스어
ga Irish gle gaeilge 아일랜드어
gl Galician glg galego 갈리시아어
gu Gujarati guj ગુજરાતી 구자라트어
he Hebrew heb עברית 히브리어
hi Hindi hin हिन्दी 힌디어
hr Croatian hrv hrvatski 크로아티아어
hu Hungarian hun magyar 헝가리어
hy Armenian hye arm հայերեն 아르메니아어
id Indonesian ind indonesia 인도네시아어 bahasa_indonesia
is Icelandic isl ice íslenska 아이슬란드어
it Italian ita italiano 이탈리아어
ja Japanese jpn 日本語 일본어 일문
ka Georgian kat geo ქართული 조지아어
kk Kazakh kaz қазақ_тілі 카자흐어
km Khmer khm ខ្មែរ 크메르어 캄보디아어
kn Kannada kan ಕನ್ನಡ 칸나다어
ko Korean kor 한국어 한국말 한글 국문 조선어
ky Kyrgyz kir кыргызча 키르기스어
la Latin lat latina 라틴어
lo Lao lao ລາວ 라오어
lt Lithuanian lit lietuvių 리투아니아어
lv Latvian lvs lav latviešu 라트비아어
mk Macedonian mkd mac македонски 마케도니아어
ml Malayalam mal മലയാളം 말라얄람어
mn Mongolian khk mon монгол 몽골어
mr Marathi mar मराठी 마라티어
ms Malay zsm msa may melayu 말레이어 bahasa_melayu
my Burmese mya bur မြန်မာ 버마어 미얀마어
nb Norwegian_Bokmål nob norsk_bokmål bokmål
ne Nepali npi nep नेपाली 네팔어
nl Dutch nld dut nederlands 네덜란드어
nn Norwegian_Nynorsk nno norsk_nynorsk nynorsk
no Norwegian nor norsk 노르웨이어
pa Punjabi pan ਪੰਜਾਬੀ 펀잡어 펀자브어
pl Polish pol polski 폴란드어
pt Portuguese por português 포르투갈어
ro Romanian ron rum română 루마니아어
ru Russian rus русский 러시아어
si Sinhala sin සිංහල 싱할라어
sk Slovak slk slo slovenčina 슬로바키아어 slovenský
sl Slovenian slv slovenščina 슬로베니아어
sq Albanian sqi alb shqip 알바니아어
sr Serbian srp српски 세르비아어
sv Swedish swe svenska 스웨덴어
sw Swahili swh swa kiswahili 스와힐리어
ta Tamil tam தமிழ் 타밀어
te Telugu tel తెలుగు 텔루구어
th Thai tha ไทย 태국어
tl Tagalog tgl fil 타갈로그어 filipino
tr Turkish tur türkçe 튀르키예어 터키어
uk Ukrainian ukr українська 우크라이나어
ur Urdu urd اردو 우르두어
uz Uzbek uzn uzb o‘zbek 우즈베크어 o'zbek
vi Vietnamese vie tiếng_việt 베트남어
zh Chinese cmn zho chi 中文 중국어 汉语 漢語 중문 simplified_chinese traditional_chinese
"""
"""One language per line: ISO 639-1 code, English name, ISO 639-2 and 639-3 codes, other names (in
the language itself, in Korean); a space inside a name is written as an underscore."""

LANGUAGE_NAMES = {
    code: name.replace("_", " ") for code, name, *_ in (line.split() for line in TABLE.splitlines())
}
"""The English name of each language by its code."""

CODE = re.compile(r"([a-z]{2,3})(-[a-z]{4})?(-(?:[a-z]{2}|[0-9]{3}))?")
"""A language, and optionally a script and a region: zh, zh-hant, pt-br, es-419."""

SEPARATORS = re.compile(r"[\s_-]+")


def find_language(text: str) -> str | None:
    """Return the code of a language that is given by code or by name, None if it is unknown.

    A region or a script stays part of the code.

    >>> find_language("English"), find_language("프랑스어"), find_language("zh_CN")
    ('en', 'fr', 'zh-cn')
    >>> find_language("question") is None
    True
    """
    name = normalize_code(text)
    known = _codes_by_name()
    if name in known:
        return known[name]
    match = None if " " in text.strip() else CODE.fullmatch(name)
    if match is None or match[1] not in known:
        return None
    return known[match[1]] + name[len(match[1]) :]


def parse_language(text: str) -> str:
    """Return the code of a language; an unknown code is kept, an unknown name is an error.

    >>> parse_language("Korean"), parse_language("tlh")
    ('ko', 'tlh')
    """
    code = find_language(text) or normalize_code(text)
    if not CODE.fullmatch(code):
        detail = "write a code such as ko or pt-BR, or a name such as Korean"
        near = get_close_matches(text.strip().capitalize(), LANGUAGE_NAMES.values(), n=1)
        hint = detail
        if near:
            hint = message("did you mean '{near}'? {detail}", near=near[0], detail=message(detail))
        raise InputError(message("no language '{name}'", name=text), hint=hint)
    return code


def match_language(requested: str, available: Iterable[str]) -> str | None:
    """Return the language with this code or name, else a more specific or more general one.

    >>> match_language("en", ["ko-KR", "EN_us"]), match_language("pt-BR", ["pt-PT"])
    ('EN_us', None)
    >>> match_language("ko", ["English", "한국어"])
    '한국어'
    """
    code = find_language(requested) or normalize_code(requested)
    codes = [(find_language(name) or normalize_code(name), name) for name in available]
    exact = [name for other, name in codes if other == code]
    more_specific = [name for other, name in codes if base_language(other) == code]
    more_general = [name for other, name in codes if other == base_language(code)]
    return next(iter(exact + more_specific + more_general), None)


def language_name(code: str) -> str:
    """Return the English name of a language; the code itself if it is unknown.

    >>> language_name("ko"), language_name("tlh")
    ('Korean', 'tlh')
    """
    rows = (line.split() for line in TABLE.splitlines())
    return next((names[0] for known, *names in rows if known == base_language(code)), code)


def normalize_code(language: str) -> str:
    """Return a code or a name in lower case with hyphens: `pt_BR` becomes `pt-br`."""
    return "-".join(SEPARATORS.split(language.strip().casefold()))


def base_language(code: str) -> str:
    """Return a normalized code without script and region."""
    return code.split("-")[0]


@cache
def _codes_by_name() -> dict[str, str]:
    codes: dict[str, str] = {}
    for line in TABLE.splitlines():
        code, *names = line.split()
        codes |= {normalize_code(name): code for name in (code, *names)}
    return codes
