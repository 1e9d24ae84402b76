"""Text generation by a model whose every probability is known: it counts its corpus."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import pytest
import torch

from attendo.bundle import build_model, is_language_model, raise_if_language_model, save_bundle
from attendo.core.errors import ConfigError, InputError
from attendo.core.protocols import Memory
from attendo.data.tokenizer_training import train_on_files
from attendo.tasks.language_model.generator import TextGenerator, TextScore
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, TokenizerConfig

TEXTS = {
    "I am a student.": 6,
    "I am a teacher.": 2,
    "I am at home.": 2,
    "You are students.": 3,
    "나는 학생이다.": 4,
    "나는 학교에 간다.": 4,
    "나 혼자 간다.": 4,
}
NEVER = -30.0


class Counted:
    """Keeps the contract: what follows is drawn as often as it followed these very tokens."""

    def __init__(self, tokenizer) -> None:
        self.size = tokenizer.tgt_vocab_size
        self.after: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for text, times in TEXTS.items():
            row = tokenizer.encode_tgt([text])[0]
            for position, number in enumerate(row):
                self.after[tuple(row[:position])][number] += times

    def encode(self, src_ids, *_masks) -> Memory:
        assert src_ids.tolist() == [[END_ID]] * len(src_ids)  # nothing is ever read
        return Memory(src_ids, src_ids.ne(PAD_ID)[:, None])

    def start(self, memory):
        return [()] * len(memory.states)

    def step(self, ids, state):
        printed = [(*row, number) for row, number in zip(state, ids.tolist(), strict=True)]
        return torch.stack([self._logits(row[1:]) for row in printed]), printed

    def reorder(self, state, index):
        return [state[row] for row in index.tolist()]

    def forward(self, _src_ids, tgt_ids, *_masks, **_named):
        rows = [
            torch.stack(
                [self._logits(tuple(row[1 : position + 1])) for position in range(len(row))]
            )
            for row in tgt_ids.tolist()
        ]
        return torch.stack(rows)

    def _logits(self, printed: tuple[int, ...]):
        logits = torch.full((self.size,), NEVER)
        for number, count in self.after.get(printed, {END_ID: 1}).items():
            logits[number] = math.log(count)
        return logits


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("".join(f"{text}\n" * 20 for text in TEXTS), encoding="utf-8")
    config = TokenizerConfig(vocab_size=107, byte_fallback=False)
    return train_on_files([(path, path)], config, num_pairs=20 * len(TEXTS), seed=1)


@pytest.fixture(scope="module")
def writer(tokenizer) -> TextGenerator:
    return TextGenerator(Counted(tokenizer), tokenizer, about={"task": "language"})


def test_texts_come_as_often_as_the_model_thinks(writer):
    printed = Counter(writer.generate(count=210, seed=3))
    total = sum(TEXTS.values())
    assert set(printed) <= set(TEXTS)
    for text, times in TEXTS.items():
        expected = 210 * times / total
        assert abs(printed[text] - expected) < 4 * math.sqrt(expected), text


def test_a_prefix_is_kept_and_continued(writer):
    printed = Counter(writer.generate("I am", count=100))
    assert set(printed) == {"I am a student.", "I am a teacher.", "I am at home."}
    assert 40 <= printed["I am a student."] <= 80  # 60 of 100 by the counts


@pytest.mark.parametrize(
    ("beginning", "expected"),
    [
        ("I am a stud", {"I am a student."}),
        ("나는 학", {"나는 학생이다.", "나는 학교에 간다."}),
        ("I a", {"I am a student.", "I am a teacher.", "I am at home."}),
    ],
)
def test_an_incomplete_word_is_continued(writer, tokenizer, beginning, expected):
    # the pieces of the beginning alone are not those of the text: forced, they would lead nowhere
    ids = tokenizer.encode_tgt([beginning])[0][:-1]
    rows = [tokenizer.encode_tgt([text])[0] for text in expected]
    assert all(row[: len(ids)] != ids for row in rows)
    assert set(writer.generate(beginning, count=40)) == expected


@pytest.mark.parametrize("text", TEXTS)
def test_only_seen_continuations_follow_wherever_a_text_is_cut(writer, text):
    """A piece that is likely by itself leads nowhere here: 나 begins a text, and 나는 another."""
    for cut in range(1, len(text)):
        beginning = text[:cut]
        possible = {other for other in TEXTS if other.startswith(beginning)}
        assert set(writer.generate(beginning, count=12)) <= possible, beginning


def test_behind_a_space_a_new_word_comes(writer):
    assert set(writer.generate("I am a", count=60)) == {
        "I am a student.",
        "I am a teacher.",
        "I am at home.",
    }
    assert set(writer.generate("I am a ", count=60)) == {"I am a student.", "I am a teacher."}


def test_the_same_seed_gives_the_same_texts_and_another_one_others(writer):
    first = writer.generate("I", count=8, seed=5)
    assert first == writer.generate("I", count=8, seed=5)
    assert any(first != writer.generate("I", count=8, seed=seed) for seed in (6, 7))
    assert len(set(first)) > 1


def test_greedy_takes_the_likeliest_and_cold_sampling_nearly_does(writer):
    assert writer.generate(greedy=True) == ["I am a student."]
    assert writer.generate("나는 학", greedy=True, max_tokens=50)[0] in TEXTS
    assert set(writer.generate("I", count=20, temperature=0.05)) == {"I am a student."}
    assert set(writer.generate("I", count=20, top_k=1)) == {"I am a student."}
    assert set(writer.generate("I am", count=30, top_p=0.5)) == {"I am a student."}


def test_max_tokens_cuts_behind_the_prefix(writer, tokenizer):
    (whole,) = writer.generate("I am a teacher", count=1, max_tokens=100)
    (cut,) = writer.generate("I am", count=1, max_tokens=1, top_k=1)
    assert whole == "I am a teacher."
    assert len(tokenizer.encode_tgt([cut])[0]) - 1 == len(tokenizer.encode_tgt(["I am"])[0])


def test_scores_are_those_of_the_counts(writer):
    known, strange = writer.score(["I am a student.", "I am a book."])
    total = sum(TEXTS.values())
    assert known.log_prob == pytest.approx(math.log(TEXTS["I am a student."] / total), abs=1e-4)
    assert known.num_characters == len("I am a student.") + 1
    assert known.bits_per_character == pytest.approx(math.log2(total / 6) / 16, abs=1e-4)
    assert known.perplexity == pytest.approx((total / 6) ** (1 / known.num_tokens), rel=1e-4)
    assert strange.log_prob < -25
    both = TextScore.join([known, strange])
    assert both.log_prob == known.log_prob + strange.log_prob
    assert both.num_characters == 16 + 13


def test_an_empty_prefix_is_none(writer):
    assert writer.generate(" \n", count=5, seed=2) == writer.generate("", count=5, seed=2)


def test_what_cannot_be_written_is_rejected(writer):
    with pytest.raises(InputError, match="its vocabulary lacks 猫"):
        writer.generate("猫")
    with pytest.raises(InputError, match="got list"):
        writer.generate(["I am"])
    with pytest.raises(InputError, match="texts is a str"):
        writer.score("I am")
    with pytest.raises(ConfigError, match="count = 0: 1 to") as caught:
        writer.generate("I", count=0, max_tokens=0)
    assert len(caught.value.reasons) == 2
    with pytest.raises(ConfigError, match="temperature"):
        writer.generate("I", temperature=0.0)
    with pytest.raises(ConfigError, match="top_p"):
        writer.generate("I", top_p=1.5)


@pytest.fixture
def save(tokenizer, tmp_path):
    def save(**options):
        model = build_model(
            "decoder",
            {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1, **options},
            tokenizer,
        )
        save_bundle(tmp_path / "model", model, tokenizer, about={"task": "language"})
        return tmp_path / "model"

    return save


def test_a_folder_of_a_language_model_loads_and_writes(save):
    folder = save()
    writer = TextGenerator.load(folder, device="cpu")
    assert is_language_model(writer.about)
    texts = writer.generate("I am", count=4, max_tokens=12, seed=1)
    assert len(texts) == 4
    assert all(text.startswith("I am") for text in texts)
    again = TextGenerator.load(folder, device="cpu")
    assert again.generate("I am", count=4, max_tokens=12, seed=1) == texts


def test_learned_positions_end_a_text_where_they_end(save):
    writer = TextGenerator.load(save(positions="learned", max_length=12), device="cpu")
    long = writer.generate(count=20, max_tokens=500)
    assert max(len(writer.tokenizer.encode_tgt([text])[0]) for text in long) > 3
    with pytest.raises(InputError, match="can write 11"):
        writer.generate("I am a student. I am a student. I am a teacher. I am", count=1)


def test_a_translator_is_rejected_with_the_command_that_fits(toy, tmp_path):
    tokenizer = toy.prepared.tokenizer
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
    for kind in ("transformer", "decoder"):
        save_bundle(tmp_path / kind, build_model(kind, sizes, tokenizer), tokenizer)
        with pytest.raises(InputError, match="is not a language model") as caught:
            TextGenerator.load(tmp_path / kind)
        assert "attendo translate" in caught.value.hint


def test_a_language_model_is_rejected_where_texts_are_translated():
    raise_if_language_model({"src_lang": "ko"}, "runs/ko-en")
    with pytest.raises(InputError, match="runs/words is a language model") as caught:
        raise_if_language_model({"task": "language"}, "runs/words")
    assert "attendo generate" in caught.value.hint


def test_words_as_pieces_continue_with_whole_words(toy):
    tokenizer = toy.prepared.tokenizer
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
    writer = TextGenerator(build_model("decoder", sizes, tokenizer), tokenizer)
    assert all(
        text.startswith("ka to ") for text in writer.generate("ka to", count=5, max_tokens=3)
    )
    with pytest.raises(InputError, match="its vocabulary lacks k"):
        writer.generate("k")


def test_the_start_symbol_comes_first(writer, monkeypatch):
    seen = []
    step = writer.model.step
    monkeypatch.setattr(
        writer.model, "step", lambda ids, state: (seen.append(ids.tolist()), step(ids, state))[1]
    )
    writer.generate(count=2)
    assert seen[0] == [START_ID, START_ID]
