"""Timelines: cuts, smaller parts, and labels that the training part decides."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from prevalens.datasets import load
from prevalens.validation import InputError

pytestmark = pytest.mark.filterwarnings("ignore:.*is not the published file")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """UN roll calls from 1980 to 1989, 40 a year; arXiv papers, one category of which is late."""
    folder = tmp_path / "timelines"
    folder.mkdir()
    lines = ["date,id,text,issues"]
    for i in range(400):
        issue = ("Human rights", "Colonialism;Human rights", "")[i % 3]
        lines.append(f"{1980 + i // 40}-{1 + i // 4 % 10:02}-01,{i},vote on {issue} now,{issue}")
    (folder / "un.csv").write_text("\n".join(lines) + "\n")
    lines = ["date,id,title,abstract,categories"]
    for i in range(2000):
        day = np.datetime64("2025-05-01") + i // 50
        tags = "cs.CV" + (";cs.CL" if i % 2 else "") + (";cs.RO" if i % 250 == 0 else "")
        tags += ";new" if i > 1700 else ""
        lines.append(f"{day},{i},Paper,about {tags.replace(';', ' ')},{tags}")
    (folder / "arxiv-2025.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_the_default_cut_is_the_registrys(home: Path) -> None:
    data = load("un", home=home)
    assert (data.train.n_items, data.test.n_items) == (200, 200)
    assert data.train.labels == ("Colonialism", "Human rights")
    assert data.train_times is not None
    assert data.test_times is not None
    assert data.train_times.max() < np.datetime64("1985") <= data.test_times.min()
    assert data.vectoriser is not None


@pytest.mark.parametrize(("cut", "n_train"), [("1982", 80), ("1982-06-01", 100), (0.25, 100)])
def test_other_cuts(home: Path, cut: str | float, n_train: int) -> None:
    data = load("un", home=home, cut=cut)
    assert (data.train.n_items, data.test.n_items) == (n_train, 400 - n_train)
    assert data.sha == load("un", home=home).sha


def test_labels_follow_from_the_training_part_alone(home: Path) -> None:
    # "new" is a label of 15 % of all papers; "cs.RO" of 0.4 % of any part.
    assert load("arxiv", home=home).train.labels == ("cs.CL", "cs.CV")
    assert "new" in load("arxiv", home=home, cut=0.95).train.labels
    assert load("arxiv", home=home, raw=True).train.n_labels == 4


def test_smaller_parts(home: Path) -> None:
    data = load("un", home=home, max_train=50, max_test=20)
    assert (data.train.n_items, data.test.n_items) == (50, 20)
    again = load("un", home=home, max_train=50, max_test=20)
    np.testing.assert_array_equal(data.train.X.toarray(), again.train.X.toarray())
    years, counts = np.unique(data.test_times.astype("datetime64[Y]"), return_counts=True)
    assert len(years) == 5
    assert set(counts) == {4}
    whole = load("un", home=home, max_train=10_000, max_test=10_000)
    assert (whole.train.n_items, whole.test.n_items) == (200, 200)


def test_smaller_parts_of_data_without_times() -> None:
    data = load("synthetic", max_train=100, max_test=200, raw=True)
    np.testing.assert_array_equal(data.test.Y, load("synthetic").test.Y[5::10])
    assert data.train.n_items == 100


def test_data_without_times_are_not_cut() -> None:
    with pytest.raises(InputError, match="'synthetic' has no times; leave out cut='1985'"):
        load("synthetic", cut="1985")


@pytest.mark.data
def test_dates_of_the_public_timelines(data_home: Path) -> None:
    votes = load("un", home=data_home, text=True)
    assert str(votes.train_times.min()) == "1946-01-01"
    assert str(votes.test_times.max()) == "2019-12-27"
    assert 0.3 < (np.concatenate([votes.train.Y, votes.test.Y]).sum(axis=1) == 0).mean() < 0.4
    papers = load("arxiv", home=data_home, text=True)
    assert papers.train.X[0].startswith("Simulation of prosthetic vision with PRIMA system")
    assert ". Objective. Patients" in papers.train.X[0]
    assert load("goemotions", home=data_home, text=True).train_times is None
