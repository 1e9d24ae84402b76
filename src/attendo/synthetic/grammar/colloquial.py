"""Colloquial pairs of clauses: 어제 카페 갔었어 거기 사람 많더라.

Spoken Korean drops particles, the subject and the period, and marks with 더라 what the speaker saw;
the English side has no period either. The usual time of such a story, 어제, is omitted in English;
any other time is translated.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from attendo.synthetic.grammar import korean
from attendo.synthetic.grammar.phrases import place_phrase_en, places_of

if TYPE_CHECKING:
    from attendo.synthetic.grammar.lexicon import Noun
    from attendo.synthetic.grammar.phrases import WordSampler


class PlaceRemark(NamedTuple):
    """What can be remarked about some kinds of places."""

    places: str
    things: tuple[tuple[str, str], ...]
    """Korean and English, the English with its verb; empty for the place itself."""
    qualities: tuple[tuple[str, str], ...]


_TIMES = (
    *(("어제", ""),) * 3,
    ("그저께", "the day before yesterday"),
    ("지난주에", "last week"),
    ("지난달에", "last month"),
    ("작년에", "last year"),
    ("오늘 아침에", "this morning"),
    ("주말에", "on the weekend"),
    ("월요일에", "on Monday"),
    ("토요일에", "on Saturday"),
    ("일요일에", "on Sunday"),
)
_COMPANIONS = (
    ("친구", "my friend"),
    ("엄마", "my mom"),
    ("아빠", "my dad"),
    ("형", "my older brother"),
    ("누나", "my older sister"),
    ("민수", "Minsu"),
    ("유나", "Yuna"),
    ("지영", "Jiyoung"),
    ("톰", "Tom"),
)
_MANY = (("많다", "many"),)
_PRICES = (("비싸다", "expensive"), ("싸다", "cheap"))
_TASTES = (("맛있다", "delicious"), *_PRICES)
_PLACE_REMARKS = (
    PlaceRemark("dining errand station sight outdoor water", (("사람", "people"),), _MANY),
    PlaceRemark("dining shop", (("손님", "customers"),), _MANY),
    PlaceRemark("study quiet", (("학생", "students"),), _MANY),
    PlaceRemark("sight station city", (("관광객", "tourists"),), _MANY),
    PlaceRemark("sight outdoor zoo", (("아이", "children"),), _MANY),
    PlaceRemark(
        "outdoor wildplace", (("꽃", "flowers"), ("새", "birds"), ("나무", "trees")), _MANY
    ),
    PlaceRemark("bookshop study", (("책", "books"),), _MANY),
    PlaceRemark("dining", (("커피", "the coffee was"), ("음식", "the food was")), _TASTES),
    PlaceRemark("foodshop", (("빵", "the bread was"), ("케이크", "the cake was")), _TASTES),
    PlaceRemark("shop", (("가방", "the bags were"), ("신발", "the shoes were")), _PRICES),
    PlaceRemark("shop", (("사과", "the apples were"), ("과일", "the fruit was")), _PRICES),
    PlaceRemark(
        "dining study sight outdoor",
        (("", "it was"),),
        (
            ("조용하다", "quiet"),
            ("깨끗하다", "clean"),
            ("넓다", "spacious"),
            ("아름답다", "beautiful"),
        ),
    ),
    PlaceRemark(
        "dining station shop", (("", "it was"),), (("시끄럽다", "noisy"), ("어둡다", "dark"))
    ),
    PlaceRemark("city water wildplace", (("", "it was"),), (("춥다", "cold"), ("덥다", "hot"))),
)


@cache
def _visitable_places(kinds: str) -> tuple[Noun, ...]:
    """Return the places that one visits, without those where one lives and studies."""
    return tuple(place for place in places_of(kinds) if not place.is_a("yard class"))


def colloquial_pair(sampler: WordSampler) -> tuple[str, str]:
    """어제 카페 갔었어 거기 사람 많더라, I went to the cafe there were many people there."""
    remark = sampler.choose(_PLACE_REMARKS)
    thing_ko, thing_en = sampler.choose(remark.things)
    quality_ko, quality_en = sampler.choose(remark.qualities)
    place = sampler.choose_compatible(thing_ko or quality_ko, _visitable_places(remark.places))
    ko, en = [place.ko, "갔었어"], ["I went", place_phrase_en(place, "to")]
    if sampler.bernoulli(0.3):
        companion = sampler.choose(_COMPANIONS)
        ko.insert(0, korean.attach(companion[0], "이랑"))
        en.append(f"with {companion[1]}")
    time_ko, time_en = sampler.choose(_TIMES)
    observation_ko = ["거기", thing_ko, korean.stem(quality_ko) + "더라"]
    is_many = quality_en == "many"
    observation_en = ["there were many", thing_en] if is_many else [thing_en, quality_en]
    return (
        " ".join(word for word in [time_ko, *ko, *observation_ko] if word),
        " ".join(word for word in [*en, time_en, *observation_en, "there"] if word),
    )
