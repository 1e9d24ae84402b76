"""Lesson 14: speaking. Word by word, greedily or with a beam, and what need not be done again."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING

import torch

from attendo.inspection import capture
from attendo.lessons.beam_steps import (
    ALPHA,
    BEAM_SIZE,
    CORPUS,
    SRC,
    beam_frames,
    find,
    greedy_steps,
    make_model,
    spell,
    translations,
)
from attendo.lessons.blocks import Block, Formula, LocalizedText, ModelPlot, Note, Paragraph, Table
from attendo.lessons.cache_work import count_work, vectors_by_part, work_by_step
from attendo.lessons.decoder_steps import step_frames
from attendo.lessons.inputs import Number
from attendo.lessons.lesson import CodeReference, Lesson, Question

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.translator import Translator

LENGTH = 20
MILLION = 1e6


def tell(beam_size: int, alpha: float, source_length: int, target_length: int) -> list[Block]:
    """Speak greedily, then with a beam; then count what the cache saves."""
    return [
        *_tell_greedy(),
        *_tell_beam(beam_size, alpha),
        *_tell_cache(source_length, target_length),
    ]


def _tell_greedy() -> list[Block]:
    total = sum(CORPUS.values())
    most = sum(count for tgt, count in CORPUS.items() if tgt.startswith("student"))
    words, best = make_model().tgt_words, find(beam_size=1).hypotheses[0]
    rows: list[list[Label | float | int | None]] = [
        [tgt, count, f"{count}/{total}", count / total] for tgt, count in CORPUS.items()
    ]
    return [
        Paragraph(
            LocalizedText(
                "A translator speaks one word at a time: `<sos>` goes in, a word comes out, it is "
                "read in its turn, until `<eos>` comes out. To see that the choice of words is not "
                "easy, {total} people have translated “{src}”, some of them carelessly, and a tiny "
                "model has learnt from all.",
                "번역기는 한 번에 한 단어씩 말합니다. `<sos>`를 넣으면 단어 하나가 나오고, 그 단어를 다시 읽고, "
                "`<eos>`가 나오면 끝납니다. 단어 고르기가 쉽지 않다는 것을 보려고 {total}명이 “{src}”를 "
                "번역했습니다. 몇 사람은 서툴렀고, 작은 모델은 그 번역을 모두 배웠습니다.",
            ).format(src=SRC, total=total)
        ),
        Table(
            [
                LocalizedText("translation", "번역"),
                LocalizedText("people", "사람 수"),
                LocalizedText("share", "비율"),
                LocalizedText("as a number", "소수로"),
            ],
            rows,
        ),
        Paragraph(
            LocalizedText(
                "**Greedy** search takes the likeliest word at every step. {most} of {total} begin "
                "with “student”, so it does, too, and can never go back.",
                "**탐욕적(greedy)** 탐색은 단계마다 가장 그럴듯한 단어를 고릅니다. {total}명 가운데 {most}명이 "
                "“student”로 시작했으므로 똑같이 시작하고, 다시는 되돌아갈 수 없습니다.",
            ).format(most=most, total=total)
        ),
        greedy_steps(),
        Paragraph(
            LocalizedText(
                "It ends with “{said}”, P = {p:.4f}. The likeliest sentence was another one.",
                "결과는 “{said}”, P = {p:.4f}입니다. 가장 그럴듯한 문장은 따로 있었습니다.",
            ).format(said=spell(best, words), p=exp(best.log_prob))
        ),
    ]


def _tell_beam(beam_size: int, alpha: float) -> list[Block]:
    words = make_model().tgt_words
    best = find(beam_size=beam_size, alpha=alpha).hypotheses[0]
    greedy = find(beam_size=1).hypotheses[0]
    gain = exp(best.log_prob - greedy.log_prob)
    return [
        Paragraph(
            LocalizedText(
                "**Beam search** keeps the best {k} beginnings at every step instead of one. Each "
                "is continued by every word; of all candidates the best {k} go on, a finished one "
                "is laid aside. Log-probabilities are added up, since the P of a sentence is a "
                "product.",
                "**빔 탐색(beam search)**은 단계마다 하나가 아니라 가장 좋은 {k}개의 앞부분을 남깁니다. 저마다 모든 "
                "단어로 이어 보고, 후보 전체에서 가장 좋은 {k}개가 계속 갑니다. 끝난 문장은 따로 둡니다. 문장의 "
                "P는 곱이므로 로그 확률을 더합니다.",
            ).format(k=beam_size)
        ),
        Paragraph(
            LocalizedText(
                "Every further word makes P smaller, so short sentences would win. The score "
                "divides by a **length penalty**; α = 0 switches it off, the paper takes 0.6.",
                "단어가 늘 때마다 P는 작아지므로 짧은 문장이 유리해집니다. 그래서 점수는 **길이 벌점(length "
                "penalty)**으로 나눕니다. α = 0이면 꺼지고, 논문은 0.6을 씁니다.",
            )
        ),
        Formula("score = log P / ((5 + length) / 6)^α"),
        beam_frames(beam_size=beam_size, alpha=alpha),
        Paragraph(
            LocalizedText(
                "What comes back is a list, best first, as long as the beam is wide: {k}. The "
                "first is “{said}”, {gain:.2f} times as likely as what greedy search found.",
                "탐색은 가장 좋은 번역 {k}개를 돌려줍니다. 첫째는 “{said}”이고, 탐욕적 탐색의 결과보다 "
                "{gain:.2f}배 그럴듯합니다.",
            ).format(k=beam_size, said=spell(best, words), gain=gain)
        ),
        translations(beam_size=beam_size, alpha=alpha),
    ]


def _tell_cache(source_length: int, target_length: int) -> list[Block]:
    work = count_work(source_length, target_length)
    plain, cached = (sum(one.multiply_adds) for one in (work.plain, work.cached))
    return [
        Paragraph(
            LocalizedText(
                "At every step the decoder reads all words so far. But no word looks ahead, so the "
                "keys and values of earlier words are the same at every later step, and those of "
                "the source never change. The **key-value cache** keeps them: a step computes one "
                "new word and looks the others up.",
                "디코더는 단계마다 지금까지의 단어를 모두 봅니다. 그런데 어떤 단어도 뒤를 보지 않으므로 앞 단어의 키와 "
                "값은 나중 단계에서도 똑같고, 원문의 키와 값은 아예 변하지 않습니다. **키-값 캐시(key-value "
                "cache)**는 이것을 간직합니다. 한 단계는 새 단어 하나만 계산하고 나머지는 꺼내 봅니다.",
            )
        ),
        Paragraph(
            LocalizedText(
                "Here the decoder of the paper's base model writes {t} words over a source of {s}. "
                "The encoder runs once in either case and is not counted.",
                "논문의 base 모델 디코더가 {s}단어 원문을 보며 {t}단어를 씁니다. 인코더는 어느 쪽이든 한 번만 "
                "돌므로 세지 않습니다.",
            ).format(t=target_length, s=source_length)
        ),
        vectors_by_part(source_length=source_length, target_length=target_length),
        work_by_step(source_length=source_length, target_length=target_length),
        Paragraph(
            LocalizedText(
                "Together {plain:,.1f} million multiply-adds without the cache and {cached:,.1f} "
                "with it: {ratio:.2f} times as many. The price is memory, {kept:,} numbers at the "
                "end. The words are the same: on our tiny model no logit differs by more than "
                "{off:.0e}.",
                "곱셈-덧셈은 캐시가 없으면 모두 {plain:,.1f}백만 번, 있으면 {cached:,.1f}백만 번으로 {ratio:.2f}배 "
                "차이입니다. 대가는 메모리로, 끝에는 숫자 {kept:,}개를 간직합니다. 나오는 단어는 같습니다. 작은 "
                "모델에서 로짓의 차이는 커야 {off:.0e}입니다.",
            ).format(
                plain=plain / MILLION,
                cached=cached / MILLION,
                ratio=plain / cached,
                kept=work.kept,
                off=measure_difference(),
            )
        ),
        Note(
            LocalizedText(
                "The tiny model starts from `<eos>`, the border between two sentences, and we show "
                "it as `<sos>`: its vocabulary has no symbol that is never said.",
                "이 작은 모델은 문장의 경계인 `<eos>`에서 시작하며, 여기서는 `<sos>`로 표시했습니다. 말하지 않을 "
                "기호를 어휘에 두지 않기 위해서입니다.",
            )
        ),
    ]


@torch.inference_mode()
def measure_difference() -> float:
    """Give the greatest distance of logits with the cache and without, over a whole sentence."""
    tiny, tgt = make_model(), next(iter(CORPUS))
    at_once = tiny.teacher_force(SRC, tgt).logits  # (T, V)
    state = tiny.model.start(tiny.model.encode(tiny.encode_src(SRC)))
    farthest = 0.0
    for place, number in enumerate([tiny.special_ids.start_id, *tiny.encode_tgt(tgt)]):
        logits, state = tiny.model.step(torch.tensor([number]), state)
        farthest = max(farthest, float((logits[0] - at_once[place]).abs().max()))
    return farthest


def _first_of_the_beam() -> str:
    return spell(find(beam_size=2).hypotheses[0], make_model().tgt_words).removesuffix(" <eos>")


def _vectors_with_cache() -> int:
    return count_work(LENGTH, LENGTH).cached.vectors["cross_attention.key"]


def _ratio_at_the_last_step() -> float:
    work = count_work(LENGTH, LENGTH)
    return work.plain.multiply_adds[-1] / work.cached.multiply_adds[-1]


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Show the learner's own model speaking: two translations, its steps, its tree."""
    best = translator.translate([text], beam_size=2, n_best=2)[0]
    rows: list[list[Label | float | int | None]] = [
        [rank, str(one), one.log_prob, one.score]
        for rank, one in enumerate((best, *best.alternatives), 1)
    ]
    return [
        Paragraph(
            LocalizedText(
                f"The two best translations of “{text}” that a beam of 2 finds in your model.",
                f"여러분의 모델에서 beam_size 2로 찾은 “{text}”의 번역 둘입니다.",
            )
        ),
        Table(
            [
                LocalizedText("rank", "순위"),
                LocalizedText("translation", "번역"),
                "log P",
                LocalizedText("score", "점수"),
            ],
            rows,
        ),
        step_frames(capture(translator, text, positions=False, neighbors=False)),
        ModelPlot("beam_tree", LocalizedText("the beam tree", "빔 탐색 나무")),
    ]


LESSON = Lesson(
    number=14,
    title=LocalizedText("Speaking", "말하기"),
    summary=LocalizedText(
        "How a translation comes out word by word, why a beam finds more, and what a cache saves.",
        "번역이 한 단어씩 나오는 과정과 빔 탐색이 더 잘 찾는 까닭, 캐시가 아끼는 계산을 봅니다.",
    ),
    paper="6.1",
    code=(
        CodeReference("attendo.decoding.search", "search"),
        CodeReference("attendo.decoding.beam", "BeamSearch"),
        CodeReference("attendo.decoding.hypothesis", "length_penalty"),
        CodeReference("attendo.model.kv_cache", "LayerCache"),
    ),
    inputs=(
        Number(
            name="beam_size",
            label=LocalizedText("beam_size", "빔 크기(beam_size)"),
            default=BEAM_SIZE,
            low=1,
            high=6,
        ),
        Number(
            name="alpha",
            label=LocalizedText("length penalty α", "길이 벌점 α"),
            default=ALPHA,
            low=0.0,
            high=2.0,
            step=0.1,
        ),
        Number(
            name="source_length",
            label=LocalizedText("source length (cache)", "원문 길이 (캐시)"),
            default=LENGTH,
            low=1,
            high=40,
        ),
        Number(
            name="target_length",
            label=LocalizedText("target length (cache)", "번역문 길이 (캐시)"),
            default=LENGTH,
            low=2,
            high=40,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "Which sentence does the search put first with beam_size 2?",
                "beam_size 2일 때 탐색이 첫째로 꼽는 문장은 무엇인가요?",
            ),
            _first_of_the_beam,
            LocalizedText(
                "Its beginning “i” was only second at the first step, but the beam kept it: 4/9 "
                "beats 3/9.",
                "첫 단계에서 “i”는 둘째였지만 빔에 남았습니다. 4/9가 3/9보다 큽니다.",
            ),
            choices=tuple((tgt, tgt) for tgt in CORPUS),
        ),
        Question(
            LocalizedText(
                "Source and target have 20 words each. How many keys of source words does a "
                "layer's cross-attention compute over the whole translation, with the cache?",
                "원문과 번역문이 20단어씩입니다. 캐시가 있으면 번역을 마칠 때까지 한 층의 교차 어텐션은 원문 단어의 "
                "키를 몇 개 계산하나요?",
            ),
            _vectors_with_cache,
            LocalizedText(
                "One for each source word, before the first step; without the cache 20 · 20.",
                "첫 단계 전에 원문 단어마다 하나씩입니다. 캐시가 없으면 20 · 20개입니다.",
            ),
        ),
        Question(
            LocalizedText(
                "How many times the work of the cached step is the 20th step without the cache "
                "(20 source words)?",
                "20번째 단계의 곱셈-덧셈은 캐시가 없으면 있을 때의 몇 배인가요? (원문 20단어)",
            ),
            _ratio_at_the_last_step,
            LocalizedText(
                "It computes 20 words in the place of one, and the source's keys and values again.",
                "단어 하나 대신 20개를 계산하고, 원문의 키와 값도 다시 계산하기 때문입니다.",
            ),
            tolerance=1.0,
        ),
    ),
    own_model_blocks=on_your_model,
)
