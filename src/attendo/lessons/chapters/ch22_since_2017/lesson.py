"""Lesson 22: from 2017 to today; what changed in the layers of the paper, and what did not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import torch
from torch.nn.functional import layer_norm, rms_norm

from attendo.lessons.blocks import (
    Block,
    Chart,
    Formula,
    LocalizedText,
    Matrix,
    ModelPlot,
    Note,
    Paragraph,
    Series,
    Table,
)
from attendo.lessons.chapters.ch22_since_2017.layer_gradients import (
    depth_table,
    gradient_chart,
    gradients_by_layer,
)
from attendo.lessons.chapters.ch22_since_2017.memory import (
    COMPARED_LENGTH,
    LARGE,
    CacheShape,
    cache_table,
    fused_bound,
    measure_numbers_per_token,
    score_memory_table,
)
from attendo.lessons.chapters.ch22_since_2017.published_sizes import (
    DECODER_ONLY,
    GPT3,
    count_paper_model,
)
from attendo.lessons.chapters.ch22_since_2017.rotary import (
    rotary_score,
    rotation_table,
    score_table,
)
from attendo.lessons.inputs import Grid, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.prose import Prose
from attendo.model.config import TransformerConfig
from attendo.model.feed_forward import ACTIVATIONS
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch22_since_2017")

NUM_LAYERS = 12
QUERY = [[1.0, 0.5, -0.5, 1.0]]
KEY = [[0.5, 1.0, 1.0, -0.5]]
QUERY_POSITION, KEY_POSITION = 7, 4
NORM_INPUT = [[1.0, 2.0, 3.0, 6.0]]
SHIFT = 10.0
CONTEXT = 4096
RANGE = 3.0
STEPS_PER_UNIT = 4
EPS = 1e-5
PAIRS = {"107,104": (107, 104), "4,7": (4, 7), "7,5": (7, 5), "8,4": (8, 4)}
RMS_EXAMPLE = (3.0, 4.0)


class Part(NamedTuple):
    """A part of the layer, its common form today, and the option of Attendo, if there is one."""

    name: LocalizedText
    today: LocalizedText | str
    option: str | None


PARTS = (
    Part(prose("part-norm-position"), prose("today-pre-norm"), "norm"),
    Part(prose("part-norm-kind"), "RMSNorm", None),
    Part(prose("part-activation"), "GELU, SwiGLU", "activation"),
    Part(prose("part-positions"), "RoPE", "positions"),
    Part(prose("part-kv-heads"), prose("today-grouped"), None),
    Part(prose("part-width"), prose("today-window"), "attention_width"),
    Part(prose("part-bias"), prose("today-no-bias"), "bias"),
)


def build_blocks(
    num_layers: int,
    x: list[list[float]],
    query: list[list[float]],
    key: list[list[float]],
    query_position: int,
    key_position: int,
    context: int,
) -> list[Block]:
    """Return the parts that changed, one after the other, and the sizes of published models."""
    return [
        Paragraph(prose("why")),
        Paragraph(prose("same")),
        *_norm_position_section(num_layers),
        *_rms_norm_section(x),
        *_activation_section(),
        *_rotary_section(query, key, query_position, key_position),
        *_cache_section(context),
        *_fused_section(),
        *_scale_section(),
        *_options_section(),
        Paragraph(prose("next")),
        Note(prose("sources")),
    ]


def _norm_position_section(num_layers: int) -> list[Block]:
    post, pre = (gradients_by_layer(norm, num_layers) for norm in ("post", "pre"))
    return [
        Paragraph(prose("norm-position")),
        Formula("post-norm: LayerNorm(x + Sublayer(x))"),
        Formula("pre-norm: x + Sublayer(LayerNorm(x))"),
        gradient_chart(num_layers),
        Paragraph(
            prose(
                "gradients-seen",
                num_layers=num_layers,
                post_first=post[0],
                post_last=post[-1],
                pre_first=pre[0],
                pre_last=pre[-1],
            )
        ),
        depth_table(),
        Paragraph(prose("pre-norm-price")),
    ]


def _rms_norm_section(x: list[list[float]]) -> list[Block]:
    vector = torch.tensor(x[0], dtype=torch.float64)
    shifted = vector + SHIFT
    mean, mean_square = float(vector.mean()), float(vector.square().mean())
    return [
        Paragraph(prose("rms-norm")),
        Formula("LayerNorm(x) = (x − mean) / √(var + ε),   RMSNorm(x) = x / √(mean(x²) + ε)"),
        Table(
            [prose("quantity"), prose("value")],
            [
                ["mean", mean],
                ["var", float(vector.var(correction=0))],
                ["mean(x²)", mean_square],
                ["√(mean(x²) + ε)", (mean_square + EPS) ** 0.5],
            ],
            digits=4,
        ),
        Matrix(
            prose("norms-title"),
            [
                vector.tolist(),
                layer_norm(vector, vector.shape, eps=EPS).tolist(),
                rms_norm(vector, list(vector.shape), eps=EPS).tolist(),
                layer_norm(shifted, vector.shape, eps=EPS).tolist(),
                rms_norm(shifted, list(vector.shape), eps=EPS).tolist(),
            ],
            rows=["x", "LayerNorm(x)", "RMSNorm(x)", "LayerNorm(x + 10)", "RMSNorm(x + 10)"],
            digits=3,
        ),
        Paragraph(prose("rms-norm-seen")),
    ]


def _activation_section() -> list[Block]:
    num_steps = int(2 * RANGE * STEPS_PER_UNIT)
    points = torch.linspace(-RANGE, RANGE, num_steps + 1)
    config = TransformerConfig(vocab_size=1)
    gated_width = 2 * config.d_ff // 3
    return [
        Paragraph(prose("activation")),
        Chart(
            "lines",
            prose("activations"),
            points.tolist(),
            [Series(name, function(points).tolist()) for name, function in ACTIVATIONS.items()],
            x_label="x",
        ),
        Formula("(swish(x · W) ⊙ (x · V)) · W₂"),
        Paragraph(
            prose(
                "gated",
                d_ff=config.d_ff,
                plain=2 * config.d_model * config.d_ff,
                gated_width=gated_width,
                gated=3 * config.d_model * gated_width,
            )
        ),
    ]


def _rotary_section(
    query: list[list[float]], key: list[list[float]], query_position: int, key_position: int
) -> list[Block]:
    q, k = (torch.tensor(rows[0], dtype=torch.float64) for rows in (query, key))
    return [
        Paragraph(prose("positions")),
        Formula("a′ = a · cos(mθ) − b · sin(mθ)"),
        Formula("b′ = a · sin(mθ) + b · cos(mθ)"),
        Matrix("q", query, digits=2),
        Matrix("k", key, digits=2),
        rotation_table(q, query_position),
        Paragraph(prose("only-distance")),
        score_table(q, k, query_position, key_position),
        Paragraph(prose("only-distance-seen")),
    ]


def _cache_section(context: int) -> list[Block]:
    config = TransformerConfig(vocab_size=1)
    own = CacheShape(
        config.num_layers, config.num_heads, config.num_heads, config.d_model // config.num_heads
    )
    return [
        Paragraph(
            prose(
                "cache",
                num_layers=own.num_layers,
                num_heads=own.num_heads,
                d_k=own.d_k,
                measured=measure_numbers_per_token(),
            )
        ),
        Formula(
            f"2 · {own.num_layers} · {own.num_heads} · {own.d_k} = {own.numbers_per_token():,}"
        ),
        Paragraph(prose("grouped-queries", num_heads=LARGE.num_heads, kv_heads=LARGE.num_kv_heads)),
        cache_table(context),
    ]


def _fused_section() -> list[Block]:
    return [
        Paragraph(prose("fused")),
        score_memory_table(),
        Paragraph(prose("fused-same", length=COMPARED_LENGTH, bound=f"{fused_bound():.0e}")),
    ]


def _scale_section() -> list[Block]:
    big = count_paper_model("big")
    rough = 12 * GPT3.num_layers * GPT3.d_model**2
    rows: Rows = [
        [prose("paper-base"), "65M", count_paper_model("base"), "Vaswani 2017"],
        [prose("paper-big"), "213M", big, "Vaswani 2017"],
    ]
    for one in DECODER_ONLY:
        rows.append([one.name, one.published, one.num_parameters(), one.source])
    return [
        Paragraph(prose("decoder-only")),
        Formula("L · (4 · d² + 2 · d · d_ff) = 12 · L · d²,   d_ff = 4 · d"),
        Table(
            [prose("model"), prose("published"), prose("computed"), prose("source")],
            rows,
            title=prose("sizes-title"),
        ),
        Paragraph(
            prose(
                "scale",
                num_layers=GPT3.num_layers,
                d_model=GPT3.d_model,
                rough=LocalizedText(f"{rough / 1e9:.1f} billion", f"약 {rough / 1e8:,.0f}억 개"),
                ratio=GPT3.num_parameters() / big,
            )
        ),
    ]


def _options_section() -> list[Block]:
    rows: Rows = [
        [part.name, _describe_default(part), part.today, _describe_option(part.option)]
        for part in PARTS
    ]
    return [
        Paragraph(prose("options")),
        Table(
            [prose("part"), "2017", prose("today"), prose("option")],
            rows,
            title=prose("options-title"),
        ),
    ]


def _describe_default(part: Part) -> Label:
    if part.option is not None:
        default = TransformerConfig.model_fields[part.option].default
        return prose("unlimited") if default is None else _spell(default)
    defaults = {"RMSNorm": "LayerNorm"}
    return defaults.get(str(part.today), prose("as-many-as-heads"))


def _describe_option(option: str | None) -> Label:
    """Return an option of the config with its values."""
    if option is None:
        return "–"
    return f"{option} = {', '.join(option_values(option))}"


def option_values(option: str) -> list[str]:
    """Return the values that an option of the Transformer can have.

    >>> option_values("norm"), option_values("bias"), option_values("attention_width")
    (['post', 'pre'], ['false', 'true'], ['1, 2, ...'])
    """
    annotation = TransformerConfig.model_fields[option].annotation
    if annotation is bool:
        return ["false", "true"]
    names = [one for one in get_args(annotation) if isinstance(one, str)]
    return names or ["1, 2, ..."]


def _spell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def own_model_blocks(translator: Translator, text: str) -> list[Block]:
    """Return the options of the learner's own model, its cache and its gradients."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [Note(prose("own-not-transformer"))]
    config = model.config
    num_heads = config.num_decoder_heads or config.num_heads
    shape = CacheShape(
        config.num_decoder_layers or config.num_layers,
        num_heads,
        num_heads,
        config.d_k or config.d_model // num_heads,
    )
    rows: Rows = [
        [part.name, _spell(getattr(config, part.option)), part.today]
        for part in PARTS
        if part.option is not None and getattr(config, part.option) is not None
    ]
    single = shape._replace(num_kv_heads=1)
    return [
        Table([prose("part"), prose("own-model"), prose("today")], rows),
        Paragraph(
            prose(
                "own-cache",
                numbers=shape.numbers_per_token(),
                single=single.numbers_per_token(),
                num_heads=num_heads,
            )
        ),
        ModelPlot("gradients", prose("own-figure", text=text)),
    ]


def _same_score() -> str:
    q, k = (torch.tensor(rows[0], dtype=torch.float64) for rows in (QUERY, KEY))
    score = rotary_score(q, k, QUERY_POSITION, KEY_POSITION)
    return min(PAIRS, key=lambda pair: abs(rotary_score(q, k, *PAIRS[pair]) - score))


def _rms_of_example() -> float:
    vector = torch.tensor(RMS_EXAMPLE, dtype=torch.float64)
    return float(rms_norm(vector, [2], eps=EPS)[0])


def _cache_ratio() -> float:
    full = LARGE._replace(num_kv_heads=LARGE.num_heads)
    return full.numbers_per_token() / LARGE.numbers_per_token()


LESSON = Lesson(
    number=22,
    title=prose("title"),
    summary=prose("summary"),
    paper="3",
    code=(
        CodeReference("attendo.model.config", "TransformerConfig"),
        CodeReference("attendo.model.layers", "AddAndNorm"),
        CodeReference("attendo.model.feed_forward", "FeedForward"),
        CodeReference("attendo.model.kv_cache", "LayerCache"),
    ),
    inputs=(
        Number(
            name="num_layers", label=prose("input-num-layers"), default=NUM_LAYERS, low=2, high=24
        ),
        Grid(name="x", label=prose("input-x"), default=NORM_INPUT),
        Grid(name="query", label=prose("input-query"), default=QUERY),
        Grid(name="key", label=prose("input-key"), default=KEY),
        Number(
            name="query_position",
            label=prose("input-query-position"),
            default=QUERY_POSITION,
            low=0,
            high=100,
        ),
        Number(
            name="key_position",
            label=prose("input-key-position"),
            default=KEY_POSITION,
            low=0,
            high=100,
        ),
        Number(
            name="context",
            label=prose("input-context"),
            default=CONTEXT,
            low=512,
            high=32_768,
            step=512,
        ),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1", query=QUERY_POSITION, key=KEY_POSITION),
            _same_score,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            choices=tuple(
                (name, prose("choice-pair", query=m, key=n)) for name, (m, n) in PAIRS.items()
            ),
        ),
        Question(
            prose("question-2"),
            _rms_of_example,
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            tolerance=0.005,
        ),
        Question(
            prose("question-3", num_heads=LARGE.num_heads, kv_heads=LARGE.num_kv_heads),
            _cache_ratio,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            tolerance=0.01,
            is_ratio=True,
        ),
    ),
    own_model_blocks=own_model_blocks,
)
