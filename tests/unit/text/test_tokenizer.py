from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attendo.core.errors import ConfigError, InputError
from attendo.data.tokenizer_training import choose_vocab_size, train_tokenizer
from attendo.text.normalize import normalize
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID, Tokenizer, TokenizerConfig

KOREAN = [
    "나는",
    "너는",
    "학생이다",
    "학교에",
    "간다",
    "왕자는",
    "공주를",
    "구했다",
    "어제",
    "카페",
]
ENGLISH = ["I", "you", "am", "a", "student", "go", "to", "school", "the", "prince", "saved", "it"]
NUM_PAIRS = 400


def write_corpus(folder, num_pairs=NUM_PAIRS):
    rng = random.Random(3)  # noqa: S311 - text, no secret
    for name, words in (("src", KOREAN), ("tgt", ENGLISH)):
        lines = (" ".join(rng.choices(words, k=rng.randint(2, 8))) for _ in range(num_pairs))
        (folder / name).write_text("".join(f"{line}.\n" for line in lines), encoding="utf-8")
    return folder / "src", folder / "tgt"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("corpus"))


def train(files, seed=1, **settings):
    return train_tokenizer(*files, TokenizerConfig(**settings), num_pairs=NUM_PAIRS, seed=seed)


@pytest.fixture(scope="module")
def tokenizer(files):
    return train(files, vocab_size=320)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("kind", ["bpe", "unigram", "char", "word"])
def test_every_kind_brings_known_text_back(files, kind, shared):
    tokenizer = train(files, kind=kind, shared=shared)
    assert tokenizer.kind == kind
    assert tokenizer.is_shared is shared
    assert (tokenizer.src_vocab_size == tokenizer.tgt_vocab_size) is shared
    texts = ["I go to school.", "the prince saved it."]
    encoded = tokenizer.encode_tgt(texts)
    assert all(ids[-1] == END_ID and UNK_ID not in ids and START_ID not in ids for ids in encoded)
    assert tokenizer.decode_tgt(encoded) == texts
    pieces = tokenizer.src_pieces(tokenizer.encode_src(["왕자는 간다."])[0])
    assert pieces[-1] == "</s>"
    assert "".join(pieces[:-1]) == "▁왕자는▁간다."


def test_a_source_vocabulary_does_not_know_the_target(files):
    tokenizer = train(files, kind="char", shared=False)
    assert UNK_ID in tokenizer.encode_src(["you"])[0]
    assert UNK_ID not in tokenizer.encode_tgt(["you"])[0]


@given(st.text(st.characters() | st.sampled_from("▁\uf8fe01 ⁇\ufffd\u2585\u200d\u3164e\u0301")))
def test_byte_fallback_brings_any_text_back(tokenizer, text):
    assert tokenizer.decode_tgt(tokenizer.encode_tgt([text])) == [normalize(text)]


@pytest.mark.parametrize(
    "text",
    ["👩‍🔬 😀", "값싼 뷁", "大韓民國 漢字", "▁ ▁▁a", "\uf8fe1 ▁", "<s> </s> <unk> <0x41> <pad>"],
)
@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_unseen_scripts_and_signs_come_back(files, kind, text):
    tokenizer = train(files, kind=kind)
    ids = tokenizer.encode_tgt([text])[0]
    assert not {PAD_ID, UNK_ID, START_ID} & set(ids)
    assert tokenizer.decode_tgt([ids]) == [text]


def test_without_byte_fallback_the_unknown_is_marked(files):
    tokenizer = train(files, byte_fallback=False)
    ids = tokenizer.encode_tgt(["go 漢 to"])[0]
    assert UNK_ID in ids
    assert tokenizer.decode_tgt([ids]) == ["go ⁇ to"]
    words = train(files, kind="word")
    assert words.decode_tgt(words.encode_tgt(["I jumped to"])) == ["I ⁇ to"]


def test_decoding_stops_at_the_end_and_leaves_specials_out(tokenizer):
    ids = tokenizer.encode_tgt(["I go"])[0][:-1]
    noisy = [START_ID, *ids, PAD_ID, END_ID, *ids]
    assert tokenizer.decode_tgt([noisy, [END_ID], [], [PAD_ID]]) == ["I go", "", "", ""]


def test_text_is_normalized_and_many_texts_keep_their_order(tokenizer):
    assert tokenizer.encode_src([" I\u00a0 go\u200b"]) == tokenizer.encode_src(["I go"])
    texts = [f"go to {number}" for number in range(300)]
    assert tokenizer.encode_src(texts) == [tokenizer.encode_src([text])[0] for text in texts]
    assert tokenizer.encode_src([]) == []
    assert tokenizer.encode_src([""]) == [[END_ID]]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_training_twice_gives_the_same_model(files, kind):
    first, second = (train(files, kind=kind, max_sentences=300) for _ in range(2))
    assert first.fingerprint == second.fingerprint


def test_the_seed_chooses_the_sample(files):
    fingerprints = {train(files, seed=seed, max_sentences=100).fingerprint for seed in (1, 2)}
    assert len(fingerprints) == 2


def test_the_sample_takes_about_max_sentences(tmp_path, files, monkeypatch):
    from attendo.data import tokenizer_training as module

    taken = []

    def count(sentences, *_):
        taken.append(sum(1 for _ in sentences))
        raise RuntimeError("enough")

    monkeypatch.setattr(module, "_run_trainer", count)
    for shared in (True, False):
        with pytest.raises(InputError, match="enough"):
            train(files, max_sentences=200, shared=shared)
    assert 140 < taken[0] < 260
    assert taken[1] * 2 == taken[0]


def test_the_size_follows_the_corpus():
    assert choose_vocab_size(29_000) == 8000
    assert choose_vocab_size(290_000) == 8000 * 1.88
    assert choose_vocab_size(1) == 1000
    assert choose_vocab_size(10**9) == 37_000
    assert all(choose_vocab_size(3**power) % 8 == 0 for power in range(20))


def test_an_automatic_size_yields_to_a_small_corpus(tmp_path):
    tokenizer = train_tokenizer(*write_corpus(tmp_path, 3), TokenizerConfig(), num_pairs=3, seed=1)
    assert 256 < tokenizer.src_vocab_size < 400


@pytest.mark.parametrize(("size", "kind"), [(30_000, "bpe"), (30_000, "unigram"), (100, "bpe")])
def test_a_size_that_does_not_fit_names_one_that_does(files, size, kind):
    with pytest.raises(InputError, match=rf"vocab_size {size} does not fit") as caught:
        train(files, vocab_size=size, kind=kind)
    possible = int(caught.value.hint.split("vocab_size = ")[1].split(",")[0])
    assert train(files, vocab_size=possible, kind=kind).src_vocab_size == possible


def test_an_automatic_size_makes_space_for_many_characters(tmp_path):
    signs = [chr(0x4E00 + number) for number in range(2000)]
    (tmp_path / "src").write_text("\n".join(signs * 2), encoding="utf-8")
    (tmp_path / "tgt").write_text("\n".join(signs * 2), encoding="utf-8")
    config = TokenizerConfig(character_coverage=1.0)
    tokenizer = train_tokenizer(tmp_path / "src", tmp_path / "tgt", config, num_pairs=4, seed=1)
    assert tokenizer.src_vocab_size > 2000


def test_training_prints_nothing(files, capfd):
    train(files, vocab_size=320)
    train(files)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shared", [True, False])
def test_save_and_load(files, tmp_path, shared):
    tokenizer = train(files, shared=shared)
    tokenizer.save(tmp_path / "model")
    names = {path.name for path in (tmp_path / "model").iterdir()}
    models = {"tokenizer.model"} if shared else {"tokenizer.src.model", "tokenizer.tgt.model"}
    assert names == {"tokenizer.json", *models}
    again = Tokenizer.load(tmp_path / "model")
    assert (again.fingerprint, again.kind, again.is_shared) == (
        tokenizer.fingerprint,
        "bpe",
        shared,
    )
    assert again.encode_src(["나는 간다."]) == tokenizer.encode_src(["나는 간다."])


def test_a_missing_or_broken_file_is_reported(tokenizer, tmp_path, capfd):
    with pytest.raises(InputError, match=r"tokenizer\.json is missing"):
        Tokenizer.load(tmp_path)
    tokenizer.save(tmp_path)
    model, info = tmp_path / "tokenizer.model", tmp_path / "tokenizer.json"
    whole = model.read_bytes()
    model.write_bytes(whole[:-10])
    with pytest.raises(InputError, match="the models do not match"):
        Tokenizer.load(tmp_path)
    model.unlink()
    with pytest.raises(InputError, match=r"tokenizer\.model is missing"):
        Tokenizer.load(tmp_path)
    for text in ("{", "[]", json.dumps({"kind": "bpe"})):
        info.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match=r"tokenizer\.json is broken"):
            Tokenizer.load(tmp_path)
    with pytest.raises(InputError, match="not a SentencePiece model"):
        Tokenizer(b"nonsense", kind="bpe")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "settings", [{"kind": "bytes"}, {"vocab_size": 3}, {"character_coverage": 1.5}, {"size": 8}]
)
def test_wrong_settings_are_rejected(settings):
    with pytest.raises(ConfigError):
        TokenizerConfig(**settings)


@pytest.mark.parametrize("is_split", [False, True])
def test_digits_stay_single_where_asked(tmp_path, is_split):
    for name in ("src", "tgt"):
        (tmp_path / name).write_text("in 1993 and 1994, 50 of 50\n" * 200, encoding="utf-8")
    config = TokenizerConfig(vocab_size=285, split_digits=is_split)
    paths = tmp_path / "src", tmp_path / "tgt"
    tokenizer = train_tokenizer(*paths, config, num_pairs=200, seed=1)
    pieces = tokenizer.src_pieces(tokenizer.encode_src(["1993 of 50"])[0])
    longest = max(sum(sign.isdigit() for sign in piece) for piece in pieces)
    assert (longest == 1) == is_split
