from __future__ import annotations

import pytest
import torch

from attendo.bundle import build_model
from attendo.core.protocols import Explanation
from attendo.data.tokenizer_training import train_tokenizer
from attendo.inspection.capture import capture
from attendo.inspection.word_alignment import align_words
from attendo.synthetic.everyday import synthesize_pairs
from attendo.text.tokenizer import TokenizerConfig
from attendo.translator import Translator


class Given:
    """Explains everything by weights that were given, (layers, heads, T, S)."""

    def __init__(self, weights: torch.Tensor | None) -> None:
        self.weights = weights

    def explain(self, _src_ids, tgt_ids, *_masks, **_named) -> Explanation:
        logits = torch.zeros(1, tgt_ids.size(1), 9)
        layers = () if self.weights is None else tuple(layer[None] for layer in self.weights)
        return Explanation(logits, (), (), layers)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    paths = [folder / name for name in ("ko", "en")]
    for path in paths:
        lines = [getattr(pair, path.name) for pair in synthesize_pairs(300, seed=1)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = TokenizerConfig(kind="char")
    return train_tokenizer(*paths, config, num_pairs=300, seed=1)


def test_tokens_are_joined_to_words_and_marks_left_out(tokenizer):
    """Letters: source ▁ 나 ▁ 가 다 . END, target ▁ I ▁ g o ."""
    text, ids = "나 가다.", tokenizer.encode_tgt(["I go."])[0][:-1]
    assert tokenizer.src_pieces(tokenizer.encode_src([text])[0]) == [
        "▁", "나", "▁", "가", "다", ".", "</s>"
    ]  # fmt: skip
    assert tokenizer.tgt_pieces(ids) == ["▁", "I", "▁", "g", "o", "."]
    rows = torch.tensor(
        [
            [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.4],  # the space
            [0.0, 0.7, 0.0, 0.1, 0.0, 0.1, 0.1],  # I
            [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.4],
            [0.0, 0.2, 0.0, 0.4, 0.2, 0.0, 0.2],  # g
            [0.0, 0.0, 0.2, 0.2, 0.6, 0.0, 0.0],  # o
            [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0],  # the full stop
        ]
    )
    early = torch.full((2, 6, 7), 1 / 7)
    late = torch.stack([rows, rows])
    translator = Translator(Given(torch.stack([early, late])), tokenizer)
    found = align_words(translator, text, ids)
    assert found is not None
    assert (found.source_words, found.target_words) == (["나", "가다."], ["I", "go."])
    assert found.weights == [
        pytest.approx([0.7, 0.1]),
        pytest.approx([0.1, 0.7]),  # the mean of g and o: 나 0.2 and 0, 가다 0.6 and 0.8
    ]


def test_a_word_of_marks_alone_is_kept(tokenizer):
    ids = tokenizer.encode_tgt(["I ?"])[0][:-1]
    columns = len(tokenizer.encode_src(["나"])[0])
    weights = torch.zeros(1, 1, len(ids), columns)
    weights[..., 1] = 1.0
    found = align_words(Translator(Given(weights), tokenizer), "나", ids)
    assert found.target_words == ["I", "?"]
    assert found.weights == [[1.0], [1.0]]


def test_a_model_without_attention_gives_none_and_an_empty_text_nothing(tokenizer):
    translator = Translator(Given(None), tokenizer)
    assert align_words(translator, "나", [5, 6]) is None
    assert align_words(translator, "  ", [5]) == ([], [], [])
    assert align_words(translator, "나", []) == ([], [], [])


def test_the_weights_are_those_of_the_record(tokenizer):
    """One layer, by the record's own attention, summed and averaged by hand."""
    sizes = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
    translator = Translator(build_model("transformer", sizes, tokenizer), tokenizer)
    record = capture(translator, "소년은 학생이다.", "A boy.", positions=False, neighbors=False)
    ids = [token["id"] for token in record.tgt["tokens"]][:-1]
    found = align_words(translator, "소년은 학생이다.", ids)
    weights = record.attention("cross")[0].mean(0)
    for row, word in enumerate(found.target_words):
        asking = [
            n for n, token in enumerate(record.tgt["tokens"])
            if token["word"] == row and token["text"].isalnum()
        ]  # fmt: skip
        assert asking, word
        for column, _ in enumerate(found.source_words):
            answering = [
                n for n, token in enumerate(record.src["tokens"])
                if token["word"] == column and token["text"].isalnum()
            ]  # fmt: skip
            expected = weights[asking][:, answering].sum(1).mean()
            assert found.weights[row][column] == pytest.approx(float(expected), abs=1e-6)
