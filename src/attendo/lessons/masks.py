"""Lesson 7: masks. What a word must not look at gets a share of exactly nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.lessons.blocks import (
    Block,
    Formula,
    Frame,
    LocalizedText,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Steps,
    Table,
)
from attendo.lessons.inputs import Grid, Switch
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.numbers import format_number
from attendo.model.attention import scaled_dot_product
from attendo.model.masks import causal_mask, padding_mask
from attendo.model.transformer import Transformer
from attendo.text.tokenizer import PAD_ID, START_ID

if TYPE_CHECKING:
    from torch import Tensor

    from attendo.core.protocols import AttentionKind, Explanation
    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Scores = list[list[float]]
    Rows = list[list[Label | float | int | None]]

TOKENS = ["I", "am", "sam", "<pad>"]
IDS = [[5, 6, 7, PAD_ID]]
SAM, PAD = 2, 3
SCORES: Scores = [[2, 1, 0, 3], [1, 2, 1, 2], [0, 1, 2, 2], [1, 1, 1, 1]]
YES, NO = LocalizedText("yes", "예"), LocalizedText("no", "아니요")
KINDS: dict[AttentionKind, tuple[LocalizedText, LocalizedText, LocalizedText]] = {
    "encoder_self": (
        LocalizedText("encoder self", "인코더 셀프"),
        LocalizedText("source", "원문"),
        LocalizedText("source", "원문"),
    ),
    "decoder_self": (
        LocalizedText("decoder self", "디코더 셀프"),
        LocalizedText("target", "번역문"),
        LocalizedText("target", "번역문"),
    ),
    "cross": (
        LocalizedText("encoder-decoder", "인코더-디코더"),
        LocalizedText("target", "번역문"),
        LocalizedText("source", "원문"),
    ),
}
"""Every kind of attention: its name, who asks, who answers."""


def tell(scores: Scores, padding: bool, look_ahead: bool) -> list[Block]:
    """Mask the scores, take the softmax, and see where each mask belongs."""
    mask = make_mask(padding=padding, look_ahead=look_ahead)
    weights = weigh(scores, mask)
    return [
        Paragraph(
            LocalizedText(
                "Sentences of one batch stand in one table, so the short ones are filled up with "
                "`<pad>`. Nobody should look at these places: they are no words. A **mask** says "
                "for each query (row) and each key (column) whether it may look; where it may not, the score "
                "becomes −∞.",
                "한 배치의 문장들은 표 하나에 담기므로, 짧은 문장은 `<pad>`로 채웁니다. 그 자리는 단어가 "
                "아니므로 아무도 보아서는 안 됩니다. **마스크(mask)**는 쿼리(행)마다, 키(열)마다 보아도 "
                "되는지를 정합니다. 보면 안 되는 자리의 점수는 −∞가 됩니다.",
            )
        ),
        Formula("A = softmax(S + M)     Mᵢⱼ = 0, −∞"),
        show_masked(scores, mask),
        Paragraph(
            LocalizedText(
                "The softmax turns −∞ into e^−∞ = 0. What is left of a row is shared out among "
                "the places that may be seen, so every row still adds up to 1.",
                "소프트맥스(softmax)는 −∞를 e^−∞ = 0으로 만듭니다. 나머지는 보아도 되는 자리끼리 "
                "나누므로 행의 합은 그대로 1입니다.",
            )
        ),
        Matrix(
            LocalizedText("shares, and the sum of the row", "비율과 행의 합"),
            [[*row, round(sum(row), 9)] for row in weights.tolist()],  # 1, not 0.9999999999999999
            rows=TOKENS,
            columns=[*TOKENS, "Σ"],
            shade=True,
        ),
        _say_padding(weights),
        *_tell_zero(scores),
        Paragraph(
            LocalizedText(
                "The decoder needs a second mask. It learns to guess the next word, with the whole "
                "translation lying before it; if it could look ahead, it would copy instead of "
                "guessing. The **look-ahead mask** hides j > i: word i sees itself and what came "
                "before. Step through the masks, then switch them on and off.",
                "디코더에는 마스크가 하나 더 필요합니다. 디코더는 번역문 전체를 앞에 두고 다음 단어 맞히기를 "
                "배웁니다. 앞을 내다볼 수 있다면 맞히지 않고 베낄 것입니다. **룩어헤드 마스크(look-ahead "
                "mask)**는 j > i인 자리를 가립니다. i번째 단어는 자신과 그 앞만 봅니다. 마스크를 차례로 "
                "넘겨 보고, 직접 켜고 꺼 보세요.",
            )
        ),
        draw_masks(),
        *_tell_leak(scores),
        Paragraph(
            LocalizedText(
                "A Transformer has three kinds of attention, and not all need both masks. The "
                "table is read off a small model that was given a padded source and a padded "
                "target: “yes” where every weight there is exactly 0.",
                "트랜스포머에는 어텐션(attention)이 세 가지 있고, 모두에 두 마스크가 필요한 것은 아닙니다. "
                "아래 표는 작은 모델에 패딩이 있는 원문과 번역문을 넣어 읽어 낸 것입니다. 그 자리의 가중치가 "
                "모두 정확히 0이면 “예”입니다.",
            )
        ),
        list_places(),
    ]


def make_mask(*, padding: bool, look_ahead: bool) -> Tensor:
    """Join the masks that are on: (4, 4), True = may attend."""
    mask = torch.ones(len(TOKENS), len(TOKENS), dtype=torch.bool)
    if padding:
        mask = mask & padding_mask(torch.tensor(IDS), PAD_ID)[0]
    return mask & causal_mask(len(TOKENS)) if look_ahead else mask


def weigh(scores: Scores, mask: Tensor | None = None) -> Tensor:
    """Give the shares of given scores: keys and values of ones and zeros change nothing."""
    query, key = torch.tensor(scores, dtype=torch.float64), torch.eye(len(TOKENS)).double()
    return scaled_dot_product(query, key, key, mask, need_weights=True, scale=1.0)[1]


def show_masked(scores: Scores, mask: Tensor) -> Table:
    """Write the scores, and where the mask hides one what the softmax gets instead."""
    rows: Rows = [
        [
            token,
            *(
                number if seen else f"{format_number(number, 3)} → −∞"
                for number, seen in zip(row, allowed, strict=True)
            ),
        ]
        for token, row, allowed in zip(TOKENS, scores, mask.tolist(), strict=True)
    ]
    return Table(["", *TOKENS], rows, title=LocalizedText("scores", "점수"))


def draw_masks() -> Steps:
    """Draw no mask, each mask and both."""
    titles = {
        (False, False): LocalizedText("no mask", "마스크 없음"),
        (True, False): LocalizedText("padding", "패딩 마스크"),
        (False, True): LocalizedText("look-ahead", "룩어헤드 마스크"),
        (True, True): LocalizedText("look-ahead and padding", "룩어헤드와 패딩"),
    }
    frames = []
    for (padding, look_ahead), title in titles.items():
        mask = make_mask(padding=padding, look_ahead=look_ahead).tolist()
        rows: Rows = [
            [token, *("○" if seen else "×" for seen in row)]
            for token, row in zip(TOKENS, mask, strict=True)
        ]
        frames.append(Frame(title, [Table(["", *TOKENS], rows)]))
    return Steps(LocalizedText("○ may be seen, × may not", "○ 보아도 됨, × 보면 안 됨"), frames)


def _say_padding(weights: Tensor) -> Paragraph:
    if bool((weights[:, PAD] == 0).all()):
        return Paragraph(
            LocalizedText(
                "The last column is exactly 0, not just small: whatever stands at `<pad>` cannot "
                "reach any word. Its own row is computed all the same, and never read.",
                "마지막 열은 작은 값이 아니라 정확히 0입니다. `<pad>` 자리에 무엇이 있든 어떤 단어에도 "
                "닿지 못합니다. `<pad>` 자신의 행도 계산은 하지만 아무도 읽지 않습니다.",
            )
        )
    most = float(weights[:, PAD].max())
    return Paragraph(
        LocalizedText(
            f"Without the padding mask `<pad>` takes up to {most:.3f} of a row: so much of the "
            "word is filled with nothing.",
            f"패딩 마스크가 없으면 `<pad>`가 한 행에서 많게는 {most:.3f}만큼 가져갑니다. 그만큼 단어가 "
            "빈자리로 채워지는 셈입니다.",
        )
    )


def sum_zeroed(scores: Scores) -> float:
    """Set `<pad>` to zero after the softmax, the wrong way; give what is left of the first row."""
    return float(weigh(scores)[0, :PAD].sum())


def _tell_zero(scores: Scores) -> list[Block]:
    left, score = sum_zeroed(scores), format_number(scores[0][PAD], 3)
    return [
        Note(
            LocalizedText(
                "Why not let the softmax run and set the column to 0 afterwards? With its score of "
                f"{score} the `<pad>` of the first row takes {1 - left:.3f}; set to 0, that would be "
                f"lost, and the row would add up to {left:.3f} instead of 1.",
                "소프트맥스를 먼저 하고 나중에 그 열을 0으로 만들면 어떨까요? 첫 행의 "
                f"`<pad>`(점수 {score})는 {1 - left:.3f}만큼 가져갑니다. 그것을 0으로 만들면 그 몫이 "
                f"사라져서, 첫 행의 합은 1이 아니라 {left:.3f}입니다.",
            )
        )
    ]


def measure_leak(scores: Scores, mask: Tensor | None) -> list[float]:
    """Change “sam” and give how far each word's output moves, the rows of `scores` as words."""
    x = torch.tensor(scores, dtype=torch.float64)
    changed = x.clone()
    changed[SAM] += 1.0
    before, after = (
        scaled_dot_product(own, own, own, mask, need_weights=True)[0] for own in (x, changed)
    )
    moved: list[float] = (after - before).abs().amax(-1).tolist()
    return moved


def _tell_leak(scores: Scores) -> list[Block]:
    free, masked = (measure_leak(scores, mask) for mask in (None, causal_mask(len(TOKENS))))
    rows: Rows = [[*row] for row in zip(TOKENS, free, masked, strict=True)]
    return [
        Paragraph(
            LocalizedText(
                "Does it hold? Take the four rows of numbers as four words, let them look at each "
                "other, and change “sam”. With the look-ahead mask the words before it do not move "
                "at all. This is why a decoder can learn all positions of a sentence at once.",
                "정말 그럴까요? 위의 네 행을 단어 네 개로 삼아 서로 보게 하고 “sam”을 바꿔 봅니다. 룩어헤드 "
                "마스크가 있으면 그 앞의 단어들은 조금도 움직이지 않습니다. 그래서 디코더는 문장의 모든 "
                "자리를 한꺼번에 배울 수 있습니다.",
            )
        ),
        Table(
            [
                LocalizedText("moved by a new “sam”", "“sam”을 바꿀 때의 변화"),
                LocalizedText("no mask", "마스크 없음"),
                LocalizedText("look-ahead", "룩어헤드"),
            ],
            rows,
        ),
    ]


def list_places() -> Table:
    """Say which mask goes where, read off the weights of a small model."""
    explanation = _explain()
    rows: Rows = []
    for kind, (name, asks, answers) in KINDS.items():
        sees_padding, sees_future = find_sight(explanation, kind)
        rows.append([name, asks, answers, NO if sees_padding else YES, NO if sees_future else YES])
    return Table(
        [
            LocalizedText("attention", "어텐션"),
            LocalizedText("rows: who asks", "행: 묻는 쪽"),
            LocalizedText("columns: who answers", "열: 답하는 쪽"),
            LocalizedText("hides <pad> of the columns", "열의 <pad>를 가림"),
            LocalizedText("hides j > i", "j > i를 가림"),
        ],
        rows,
        title=LocalizedText("Which mask goes where", "어느 마스크가 어디에"),
    )


def find_sight(explanation: Explanation, kind: AttentionKind) -> tuple[bool, bool]:
    """Tell whether an attention sees padding, and whether it sees what comes later."""
    weights = torch.cat(explanation[kind])  # (layers, H, T, S)
    later = weights[..., :PAD, :PAD].triu(1)
    return bool((weights[..., PAD] != 0).any()), bool((later != 0).any())


def _explain() -> Explanation:
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = Transformer(9, d_model=8, d_ff=8, num_heads=2, num_layers=1).eval()
        return model.explain(torch.tensor(IDS), torch.tensor([[START_ID, 8, 7, PAD_ID]]))


def _find_far_seer() -> str:
    explanation = _explain()
    (found,) = (
        kind
        for kind, (_, asks, answers) in KINDS.items()
        if asks == answers and find_sight(explanation, kind)[1]
    )
    return found


@torch.inference_mode()
def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Pad the learner's sentence: the model must not notice."""
    engine = translator.backend
    ids = translator.tokenizer.encode_src([text])[0]
    fed = engine.pad([[START_ID]])
    seen = torch.ones_like(fed, dtype=torch.bool)[:, None]  # some models start with padding
    with engine.eval_mode():
        plain, padded = (
            translator.model.explain(engine.pad([[*ids, *extra]]), fed, tgt_mask=seen)
            for extra in ([], [PAD_ID] * 2)
        )
    moved = float((padded.logits - plain.logits).abs().max())
    rows: Rows = [
        [KINDS[kind][0], max(float(own[..., -2:].max()) for own in padded[kind])]
        for kind in ("encoder_self", "cross")
        if padded[kind]
    ]
    blocks: list[Block] = [
        Paragraph(
            LocalizedText(
                f"“{text}” for your own model, once as it is and once with two `<pad>` behind it. "
                f"The scores of the first word change by {moved:.1g} at most: nothing, or nothing but "
                "rounding.",
                f"여러분의 모델에 “{text}”를 한 번은 그대로, 한 번은 뒤에 `<pad>` 두 개를 붙여 넣었습니다. 첫 "
                f"단어의 점수는 많아야 {moved:.1g}만큼 달라집니다. 있더라도 반올림 오차일 뿐입니다.",
            )
        )
    ]
    if rows:
        header = LocalizedText("largest share of a <pad>", "<pad>가 받는 가장 큰 비율")
        blocks.append(Table([LocalizedText("attention", "어텐션"), header], rows))
    else:
        blocks.append(
            Note(
                LocalizedText(
                    "This model has no attention, so there are no shares to hide.",
                    "이 모델에는 어텐션이 없으므로 가릴 비율도 없습니다.",
                )
            )
        )
    return [
        *blocks,
        ModelPlot("masks", LocalizedText("the masks of your sentence", "이 문장의 마스크")),
    ]


LESSON = Lesson(
    number=7,
    title=LocalizedText("Masks", "마스크"),
    summary=LocalizedText(
        "How padding and the future are hidden, and which attention needs which mask.",
        "패딩과 미래를 어떻게 가리는지, 어느 어텐션에 어느 마스크가 필요한지 봅니다.",
    ),
    paper="3.2.3",
    code=(
        CodeReference("attendo.model.masks", "padding_mask"),
        CodeReference("attendo.model.masks", "causal_mask"),
    ),
    inputs=(
        Grid(
            name="scores",
            label=LocalizedText("scores of I, am, sam, <pad>", "I, am, sam, <pad>의 점수"),
            default=SCORES,
        ),
        Switch(name="padding", label=LocalizedText("padding mask", "패딩 마스크"), default=True),
        Switch(
            name="look_ahead",
            label=LocalizedText("look-ahead mask", "룩어헤드 마스크"),
            default=False,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "A target has five words. How many cells of its 5 × 5 table does the look-ahead "
                "mask hide?",
                "번역문이 다섯 단어입니다. 5 × 5 표에서 룩어헤드 마스크가 가리는 칸은 몇 개인가요?",
            ),
            lambda: float((~causal_mask(5)).sum()),
            LocalizedText(
                "The first word does not see four, the second three, and so on.",
                "첫 단어는 네 칸, 둘째는 세 칸, 이런 식으로 보지 못합니다.",
            ),
        ),
        Question(
            LocalizedText(
                "In which self-attention may the first word look at the last one?",
                "첫 단어가 마지막 단어를 볼 수 있는 셀프 어텐션은 어느 것인가요?",
            ),
            _find_far_seer,
            LocalizedText(
                "The source is known as a whole before the first word is said; the target is not.",
                "원문은 첫 단어를 말하기 전에 이미 다 알려져 있지만, 번역문은 그렇지 않습니다.",
            ),
            choices=tuple((kind, KINDS[kind][0]) for kind in ("encoder_self", "decoder_self")),
        ),
        Question(
            LocalizedText(
                "Switch on the look-ahead mask. Which share does “I” give to itself, whatever "
                "its scores are?",
                "룩어헤드 마스크를 켜세요. 점수가 무엇이든 “I”가 자신에게 주는 비율은 얼마인가요?",
            ),
            lambda: float(weigh(SCORES, make_mask(padding=True, look_ahead=True))[0, 0]),
            LocalizedText(
                "It may see nothing but itself, and its row adds up to 1.",
                "자신밖에 볼 수 없고, 행의 합은 1입니다.",
            ),
            tolerance=1e-6,
        ),
    ),
    own_model_blocks=on_your_model,
)
