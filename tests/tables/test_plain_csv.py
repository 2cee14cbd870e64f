"""Plain CSV: what pyarrow reads is what Python reads, number by number and error by error."""

from __future__ import annotations

import gzip
import io
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from prevalens.errors import InputError
from prevalens.tables import plain_csv
from prevalens.tables.opening import open_table
from prevalens.tables.preparation import CellError
from prevalens.tables.scores import column_scores

pytest.importorskip("pyarrow")

NUMBERS = st.floats(0, 1).map(repr) | st.integers(0, 1000).map(lambda k: f"{k / 1000:.3f}")
SPELLINGS = st.sampled_from(
    [
        *["", " ", "0", "1", " 0.5", "0.5 ", ".5", "1.", "1e-3", "-0", "+0.5", "1e-400", '"0.5"'],
        *["nan", "NaN", "NA", "N/A", "-nan", "yes", "no", "True", "0_1", "0.5 %", "\u00a00.5"],
    ]
)
#: One of them per file: which of several is named depends on how the file is cut into chunks.
WRONG = st.sampled_from(
    [
        *["0,5", "12 %", "nan(1)", "1.5", "-1", "0x1", "0.5;", "x", '"0.5', '"0.5"1', "0.\n5"],
        *["0.5\r", "\0", "\u0664"],
    ]
)


def scores_of(content: bytes, fast: bool, **how: str) -> tuple[list[float], list[str], str]:
    """Scores of the columns p and q, cells of the column by, and the error that ends them."""
    scores, names = list[float](), list[str]()
    try:
        table = open_table(io.BytesIO(content), name="t.csv", **how)
        wanted = ["p", "by", "q"]
        for chunk in table.chunks(wanted, chunk_rows=3, scores=["p", "q"] if fast else ()):
            try:
                both = [column_scores(chunk[name], name) for name in "pq"]
            except CellError as error:
                return scores, names, f"{chunk.place(error.row)} {error.what}"
            scores += np.transpose(both).ravel().tolist()
            names += chunk["by"]
    except InputError as error:
        return scores, names, str(error)
    return scores, names, ""


def check_same(content: bytes, **how: str) -> None:
    """Both ways give the same numbers, to the last bit, and the same error."""
    with mock.patch.object(plain_csv, "_BLOCK", 40):
        fast = scores_of(content, fast=True, **how)
    slow = scores_of(content, fast=False, **how)
    assert fast[2] == slow[2]
    if not slow[2]:
        assert fast[1] == slow[1]
        np.testing.assert_array_equal(fast[0], slow[0])


TEXTS = st.text("ab \u00e4", max_size=3)
ROWS = st.lists(st.tuples(NUMBERS | SPELLINGS, TEXTS, NUMBERS | st.just("")), max_size=12)
WRONG_ROWS = st.lists(st.tuples(WRONG, TEXTS, NUMBERS), max_size=1)


@settings(max_examples=150)
@given(
    ROWS, WRONG_ROWS, ROWS, st.sampled_from(",;\t|"), st.sampled_from(["\n", "\r\n"]), st.booleans()
)
@example([("0.5", "", "1")] * 5, [("2", "", "1")], [], ",", "\n", True)
def test_numbers_and_errors_are_those_of_the_python_reader(
    before, wrong, after, delimiter, end, mark
) -> None:
    lines = [delimiter.join(row) for row in [("p", "by", "q"), *before, *wrong, *after]]
    # Without a line break at the end, and without a byte order mark, in half of the cases.
    text = end.join(lines) + end * mark
    check_same(text.encode("utf-8-sig" if mark else "utf-8"), delimiter=delimiter)


PLAIN = "p,by,q\n" + "0.25,a,\n" * 30


@pytest.mark.parametrize(
    "content",
    [
        PLAIN + "inf,a,1\n",
        PLAIN + "1e400,a,1\n",
        PLAIN + "0.5,a\n",
        PLAIN + "0.5,a,1,2\n",
        PLAIN + "\n0.5,a,1\n\n",
        PLAIN + "0.5,a,1\n" * 30 + '0.5,"two\nlines",1\n' + "0.5,a,3\n",
        PLAIN + '0.5,5" disk,1\n0.5,a,1\n',
        PLAIN + '0.5,"never closed,1\n',
        PLAIN + '0.5,"a"b,1\n',
        PLAIN + "0.5,a\0,1\n",
        PLAIN.replace("\n", "\r"),
        PLAIN.replace("\n", "\r\n", 3) + "0.5,a,1\r0.5,a,7\n",
        "\n" + PLAIN,
        '"p\n",by,q\n0.5,a,x\n',
        "p,by,q",
        "p,by,q\n",
        "x,p,by,q\n" + "\xff,0.5,a,1\n" * 9,
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_what_is_not_plain_is_left_to_the_python_reader(content: str, encoding: str) -> None:
    check_same(content.encode(encoding))
    check_same(content.encode(encoding), encoding=encoding)
    check_same(gzip.compress(content.encode(encoding)))


def test_plain_numbers_are_arrays_until_the_first_quotation_mark() -> None:
    content = PLAIN + '0.5,"a",1\n' + "0.5,b,1\n" * 9
    with mock.patch.object(plain_csv, "_BLOCK", 40):
        table = open_table(io.BytesIO(content.encode()), name="t.csv")
        chunks = list(table.chunks(chunk_rows=4, scores=["p", "q"]))
    fast = [isinstance(chunk["p"], np.ndarray) for chunk in chunks]
    assert fast == sorted(fast, reverse=True)
    assert fast[0]
    assert not fast[-1]
    assert sum(map(len, chunks)) == 40
    # The place of every row is its line in the file.
    firsts = np.cumsum([2, *map(len, chunks)])
    assert [chunk.place(0) for chunk in chunks] == [f"t.csv, line {k}" for k in firsts[:-1]]
