"""The tiny model of the drawing, and what it does while it translates a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from attendo.decoding.options import DecodingOptions
from attendo.decoding.search import search
from attendo.inspection.teacher_forcing import TeacherForcedPass
from attendo.lessons.tiny_model import END, START, train_tiny_model

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.tiny_model import TinyModel

PAIRS = (("je suis étudiant", "i am a student"), ("merci", "thanks"))
TRAINING_STEPS, DECAY_STEPS = 150, 75
MAX_LENGTH = 12


class TinyTranslation(NamedTuple):
    """A translation: the words read and written at each step, and how often the stacks ran."""

    tiny: TinyModel
    src: list[str]
    tgt: list[str]
    """The end symbol last."""
    probabilities: Tensor  # (T, V)
    num_encoder_runs: int
    num_decoder_runs: int

    @property
    def decoder_input(self) -> list[str]:
        """The words that the decoder has read before each step, the start symbol first."""
        return [START, *self.tgt[:-1]]

    @property
    def forced_pass(self) -> TeacherForcedPass:
        """The sentence as tensors."""
        import torch

        tgt_ids = [self.tiny.tgt_words.index(word) for word in self.tgt]
        start_id = self.tiny.special_ids.start_id
        return TeacherForcedPass(
            self.tiny.encode_src(" ".join(self.src)),
            torch.tensor([[start_id, *tgt_ids[:-1]]]),
            torch.tensor(tgt_ids),
        )


def translate(src: str) -> TinyTranslation:
    """Translate one of the two sentences greedily, and count the runs of both stacks."""
    tiny = train_tiny_model(PAIRS, steps=TRAINING_STEPS, decay_steps=DECAY_STEPS)
    runs = {"encoder": 0, "decoder": 0}

    def count(name: str) -> None:
        runs[name] += 1

    encoder, decoder = tiny.model.encoder, tiny.model.decoder.layers[0].feed_forward
    handles = [
        encoder.register_forward_hook(lambda *_: count("encoder")),
        decoder.register_forward_hook(lambda *_: count("decoder")),
    ]
    try:
        options = DecodingOptions(beam_size=1, max_length=MAX_LENGTH)
        (result,) = search(tiny.model, tiny.encode_src(src), tiny.special_ids, options, trace=True)
    finally:
        for handle in handles:
            handle.remove()
    best = result.hypotheses[0]
    words = [tiny.tgt_words[one] for one in best.ids]
    forced = tiny.teacher_force(src, " ".join(words))
    return TinyTranslation(
        tiny, src.split(), [*words, END], forced.probabilities, runs["encoder"], runs["decoder"]
    )
