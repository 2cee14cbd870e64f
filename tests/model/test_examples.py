"""The items behind a number: those with the highest and lowest scores, within bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.model import Model, examples
from prevalens.model.examples import Examples
from prevalens.model.groups import ByColumn
from prevalens.model.quantify import quantify_tables
from prevalens.scores import Scores
from prevalens.tables.formats import as_table

LABELS = ("a", "b")


def _added(values: np.ndarray, codes: np.ndarray, parts: int, most: int = 3) -> Examples:
    """The examples of items that arrive in several parts; item 7 has the text "item 7"."""
    found = Examples(LABELS, most)
    texts = [f"item {i}" for i in range(len(values))]
    for rows in np.array_split(np.arange(len(values)), parts):
        if rows.size:
            (chunk,) = as_table({"text": [texts[i] for i in rows]}).chunks(["text"])
            found.add(chunk, ["text"], Scores(values[rows]), codes[rows].astype(np.int32))
    found.name([f"batch {c}" for c in np.unique(codes)], np.unique(codes).tolist())
    return found


@given(seed=st.integers(0, 10**6), n=st.integers(1, 40), parts=st.integers(1, 5))
def test_they_are_the_ends_of_the_sorted_scores(seed: int, n: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    values, codes = rng.permuted(np.linspace(0, 1, 2 * n)).reshape(n, 2), rng.integers(0, 3, n)
    found = _added(values, codes, parts)
    for code in np.unique(codes):
        own = np.flatnonzero(codes == code)
        for column, told in enumerate(found.of(f"batch {code}") or []):
            order = [f"item {i}" for i in own[np.argsort(values[own, column])]]
            highest = [item["text"] for item in told["highest"]]
            assert highest == order[::-1][:3]
            assert [item["text"] for item in told["lowest"]] == order[:3][: max(0, len(own) - 3)]
            scores = dict(zip(order, np.sort(values[own, column]), strict=True))
            for item in (*told["highest"], *told["lowest"]):
                assert item["score"] == pytest.approx(scores[item["text"]], abs=1e-4)


def test_folded_batches_are_one() -> None:
    values = np.linspace(0, 1, 16).reshape(8, 2)
    found = _added(values, np.array([0, 1, 2, 0, 1, 2, 0, 1]), 2)
    found.name(["both", "other"], [0, 1], [0, 2])
    texts = [item["text"] for item in found.of("both")[0]["highest"]]
    assert texts == ["item 6", "item 5", "item 3"]
    assert found.of("other")[0]["highest"][0]["text"] == "item 7"


def test_of_many_batches_the_latest_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(examples, "_MOST_CELLS", 8)
    values, codes = np.random.default_rng(0).random((30, 2)), np.repeat(np.arange(10), 3)
    found = _added(values, codes, 10)
    kept = [found.of(f"batch {code}") is not None for code in range(10)]
    assert kept == [False] * 6 + [True] * 4
    # A batch that was left out does not come back with a part of its items.
    again = _added(np.vstack([values, values[:1]]), np.append(codes, 0), 31)
    assert again.of("batch 0") is None


def test_long_texts_are_cut_and_rows_are_told_by_their_cells() -> None:
    (chunk,) = as_table({"text": ["x" * 1000], "n": [5]}).chunks(["text", "n"])
    found = Examples(["a"])
    found.add(chunk, ["text"], Scores([[0.5]]), np.zeros(1, dtype=np.int32))
    found.name(["all"], [0])
    (told,) = found.of("all")
    assert told["highest"][0]["text"] == "x" * 299 + "…"
    rows = Examples(["a"])
    rows.add(chunk, ["n", "text"], Scores([[0.5]]), np.zeros(1, dtype=np.int32))
    rows.name(["all"], [0])
    assert rows.of("all")[0]["highest"][0]["text"].startswith("n: 5; text: xxx")


def test_they_come_with_an_estimate_of_tables() -> None:
    rng = np.random.default_rng(0)
    words = ["cat purrs", "dog barks"]
    kinds = rng.integers(0, 2, 200)
    texts = [f"{words[k]} {rng.integers(9)}" for k in kinds]
    model = Model.fit(
        texts, np.column_stack([kinds, 1 - kinds]), labels=["dog", "cat"], method="lr+pcc"
    )
    table = as_table({"text": texts, "team": ["x"] * 150 + ["y"] * 45 + ["z"] * 3 + ["w"] * 2})
    found = Examples(model.labels, 2)
    result = quantify_tables(model, [table], ByColumn("team"), interval=None, examples=found)
    assert result.batches == ("x", "y", "2 groups with fewer than 10 items")
    for batch in result.batches:
        dog, cat = found.of(batch)
        assert (dog["label"], cat["label"]) == ("dog", "cat")
        assert len(dog["highest"]) == 2
    dog, _ = found.of("x")
    assert all(item["text"].startswith("dog barks") for item in dog["highest"])
    assert all(item["text"].startswith("cat purrs") for item in dog["lowest"])
    assert dog["highest"][0]["place"].split(", ")[-1].startswith("row ")
