from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.reports.grid import Grid, GridCell, GridGroup, GridLine, Heading
from prevalens.reports.layout import long_grid, wide_grid
from prevalens.reports.render import PACKAGES, escape_latex, latex_document, to_latex
from prevalens.studies.moreo2023.printed import printed


def body(latex: str) -> list[str]:
    """The rows of the table, without rules."""
    return [line for line in latex.splitlines() if line.endswith(r" \\")]


def test_a_row_has_a_cell_for_every_column() -> None:
    grid = wide_grid(printed("pcc_general"))
    rows = body(to_latex(grid))
    assert len(rows) == 2 + 17
    for row in rows[1:]:
        assert row.count(" & ") == grid.n_columns
    assert r"\begin{tabular}{lrrrrrrrrrrrr}" in to_latex(grid)


def test_regimes_span_their_methods() -> None:
    head = body(to_latex(wide_grid(printed("pcc_general"))))[0]
    assert head.count(r"\multicolumn{4}{c}") == 3
    assert r"\cmidrule(lr){2-5} \cmidrule(lr){6-9} \cmidrule(lr){10-13}" in to_latex(
        wide_grid(printed("pcc_general"))
    )


def test_the_best_is_bold_and_daggers_are_raised() -> None:
    latex = to_latex(wide_grid(printed("pcc_general")))
    assert latex.count(r"\textbf{") == 51
    assert r".0228\textsuperscript{\dag{}}" in latex
    assert r"\footnotesize \dag{} hardly different" in latex


def test_groups_have_titles() -> None:
    latex = to_latex(long_grid(printed("pcc_general")))
    assert r"\multicolumn{5}{l}{\textit{Emotions}} \\" in latex
    assert latex.count(r"\midrule") == 17


def test_columns_of_text_are_aligned_left_and_flags_are_slanted() -> None:
    headings = ((Heading("method", left=True), Heading("ratio")),)
    line = GridLine("a_b", (GridCell("x & y"), GridCell("1.20", flag=True)))
    latex = to_latex(Grid("50 %", "name", headings, (GridGroup((line,)),)), name="tab:a")
    assert r"\begin{tabular}{llr}" in latex
    assert r"a\_b & x \& y & \textit{1.20} \\" in latex
    assert r"\caption{50 \%}" in latex
    assert r"\label{tab:a}" in latex
    assert r"\footnotesize" not in latex


@pytest.mark.parametrize("table", ["cc_general", "mlqreg_mrae"])
def test_a_document_loads_what_it_needs_and_closes_what_it_opens(table: str) -> None:
    latex = latex_document([wide_grid(printed(table)), long_grid(printed(table))])
    for package in PACKAGES:
        assert rf"\usepackage{{{package}}}" in latex
    opened = re.findall(r"\\begin\{(\w+)\}", latex)
    assert sorted(opened) == sorted(re.findall(r"\\end\{(\w+)\}", latex))
    assert opened.count("table") == 2
    plain = re.sub(r"\\[{}]", "", latex)
    assert plain.count("{") == plain.count("}")
    assert latex.isascii()


def test_special_characters() -> None:
    assert escape_latex(r"\{}$&%#_~^") == (
        r"\textbackslash{}\{\}\$\&\%\#\_\textasciitilde{}\textasciicircum{}"
    )
    assert escape_latex("p ≥ .05 \u2013 two\nlines") == r"p \ensuremath{\geq} .05 -- two lines"


@given(st.text())
def test_no_special_character_is_left_bare(text: str) -> None:
    escaped = escape_latex(text)
    plain = re.sub(r"\\[&%$#_{}]", "", escaped)
    assert not re.search(r"[&%$#_~^<>|\"]", plain)
    assert plain.count("{") == plain.count("}")
    assert "\n" not in escaped
