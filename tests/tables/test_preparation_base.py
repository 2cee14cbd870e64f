"""What every preparation shares."""

from __future__ import annotations

import pytest
from sklearn.exceptions import NotFittedError

from prevalens.tables.columns import ColumnPreparation
from prevalens.tables.preparation import ArrayPreparation, CellError
from prevalens.tables.text import TextPreparation


@pytest.mark.parametrize("one", [ArrayPreparation(), ColumnPreparation(), TextPreparation()])
def test_not_fitted(one: object) -> None:
    with pytest.raises(NotFittedError):
        one.transform([[1.0]])


def test_arrays_tell_nothing_of_what_is_new() -> None:
    assert ArrayPreparation().fit([[1.0]]).unfamiliar([[2.0]]) is None


def test_a_cell_error_knows_its_row() -> None:
    error = CellError(3, "what is wrong.")
    assert (error.row, str(error)) == (3, "Item 4: what is wrong.")
