"""Common style of all plots: figures without global state, colors, headings, matrices, files.

The colors are those of Okabe and Ito, which color-blind readers can distinguish; widths, line
styles or numbers carry the same information. Color maps go from white to blue or, for signed
values, from blue through white to red.
"""

from __future__ import annotations

import io
import unicodedata
from typing import TYPE_CHECKING, Any

import numpy as np

from attendo.core.errors import InputError, MissingExtraError
from attendo.core.message import message

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage
    from numpy.typing import NDArray

BLUE, ORANGE, GREEN, RED = "#0072B2", "#E69F00", "#009E73", "#D55E00"
PURPLE, SKY, YELLOW, BLACK = "#CC79A7", "#56B4E9", "#F0E442", "#222222"
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY, YELLOW, BLACK)
GRAY, LIGHT, PALE = "#777777", "#CCCCCC", "#F2F2F2"
WEIGHTS, SIGNED, ORDERED = "Blues", "RdBu_r", "cividis"
"""Color maps: for nonnegative values, for signed values, and one that is readable in gray."""
DPI = 150
MAX_INCHES = 60.0
"""Upper limit of each side in inches, for long sentences."""
MAX_NUMBERED_COLUMNS = 14
"""Up to this many columns the cells are wide enough for numbers."""
SUFFIXES = (".png", ".svg")


def require_matplotlib() -> None:
    """Raise a helpful error if matplotlib is missing."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "plots") from None


def new_figure(width: float, height: float) -> Figure:
    """Return a figure of this size in inches, rendered by Agg without pyplot or a window."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(min(width, MAX_INCHES), min(height, MAX_INCHES)), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def set_heading(figure: Figure, title: str, caption: str = "") -> None:
    """Write the title above the plot and how to read it below."""
    figure.suptitle(title, x=0.012, ha="left", fontsize=13, fontweight="bold", color=BLACK)
    if caption:
        figure.supxlabel(caption, x=0.012, ha="left", fontsize=9, color=GRAY)


def plot_matrix(
    axes: Axes,
    matrix: NDArray[Any],
    *,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    limit: float | None = None,
    is_signed: bool = False,
    digits: int | None = None,
    cmap: str | None = None,
    max_label_width: int = 8,
) -> AxesImage:
    """Draw numbers as colors; with `digits` also as numbers, where they fit.

    `max_label_width` is how many letters fit below a column; longer labels are rotated.
    """
    top = limit if limit is not None else float(np.nanmax(np.abs(matrix), initial=0.0)) or 1.0
    image = axes.imshow(
        matrix,
        cmap=cmap or (SIGNED if is_signed else WEIGHTS),
        vmin=-top if is_signed else 0.0,
        vmax=top,
        aspect="auto",
        interpolation="nearest",
    )
    label_axes(axes, rows=rows, columns=columns, max_label_width=max_label_width)
    axes.spines[:].set_color(LIGHT)
    if digits is not None and matrix.shape[1] <= MAX_NUMBERED_COLUMNS:
        _annotate_cells(axes, matrix, top, digits)
    return image


def label_axes(
    axes: Axes, *, rows: Sequence[str] = (), columns: Sequence[str] = (), max_label_width: int = 8
) -> None:
    """Label every row and every column."""
    axes.tick_params(length=0, labelsize=9)
    axes.set_yticks(range(len(rows)), rows)
    tick_options: dict[str, Any] = {}
    if max(map(display_width, columns), default=0) > max_label_width:
        tick_options = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(columns)), columns, **tick_options)


def display_width(text: str) -> int:
    """Return the display width in letters; East Asian wide characters count twice.

    >>> display_width("왕자 ab")
    7
    """
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def format_number(value: float, digits: int) -> str:
    """Return a number with a real minus sign, and none before zero.

    >>> format_number(-0.04, 1), format_number(-0.06, 1)
    ('0.0', '−0.1')
    """
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def _annotate_cells(axes: Axes, matrix: NDArray[Any], top: float, digits: int) -> None:
    for (row, column), value in np.ndenumerate(matrix):
        if np.isfinite(value):
            dark = abs(value) > 0.6 * top
            axes.text(
                column,
                row,
                format_number(float(value), digits),
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if dark else BLACK,
            )


def plot_vector(axes: Axes, vector: NDArray[Any], *, limit: float, label: str = "") -> AxesImage:
    """Draw a vector as one row of colors."""
    image = plot_matrix(axes, vector[None], limit=limit, is_signed=True)
    axes.set_ylabel(label, rotation=0, ha="right", va="center", fontsize=10)
    return image


def color_limit(*arrays: NDArray[Any]) -> float:
    """Return a limit for colors that ignores outliers: the 99th percentile."""
    sizes = np.abs(np.concatenate([array.ravel() for array in arrays]))
    return float(np.percentile(sizes, 99)) or 1.0


def hide_axes(axes: Axes) -> None:
    """Hide ticks and frame."""
    axes.set_axis_off()


def add_operator(axes: Axes, sign: str) -> None:
    """Put a +, × or = between two panels."""
    hide_axes(axes)
    axes.text(0.5, 0.5, sign, ha="center", va="center", fontsize=18, color=GRAY)


def style_axes(axes: Axes, *, grid: str = "y") -> None:
    """Style the axes of a line or bar plot: light grid, no top and right frame."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis=grid, color="#dddddd", linewidth=0.8)  # type: ignore[arg-type]
    axes.set_axisbelow(True)


def check_suffix(path: Path, allowed: Sequence[str] = SUFFIXES) -> None:
    """Raise an error for a file whose suffix is not supported."""
    if path.suffix.lower() not in allowed:
        reason = message("{name} is not a supported plot file", name=path.name)
        raise InputError(reason, hint=message("name it *{names}", names=" or *".join(allowed)))


def render_figure(figure: Figure, suffix: str) -> bytes:
    """Return the figure as the bytes of a file."""
    stream = io.BytesIO()
    kind = suffix.lower().removeprefix(".")
    save_options: dict[str, Any] = {"metadata": {"Date": None}} if kind == "svg" else {}
    figure.savefig(stream, format=kind, dpi=DPI, facecolor="white", **save_options)
    return stream.getvalue()
