"""Plots of a model and a sentence as PNG or SVG: `save_plot("all_heads", "heads.png", record)`.

`PLOTS` lists them. Needs the extra `plots`; Korean text needs an installed Korean font.
"""

from attendo.inspection.plots.registry import (
    PLOTS,
    PlotSpec,
    available_plots,
    make_figure,
    save_all_plots,
    save_plot,
)

__all__ = ["PLOTS", "PlotSpec", "available_plots", "make_figure", "save_all_plots", "save_plot"]
