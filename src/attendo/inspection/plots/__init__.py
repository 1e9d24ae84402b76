"""Pictures of a model and a sentence, to PNG or SVG: `draw("all_heads", "heads.png", record)`.

`PICTURES` lists them. Needs the extra `plots`; Korean is shown where a Korean font is installed.
"""

from attendo.inspection.plots.gallery import (
    PICTURES,
    Picture,
    draw,
    draw_all,
    list_possible,
    make_figure,
)

__all__ = ["PICTURES", "Picture", "draw", "draw_all", "list_possible", "make_figure"]
