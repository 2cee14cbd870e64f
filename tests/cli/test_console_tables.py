"""Words to the left, figures to the right."""

from __future__ import annotations

from rich.console import Console

from prevalens.cli.console import plain_table


def test_figures_end_below_each_other() -> None:
    table = plain_table(["label"], ["items", "share"], title="All")
    table.add_row("a", "7", "0.5")
    table.add_row("long name", "1,000", "12.5")
    console = Console(width=60)
    with console.capture() as said:
        console.print(table)
    title, _, head, _, *rows = (line.rstrip() for line in said.get().splitlines())
    assert title == "All"
    assert head.index("label") == rows[0].index("a") == rows[1].index("long")
    assert rows[0].index("7") == rows[1].index("1,000") + 4
    assert len(rows[0]) == len(rows[1]) == len(head)


def test_long_words_are_continued_and_not_cut() -> None:
    name = "panel(lr,lr(class_weight=balanced),forest)+mixture"
    table = plain_table(["method"], ["seconds"])
    table.add_row(name, "1234567.8")
    console = Console(width=30)
    with console.capture() as said:
        console.print(table)
    assert "…" not in said.get()
    cells = [line.split() for line in said.get().splitlines()[3:]]
    assert "".join(word for words in cells for word in words if word != "1234567.8") == name
