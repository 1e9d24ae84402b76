"""Lesson 11: the whole machine. Shapes on the way, sources of Q, K and V, parameters counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attendo.lessons.blocks import Block, Formula, LocalizedText, ModelPlot, Note, Paragraph
from attendo.lessons.inputs import Choice, Number
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.machine_tables import (
    build,
    count_fed_layers,
    parameters_by_part,
    send,
    shapes_of_decoder,
    shapes_of_encoder,
    sources_of_attention,
)
from attendo.model.presets import get_preset
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.translator import Translator

MILLION = 1e6
PAPER_VOCABULARY = 37_000
LENGTHS = (7, 5)
"""Of source and target, in a question."""


def tell(
    batch: int, source_length: int, target_length: int, preset: str, vocab_size: int
) -> list[Block]:
    """Send ids through, note every shape, count every weight."""
    model = build(preset, vocab_size)
    journey = send(model, batch, source_length, target_length)
    num_fed = count_fed_layers(model, journey)
    num_layers = len(model.decoder.layers)
    return [
        Paragraph(
            LocalizedText(
                "All parts are known by now; here they stand together. The **encoder** reads the "
                "source in a stack of {n} equal layers, each self-attention and feed-forward. The "
                "**decoder** writes the target in {n} layers that have one part more: attention "
                "over what the encoder has read.",
                "이제 부품은 모두 보았으니 한데 모아 봅니다. **인코더(encoder)**는 똑같이 생긴 층 {n}개로 "
                "원문을 읽으며, 층마다 셀프 어텐션과 피드포워드가 있습니다. **디코더(decoder)**는 층 {n}개로 "
                "번역문을 쓰는데, 인코더가 읽은 것을 보는 어텐션이 하나 더 있습니다.",
            ).format(n=num_layers)
        ),
        Paragraph(
            LocalizedText(
                "We send a batch of {b}, each a source of {s} words, through the model itself and "
                "write down the shape of what leaves each part. B is the batch, S the source length, T the "
                "target length, D = d_model, H the heads, K = D / H, F = d_ff, V the vocabulary.",
                "모델에 {s}단어짜리 원문 {b}개를 넣어 보고, 부품마다 나오는 텐서의 모양을 적었습니다. B는 "
                "배치, S는 원문 길이, T는 번역문 길이, D = d_model, H는 헤드 수, K = D / H, F = d_ff, V는 "
                "어휘 크기입니다.",
            ).format(b=batch, s=source_length)
        ),
        shapes_of_encoder(model, journey),
        shapes_of_decoder(model, journey),
        Paragraph(
            LocalizedText(
                "Between layers nothing changes its shape: (B, S, D) comes in, (B, S, D) goes out. "
                "That is why layers can be stacked as high as one likes. Only attention weights "
                "have two lengths: **rows ask, columns answer**.",
                "층과 층 사이에서는 모양이 변하지 않습니다. (B, S, D)가 들어가 (B, S, D)가 나오므로 층을 "
                "원하는 만큼 쌓을 수 있습니다. 어텐션 가중치만 길이가 둘입니다. **행이 묻고 열이 답합니다**.",
            )
        ),
        Paragraph(
            LocalizedText(
                "The same attention stands in three places; only what it is fed differs. The table "
                "is read off the running model: which tensor entered W_Q, W_K and W_V.",
                "똑같은 어텐션(attention)이 세 곳에 쓰이고, 넣어 주는 것만 다릅니다. 아래 표는 모델을 돌리며 "
                "W_Q, W_K, W_V에 어떤 텐서가 들어갔는지 확인해서 채웠습니다.",
            )
        ),
        sources_of_attention(model, journey),
        Note(
            LocalizedText(
                "The **last** encoder output goes to every decoder layer, not layer by layer: "
                "{fed} of {n} decoder layers read the very same tensor.",
                "디코더의 모든 층은 인코더의 **마지막** 출력을 봅니다. 층끼리 짝을 짓는 것이 아닙니다. "
                "디코더 {n}개 층 가운데 {fed}개가 바로 그 텐서를 읽었습니다.",
            ).format(fed=num_fed, n=num_layers)
        ),
        *_tell_parameters(model, preset),
    ]


def _tell_parameters(model: Transformer, preset: str) -> list[Block]:
    total = model.num_parameters()
    printed = get_preset(preset).published_parameters or 0
    d_model = model.config.d_model
    others = total - model.src_embedding.weight.numel()
    needed = round((printed * MILLION - others) / d_model)
    return [
        Paragraph(
            LocalizedText(
                "Lengths appear in no weight: the same numbers serve 5 words or 500. So the "
                "parameters can be counted without any sentence.",
                "어떤 가중치에도 문장 길이는 들어가지 않습니다. 5단어든 500단어든 같은 숫자를 씁니다. 그래서 "
                "문장이 없어도 매개변수를 셀 수 있습니다.",
            )
        ),
        parameters_by_part(model),
        Formula(f"{total:,} ≈ {total / MILLION:.1f}M"),
        Paragraph(
            LocalizedText(
                "The paper prints **{printed:g}M**. It says “about 37,000” for the vocabulary; "
                "with these layers a vocabulary of {needed:,} would give exactly that. The "
                "embedding is one matrix with three uses (source, target, output), counted once.",
                "논문에는 **{printed:g}M**이라고 적혀 있습니다. 어휘는 “약 37,000”이라고만 했는데, 이 층들로 "
                "정확히 그 수가 되려면 어휘가 {needed:,}개여야 합니다. 임베딩(embedding) 행렬은 하나를 세 곳(원문, "
                "번역문, 출력)에서 함께 쓰므로 한 번만 셉니다.",
            ).format(printed=printed, needed=needed)
        ),
    ]


def _cross_shape() -> str:
    rows, columns = send(build("base", PAPER_VOCABULARY), 1, *LENGTHS).cross.shape[-2:]
    return f"{rows}x{columns}"


def _what_a_decoder_layer_has_more() -> float:
    model = build("base", PAPER_VOCABULARY)
    layers = (model.decoder.layers[0], model.encoder.layers[0])
    decoder, encoder = (sum(one.numel() for one in layer.parameters()) for layer in layers)
    return decoder - encoder


def _source_of_fourth_layer() -> str:
    model = build("base", PAPER_VOCABULARY)
    journey = send(model, 1, *LENGTHS)
    given = journey.fed[model.decoder.layers[3].cross_attention, "key"]
    outputs = [journey.seen[layer].result for layer in model.encoder.layers]
    return next(f"encoder-{place}" for place, one in enumerate(outputs, 1) if one is given)


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Show the stack and the parameters of the learner's own model."""
    model = translator.model
    if not isinstance(model, Transformer):
        return [
            Note(
                LocalizedText(
                    "Your model is not a single Transformer, so it has no such stack.",
                    "여러분의 모델은 트랜스포머 하나로 된 모델이 아니어서 이런 층 구조가 없습니다.",
                )
            )
        ]
    return [
        Paragraph(
            LocalizedText(
                f"Your own machine, with the shapes for “{text}”: {model.num_parameters():,} "
                "parameters.",
                f"여러분의 모델과 문장 “{text}”의 단계별 모양입니다. 매개변수는 {model.num_parameters():,}개입니다.",
            )
        ),
        ModelPlot("stack", LocalizedText("the stack with its shapes", "층 구조와 단계별 모양")),
        parameters_by_part(model),
    ]


LESSON = Lesson(
    number=11,
    title=LocalizedText("The whole machine", "전체 구조"),
    summary=LocalizedText(
        "How encoder and decoder fit together: every shape, where Q, K and V come from, and "
        "65 million parameters counted.",
        "인코더와 디코더가 어떻게 맞물리는지, 단계별 모양과 Q, K, V의 출처, 6천5백만 매개변수를 확인합니다.",
    ),
    paper="3.1",
    code=(
        CodeReference("attendo.model.transformer", "Transformer"),
        CodeReference("attendo.model.encoder", "Encoder"),
        CodeReference("attendo.model.decoder", "Decoder"),
    ),
    inputs=(
        Number(
            name="batch",
            label=LocalizedText("sentences at once (B)", "한 번에 넣는 문장 수 (B)"),
            default=2,
            low=1,
            high=64,
        ),
        Number(
            name="source_length",
            label=LocalizedText("source length (S)", "원문 길이 (S)"),
            default=6,
            low=1,
            high=200,
        ),
        Number(
            name="target_length",
            label=LocalizedText("target length (T)", "번역문 길이 (T)"),
            default=10,
            low=1,
            high=200,
        ),
        Choice(
            name="preset",
            label=LocalizedText("size of the model", "모델 크기"),
            default="base",
            choices=(
                (
                    "base",
                    LocalizedText("base (d_model 512)", "base (d_model 512, 논문의 기본 크기)"),
                ),
                ("big", LocalizedText("big (d_model 1024)", "big (d_model 1024, 논문의 큰 크기)")),
            ),
        ),
        Number(
            name="vocab_size",
            label=LocalizedText("vocabulary (V)", "어휘 크기 (V)"),
            default=PAPER_VOCABULARY,
            low=100,
            high=100_000,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "The source has 7 words, the target 5. How many rows and columns has the "
                "cross-attention matrix of one head?",
                "원문이 7단어, 번역문이 5단어입니다. 헤드 하나의 교차 어텐션 행렬은 몇 행 몇 열인가요?",
            ),
            _cross_shape,
            LocalizedText(
                "The target asks (rows), the source answers (columns): T × S.",
                "번역문이 묻고(행) 원문이 답하므로(열) T × S입니다.",
            ),
            choices=(("5x7", "5 × 7"), ("7x5", "7 × 5"), ("7x7", "7 × 7"), ("5x5", "5 × 5")),
        ),
        Question(
            LocalizedText(
                "How many parameters does a decoder layer of base have more than an encoder layer?",
                "base 모델에서 디코더 층 하나는 인코더 층 하나보다 매개변수가 몇 개 더 많나요?",
            ),
            _what_a_decoder_layer_has_more,
            LocalizedText(
                "One more attention, 4 · (512² + 512), and one more layer norm, 2 · 512.",
                "어텐션 하나 4 · (512² + 512)와 층 정규화 하나 2 · 512가 더 있습니다.",
            ),
        ),
        Question(
            LocalizedText(
                "From where does the fourth decoder layer of base take its cross-attention keys?",
                "base 모델에서 디코더 네 번째 층의 교차 어텐션 키는 어디에서 오나요?",
            ),
            _source_of_fourth_layer,
            LocalizedText(
                "Every decoder layer reads the last encoder output, layer 6.",
                "디코더의 모든 층은 인코더의 마지막 출력, 곧 6층의 출력을 읽습니다.",
            ),
            choices=(
                ("encoder-3", LocalizedText("encoder layer 3", "인코더 3층")),
                ("encoder-4", LocalizedText("encoder layer 4", "인코더 4층")),
                ("encoder-6", LocalizedText("encoder layer 6", "인코더 6층")),
                ("decoder-3", LocalizedText("decoder layer 3", "디코더 3층")),
            ),
        ),
    ),
    own_model_blocks=on_your_model,
)
