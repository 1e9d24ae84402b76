"""What lesson 13 computes and draws: teacher forcing, targets, the loss in parts, the rate."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch.nn.functional import kl_div

from attendo.decoding.options import DecodingOptions
from attendo.decoding.search import search
from attendo.lessons.blocks import Chart, Frame, LocalizedText, Series, Steps, Table
from attendo.lessons.tiny_model import END, IGNORE_LABEL, START, TARGET_VOCABULARY, train_tiny_model
from attendo.training.losses import label_smoothed_nll
from attendo.training.schedule import noam

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.lessons.blocks import Label
    from attendo.lessons.tiny_model import TinyModel

CAFE = ("어제 카페 갔었어 거기 사람 많더라", "I went to the cafe there were many people there")
CAFE_WORDS = (*dict.fromkeys(CAFE[1].split()), END)
STUDENT = ("je suis étudiant", "i am a student")
EARLY, STEPS = 20, 150
"""Steps after which the first model still errs, and after which the second one has learnt."""
SMOOTHING, D_MODEL, WARMUP = 0.1, 512, 4000


def forcing_frames(*, steps: int = EARLY) -> Steps:
    """Step through the pair: what the decoder reads and says, learning and translating."""
    tiny = train_tiny_model((CAFE,), CAFE_WORDS, steps=steps)
    true = [*CAFE[1].split(), END]
    probabilities = tiny.teacher_force(*CAFE).probabilities  # (T, V)
    own = translate_freely(tiny, limit=len(true))
    frames = []
    for step, word in enumerate(true):
        guess = CAFE_WORDS[int(probabilities[step].argmax())]
        chance = float(probabilities[step, CAFE_WORDS.index(word)])
        is_over = step >= len(own)
        rows: list[list[Label | float | int | None]] = [
            [LocalizedText("learning", "배울 때"), _join(true[:step]), guess, chance],
            [
                LocalizedText("translating", "번역할 때"),
                _join(own[:step]),
                LocalizedText("(ended)", "(끝남)") if is_over else own[step],
                None,
            ],
        ]
        headers: list[Label] = [
            "",
            LocalizedText("the decoder reads", "디코더가 읽는 것"),
            LocalizedText("it says", "말하는 단어"),
            LocalizedText(f"p of “{word}”", f"“{word}”의 확률"),
        ]
        title = LocalizedText(f"the true next word: {word}", f"정답인 다음 단어: {word}")
        frames.append(Frame(title, [Table(headers, rows)]))
    return Steps(LocalizedText("teacher forcing, step by step", "교사 강요, 한 단계씩"), frames)


def _join(words: list[str]) -> str:
    return " ".join([START, *words])


def translate_freely(tiny: TinyModel, *, limit: int) -> list[str]:
    """Give the model's own words, greedily; `<eos>` last where it came."""
    options = DecodingOptions(beam_size=1, max_length=limit)
    (found,) = search(tiny.model, tiny.encode_src(CAFE[0]), tiny.special_ids, options)
    best = found.hypotheses[0]
    return [*(tiny.tgt_words[number] for number in best.ids), *[END] * best.is_finished]


def count_right(steps: int) -> tuple[int, int]:
    """Count the right words at their places: with a teacher, and left alone."""
    true = [*CAFE[1].split(), END]
    tiny = train_tiny_model((CAFE,), CAFE_WORDS, steps=steps)
    forced = [
        tiny.tgt_words[number] for number in tiny.teacher_force(*CAFE).logits.argmax(-1).tolist()
    ]
    free = translate_freely(tiny, limit=len(true))
    counts = (
        sum(one == other for one, other in zip(said, true, strict=False)) for said in (forced, free)
    )
    return next(counts), next(counts)


def smoothed_targets(word: str, *, smoothing: float = SMOOTHING) -> Chart:
    """Draw what the model shall answer where one word is right, with smoothing and without."""
    label = torch.tensor([TARGET_VOCABULARY.index(word)])
    return Chart(
        "bars",
        LocalizedText(f"targets where “{word}” is right", f"정답이 “{word}”일 때의 목표"),
        list(TARGET_VOCABULARY),
        [
            Series(
                LocalizedText("without smoothing", "스무딩 없음"),
                read_targets(label, 0.0)[0].tolist(),
            ),
            Series(f"ε = {smoothing:g}", read_targets(label, smoothing)[0].tolist()),
        ],
        y_label=LocalizedText("probability", "확률"),
    )


def read_targets(labels: Tensor, smoothing: float) -> Tensor:
    """Read the targets (T, V) of labels (T,) off the loss: its gradient is softmax(z) − p."""
    logits = torch.zeros(
        1, len(labels), len(TARGET_VOCABULARY), dtype=torch.float64, requires_grad=True
    )
    loss = label_smoothed_nll(logits, labels[None], smoothing=smoothing, pad_id=IGNORE_LABEL)
    (gradient,) = torch.autograd.grad(loss, logits)
    return (logits.detach().softmax(-1) - gradient)[0].round(decimals=12) + 0.0  # no -0


class LossParts(NamedTuple):
    """What a loss is made of, a mean over the words of the sentence."""

    entropy: float
    divergence: float
    cross_entropy: float


def split_loss(steps: int, smoothing: float) -> LossParts:
    """Take the loss of the sentence apart: what no model can remove, and the distance to it."""
    tiny = train_tiny_model((STUDENT,), steps=steps, smoothing=smoothing)
    logits = tiny.teacher_force(*STUDENT).logits.double()
    labels = make_labels()
    whole = label_smoothed_nll(logits[None], labels[None], smoothing=smoothing, pad_id=IGNORE_LABEL)
    targets = read_targets(labels, smoothing)
    entropy = torch.special.entr(targets).sum()
    divergence = kl_div(logits.log_softmax(-1), targets, reduction="sum")
    return LossParts(*(float(part) / len(labels) for part in (entropy, divergence, whole)))


def make_labels() -> Tensor:
    """Give the ids (T,) that the decoder shall say, `<eos>` last."""
    return torch.tensor([TARGET_VOCABULARY.index(word) for word in (*STUDENT[1].split(), END)])


def target_distributions(smoothing: float) -> Tensor:
    """Give what the model shall answer (T, V) at each word of the sentence."""
    return read_targets(make_labels(), smoothing)


def learnt_distributions(smoothing: float, *, steps: int = STEPS) -> Tensor:
    """Give what a tiny model answers (T, V) after so many steps."""
    tiny = train_tiny_model((STUDENT,), steps=steps, smoothing=smoothing)
    return tiny.teacher_force(*STUDENT).probabilities


def learning_rate_curve(*, d_model: int = D_MODEL, warmup_steps: int = WARMUP) -> Chart:
    """Draw the learning rate over the steps, beside that of the paper's base model."""
    settings = dict.fromkeys([(d_model, warmup_steps), (D_MODEL, WARMUP)])
    end = 5 * max(warmup for _, warmup in settings)
    points = sorted({1, *range(end // 100, end + 1, end // 100), *(w for _, w in settings)})
    return Chart(
        "lines",
        LocalizedText("learning rate", "학습률"),
        [float(step) for step in points],
        [
            Series(
                f"d_model {width}, warm-up {warmup:,}",
                [noam(step, d_model=width, warmup_steps=warmup) for step in points],
            )
            for width, warmup in settings
        ],
        x_label=LocalizedText("step", "스텝"),
        y_label=LocalizedText("rate", "학습률"),
    )
