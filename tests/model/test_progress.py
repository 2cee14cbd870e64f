"""Progress over several tables, and stopping."""

from __future__ import annotations

import pytest

from prevalens.model.progress import CancelledError, Step, Watch
from prevalens.tables.formats import as_table


def test_progress_runs_over_all_tables() -> None:
    steps: list[Step] = []
    tables = [as_table({"a": [1, 2]}), as_table({"a": [3]})]
    seen = [list(chunk["a"]) for _, chunk in Watch(steps.append, None).over("reading", tables, "a")]
    assert seen == [[1, 2], [3]]
    assert steps == [Step("reading", 2, 3, 2), Step("reading", 3, 3, 3)]


def test_cancelling_stops_between_chunks() -> None:
    answers = iter([False, True])
    watch = Watch(None, lambda: next(answers))
    watch.step("one")
    with pytest.raises(CancelledError):
        watch.step("two")


def test_details_keep_the_place_of_their_step() -> None:
    steps: list[Step] = []
    Watch(steps.append, None).within("fitting", 1, 3, 60)("fold 1 of 5")
    assert steps == [Step("fitting", 1, 3, 60), Step("fitting", 1, 3, 60, "fold 1 of 5")]
