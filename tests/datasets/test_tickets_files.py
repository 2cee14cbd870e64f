"""Tickets as files: everything that was generated is there, and nothing that gives it away."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from prevalens.collection import Collection
from prevalens.datasets.tickets import SEPARATOR, tickets, write_tickets
from prevalens.errors import InputError


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_files_hold_the_tickets(tmp_path: Path) -> None:
    data = tickets(40, 10, months=3)
    written = write_tickets(data, tmp_path / "new", held_out=0.25)
    assert [path.name for path in written] == [
        *("train.csv", "labelled.csv", "2026-01.csv", "2026-02.csv", "2026-03.csv", "truth.csv")
    ]
    train, labelled = (_read(path) for path in written[:2])
    assert (len(train), len(labelled)) == (30, 10)
    assert [row["text"] for row in train + labelled] == list(data.train.X)
    tags = [set(filter(None, row["tags"].split(SEPARATOR))) for row in train + labelled]
    Y = [[label in own for label in data.train.labels] for own in tags]
    np.testing.assert_array_equal(Y, data.train.Y)
    assert [row["text"] for path in written[2:5] for row in _read(path)] == list(data.test.X)
    assert list(_read(written[2])[0]) == ["id", "date", "text"]
    second = _read(written[-1])[1]
    shares = [float(second[label]) for label in data.test.labels]
    np.testing.assert_allclose(shares, data.test.Y[10:20].mean(axis=0), atol=1e-4)


def test_what_stands_in_the_way_is_named(tmp_path: Path) -> None:
    data = tickets(4, 2, months=1)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be made"):
        write_tickets(data, tmp_path / "file")
    (tmp_path / "out" / "train.csv").mkdir(parents=True)
    with pytest.raises(InputError, match=r"train\.csv is a folder; name a file"):
        write_tickets(data, tmp_path / "out")
    with pytest.raises(InputError, match="say when they came"):
        write_tickets(replace(data, test=Collection(data.test.X, data.test.Y)), tmp_path)
