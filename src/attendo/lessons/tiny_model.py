"""A Transformer so small that it learns a sentence or two while a lesson is being told.

It is trained by the trainer's own loss, optimiser and schedule. Target words are numbered first,
source words after them; `<eos>` is the last target word, and what the decoder starts from too, so
that the vocabulary holds nothing that is never said.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import torch

from attendo.decoding.options import SpecialIds
from attendo.model.transformer import Transformer
from attendo.training.config import TrainConfig
from attendo.training.losses import label_smoothed_nll
from attendo.training.optimizer import make_optimizer
from attendo.training.schedule import learning_rate

if TYPE_CHECKING:
    from torch import Tensor

    Pairs = tuple[tuple[str, str], ...]
    Vocabulary = tuple[str, ...]

END = "<eos>"
START = "<sos>"
"""How the start is shown; the model reads `<eos>`, the border between two sentences."""
TARGET_VOCABULARY = ("a", "am", "i", "thanks", "student", END)
SEED = 3
WARMUP_STEPS = 60
IGNORE_LABEL = -100
"""The label of padding: every real id is a word."""


class TeacherForcedPass(NamedTuple):
    """What teacher forcing gives for one sentence."""

    states: Tensor  # (T, D), what leaves the decoder
    logits: Tensor  # (T, V)

    @property
    def probabilities(self) -> Tensor:
        """Give the softmax (T, V)."""
        return self.logits.softmax(-1)


class TinyModel(NamedTuple):
    """A model and the words behind its ids."""

    model: Transformer
    tgt_words: tuple[str, ...]
    """The target vocabulary, `<eos>` last."""
    src_words: tuple[str, ...]

    @property
    def special_ids(self) -> SpecialIds:
        """Give the ids that mean no text: here all are `<eos>`."""
        end_id = len(self.tgt_words) - 1
        return SpecialIds(start_id=end_id, end_id=end_id, pad_id=end_id)

    def encode_src(self, text: str) -> Tensor:
        """Give the ids (1, S) of a source sentence."""
        indices = [self.src_words.index(word) for word in text.split()]
        return torch.tensor([[len(self.tgt_words) + index for index in indices]])

    def encode_tgt(self, text: str) -> list[int]:
        """Give the ids of a target sentence, without start and end."""
        return [self.tgt_words.index(word) for word in text.split()]

    @torch.inference_mode()
    def teacher_force(self, src: str, tgt: str) -> TeacherForcedPass:
        """Read the true words; tell every next one, `<eos>` the last."""
        model = self.model
        decoder_ids = torch.tensor([[self.special_ids.start_id, *self.encode_tgt(tgt)]])  # (1, T)
        mask = torch.ones_like(decoder_ids, dtype=torch.bool)[:, None]  # it starts with padding
        x = model.tgt_positions(model.tgt_embedding(decoder_ids))
        states, _, _ = model.decoder(x, model.encode(self.encode_src(src)), mask)
        return TeacherForcedPass(states[0], model.output(states[0]))


@lru_cache(maxsize=64)
def train_tiny_model(
    pairs: Pairs,
    tgt_words: Vocabulary = TARGET_VOCABULARY,
    *,
    steps: int,
    smoothing: float = 0.1,
    d_model: int = 16,
    decay_steps: int = 0,
) -> TinyModel:
    """Train a model of one layer on some pairs; a pair that comes twice counts twice.

    Over the last `cooled` steps the rate sinks to nothing in a line: what is learnt settles, and is
    the same on every machine.
    """
    src_words = tuple(dict.fromkeys(word for src, _ in pairs for word in src.split()))
    with torch.random.fork_rng(devices=[]):  # the caller's own draws stay what they were
        torch.manual_seed(SEED)
        model = Transformer(
            vocab_size=len(tgt_words) + len(src_words),
            tgt_vocab_size=len(tgt_words),
            tie_embeddings="decoder",
            pad_id=len(tgt_words) - 1,
            d_model=d_model,
            d_ff=2 * d_model,
            num_heads=2,
            num_layers=1,
            dropout=0.0,
        )
    tiny = TinyModel(model, tgt_words, src_words)
    _train(tiny, pairs, steps, smoothing, decay_steps)
    model.eval()
    return tiny


def _train(tiny: TinyModel, pairs: Pairs, steps: int, smoothing: float, decay_steps: int) -> None:
    config = TrainConfig(warmup_steps=WARMUP_STEPS, label_smoothing=smoothing)
    optimizer = make_optimizer(tiny.model, config)
    src_ids, decoder_ids, labels = _make_batch(tiny, pairs)
    mask = labels.ne(IGNORE_LABEL)[:, None]  # (B, 1, T)
    for step in range(1, steps + 1):
        logits = tiny.model(src_ids, decoder_ids, tgt_mask=mask)
        loss = (
            label_smoothed_nll(logits, labels, smoothing=smoothing, pad_id=IGNORE_LABEL)
            / mask.sum()
        )
        optimizer.zero_grad()
        loss.backward()
        lr_factor = min(1.0, (steps + 1 - step) / (decay_steps + 1))
        for group in optimizer.param_groups:
            group["lr"] = lr_factor * learning_rate(step, config, d_model=tiny.model.config.d_model)
        optimizer.step()


def _make_batch(tiny: TinyModel, pairs: Pairs) -> tuple[Tensor, Tensor, Tensor]:
    """Give source (B, S), what the decoder reads (B, T), and what it shall say (B, T)."""
    end_id = tiny.special_ids.end_id
    src = [tiny.encode_src(src)[0].tolist() for src, _ in pairs]
    label_ids = [[*tiny.encode_tgt(tgt), end_id] for _, tgt in pairs]
    decoder_ids = [[tiny.special_ids.start_id, *ids[:-1]] for ids in label_ids]
    return _pad(src, end_id), _pad(decoder_ids, end_id), _pad(label_ids, IGNORE_LABEL)


def _pad(rows: list[list[int]], pad_value: int) -> Tensor:
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad_value] * (longest - len(row))] for row in rows])
