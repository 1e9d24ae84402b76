"""All pictures of a model and a sentence, by name: list them, make one, draw them into files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from attendo.core.errors import AttendoError, ConfigError, InputError, suggest
from attendo.core.files import write_atomically
from attendo.inspection.plots import attending, beam, findings, heads, machine, saying, vectors
from attendo.inspection.plots.canvas import SUFFIXES, check_suffix, render
from attendo.inspection.plots.fonts import set_fonts
from attendo.inspection.plots.phrases import KOREAN
from attendo.inspection.plots.scene import Focus, Scene
from attendo.model.transformer import Transformer

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from attendo.core.protocols import AttentionKind
    from attendo.inspection.plots.scene import Language
    from attendo.inspection.record import Record
    from attendo.translator import Translator


class Picture(NamedTuple):
    """One picture: how it is made, and what it takes."""

    make: Callable[[Scene], Figure]
    needs: Literal["model", "transformer"] | None = None
    """What the record alone does not hold: of any model, or of the inside of a Transformer."""
    kind: AttentionKind | None = None
    """The kind of attention that must be there."""
    num_heads: int = 1
    """Heads of that kind that a layer must have at least."""
    section: str | None = None
    """The part of the record that must be there."""
    animate: Callable[[Scene], bytes] | None = None
    """Gives it as a GIF."""

    @property
    def about(self) -> str:
        """One line: what it shows."""
        return self.describe("en")

    def describe(self, language: Language) -> str:
        """Say in one line what it shows."""
        first = (self.make.__doc__ or "").splitlines()[0]
        english = first.removeprefix("Draw ").rstrip(".")
        return KOREAN[english] if language == "ko" else english

    @property
    def needs_model(self) -> bool:
        """Whether the record alone does not hold what it shows."""
        return self.needs is not None

    def is_possible(self, record: Record, model: object | None = None) -> bool:
        """Whether a record, and the model if it is given, have the numbers for it."""
        if self.needs == "transformer" and not isinstance(model, Transformer):
            return False
        if self.needs == "model" and model is None:
            return False
        if self.section is not None and getattr(record, self.section) is None:
            return False
        if self.kind is None:
            return True
        return self.kind in record.kinds and record.attention(self.kind).shape[1] >= self.num_heads

    @property
    def suffixes(self) -> tuple[str, ...]:
        """The kinds of file that it can be written to."""
        return SUFFIXES if self.animate is None else (*SUFFIXES, ".gif")


PICTURES: dict[str, Picture] = {
    "positions": Picture(vectors.draw_positions, section="positions"),
    "position_toy": Picture(vectors.draw_position_toy),
    "input_sum": Picture(vectors.draw_input_sum, needs="transformer"),
    "query_key_value": Picture(attending.draw_query_key_value, needs="transformer"),
    "one_word": Picture(attending.draw_one_word, needs="transformer"),
    "score_matrix": Picture(attending.draw_score_matrix, needs="transformer"),
    "masks": Picture(attending.draw_masks, kind="cross"),
    "head_lines": Picture(heads.draw_head_lines, kind="cross"),
    "two_heads": Picture(heads.draw_two_heads, kind="cross", num_heads=2),
    "all_heads": Picture(heads.draw_all_heads, kind="cross"),
    "concatenated_heads": Picture(heads.draw_concatenated_heads, needs="transformer"),
    "add_and_norm": Picture(vectors.draw_add_and_norm, needs="transformer"),
    "gradients": Picture(machine.draw_gradients, needs="transformer"),
    "stack": Picture(machine.draw_stack, needs="transformer"),
    "decoder_steps": Picture(
        saying.draw_decoder_steps, kind="cross", animate=saying.animate_decoder_steps
    ),
    "logits": Picture(saying.draw_logits, needs="model"),
    "beam_tree": Picture(beam.draw_beam_tree, section="beam"),
    "attribution": Picture(findings.draw_attribution, section="attribution"),
    "ablation": Picture(findings.draw_ablation, section="ablation"),
    "logit_lens": Picture(findings.draw_logit_lens, section="logit_lens"),
}


def make_figure(
    name: str,
    record: Record,
    translator: Translator | None = None,
    *,
    language: Language = "en",
    **focus: Any,
) -> Figure:
    """Make a picture as a matplotlib figure, e.g. for a notebook.

    Args:
        name: of the picture, a key of `PICTURES`.
        record: what to draw.
        translator: that of the record, for what the record does not hold.
        language: of the words in the picture, "en" or "ko".
        focus: what to look at: kind, layer, head, other_head, row (`Focus`).

    """
    return _make(find_picture(name), _set_scene(record, translator, language, focus))


def draw(
    name: str,
    path: str | Path,
    record: Record,
    translator: Translator | None = None,
    *,
    language: Language = "en",
    **focus: Any,
) -> Path:
    """Draw a picture into a PNG or SVG file; the decoder's steps also into a GIF."""
    picture, file = find_picture(name), Path(path)
    check_suffix(file, picture.suffixes)
    scene = _set_scene(record, translator, language, focus)
    if picture.animate is not None and file.suffix.lower() == ".gif":
        content = picture.animate(scene)
    else:
        content = render(_make(picture, scene), file.suffix)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content)
    except OSError as error:
        reason = f"{file} could not be written: {error.strerror or error}"
        raise AttendoError(reason, remedy="choose another place, or make room") from None
    return file


def draw_all(
    directory: str | Path,
    record: Record,
    translator: Translator | None = None,
    *,
    suffix: str = ".png",
    language: Language = "en",
    **focus: Any,
) -> list[Path]:
    """Draw every picture that the record, and the model if it is given, has the numbers for."""
    return [
        draw(
            name,
            Path(directory) / f"{name}{suffix}",
            record,
            translator,
            language=language,
            **focus,
        )
        for name in list_possible(record, translator)
    ]


def list_possible(record: Record, translator: Translator | None = None) -> list[str]:
    """Name the pictures that can be drawn of this record."""
    model = None if translator is None else translator.model
    return [name for name, picture in PICTURES.items() if picture.is_possible(record, model)]


def find_picture(name: str) -> Picture:
    """Look a picture up by its name."""
    if name not in PICTURES:
        raise InputError(f"no picture '{name}'", remedy=suggest(name, PICTURES))
    return PICTURES[name]


def _set_scene(
    record: Record, translator: Translator | None, language: Language, focus: dict[str, Any]
) -> Scene:
    known = Focus.__dataclass_fields__
    strange = [key for key in focus if key not in known]
    if strange:
        reasons = [f"unknown key '{key}': {suggest(key, known)}" for key in strange]
        raise ConfigError.gather("picture", reasons)
    return Scene(record, translator, Focus(**focus), language)


def _make(picture: Picture, scene: Scene) -> Figure:
    if picture.needs == "transformer":
        scene.check_transformer()
    if picture.needs_model and scene.translator is not None:
        with scene.translator.engine.evaluating():
            figure = picture.make(scene)
    else:
        figure = picture.make(scene)
    set_fonts(figure)
    return figure
