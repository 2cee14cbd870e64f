"""Charts and frames of results in notebooks, below everything that has results.

A result says what it shows as `Dots` or `Lines`; `draw` hands that to matplotlib or altair, `table`
writes it as HTML, `frame` as a pandas or polars frame. The libraries are loaded when they are asked
for.
"""

from prevalens.charts.drawing import draw
from prevalens.charts.frames import frame
from prevalens.charts.shapes import Dots, Line, Lines
from prevalens.charts.tables import table

__all__ = ["Dots", "Line", "Lines", "draw", "frame", "table"]
