"""Lesson 9: what the residual path does to gradients. Three units, every gradient by autograd."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from attendo.inspection.capture import capture
from attendo.inspection.gradient_flow import gradient_norms
from attendo.inspection.teacher_forcing import teacher_force
from attendo.lessons.blocks import Block, Formula, LocalizedText, ModelPlot, Note, Paragraph, Table
from attendo.lessons.inputs import Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.residual_pictures import (
    LOCAL,
    SIGNAL,
    SKIP,
    SUBSCRIPTS,
    TARGET,
    WEIGHT,
    Run,
    X,
    carry,
    gradient_by_depth,
    list_paths,
    pass_on,
    path_lengths,
    run,
    unravel,
)
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Rows = list[list[Label | float | int | None]]


def tell(
    x: float,
    w1: float,
    w2: float,
    w3: float,
    skip: float,
    target: float,
    local: float,
    num_blocks: int,
) -> list[Block]:
    """Run without and with a skip, follow a signal down a chain, unravel the paths."""
    plain = run(x, (w1, w2, w3), skip=0.0, target=target)
    skipping = run(x, (w1, w2, w3), skip=skip, target=target)
    return [
        *_tell_plain(plain),
        *_tell_skip(plain, skipping, target),
        *_tell_chain(local, num_blocks),
        *_tell_depth(w1),
        *_tell_paths(local, num_blocks),
    ]


def _tell_plain(plain: Run) -> list[Block]:
    return [
        Paragraph(
            LocalizedText(
                "The smallest deep network: one number goes through three units, each a weight and "
                "a sigmoid. To learn, every weight needs its **gradient**: how the loss changes "
                "when the weight changes. It is found backwards, from the loss to the first "
                "weight, and each unit on the way multiplies it by w · σ′.",
                "가장 작은 깊은 신경망입니다. 숫자 하나가 가중치와 시그모이드로 된 유닛 셋을 지나갑니다. "
                "학습하려면 가중치마다 **기울기(gradient)**, 곧 가중치를 바꿀 때 손실이 얼마나 바뀌는지를 "
                "알아야 합니다. 기울기는 손실에서 첫 가중치까지 거꾸로 구하며, 유닛을 하나 지날 때마다 "
                "w · σ′이 곱해집니다.",
            )
        ),
        Formula("h₁ = σ(w₁ · x)     h₂ = σ(w₂ · h₁)     y = σ(w₃ · h₂)     L = (t − y)²"),
        Table(["h₁", "h₂", "y", "L"], [[plain.h1, plain.h2, plain.y, plain.loss]], digits=5),
        Paragraph(
            LocalizedText(
                f"The last weight hears {plain.w3:.5f}, the middle one {plain.w2:.7f}, the first "
                f"only {plain.w1:.6f}. With σ′ at most 0.25, each unit lets little through.",
                f"마지막 가중치에는 {plain.w3:.5f}, 가운데에는 {plain.w2:.7f}, 첫 가중치에는 겨우 "
                f"{plain.w1:.6f}만 닿습니다. σ′은 커야 0.25라서 유닛마다 조금밖에 지나가지 못합니다.",
            )
        ),
    ]


def _tell_skip(plain: Run, skipping: Run, target: float) -> list[Block]:
    rounded = round(skipping.y, 3)
    blocks: list[Block] = [
        Paragraph(
            LocalizedText(
                "Now a **residual connection**: h₁ also goes straight to the last sum, with a "
                "weight w_r of its own.",
                "이제 **잔차 연결(residual connection)**을 더합니다. h₁이 자기 가중치 w_r을 달고 마지막 "
                "합으로 바로 가기도 합니다.",
            )
        ),
        Formula("y = σ(w₃ · h₂ + w_r · h₁)"),
        Table(
            ["y", "L"],
            [[skipping.y, skipping.loss]],
            digits=5,
            title=LocalizedText("forward", "앞으로"),
        ),
        Table(
            [
                LocalizedText("gradient", "기울기"),
                LocalizedText("without the skip", "잔차 연결 없이"),
                LocalizedText("with it", "잔차 연결로"),
            ],
            [
                ["dL/dw₃", plain.w3, skipping.w3],
                ["dL/dw₂", plain.w2, skipping.w2],
                ["dL/dw₁", plain.w1, skipping.w1],
            ],
            digits=7,
            title=LocalizedText("backward", "거꾸로"),
        ),
    ]
    if plain.w1:
        times = skipping.w1 / plain.w1
        blocks.append(
            Paragraph(
                LocalizedText(
                    f"The last weight hears {skipping.w3:.5f} now, and the first one **{times:.0f} times** "
                    f"as much as before. Its gradient has two parts: "
                    f"{skipping.long_way:.6f} came the long way through the units, "
                    f"{skipping.short_way:.6f} straight over the skip.",
                    f"마지막 가중치의 기울기는 이제 {skipping.w3:.5f}이고, 첫 가중치에는 전의 "
                    f"**{times:.0f}배**가 닿습니다. 그 기울기는 두 부분입니다. 하나({skipping.long_way:.6f})는 "
                    f"유닛을 모두 거치는 먼 길로, 하나({skipping.short_way:.6f})는 잔차 연결로 곧장 왔습니다.",
                )
            )
        )
    blocks.append(
        Note(
            LocalizedText(
                f"By hand, with y rounded to {rounded:.3f}, the loss would be "
                f"{(target - rounded) ** 2:.4f} instead of {skipping.loss:.5f}. Autograd rounds "
                "nothing on the way.",
                f"손으로 계산하면서 반올림한 y({rounded:.3f})를 쓰면 손실은 {(target - rounded) ** 2:.4f}입니다. "
                f"반올림하지 않은 손실은 {skipping.loss:.5f}이고, 자동 미분은 중간에 반올림하지 않습니다.",
            )
        )
    )
    return blocks


def _tell_chain(local: float, num_blocks: int) -> list[Block]:
    told = f"{local:.6f}".rstrip("0").rstrip(".")
    rows: Rows = [[count, *pass_on(count, local=local)] for count in range(1, num_blocks + 1)]
    return [
        Paragraph(
            LocalizedText(
                f"Let a block's own gradient f′ be {told}, and let a signal of {SIGNAL:g} come from "
                "above. A chain multiplies the signal by f′ at every block. Where the block is "
                "x + f(x), its gradient is 1 + f′, and the 1 carries the signal on.",
                f"블록 자신의 기울기 f′이 {told}이고, 위에서 {SIGNAL:g}의 신호가 내려온다고 합시다. 사슬에서는 "
                "블록마다 f′이 곱해집니다. 블록이 x + f(x)라면 기울기는 1 + f′이고, 이 1이 신호를 그대로 실어 "
                "나릅니다.",
            )
        ),
        Table(
            [
                LocalizedText("blocks passed", "지난 블록"),
                LocalizedText("chain: f(x)", "사슬: f(x)"),
                LocalizedText("residual: x + f(x)", "잔차: x + f(x)"),
            ],
            rows,
            digits=5,
            title=LocalizedText(f"What is left of {SIGNAL:g}", f"{SIGNAL:g}에서 남은 것"),
        ),
    ]


def _tell_depth(weight: float) -> list[Block]:
    return [
        Paragraph(
            LocalizedText(
                "The deeper the stack, the wider the gap. Here are the sigmoid units with "
                f"w = {weight:g}, one on the other; mind the scale of powers.",
                f"깊이 쌓을수록 차이는 벌어집니다. w = {weight:g}인 시그모이드 유닛을 쌓아 본 그림입니다. "
                "세로축은 로그 눈금입니다.",
            )
        ),
        gradient_by_depth(weight),
    ]


def _tell_paths(local: float, num_blocks: int) -> list[Block]:
    paths = list_paths(num_blocks)
    total = sum(carry(path, local) for path in paths)
    _, carried = pass_on(num_blocks, local=local, signal=1.0)
    return [
        Paragraph(
            LocalizedText(
                "Multiply (1 + f₁′)(1 + f₂′)… out, and every block gives a choice: through it or "
                f"around it. {num_blocks} blocks unravel into 2^{num_blocks} = {len(paths)} paths. "
                f"What they carry adds up to {total:.6f}; autograd through the whole stack gives "
                f"{carried:.6f}. However small f′ is, the path around everything carries 1.",
                "(1 + f₁′)(1 + f₂′)…를 펼치면 블록마다 지나갈지 돌아갈지를 고르는 셈입니다. 블록 "
                f"{num_blocks}개는 2^{num_blocks} = {len(paths)}개의 길로 풀립니다. 이 길들이 나르는 것을 모두 "
                f"더하면 {total:.6f}이고, 전체를 자동 미분해도 {carried:.6f}입니다. f′이 아무리 작아도 모두 "
                "돌아가는 길은 1을 나릅니다.",
            )
        ),
        unravel(num_blocks, local=local),
        path_lengths(num_blocks),
    ]


def _compare_doubled() -> str:
    times = run(skip=2 * SKIP).w1 / run().w1
    return "double" if times > 1.5 else "half" if times < 0.75 else "same"


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Measure the gradient in every layer of the learner's own model, with residuals and without."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [
            Note(
                LocalizedText(
                    "This model is no Transformer: it has no residual paths of this kind.",
                    "이 모델은 트랜스포머가 아니어서 이런 잔차 연결이 없습니다.",
                )
            )
        ]
    opening = LocalizedText(
        f"The gradient of the loss of “{text}” in your own model, and in the same model with every "
        "residual path cut; the last layer's is 1. Look at the decoder first. In the encoder the "
        "layer norms can make up for a missing path.",
        f"여러분의 모델에서 “{text}”의 손실 기울기가 층마다 얼마나 닿는지, 그리고 잔차 연결을 모두 끊으면 "
        "어떻게 되는지 재었습니다. 마지막 층의 기울기를 1로 놓았습니다. 먼저 디코더를 보세요. 인코더에서는 "
        "끊긴 길을 층 정규화가 메워 주기도 합니다.",
    )
    if not model.config.residual:
        opening = LocalizedText(
            f"Your model was built without residual paths: for “{text}” there are none to cut.",
            f"여러분의 모델은 잔차 연결 없이 만들어졌습니다. “{text}”에서 끊을 것이 없습니다.",
        )
    return [
        Paragraph(opening),
        _list_gradients(translator, model, text),
        ModelPlot("gradients", LocalizedText("gradients by layer", "층마다의 기울기")),
    ]


def _list_gradients(translator: Translator, model: Transformer, text: str) -> Table:
    record = capture(translator, text, beam_size=1, positions=False, neighbors=False)
    forced = teacher_force(translator, record)
    with translator.backend.eval_mode():
        measured = [gradient_norms(model, forced, has_residuals=kept) for kept in (True, False)]
    columns = [
        [size / (stack[-1] or 1.0) for size in stack]
        for stacks in zip(*measured, strict=True)
        for stack in stacks
    ]
    names = [
        LocalizedText("input", "입력"),
        *(LocalizedText(f"layer {n}", f"층 {n}") for n in range(max(map(len, columns)) - 1)),
    ]
    return Table(
        [
            LocalizedText("after …", "지난 곳"),
            LocalizedText("encoder", "인코더"),
            LocalizedText("encoder, paths cut", "인코더, 잔차 끊음"),
            LocalizedText("decoder", "디코더"),
            LocalizedText("decoder, paths cut", "디코더, 잔차 끊음"),
        ],
        [[*row] for row in zip_longest(names, *columns)],
        digits=4,
    )


LESSON = Lesson(
    number=9,
    title=LocalizedText(
        "What the residual path does to gradients", "잔차 연결은 기울기에 무엇을 하나"
    ),
    summary=LocalizedText(
        "Why deep stacks learn: a short way back for the gradient, and 2^n paths instead of one.",
        "깊이 쌓아도 학습되는 까닭, 곧 기울기가 돌아오는 지름길과 2^n개의 길을 봅니다.",
    ),
    paper="3.1",
    code=(
        CodeReference("attendo.model.layers", "AddAndNorm.post"),
        CodeReference("attendo.inspection.gradient_flow", "gradient_norms"),
    ),
    inputs=(
        Number(
            name="x",
            label=LocalizedText("x, the input", "입력 x"),
            default=X,
            low=-5,
            high=5,
            step=0.1,
        ),
        *(
            Number(
                name=f"w{place}",
                label=LocalizedText(
                    f"w{SUBSCRIPTS[place - 1]}, a weight", f"가중치 w{SUBSCRIPTS[place - 1]}"
                ),
                default=WEIGHT,
                low=-5,
                high=5,
                step=0.1,
            )
            for place in (1, 2, 3)
        ),
        Number(
            name="skip",
            label=LocalizedText("w_r, the weight of the skip", "잔차 연결의 가중치 w_r"),
            default=SKIP,
            low=-5,
            high=5,
            step=0.1,
        ),
        Number(
            name="target",
            label=LocalizedText("t, the target", "목표 t"),
            default=TARGET,
            low=0,
            high=1,
            step=0.1,
        ),
        Number(
            name="local",
            label=LocalizedText("gradient of one block alone", "블록 하나만의 기울기"),
            default=LOCAL,
            low=0,
            high=1,
            step=1e-6,
        ),
        Number(
            name="num_blocks",
            label=LocalizedText("residual blocks", "잔차 블록의 수"),
            default=3,
            low=1,
            high=5,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "Into how many paths do four residual blocks unravel?",
                "잔차 블록 네 개는 몇 개의 길로 풀리나요?",
            ),
            lambda: float(len(list_paths(4))),
            LocalizedText(
                "Each block doubles the number: through it, or around it.",
                "블록마다 지나거나 돌아가므로 길의 수가 두 배씩 늘어납니다.",
            ),
        ),
        Question(
            LocalizedText(
                "You double w_r to 0.2. What happens to the gradient of the first weight?",
                "w_r을 두 배인 0.2로 바꾸면 첫 가중치의 기울기는 어떻게 되나요?",
            ),
            _compare_doubled,
            LocalizedText(
                "Nearly all of it comes over the skip, and the skip multiplies it by w_r.",
                "거의 전부가 잔차 연결로 오고, 거기서 w_r이 곱해지기 때문입니다.",
            ),
            choices=(
                ("half", LocalizedText("it nearly halves", "거의 절반이 된다")),
                ("same", LocalizedText("it hardly changes", "거의 그대로다")),
                ("double", LocalizedText("it nearly doubles", "거의 두 배가 된다")),
            ),
        ),
        Question(
            LocalizedText(
                "A signal of −0.125 comes back through three residual blocks, each with a "
                "gradient of 0.1 of its own. What arrives?",
                "−0.125의 신호가 자신의 기울기가 0.1인 잔차 블록 셋을 거꾸로 지나옵니다. 무엇이 도착하나요?",
            ),
            lambda: pass_on(3, local=0.1)[1],
            LocalizedText(
                "Each block multiplies by 1 + 0.1, not by 0.1.",
                "블록마다 0.1이 아니라 1 + 0.1이 곱해집니다.",
            ),
            tolerance=0.001,
        ),
    ),
    own_model_blocks=on_your_model,
)
