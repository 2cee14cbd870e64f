from __future__ import annotations

from prevalens.aggregators import PCC
from prevalens.selection.automatic import Candidate, Choice


def test_the_table_has_a_line_for_each_candidate_in_order():
    first = Candidate("lr+mixture", 0.5, {"ml-app": 0.4, "natural": 0.6})
    second = Candidate("naive", 1.0, {"ml-app": 1.0})
    choice = Choice(None, PCC(), (first, second), 1.5, ())
    head, *lines = choice.table().splitlines()
    assert head.split() == ["method", "all", "ml-app", "natural"]
    assert [line.split() for line in lines] == [
        ["lr+mixture", "0.500", "0.400", "0.600"],
        ["naive", "1.000", "1.000", "nan"],
    ]
    assert choice.name == "lr+mixture"
