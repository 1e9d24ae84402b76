"""The morphology of the embedded corpus, against forms written by hand."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attendo.synthetic.grammar import english, korean, lexicon
from attendo.synthetic.grammar.phrases import inflect
from attendo.synthetic.grammar.verbs import FRAMES

# Noun, then with 은/는, 이/가, 을/를, 과/와, 으로/로, 이다/다.
PARTICLES = """
왕자 왕자는 왕자가 왕자를 왕자와 왕자로 왕자다
공주 공주는 공주가 공주를 공주와 공주로 공주다
학생 학생은 학생이 학생을 학생과 학생으로 학생이다
선생님 선생님은 선생님이 선생님을 선생님과 선생님으로 선생님이다
의사 의사는 의사가 의사를 의사와 의사로 의사다
지하철 지하철은 지하철이 지하철을 지하철과 지하철로 지하철이다
연필 연필은 연필이 연필을 연필과 연필로 연필이다
칼 칼은 칼이 칼을 칼과 칼로 칼이다
서울 서울은 서울이 서울을 서울과 서울로 서울이다
펜 펜은 펜이 펜을 펜과 펜으로 펜이다
가위 가위는 가위가 가위를 가위와 가위로 가위다
버스 버스는 버스가 버스를 버스와 버스로 버스다
트럭 트럭은 트럭이 트럭을 트럭과 트럭으로 트럭이다
부엌 부엌은 부엌이 부엌을 부엌과 부엌으로 부엌이다
숲 숲은 숲이 숲을 숲과 숲으로 숲이다
꽃 꽃은 꽃이 꽃을 꽃과 꽃으로 꽃이다
집 집은 집이 집을 집과 집으로 집이다
길 길은 길이 길을 길과 길로 길이다
달걀 달걀은 달걀이 달걀을 달걀과 달걀로 달걀이다
초콜릿 초콜릿은 초콜릿이 초콜릿을 초콜릿과 초콜릿으로 초콜릿이다
카페 카페는 카페가 카페를 카페와 카페로 카페다
고양이 고양이는 고양이가 고양이를 고양이와 고양이로 고양이다
동물 동물은 동물이 동물을 동물과 동물로 동물이다
아이들 아이들은 아이들이 아이들을 아이들과 아이들로 아이들이다
톰 톰은 톰이 톰을 톰과 톰으로 톰이다
"""
PARTICLE_NAMES = ("은", "이", "을", "과", "으로", "이다")

# Dictionary form, present, past, future.
VERBS = """
구하다 구한다 구했다 구할
돕다 돕는다 도왔다 도울
만나다 만난다 만났다 만날
기다리다 기다린다 기다렸다 기다릴
초대하다 초대한다 초대했다 초대할
사랑하다 사랑한다 사랑했다 사랑할
존경하다 존경한다 존경했다 존경할
믿다 믿는다 믿었다 믿을
기억하다 기억한다 기억했다 기억할
그리워하다 그리워한다 그리워했다 그리워할
용서하다 용서한다 용서했다 용서할
칭찬하다 칭찬한다 칭찬했다 칭찬할
안다 안는다 안았다 안을
보다 본다 봤다 볼
따라가다 따라간다 따라갔다 따라갈
찾다 찾는다 찾았다 찾을
전화하다 전화한다 전화했다 전화할
이야기하다 이야기한다 이야기했다 이야기할
싸우다 싸운다 싸웠다 싸울
속이다 속인다 속였다 속일
주다 준다 줬다 줄
보내다 보낸다 보냈다 보낼
보여_주다 보여_준다 보여_줬다 보여_줄
빌려주다 빌려준다 빌려줬다 빌려줄
받다 받는다 받았다 받을
가르치다 가르친다 가르쳤다 가르칠
먹다 먹는다 먹었다 먹을
마시다 마신다 마셨다 마실
요리하다 요리한다 요리했다 요리할
굽다 굽는다 구웠다 구울
자르다 자른다 잘랐다 자를
주문하다 주문한다 주문했다 주문할
준비하다 준비한다 준비했다 준비할
사다 산다 샀다 살
팔다 판다 팔았다 팔
좋아하다 좋아한다 좋아했다 좋아할
싫어하다 싫어한다 싫어했다 싫어할
원하다 원한다 원했다 원할
읽다 읽는다 읽었다 읽을
쓰다 쓴다 썼다 쓸
번역하다 번역한다 번역했다 번역할
빌리다 빌린다 빌렸다 빌릴
배우다 배운다 배웠다 배울
공부하다 공부한다 공부했다 공부할
그리다 그린다 그렸다 그릴
이해하다 이해한다 이해했다 이해할
듣다 듣는다 들었다 들을
부르다 부른다 불렀다 부를
하다 한다 했다 할
치다 친다 쳤다 칠
켜다 켠다 켰다 켤
연습하다 연습한다 연습했다 연습할
찍다 찍는다 찍었다 찍을
춤추다 춤춘다 춤췄다 춤출
노래하다 노래한다 노래했다 노래할
수영하다 수영한다 수영했다 수영할
운동하다 운동한다 운동했다 운동할
산책하다 산책한다 산책했다 산책할
쉬다 쉰다 쉬었다 쉴
놀다 논다 놀았다 놀
자다 잔다 잤다 잘
일어나다 일어난다 일어났다 일어날
울다 운다 울었다 울
웃다 웃는다 웃었다 웃을
걷다 걷는다 걸었다 걸을
달리다 달린다 달렸다 달릴
넘어지다 넘어진다 넘어졌다 넘어질
일하다 일한다 일했다 일할
청소하다 청소한다 청소했다 청소할
씻다 씻는다 씻었다 씻을
열다 연다 열었다 열
닫다 닫는다 닫았다 닫을
잠그다 잠근다 잠갔다 잠글
고치다 고친다 고쳤다 고칠
만들다 만든다 만들었다 만들
칠하다 칠한다 칠했다 칠할
버리다 버린다 버렸다 버릴
심다 심는다 심었다 심을
밀다 민다 밀었다 밀
옮기다 옮긴다 옮겼다 옮길
입다 입는다 입었다 입을
신다 신는다 신었다 신을
던지다 던진다 던졌다 던질
잡다 잡는다 잡았다 잡을
잃어버리다 잃어버린다 잃어버렸다 잃어버릴
발견하다 발견한다 발견했다 발견할
숨기다 숨긴다 숨겼다 숨길
타다 탄다 탔다 탈
운전하다 운전한다 운전했다 운전할
가다 간다 갔다 갈
오다 온다 왔다 올
걸어가다 걸어간다 걸어갔다 걸어갈
달려가다 달려간다 달려갔다 달려갈
돌아가다 돌아간다 돌아갔다 돌아갈
도착하다 도착한다 도착했다 도착할
살다 산다 살았다 살
머무르다 머무른다 머물렀다 머무를
앉다 앉는다 앉았다 앉을
방문하다 방문한다 방문했다 방문할
들어가다 들어간다 들어갔다 들어갈
떠나다 떠난다 떠났다 떠날
오르다 오른다 올랐다 오를
건너다 건넌다 건넜다 건널
키우다 키운다 키웠다 키울
먹이를_주다 먹이를_준다 먹이를_줬다 먹이를_줄
쫓다 쫓는다 쫓았다 쫓을
물다 문다 물었다 물
짖다 짖는다 짖었다 짖을
날다 난다 날았다 날
되다 된다 됐다 될
짓다 짓는다 지었다 지을
눕다 눕는다 누웠다 누울
따르다 따른다 따랐다 따를
놓다 놓는다 놓았다 놓을
서다 선다 섰다 설
"""

# Dictionary form, before a noun, past, because (아서/어서).
ADJECTIVES = """
친절하다 친절한 친절했다 친절해서
똑똑하다 똑똑한 똑똑했다 똑똑해서
용감하다 용감한 용감했다 용감해서
정직하다 정직한 정직했다 정직해서
게으르다 게으른 게을렀다 게을러서
부지런하다 부지런한 부지런했다 부지런해서
현명하다 현명한 현명했다 현명해서
건강하다 건강한 건강했다 건강해서
유명하다 유명한 유명했다 유명해서
키가_크다 키가_큰 키가_컸다 키가_커서
젊다 젊은 젊었다 젊어서
늙다 늙은 늙었다 늙어서
피곤하다 피곤한 피곤했다 피곤해서
배고프다 배고픈 배고팠다 배고파서
목마르다 목마른 목말랐다 목말라서
졸리다 졸린 졸렸다 졸려서
아프다 아픈 아팠다 아파서
바쁘다 바쁜 바빴다 바빠서
슬프다 슬픈 슬펐다 슬퍼서
행복하다 행복한 행복했다 행복해서
외롭다 외로운 외로웠다 외로워서
심심하다 심심한 심심했다 심심해서
크다 큰 컸다 커서
작다 작은 작았다 작아서
귀엽다 귀여운 귀여웠다 귀여워서
무섭다 무서운 무서웠다 무서워서
빠르다 빠른 빨랐다 빨라서
느리다 느린 느렸다 느려서
빨갛다 빨간 빨갰다 빨개서
파랗다 파란 파랬다 파래서
노랗다 노란 노랬다 노래서
하얗다 하얀 하얬다 하얘서
까맣다 까만 까맸다 까매서
예쁘다 예쁜 예뻤다 예뻐서
비싸다 비싼 비쌌다 비싸서
싸다 싼 쌌다 싸서
무겁다 무거운 무거웠다 무거워서
가볍다 가벼운 가벼웠다 가벼워서
맛있다 맛있는 맛있었다 맛있어서
맵다 매운 매웠다 매워서
달다 단 달았다 달아서
뜨겁다 뜨거운 뜨거웠다 뜨거워서
차갑다 차가운 차가웠다 차가워서
신선하다 신선한 신선했다 신선해서
길다 긴 길었다 길어서
짧다 짧은 짧았다 짧아서
재미있다 재미있는 재미있었다 재미있어서
지루하다 지루한 지루했다 지루해서
쉽다 쉬운 쉬웠다 쉬워서
어렵다 어려운 어려웠다 어려워서
아름답다 아름다운 아름다웠다 아름다워서
조용하다 조용한 조용했다 조용해서
시끄럽다 시끄러운 시끄러웠다 시끄러워서
깨끗하다 깨끗한 깨끗했다 깨끗해서
더럽다 더러운 더러웠다 더러워서
넓다 넓은 넓었다 넓어서
밝다 밝은 밝았다 밝아서
어둡다 어두운 어두웠다 어두워서
좋다 좋은 좋았다 좋아서
좁다 좁은 좁았다 좁아서
"""

# Base form, third person, past, -ing. A verb of several words inflects its first.
ENGLISH_VERBS = """
save saves saved saving
help helps helped helping
meet meets met meeting
wait waits waited waiting
invite invites invited inviting
love loves loved loving
respect respects respected respecting
trust trusts trusted trusting
remember remembers remembered remembering
miss misses missed missing
forgive forgives forgave forgiving
praise praises praised praising
hug hugs hugged hugging
see sees saw seeing
follow follows followed following
look looks looked looking
call calls called calling
talk talks talked talking
fight fights fought fighting
deceive deceives deceived deceiving
give gives gave giving
send sends sent sending
show shows showed showing
lend lends lent lending
receive receives received receiving
teach teaches taught teaching
eat eats ate eating
drink drinks drank drinking
cook cooks cooked cooking
bake bakes baked baking
cut cuts cut cutting
order orders ordered ordering
prepare prepares prepared preparing
buy buys bought buying
sell sells sold selling
like likes liked liking
dislike dislikes disliked disliking
want wants wanted wanting
need needs needed needing
read reads read reading
write writes wrote writing
translate translates translated translating
borrow borrows borrowed borrowing
learn learns learned learning
study studies studied studying
draw draws drew drawing
understand understands understood understanding
watch watches watched watching
listen listens listened listening
sing sings sang singing
play plays played playing
practice practices practiced practicing
take takes took taking
dance dances danced dancing
swim swims swam swimming
exercise exercises exercised exercising
rest rests rested resting
sleep sleeps slept sleeping
get gets got getting
cry cries cried crying
laugh laughs laughed laughing
walk walks walked walking
run runs ran running
fall falls fell falling
work works worked working
do does did doing
clean cleans cleaned cleaning
wash washes washed washing
open opens opened opening
close closes closed closing
lock locks locked locking
fix fixes fixed fixing
make makes made making
paint paints painted painting
throw throws threw throwing
plant plants planted planting
push pushes pushed pushing
move moves moved moving
wear wears wore wearing
catch catches caught catching
lose loses lost losing
find finds found finding
hide hides hid hiding
ride rides rode riding
drive drives drove driving
go goes went going
come comes came coming
return returns returned returning
arrive arrives arrived arriving
live lives lived living
stay stays stayed staying
sit sits sat sitting
visit visits visited visiting
enter enters entered entering
leave leaves left leaving
climb climbs climbed climbing
cross crosses crossed crossing
raise raises raised raising
feed feeds fed feeding
chase chases chased chasing
bite bites bit biting
bark barks barked barking
fly flies flew flying
become becomes became becoming
have has had having
die dies died dying
"""

PLURALS = {
    "child": "children",
    "deer": "deer",
    "fish": "fish",
    "knife": "knives",
    "man": "men",
    "mouse": "mice",
    "potato": "potatoes",
    "sheep": "sheep",
    "thief": "thieves",
    "tomato": "tomatoes",
    "wolf": "wolves",
    "woman": "women",
    "box": "boxes",
    "bus": "buses",
    "butterfly": "butterflies",
    "class": "classes",
    "dictionary": "dictionaries",
    "dress": "dresses",
    "glass": "glasses",
    "party": "parties",
    "princess": "princesses",
    "puppy": "puppies",
    "fox": "foxes",
    "sandwich": "sandwiches",
    "watch": "watches",
}


def rows(table: str) -> list[list[str]]:
    """Read a table; an underscore stands for a space inside a cell."""
    return [[cell.replace("_", " ") for cell in line.split()] for line in table.split("\n") if line]


@pytest.mark.parametrize("row", rows(PARTICLES), ids=lambda row: row[0])
def test_a_particle_takes_the_form_that_the_noun_asks_for(row: list[str]) -> None:
    assert [korean.attach(row[0], name) for name in PARTICLE_NAMES] == row[1:]


def test_pronouns_change_before_the_subject_particle_only() -> None:
    assert [korean.attach("나", name) for name in ("이", "은", "을")] == ["내가", "나는", "나를"]
    assert korean.attach("너", "이") == "네가"


def test_particles_of_one_form_stay_as_they_are() -> None:
    assert korean.attach("공원", "에서") == "공원에서"
    assert korean.attach("학교", "에게") == "학교에게"


HANGUL = st.text(st.characters(min_codepoint=0xAC00, max_codepoint=0xD7A3), min_size=1, max_size=5)


@given(HANGUL)
def test_finals_agree_with_unicode_decomposition(word: str) -> None:
    last = unicodedata.normalize("NFD", word)[-1]
    has_final = "\u11a8" <= last <= "\u11c2"
    assert bool(korean.final_consonant(word)) == has_final
    assert korean.attach(word, "은").endswith("은" if has_final else "는")
    is_rieul = last == "\u11af"
    assert korean.attach(word, "으로").endswith("으로") == (has_final and not is_rieul)


@given(HANGUL)
def test_a_syllable_taken_apart_is_put_together_again(word: str) -> None:
    assert [korean.join_syllable(*korean.split_syllable(letter)) for letter in word] == list(word)


def test_a_foreign_word_has_no_final_consonant() -> None:
    assert korean.final_consonant("bus") == ""


@pytest.mark.parametrize("row", rows(VERBS), ids=lambda row: row[0])
def test_a_verb_conjugates_as_written_by_hand(row: list[str]) -> None:
    verb, present, past, prospective = row
    stem = verb.removesuffix("다")
    assert inflect(verb, "present") == present
    assert inflect(verb, "past") == past
    assert inflect(verb, "past", is_question=True) == past.removesuffix("다") + "니"
    assert inflect(verb, "future") == f"{prospective} 것이다"
    assert inflect(verb, "future", is_question=True) == f"{prospective} 거니"
    assert inflect(verb, "can") == f"{prospective} 수 있다"
    assert inflect(verb, "can", negative=True) == f"{prospective} 수 없다"
    assert inflect(verb, "past", negative=True) == f"{stem}지 않았다"
    assert inflect(verb, "present", negative=True) == f"{stem}지 않는다"
    assert inflect(verb, "future", negative=True) == f"{stem}지 않을 것이다"
    assert inflect(verb, "progressive") == f"{stem}고 있다"
    assert inflect(verb, "past progressive") == f"{stem}고 있었다"


@pytest.mark.parametrize("row", rows(ADJECTIVES), ids=lambda row: row[0])
def test_an_adjective_conjugates_as_written_by_hand(row: list[str]) -> None:
    word, before, past, because = row
    stem = word.removesuffix("다")
    assert korean.adnominal(word) == before
    assert inflect(word, "present", is_descriptive=True) == word
    assert inflect(word, "past", is_descriptive=True) == past
    assert inflect(word, "present", is_descriptive=True, negative=True) == f"{stem}지 않다"
    assert korean.infinitive(word) + "서" == because


@pytest.mark.parametrize(
    ("verb", "tense", "form"),
    [
        ("가다", "must", "가야 한다"),
        ("먹다", "must", "먹어야 한다"),
        ("돕다", "must", "도와야 한다"),
        ("부르다", "must", "불러야 한다"),
        ("걷다", "must", "걸어야 한다"),
        ("가고 싶어 하다", "present", "가고 싶어 한다"),
        ("비가 오다", "past", "비가 왔다"),
        ("모자를 쓰다", "past", "모자를 썼다"),
    ],
)
def test_auxiliaries_and_phrases_inflect_their_last_word(verb: str, tense: str, form: str) -> None:
    assert inflect(verb, tense) == form


@pytest.mark.parametrize(
    ("verb", "form"),
    [("가다", "가니"), ("먹다", "먹니"), ("만들다", "만드니"), ("살다", "사니"), ("춥다", "춥니")],
)
def test_questions_in_the_present_drop_a_final_rieul(verb: str, form: str) -> None:
    assert inflect(verb, "present", is_question=True) == form


@pytest.mark.parametrize(
    ("verb", "form"),
    [
        ("오다", "오면"),
        ("춥다", "추우면"),
        ("맑다", "맑으면"),
        ("불다", "불면"),
        ("흐리다", "흐리면"),
    ],
)
def test_the_conditional(verb: str, form: str) -> None:
    assert korean.conditional(verb) == form


def test_every_word_of_the_lexicon_is_in_the_tables() -> None:
    frames = [frame for group in FRAMES.values() for frame in group]
    verbs = {frame.ko for frame in frames if not frame.has_mark("descriptive")}
    assert verbs <= {row[0] for row in rows(VERBS)}
    predicates = {adjective.ko for adjective in lexicon.ADJECTIVES if not adjective.adnominal}
    assert predicates <= {row[0] for row in rows(ADJECTIVES)}
    assert {frame.en.split()[0] for frame in frames} <= {row[0] for row in rows(ENGLISH_VERBS)}


@pytest.mark.parametrize("row", rows(ENGLISH_VERBS), ids=lambda row: row[0])
def test_an_english_verb_conjugates_as_written_by_hand(row: list[str]) -> None:
    verb, third, past, gerund = row
    forms = [english.third_person(verb), english.past(verb), english.gerund(verb)]
    assert forms == [third, past, gerund]
    assert english.past(f"{verb} up") == f"{past} up"


@pytest.mark.parametrize(("noun", "plural"), PLURALS.items())
def test_plurals(noun: str, plural: str) -> None:
    assert english.plural(noun) == plural
    assert english.plural(f"old {noun}") == f"old {plural}"


@pytest.mark.parametrize("noun", ["boy", "photo", "key", "apple", "horse", "police officer"])
def test_other_plurals_take_an_s(noun: str) -> None:
    assert english.plural(noun) == f"{noun}s"


@pytest.mark.parametrize(
    ("phrase", "article"),
    [
        ("apple", "an"),
        ("umbrella", "an"),
        ("honest man", "an"),
        ("hour", "an"),
        ("old uniform", "an"),
        ("uniform", "a"),
        ("doctor", "a"),
        ("yellow egg", "a"),
        ("hat", "a"),
        ("ice cream", "an"),
    ],
)
def test_a_or_an(phrase: str, article: str) -> None:
    assert english.indefinite(phrase) == f"{article} {phrase}"


@pytest.mark.parametrize(
    ("adjective", "comparative"),
    [
        ("big", "bigger"),
        ("hot", "hotter"),
        ("wise", "wiser"),
        ("brave", "braver"),
        ("lazy", "lazier"),
        ("heavy", "heavier"),
        ("tall", "taller"),
        ("cheap", "cheaper"),
        ("clean", "cleaner"),
        ("slow", "slower"),
        ("quiet", "quieter"),
        ("famous", "more famous"),
        ("diligent", "more diligent"),
        ("honest", "more honest"),
        ("expensive", "more expensive"),
        ("delicious", "more delicious"),
        ("boring", "more boring"),
        ("good", "better"),
    ],
)
def test_comparatives(adjective: str, comparative: str) -> None:
    assert english.comparative(adjective) == comparative


def test_do_support_and_agreement() -> None:
    parts = english.verb_parts
    assert parts("go", "he", "present") == ("", "goes")
    assert parts("go", "they", "present") == ("", "go")
    assert parts("go", "he", "present", with_do_support=True) == ("does", "go")
    assert parts("go", "I", "present", with_do_support=True) == ("do", "go")
    assert parts("go", "you", "past", with_do_support=True) == ("did", "go")
    assert parts("go", "he", "future", with_do_support=True) == ("will", "go")
    assert parts("go", "he", "can", with_do_support=True) == ("can", "go")
    assert parts("be", "I", "present", with_do_support=True) == ("am", "")
    assert parts("be", "you", "past") == ("were", "")
    assert parts("be cold", "he", "past") == ("was", "cold")
    assert parts("be cold", "he", "future") == ("will", "be cold")
    assert parts("look for", "they", "past progressive") == ("were", "looking for")
