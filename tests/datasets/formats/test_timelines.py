from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from prevalens.datasets.formats.timelines import goemotions_parts, timeline_parts
from prevalens.validation import FormatError, InputError

PAPERS = """date,id,title,abstract,categories
2025-06-01,3,Maps,"Of cities,
and of \"\"seas\"\"",cs.CV;cs.AI
2025-03-18,1,Words,Of mouths,cs.CL
2025-05-31,2,Nothing,,
"""
COLUMNS = {"date": "date", "text": ["title", "abstract"], "tags": "categories"}


def test_a_table_is_cut_at_a_date(tmp_path: Path) -> None:
    path = tmp_path / "papers.csv.gz"
    path.write_bytes(gzip.compress(PAPERS.encode()))
    train, test = timeline_parts(path, **COLUMNS, cut="2025-06-01")  # type: ignore[arg-type]
    assert train.X.tolist() == ["Words. Of mouths", "Nothing. "]
    assert test.X.tolist() == ['Maps. Of cities,\nand of "seas"']
    assert train.labels == test.labels == ("cs.AI", "cs.CL", "cs.CV")
    assert train.Y.tolist() == [[0, 1, 0], [0, 0, 0]]
    assert train.times is not None
    assert train.times.dtype == np.dtype("datetime64[D]")
    assert [str(day) for day in train.times] == ["2025-03-18", "2025-05-31"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("2025-03-18", "spring", "times must be dates"),
        ("2025-03-18", "", "Item 1 has no time"),
        ("2025-06-01", "2025-05-01", "leaves no item on one side"),
        ("categories", "tags", "no column 'categories'"),
    ],
)
def test_a_damaged_table_is_one_sentence(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "papers.csv"
    path.write_text(PAPERS.replace(old, new))
    with pytest.raises(InputError, match=message) as caught:
        timeline_parts(path, **COLUMNS, cut="2025-06-01")  # type: ignore[arg-type]
    assert "papers.csv" in str(caught.value)


@pytest.fixture
def comments(tmp_path: Path) -> dict[str, Path]:
    contents = {
        "train": 'Say "hi\t0,2\ta1\nodd\x85line\t1\ta2\n',
        "test": "Oh\t2\ta3",
        "labels": "joy\nfear\nneutral",
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    return {name: tmp_path / name for name in contents}


def test_comments_with_numbers_of_emotions(comments: dict[str, Path]) -> None:
    train, test = goemotions_parts(**comments)
    assert train.X.tolist() == ['Say "hi', "odd\x85line"]
    assert train.labels == ("joy", "fear", "neutral")
    assert train.Y.tolist() == [[1, 0, 1], [0, 1, 0]]
    assert test.Y.tolist() == [[0, 0, 1]]
    assert train.times is None


@pytest.mark.parametrize("line", ["Oh\t3\ta3", "Oh\t-1\ta3", "Oh\tjoy\ta3", "Oh\t2"])
def test_a_damaged_comment_is_named(comments: dict[str, Path], line: str) -> None:
    comments["test"].write_text(f"Oh\t2\ta3\n{line}\n")
    with pytest.raises(FormatError, match="line 2: expected a text, numbers below 3"):
        goemotions_parts(**comments)
