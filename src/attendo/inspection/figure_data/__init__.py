"""The figures of the lessons as numbers: `describe_figure("one_word", record, translator)`.

A page draws them itself, in its own fonts and colors; `attendo.inspection.plots` draws the same
figures with matplotlib.
"""

from attendo.inspection.figure_data.registry import describe_figure

__all__ = ["describe_figure"]
