from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from prevalens.records import Result
from prevalens.reports.summarise import summarise
from prevalens.reports.table import TableCell
from prevalens.studies.moreo2023.comparison import ALLOWANCES, Compared, compare
from prevalens.studies.moreo2023.printed import printed
from prevalens.validation import InputError

Make = Callable[..., Result]
PaperLike = Callable[..., list[Result]]


def compared(ours: float, theirs: float, dataset: str = "scene") -> Compared:
    return Compared(dataset, "low", "CC", TableCell(theirs), (TableCell(ours), None))


def test_ratios() -> None:
    assert compared(0.03, 0.02).ratio(0) == pytest.approx(1.5)
    assert compared(0.0, 0.0).ratio(0) == 1.0
    assert compared(0.1, 0.0).ratio(0) == math.inf
    assert compared(0.1, 0.1).ratio(1) is None


@pytest.mark.parametrize(
    ("ours", "agrees"), [(0.0115, True), (0.0085, True), (0.0116, False), (0.0084, False)]
)
def test_agreement_is_within_a_share_of_the_printed_value(ours: float, agrees: bool) -> None:
    assert compared(ours, 0.01).agrees(0, 0.15) is agrees
    assert compared(ours, 0.01).agrees(1, 0.15) is None


def test_tiny_errors_are_compared_by_their_difference() -> None:
    assert compared(0.0009, 0.0005, "genbase").agrees(0, 0.15) is True
    assert compared(0.0011, 0.0005, "genbase").agrees(0, 0.15) is False
    assert ALLOWANCES == {"genbase": 0.0005}


def test_values_stand_beside_the_printed_ones(paper_like: PaperLike) -> None:
    comparison = compare({"ours": summarise(paper_like(factor=1.1))}, printed("pcc_general"))
    assert comparison.sources == ("ours",)
    assert comparison.methods == ("BC+BA", "MLC+BA", "BC+MLA", "MLC+MLA")
    assert comparison.datasets == ("emotions", "scene", "genbase")
    assert comparison.regimes == ("low", "mid", "high")
    assert len(comparison.cells) == 36
    for cell in comparison.cells:
        assert cell.ratio(0) == pytest.approx(1.1)
        assert cell.counted
    row = comparison.row("scene", "high")
    assert [cell.printed.value for cell in row] == [0.1427, 0.1221, 0.0499, 0.0589]


def test_several_tables_stand_side_by_side(paper_like: PaperLike) -> None:
    ours = {
        "as described": summarise(paper_like(factor=0.9)),
        "as printed": summarise(paper_like(methods=("BC+BA",), datasets=("scene",))),
    }
    comparison = compare(ours, printed("pcc_general"))
    first, second = comparison.row("scene", "low")[:2]
    assert (first.ratio(0), first.ratio(1)) == pytest.approx((0.9, 1.0))
    assert (second.ratio(0), second.ratio(1)) == (pytest.approx(0.9), None)


def test_the_corrected_data_stands_beside_its_twin_but_does_not_count(make_result: Make) -> None:
    ours = summarise([make_result("BC+BA", dataset="tmc2007_500")])
    (low, *_) = compare({"": ours}, printed("pcc_general")).cells
    assert low.printed.value == 0.1108
    assert not low.counted


def test_an_own_table_can_be_the_reference(make_result: Make) -> None:
    before = summarise(
        [make_result("CC", [0.2] * 6), make_result("mine", [0.1] * 6, dataset="own")]
    )
    after = summarise([make_result("CC", [0.1] * 6), make_result("CC", dataset="own")])
    comparison = compare({"after": after}, before)
    assert {(cell.dataset, cell.method) for cell in comparison.cells} == {("scene", "CC")}
    assert comparison.cells[0].ratio(0) == pytest.approx(0.5)


def test_nothing_in_common_is_refused(make_result: Make) -> None:
    with pytest.raises(InputError, match="no dataset and method in common"):
        compare({"": summarise([make_result("mine")])}, printed("pcc_general"))


def test_measures_must_agree(paper_like: PaperLike) -> None:
    with pytest.raises(InputError, match="is of ae but the printed one of rae"):
        compare({"ours": summarise(paper_like())}, printed("mlqreg_mrae"))
