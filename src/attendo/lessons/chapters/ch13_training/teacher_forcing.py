"""Teacher forcing, targets, the parts of the loss, and the learning rate of lesson 13."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn.functional import kl_div

from attendo.decoding.options import DecodingOptions
from attendo.decoding.search import search
from attendo.lessons.blocks import Chart, Frame, Series, Steps, Table
from attendo.lessons.prose import Prose
from attendo.lessons.tiny_model import END, IGNORE_LABEL, START, TARGET_VOCABULARY, train_tiny_model
from attendo.training.losses import label_smoothed_nll
from attendo.training.schedule import noam

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.blocks import Label
    from attendo.lessons.tiny_model import TinyModel

prose = Prose("attendo.lessons.chapters.ch13_training")

CAFE = ("어제 카페 갔었어 거기 사람 많더라", "I went to the cafe there were many people there")
CAFE_WORDS = (*dict.fromkeys(CAFE[1].split()), END)
STUDENT = ("je suis étudiant", "i am a student")
EARLY_STEPS, STEPS = 20, 150
"""Steps after which the first model still makes mistakes, and the second one has converged."""
SMOOTHING, D_MODEL, WARMUP = 0.1, 512, 4000


def forcing_steps(*, steps: int = EARLY_STEPS) -> Steps:
    """Return decoder input and output of every step, in training and in translation."""
    tiny = train_tiny_model((CAFE,), CAFE_WORDS, steps=steps)
    true_words = [*CAFE[1].split(), END]
    probabilities = tiny.teacher_force(*CAFE).probabilities  # (T, V)
    own = translate_greedily(tiny, limit=len(true_words))
    frames = []
    for step, word in enumerate(true_words):
        guess = CAFE_WORDS[int(probabilities[step].argmax())]
        probability = float(probabilities[step, CAFE_WORDS.index(word)])
        is_over = step >= len(own)
        rows: list[list[Label | float | int | None]] = [
            [prose("while-training"), _join(true_words[:step]), guess, probability],
            [
                prose("while-translating"),
                _join(own[:step]),
                prose("ended") if is_over else own[step],
                None,
            ],
        ]
        headers: list[Label] = [
            "",
            prose("decoder-input"),
            prose("output-word"),
            prose("p-of", word=word),
        ]
        title = prose("true-word", word=word)
        frames.append(Frame(title, [Table(headers, rows)]))
    return Steps(prose("forcing-steps"), frames)


def _join(words: list[str]) -> str:
    return " ".join([START, *words])


def translate_greedily(tiny: TinyModel, *, limit: int) -> list[str]:
    """Return the greedy translation; `<eos>` is its last word if the model output it."""
    options = DecodingOptions(beam_size=1, max_length=limit)
    (result,) = search(tiny.model, tiny.encode_src(CAFE[0]), tiny.special_ids, options)
    best = result.hypotheses[0]
    return [*(tiny.tgt_words[number] for number in best.ids), *[END] * best.is_finished]


def count_correct(steps: int) -> tuple[int, int]:
    """Return the number of correct words with teacher forcing and in free translation."""
    true_words = [*CAFE[1].split(), END]
    tiny = train_tiny_model((CAFE,), CAFE_WORDS, steps=steps)
    forced = [
        tiny.tgt_words[number] for number in tiny.teacher_force(*CAFE).logits.argmax(-1).tolist()
    ]
    free = translate_greedily(tiny, limit=len(true_words))
    counts = (
        sum(word == true for word, true in zip(output, true_words, strict=False))
        for output in (forced, free)
    )
    return next(counts), next(counts)


def first_probabilities(steps: int) -> list[float]:
    """Return the probabilities of all words as the first word, the correct one first."""
    probabilities = train_tiny_model((CAFE,), CAFE_WORDS, steps=steps).teacher_force(*CAFE)
    numbers: list[float] = probabilities.probabilities[0].tolist()
    correct = CAFE_WORDS.index(CAFE[1].split()[0])
    return [numbers.pop(correct), *numbers]


def smoothed_target_chart(word: str, *, smoothing: float = SMOOTHING) -> Chart:
    """Plot the targets where one word is right, with and without smoothing."""
    label = torch.tensor([TARGET_VOCABULARY.index(word)])
    return Chart(
        "bars",
        prose("smoothed-targets", word=word),
        list(TARGET_VOCABULARY),
        [
            Series(prose("without-smoothing"), targets_from_loss(label, 0.0)[0].tolist()),
            Series(f"ε = {smoothing:g}", targets_from_loss(label, smoothing)[0].tolist()),
        ],
        y_label=prose("probability"),
    )


def targets_from_loss(labels: Tensor, smoothing: float) -> Tensor:
    """Return the targets (T, V) of labels (T,), from the gradient of the loss: softmax(z) − p."""
    logits = torch.zeros(
        1, len(labels), len(TARGET_VOCABULARY), dtype=torch.float64, requires_grad=True
    )
    loss = label_smoothed_nll(logits, labels[None], smoothing=smoothing, pad_id=IGNORE_LABEL)
    (gradient,) = torch.autograd.grad(loss, logits)
    return (logits.detach().softmax(-1) - gradient)[0].round(decimals=12) + 0.0  # no -0


class LossParts(NamedTuple):
    """The parts of a loss, averaged over the words of the sentence."""

    entropy: float
    divergence: float
    cross_entropy: float


def loss_parts(steps: int, smoothing: float) -> LossParts:
    """Return the parts of the loss: entropy of the targets, KL divergence and their sum."""
    tiny = train_tiny_model((STUDENT,), steps=steps, smoothing=smoothing)
    logits = tiny.teacher_force(*STUDENT).logits.double()
    labels = target_labels()
    total = label_smoothed_nll(logits[None], labels[None], smoothing=smoothing, pad_id=IGNORE_LABEL)
    targets = targets_from_loss(labels, smoothing)
    entropy = torch.special.entr(targets).sum()
    divergence = kl_div(logits.log_softmax(-1), targets, reduction="sum")
    return LossParts(*(float(part) / len(labels) for part in (entropy, divergence, total)))


def target_labels() -> Tensor:
    """Return the labels (T,) of the sentence, `<eos>` last."""
    return torch.tensor([TARGET_VOCABULARY.index(word) for word in (*STUDENT[1].split(), END)])


def target_distributions(smoothing: float) -> Tensor:
    """Return the targets (T, V) at each word of the sentence."""
    return targets_from_loss(target_labels(), smoothing)


def learned_distributions(smoothing: float, *, steps: int = STEPS) -> Tensor:
    """Return the predictions (T, V) of a tiny model after `steps` steps."""
    tiny = train_tiny_model((STUDENT,), steps=steps, smoothing=smoothing)
    return tiny.teacher_force(*STUDENT).probabilities


def learning_rate_chart(*, d_model: int = D_MODEL, warmup_steps: int = WARMUP) -> Chart:
    """Plot the learning rate over the steps, with that of the paper's base model."""
    settings = dict.fromkeys([(d_model, warmup_steps), (D_MODEL, WARMUP)])
    end = 5 * max(warmup for _, warmup in settings)
    points = sorted({1, *range(end // 100, end + 1, end // 100), *(w for _, w in settings)})
    return Chart(
        "lines",
        prose("learning-rate"),
        [float(step) for step in points],
        [
            Series(
                f"d_model {width}, warm-up {warmup:,}",
                [noam(step, d_model=width, warmup_steps=warmup) for step in points],
            )
            for width, warmup in settings
        ],
        x_label=prose("step"),
        y_label=prose("learning-rate-axis"),
    )
