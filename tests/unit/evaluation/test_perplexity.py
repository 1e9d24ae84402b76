from __future__ import annotations

import math

import pytest
import torch

from attendo.bundle import build_model
from attendo.core.errors import InputError
from attendo.evaluation.perplexity import compute_likelihood
from attendo.model.transformer import Transformer
from attendo.text.tokenizer import END_ID, START_ID

SIZES = {"d_model": 16, "d_ff": 32, "num_heads": 2, "num_layers": 1}
SOURCES = ["ka to mi re so lu", "lu", "mi re", "so so so ka to mi re lu", "to to"]
REFERENCES = ["LU SO RE MI TO KA", "LU", "RE MI KA", "LU", "TO TO TO TO TO TO TO TO TO"]


@pytest.fixture
def tokenizer(toy):
    return toy.prepared.tokenizer


@pytest.fixture
def model(tokenizer):
    return build_model("transformer", {**SIZES, "dropout": 0.5}, tokenizer).double()


def read_alone(model, tokenizer, source: str, reference: str) -> tuple[float, int, int]:
    """Read one pair, unpadded, token by token."""
    src = torch.tensor(tokenizer.encode_src([source]))
    (labels,) = tokenizer.encode_tgt([reference])
    assert labels[-1] == END_ID
    tgt = torch.tensor([[START_ID, *labels[:-1]]])
    with torch.no_grad():
        probabilities = model.eval()(src, tgt)[0].softmax(-1)
    log_prob = sum(math.log(row[label]) for row, label in zip(probabilities, labels, strict=True))
    choices = probabilities.argmax(-1).tolist()
    return log_prob, sum(map(int.__eq__, choices, labels)), len(labels)


@pytest.mark.parametrize("batch_tokens", [1, 12, 4096])
def test_equal_to_a_loop_over_single_pairs(model, tokenizer, batch_tokens):
    found = compute_likelihood(model, tokenizer, SOURCES, REFERENCES, batch_tokens=batch_tokens)
    pairs = zip(SOURCES, REFERENCES, strict=True)
    alone = [read_alone(model, tokenizer, *pair) for pair in pairs]
    assert found.log_probs == pytest.approx([row[0] for row in alone], rel=1e-9)
    assert found.num_correct == [row[1] for row in alone]
    assert found.num_tokens == [row[2] for row in alone] == [7, 2, 4, 2, 10]
    loss = -sum(row[0] for row in alone) / 25
    assert found.loss == pytest.approx(loss)
    assert found.perplexity == pytest.approx(math.exp(loss))
    assert found.accuracy == sum(row[1] for row in alone) / 25
    assert found.mean_log_prob(4) == pytest.approx(alone[4][0] / 10)


def test_a_uniform_model_ranks_all_tokens_equally(tokenizer):
    model = build_model("transformer", SIZES, tokenizer)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    found = compute_likelihood(model, tokenizer, SOURCES, REFERENCES)
    assert found.perplexity == pytest.approx(tokenizer.tgt_vocab_size, rel=1e-5)


def test_a_model_that_knows_all(tokenizer):
    class Oracle(torch.nn.Module):
        """Says the references by heart: the next label, and the end when there is none."""

        def __init__(self) -> None:
            super().__init__()
            self.here = torch.nn.Parameter(torch.zeros(()))

        def forward(self, _src_ids, tgt_ids):
            labels = torch.nn.functional.pad(tgt_ids[:, 1:], (0, 1), value=0)
            labels = labels.masked_fill(labels == 0, END_ID)
            return torch.nn.functional.one_hot(labels, tokenizer.tgt_vocab_size) * 50.0

    found = compute_likelihood(Oracle(), tokenizer, SOURCES, REFERENCES)
    assert found.accuracy == 1.0
    assert found.perplexity == pytest.approx(1.0, abs=1e-9)


def test_pairs_with_an_empty_side_count_nothing(model, tokenizer):
    sources = ["", *SOURCES, "ka", "\u200b"]
    references = ["KA", *REFERENCES, " ", "KA"]
    found = compute_likelihood(model, tokenizer, sources, references)
    expected = compute_likelihood(model, tokenizer, SOURCES, REFERENCES)
    assert (found.loss, found.accuracy) == pytest.approx((expected.loss, expected.accuracy))
    assert found.num_skipped == 3
    assert found.mean_log_prob(0) is found.mean_log_prob(7) is None


def test_nothing_to_read_is_rejected(model, tokenizer):
    for sources, references in (([], []), (["", "ka"], ["KA", ""])):
        with pytest.raises(InputError, match="no pair has text on both sides"):
            compute_likelihood(model, tokenizer, sources, references)


def test_a_pair_that_the_model_cannot_read_is_named_by_its_line(tokenizer):
    options = {**SIZES, "positions": "learned", "max_length": 8}
    model = Transformer(tokenizer.src_vocab_size, **options)
    assert compute_likelihood(model, tokenizer, SOURCES[:3], REFERENCES[:3]).num_skipped == 0
    with pytest.raises(InputError, match="line 5: "):
        compute_likelihood(model, tokenizer, SOURCES, REFERENCES)


@pytest.mark.parametrize("is_training", [True, False])
def test_dropout_is_off_and_the_mode_comes_back(model, tokenizer, is_training):
    model.train(is_training)
    first = compute_likelihood(model, tokenizer, SOURCES, REFERENCES)
    assert first == compute_likelihood(model, tokenizer, SOURCES, REFERENCES)
    assert model.training is is_training


def test_a_hopeless_model_has_a_finite_perplexity(tokenizer):
    class Hopeless(torch.nn.Module):
        """Is sure of the unknown token."""

        def __init__(self) -> None:
            super().__init__()
            self.here = torch.nn.Parameter(torch.zeros(()))

        def forward(self, _src_ids, tgt_ids):
            logits = torch.full((*tgt_ids.shape, tokenizer.tgt_vocab_size), -5000.0)
            logits[..., 1] = 5000.0
            return logits

    assert math.isfinite(compute_likelihood(Hopeless(), tokenizer, SOURCES, REFERENCES).perplexity)


def test_progress_counts_pairs(model, tokenizer):
    reported = []
    compute_likelihood(
        model,
        tokenizer,
        SOURCES,
        REFERENCES,
        batch_tokens=12,
        progress=lambda *numbers: reported.append(numbers),
    )
    assert [total for _, total in reported] == [5] * len(reported)
    assert [done for done, _ in reported] == sorted({done for done, _ in reported})
    assert reported[-1] == (5, 5)
