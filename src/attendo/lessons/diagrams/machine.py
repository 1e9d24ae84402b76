"""The whole machine on one drawing: the map of the lessons.

Figure 1 of the paper, with every residual connection, and with the numbers of the lessons that
explain each part. Wide, data flows upwards in two columns, as in the paper; narrow, it flows
downwards in one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from rich.cells import cell_len

from attendo.lessons.blocks import LANGUAGES, Block, LocalizedText
from attendo.lessons.diagrams.shapes import Box, Diagram, Line, Shape, Words, arrow
from attendo.lessons.prose import Prose

if TYPE_CHECKING:
    from collections.abc import Sequence

    from attendo.lessons.blocks import Lang
    from attendo.lessons.diagrams.shapes import Anchor, Part

prose = Prose("attendo.lessons.diagrams")


class Stage(NamedTuple):
    """A part of the machine, the lessons that explain it, and the sub-layer that it closes."""

    name: str
    part: Part
    lessons: tuple[int, ...]
    around: int = 0
    """How many boxes below the residual connection starts that ends here."""
    in_layer: bool = True

    @property
    def key(self) -> str:
        """Its name in the texts: parts of the same kind share one."""
        shared = ("embedding", "positions", "feed_forward", "add")
        name = next((one for one in shared if self.name.endswith(one)), self.name)
        return name.replace("_", "-")

    @property
    def label(self) -> LocalizedText:
        """What the box says."""
        return prose(f"stage-{self.key}")

    @property
    def about(self) -> LocalizedText:
        """What the part does, in one sentence or two."""
        return prose(f"about-{self.key}")


ENCODER = (
    Stage("src_embedding", "input", (2,), in_layer=False),
    Stage("src_positions", "input", (3,), in_layer=False),
    Stage("encoder_self", "attention", (4, 5, 6)),
    Stage("encoder_self_add", "norm", (8, 9), around=1),
    Stage("encoder_feed_forward", "feed", (10,)),
    Stage("encoder_feed_forward_add", "norm", (8, 9), around=1),
)
DECODER = (
    Stage("tgt_embedding", "input", (2,), in_layer=False),
    Stage("tgt_positions", "input", (3,), in_layer=False),
    Stage("decoder_self", "attention", (7,)),
    Stage("decoder_self_add", "norm", (8, 9), around=1),
    Stage("cross", "cross", (1, 11)),
    Stage("cross_add", "norm", (8, 9), around=1),
    Stage("decoder_feed_forward", "feed", (10,)),
    Stage("decoder_feed_forward_add", "norm", (8, 9), around=1),
    Stage("linear", "output", (12,), in_layer=False),
    Stage("softmax", "output", (12,), in_layer=False),
    Stage("search", "output", (14,), in_layer=False),
)
STAGES = (*ENCODER, *DECODER)
"""In the order of the data flow."""
CROSS = 4
"""Where the decoder reads the encoder's output."""

BOX_WIDTH, BOX_HEIGHT, PITCH = 190.0, 32.0, 50.0
FRAME_GAP = 20.0
"""A wider gap where a stack of layers begins or ends."""
DETOUR = 22.0
"""How far outside of its box a residual connection passes."""


@dataclass(frozen=True)
class Machine(Block):
    """The drawing in two shapes; the page fills it with the numbers of a model."""

    kind: ClassVar[str] = "machine"
    title: LocalizedText
    wide: Diagram
    narrow: Diagram
    stages: tuple[Stage, ...] = STAGES
    is_map: bool = False
    """Whether the parts only lead to their lessons."""

    def to_dict(self, lang: Lang) -> dict[str, Any]:
        """Return the drawings and the stages as JSON in one language."""
        return {
            "kind": self.kind,
            "title": self.title.localize(lang),
            "is_map": self.is_map,
            "wide": self.wide.to_dict(lang),
            "narrow": self.narrow.to_dict(lang),
            "stages": [
                {
                    "name": one.name,
                    "label": one.label.localize(lang),
                    "about": one.about.localize(lang),
                    "lessons": list(one.lessons),
                }
                for one in self.stages
            ],
        }


class Column(NamedTuple):
    """Where one of the two stacks is drawn, and in which direction its data flows."""

    stages: Sequence[Stage]
    x: float
    start: float
    """The edge of the first box where data comes in."""
    direction: int
    """1 downwards, -1 upwards."""
    side: int
    """Where residual connections pass: -1 left, 1 right."""

    @property
    def center(self) -> float:
        """The middle of the boxes."""
        return self.x + BOX_WIDTH / 2

    def entry(self, index: int) -> float:
        """Return the edge of a box where data comes in."""
        jumps = sum(
            self.stages[row].in_layer != self.stages[row - 1].in_layer
            for row in range(1, index + 1)
        )
        return self.start + self.direction * (index * PITCH + jumps * FRAME_GAP)

    def exit(self, index: int) -> float:
        """Return the edge of a box where data goes out."""
        return self.entry(index) + self.direction * BOX_HEIGHT

    def middle(self, index: int) -> float:
        """Return the middle of a box."""
        return (self.entry(index) + self.exit(index)) / 2

    @property
    def end(self) -> float:
        """Where data goes out of the last box."""
        return self.exit(len(self.stages) - 1)

    def shapes(self) -> list[Shape]:
        """Return frame, boxes, arrows and residual connections."""
        shapes: list[Shape] = [self._frame()]
        for index, stage in enumerate(self.stages):
            before = self.exit(index - 1) if index else self.start - self.direction * 26
            shapes.append(
                arrow((self.center, before), (self.center, self.entry(index)), stage=stage.name)
            )
            if stage.around:
                shapes.append(self._residual(index, stage))
        for index, stage in enumerate(self.stages):
            shapes.append(
                Box(
                    x=self.x,
                    y=min(self.entry(index), self.exit(index)),
                    width=BOX_WIDTH,
                    height=BOX_HEIGHT,
                    text=stage.label,
                    part=stage.part,
                    stage=stage.name,
                    lessons=stage.lessons,
                )
            )
        return shapes

    def _residual(self, index: int, stage: Stage) -> Line:
        below = index - stage.around
        start = self.entry(below) - self.direction * 9
        edge = self.x if self.side < 0 else self.x + BOX_WIDTH
        outside = edge + self.side * DETOUR
        middle = self.middle(index)
        return arrow(
            (self.center, start),
            (outside, start),
            (outside, middle),
            (edge, middle),
            style="residual",
            stage=stage.name,
        )

    def _frame(self) -> Box:
        rows = [index for index, stage in enumerate(self.stages) if stage.in_layer]
        edges = [
            self.entry(rows[0]) - self.direction * 17,
            self.exit(rows[-1]) + self.direction * 8,
        ]
        left = self.x - (DETOUR + 8 if self.side < 0 else 10)
        width = BOX_WIDTH + DETOUR + 18
        return Box(
            x=left,
            y=min(edges),
            width=width,
            height=max(edges) - min(edges),
            part="frame",
            round=10,
        )

    def layer_label(self, role: str) -> Words:
        """Return how many layers there are, next to where the stack ends."""
        frame = self._frame()
        y = frame.y - 6 if self.direction < 0 else frame.y + frame.height + 15
        is_left = self.side > 0
        x = frame.x + 2 if is_left else frame.x + frame.width - 2
        anchor: Anchor = "start" if is_left else "end"
        return Words(
            x=x, y=y, text=prose("layers"), anchor=anchor, style="muted", size=11, role=role
        )


def draw_machine() -> Machine:
    """Return both drawings of the machine."""
    return Machine(prose("machine-title"), _draw_wide(), _draw_narrow())


def describe_page(machine: Machine, lang: Lang) -> dict[str, Any]:
    """Return the drawings and the stages as JSON for a page without lessons."""
    described = machine.to_dict(lang)
    for drawing in (described["wide"], described["narrow"]):
        drawing["about"] = prose("machine-about-page").localize(lang)
        for shape in drawing["shapes"]:
            if "lessons" in shape:
                shape["lessons"] = []
    for stage in described["stages"]:
        stage["lessons"] = []
    return described


def _draw_wide() -> Diagram:
    height = 690.0
    encoder = Column(ENCODER, 44.0, height - 62, -1, -1)
    decoder = Column(DECODER, 352.0, height - 62, -1, 1)
    bend = 288.0
    top = encoder.end - 36
    memory = arrow(
        (encoder.center, encoder.end),
        (encoder.center, top),
        (bend, top),
        (bend, decoder.middle(CROSS)),
        (decoder.x, decoder.middle(CROSS)),
        style="memory",
        stage="cross",
    )
    feedback = 596.0
    back = arrow(
        (decoder.center, decoder.end - 30),
        (feedback, decoder.end - 30),
        (feedback, height - 26),
        (decoder.x + BOX_WIDTH + 4, height - 26),
        style="dashed",
        stage="tgt_embedding",
    )
    shapes = [
        *encoder.shapes(),
        *decoder.shapes(),
        memory,
        back,
        *_words(encoder, decoder),
        Words(
            x=encoder.x, y=top - 8, text=prose("memory"), anchor="start", style="memory", size=11
        ),
    ]
    return Diagram(prose("machine-title"), 612.0, height, shapes, about=prose("machine-about"))


def _draw_narrow() -> Diagram:
    encoder = Column(ENCODER, 78.0, 66.0, 1, 1)
    decoder = Column(DECODER, 78.0, encoder.end + 160, 1, 1)
    left = 44.0
    memory = arrow(
        (encoder.center, encoder.end),
        (encoder.center, encoder.end + 36),
        (left, encoder.end + 36),
        (left, decoder.middle(CROSS)),
        (decoder.x, decoder.middle(CROSS)),
        style="memory",
        stage="cross",
    )
    height = decoder.end + 66
    feedback = 322.0
    top = decoder.start - 34
    back = arrow(
        (decoder.center, decoder.end + 30),
        (feedback, decoder.end + 30),
        (feedback, top),
        (decoder.x + BOX_WIDTH + 4, top),
        style="dashed",
        stage="tgt_embedding",
    )
    label = Words(
        x=left + 8,
        y=encoder.end + 54,
        text=prose("memory"),
        anchor="start",
        style="memory",
        size=11,
    )
    shapes = [*encoder.shapes(), *decoder.shapes(), memory, back, *_words(encoder, decoder), label]
    return Diagram(prose("machine-title"), 336.0, height, shapes, about=prose("machine-about"))


def _words(encoder: Column, decoder: Column) -> list[Shape]:
    """Return the words that go in and come out, and the names of both stacks."""
    is_up = encoder.direction < 0

    def before(column: Column) -> float:
        return column.start + 40 if is_up else column.start - 30

    return [
        Words(x=encoder.center, y=before(encoder), text=prose("source"), role="source"),
        Words(x=decoder.center, y=before(decoder), text=prose("written"), role="written"),
        arrow(
            (decoder.center, decoder.end),
            (decoder.center, decoder.end + decoder.direction * 30),
            stage="output",
        ),
        Words(
            x=decoder.center,
            y=decoder.end - 38 if is_up else decoder.end + 46,
            text=prose("next-word"),
            style="strong",
            role="next",
        ),
        *(
            Words(
                x=column.center,
                y=before(column) + (16 if is_up else -17),
                text=name,
                style="muted",
                size=11,
            )
            for column, name in ((encoder, prose("encoder")), (decoder, prose("decoder")))
        ),
        encoder.layer_label("encoder-layers"),
        decoder.layer_label("decoder-layers"),
    ]


TEXT_WIDTH = 31
GAP = 8


def machine_text() -> LocalizedText:
    """Return the drawing for a terminal: two columns, with the numbers of the lessons."""
    english, korean = (_machine_text(lang) for lang in LANGUAGES)
    return LocalizedText(english, korean)


def _machine_text(lang: Lang) -> str:
    left = _text_column(ENCODER, prose("encoder"), prose("source"), lang)
    right = _text_column(DECODER, prose("decoder"), prose("written"), lang)
    blank = " " * TEXT_WIDTH
    left = [blank] * (len(right) - len(left)) + left
    cross = len(right) - 1 - (CROSS + 3)  # below are also the words, the border and the frame
    lines = []
    for row, (one, other) in enumerate(zip(left, right, strict=True)):
        gap = " " * GAP
        if row == cross - 1:
            gap = "────┐".ljust(GAP)
        elif row == cross:
            gap = "    └──→"
        lines.append((one + gap + other).rstrip())
    return "\n".join(lines)


def _text_column(
    stages: Sequence[Stage], name: LocalizedText, words: LocalizedText, lang: Lang
) -> list[str]:
    """Return the lines of one stack, the last box first."""
    inner = TEXT_WIDTH - 2
    lines = ["┌" + "─" * inner + "┐"]
    previous: Stage | None = None
    for stage in reversed(stages):
        if stage.in_layer and (previous is None or not previous.in_layer):
            title = f"─ N × {name.localize(lang)} "
            border = title + "─" * (inner - cell_len(title))
            lines = [*lines, f"├{border}┤"] if previous else [f"┌{border}┐"]
        elif previous is not None and previous.in_layer and not stage.in_layer:
            lines.append("├" + "─" * inner + "┤")
        numbers = " ".join(map(str, stage.lessons))
        label = stage.label.localize(lang)
        space = " " * (inner - 2 - cell_len(label) - len(numbers))
        lines.append(f"│ {label}{space}{numbers} │")
        previous = stage
    text = words.localize(lang)
    below = " " * ((TEXT_WIDTH - cell_len(text)) // 2) + text
    return [*lines, "└" + "─" * inner + "┘", below + " " * (TEXT_WIDTH - cell_len(below))]
