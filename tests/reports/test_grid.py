from __future__ import annotations

from prevalens.reports.grid import MARK_SIGNS, MARK_WORDS, Entry, Grid, Group, Heading, Line


def test_columns_lines_and_notes() -> None:
    first = Line("a", (Entry("1", mark="ddagger"), Entry("2")))
    second = Line("b", (Entry("3"), Entry("4", mark="dagger")))
    grid = Grid(
        "caption",
        "stub",
        ((Heading("both", 2),), (Heading("x"), Heading("y"))),
        (Group((first,)), Group((second,), "title")),
        ("A note.",),
    )
    assert grid.n_columns == 2
    assert list(grid.lines()) == [first, second]
    assert grid.all_notes() == [
        "A note.",
        f"† {MARK_WORDS['dagger']}.",
        f"‡ {MARK_WORDS['ddagger']}.",
    ]


def test_every_mark_has_a_sign_and_words() -> None:
    assert set(MARK_SIGNS) == set(MARK_WORDS) | {""}
    assert len(set(MARK_SIGNS.values())) == len(MARK_SIGNS)
