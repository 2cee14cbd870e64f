from __future__ import annotations

from prevalens.reports.grid import (
    MARK_MEANINGS,
    MARK_SIGNS,
    Grid,
    GridCell,
    GridGroup,
    GridLine,
    Heading,
)


def test_columns_lines_and_notes() -> None:
    first = GridLine("a", (GridCell("1", mark="ddagger"), GridCell("2")))
    second = GridLine("b", (GridCell("3"), GridCell("4", mark="dagger")))
    grid = Grid(
        "caption",
        "stub",
        ((Heading("both", 2),), (Heading("x"), Heading("y"))),
        (GridGroup((first,)), GridGroup((second,), "title")),
        ("A note.",),
    )
    assert grid.n_columns == 2
    assert list(grid.lines()) == [first, second]
    assert grid.all_notes() == [
        "A note.",
        f"† {MARK_MEANINGS['dagger']}.",
        f"‡ {MARK_MEANINGS['ddagger']}.",
    ]


def test_every_mark_has_a_sign_and_a_meaning() -> None:
    assert set(MARK_SIGNS) == set(MARK_MEANINGS) | {""}
    assert len(set(MARK_SIGNS.values())) == len(MARK_SIGNS)
