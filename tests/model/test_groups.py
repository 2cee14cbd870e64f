"""Batches by file, by value, by time."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.errors import FormatError, InputError
from prevalens.model.groups import NONE, ByColumn, ByFile, ByTime, grouping_of
from prevalens.tables.formats import as_table


def sizes(grouping: ByColumn | ByFile | ByTime, *tables: object) -> dict[str, int]:
    for table in tables:
        for chunk in table.chunks(chunk_rows=2):
            grouping.add(table, chunk)
    samples, names = grouping.samples()
    assert sorted(samples.flat.tolist()) == list(range(samples.n_items))
    return dict(zip(names, samples.sizes.tolist(), strict=True))


def test_by_column_sorts_numbers_as_numbers() -> None:
    table = as_table({"g": ["10", "9", "b", "", "9", None, "a"]})
    assert list(sizes(ByColumn("g"), table).items()) == [
        ("9", 2), ("10", 1), ("a", 1), ("b", 1), (NONE, 2)
    ]  # fmt: skip


def test_small_groups_become_one_batch_at_the_end() -> None:
    cells = [*"aaaabbbb", "z", "c", "", "z"]
    grouping = ByColumn("g")
    table = as_table({"g": cells})
    for chunk in table.chunks(chunk_rows=3):
        grouping.add(table, chunk)
    folded = grouping.fold(3)
    assert folded is not None
    assert (folded.name, folded.groups) == ("3 groups with fewer than 3 items", ["c", "z", NONE])
    samples, names = grouping.samples()
    assert names == ["a", "b", folded.name]
    assert [sorted(bag.tolist()) for bag in samples] == [
        *([0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]),
    ]
    assert grouping.code(folded.name) == folded.codes[0]
    assert "(c, z, (none)) stand together at the end; --min-items 1 shows each" in folded.sentence


@pytest.mark.parametrize("least", [0, 1])
def test_no_limit_keeps_all_groups(least: int) -> None:
    grouping, table = ByColumn("g"), as_table({"g": list("abb")})
    sizes(grouping, table)
    assert grouping.fold(least) is None


def test_a_single_small_group_is_named_unless_it_is_the_only_one() -> None:
    grouping, table = ByColumn("g"), as_table({"g": list("aaab")})
    sizes(grouping, table)
    folded = grouping.fold(3)
    assert folded is not None
    assert "1 group with fewer than 3 items (b) stands at the end" in folded.sentence
    alone, table = ByColumn("g"), as_table({"g": list("aa")})
    sizes(alone, table)
    assert alone.fold(3) is None


def test_periods_and_files_are_not_put_together() -> None:
    table = as_table({"when": ["2024-03-31", "2024-04-01"]})
    for grouping in (ByTime("when", "M"), ByFile([table])):
        sizes(grouping, table)
        assert grouping.fold(100) is None


def test_items_stay_in_their_batch() -> None:
    table = as_table({"g": list("abcab")})
    grouping = ByColumn("g")
    for chunk in table.chunks(chunk_rows=2):
        grouping.add(table, chunk)
    samples, names = grouping.samples()
    for name, rows in zip(names, samples, strict=True):
        assert {"abcab"[row] for row in rows} == {name}
    assert [grouping.code(name) for name in names] == [0, 1, 2]


def test_by_file() -> None:
    first, second = (as_table({"x": [1] * n}, name=f"folder/{n}.csv.gz") for n in (3, 2))
    assert sizes(ByFile([first, second]), first, second) == {"3": 3, "2": 2}
    same = [as_table({"x": [1]}, name=f"{folder}/may.csv") for folder in "ab"]
    assert sizes(ByFile(same), *same) == {"a/may.csv": 1, "b/may.csv": 1}
    # Uploads have no folders; a number tells them apart, one that no other file has.
    equal = [
        as_table({"x": [n]}, name=name)
        for n, name in enumerate(("may.csv", "may.csv (2)", "may.csv", "may.csv"))
    ]
    assert sizes(ByFile(equal), *equal) == {
        "may.csv": 1, "may.csv (2)": 1, "may.csv (3)": 1, "may.csv (4)": 1
    }  # fmt: skip


@pytest.mark.parametrize(
    ("freq", "names"),
    [
        ("D", ["2023-12-31", "2024-01-01", "2024-03-31"]),
        ("W", ["2023-W52", "2024-W01", "2024-W13"]),
        ("M", ["2023-12", "2024-01", "2024-03"]),
        ("Q", ["2023-Q4", "2024-Q1"]),
        ("Y", ["2023", "2024"]),
    ],
)
def test_by_time(freq: str, names: list[str]) -> None:
    table = as_table({"when": ["2024-03-31", "31.12.2023", "2024-01-01T10:00:00Z", ""]})
    assert list(sizes(ByTime("when", freq), table)) == [*names, NONE]


def test_forms_of_dates() -> None:
    table = as_table({"when": ["05/31/2024", "06/01/2024"]})
    assert list(sizes(ByTime("when", "M"), table)) == ["2024-05", "2024-06"]
    odd = as_table({"when": ["2024 31 05"]}, name="t.csv")
    assert list(sizes(ByTime("when", "M", "%Y %d %m"), odd)) == ["2024-05"]
    with pytest.raises(FormatError, match=r"t\.csv, row 1: '2024 31 05' in the column 'when'"):
        sizes(ByTime("when", "M"), odd)


def test_what_was_asked_for() -> None:
    assert isinstance(grouping_of([], None, None, None, None), ByFile)
    assert isinstance(grouping_of([], "g", None, None, None), ByColumn)
    by_time = grouping_of([], None, "when", None, None)
    assert isinstance(by_time, ByTime)
    assert (by_time.freq, by_time.ordered) == ("M", True)
    with pytest.raises(InputError, match="Name one column to group by"):
        grouping_of([], "g", "when", None, None)
    with pytest.raises(InputError, match="`freq=` needs the column"):
        grouping_of([], None, None, "W", None)


def test_many_items_are_grouped_fast_enough_to_be_exact() -> None:
    codes = np.random.default_rng(0).integers(0, 50, 20_000)
    found = sizes(ByColumn("g"), as_table({"g": codes.tolist()}))
    assert list(found.values()) == np.bincount(codes).tolist()


def test_days_of_the_rows_added_last() -> None:
    table = as_table({"when": ["1970-01-03", "", "1970-02-01"]})
    grouping = ByTime("when", "M")
    grouping.add(table, table.read())
    assert grouping.order() == ["1970-01", "1970-02", NONE]
    np.testing.assert_array_equal(grouping.days, [2.0, np.nan, 31.0])


def test_years_are_periods() -> None:
    table = as_table({"when": [1998, 2003, 1998]})
    assert sizes(ByTime("when", "Y"), table) == {"1998": 2, "2003": 1}


def test_items_without_a_batch_are_noted() -> None:
    table = as_table({"when": ["2024-05-31", "", "?", None], "g": ["a", "b", "c", ""]}, name="t")
    by_time, by_value = ByTime("when", "M"), ByColumn("g")
    for grouping in (by_time, by_value):
        for chunk in table.chunks(chunk_rows=2):
            grouping.add(table, chunk)
    assert [notice.text for notice in by_time.notices()] == [
        "3 items without a date in the column 'when', part of the batch '(none)'."
    ]
    assert by_value.notices()[0].text.startswith("1 item without a value in the column 'g'")
    assert ByColumn("g").notices() == ()
