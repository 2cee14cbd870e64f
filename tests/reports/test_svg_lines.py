from __future__ import annotations

import numpy as np
import pytest

from prevalens.reports.svg import Frame, binned, mean_lines


@pytest.mark.parametrize(("quantiles", "bands"), [((0.1, 0.9), 2), ((), 0)])
def test_a_line_per_series_on_a_band(quantiles: tuple[float, ...], bands: int) -> None:
    x = np.linspace(0, 1, 30)
    lines = [binned(x, y, np.linspace(0, 1, 4), quantiles) for y in (x, 1 - x)]
    drawn = mean_lines(Frame("", (0, 1), (0, 1)), lines)
    assert drawn.count("<polyline") == 2
    assert drawn.count("<polygon") == bands
    # Lines are drawn over all bands.
    assert drawn.rfind("<polygon") < drawn.find("<polyline")
