"""Lesson 7: masks; a masked position gets an attention weight of exactly 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from attendo.lessons.blocks import (
    Block,
    Formula,
    Frame,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Steps,
    Table,
)
from attendo.lessons.inputs import Grid, Switch
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.lessons.render.number_format import format_number
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

prose = Prose("attendo.lessons.chapters.ch07_masks")

TOKENS = ["I", "am", "sam", "<pad>"]
IDS = [[5, 6, 7, PAD_ID]]
SAM, PAD = 2, 3
SCORES: Scores = [[2, 1, 0, 3], [1, 2, 1, 2], [0, 1, 2, 2], [1, 1, 1, 1]]
YES, NO = prose("yes"), prose("no")
KINDS: dict[AttentionKind, tuple[Label, Label, Label]] = {
    "encoder_self": (prose("encoder-self"), prose("source"), prose("source")),
    "decoder_self": (prose("decoder-self"), prose("target"), prose("target")),
    "cross": (prose("cross"), prose("target"), prose("source")),
}
"""Every kind of attention: its name, the side of its queries, the side of its keys."""


def build_blocks(scores: Scores, padding: bool, look_ahead: bool) -> list[Block]:
    """Return the masked scores and weights, the look-ahead mask, and where each mask is used."""
    mask = make_mask(padding=padding, look_ahead=look_ahead)
    weights = attention_weights(scores, mask)
    return [
        Paragraph(prose("padding-mask")),
        Formula("A = softmax(S + M)     Mᵢⱼ = 0, −∞"),
        masked_score_table(scores, mask),
        Paragraph(prose("softmax")),
        Matrix(
            prose("weights-and-sum"),
            [[*row, round(sum(row), 9)] for row in weights.tolist()],  # 1, not 0.9999999999999999
            rows=TOKENS,
            columns=[*TOKENS, "Σ"],
            shade=True,
        ),
        _padding_paragraph(weights),
        *_zero_section(scores),
        Paragraph(prose("look-ahead-mask")),
        mask_steps(),
        *_leak_section(scores),
        Paragraph(prose("three-kinds")),
        mask_table(),
    ]


def make_mask(*, padding: bool, look_ahead: bool) -> Tensor:
    """Return the combination of the chosen masks (4, 4), True = may attend."""
    mask = torch.ones(len(TOKENS), len(TOKENS), dtype=torch.bool)
    if padding:
        mask = mask & padding_mask(torch.tensor(IDS), PAD_ID)[0]
    return mask & causal_mask(len(TOKENS)) if look_ahead else mask


def attention_weights(scores: Scores, mask: Tensor | None = None) -> Tensor:
    """Return the attention weights of given scores; identity keys leave the scores unchanged."""
    query, key = torch.tensor(scores, dtype=torch.float64), torch.eye(len(TOKENS)).double()
    return scaled_dot_product(query, key, key, mask, need_weights=True, scale=1.0)[1]


def masked_score_table(scores: Scores, mask: Tensor) -> Table:
    """Return the scores, with −∞ where the mask hides one."""
    rows: Rows = [
        [
            token,
            *(
                number if is_visible else f"{format_number(number, 3)} → −∞"
                for number, is_visible in zip(row, visible, strict=True)
            ),
        ]
        for token, row, visible in zip(TOKENS, scores, mask.tolist(), strict=True)
    ]
    return Table(["", *TOKENS], rows, title=prose("scores"))


def mask_steps() -> Steps:
    """Return no mask, each mask and both as steps."""
    titles = {
        (False, False): prose("no-mask"),
        (True, False): prose("padding"),
        (False, True): prose("look-ahead"),
        (True, True): prose("look-ahead-and-padding"),
    }
    frames = []
    for (padding, look_ahead), title in titles.items():
        mask = make_mask(padding=padding, look_ahead=look_ahead).tolist()
        rows: Rows = [
            [token, *("○" if is_visible else "×" for is_visible in row)]
            for token, row in zip(TOKENS, mask, strict=True)
        ]
        frames.append(Frame(title, [Table(["", *TOKENS], rows)]))
    return Steps(prose("mask-legend"), frames)


def _padding_paragraph(weights: Tensor) -> Paragraph:
    if bool((weights[:, PAD] == 0).all()):
        return Paragraph(prose("exactly-zero"))
    largest = float(weights[:, PAD].max())
    return Paragraph(prose("padding-visible", largest=largest))


def sum_after_zeroing(scores: Scores) -> float:
    """Return the sum of the first row if `<pad>` is set to 0 after the softmax."""
    return float(attention_weights(scores)[0, :PAD].sum())


def _zero_section(scores: Scores) -> list[Block]:
    remaining, score = sum_after_zeroing(scores), format_number(scores[0][PAD], 3)
    return [
        Note(prose("zero-afterwards", score=score, taken=1 - remaining, remaining=remaining)),
        Paragraph(prose("finite", power=float(torch.tensor(-1e9).exp()))),
    ]


def output_changes(scores: Scores, mask: Tensor | None) -> list[float]:
    """Return how far each output moves when “sam” changes, the rows of `scores` as words."""
    x = torch.tensor(scores, dtype=torch.float64)
    changed = x.clone()
    changed[SAM] += 1.0
    before, after = (
        scaled_dot_product(words, words, words, mask, need_weights=True)[0]
        for words in (x, changed)
    )
    changes: list[float] = (after - before).abs().amax(-1).tolist()
    return changes


def _leak_section(scores: Scores) -> list[Block]:
    unmasked, masked = (output_changes(scores, mask) for mask in (None, causal_mask(len(TOKENS))))
    rows: Rows = [[*row] for row in zip(TOKENS, unmasked, masked, strict=True)]
    return [
        Paragraph(prose("no-leak")),
        Table([prose("change-of-sam"), prose("no-mask"), prose("look-ahead-column")], rows),
    ]


def mask_table() -> Table:
    """Return which attention uses which mask, read off the weights of a small model."""
    explanation = _explain()
    rows: Rows = []
    for kind, (name, queries, keys) in KINDS.items():
        sees_padding, sees_future = find_visible(explanation, kind)
        rows.append([name, queries, keys, NO if sees_padding else YES, NO if sees_future else YES])
    return Table(
        [
            prose("attention"),
            prose("query-rows"),
            prose("key-columns"),
            prose("masks-padding"),
            prose("masks-future"),
        ],
        rows,
        title=prose("masks-by-attention"),
    )


def find_visible(explanation: Explanation, kind: AttentionKind) -> tuple[bool, bool]:
    """Return whether an attention sees padding, and whether it sees later words."""
    weights = torch.cat(explanation[kind])  # (layers, H, T, S)
    later = weights[..., :PAD, :PAD].triu(1)
    return bool((weights[..., PAD] != 0).any()), bool((later != 0).any())


def _explain() -> Explanation:
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(0)
        model = Transformer(9, d_model=8, d_ff=8, num_heads=2, num_layers=1).eval()
        return model.explain(torch.tensor(IDS), torch.tensor([[START_ID, 8, 7, PAD_ID]]))


def _attention_without_look_ahead() -> str:
    explanation = _explain()
    (kind,) = (
        kind
        for kind, (_, queries, keys) in KINDS.items()
        if queries == keys and find_visible(explanation, kind)[1]
    )
    return kind


@torch.inference_mode()
def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return what padding changes for the learner's own model: nothing."""
    backend = translator.backend
    ids = translator.tokenizer.encode_src([text])[0]
    start = backend.pad([[START_ID]])
    all_visible = torch.ones_like(start, dtype=torch.bool)[
        :, None
    ]  # some models start with padding
    with backend.eval_mode():
        plain, padded = (
            translator.model.explain(backend.pad([[*ids, *extra]]), start, tgt_mask=all_visible)
            for extra in ([], [PAD_ID] * 2)
        )
    moved = float((padded.logits - plain.logits).abs().max())
    rows: Rows = [
        [KINDS[kind][0], max(float(weights[..., -2:].max()) for weights in padded[kind])]
        for kind in ("encoder_self", "cross")
        if padded[kind]
    ]
    blocks: list[Block] = [Paragraph(prose("own-padding", text=text, moved=moved))]
    if rows:
        header = prose("own-largest-weight")
        blocks.append(Table([prose("attention"), header], rows))
    else:
        blocks.append(Note(prose("own-no-attention")))
    return [*blocks, ModelPlot("masks", prose("own-masks"))]


LESSON = Lesson(
    number=7,
    title=prose("title"),
    summary=prose("summary"),
    paper="3.2.3",
    code=(
        CodeReference("attendo.model.masks", "padding_mask"),
        CodeReference("attendo.model.masks", "causal_mask"),
    ),
    inputs=(
        Grid(name="scores", label=prose("input-scores"), default=SCORES),
        Switch(name="padding", label=prose("input-padding"), default=True),
        Switch(name="look_ahead", label=prose("input-look-ahead"), default=False),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1"),
            lambda: float((~causal_mask(5)).sum()),
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
        ),
        Question(
            prose("question-2"),
            _attention_without_look_ahead,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            choices=tuple((kind, KINDS[kind][0]) for kind in ("encoder_self", "decoder_self")),
        ),
        Question(
            prose("question-3"),
            lambda: float(
                attention_weights(SCORES, make_mask(padding=True, look_ahead=True))[0, 0]
            ),
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            tolerance=1e-6,
        ),
    ),
    own_model_blocks=own_model_blocks,
)
