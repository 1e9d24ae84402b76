from __future__ import annotations

import io
import random
import re

import pytest
import sentencepiece
from hypothesis import assume, given
from hypothesis import strategies as st

from attendo.core.errors import InputError
from attendo.data.tokenizer_training import train_tokenizer
from attendo.text.normalize import normalize
from attendo.text.phrase_constraints import (
    MAX_CACHED_TEXTS,
    ForbiddenPhrase,
    IncrementalDetokenizer,
    RequiredPhrase,
)
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID, Tokenizer, TokenizerConfig

WORDS = (
    "the cat sat in a catalog of cats; I saw a Cat, said the scat.",
    "die Katze lief über die Straße nach Seoul und New York.",
    "서울에서 만나자 남서울 역 서울은 크다.",
    "costs 3 or 13 — ▁ _ \uf8fe1 <0x41>",
)
KINDS = {
    "bpe": {"vocab_size": 400},
    "unigram": {"kind": "unigram"},
    "no bytes": {"byte_fallback": False},
    "char": {"kind": "char"},
    "word": {"kind": "word"},
}


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    draw = random.Random(5)  # noqa: S311 - text, no secret
    words = " ".join(WORDS).split()
    for name in ("src", "tgt"):
        lines = [" ".join(draw.choices(words, k=draw.randint(2, 8))) for _ in range(300)]
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return {
        name: train_tokenizer(
            folder / "src", folder / "tgt", TokenizerConfig(**settings), num_pairs=300, seed=1
        )
        for name, settings in KINDS.items()
    }


@pytest.fixture(scope="module")
def spaced():
    """Make a tokenizer with SentencePiece's own " ⁇ ", as other toolkits leave it."""
    model = io.BytesIO()
    specials = {"pad_id": PAD_ID, "unk_id": UNK_ID, "bos_id": START_ID, "eos_id": END_ID}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["abc bcd cab abd dog"] * 50),
        model_writer=model,
        model_type="char",
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
        **specials,
    )
    return Tokenizer(model.getvalue(), kind="char")


@pytest.fixture(scope="module")
def views(tokenizers):
    return {name: IncrementalDetokenizer(tokenizer) for name, tokenizer in tokenizers.items()}


@pytest.fixture(scope="module")
def view(views):
    return views["bpe"]


@pytest.fixture(scope="module")
def spell(view):
    """Return the ids of a text letter by letter, in bytes where there is no piece; or of bytes."""
    pieces = view.tokenizer.tgt_pieces(range(view.tokenizer.tgt_vocab_size))
    numbers = {piece: number for number, piece in enumerate(pieces)}

    def ids_of(text):
        if isinstance(text, bytes):
            return [numbers[f"<0x{byte:02X}>"] for byte in text]
        known = [(letter.replace(" ", "▁"), letter.encode()) for letter in text]
        return [
            number
            for piece, raw in known
            for number in ([numbers[piece]] if piece in numbers else ids_of(raw))
        ]

    return ids_of


def ids_of(view, text):
    return view.tokenizer.encode_tgt([text])[0][:-1]


# --- the text of ids


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_view_reads_what_the_tokenizer_decodes(views, kind, data):
    view = views[kind]
    numbers = st.integers(0, view.tokenizer.tgt_vocab_size - 1)
    special = st.sampled_from((PAD_ID, UNK_ID, START_ID, END_ID))
    ids = data.draw(st.lists(numbers | special if data.draw(st.booleans()) else numbers))
    (expected,) = view.tokenizer.decode_tgt([ids])
    assert view.decode(ids) == expected
    for length in range(len(ids) + 1):  # also when the beginning is remembered
        view.decode_partial(tuple(ids[:length]))
    assert view.decode(ids) == expected


@given(st.lists(st.integers(4, 259), max_size=12))
def test_bytes_that_are_not_utf8_are_read_as_the_tokenizer_does(view, ids):
    assert view.tokenizer.tgt_pieces([4, 259]) == ["<0x00>", "<0xFF>"]
    assert view.decode(ids) == view.tokenizer.decode_tgt([ids])[0]


@given(st.text(st.characters() | st.sampled_from("▁\uf8fe01 ⁇\ufffde\u0301\u1112\u1161\u11ab")))
def test_any_text_is_read_back(view, text):
    ids = view.tokenizer.encode_tgt([text])[0]
    assert view.decode(ids) == view.tokenizer.decode_tgt([ids])[0]


def test_a_piece_that_looks_like_a_byte_is_text_without_byte_fallback(views):
    view = views["word"]
    ids = ids_of(view, "<0x41> cat")
    assert UNK_ID not in ids
    assert view.decode(ids) == "<0x41> cat"


@given(ids=st.lists(st.integers(0, 10) | st.just(UNK_ID)))
def test_the_sign_of_the_unknown_may_be_set_off_by_spaces(spaced, ids):
    assert IncrementalDetokenizer(spaced).decode(ids) == spaced.decode_tgt([ids])[0]
    assert IncrementalDetokenizer(spaced).decode([*spaced.encode_tgt(["a漢b"])[0]]) == "a ⁇ b"


def test_an_unfinished_text_leaves_half_a_character_out_and_keeps_the_space(view, spell):
    ids = (*spell(" Cat"), *spell("é".encode()[:1]))
    assert view.decode_partial(ids)[:2] == ("Cat", "cat")
    assert view.decode(ids) == "Cat\ufffd"
    assert view.decode_partial((*ids, *spell("é".encode()[1:]))).text == "Caté"
    assert view.decode_partial((*spell(" Cat"), *spell(" "))).text == "Cat "


def test_a_view_forgets_and_still_reads_right(tokenizers):
    view = IncrementalDetokenizer(tokenizers["bpe"])
    word, dot = ids_of(view, "cat"), ids_of(view, ".")
    phrase = RequiredPhrase(view, "cat")
    for length in range(MAX_CACHED_TEXTS + 10):
        view.decode_partial((PAD_ID,) * length)
    assert phrase.is_satisfied([*word, *dot])
    assert not phrase.is_satisfied(dot)


# --- required phrases


@pytest.mark.parametrize(
    ("phrase", "text", "is_met"),
    [
        ("cat", "the cat sat", True),
        ("cat", "Cat.", True),
        ("cat", "the catalog", False),
        ("cat", "scat", False),
        ("Cat", "the cat", False),
        ("New York", "in New York,", True),
        ("Straße", "über die Straße", True),
        ("Straße", "Hauptstraße", False),
        ("서울", "서울에서 만나자", True),
        ("서울", "남서울", False),
        ("서울", "", False),
        ("3", "13", False),
        ("東京", "在東京的", True),
        ("▁", "a ▁ b", True),
    ],
)
def test_a_required_phrase_is_satisfied_where_it_occurs(view, spell, phrase, text, is_met):
    required = RequiredPhrase(view, phrase)
    assert required.is_satisfied(ids_of(view, text)) is is_met
    assert required.is_satisfied(spell(text.encode())) is is_met  # whatever the pieces
    assert required.is_satisfied((*ids_of(view, text), END_ID)) is is_met


@given(st.sampled_from(" ".join(WORDS).split()) | st.text(min_size=1))
def test_a_phrase_is_met_by_its_own_tokens(view, phrase):
    assume(normalize(phrase))
    required = RequiredPhrase(view, phrase)
    assert required.tokens == tuple(ids_of(view, phrase))
    assert required.is_satisfied(required.tokens)
    assert required.is_satisfied([*ids_of(view, "the"), *required.tokens])


def test_what_comes_later_may_undo_a_phrase(view, spell):
    required = RequiredPhrase(view, "cat")
    ids = ids_of(view, "a cat")
    assert required.is_satisfied(ids)
    assert not required.is_satisfied([*ids, *spell("s")])
    assert required.is_satisfied([*ids, *spell("s a"), *ids_of(view, "cat")])


# --- forbidden phrases


def first_break(phrase, ids):
    """Return the step at which a phrase would break, END included, or None."""
    for step, number in enumerate([*ids, END_ID]):
        if phrase.violates(ids[:step], number):
            return step
    return None


@pytest.mark.parametrize(
    ("phrase", "text", "is_broken"),
    [
        ("cat", "the cat sat", True),
        ("cat", "the cat", True),
        ("cat", "Cat.", True),
        ("cat", "the CAT —", True),
        ("cat", "a catalog of cats", False),
        ("cat", "the scat", False),
        ("Cat", "the cat sat", False),
        ("Cat", "the Cat sat", True),
        ("cat sat", "the cat sat.", True),
        ("Straße", "die Straße", True),
        ("Straße", "die Straßenbahn", False),
        ("서울", "서울은 크다", True),
        ("서울", "남서울은 크다", False),
        ("—", "3 — 13", True),
        ("3", "13", False),
    ],
)
def test_a_forbidden_phrase_breaks_in_any_pieces(view, spell, phrase, text, is_broken):
    forbidden = ForbiddenPhrase(view, phrase)
    for ids in (ids_of(view, text), spell(" " + text), spell(text.encode())):
        assert (first_break(forbidden, ids) is not None) is is_broken


def test_the_break_comes_with_the_id_that_ends_the_word(view, spell):
    forbidden = ForbiddenPhrase(view, "cat")
    cat = spell(" cat")
    assert first_break(forbidden, cat[:-1]) is None
    assert not forbidden.violates(cat[:-1], cat[-1])
    for ending in (END_ID, *spell(" "), *spell(";"), *spell(b"\n"), *ids_of(view, "the")[:1]):
        assert forbidden.violates(cat, ending)
    assert not forbidden.violates(cat, spell("a")[0])
    accent, dash = spell("é".encode()), spell("—".encode())
    assert not forbidden.violates(cat, accent[0])  # nobody knows yet what the byte becomes
    assert not forbidden.violates([*cat, accent[0]], accent[1])
    assert not forbidden.violates([*cat, *dash[:2]], START_ID)
    assert forbidden.violates([*cat, *dash[:2]], dash[2])
    assert forbidden.violates([*cat, accent[0]], END_ID)
    assert forbidden.violates([*cat, accent[0]], spell("a")[0])  # "cat\ufffda"


def test_a_korean_phrase_breaks_with_its_last_syllable(view, spell):
    forbidden = ForbiddenPhrase(view, "서울")
    assert not forbidden.violates(spell(" "), spell("서")[0])
    assert forbidden.violates(spell(" 서"), spell("울")[0])
    raw = spell("울".encode())
    assert not forbidden.violates([*spell(" 서"), *raw[:1]], raw[1])
    assert forbidden.violates([*spell(" 서"), *raw[:2]], raw[2])


def test_a_break_in_the_given_prefix_does_not_forbid_everything(view, spell):
    forbidden = ForbiddenPhrase(view, "cat")
    prefix = ids_of(view, "the cat sat in a")
    assert not forbidden.violates(prefix, spell("s")[0])
    assert not forbidden.violates(prefix, END_ID)
    assert forbidden.violates([*prefix, *spell(" cat")], END_ID)


LETTERS = ["c", "a", "t", " ", "s", ".", b"c", b"\xc3", b"\xa9", b" ", b"\xe2", b"\x80", b"\x94"]


@given(st.lists(st.sampled_from(LETTERS), max_size=14), st.sampled_from(["cat", "a", "at s"]))
def test_a_break_is_for_good_and_none_is_missed(view, spell, letters, text):
    ids = [number for letter in letters for number in spell(letter)]
    step = first_break(ForbiddenPhrase(view, text), ids)
    (written,) = view.tokenizer.decode_tgt([ids])
    assert (step is not None) == bool(re.search(rf"\b{text}\b", written))
    if step is not None and step < len(ids):
        for ending in ([], spell("a"), spell(" "), spell(b"\x80")):
            (ended,) = view.tokenizer.decode_tgt([ids[: step + 1] + ending])
            assert re.search(rf"\b{text}\b", ended)


# --- phrases that cannot be


@pytest.mark.parametrize("kind", [RequiredPhrase, ForbiddenPhrase])
def test_an_empty_phrase_is_rejected(view, kind):
    for phrase in ("", " \n", "\u200b"):
        with pytest.raises(InputError, match="is empty"):
            kind(view, phrase)


@pytest.mark.parametrize("kind", [RequiredPhrase, ForbiddenPhrase])
def test_a_phrase_that_the_vocabulary_cannot_write_is_named(views, kind):
    with pytest.raises(InputError, match=r"cannot write the phrase 'cat 漢字': .* lacks 漢, 字"):
        kind(views["no bytes"], "cat 漢字")
    with pytest.raises(InputError, match=r"cannot write the phrase 'the kitten': .* lacks kitten"):
        kind(views["word"], "the kitten")
    kind(views["bpe"], "cat 漢字")
