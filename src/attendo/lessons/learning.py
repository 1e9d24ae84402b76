"""Lesson 13: learning. Teacher forcing, the loss, smoothed targets, the warm-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.inspection import capture
from attendo.lessons.blocks import (
    Block,
    Formula,
    LocalizedText,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Table,
)
from attendo.lessons.inputs import Number
from attendo.lessons.learning_pictures import (
    CAFE,
    D_MODEL,
    EARLY,
    SMOOTHING,
    STEPS,
    STUDENT,
    WARMUP,
    count_right,
    forcing_frames,
    learning_rate_curve,
    learnt_distributions,
    smoothed_targets,
    split_loss,
    target_distributions,
)
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.tiny_model import END, TARGET_VOCABULARY
from attendo.training.schedule import noam

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.translator import Translator


def tell(steps: int, smoothing: float, d_model: int, warmup: int) -> list[Block]:
    """Force, measure, smooth, warm up."""
    return [
        *_tell_forcing(steps),
        *_tell_smoothing(smoothing),
        *_tell_loss(smoothing),
        *_tell_learnt(smoothing),
        *_tell_warmup(d_model, warmup),
    ]


def _tell_forcing(steps: int) -> list[Block]:
    num_src, num_tgt = (len(side.split()) for side in CAFE)
    forced, free = count_right(steps)
    return [
        Paragraph(
            LocalizedText(
                "A pair to learn from: “{src}” ({num_src} tokens), “{tgt}” ({num_tgt} tokens). At "
                "each step the decoder shall say the next word. While it learns it reads the "
                "**true** words before, whatever it said itself: **teacher forcing**. When it "
                "translates there is no teacher, and it reads its own words.",
                "배울 문장 쌍은 “{src}”(토큰 {num_src}개)와 “{tgt}”(토큰 {num_tgt}개)입니다. 디코더는 단계마다 "
                "다음 단어를 맞혀야 합니다. 배우는 동안에는 자기가 무엇을 말했든 앞 단어로 **정답**을 받습니다. "
                "이것이 **교사 강요(teacher forcing)**입니다. 번역할 때는 정답이 없으므로 자기가 말한 단어를 "
                "읽습니다.",
            ).format(src=CAFE[0], tgt=CAFE[1], num_src=num_src, num_tgt=num_tgt)
        ),
        Paragraph(
            LocalizedText(
                "The model below has trained for {steps} steps, `<eos>` being the last word to "
                "say. Learning it gets {forced} of {n} words right, translating {free} of {n}: "
                "after one wrong word the teacher helps it back, but nobody helps a translator. "
                "Try 10, 20 and 40 steps.",
                "아래 모델은 {steps}스텝 학습했고, 마지막에 말할 단어는 `<eos>`입니다. 배울 때는 {n}개 가운데 "
                "{forced}개를, 번역할 때는 {free}개를 맞힙니다. 한 번 틀려도 배울 때는 교사가 제자리로 돌려놓지만, "
                "번역할 때는 도와줄 사람이 없습니다. 10, 20, 40스텝으로 바꿔 보세요.",
            ).format(steps=steps, forced=forced, free=free, n=num_tgt + 1)
        ),
        forcing_frames(steps=steps),
        Note(
            LocalizedText(
                "Since all true words are known beforehand, learning needs no steps at all: the "
                "look-ahead mask lets one pass give all {n} answers at once. Translating takes one "
                "pass for each word.",
                "배울 때는 정답을 처음부터 다 알고 있으므로 한 단계씩 갈 필요가 없습니다. 미래를 가리는 마스크 "
                "덕분에 한 번의 계산으로 답 {n}개가 한꺼번에 나옵니다. 번역할 때는 단어마다 한 번씩 계산합니다.",
            ).format(n=num_tgt + 1)
        ),
    ]


def _tell_smoothing(smoothing: float) -> list[Block]:
    shown = target_distributions(smoothing)[0]
    right = TARGET_VOCABULARY.index("i")
    return [
        Paragraph(
            LocalizedText(
                "What is a right answer? First, all probability on the true word. The paper aims a "
                "little lower: **label smoothing** takes ε of it and spreads that over the whole "
                "vocabulary. With ε = {e:g} and six words the true word keeps {p:.4f} and every "
                "other gets {q:.4f}. The model learns to be less sure: its perplexity suffers, its "
                "translations gain.",
                "무엇이 정답일까요? 먼저 떠오르는 것은 정답 단어에 확률을 모두 주는 것입니다. 논문은 조금 "
                "낮게 잡습니다. **레이블 스무딩(label smoothing)**은 그중 ε만큼을 떼어 어휘 전체에 고루 "
                "나눕니다. ε = {e:g}이고 단어가 여섯이면 정답 단어의 몫은 {p:.4f}, 나머지는 저마다 "
                "{q:.4f}입니다. 모델은 덜 단정하도록 배웁니다. 퍼플렉시티는 나빠지지만 번역은 좋아집니다.",
            ).format(e=smoothing, p=float(shown[right]), q=float(shown[0]))
        ),
        Formula("p = (1 − ε) · one-hot + ε / V"),
        smoothed_targets("i", smoothing=smoothing),
    ]


def _tell_loss(smoothing: float) -> list[Block]:
    return [
        Paragraph(
            LocalizedText(
                "How far an answer q is from the target p is measured by the **cross-entropy**. It "
                "is the target's own entropy H(p), which nobody can remove, and the "
                "**Kullback-Leibler divergence**, which is 0 only where q = p. Without smoothing "
                "H(p) = 0, and −log q of the true word is all that is left.",
                "답 q가 목표 p에서 얼마나 먼지는 **교차 엔트로피(cross-entropy)**로 잽니다. 이것은 목표 자체의 "
                "엔트로피 H(p)와 **쿨백-라이블러 발산(KL divergence)**의 합입니다. 앞의 것은 아무도 없앨 수 "
                "없고, 뒤의 것은 q = p일 때만 0입니다. 스무딩이 없으면 H(p) = 0이고, 정답 단어의 −log q만 "
                "남습니다.",
            )
        ),
        Formula("−∑ pᵢ log qᵢ = H(p) + KL(p ‖ q)"),
        Table(
            [
                LocalizedText(
                    "“i am a student <eos>”, mean of 5", "“i am a student <eos>”, 5개의 평균"
                ),
                "H(p)",
                "KL(p ‖ q)",
                LocalizedText("cross-entropy", "교차 엔트로피"),
            ],
            [
                [LocalizedText("untrained", "학습 전"), *split_loss(0, smoothing)],
                [
                    LocalizedText(f"after {STEPS} steps", f"{STEPS}스텝 학습 후"),
                    *split_loss(STEPS, smoothing),
                ],
            ],
            digits=4,
        ),
    ]


def _tell_learnt(smoothing: float) -> list[Block]:
    targets, learnt = target_distributions(smoothing), learnt_distributions(smoothing)
    farthest = float((targets - learnt).abs().max())
    return [
        Paragraph(
            LocalizedText(
                "“{src}” → “{tgt} <eos>”: above what the model shall answer, below what it answers "
                "after {steps} steps. No number is farther off than {off:.4f}.",
                "“{src}” → “{tgt} <eos>”입니다. 위는 모델이 해야 할 답, 아래는 {steps}스텝 학습한 뒤의 답입니다. "
                "가장 많이 어긋난 숫자도 차이가 {off:.4f}입니다.",
            ).format(src=STUDENT[0], tgt=STUDENT[1], steps=STEPS, off=farthest)
        ),
        *(
            Matrix(
                title,
                values.tolist(),
                rows=[*STUDENT[1].split(), END],
                columns=list(TARGET_VOCABULARY),
                digits=4,
                shade=True,
            )
            for title, values in (
                (LocalizedText("targets", "목표"), targets),
                (LocalizedText("learnt", "배운 것"), learnt),
            )
        ),
    ]


def _tell_warmup(d_model: int, warmup: int) -> list[Block]:
    peak = noam(warmup, d_model=d_model, warmup_steps=warmup)
    later = noam(4 * warmup, d_model=d_model, warmup_steps=warmup)
    return [
        Paragraph(
            LocalizedText(
                "How big a step the weights take is the learning rate. It rises in a line for "
                "{w:,} **warm-up** steps, while the gradients of a fresh model are still wild, and "
                "then falls with the root of the step. A wider model takes smaller steps.",
                "가중치를 한 번에 얼마나 움직일지는 학습률(learning rate)이 정합니다. 갓 만든 모델은 "
                "기울기(gradient)가 거칠기 때문에 처음 {w:,}스텝 동안은 **웜업(warm-up)**으로 곧게 올리고, 그 뒤로는 "
                "스텝 수의 제곱근에 반비례해 줄입니다. 모델이 넓을수록 조금씩 움직입니다.",
            ).format(w=warmup)
        ),
        Formula("rate = d_model^(−0.5) · min(step^(−0.5), step · warmup^(−1.5))"),
        learning_rate_curve(d_model=d_model, warmup_steps=warmup),
        Paragraph(
            LocalizedText(
                "With d_model = {d} the peak is {peak:.2e} at step {w:,}; at step {late:,}, four "
                "times as far, {later:.2e} is left.",
                "d_model = {d}이면 {w:,}번째 스텝에서 {peak:.2e}로 가장 높고, 네 배를 간 {late:,}번째 스텝에는 "
                "{later:.2e}입니다.",
            ).format(d=d_model, w=warmup, peak=peak, late=4 * warmup, later=later)
        ),
    ]


def _target_of_the_true_word() -> float:
    return float(target_distributions(SMOOTHING).max())


def _read_after_an_error() -> str:
    """Find the first wrong word of the early model; give what it reads next while it learns."""
    shown = [frame.blocks[0] for frame in forcing_frames(steps=EARLY).frames]
    learning = [block.rows[0] for block in shown if isinstance(block, Table)]
    true = [*CAFE[1].split(), END]
    wrong = next(step for step, row in enumerate(learning) if row[2] != true[step])
    read = str(learning[wrong + 1][1]).split()[-1]
    return "said" if read == learning[wrong][2] else "true"


def _fall_of_the_rate() -> float:
    at, later = (noam(step, d_model=D_MODEL, warmup_steps=WARMUP) for step in (WARMUP, 4 * WARMUP))
    return at / later


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Show what the learner's model answers under teacher forcing, beside its targets."""
    record = capture(translator, text, top=1, positions=False, neighbors=False)
    pieces = [token["piece"] for token in record.tgt["tokens"]]
    size = translator.tokenizer.tgt_vocab_size
    target = 1 - SMOOTHING + SMOOTHING / size
    losses = [-step["log_prob"] for step in record.steps]
    rows: list[list[Label | float | int | None]] = [
        [piece, target, step["probability"], loss]
        for piece, step, loss in zip(pieces, record.steps, losses, strict=True)
    ]
    mean = sum(losses) / len(losses)
    return [
        Paragraph(
            LocalizedText(
                f"Your model's own translation of “{text}” is fed back as if it were the true one. "
                f"With ε = {SMOOTHING:g} training aims at {target:.4f} for every right piece; the "
                f"mean of −log q is {mean:.3f}.",
                f"여러분의 모델이 내놓은 “{text}”의 번역문을 정답인 것처럼 다시 넣었습니다. ε = {SMOOTHING:g}이면 "
                f"맞는 조각마다 학습의 목표는 {target:.4f}입니다. −log q의 평균은 {mean:.3f}입니다.",
            )
        ),
        Table(
            [
                LocalizedText("piece", "조각"),
                LocalizedText("target p", "목표 p"),
                LocalizedText("answer q", "답 q"),
                "−log q",
            ],
            rows,
            digits=4,
        ),
        ModelPlot("decoder_steps", LocalizedText("the decoder's steps", "디코더의 단계")),
    ]


LESSON = Lesson(
    number=13,
    title=LocalizedText("Learning", "학습"),
    summary=LocalizedText(
        "How the machine learns: the teacher's words, the loss, softened targets, a rate that "
        "warms up.",
        "모델이 어떻게 배우는지, 교사 강요와 손실, 부드럽게 만든 목표, 웜업하는 학습률을 봅니다.",
    ),
    paper="5.3, 5.4",
    code=(
        CodeReference("attendo.training.losses", "smoothed_loss"),
        CodeReference("attendo.training.schedule", "noam"),
        CodeReference("attendo.lessons.tiny_model", "train_tiny"),
    ),
    inputs=(
        Number(
            name="steps",
            label=LocalizedText("steps of training (café)", "학습 스텝(step) 수 (카페 문장)"),
            default=EARLY,
            low=0,
            high=100,
        ),
        Number(
            name="smoothing",
            label=LocalizedText("label smoothing ε", "레이블 스무딩 ε"),
            default=SMOOTHING,
            low=0.0,
            high=0.5,
            step=0.05,
        ),
        Number(
            name="d_model",
            label=LocalizedText("d_model of the schedule", "학습률 식의 d_model"),
            default=D_MODEL,
            low=64,
            high=4096,
        ),
        Number(
            name="warmup",
            label=LocalizedText("warm-up steps", "웜업 스텝 수"),
            default=WARMUP,
            low=100,
            high=20_000,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "Six words, ε = 0.1: which probability does the target give to the true word?",
                "단어가 여섯이고 ε = 0.1이면 목표는 정답 단어에 확률을 얼마나 주나요?",
            ),
            _target_of_the_true_word,
            LocalizedText(
                "It keeps 1 − ε and has its part of what is spread: 0.9 + 0.1 / 6.",
                "1 − ε이 남고, 나누어 준 것 가운데 제 몫도 받습니다. 0.9 + 0.1 / 6입니다.",
            ),
            tolerance=0.001,
        ),
        Question(
            LocalizedText(
                "While learning, the decoder has just said a wrong word. Which word does it read "
                "at the next step?",
                "배우는 중에 디코더가 방금 틀린 단어를 말했습니다. 다음 단계에서 어떤 단어를 읽나요?",
            ),
            _read_after_an_error,
            LocalizedText(
                "Teacher forcing: the true prefix, whatever was said. Only translating reads its "
                "own words.",
                "교사 강요에서는 무엇을 말했든 정답을 읽습니다. 자기 단어를 읽는 것은 번역할 때뿐입니다.",
            ),
            choices=(
                ("said", LocalizedText("the wrong one", "틀린 단어")),
                ("true", LocalizedText("the true one", "정답 단어")),
                ("none", LocalizedText("none: it stops", "읽지 않고 멈춘다")),
            ),
        ),
        Question(
            LocalizedText(
                "After the warm-up the rate falls. By which factor from step 4,000 to step 16,000 "
                "(d_model 512, warm-up 4,000)?",
                "웜업이 끝나면 학습률은 떨어집니다. 4,000스텝에서 16,000스텝까지 몇 분의 1이 되나요? (d_model "
                "512, 웜업 4,000. 분모를 답하세요.)",
            ),
            _fall_of_the_rate,
            LocalizedText(
                "It falls with the root of the step: √(16,000 / 4,000).",
                "스텝 수의 제곱근에 반비례하므로 √(16,000 / 4,000)입니다.",
            ),
            tolerance=0.01,
        ),
    ),
    own_model_blocks=on_your_model,
)
