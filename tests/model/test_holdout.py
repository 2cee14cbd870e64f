"""Items that are held out: which they are, and that no model has seen them."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from prevalens.errors import InputError
from prevalens.model import fit_files
from prevalens.model.holdout import Holdout
from prevalens.model.labelled import read_labelled
from prevalens.model.model import Model
from prevalens.tables.columns import ColumnPreparation

WORDS = ("alpha", "beta")
COLUMNS = {"text": "text", "labels": list(WORDS)}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 items in order of time, two of each day, and in groups of four."""
    path = tmp_path_factory.mktemp("holdout") / "train.csv"
    rng = np.random.default_rng(0)
    Y = rng.random((200, 2)) < [0.5, 0.3]
    texts = ["hello " + " ".join(np.array(WORDS)[row]) for row in Y]
    rows = [
        (text, f"2024-{1 + i // 56:02}-{1 + i % 56 // 2:02}", f"g{i // 4}", *row)
        for i, (text, row) in enumerate(zip(texts, Y.astype(int).tolist(), strict=True))
    ]
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([("text", "day", "author", *WORDS), *rows])
    return path


def test_a_random_part_is_like_the_rest(file: Path) -> None:
    data = read_labelled(file, **COLUMNS)
    held = Holdout.of(data, 0.3, 0)
    assert len(held.held_out) == 60
    assert sorted([*held.rest, *held.held_out]) == list(range(200))
    parts = [data.Y[rows].mean(axis=0) for rows in (held.rest, held.held_out)]
    np.testing.assert_allclose(*parts, atol=0.02)
    assert Holdout.of(data, 0.3, 1).held_out.tolist() != held.held_out.tolist()


def test_groups_stay_together(file: Path) -> None:
    data = read_labelled(file, **COLUMNS, group="author")
    held = Holdout.of(data, 0.3, 0)
    assert not set(data.groups[held.rest]) & set(data.groups[held.held_out])


def test_with_times_the_latest_are_held_out(file: Path) -> None:
    data = read_labelled(file, **COLUMNS, time="day")
    # The 51st item from the end has the day of the 52nd.
    held = Holdout.of(data, 51 / 200, 0)
    assert held.held_out.tolist() == list(range(148, 200))
    assert "the latest" in held.sentence


def test_too_few_items_are_refused_before_the_fit(file: Path) -> None:
    with pytest.raises(InputError, match=r"`holdout=0.1` leaves 180 labelled .* 20 to"):
        fit_files(file, **COLUMNS, holdout=0.1)
    with pytest.raises(InputError, match="holdout=` must lie strictly between 0 and 1; got 30"):
        fit_files(file, **COLUMNS, holdout=30)


def test_one_time_cannot_be_divided(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "same.csv"
    rows = [("text", "day", *WORDS), *([(f"hi {i}", "2024-05-01", i % 2, 1) for i in range(100)])]
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows(rows)
    data = read_labelled(path, **COLUMNS, time="day")
    with pytest.raises(InputError, match="no earlier items"):
        Holdout.of(data, 0.3, 0)


def test_the_model_is_fitted_on_all_items_and_the_test_on_others(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = []
    fit = Model.fit.__func__

    def noting(cls: type, items: object, Y: np.ndarray, **settings: object) -> Model:
        fitted.append(len(Y))
        return fit(cls, items, Y, **settings)

    monkeypatch.setattr(Model, "fit", classmethod(noting))
    model = fit_files(file, **COLUMNS, method="lr+pacc", holdout=0.3)
    assert fitted == [200, 140]
    assert model.summary.n_items == 200
    assert model.holdout is not None
    assert (model.holdout.n_items, model.holdout.seen) == (60, 0.0)
    # The words name the labels, so the estimates are nearly exact.
    assert model.holdout.error("this model").mean < 0.05
    assert "60 items that were held out (drawn at random)" in model.holdout.notices[0]
    assert fit_files(file, **COLUMNS, method="lr+pacc").holdout is None


def test_a_preparation_of_the_user_is_not_changed_by_the_test(file: Path) -> None:
    given = {"features": ["text", "author"], "labels": list(WORDS), "method": "lr+pcc"}
    alone = fit_files(file, **given, preparation=ColumnPreparation())
    tested = fit_files(file, **given, preparation=ColumnPreparation(), holdout=0.3)
    items = {"text": ["hello alpha"], "author": ["g3"]}
    np.testing.assert_array_equal(tested.score(items).values, alone.score(items).values)


def test_labels_that_the_rest_does_not_have_are_left_out(file: Path) -> None:
    data = read_labelled(file, **COLUMNS)
    held = Holdout(np.arange(100), np.arange(100, 200), "")
    data.Y[:100, 1] = 0
    trial = held.fit(data, [0, 1], method="lr+pcc", preparation=None, text="text")
    assert trial.labels == ("alpha",)
    assert held.evaluate(trial, data, interval=None, n_samples=10).labels == ("alpha",)
    data.Y[:100] = 1
    with pytest.raises(InputError, match="no label varies"):
        held.fit(data, [0, 1], preparation=None)
