"""Pictures of a model and a sentence, to PNG or SVG: `draw("all_heads", "heads.png", record)`.

`PICTURES` lists them. Needs the extra `plots`; Korean is shown where a Korean font is installed.
"""

from attendo.inspection.plots.registry import (
    PLOTS,
    PlotSpec,
    available_plots,
    make_figure,
    save_all_plots,
    save_plot,
)

__all__ = ["PLOTS", "PlotSpec", "save_plot", "save_all_plots", "available_plots", "make_figure"]
