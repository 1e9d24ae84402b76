"""Two tiny models of one corpus: a masked language model and a language model, a word per token.

Both have the same blocks and sizes, and are trained with the loss and the optimizer of
the trainer, and the masks of `attendo.tasks.masked_lm`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch

from attendo.architectures.decoder_only import DecoderOnly
from attendo.architectures.encoder_only import EncoderOnly
from attendo.tasks.masked_lm.batching import MASK_ID, mask_tokens
from attendo.tasks.masked_lm.fill_mask import MASK_TEXT
from attendo.text.tokenizer import END_ID, PAD_ID, START_ID, UNK_ID
from attendo.training.config import TrainConfig
from attendo.training.losses import label_smoothed_nll
from attendo.training.optimizer import make_optimizer
from attendo.training.schedule import learning_rate

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    Batch = tuple[Tensor, Tensor, Tensor]
    """Source ids, target ids, labels."""

ModelT = TypeVar("ModelT", EncoderOnly, DecoderOnly)

CORPUS = (
    "the cat drinks milk",
    "the cat chases the mouse",
    "the dog eats meat",
    "the dog eats fish",
    "the dog drinks water",
    "the dog chases the cat",
    "the bird eats seeds",
    "the bird sings a song",
    "the girl sings a song",
    "the girl reads a book",
    "the boy reads a book",
    "the boy drinks water",
)
SPECIAL_WORDS = ("<pad>", "<unk>", "[MASK]", "<eos>")
"""The words of the ids PAD_ID, UNK_ID, START_ID (which is also MASK_ID) and END_ID."""
VOCABULARY = (*SPECIAL_WORDS, *sorted({word for text in CORPUS for word in text.split()}))
STEPS = 200
NUM_COPIES = 4
"""How often a step of the masked language model reads each text, masked differently."""
SIZES: dict[str, Any] = {"d_model": 32, "d_ff": 64, "num_heads": 2, "num_layers": 2, "dropout": 0.0}
SEED = 3


class WordProbability(NamedTuple):
    """A word in a gap, and its probability."""

    word: str
    probability: float


def encode(text: str) -> list[int]:
    """Return the ids of a text, its gaps as the mask symbol."""
    ids = {word: number for number, word in enumerate(VOCABULARY)}
    return [MASK_ID if word == MASK_TEXT else ids.get(word, UNK_ID) for word in text.split()]


def gap_index(text: str) -> int:
    """Return which word of a text is its first gap; a gap is appended to a text without one.

    >>> gap_index("the ___ sings"), gap_index("the cat")
    (1, 2)
    """
    return [*text.split(), MASK_TEXT].index(MASK_TEXT)


@lru_cache(maxsize=16)
def train_encoder(steps: int) -> EncoderOnly:
    """Return an encoder-only model that has learned to predict masked words."""
    model = _make_model(EncoderOnly, reads="each")
    ids = np.tile(_corpus_ids(), (NUM_COPIES, 1))

    def read(step: int) -> Batch:
        samples = np.arange(len(ids)) + step * len(ids)
        masked = mask_tokens(ids, samples, vocab_size=len(VOCABULARY), seed=SEED)
        src_ids = torch.from_numpy(masked.input_ids)
        return src_ids, src_ids, torch.from_numpy(masked.labels)

    return _train(model, read, steps)


@lru_cache(maxsize=16)
def train_decoder(steps: int) -> DecoderOnly:
    """Return a decoder-only model that has learned to predict the next word."""
    model = _make_model(DecoderOnly)
    labels = torch.from_numpy(_corpus_ids())
    tgt_ids = torch.nn.functional.pad(labels[:, :-1], (1, 0), value=START_ID)
    batch = (torch.full((len(labels), 1), END_ID), tgt_ids, labels)
    return _train(model, lambda _: batch, steps)


def _corpus_ids() -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    rows = [[*encode(text), END_ID] for text in CORPUS]
    longest = max(map(len, rows))
    return np.array([[*row, *[PAD_ID] * (longest - len(row))] for row in rows], dtype=np.int64)


def _make_model(model_class: type[ModelT], **options: Any) -> ModelT:
    with torch.random.fork_rng(devices=[]):  # keeps the random state of the caller
        torch.manual_seed(SEED)
        return model_class(len(VOCABULARY), **SIZES, **options)


def _train(model: ModelT, read: Callable[[int], Batch], steps: int) -> ModelT:
    config = TrainConfig(max_steps=max(1, steps), schedule="cosine", peak_lr=5e-3, warmup_steps=30)
    optimizer = make_optimizer(model, config)
    for step in range(1, steps + 1):
        src_ids, tgt_ids, labels = read(step)
        logits = model(src_ids, tgt_ids)
        loss = label_smoothed_nll(logits, labels, smoothing=0.0) / labels.ne(PAD_ID).sum()
        optimizer.zero_grad()
        loss.backward()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, config, d_model=model.config.d_model)
        optimizer.step()
    return model.eval()


def fill_probabilities(text: str, steps: int) -> list[WordProbability]:
    """Return what the encoder predicts for the gap from both sides, the most probable first."""
    index = gap_index(text)
    ids = encode(text)
    src_ids = torch.tensor([[*ids[:index], MASK_ID, *ids[index + 1 :], END_ID]])
    model = train_encoder(steps)
    with torch.inference_mode():
        return _sort_words(model(src_ids, src_ids)[0, index])


def next_probabilities(text: str, steps: int) -> list[WordProbability]:
    """Return what the decoder predicts for the gap from the left, the most probable first."""
    tgt_ids = torch.tensor([[START_ID, *encode(text)[: gap_index(text)]]])
    return _sort_words(_decode(tgt_ids, steps)[-1])


def _decode(tgt_ids: Tensor, steps: int) -> Tensor:
    """Return the decoder's logits (T, V) for one text (1, T)."""
    model = train_decoder(steps)
    with torch.inference_mode():
        logits: Tensor = model(torch.tensor([[END_ID]]), tgt_ids)
    return logits[0]


def _sort_words(logits: Tensor) -> list[WordProbability]:
    probabilities = logits.double().softmax(-1)
    order = probabilities.argsort(descending=True, stable=True).tolist()
    return [WordProbability(VOCABULARY[index], float(probabilities[index])) for index in order]


def count_fills(text: str, *, is_left_only: bool) -> dict[str, float]:
    """Return the shares of the words in the corpus that fit a gap; `<eos>` ends a text.

    >>> count_fills("the ___ drinks milk", is_left_only=False)
    {'cat': 1.0}
    >>> count_fills("the cat ___", is_left_only=True)["chases"]
    0.5
    """
    words, index = text.split(), gap_index(text)
    found: list[str] = []
    for line in CORPUS:
        other = [*line.split(), SPECIAL_WORDS[END_ID]]
        is_equal_left = other[:index] == words[:index] and len(other) > index
        is_equal_right = other[index + 1 : -1] == words[index + 1 :]
        if is_equal_left and (is_left_only or is_equal_right):
            found.append(other[index])
    return {word: found.count(word) / len(found) for word in sorted(set(found))}


def next_word_losses(text: str, steps: int) -> list[WordProbability]:
    """Return the probability of each word of a text given the words before it, `<eos>` last."""
    ids = encode(text)
    tgt_ids = torch.tensor([[START_ID, *ids]])
    probabilities = _decode(tgt_ids, steps).double().softmax(-1)
    words = [*text.split(), SPECIAL_WORDS[END_ID]]
    return [
        WordProbability(word, float(probabilities[row, number]))
        for row, (word, number) in enumerate(zip(words, [*ids, END_ID], strict=True))
    ]
