"""The words of the reproduction speak of cells that the paper prints."""

from __future__ import annotations

import pytest

from prevalens.studies.moreo2023.printed import printed
from prevalens.studies.moreo2023.reproduction import _FIGURE, OBSERVATIONS


@pytest.mark.parametrize("text", OBSERVATIONS)
def test_every_brace_is_a_figure_of_a_printed_table(text: str) -> None:
    figures = list(_FIGURE.finditer(text))
    assert len(figures) == text.count("{") == text.count("}")
    for figure in figures:
        table = printed(f"{figure['base'] or 'pcc'}_general")
        assert figure["method"] in {"BC+BA", "MLC+BA", "BC+MLA", "MLC+MLA"}
        assert figure["shift"] in {"low", "mid", "high"}
        assert figure["source"] in {"paper", "as printed", "as described", "with the guard"}
        assert figure["dataset"] in table.datasets
