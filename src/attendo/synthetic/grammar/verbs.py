"""The verbs of the everyday corpus as data: subject, object, place, manner and reason.

A frame is one use of a verb. Its kinds select the nouns (`lexicon`) that make sense: a doctor
drinks tea, never a bicycle. A verb with two uses has two frames: 보다 is to see a person and to
watch a movie, which the object distinguishes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from attendo.synthetic.grammar.lexicon import parse_kinds

Aspect = Literal["action", "event", "state", "accident"]
"""An action can be in progress or a habit; an event happens at once; a state lasts; an accident is
not intended and occurs only in the past."""


class Frame(NamedTuple):
    """One use of a verb."""

    ko: str
    en: str
    what: str = ""
    """Kinds of the object; empty for an intransitive verb."""
    who: str = "person"
    where: str = ""
    """Kinds of the places where it happens."""
    goal: str = ""
    """Kinds of the places that complement the verb: go to school, live in Seoul."""
    how: str = ""
    """Suitable adverbs; verbs with `together` can be suggested: let's eat."""
    why: str = ""
    """States and weather that cause it."""
    aspect: Aspect = "action"
    particle: str = "을"
    """The particle of the object in Korean."""
    link: str = "to"
    """The preposition before the goal in English; "at" means that of the place itself."""
    to: str = ""
    """The preposition before a person who receives the object or gives it."""
    tool: str = ""
    """Kinds of the tool."""
    marks: str = ""
    """Other properties. Adjuncts: `company` (with my friend), `transport` (by bus), `mine` (my
    bag), `count` (two bags), `ask` (please ...), `how` (always with an adverb). Object: `generic`
    (I like dogs), `definite` (the bag), `priced` (an expensive bag), `creates` (not yet old or
    tired), `named` (no question for the object, as "what did you wear?" has several verbs in
    Korean). Verb: `descriptive` (conjugated like an adjective), `affirmed` (never negated, as
    Korean would use "cannot"), `unwilled` (not with want, can or must). `not-...`: parts of the day
    when it does not happen."""

    @property
    def is_transitive(self) -> bool:
        """Whether it has an object or a goal."""
        return bool(self.what or self.goal)

    @property
    def is_personal(self) -> bool:
        """Whether its object is a person."""
        return self.what.startswith(("person", "role"))

    def has_mark(self, mark: str) -> bool:
        """Return whether the frame has this mark."""
        return mark in parse_kinds(self.marks)

    def without_mark(self, mark: str) -> Frame:
        """Return the frame without a mark."""
        return self._replace(marks=self.marks.replace(mark, ""))


# fmt: off
# A table: one or two lines per verb.
FRAMES: dict[str, tuple[Frame, ...]] = {
    "people": (
        Frame("구하다", "save", "person animal", aspect="event", marks="definite"),
        Frame("돕다", "help", "person", where="home study", marks="ask"),
        Frame("만나다", "meet", "person", where="dining outdoor station", how="again",
              why="lonely"),
        Frame("기다리다", "wait for", "person", where="station dining", how="quietly alone",
              marks="ask"),
        Frame("초대하다", "invite", "person", how="again", aspect="event"),
        Frame("사랑하다", "love", "person", aspect="state"),
        Frame("존경하다", "respect", "person", aspect="state"),
        Frame("믿다", "trust", "person", aspect="state"),
        Frame("기억하다", "remember", "person", how="well", aspect="state", marks="affirmed"),
        Frame("그리워하다", "miss", "person", aspect="state"),
        Frame("용서하다", "forgive", "person", aspect="event", marks="ask not-clock"),
        Frame("칭찬하다", "praise", "person", aspect="event", marks="not-clock"),
        Frame("안다", "hug", "person pet", aspect="event", marks="definite not-long"),
        Frame("보다", "see", "person animal", where="outdoor street station", aspect="accident",
              marks="definite affirmed"),
        Frame("따라가다", "follow", "person animal", who="person animal", how="quietly slowly",
              marks="definite"),
        Frame("찾다", "look for", "person animal portable", where="outdoor home station",
              marks="mine definite"),
        Frame("전화하다", "call", "person", particle="에게", how="again", why="lonely sad",
              marks="ask not-long"),
        Frame("이야기하다", "talk with", "person", where="dining outdoor", particle="과",
              how="quietly"),
        Frame("싸우다", "fight with", "person", particle="과", how="again"),
        Frame("속이다", "deceive", "person", how="again", aspect="event"),
    ),
    "giving": (
        Frame("주다", "give", "gift food drink book cash", to="to", aspect="event",
              marks="count priced named"),
        Frame("보내다", "send", "mail gift cash", to="to", aspect="event", marks="count priced"),
        Frame("보여 주다", "show", "picture portable drawn", to="to", aspect="event", marks="mine"),
        Frame("빌려주다", "lend", "book cash machine portable", to="to", aspect="event",
              marks="mine named"),
        Frame("받다", "receive", "mail gift cash", to="from", aspect="accident",
              marks="count priced"),
        Frame("가르치다", "teach", "subject instrument", where="school", to="to"),
    ),
    "meal": (
        Frame("먹다", "eat", "food meal", where="home dining", how="quickly slowly alone together",
              why="hungry", marks="company count"),
        Frame("마시다", "drink", "drink", where="home dining", how="slowly alone together",
              marks="company count"),
        Frame("마시다", "drink", "cold", where="home", how="quickly", why="thirsty"),
        Frame("요리하다", "cook", "cookable", where="cooking home", how="quickly together",
              why="hungry", marks="company ask creates"),
        Frame("굽다", "bake", "bakeable", where="cooking home", how="together",
              marks="company count ask creates"),
        Frame("자르다", "cut", "cuttable", where="cooking", tool="cutter", how="carefully",
              marks="count ask not-long"),
        Frame("주문하다", "order", "menu", where="dining", how="again", marks="count ask not-long"),
        Frame("주문하다", "order", "dish", where="dining", why="hungry", marks="count not-long"),
        Frame("준비하다", "prepare", "meal present", how="together", marks="company ask creates"),
    ),
    "shopping": (
        Frame("사다", "buy", "goods", where="shop", how="together",
              marks="company count ask priced"),
        Frame("사다", "buy", "food drink", where="shop foodshop", how="together",
              marks="company count ask priced"),
        Frame("사다", "buy", "book", where="bookshop", marks="company count ask priced"),
        Frame("팔다", "sell", "machine furniture book", marks="mine count priced"),
        Frame("팔다", "sell", "food goods", who="seller", where="shop", marks="count priced"),
        Frame("좋아하다", "like", "food drink subject sport animal", aspect="state",
              marks="generic"),
        Frame("싫어하다", "dislike", "food drink subject sport animal", aspect="state",
              marks="generic"),
        Frame("원하다", "want", "goods drink menu", aspect="state", marks="count priced"),
        Frame("필요하다", "need", "goods cash", particle="이", aspect="state",
              marks="count priced descriptive"),
    ),
    "study": (
        Frame("읽다", "read", "reading", where="home study bedroom quiet",
              how="slowly quietly together", why="bored", marks="company count ask"),
        Frame("쓰다", "write", "writing", where="home study quiet", tool="writer",
              how="quickly carefully", marks="count ask creates"),
        Frame("번역하다", "translate", "writing volume", where="home quiet",
              how="quickly carefully", marks="mine count ask creates"),
        Frame("빌리다", "borrow", "book", where="lending", marks="count"),
        Frame("배우다", "learn", "subject instrument sport", where="school", how="quickly together",
              marks="company"),
        Frame("공부하다", "study", "subject", where="study home quiet", how="hard together",
              marks="company"),
        Frame("그리다", "draw", "animal drawn", where="outdoor school", tool="writer",
              how="carefully", marks="count ask creates"),
        Frame("이해하다", "understand", "subject story", how="well", aspect="state",
              marks="definite affirmed"),
    ),
    "leisure": (
        Frame("보다", "watch", "show", where="home", how="together alone", why="bored",
              marks="company"),
        Frame("보다", "watch", "film", where="cinema", how="together alone", marks="company"),
        Frame("듣다", "listen to", "sound", where="home quiet", how="quietly together",
              why="sad bored", marks="company"),
        Frame("부르다", "sing", "singable", where="school outdoor", how="well loudly together",
              why="happy", marks="company ask named"),
        Frame("하다", "play", "sport", where="outdoor school gym", how="hard together",
              why="bored weather", marks="company named"),
        Frame("치다", "play", "instrument", where="home school", how="well together",
              why="happy bored", marks="company ask named"),
        Frame("켜다", "play", "bowed", where="home school", how="well together", why="sad",
              marks="ask named"),
        Frame("연습하다", "practice", "instrument sport", where="school home", how="hard together",
              marks="company"),
        Frame("찍다", "take", "photo", where="outdoor sight", how="together",
              marks="company count ask creates named"),
        Frame("춤추다", "dance", where="outdoor home", how="well together alone", why="happy",
              marks="company"),
        Frame("노래하다", "sing", where="outdoor home", how="well loudly together", why="happy",
              marks="company"),
        Frame("수영하다", "swim", where="water", how="well quickly together", why="weather",
              marks="company"),
        Frame("운동하다", "exercise", where="gym outdoor", how="hard together", why="weather",
              marks="company"),
        Frame("산책하다", "take a walk", where="outdoor wildplace", how="alone together",
              why="bored lonely weather", marks="company"),
        Frame("쉬다", "rest", where="home bedroom", how="well alone together", why="tired sick",
              marks="company"),
        Frame("놀다", "play", who="youth", where="outdoor play home", how="together alone",
              marks="company"),
    ),
    "body": (
        Frame("자다", "sleep", who="person baby", where="home bedroom", how="well",
              why="tired sleepy", marks="not-morning"),
        Frame("일어나다", "get up", how="early late", marks="how not-evening not-night not-long"),
        Frame("울다", "cry", who="person baby", where="bedroom school", how="loudly alone",
              why="sad", marks="unwilled not-night not-long"),
        Frame("웃다", "laugh", who="person baby", where="school", how="loudly together",
              why="happy", marks="unwilled not-long"),
        Frame("걷다", "walk", where="outdoor street", how="quickly slowly alone together",
              why="weather", marks="company"),
        Frame("달리다", "run", where="outdoor street", how="quickly together", why="weather",
              marks="company"),
        Frame("넘어지다", "fall down", where="street outdoor", how="again", aspect="accident"),
        Frame("일하다", "work", where="work shop farm", how="hard late together", marks="company"),
    ),
    "home": (
        Frame("하다", "do", "chore", where="home", how="quickly together", marks="company"),
        Frame("청소하다", "clean", "room yard", how="quickly together", marks="company ask"),
        Frame("씻다", "wash", "washable fruit", where="cooking", how="quickly carefully",
              marks="mine count ask definite not-long"),
        Frame("열다", "open", "fixture lidded", how="slowly carefully again", aspect="event",
              marks="mine ask definite not-long"),
        Frame("닫다", "close", "fixture lidded", how="quickly quietly again", aspect="event",
              marks="mine ask definite not-long"),
        Frame("잠그다", "lock", "fixture", how="carefully again", aspect="event",
              marks="ask named not-long"),
        Frame("고치다", "fix", "machine furniture fixture", how="quickly again",
              marks="mine ask definite"),
        Frame("만들다", "make", "built", where="school home", how="together",
              marks="company count ask creates"),
        Frame("칠하다", "paint", "painted fixture furniture", how="carefully again",
              marks="mine ask definite"),
        Frame("버리다", "throw away", "waste footwear toy", aspect="event",
              marks="mine ask definite"),
        Frame("심다", "plant", "plantable", where="yard farm", how="together",
              marks="company count ask creates"),
        Frame("밀다", "push", "fixture furniture", how="slowly again", aspect="event",
              marks="mine definite named not-long"),
        Frame("옮기다", "move", "furniture lidded", how="carefully together",
              marks="company mine ask definite"),
    ),
    "things": (
        Frame("입다", "wear", "worn", marks="priced"),
        Frame("쓰다", "wear", "headwear", marks="priced named"),
        Frame("신다", "wear", "footwear", marks="priced named"),
        Frame("던지다", "throw", "thrown", where="outdoor", how="again", aspect="event",
              marks="definite not-long"),
        Frame("잡다", "catch", "prey thief", where="outdoor water", how="again", aspect="event",
              marks="definite"),
        Frame("잃어버리다", "lose", "portable", where="outdoor station street shop",
              aspect="accident", marks="mine definite priced"),
        Frame("발견하다", "find", "portable", where="outdoor station street room",
              aspect="accident", marks="mine count affirmed"),
        Frame("숨기다", "hide", "portable gift cash", aspect="event", marks="mine definite"),
        Frame("타다", "ride", "rideable", where="outdoor", how="well together",
              marks="company mine"),
        Frame("운전하다", "drive", "driven", how="slowly carefully well"),
    ),
    "motion": (
        Frame("가다", "go", goal="home school errand station sight city water",
              how="early late together again", why="weather", marks="company transport"),
        Frame("오다", "come", goal="home school errand city", how="early late", why="weather",
              marks="company transport"),
        Frame("걸어가다", "walk", goal="home school errand", how="quickly slowly together",
              why="weather", marks="company named"),
        Frame("달려가다", "run", goal="home school station", how="quickly", marks="named"),
        Frame("돌아가다", "return", goal="home school class work bedroom land city",
              how="early late", aspect="event"),
        Frame("도착하다", "arrive", goal="school errand station city", link="at", how="early late",
              aspect="event", marks="unwilled"),
        Frame("살다", "live", goal="city land abode", link="at", aspect="state"),
        Frame("머무르다", "stay", goal="lodging city abode", link="at", aspect="event",
              marks="company"),
        Frame("앉다", "sit", goal="seat", link="at", how="quietly", aspect="event",
              marks="ask not-long"),
        Frame("방문하다", "visit", "sight city land", how="again together",
              marks="company not-clock"),
        Frame("들어가다", "enter", "room shop dining cinema", particle="에", how="quietly",
              aspect="event"),
        Frame("떠나다", "leave", "room abode city lodging", how="early late", aspect="event"),
        Frame("오르다", "climb", "climbed", particle="에", how="slowly again together",
              why="weather", marks="company"),
        Frame("건너다", "cross", "crossed", how="quickly slowly carefully", why="weather",
              aspect="event"),
    ),
    "animals": (
        Frame("키우다", "raise", "pet farmed", where="home farm", aspect="state", marks="count"),
        Frame("먹이를 주다", "feed", "animal bird", where="farm zoo", particle="에게",
              marks="definite"),
        Frame("쫓다", "chase", "hunted thief", who="hunter", where="outdoor", marks="definite"),
        Frame("건너다", "cross", "crossed", who="animal", how="quickly slowly", aspect="event"),
        Frame("먹다", "eat", "animalfood", who="animal", how="quickly slowly", why="hungry"),
        Frame("마시다", "drink", "animaldrink", who="animal", how="slowly", why="thirsty"),
        Frame("물다", "bite", "role youth", who="biter", aspect="accident"),
        Frame("잡다", "catch", "prey", who="mouser", aspect="event", marks="definite"),
        Frame("자다", "sleep", who="animal", where="outdoor wildplace", how="quietly", why="tired"),
        Frame("달리다", "run", who="animal", where="outdoor wildplace", how="quickly"),
        Frame("쉬다", "rest", who="animal", where="outdoor wildplace", how="quietly", why="tired"),
        Frame("짖다", "bark", who="barker", where="outdoor", how="loudly", why="hungry",
              marks="not-long"),
        Frame("날다", "fly", who="flier", where="outdoor wildplace", how="slowly quickly"),
    ),
}
# fmt: on
