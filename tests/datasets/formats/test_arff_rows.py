from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from prevalens.datasets.formats.arff import Body, parse_header, parse_rows
from prevalens.validation import FormatError


def body(types: list[str], rows: list[str]) -> Body:
    lines = [f"@attribute a{j} {kind}" for j, kind in enumerate(types)] + ["@data"]
    attributes = parse_header(Path("f"), lines)[1]
    return Body(Path("f.arff"), attributes, rows, [10 + i for i in range(len(rows))])


def values(types: list[str], rows: list[str]) -> list[list[float]]:
    found = parse_rows(body(types, rows))[0]
    return (found.toarray() if sp.issparse(found) else found).tolist()


def test_dense_numbers() -> None:
    assert values(["real", "{0,1}"], ["1.5,0", " -2e3 , 1 "]) == [[1.5, 0], [-2000, 1]]


def test_dense_nominal_values() -> None:
    rows = ["NO,blue,2", "'YES', red ,10"]
    assert values(["{YES,NO}", "{red,blue}", "{2,10,1}"], rows) == [[0, 1, 2], [1, 0, 10]]


def test_omitted_entries_are_zero_or_the_first_declared_value() -> None:
    types = ["real", "{0,1}", "{YES,NO}", "{3,5}"]
    assert values(types, ["{0 2.5}", "{}", "{2 NO,3 5}", "{ 1 1 , 3 3 }"]) == [
        [2.5, 0, 1, 3],
        [0, 0, 1, 3],
        [0, 0, 0, 5],
        [0, 1, 1, 3],
    ]


def test_sparse_rows_keep_only_what_is_not_zero() -> None:
    found, _ = parse_rows(body(["{0,1}"] * 3, ["{0 1,1 0}", "{2 1}"]))
    assert isinstance(found, sp.csr_matrix)
    assert found.nnz == 2


def test_texts_dense_and_sparse() -> None:
    _, texts = parse_rows(body(["string", "{0,1}"], ["'it\\'s, well\\nso',1", "plain,0"]))
    assert texts == {0: ["it's, well\nso", "plain"]}
    _, texts = parse_rows(body(["string", "{0,1}"], ["{0 'a, b'}", "{1 1}"]))
    assert texts == {0: ["a, b", ""]}


@pytest.mark.parametrize(
    ("types", "rows", "words"),
    [
        (["real", "real"], ["1,2", "3"], "line 11: there are 1 values for 2 attributes"),
        (["real", "real"], ["1,2,3"], "line 10: there are 3 values"),
        (["real"], ["x"], r"line 10: attribute 'a0' \(numeric\) has the value 'x'"),
        (["real"], ["nan"], "line 10: .*'nan'"),
        (["real"], ["1e999"], "line 10: .*'1e999'"),
        (["real"], ["1", "?"], r"line 11: attribute 'a0' is missing \('\?'\)"),
        (["{0,1}"], ["0", "2"], r"line 11: .*\(nominal\) has the value '2'"),
        (["{a,b}"], ["c"], "line 10: .*'c'"),
        (["string"], ["'open"], "line 10: the quotes are not in order"),
        (["{0,1}"], ["{0 1}", "1"], "line 11: a sparse row stands in braces, got '1'"),
        (["{0,1}"], ["{0 1", "{}"], "line 10: a sparse row stands in braces"),
        (["{0,1}"], ["{1 1}"], "line 10: an entry is at position 1, but there are 1 attributes"),
        (["{0,1}"], ["{99999999999 1}"], "line 10: expected a position and a value"),
        (["{0,1}", "real"], ["{0 1,0 1}"], "line 10: attribute 'a0' has two values"),
        (["{0,1}", "real"], ["{0 1,}"], "line 10: expected a position and a value, got ''"),
        (["{0,1}", "real"], ["{0 1 1 1}"], "line 10: expected a position and a value"),
        (["{0,1}", "real"], ["{0,1 1}"], "line 10: expected a position and a value"),
        (["{0,1}"], ["{}", "{0 2}"], "line 11: .*has the value '2'"),
        (["real"], ["{0 x}"], "line 10: .*has the value 'x'"),
        (["real"], ["{0 inf}"], "line 10: .*has the value 'inf'"),
        (["{a,b}"], ["{0 c}"], "line 10: .*has the value 'c'"),
    ],
)
def test_bad_rows_are_one_sentence(types: list[str], rows: list[str], words: str) -> None:
    with pytest.raises(FormatError, match=rf"f\.arff, {words}"):
        parse_rows(body(types, rows))


def test_at_once_and_by_cell_agree() -> None:
    rng = np.random.default_rng(0)
    table = np.round(rng.normal(size=(50, 4)), 3)
    rows = [",".join(map(str, row)) for row in table]
    at_once = values(["real"] * 4, rows)
    # A quote somewhere makes the parser look at each cell.
    by_cell = values(["real"] * 4, ["'" + rows[0].replace(",", "','") + "'", *rows[1:]])
    assert at_once == by_cell == table.tolist()
