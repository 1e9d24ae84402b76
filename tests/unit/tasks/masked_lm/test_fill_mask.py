"""Gaps in texts: what the model is shown, and which of its pieces fit there."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from attendo.architectures.encoder_only import EncoderOnly
from attendo.bundle import save_bundle
from attendo.core.errors import ConfigError, InputError
from attendo.data.tokenizer_training import train_tokenizer
from attendo.tasks.masked_lm.batching import MASK_ID
from attendo.tasks.masked_lm.fill_mask import MaskFiller
from attendo.text.tokenizer import END_ID, TokenizerConfig

TEXTS = ["나는 학생 이다.", "너는 학생이다.", "우리는 선생님이다.", "나는 사과를 먹는다."] * 30


class Oracle(nn.Module):
    """Finds the pieces of a list likeliest everywhere; remembers what it was shown."""

    def __init__(self, ids: list[int], size: int) -> None:
        super().__init__()
        self.anchor = nn.Parameter(torch.zeros(()))
        logits = torch.zeros(size)
        for rank, number in enumerate(ids):
            logits[number] = 20.0 - rank
        self.logits = logits

    def forward(self, src_ids, tgt_ids):
        self.shown = src_ids[0].tolist()
        return self.logits.expand(1, tgt_ids.size(1), -1)


@pytest.fixture(params=[("bpe", True), ("bpe", False), ("unigram", True)], ids=str)
def tokenizer(request, tmp_path):
    kind, has_bytes = request.param
    return make_tokenizer(tmp_path, kind=kind, byte_fallback=has_bytes)


def make_tokenizer(tmp_path, **settings):
    path = tmp_path / "texts"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return train_tokenizer(path, path, TokenizerConfig(**settings), num_pairs=len(TEXTS), seed=1)


def make_filler(tokenizer, ids=(), about=None) -> MaskFiller:
    return MaskFiller(Oracle(list(ids), tokenizer.src_vocab_size), tokenizer, about=about)


def spell(tokenizer, shown: list[int]) -> str:
    pieces = tokenizer.src_pieces(shown)
    return "".join("#" if n == MASK_ID else piece for n, piece in zip(shown, pieces, strict=True))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("나는 ___ 이다.", "▁나는#▁이다."),
        ("___는 학생이다.", "#는▁학생이다."),
        ("나는 학생___.", "▁나는▁학생#."),
        ("나는 ______ ___", "▁나는##"),
        ("___", "#"),
    ],
)
def test_a_gap_is_one_mask_and_the_rest_as_always(tokenizer, text, expected):
    filler = make_filler(tokenizer)
    filler.fill(text)
    assert filler.model.shown[-1] == END_ID
    assert spell(tokenizer, filler.model.shown[:-1]) == expected


def test_pieces_fit_the_space_before_the_gap(tokenizer):
    pieces = tokenizer.src_pieces(range(tokenizer.src_vocab_size))
    inside = next(n for n, p in enumerate(pieces) if n > 3 and p[0] not in "▁<" and p.isalpha())
    word = next(n for n, p in enumerate(pieces) if p.startswith("▁") and len(p) > 1)
    filler = make_filler(tokenizer, [MASK_ID, END_ID, 0, 1, inside, word])
    (apart,) = filler.fill("나는 ___", top=1).guesses
    (glued,) = filler.fill("나는___", top=1).guesses
    assert apart[0].text == pieces[word].removeprefix("▁")
    assert glued[0].text == pieces[inside]
    assert filler.fill("나는 ___ 이다.", top=1).text == f"나는 {apart[0].text} 이다."


def test_probabilities_are_the_models_own_calibrated(tokenizer):
    pieces = tokenizer.src_pieces(range(tokenizer.src_vocab_size))
    words = [n for n, p in enumerate(pieces) if p.startswith("▁") and len(p) > 1][:3]
    filler = make_filler(tokenizer, words, about={"calibration": {"temperature": 2.0}})
    (guesses,) = filler.fill("___", top=3).guesses
    expected = (filler.model.logits / 2).softmax(-1)[words]
    assert [one.probability for one in guesses] == pytest.approx(expected.tolist())
    assert [f"▁{one.text}" for one in guesses] == [pieces[n] for n in words]


def test_several_gaps_are_filled_in_their_order(tokenizer):
    filler = make_filler(tokenizer)
    filled = filler.fill("___ 학생 ____ 이다.", top=2)
    assert len(filled.guesses) == 2
    assert all(len(gap) == 2 for gap in filled.guesses)
    words = filled.text.split()
    assert (words[0], words[2]) == (filled.guesses[0][0].text, filled.guesses[1][0].text)


@pytest.mark.parametrize("kind", ["word", "char"])
def test_words_and_letters_have_gaps_too(tmp_path, kind):
    tokenizer = make_tokenizer(tmp_path, kind=kind)
    filler = make_filler(tokenizer)
    filler.fill("나는 ___ 먹는다.")
    expected = {"word": "▁나는#▁먹는다.", "char": "▁나는▁#▁먹는다."}
    assert spell(tokenizer, filler.model.shown[:-1]) == expected[kind]
    filler.fill("나는 zz___qq 먹는다.")  # what is unknown next to a gap hides no gap
    assert filler.model.shown.count(MASK_ID) == 1


def test_what_has_no_gap_is_rejected(tokenizer):
    filler = make_filler(tokenizer)
    for text in ("나는 학생이다.", "", "a __ b"):
        with pytest.raises(InputError, match=r"has no gap\n  hint: write ___"):
            filler.fill(text)
    with pytest.raises(ConfigError, match="top = 0"):
        filler.fill("___", top=0)


def test_only_models_of_hidden_words_are_loaded(tokenizer, tmp_path):
    sizes = {"d_model": 16, "d_ff": 16, "num_heads": 2, "num_layers": 1, "reads": "each"}
    model = EncoderOnly(tokenizer.src_vocab_size, **sizes)
    save_bundle(tmp_path / "other", model, tokenizer)
    with pytest.raises(InputError, match="is not a masked language model"):
        MaskFiller.load(tmp_path / "other")
    save_bundle(tmp_path / "masked", model, tokenizer, about={"task": "mask"})
    filled = MaskFiller.load(tmp_path / "masked").fill("나는 ___ 이다.", top=4)
    assert len(filled.guesses[0]) == 4
    assert 0 < sum(guess.probability for guess in filled.guesses[0]) < 1
