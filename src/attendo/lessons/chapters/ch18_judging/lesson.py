"""Lesson 18: judging translations; BLEU and chrF by hand, and how sure a score is."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from attendo.evaluation.bleu import bleu, chrf
from attendo.evaluation.metrics import UNSPACED_LANGUAGES, build_metrics
from attendo.evaluation.scores import compute_scores
from attendo.lessons.blocks import (
    Block,
    Chart,
    Formula,
    Frame,
    LocalizedText,
    Matrix,
    Note,
    Paragraph,
    Series,
    Steps,
    Table,
)
from attendo.lessons.chapters.ch18_judging.hand_scores import (
    brevity_penalty,
    count_ngrams,
    hand_bleu,
    hand_chrf,
    tokenize,
)
from attendo.lessons.chapters.ch18_judging.small_test_set import (
    ERROR_RATES,
    MAX_SENTENCES,
    NUM_SENTENCES,
    SIGNIFICANCE_LEVEL,
    SIZES,
    compare,
    make_test_set,
)
from attendo.lessons.inputs import Number, Text
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.lessons.own_model import DEFAULT_SENTENCES, REFERENCE_SEPARATOR
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from attendo.lessons.blocks import Label
    from attendo.lessons.chapters.ch18_judging.hand_scores import HandBleu, OrderCount
    from attendo.translator import Translator

    Rows = list[list[Label | float | int | None]]

prose = Prose("attendo.lessons.chapters.ch18_judging")

HYPOTHESIS = "the prince saved the princess from the tower"
REFERENCE = "the prince saved the princess from an old tower"
KOREAN_SOURCE = "어제 카페 갔었어 거기 사람 많더라"
RIGHT_TRANSLATIONS = (
    "Yesterday I went to the cafe, and there were many people there.",
    "I went to the cafe yesterday. There were a lot of people.",
    "I was at the cafe yesterday and it was crowded.",
)
KOREAN_HYPOTHESIS = "왕자가 어제 공주를 높은 탑에서 구했다."
KOREAN_REFERENCE = "왕자는 어제 공주를 높은 탑에서 구했습니다."
KOREAN_METRICS = ("bleu", "bleu-ko", "bleu-char", "chrf")
NUM_SHOWN = 5
REPETITION = ("the the the the the the the", "the cat is on the mat")
"""The classic example of the paper on BLEU (Papineni et al., 2002)."""
SHORT, LONG = 8, 10


class Pair(NamedTuple):
    """A translation that means the same as the reference, or not."""

    change: LocalizedText
    hypothesis: str
    is_right: bool


NEGATED_REFERENCE = "the prince did not save the princess from the tower"
PAIRS = (
    Pair(prose("pair-negation"), "the prince did save the princess from the tower", False),
    Pair(prose("pair-roles"), "the princess did not save the prince from the tower", False),
    Pair(prose("pair-word"), "the prince did not save the princess from the power", False),
    Pair(prose("pair-synonym"), "the prince failed to rescue the princess from the tower", True),
    Pair(prose("pair-passive"), "the princess was not saved from the tower by the prince", True),
)


def build_blocks(hypothesis: str, reference: str, korean: str, num_sentences: int) -> list[Block]:
    """Return BLEU and chrF by hand, what they miss, and how sure a score is."""
    return [
        *_several_right_ones(),
        *_bleu_section(hypothesis, reference),
        *_corpus_section(num_sentences),
        *_blind_spots(),
        *_chrf_section(hypothesis, reference),
        *_tokenization_section(korean),
        *_significance_section(num_sentences),
        Paragraph(prose("people")),
        Paragraph(prose("learned-metrics")),
        Note(prose("comparable")),
    ]


def _several_right_ones() -> list[Block]:
    scores = [
        [bleu([one], [other]).score for other in RIGHT_TRANSLATIONS] for one in RIGHT_TRANSLATIONS
    ]
    pairs = [(row, column) for row in range(3) for column in range(3) if row != column]
    names = [str(number) for number in range(1, len(RIGHT_TRANSLATIONS) + 1)]
    rows: Rows = [[name, text] for name, text in zip(names, RIGHT_TRANSLATIONS, strict=True)]
    return [
        Paragraph(prose("why")),
        Paragraph(prose("several-right", source=KOREAN_SOURCE)),
        Table([prose("number"), prose("translation")], rows),
        Matrix(prose("against-each-other"), scores, rows=names, columns=names, digits=1),
        Paragraph(
            prose(
                "no-ceiling",
                lowest=min(scores[row][column] for row, column in pairs),
                highest=max(scores[row][column] for row, column in pairs),
            )
        ),
    ]


def _bleu_section(hypothesis: str, reference: str) -> list[Block]:
    found = hand_bleu(hypothesis, reference)
    official = bleu([hypothesis], [reference])
    product = prod(one.precision for one in found.orders)
    return [
        Paragraph(prose("tokens")),
        Table(
            [prose("text"), prose("tokens-header"), prose("length")],
            [
                [prose("hypothesis"), " ".join(tokenize(hypothesis)), found.length],
                [prose("reference"), " ".join(tokenize(reference)), found.reference_length],
            ],
        ),
        Paragraph(prose("ngrams")),
        Steps(
            prose("ngram-steps"),
            [
                Frame(prose("order-title", order=one.order), [_ngram_table(one)])
                for one in found.orders
            ],
        ),
        Paragraph(prose("clipping", **_repetition())),
        _precision_table(found),
        *([Note(prose("smoothing"))] if _has_smoothing(found) else []),
        Paragraph(prose("brevity")),
        Formula("BP = min(1, exp(1 − r / c))"),
        Paragraph(
            prose(
                "brevity-here",
                length=found.length,
                reference_length=found.reference_length,
                penalty=found.brevity_penalty,
            )
        ),
        Paragraph(prose("geometric-mean")),
        Formula("BLEU = 100 · BP · (p₁ · p₂ · p₃ · p₄)^(1/4)"),
        Formula(f"p₁ · p₂ · p₃ · p₄ = {product:.4f}"),
        Formula(f"100 · {found.brevity_penalty:.4f} · {product:.4f}^(1/4) = {found.score:.2f}"),
        Paragraph(prose("as-sacrebleu", score=official.score, signature=f"`{official.signature}`")),
    ]


def _repetition() -> dict[str, str | int]:
    found = _count_repetition()
    return {
        "hypothesis": REPETITION[0],
        "reference": REPETITION[1],
        "total": found.total,
        "matches": found.matches,
    }


def _count_repetition() -> OrderCount:
    hypothesis, reference = REPETITION
    return count_ngrams(tokenize(hypothesis), tokenize(reference), order=1)


def _ngram_table(counted: OrderCount) -> Table:
    rows: Rows = [
        [" ".join(one.ngram), one.in_hypothesis, one.in_reference, one.clipped]
        for one in counted.ngrams
    ]
    return Table(
        [prose("ngram"), prose("in-hypothesis"), prose("in-reference"), prose("counted")], rows
    )


def _precision_table(found: HandBleu) -> Table:
    rows: Rows = [[one.order, one.matches, one.total, one.precision] for one in found.orders]
    return Table(
        ["n", prose("counted"), prose("in-hypothesis"), "pₙ"],
        rows,
        digits=4,
        title=prose("precisions"),
    )


def _has_smoothing(found: HandBleu) -> bool:
    return any(one.precision and not one.matches for one in found.orders)


def _corpus_section(num_sentences: int) -> list[Block]:
    test_set = make_test_set()
    outputs = test_set.outputs["A"][:num_sentences]
    references = test_set.references[:num_sentences]
    scores = [
        bleu([output], [reference]).score
        for output, reference in zip(outputs, references, strict=True)
    ]
    shown = list(zip(references, outputs, scores, strict=True))[:NUM_SHOWN]
    return [
        Paragraph(prose("test-set", rate=ERROR_RATES["A"])),
        Table(
            [prose("reference"), prose("system", name="A"), "BLEU"],
            [[reference, output, score] for reference, output, score in shown],
            digits=1,
        ),
        Paragraph(
            prose(
                "corpus",
                num_sentences=num_sentences,
                corpus=bleu(outputs, references).score,
                mean=sum(scores) / len(scores),
            )
        ),
    ]


def _blind_spots() -> list[Block]:
    scored = [
        (
            pair,
            bleu([pair.hypothesis], [NEGATED_REFERENCE]).score,
            chrf([pair.hypothesis], [NEGATED_REFERENCE]),
        )
        for pair in PAIRS
    ]
    rows: Rows = [
        [
            pair.hypothesis,
            _describe_meaning(pair),
            bleu_score,
            chrf_score,
        ]
        for pair, bleu_score, chrf_score in scored
    ]
    best_wrong = max(score for pair, score, _ in scored if not pair.is_right)
    worst_right = min(score for pair, score, _ in scored if pair.is_right)
    return [
        Paragraph(prose("blind-spots", reference=NEGATED_REFERENCE)),
        Table(
            [prose("hypothesis"), prose("meaning"), "BLEU", "chrF"],
            rows,
            digits=1,
        ),
        Paragraph(prose("blind-spots-seen", wrong=best_wrong, right=worst_right)),
    ]


def _describe_meaning(pair: Pair) -> LocalizedText:
    if pair.is_right:
        return prose("meaning-right", change=pair.change)
    return prose("meaning-wrong", change=pair.change)


def _chrf_section(hypothesis: str, reference: str) -> list[Block]:
    found = hand_chrf(hypothesis, reference)
    rows: Rows = [
        [
            one.order,
            one.matches,
            one.total,
            one.in_reference,
            one.precision,
            one.matches / one.in_reference if one.in_reference else 0.0,
        ]
        for one in found.orders
    ]
    return [
        Paragraph(prose("chrf")),
        Table(
            ["n", prose("counted"), prose("in-hypothesis"), prose("in-reference"), "P", "R"],
            rows,
            digits=4,
            title=prose("chrf-counts"),
        ),
        Formula("chrF = 100 · (1 + 2²) · P · R / (2² · P + R)"),
        Formula(f"P = {found.precision:.4f}, R = {found.recall:.4f}: {found.score:.2f}"),
        Paragraph(prose("chrf-result", score=chrf([hypothesis], [reference]))),
    ]


def _tokenization_section(korean: str) -> list[Block]:
    keys, skipped = _korean_metrics()
    scores = compute_scores([korean], [KOREAN_REFERENCE], requested=keys, lang="ko", num_samples=0)
    metrics = build_metrics([KOREAN_REFERENCE], requested=keys, lang="ko").selected
    rows: Rows = [
        [score.name, _show_units(metric.sacrebleu_metric, korean), score.value]
        for score, metric in zip(scores, metrics, strict=True)
    ]
    return [
        Paragraph(prose("chrf-and-korean")),
        Table([prose("metric"), prose("units", text=korean), prose("score")], rows, digits=1),
        *([Paragraph(prose("no-mecab"))] if skipped else []),
        Paragraph(prose("tokenization", hypothesis=korean, reference=KOREAN_REFERENCE)),
    ]


def _korean_metrics() -> tuple[list[str], list[str]]:
    """Return those of the metrics that can be computed here, and those that cannot."""
    available = {one.key for one in build_metrics([KOREAN_REFERENCE], lang="ko").selected}
    return (
        [key for key in KOREAN_METRICS if key in available],
        [key for key in KOREAN_METRICS if key not in available],
    )


def _show_units(sacrebleu_metric: object, text: str) -> Label:
    """Return a text in the units that a metric compares."""
    tokenizer = getattr(sacrebleu_metric, "tokenizer", None)
    if tokenizer is None:
        return prose("character-ngrams")
    return " | ".join(tokenizer(text).split())


def _significance_section(num_sentences: int) -> list[Block]:
    found = compare(num_sentences)
    by_size = [compare(size) for size in SIZES]
    rows: Rows = [
        [prose("system", name=name), one.score, one.interval.low, one.interval.high]
        for name, one in found.scores.items()
    ]
    difference = found.difference_interval
    rows.append([prose("difference"), found.difference, difference.low, difference.high])
    is_clear = found.p_value < SIGNIFICANCE_LEVEL
    return [
        Paragraph(prose("bootstrap", num_sentences=num_sentences)),
        Table(
            ["", "BLEU", prose("low"), prose("high")], rows, digits=1, title=prose("two-systems")
        ),
        Paragraph(
            prose(
                "paired",
                p_value=found.p_value,
                verdict=prose("verdict-clear") if is_clear else prose("verdict-unclear"),
            )
        ),
        Chart(
            "lines",
            prose("difference-by-size"),
            [float(size) for size in SIZES],
            [
                Series(prose("high"), [one.difference_interval.high for one in by_size]),
                Series(prose("difference"), [one.difference for one in by_size]),
                Series(prose("low"), [one.difference_interval.low for one in by_size]),
            ],
            x_label=prose("num-sentences"),
            y_label="BLEU",
        ),
        Table(
            [prose("num-sentences"), prose("difference"), "p"],
            [[size, one.difference, one.p_value] for size, one in zip(SIZES, by_size, strict=True)],
            title=prose("p-by-size"),
        ),
        Paragraph(
            prose(
                "more-sentences",
                few=SIZES[0],
                many=SIZES[-1],
                rate_a=ERROR_RATES["A"],
                rate_b=ERROR_RATES["B"],
                first=by_size[0].difference,
                last=by_size[-1].difference,
            )
        ),
    ]


def own_model_blocks(
    translator: Translator, text: str, reference: str | None = None
) -> list[Block]:
    """Return the scores of the learner's own model: on dev, and of one sentence."""
    return [*_dev_scores(translator), *_sentence_scores(translator, text, reference)]


def _dev_scores(translator: Translator) -> list[Block]:
    dev = translator.about.get("dev") or {}
    if "bleu" not in dev:
        return [Paragraph(prose("own-no-report"))]
    names = {"bleu": "BLEU", "chrf": "chrF"}
    rows: Rows = [[name, float(dev[key])] for key, name in names.items() if key in dev]
    return [
        Paragraph(
            prose(
                "own-dev",
                num_sentences=dev.get("bleu_sentences", "?"),
                signature=f"`{dev.get('bleu_signature', '?')}`",
            )
        ),
        Table([prose("metric"), prose("own-dev-score")], rows, digits=2),
    ]


def _sentence_scores(translator: Translator, text: str, reference: str | None) -> list[Block]:
    lang = translator.about.get("tgt_lang")
    known = {
        DEFAULT_SENTENCES[one]: DEFAULT_SENTENCES[other]
        for one, other in (("ko", "en"), ("en", "ko"))
    }
    reference = reference or known.get(text)
    how = Paragraph(prose("own-how", separator=f"`{REFERENCE_SEPARATOR.strip()}`"))
    if reference is None:
        return [Paragraph(prose("own-no-reference")), how]
    best = translator.translate([text], beam_size=4, n_best=4)[0]
    keys = ["bleu-char" if lang in UNSPACED_LANGUAGES else "bleu", "chrf"]
    rows: Rows = [
        [str(one), one.log_prob, *_score_all(str(one), reference, keys)]
        for one in (best, *best.alternatives)
    ]
    names = [one.name for one in build_metrics([reference], requested=keys).selected]
    return [
        Paragraph(prose("own-sentence", reference=reference)),
        Table([prose("translation"), "log P", *names], rows, digits=2),
        how,
    ]


def _score_all(output: str, reference: str, keys: list[str]) -> list[float]:
    scores = compute_scores([output], [reference], requested=keys, num_samples=0)
    return [one.value for one in scores]


def _clipped_precision() -> float:
    return _count_repetition().precision


def _verdict_at_default() -> str:
    return "clear" if compare(NUM_SENTENCES).p_value < SIGNIFICANCE_LEVEL else "unclear"


LESSON = Lesson(
    number=18,
    title=prose("title"),
    summary=prose("summary"),
    paper="6.1",
    code=(
        CodeReference("attendo.evaluation.bleu", "bleu"),
        CodeReference("attendo.evaluation.metrics", "build_metrics"),
        CodeReference("attendo.evaluation.bootstrap", "bootstrap_scores"),
        CodeReference("attendo.evaluation.scores", "compare_systems"),
    ),
    inputs=(
        Text(name="hypothesis", label=prose("input-hypothesis"), default=HYPOTHESIS),
        Text(name="reference", label=prose("input-reference"), default=REFERENCE),
        Text(name="korean", label=prose("input-korean"), default=KOREAN_HYPOTHESIS),
        Number(
            name="num_sentences",
            label=prose("input-num-sentences"),
            default=NUM_SENTENCES,
            low=5,
            high=MAX_SENTENCES,
        ),
    ),
    build_blocks=build_blocks,
    questions=(
        Question(
            prose("question-1", hypothesis=REPETITION[0], reference=REPETITION[1]),
            _clipped_precision,
            prose("explanation-1"),
            hints=(prose("hint-1-1"), prose("hint-1-2")),
            tolerance=0.005,
        ),
        Question(
            prose("question-2", short=SHORT, long=LONG),
            lambda: brevity_penalty(SHORT, LONG),
            prose("explanation-2"),
            hints=(prose("hint-2-1"), prose("hint-2-2")),
            tolerance=0.005,
        ),
        Question(
            prose("question-3", num_sentences=NUM_SENTENCES),
            _verdict_at_default,
            prose("explanation-3"),
            hints=(prose("hint-3-1"), prose("hint-3-2")),
            choices=(
                ("clear", prose("choice-clear")),
                ("unclear", prose("choice-unclear")),
                ("equal", prose("choice-equal")),
            ),
        ),
    ),
    own_model_blocks=own_model_blocks,
    takes_reference=True,
)
