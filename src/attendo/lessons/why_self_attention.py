"""Lesson 15: why self-attention. What a layer costs, how long it waits, how far it sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from attendo.lessons.inputs import Number, Switch
from attendo.lessons.layer_costs import (
    APART,
    FORMULAS,
    NAMES,
    SEEN_WORDS,
    TIMED,
    TIMED_SIZE,
    D,
    K,
    R,
    count_filters,
    count_operations,
    find_crossing,
    find_paths,
    find_sight,
    find_waiting,
    measure_times,
    operations_curve,
    time_curve,
)
from attendo.lessons.lesson import CodeReference, Lesson, Question
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from attendo.translator import Translator

N = 70
MOST_WORDS = 27
"""Paths are found on at most so many words: they do not depend on what the words are."""


def tell(n: int, d: int, k: int, r: int, measure: bool) -> list[Block]:
    """Tell what a layer costs, how long it waits, how far it sees, what a clock says."""
    return [
        *_tell_operations(n, d, k, r),
        *_tell_paths(n, k, r),
        *_tell_sight(k),
        *(_tell_times() if measure else []),
    ]


def _tell_operations(n: int, d: int, k: int, r: int) -> list[Block]:
    crossings = {kind: find_crossing(kind, d, k, r) for kind in NAMES if kind != "attention"}
    return [
        Paragraph(
            LocalizedText(
                "Four kinds of layer can turn n words of d numbers into n others. Which should one "
                "take? The paper asks three things: how many **operations**, how many steps that "
                "must **wait** for one another, and how long the **path** between two words is.",
                "숫자 d개짜리 단어 n개를 다른 n개로 바꾸는 층에는 네 가지가 있습니다. 무엇을 써야 할까요? 논문은 세 "
                "가지를 묻습니다. **연산**이 몇 번인지, 서로 **기다려야** 하는 단계가 몇 개인지, 두 단어 사이의 **길**이 "
                "얼마나 긴지입니다.",
            )
        ),
        Table(
            [
                LocalizedText("layer", "층"),
                LocalizedText("operations", "연산"),
                LocalizedText(f"n = {n}, d = {d}", f"n = {n}, d = {d}일 때"),
                LocalizedText("as much as self-attention at", "셀프 어텐션과 같아지는 곳"),
            ],
            [
                [
                    name,
                    FORMULAS[kind][0],
                    count_operations(kind, n, d, k, r),
                    f"n = {crossings[kind]:,}" if kind in crossings else None,
                ]
                for kind, name in NAMES.items()
            ],
        ),
        Paragraph(
            LocalizedText(
                "**Self-attention** compares all pairs, n², at d products each. A **recurrent** "
                "layer multiplies each word by a matrix, d². So up to n = d self-attention does "
                "less, and sentences are shorter than {d:,}. Attention **restricted** to r = {r} "
                "neighbours grows with n only.",
                "**셀프 어텐션(self-attention)**은 모든 쌍 n²개를 곱셈 d번씩으로 비교합니다. **순환** 층은 단어마다 "
                "행렬을 곱하므로 d²번입니다. 그래서 n = d까지는 셀프 어텐션이 덜 계산하고, 문장은 대개 {d:,}단어보다 짧습니다. "
                "이웃 r = {r}개로 **제한된** 어텐션은 n에만 비례해 늘어납니다.",
            ).format(d=d, r=r)
            if n < d
            else LocalizedText(
                "**Self-attention** compares all pairs, n², at d products each; a **recurrent** "
                "layer multiplies each word by a matrix, d². At n = {n:,} and d = {d:,} the text "
                "is so long that all pairs cost as much or more: then attention **restricted** to "
                "r = {r} neighbours helps, which grows with n only.",
                "**셀프 어텐션(self-attention)**은 모든 쌍 n²개를 곱셈 d번씩으로 비교하고, **순환** 층은 단어마다 행렬을 "
                "곱하므로 d²번입니다. n = {n:,}, d = {d:,}이면 글이 길어서 모든 쌍을 비교하는 쪽이 같거나 더 "
                "비쌉니다. 이럴 때는 이웃 r = {r}개로 **제한된** 어텐션이 도움이 됩니다. n에만 비례해 늘어나기 때문입니다.",
            ).format(n=n, d=d, r=r)
        ),
        Formula("n · n · d  :  n · d · d  =  n : d"),
        operations_curve(d, k, r),
    ]


def _tell_paths(n: int, k: int, r: int) -> list[Block]:
    size = min(n, MOST_WORDS)
    paths, waiting = find_paths(size, k, r), find_waiting(size)
    rows: list[list[Any]] = [
        [name, FORMULAS[kind][1], waiting[kind], FORMULAS[kind][2], paths[kind]]
        for kind, name in NAMES.items()
    ]
    plain = LocalizedText("convolution without gaps", "간격 없는 합성곱")
    rows.insert(3, [plain, "1", waiting["convolution"], "n / k", paths["plain"]])
    return [
        Paragraph(
            LocalizedText(
                "Now the rest, found for {size} words and not looked up: a gradient is sent from "
                "the last word back to the first, and we count the layers or states it passes.",
                "나머지는 표에서 옮기지 않고, 단어 {size}개로 직접 알아보았습니다. 마지막 단어에서 첫 단어로 "
                "기울기(gradient)를 보내고, 지나가는 층이나 상태의 수를 셉니다.",
            ).format(size=size)
        ),
        Table(
            [
                LocalizedText("layer", "층"),
                LocalizedText("waiting", "기다림"),
                LocalizedText("found", "찾은 값"),
                LocalizedText("longest path", "가장 긴 길"),
                LocalizedText("found", "찾은 값"),
            ],
            rows,
        ),
        Paragraph(
            LocalizedText(
                "The formulas tell how it grows; the exact count depends on how a layer is built. "
                "Here filters look back, and those of “convolution” leave gaps that grow k-fold "
                "from layer to layer. A recurrent layer cannot compute word {size} before word "
                "{before}: no machine, however parallel, shortens that.",
                "공식은 어떻게 늘어나는지를 말해 주고, 정확한 수는 층을 어떻게 만드느냐에 달렸습니다. 여기서 필터는 앞쪽을 "
                "보고, ‘합성곱’ 행은 층마다 간격을 k배씩 넓힙니다. 순환 층은 {before}번째 단어를 계산하기 전에는 {size}번째 "
                "단어를 계산할 수 없습니다. 아무리 병렬로 돌려도 이것은 줄지 않습니다.",
            ).format(size=size, before=size - 1)
        ),
    ]


def _tell_sight(k: int) -> list[Block]:
    sight = find_sight(k)
    middle = SEEN_WORDS // 2
    places = [str(place) for place in range(1, SEEN_WORDS + 1)]
    is_seen, needed = bool(sight[middle, middle - APART]), count_filters(k)
    return [
        Paragraph(
            LocalizedText(
                f"Which words (columns) does each word (row) see through one filter of width {k}? "
                f"Word {middle + 1} sees {int(sight[middle].sum())} words, and the one "
                f"{APART} places before it is {'among them' if is_seen else '**not** among them'}: "
                f"{needed} such {'layer is' if needed == 1 else 'layers are'} needed. In "
                f"self-attention {int(find_sight().sum())} of {sight.numel()} fields are 1, in the "
                "first layer.",
                f"폭이 {k}인 필터 하나로 각 단어(행)는 어느 단어(열)를 볼까요? {middle + 1}번 단어는 "
                f"{int(sight[middle].sum())}개를 보고, {APART}칸 앞의 단어는 그 안에 "
                f"{'있습니다' if is_seen else '**없습니다**'}. 그 단어를 보려면 이런 층이 {needed}개 필요합니다. 셀프 "
                f"어텐션에서는 첫 층에서 이미 {sight.numel()}칸 중 {int(find_sight().sum())}칸이 1입니다.",
            )
        ),
        Matrix(
            LocalizedText("sees", "본다"),
            sight.int().tolist(),
            rows=places,
            columns=places,
            shade=True,
        ),
    ]


def _tell_times() -> list[Block]:
    times = measure_times()
    longest = TIMED[-1]
    ratio = times["attention"][-1] / times["attention"][-2]
    rival = times["recurrent"][-1] / times["recurrent"][-2]
    own, other = (
        count_operations(kind, longest, TIMED_SIZE) / count_operations(kind, TIMED[-2], TIMED_SIZE)
        for kind in ("attention", "recurrent")
    )
    return [
        Paragraph(
            LocalizedText(
                f"And the clock? Measured on this machine: from n = {TIMED[-2]} to {longest} the "
                f"time of self-attention grew {ratio:.1f}-fold and that of the recurrent layer "
                f"{rival:.1f}-fold; by the table it would be {own:g} and {other:g}. Operations are not seconds: "
                "the table leaves out the matrices around them and what it costs to start, and a "
                "machine with many cores gains only where nothing has to wait. "
                "`python -m benchmarks.why_self_attention` measures longer texts, a GPU too.",
                f"시계는 뭐라고 할까요? 이 컴퓨터에서 재어 보니 n이 {TIMED[-2]}에서 {longest}로 늘 때 셀프 어텐션의 시간은 "
                f"{ratio:.1f}배, 순환 층의 시간은 {rival:.1f}배가 되었습니다. 표대로라면 {own:g}배와 {other:g}배입니다. 연산 수가 곧 "
                "시간은 아닙니다. 표에는 앞뒤의 행렬 곱이나 시작하는 데 드는 시간이 빠져 있고, 코어가 많은 컴퓨터는 "
                "기다릴 것이 없는 곳에서만 빨라집니다. 더 긴 글과 GPU는 `python -m benchmarks.why_self_attention`으로 "
                "잴 수 있습니다.",
            )
        ),
        time_curve(),
        Table(
            ["n", *NAMES.values()],
            [[n, *(times[kind][place] for kind in NAMES)] for place, n in enumerate(TIMED)],
            title=LocalizedText("milliseconds", "밀리초"),
        ),
    ]


def on_your_model(translator: Translator, text: str) -> list[Block]:
    """Count for the learner's own sentence and width, and show who sees whom."""
    n = len(translator.tokenizer.encode_src([text])[0])
    config = getattr(translator.model, "config", None)
    d = D if config is None else config.d_model
    blocks: list[Block] = [
        Paragraph(
            LocalizedText(
                f"“{text}” has {n} pieces and your model {d} numbers a piece. One layer of each "
                "kind would do so many operations:",
                f"“{text}”는 조각이 {n}개이고, 여러분의 모델은 조각마다 숫자가 {d}개입니다. 층 하나의 연산 수는 종류별로 "
                "이렇습니다.",
            )
        ),
        Table(
            [LocalizedText("layer", "층"), LocalizedText("operations", "연산")],
            [[name, count_operations(kind, n, d)] for kind, name in NAMES.items()],
        ),
    ]
    if isinstance(translator.model, Transformer):
        caption = LocalizedText(
            "who looks at whom in your encoder", "여러분의 인코더에서 누가 누구를 보나"
        )
        return [*blocks, ModelPlot("all_heads", caption, {"kind": "encoder_self"})]
    note = LocalizedText(
        "Your model is no single Transformer: its encoder has no self-attention to draw.",
        "여러분의 모델은 트랜스포머 하나가 아니어서, 그릴 인코더의 셀프 어텐션이 없습니다.",
    )
    return [*blocks, Note(note)]


def _fewest_operations() -> str:
    kinds = ("attention", "recurrent", "convolution")
    return min(kinds, key=lambda kind: count_operations(kind, 30, 512))


LESSON = Lesson(
    number=15,
    title=LocalizedText("Why self-attention", "왜 셀프 어텐션인가"),
    summary=LocalizedText(
        "What a layer costs, how long it waits and how far it sees, for four kinds of layer.",
        "네 가지 층이 얼마나 계산하고, 얼마나 기다리고, 얼마나 멀리 보는지 비교합니다.",
    ),
    paper="4",
    code=(
        CodeReference("attendo.inspection.receptive_field", "find_reach"),
        CodeReference("attendo.inspection.receptive_field", "count_layers"),
        CodeReference("attendo.model.fast.local_attention", "local_attention"),
    ),
    inputs=(
        Number(
            name="n", label=LocalizedText("n, words", "n, 단어 수"), default=N, low=2, high=4096
        ),
        Number(
            name="d",
            label=LocalizedText("d, numbers a word", "d, 단어마다 숫자 몇 개"),
            default=D,
            low=8,
            high=1024,
        ),
        Number(
            name="k",
            label=LocalizedText("k, width of the filter", "k, 필터의 폭"),
            default=K,
            low=3,
            high=9,
        ),
        Number(
            name="r",
            label=LocalizedText(
                "r, neighbours of restricted attention", "r, 제한된 어텐션의 이웃 수"
            ),
            default=R,
            low=2,
            high=512,
        ),
        Switch(
            name="measure",
            label=LocalizedText("measure on this machine", "이 컴퓨터에서 재기"),
            default=True,
        ),
    ),
    build_blocks=tell,
    questions=(
        Question(
            LocalizedText(
                "With d = 512 and sentences of 30 words, which layer does the fewest operations?",
                "d = 512이고 문장이 30단어일 때, 연산이 가장 적은 층은 무엇인가요?",
            ),
            _fewest_operations,
            LocalizedText(
                "n² · d against n · d² and k · n · d²: n is far below d. Set n to 30 and see.",
                "n² · d를 n · d², k · n · d²와 비교합니다. n이 d보다 훨씬 작습니다. n을 30으로 바꿔 확인해 보세요.",
            ),
            choices=tuple(
                (kind, NAMES[kind]) for kind in ("attention", "recurrent", "convolution")
            ),
        ),
        Question(
            LocalizedText(
                "How many filters of width 3, around each word and without gaps, must lie upon "
                "each other to see a word four places away?",
                "단어를 가운데 두고 간격이 없는 폭 3짜리 필터를 몇 층 쌓아야 네 칸 떨어진 단어를 볼 수 있나요?",
            ),
            lambda: float(count_filters(3)),
            LocalizedText(
                "Each layer carries a word by one place to either side.",
                "층마다 단어가 양옆으로 한 칸씩 전해집니다.",
            ),
        ),
        Question(
            LocalizedText(
                "At d = 1024, from how many words on does self-attention do as many operations as "
                "a recurrent layer?",
                "d = 1024이면 단어가 몇 개일 때부터 셀프 어텐션의 연산 수가 순환 층만큼 되나요?",
            ),
            lambda: float(find_crossing("recurrent", 1024)),
            LocalizedText(
                "n² · d = n · d² where n = d.", "n² · d = n · d²가 되는 곳은 n = d입니다."
            ),
        ),
    ),
    own_model_blocks=on_your_model,
)
