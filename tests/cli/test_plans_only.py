"""Some of the cells of a plan, by their fields."""

from __future__ import annotations

import pytest

from prevalens.cli.plans import cell_fields, chosen_cells
from prevalens.studies.moreo2023.plan import paper_plan
from prevalens.validation import InputError

CELLS = paper_plan(["pcc_general", "mlq"], ["emotions", "yeast"], seeds=[0, 1]).cells()


def test_nothing_asked_for_is_everything() -> None:
    assert chosen_cells(CELLS, []) == CELLS


def test_fields_are_met_together_and_values_one_by_one() -> None:
    only = ["dataset=yeast,seed=1", "method=pcc BC+BA", "method=Ridge-RQ"]
    chosen = [cell_fields(cell) for cell in chosen_cells(CELLS, only)]
    assert [(fields["method"], fields["variant"]) for fields in chosen] == [
        ("pcc BC+BA", "as described"),
        ("pcc BC+BA", "as printed"),
        ("Ridge-RQ", "as described"),
        ("Ridge-RQ", "as printed"),
    ]
    assert {(fields["dataset"], fields["seed"]) for fields in chosen} == {("yeast", "1")}


def test_every_cell_can_be_asked_for_alone() -> None:
    for cell in CELLS:
        text = ",".join(f"{field}={value}" for field, value in cell_fields(cell).items())
        assert chosen_cells(CELLS, [text]) == [cell]


def test_what_the_plan_does_not_have_is_named() -> None:
    with pytest.raises(InputError, match=r"--only dataset=yeats: .*; did you mean 'yeast'?"):
        chosen_cells(CELLS, ["dataset=yeats"])
    with pytest.raises(InputError, match=r"--only takes FIELD=VALUE .*; got 'yeast'"):
        chosen_cells(CELLS, ["yeast"])
