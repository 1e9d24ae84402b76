"""The words of the everyday corpus as data: nouns, adjectives, times, adverbs.

A Korean word has one English word in any one use, and the article depends on the noun only, so that
each side of a pair determines the other. `kinds` decide which verbs (`verbs`) and adjectives suit a
noun. Korean words are in the dictionary form, English words in the singular or the base form.
"""

from __future__ import annotations

from functools import cache
from typing import Literal, NamedTuple

Article = Literal["a", "the", "none", "fixed"]
"""The article of an object: a cup, the door, none (mass nouns, bare plurals), or a fixed phrase
without any determiner (pronouns, names, my mother). A subject has "the" unless it is fixed."""


@cache
def parse_kinds(text: str) -> frozenset[str]:
    """Return the kinds in a space-separated list."""
    return frozenset(text.split())


class Noun(NamedTuple):
    """A noun, a name, a pronoun or a place."""

    ko: str
    en: str
    kinds: str = ""
    article: Article = "a"
    counter: str = ""
    """The Korean counter; nouns without one are not counted."""
    unit: str = ""
    """The English unit of the counter: a cup of coffee."""
    pronoun: str = ""
    """Its pronoun in a later clause; empty if the Korean word does not determine it."""
    is_plural: bool = False
    preposition: str = ""
    """Of a place: its preposition (in, at, on)."""
    objective: str = ""
    """Of a pronoun: its form as an object."""

    def is_a(self, kinds: str) -> bool:
        """Return whether the noun is of any of these kinds."""
        return not parse_kinds(self.kinds).isdisjoint(parse_kinds(kinds))


class Adjective(NamedTuple):
    """A descriptive verb and its adjective, with the kinds of noun that it suits."""

    ko: str
    en: str
    kinds: str
    adnominal: str = ""
    """The irregular form before a noun; such a word is never a predicate."""

    def suits(self, kinds: str) -> bool:
        """Return whether the adjective suits any of these kinds."""
        return not parse_kinds(self.kinds).isdisjoint(parse_kinds(kinds))


class Time(NamedTuple):
    """A time, with its tense and part of the day."""

    ko: str
    en: str
    tense: Literal["past", "future", "any", "habit", "frequency"]
    part: str = ""


class Adverb(NamedTuple):
    """An adverb of manner."""

    ko: str
    en: str


PRONOUNS = (
    Noun("나", "I", "pronoun", "fixed", pronoun="I", objective="me"),
    Noun("우리", "we", "pronoun", "fixed", pronoun="we", is_plural=True, objective="us"),
    Noun("그", "he", "pronoun", "fixed", pronoun="he", objective="him"),
    Noun("그녀", "she", "pronoun", "fixed", pronoun="she", objective="her"),
    Noun("그들", "they", "pronoun", "fixed", pronoun="they", is_plural=True, objective="them"),
)
YOU = Noun("너", "you", "pronoun", "fixed", pronoun="you", objective="you")

NAMES = (
    Noun("민수", "Minsu", "name", "fixed", pronoun="he"),
    Noun("준호", "Junho", "name", "fixed", pronoun="he"),
    Noun("현우", "Hyunwoo", "name", "fixed", pronoun="he"),
    Noun("톰", "Tom", "name", "fixed", pronoun="he"),
    Noun("유나", "Yuna", "name", "fixed", pronoun="she"),
    Noun("지영", "Jiyoung", "name", "fixed", pronoun="she"),
    Noun("수진", "Sujin", "name", "fixed", pronoun="she"),
    Noun("제인", "Jane", "name", "fixed", pronoun="she"),
)

# Korean has "our mother" for older relatives and "my sister" for younger ones; English has "my" for
# both. The speaker is a man, so that an older brother is 형 and an older sister 누나.
RELATIVES = (
    Noun("우리 어머니", "my mother", "kin", "fixed", pronoun="she"),
    Noun("우리 아버지", "my father", "kin", "fixed", pronoun="he"),
    Noun("우리 할머니", "my grandmother", "kin", "fixed", pronoun="she"),
    Noun("우리 할아버지", "my grandfather", "kin", "fixed", pronoun="he"),
    Noun("우리 형", "my older brother", "kin", "fixed", pronoun="he"),
    Noun("우리 누나", "my older sister", "kin", "fixed", pronoun="she"),
    Noun("우리 삼촌", "my uncle", "kin", "fixed", pronoun="he"),
    Noun("우리 이모", "my aunt", "kin", "fixed", pronoun="she"),
    Noun("우리 부모님", "my parents", "kin", "fixed", pronoun="they", is_plural=True),
    Noun("내 남동생", "my younger brother", "kin", "fixed", pronoun="he"),
    Noun("내 여동생", "my younger sister", "kin", "fixed", pronoun="she"),
    Noun("내 아들", "my son", "kin", "fixed", pronoun="he"),
    Noun("내 딸", "my daughter", "kin", "fixed", pronoun="she"),
    Noun("내 사촌", "my cousin", "kin", "fixed"),
    Noun("내 친구", "my friend", "kin", "fixed"),
    Noun("내 친구들", "my friends", "kin", "fixed", pronoun="they", is_plural=True),
    Noun("그의 아들", "his son", "kin", "fixed", pronoun="he"),
    Noun("그의 친구", "his friend", "kin", "fixed"),
    Noun("그녀의 딸", "her daughter", "kin", "fixed", pronoun="she"),
    Noun("그녀의 친구", "her friend", "kin", "fixed"),
)

PEOPLE = (
    Noun("소년", "boy", "role youth", "the", "명", pronoun="he"),
    Noun("소녀", "girl", "role youth", "the", "명", pronoun="she"),
    Noun("남자", "man", "role", "the", "명", pronoun="he"),
    Noun("여자", "woman", "role", "the", "명", pronoun="she"),
    Noun("아이", "child", "role youth", "the", "명"),
    Noun("왕자", "prince", "role royal", "the", "명", pronoun="he"),
    Noun("공주", "princess", "role royal", "the", "명", pronoun="she"),
    Noun("왕", "king", "role royal", "the", "명", pronoun="he"),
    Noun("여왕", "queen", "role royal", "the", "명", pronoun="she"),
    Noun("기사", "knight", "role royal", "the", "명"),
    Noun("도둑", "thief", "role thief", "the", "명"),
    Noun("손님", "customer", "role visitor", "the", "명"),
    Noun("관광객", "tourist", "role visitor", "the", "명"),
    Noun("이웃", "neighbor", "role", "the", "명"),
)
JOBS = (
    Noun("학생", "student", "role job school", "the", "명"),
    Noun("선생님", "teacher", "role job school", "the", "명"),
    Noun("교수", "professor", "role job school", "the", "명"),
    Noun("의사", "doctor", "role job clinic", "the", "명"),
    Noun("간호사", "nurse", "role job clinic", "the", "명"),
    Noun("가수", "singer", "role job", "the", "명"),
    Noun("배우", "actor", "role job", "the", "명"),
    Noun("화가", "painter", "role job", "the", "명"),
    Noun("작가", "writer", "role job", "the", "명"),
    Noun("요리사", "chef", "role job", "the", "명"),
    Noun("경찰관", "police officer", "role job", "the", "명"),
    Noun("소방관", "firefighter", "role job", "the", "명"),
    Noun("변호사", "lawyer", "role job", "the", "명"),
    Noun("기자", "reporter", "role job", "the", "명"),
    Noun("농부", "farmer", "role job seller", "the", "명"),
    Noun("군인", "soldier", "role job", "the", "명"),
    Noun("과학자", "scientist", "role job", "the", "명"),
    Noun("조종사", "pilot", "role job", "the", "명"),
    Noun("음악가", "musician", "role job", "the", "명"),
    Noun("상인", "merchant", "role job seller", "the", "명"),
    Noun("운동선수", "athlete", "role job", "the", "명"),
    Noun("탐정", "detective", "role job", "the", "명"),
)
GROUPS = (
    Noun("아이들", "children", "group youth", "the", pronoun="they", is_plural=True),
    Noun("소년들", "boys", "group youth", "the", pronoun="they", is_plural=True),
    Noun("소녀들", "girls", "group youth", "the", pronoun="they", is_plural=True),
    Noun("학생들", "students", "group", "the", pronoun="they", is_plural=True),
    Noun("손님들", "customers", "group", "the", pronoun="they", is_plural=True),
    Noun("관광객들", "tourists", "group", "the", pronoun="they", is_plural=True),
    Noun("군인들", "soldiers", "group", "the", pronoun="they", is_plural=True),
)
BABY = Noun("아기", "baby", "baby small", "the", "명")

ANIMALS = (
    Noun("동물", "animal", "animal", counter="마리", pronoun="it"),
    Noun("개", "dog", "animal pet barker biter hunter", counter="마리", pronoun="it"),
    Noun("고양이", "cat", "animal pet mouser hunter hunted", counter="마리", pronoun="it"),
    Noun("강아지", "puppy", "animal pet barker hunter", counter="마리", pronoun="it"),
    Noun("토끼", "rabbit", "animal pet hunted", counter="마리", pronoun="it"),
    Noun("말", "horse", "animal farmed rideable fast", counter="마리", pronoun="it"),
    Noun("소", "cow", "animal farmed", counter="마리", pronoun="it"),
    Noun("돼지", "pig", "animal farmed", counter="마리", pronoun="it"),
    Noun("양", "sheep", "animal farmed hunted", counter="마리", pronoun="it"),
    Noun("염소", "goat", "animal farmed hunted", counter="마리", pronoun="it"),
    Noun("오리", "duck", "animal farmed bird hunted", counter="마리", pronoun="it"),
    Noun("곰", "bear", "animal wild biter hunter", counter="마리", pronoun="it"),
    Noun("여우", "fox", "animal wild mouser hunter", counter="마리", pronoun="it"),
    Noun("늑대", "wolf", "animal wild biter hunter", counter="마리", pronoun="it"),
    Noun("호랑이", "tiger", "animal wild biter fast hunter", counter="마리", pronoun="it"),
    Noun("사자", "lion", "animal wild biter fast hunter", counter="마리", pronoun="it"),
    Noun("원숭이", "monkey", "animal wild", counter="마리", pronoun="it"),
    Noun("코끼리", "elephant", "animal wild", counter="마리", pronoun="it"),
    Noun("사슴", "deer", "animal wild fast hunted", counter="마리", pronoun="it"),
    Noun("뱀", "snake", "crawler wild biter", counter="마리", pronoun="it"),
    Noun("쥐", "mouse", "crawler prey hunted", counter="마리", pronoun="it"),
    Noun("새", "bird", "flier bird hunted", counter="마리", pronoun="it"),
    Noun("나비", "butterfly", "flier prey pretty hunted", counter="마리", pronoun="it"),
    Noun("물고기", "fish", "prey", counter="마리", pronoun="it"),
)

FOOD = (
    Noun("사과", "apple", "food fruit fresh cuttable animalfood", counter="개"),
    Noun("바나나", "banana", "food fruit animalfood", counter="개"),
    Noun("오렌지", "orange", "food fruit fresh cuttable", counter="개"),
    Noun("토마토", "tomato", "food fresh cuttable plantable", counter="개"),
    Noun("감자", "potato", "food cookable cuttable plantable", counter="개"),
    Noun("당근", "carrot", "food fresh cuttable animalfood plantable", counter="개"),
    Noun("달걀", "egg", "food fresh cookable", counter="개"),
    Noun("햄버거", "hamburger", "food menu dish", counter="개"),
    Noun("샌드위치", "sandwich", "food menu dish", counter="개"),
    Noun("빵", "bread", "food bakeable cuttable animalfood", "none"),
    Noun("밥", "rice", "food cookable", "none", "그릇", "bowl of"),
    Noun("국수", "noodles", "food menu cookable spicy", "none", is_plural=True),
    Noun("만두", "dumplings", "food menu cookable dish", "none", is_plural=True),
    Noun("김치", "kimchi", "food spicy", "none"),
    Noun("비빔밥", "bibimbap", "food menu spicy dish", "none", "그릇", "bowl of"),
    Noun("불고기", "bulgogi", "food menu cookable dish", "none"),
    Noun("피자", "pizza", "food menu dish bakeable", "none", "조각", "slice of"),
    Noun("샐러드", "salad", "food menu fresh", "none"),
    Noun("수프", "soup", "food menu hot cookable", "none", "그릇", "bowl of"),
    Noun("고기", "meat", "food cookable cuttable animalfood", "none"),
    Noun("생선", "fish", "food fresh cookable animalfood", "none"),
    Noun("닭고기", "chicken", "food menu cookable", "none"),
    Noun("치즈", "cheese", "food cuttable animalfood", "none", "조각", "slice of"),
    Noun("초콜릿", "chocolate", "food sweets", "none"),
    Noun("아이스크림", "ice cream", "food sweets menu", "none"),
    Noun("케이크", "cake", "food sweets bakeable cuttable", counter="조각", unit="piece of"),
    Noun("쿠키", "cookies", "food sweets bakeable", "none", is_plural=True),
    Noun("딸기", "strawberries", "food fruit fresh plantable", "none", is_plural=True),
    Noun("포도", "grapes", "food fruit fresh", "none", is_plural=True),
    Noun("채소", "vegetables", "food fresh cookable cuttable", "none", is_plural=True),
)
MEALS = (
    Noun("아침", "breakfast", "meal", "none"),
    Noun("점심", "lunch", "meal", "none"),
    Noun("저녁", "dinner", "meal", "none"),
)
DRINKS = (
    Noun("물", "water", "drink cold animaldrink", "none", "잔", "glass of"),
    Noun("우유", "milk", "drink cold animaldrink", "none", "잔", "glass of"),
    Noun("커피", "coffee", "drink menu hot", "none", "잔", "cup of"),
    Noun("녹차", "green tea", "drink menu hot", "none", "잔", "cup of"),
    Noun("오렌지 주스", "orange juice", "drink menu cold", "none", "잔", "glass of"),
    Noun("콜라", "cola", "drink menu cold", "none", "병", "bottle of"),
    Noun("레모네이드", "lemonade", "drink menu cold", "none", "잔", "glass of"),
    Noun("홍차", "black tea", "drink menu hot", "none", "잔", "cup of"),
)

READING_MATERIAL = (
    Noun("책", "book", "reading goods book volume portable", counter="권"),
    Noun("소설", "novel", "reading writing goods book", counter="권"),
    Noun("잡지", "magazine", "reading goods", counter="권"),
    Noun("사전", "dictionary", "goods book portable", counter="권"),
    Noun("만화책", "comic book", "reading goods book volume", counter="권"),
    Noun("신문", "newspaper", "reading", "the"),
    Noun("편지", "letter", "reading writing mail", counter="통"),
    Noun("이메일", "email", "reading writing mail", counter="통"),
    Noun("시", "poem", "reading writing", counter="편"),
    Noun("보고서", "report", "reading writing mail"),
)
MEDIA = (
    Noun("영화", "movie", "show story film", counter="편"),
    Noun("드라마", "drama", "show story"),
    Noun("뉴스", "news", "show news", "the"),
    Noun("축구 경기", "soccer game", "show"),
    Noun("텔레비전", "television", "show news", "none"),
    Noun("음악", "music", "sound", "none"),
    Noun("라디오", "radio", "sound", "the"),
    Noun("노래", "song", "sound tune singable", counter="곡"),
    Noun("이야기", "story", "sound story reading"),
    Noun("강의", "lecture", "sound story"),
)
CLOTHES = (
    Noun("코트", "coat", "worn goods colored", counter="벌"),
    Noun("셔츠", "shirt", "worn goods colored", counter="벌"),
    Noun("치마", "skirt", "worn goods colored pretty", counter="벌"),
    Noun("드레스", "dress", "worn goods colored pretty", counter="벌"),
    Noun("스웨터", "sweater", "worn goods colored", counter="벌"),
    Noun("재킷", "jacket", "worn goods colored", counter="벌"),
    Noun("바지", "pants", "worn goods colored", "none", is_plural=True),
    Noun("모자", "hat", "headwear goods colored portable", counter="개"),
    Noun("안경", "glasses", "headwear goods portable", "none", is_plural=True),
    Noun("신발", "shoes", "footwear goods colored", "none", is_plural=True),
    Noun("부츠", "boots", "footwear goods colored", "none", is_plural=True),
    Noun("양말", "socks", "footwear goods colored", "none", is_plural=True),
)
THINGS = (
    Noun("가방", "bag", "goods portable colored gift bag", counter="개"),
    Noun("우산", "umbrella", "goods portable colored", counter="개"),
    Noun("시계", "watch", "goods portable machine gift", counter="개"),
    Noun("휴대폰", "cell phone", "goods portable machine", counter="대"),
    Noun("카메라", "camera", "goods portable machine", counter="대"),
    Noun("지갑", "wallet", "goods portable gift", counter="개"),
    Noun("열쇠", "key", "portable", counter="개"),
    Noun("반지", "ring", "goods portable gift pretty", counter="개"),
    Noun("지도", "map", "goods portable drawn", counter="장"),
    Noun("표", "ticket", "goods portable", counter="장"),
    Noun("사진", "photo", "picture mail photo", counter="장"),
    Noun("그림", "picture", "picture drawn", counter="장"),
    Noun("컴퓨터", "computer", "goods machine", counter="대"),
    Noun("로봇", "robot", "goods machine built toy", counter="대"),
    Noun("인형", "doll", "goods built gift toy pretty", counter="개"),
    Noun("장난감", "toy", "goods built gift toy", counter="개"),
    Noun("공", "ball", "goods thrown toy", counter="개"),
    Noun("돌", "stone", "thrown", counter="개"),
    Noun("의자", "chair", "goods furniture built colored", counter="개"),
    Noun("책상", "desk", "goods furniture built", counter="개"),
    Noun("탁자", "table", "goods furniture built", counter="개"),
    Noun("침대", "bed", "goods furniture", counter="개"),
    Noun("상자", "box", "built lidded colored", counter="개"),
    Noun("거울", "mirror", "goods", counter="개"),
    Noun("컵", "cup", "goods washable", counter="개"),
    Noun("접시", "plate", "goods washable", counter="개"),
    Noun("연필", "pencil", "goods writer", counter="자루"),
    Noun("펜", "pen", "goods writer", counter="자루"),
    Noun("칼", "knife", "cutter", counter="자루"),
    Noun("가위", "scissors", "cutter", "none", is_plural=True),
    Noun("종이", "paper", "cuttable", "none", "장", "sheet of"),
    Noun("꽃", "flower", "goods colored plantable pretty drawn", counter="송이"),
    Noun("나무", "tree", "plantable drawn tall", counter="그루"),
    Noun("선물", "gift", "goods gift present", counter="개"),
    Noun("문", "door", "fixture", "the"),
    Noun("창문", "window", "fixture", "the"),
    Noun("벽", "wall", "painted", "the"),
    Noun("쓰레기", "trash", "waste", "the"),
    Noun("돈", "money", "cash", "none"),
    Noun("자전거", "bicycle", "goods machine rideable vehicle colored", counter="대"),
    Noun("오토바이", "motorcycle", "goods machine rideable vehicle", counter="대"),
    Noun("자동차", "car", "goods machine driven vehicle colored", counter="대"),
    Noun("트럭", "truck", "machine driven vehicle", counter="대"),
    Noun("버스", "bus", "driven vehicle", counter="대"),
)
SKILLS = (
    Noun("영어", "English", "subject language", "none"),
    Noun("한국어", "Korean", "subject language", "none"),
    Noun("수학", "math", "subject", "none"),
    Noun("역사", "history", "subject", "none"),
    Noun("과학", "science", "subject", "none"),
    Noun("미술", "art", "subject", "none"),
    Noun("축구", "soccer", "sport", "none"),
    Noun("야구", "baseball", "sport", "none"),
    Noun("농구", "basketball", "sport", "none"),
    Noun("테니스", "tennis", "sport", "none"),
    Noun("배드민턴", "badminton", "sport", "none"),
    Noun("피아노", "piano", "instrument", "the"),
    Noun("기타", "guitar", "instrument", "the"),
    Noun("바이올린", "violin", "bowed", "the"),
    Noun("숙제", "homework", "chore duty", "none"),
    Noun("설거지", "dishes", "chore", "the", is_plural=True),
    Noun("빨래", "laundry", "chore", "the"),
)
EVENTS = (
    Noun("시험", "exam", "event duty"),
    Noun("회의", "meeting", "event duty"),
    Noun("약속", "appointment", "event"),
    Noun("수업", "class", "event duty"),
    Noun("파티", "party", "event"),
    Noun("질문", "question", "duty"),
)

PLACES = (
    Noun("집", "home", "home", "fixed", preposition="at"),
    Noun("학교", "school", "school study lending", "fixed", preposition="at"),
    Noun("교회", "church", "errand", "fixed", preposition="at"),
    Noun("공원", "park", "outdoor sight", "the", preposition="in"),
    Noun("정원", "garden", "outdoor yard", "the", preposition="in"),
    Noun("마당", "yard", "outdoor yard", "the", preposition="in"),
    Noun("놀이터", "playground", "outdoor play", "the", preposition="at"),
    Noun("해변", "beach", "outdoor water sight", "the", preposition="at"),
    Noun("호수", "lake", "water wildplace sight", "the", preposition="at"),
    Noun("강", "river", "water wildplace crossed", "the", preposition="at"),
    Noun("숲", "forest", "wildplace", "the", preposition="in"),
    Noun("농장", "farm", "wildplace farm", "the", preposition="on"),
    Noun("산", "mountain", "climbed wildplace", "the", preposition="on"),
    Noun("섬", "island", "abode sight", "the", preposition="on"),
    Noun("마을", "village", "abode", "the", preposition="in"),
    Noun("시골", "countryside", "abode", "the", preposition="in"),
    Noun("성", "castle", "sight abode", "the", preposition="in"),
    Noun("궁전", "palace", "sight", "the", preposition="in"),
    Noun("도서관", "library", "study errand quiet lending", "the", preposition="at"),
    Noun("교실", "classroom", "room study class", "the", preposition="in"),
    Noun("방", "room", "room bedroom", "the", preposition="in"),
    Noun("부엌", "kitchen", "room cooking", "the", preposition="in"),
    Noun("거실", "living room", "room", "the", preposition="in"),
    Noun("사무실", "office", "room work", "the", preposition="at"),
    Noun("카페", "cafe", "dining errand quiet", "the", preposition="at"),
    Noun("식당", "restaurant", "dining errand", "the", preposition="at"),
    Noun("호텔", "hotel", "dining lodging", "the", preposition="at"),
    Noun("시장", "market", "shop errand", "the", preposition="at"),
    Noun("가게", "store", "shop errand", "the", preposition="at"),
    Noun("백화점", "department store", "shop errand", "the", preposition="at"),
    Noun("서점", "bookstore", "bookshop errand", "the", preposition="at"),
    Noun("빵집", "bakery", "foodshop errand", "the", preposition="at"),
    Noun("병원", "hospital", "errand work clinic", "the", preposition="at"),
    Noun("은행", "bank", "errand work", "the", preposition="at"),
    Noun("우체국", "post office", "errand work", "the", preposition="at"),
    Noun("공항", "airport", "station", "the", preposition="at"),
    Noun("기차역", "train station", "station", "the", preposition="at"),
    Noun("버스 정류장", "bus stop", "station", "the", preposition="at"),
    Noun("영화관", "movie theater", "cinema errand", "the", preposition="at"),
    Noun("박물관", "museum", "sight errand", "the", preposition="at"),
    Noun("미술관", "art gallery", "sight errand", "the", preposition="at"),
    Noun("동물원", "zoo", "sight zoo errand", "the", preposition="at"),
    Noun("수영장", "swimming pool", "water errand", "the", preposition="at"),
    Noun("체육관", "gym", "gym errand", "the", preposition="at"),
    Noun("길", "street", "crossed street", "the", preposition="on"),
    Noun("다리", "bridge", "crossed", "the", preposition="on"),
    Noun("의자", "chair", "seat", "the", preposition="on"),
    Noun("침대", "bed", "seat", "the", preposition="on"),
    Noun("소파", "sofa", "seat", "the", preposition="on"),
    Noun("바닥", "floor", "seat", "the", preposition="on"),
    Noun("서울", "Seoul", "city", "fixed", preposition="in"),
    Noun("부산", "Busan", "city", "fixed", preposition="in"),
    Noun("런던", "London", "city abroad", "fixed", preposition="in"),
    Noun("파리", "Paris", "city abroad", "fixed", preposition="in"),
    Noun("뉴욕", "New York", "city abroad", "fixed", preposition="in"),
    Noun("도쿄", "Tokyo", "city abroad", "fixed", preposition="in"),
    Noun("한국", "Korea", "land", "fixed", preposition="in"),
    Noun("프랑스", "France", "land abroad", "fixed", preposition="in"),
)

TRANSPORT = (
    Noun("버스", "bus", "near far"),
    Noun("택시", "taxi", "near"),
    Noun("지하철", "subway", "near"),
    Noun("자전거", "bicycle", "near"),
    Noun("기차", "train", "far"),
    Noun("비행기", "plane", "far abroad"),
)

ADJECTIVES = (
    Adjective("친절하다", "kind", "role trait"),
    Adjective("똑똑하다", "smart", "role trait pet"),
    Adjective("용감하다", "brave", "role trait"),
    Adjective("정직하다", "honest", "role trait"),
    Adjective("게으르다", "lazy", "role trait pet"),
    Adjective("부지런하다", "diligent", "role trait"),
    Adjective("현명하다", "wise", "role trait"),
    Adjective("건강하다", "healthy", "role trait"),
    Adjective("유명하다", "famous", "job trait story tune dining sight"),
    Adjective("키가 크다", "tall", "role trait"),
    Adjective("젊다", "young", "job trait"),
    Adjective("늙다", "old", "job", "늙은"),
    Adjective("피곤하다", "tired", "state animal"),
    Adjective("배고프다", "hungry", "state animal"),
    Adjective("목마르다", "thirsty", "state animal"),
    Adjective("졸리다", "sleepy", "state pet"),
    Adjective("아프다", "sick", "state animal"),
    Adjective("바쁘다", "busy", "state"),
    Adjective("슬프다", "sad", "state story tune"),
    Adjective("행복하다", "happy", "state pet"),
    Adjective("외롭다", "lonely", "state"),
    Adjective("심심하다", "bored", "state"),
    Adjective("크다", "big", "animal goods colored fruit furniture lidded tall"),
    Adjective("작다", "small", "animal goods colored fruit furniture lidded bird tall"),
    Adjective("귀엽다", "cute", "pet baby toy bird"),
    Adjective("무섭다", "scary", "wild"),
    Adjective("빠르다", "fast", "vehicle fast"),
    Adjective("느리다", "slow", "vehicle"),
    Adjective("빨갛다", "red", "colored"),
    Adjective("파랗다", "blue", "colored"),
    Adjective("노랗다", "yellow", "colored"),
    Adjective("하얗다", "white", "colored"),
    Adjective("까맣다", "black", "colored"),
    Adjective("예쁘다", "pretty", "pretty"),
    Adjective("새", "new", "goods machine age", "새"),
    Adjective("오래되다", "old", "goods machine picture age", "오래된"),
    Adjective("비싸다", "expensive", "goods machine food drink price"),
    Adjective("싸다", "cheap", "goods machine food drink price"),
    Adjective("무겁다", "heavy", "furniture machine lidded book weight"),
    Adjective("가볍다", "light", "worn footwear bag weight"),
    Adjective("맛있다", "delicious", "food menu"),
    Adjective("맵다", "spicy", "spicy"),
    Adjective("달다", "sweet", "fruit sweets"),
    Adjective("뜨겁다", "hot", "hot"),
    Adjective("차갑다", "cold", "cold"),
    Adjective("신선하다", "fresh", "fresh"),
    Adjective("길다", "long", "story tune writing"),
    Adjective("짧다", "short", "story tune writing"),
    Adjective("재미있다", "interesting", "story reading subject"),
    Adjective("지루하다", "boring", "story reading"),
    Adjective("쉽다", "easy", "subject duty"),
    Adjective("어렵다", "difficult", "subject duty"),
    Adjective("아름답다", "beautiful", "sight singable picture drawn"),
    Adjective("조용하다", "quiet", "place room quiet outdoor"),
    Adjective("시끄럽다", "noisy", "place dining station class"),
    Adjective("깨끗하다", "clean", "place room dining outdoor water lodging"),
    Adjective("더럽다", "dirty", "place room washable footwear water"),
    Adjective("넓다", "spacious", "place room gym"),
    Adjective("밝다", "bright", "place room"),
    Adjective("어둡다", "dark", "place room street"),
)

TIMES = (
    Time("어제", "yesterday", "past"),
    Time("그저께", "the day before yesterday", "past"),
    Time("어젯밤에", "last night", "past", "night"),
    Time("오늘 아침에", "this morning", "past", "morning"),
    Time("며칠 전에", "a few days ago", "past"),
    Time("지난주에", "last week", "past"),
    Time("지난달에", "last month", "past", "long"),
    Time("작년에", "last year", "past", "long"),
    Time("내일", "tomorrow", "future"),
    Time("모레", "the day after tomorrow", "future"),
    Time("오늘 밤에", "tonight", "future", "night"),
    Time("내일 아침에", "tomorrow morning", "future", "morning"),
    Time("다음 주에", "next week", "future"),
    Time("다음 달에", "next month", "future", "long"),
    Time("내년에", "next year", "future", "long"),
    Time("아침에", "in the morning", "any", "morning"),
    Time("오후에", "in the afternoon", "any", "afternoon"),
    Time("저녁에", "in the evening", "any", "evening"),
    Time("주말에", "on the weekend", "any"),
    Time("월요일에", "on Monday", "any"),
    Time("화요일에", "on Tuesday", "any"),
    Time("수요일에", "on Wednesday", "any"),
    Time("목요일에", "on Thursday", "any"),
    Time("금요일에", "on Friday", "any"),
    Time("토요일에", "on Saturday", "any"),
    Time("일요일에", "on Sunday", "any"),
    Time("여섯 시에", "at six o'clock", "any", "clock"),
    Time("일곱 시에", "at seven o'clock", "any", "clock"),
    Time("여덟 시에", "at eight o'clock", "any", "clock"),
    Time("열 시에", "at ten o'clock", "any", "clock"),
    Time("매일", "every day", "habit"),
    Time("매일 아침", "every morning", "habit", "morning"),
    Time("매일 저녁", "every evening", "habit", "evening"),
    Time("매주", "every week", "habit"),
    Time("주말마다", "every weekend", "habit"),
    Time("토요일마다", "every Saturday", "habit"),
    Time("일요일마다", "every Sunday", "habit"),
    Time("자주", "often", "frequency"),
    Time("가끔", "sometimes", "frequency"),
    Time("항상", "always", "frequency"),
    Time("보통", "usually", "frequency"),
)
NOW = Time("지금", "now", "any")

ADVERBS = {
    "quickly": Adverb("빨리", "quickly"),
    "slowly": Adverb("천천히", "slowly"),
    "quietly": Adverb("조용히", "quietly"),
    "loudly": Adverb("크게", "loudly"),
    "hard": Adverb("열심히", "hard"),
    "well": Adverb("잘", "well"),
    "early": Adverb("일찍", "early"),
    "late": Adverb("늦게", "late"),
    "again": Adverb("다시", "again"),
    "alone": Adverb("혼자", "alone"),
    "together": Adverb("함께", "together"),
    "carefully": Adverb("조심스럽게", "carefully"),
}
# Adjectives that can follow "too": too tired, too expensive.
ADJECTIVES_WITH_TOO = frozenset(
    (
        *("tired", "hungry", "thirsty", "sleepy", "sick", "busy", "sad", "lonely", "bored"),
        *("big", "small", "slow", "expensive", "heavy", "spicy", "sweet", "hot", "cold", "long"),
        *("short", "boring", "difficult", "noisy", "dirty", "dark"),
    )
)
OWNERS = (
    ("내", "my"),
    ("너의", "your"),
    *((f"{name.ko}의", f"{name.en}'s") for name in NAMES),
)
OTHER_OWNERS = (("그의", "his"), ("그녀의", "her"))
DEGREES = (Adverb("아주", "very"), Adverb("정말", "really"), Adverb("너무", "too"))
NUMBERS = (("두", "two"), ("세", "three"), ("네", "four"), ("다섯", "five"), ("여섯", "six"))
POSITIONS = (
    ("위", "on", "furniture"),
    ("밑", "under", "furniture tall"),
    ("안", "in", "lidded bag"),
    ("앞", "in front of", "fixture tall vehicle"),
    ("뒤", "behind", "fixture tall vehicle furniture"),
    ("옆", "next to", "fixture tall furniture lidded vehicle"),
)
