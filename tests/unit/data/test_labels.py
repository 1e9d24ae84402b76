"""Sources of training pairs are labeled by the register of their Korean targets."""

from __future__ import annotations

import pytest

from attendo.core.errors import ConfigError
from attendo.data.config import DataConfig
from attendo.data.corpus_config import Pair
from attendo.data.labels import label_pairs
from attendo.data.pipeline import prepare_data
from attendo.text.labels import korean_register, label_source
from attendo.text.tokenizer import UNK_ID

SENTENCES = {
    "polite": [
        "저는 학생입니다.",
        "어디 가세요?",
        "여기예요!",
        "앉으십시오",
        "그렇죠?",
        "먹었어요.",
    ],
    "plain": ["나는 학생이다.", "어디 가?", "빨리 와!", "그는 갔다", "그랬어.", "먹자."],
    None: ["서비스 개요", "언어", "설치 방법", "Python", "필요", ""],
}


@pytest.mark.parametrize(
    ("text", "register"),
    [(text, register) for register, texts in SENTENCES.items() for text in texts],
)
def test_the_register_is_that_of_the_ending(text, register):
    assert korean_register(text) == register


def test_half_of_the_pairs_are_labeled_and_the_same_ones_by_seed():
    pairs = [Pair("I am a student.", "저는 학생입니다."), Pair("Overview", "개요")] * 500
    labeled = list(label_pairs(pairs, "ko-register", seed=1))
    assert labeled == list(label_pairs(pairs, "ko-register", seed=1))
    assert labeled != list(label_pairs(pairs, "ko-register", seed=2))
    assert [pair.tgt for pair in labeled] == [pair.tgt for pair in pairs]
    sources = [pair.src for pair in labeled]
    assert 200 < sources.count("<polite> I am a student.") < 300
    assert sources.count("Overview") == 500


@pytest.fixture
def corpus(tmp_path) -> dict:
    korean = [text for texts in SENTENCES.values() for text in texts if text] * 20
    src, tgt = tmp_path / "a.en", tmp_path / "a.ko"
    src.write_text("".join(f"sentence {n} of the corpus\n" for n in range(len(korean))))
    tgt.write_text("".join(f"{n} {text}\n" for n, text in enumerate(korean)), encoding="utf-8")
    return {"src": src, "tgt": tgt}


@pytest.mark.parametrize("shared", [True, False])
def test_a_label_is_one_piece_of_the_prepared_data(corpus, tmp_path, shared):
    def prepare(**settings):
        config = DataConfig(corpora=(corpus,), tokenizer={"shared": shared}, **settings)
        return prepare_data(config, cache_dir=tmp_path / "cache", seed=3)

    plain, labeled = prepare(), prepare(label_rule="ko-register")
    tokenizer = labeled.tokenizer
    ids = tokenizer.encode_src([label_source("sentence 1", "polite"), "sentence 1"])
    assert ids[0][1:] == ids[1]
    assert tokenizer.src_pieces(ids[0])[0] == "▁<polite>"
    assert len(plain.tokenizer.encode_src(["<polite> sentence 1"])[0]) > len(ids[0])
    ((train, _),) = labeled.train
    labels = {tokenizer.encode_src([f"<{name}> a"])[0][0] for name in ("polite", "plain")}
    assert UNK_ID not in labels
    counts = train.count_src_ids(tokenizer.src_vocab_size)
    assert all(counts[one] for one in labels)
    assert 0.25 < sum(int(counts[one]) for one in labels) / len(train) < 0.6


@pytest.mark.parametrize("name", ["Formal", "a b", "", "<x>"])
def test_names_of_labels(corpus, name):
    with pytest.raises(ConfigError):
        DataConfig(corpora=(corpus,), labels=(name,))
    assert DataConfig(corpora=(corpus,), labels=("formal",)).all_labels == ("formal",)
