"""Figures of one attention: Q, K, V, scores, softmax, weighted sum, masks, heads."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from attendo.inspection.activations import capture_attention
from attendo.inspection.figure_data.panels import bars, heatmap, operator, record_view
from attendo.inspection.heads import get_attention
from attendo.inspection.plots.attention import NUM_PADS, PAD, head_label, make_mask
from attendo.inspection.plots.heads import most_different_heads
from attendo.plotting.style import color_limit

if TYPE_CHECKING:
    from attendo.core.protocols import AttentionKind
    from attendo.inspection.figure_data.context import FigureContext
    from attendo.inspection.figure_data.panels import Panel
    from attendo.inspection.figure_data.registry import Figure

MAX_NUMBERED_COLUMNS = 16
"""Wider matrices have no numbers in their cells."""


def describe_query_key_value(context: FigureContext) -> Figure:
    """Return how one word becomes its query, key and value."""
    kind, layer, head, row = context.select_cell("encoder_self")
    activations = capture_attention(context.model, context.forced_pass, kind, layer)
    attention = get_attention(context.model, kind, layer)
    column = row if kind != "cross" else int(activations.weights[head, row].argmax())
    read, seen = activations.query_input[row], activations.key_value_input[column]
    projections = (
        ("W_Q", attention.query, read, activations.queries[head, row]),
        ("W_K", attention.key, seen, activations.keys[head, column]),
        ("W_V", attention.value, seen, activations.values[head, column]),
    )
    vectors = [vector for *_, one, other in projections for vector in (one, other)]
    limit = color_limit(*vectors)
    names = context.decoder_input if kind == "decoder_self" else context.row_labels(kind)
    words = {"W_Q": names[row]}
    seen_word = names[row] if kind == "decoder_self" else context.column_labels(kind)[column]
    rows: list[list[Panel]] = []
    for name, projection, vector, result in projections:
        size = len(result)
        weight = projection.weight.detach()[head * size : (head + 1) * size].T.float().cpu().numpy()
        title = f"{name}  {weight.shape[0]} × {weight.shape[1]}"
        word = words.get(name, seen_word)
        rows.append(
            [
                heatmap(vector, title=f"x: “{word}”", is_signed=True, limit=limit),
                operator("×"),
                heatmap(weight, title=title, is_signed=True, limit=color_limit(weight)),
                operator("="),
                heatmap(result, title=name[-1].lower(), is_signed=True, limit=limit),
            ]
        )
    about = context.translate(
        "{kind}, layer {layer}, head {head}: the head reads all {size} components of x and has its "
        "own three matrices.",
        kind=context.kind_label(kind),
        layer=layer + 1,
        head=head + 1,
        size=activations.query_input.shape[1],
    )
    if context.model.config.bias:
        about += " " + context.translate("(Biases are added but not shown.)")
    return context.translate("Query, key and value of one word"), about, rows


def describe_one_word(context: FigureContext) -> Figure:
    """Return one word's attention in three steps: scores, softmax, weighted sum of the values."""
    kind, layer, head, row = context.select_cell("encoder_self")
    activations = capture_attention(context.model, context.forced_pass, kind, layer)
    names, allowed = context.column_labels(kind), activations.mask[row]
    scores = np.where(allowed, activations.scores[head, row], np.nan)
    weights = np.where(allowed, activations.weights[head, row], np.nan)
    weighted = activations.weights[head, row][:, None] * activations.values[head]  # (S, K)
    total = activations.heads[head, row]
    first = "1. scores  q · k / √{size}" if context.model.config.scale else "1. scores  q · k"
    best = int(np.nanargmax(weights))
    panels = [
        bars(
            names,
            scores.tolist(),
            title=context.translate(first, size=activations.queries.shape[-1]),
            marked=best,
        ),
        bars(
            names,
            weights.tolist(),
            title=context.translate("2. softmax: weights sum to 1"),
            marked=best,
        ),
    ]
    summed = heatmap(
        np.vstack([weighted, np.full((1, weighted.shape[1]), np.nan), total]),
        title=context.translate("3. values times weights, and their sum"),
        rows=[*(f"{weight:.2f} · v" for weight in activations.weights[head, row]), "", "Σ"],
        column_label=context.translate("{size} dimensions", size=weighted.shape[1]),
        is_signed=True,
        limit=color_limit(weighted, total),
    )
    title = context.translate("Attention of one word: “{word}”", word=context.row_labels(kind)[row])
    return title, head_label(context, kind, layer, head), [panels, [summed]]


def describe_score_matrix(context: FigureContext) -> Figure:
    """Return the score matrix of one head, and its softmax."""
    kind, layer, head, _ = context.select_cell("encoder_self")
    activations = capture_attention(context.model, context.forced_pass, kind, layer)
    row_label, column_label = _axis_labels(context, kind)
    labeled_heatmap = partial(
        heatmap,
        rows=context.row_labels(kind),
        columns=context.column_labels(kind),
        row_label=row_label,
        column_label=column_label,
    )
    is_numbered = len(context.column_labels(kind)) <= MAX_NUMBERED_COLUMNS
    formula = "scores  Q Kᵀ / √{size}" if context.model.config.scale else "scores  Q Kᵀ"
    scores = labeled_heatmap(
        np.where(activations.mask, activations.scores[head], np.nan),
        title=context.translate(formula, size=activations.queries.shape[-1]),
        is_signed=True,
        digits=1 if is_numbered else None,
    )
    weights = labeled_heatmap(
        activations.weights[head],
        title=context.translate("softmax of each row"),
        limit=1.0,
        digits=2 if is_numbered else None,
    )
    about = head_label(context, kind, layer, head)
    return context.translate("The score matrix"), about, [[scores, weights]]


def describe_masks(context: FigureContext) -> Figure:
    """Return the three masks: padding, causal, source padding; in a padded batch."""
    kinds = context.record.kinds
    if context.selection.kind or not kinds:
        kinds = (context.select_kind("cross"),)  # its error names the kinds that exist
    titles: dict[AttentionKind, str] = {
        "encoder_self": "encoder self-attention: masks padding",
        "decoder_self": "decoder self-attention: masks the future and padding",
        "cross": "cross-attention: masks the source's padding",
    }
    panels = []
    for kind in kinds:
        row_label, column_label = _axis_labels(context, kind)
        panels.append(
            heatmap(
                np.where(make_mask(context, kind), 1.0, np.nan),
                title=context.translate(titles[kind]),
                rows=[*context.row_labels(kind), *[PAD] * NUM_PADS],
                columns=[*context.column_labels(kind), *[PAD] * NUM_PADS],
                row_label=row_label,
                column_label=column_label,
                limit=1.6,
            )
        )
    about = context.translate(
        "Shown with {count} padding tokens, as in a batch with a longer sentence.", count=NUM_PADS
    )
    title = context.translate("Masks: blue may be attended to, hatched may not")
    return title, about, [panels]


def describe_head_lines(context: FigureContext) -> Figure:
    """Return where one head attends from one word."""
    kind, layer, head, row = context.select_cell("cross")
    word = context.row_labels(kind)[row]
    title = context.translate("Where one head attends from “{word}”", word=word)
    view = record_view("arcs", kind, layer=layer, heads=[head], row=row)
    return title, head_label(context, kind, layer, head), [[view]]


def describe_two_heads(context: FigureContext) -> Figure:
    """Return the two heads of a layer that differ most, and the word where they do."""
    kind = context.select_kind("cross")
    layer = context.select_layer(kind)
    weights = context.layer_weights(kind, layer)
    first, second, row = most_different_heads(context, weights, context.row_labels(kind))
    title = context.translate("Two heads attend from “{word}”", word=context.row_labels(kind)[row])
    about = context.translate(
        "{kind}, layer {layer}", kind=context.kind_label(kind), layer=layer + 1
    )
    view = record_view("arcs", kind, layer=layer, heads=sorted((first, second)), row=row)
    return title, about, [[view]]


def describe_all_heads(context: FigureContext) -> Figure:
    """Return the view of every head of every layer."""
    kind = context.select_kind("cross")
    title = context.translate("All heads: {kind}", kind=context.kind_label(kind))
    about = context.translate(
        "Row: the attending word. Column: the attended word. Dark: high weight."
    )
    return title, about, [[record_view("heads", kind)]]


def describe_concatenated_heads(context: FigureContext) -> Figure:
    """Return the concatenated heads of one word, times W_O."""
    kind, layer, _, row = context.select_cell("encoder_self")
    activations = capture_attention(context.model, context.forced_pass, kind, layer)
    projection = get_attention(context.model, kind, layer).output
    weight = projection.weight.detach().T.float().cpu().numpy()  # (H * K, D)
    heads, output = activations.heads[:, row], activations.output[row]  # (H, K), (D,)
    num_heads, size = heads.shape
    names = [context.translate("head {head}", head=head + 1) for head in range(num_heads)]
    parts = np.stack(
        [head_output @ weight[i * size : (i + 1) * size] for i, head_output in enumerate(heads)]
    )
    limit = color_limit(parts, output)
    has_bias = getattr(projection, "bias", None) is not None
    total = "their sum plus the bias: the output" if has_bias else "their sum: the output"
    lengths = np.linalg.norm(parts, axis=-1)
    labels = [
        f"{name}, {context.translate('size {size}', size=f'{length:.1f}')}"
        for name, length in zip(names, lengths, strict=True)
    ]
    rows: list[list[Panel]] = [
        [heatmap(heads, title="Concat", rows=names, is_signed=True, limit=color_limit(heads))],
        [
            operator("×"),
            heatmap(
                weight,
                title=f"W_O  {weight.shape[0]} × {weight.shape[1]}",
                is_signed=True,
                limit=color_limit(weight),
            ),
        ],
        [
            operator("="),
            heatmap(
                parts,
                title=context.translate("what each head adds through its part of W_O"),
                rows=labels,
                is_signed=True,
                limit=limit,
            ),
        ],
        [
            operator("Σ"),
            heatmap(output, title=context.translate(total), is_signed=True, limit=limit),
        ],
    ]
    title = context.translate(
        "Concatenated heads times W_O: “{word}”", word=context.row_labels(kind)[row]
    )
    about = context.translate(
        "{kind}, layer {layer}", kind=context.kind_label(kind), layer=layer + 1
    )
    return title, about, rows


def _axis_labels(context: FigureContext, kind: AttentionKind) -> tuple[str, str]:
    row = "source word …" if kind == "encoder_self" else "step that predicts …"
    column = (
        "… attends to the words so far" if kind == "decoder_self" else "… attends to the source"
    )
    return context.translate(row), context.translate(column)
