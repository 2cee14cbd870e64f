"""What a result says of itself in consoles and notebooks."""

from __future__ import annotations

import numpy as np

from prevalens.model.result import BatchResult, Notice


def make(n_batches: int, n_labels: int, **more: object) -> BatchResult:
    point = np.full((n_batches, n_labels), 0.2)
    point[-1, -1] = 0.7
    return BatchResult(
        [f"label <{j}>" for j in range(n_labels)],
        [f"batch {i}" for i in range(n_batches)],
        np.arange(1000, 1000 + n_batches),
        point,
        np.full(n_labels, 0.25),
        **more,
    )


def test_a_few_labels_and_the_last_batches() -> None:
    ends = {"lower": np.full((6, 12), 0.1), "upper": np.full((6, 12), 0.8), "level": 0.9}
    lines = repr(make(6, 12, **ends)).splitlines()
    assert lines[0] == "BatchResult: 6 batches, 12 labels, 90 % intervals, in percent"
    assert lines[1].split() == [
        *("label", "training"),
        *(word for i in range(2, 6) for word in ("batch", str(i), f"(n=1,00{i})")),
    ]
    # The label that moved most comes first.
    assert lines[2].startswith("label <11>      25.0")
    assert lines[2].endswith("70.0 [10.0, 80.0]")
    assert lines[-1] == "... 2 more labels and 2 more batches"
    assert len({len(line) for line in lines[1:-1]}) == 1


def test_groups_are_shown_by_their_size() -> None:
    sizes = [9, 1, 8, 2, 7, 6]
    result = BatchResult(["a"], list("uvwxyz"), sizes, np.full((6, 1), 0.1), [0.2], ordered=False)
    heads = repr(result).splitlines()[1]
    assert heads.split()[2:] == ["u", "(n=9)", "w", "(n=8)", "y", "(n=7)", "z", "(n=6)"]
    assert repr(result).endswith("... 2 more batches")


def test_alarms_stand_in_title_and_head() -> None:
    said = repr(make(2, 1, p_value=[0.5, 0.001]))
    assert "in percent; alarm in 1 batch" in said
    assert "batch 1 (n=1,001, alarm)" in said
    assert "batch 0 (n=1,000)" in said


def test_long_names_are_shortened() -> None:
    result = BatchResult(["x" * 200], ["y" * 200], [5], [[0.5]], [0.5])
    assert max(map(len, repr(result).splitlines())) < 110
    assert "x" * 29 + "…" in repr(result)


def test_html_is_escaped_and_has_the_notices() -> None:
    page = make(2, 1, notices=(Notice("A & B."),), p_value=[0.5, 0.001])._repr_html_()
    assert "<th>label &lt;0&gt;</th>" in page
    assert "<li>A &amp; B.</li>" in page
    assert "alarm)" in page
    assert "<li>" not in make(2, 1)._repr_html_()
