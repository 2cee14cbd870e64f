"""Models that know time: backtests from files, horizons of batches, and what is said of drift."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest

from prevalens.batches import ScoredSamples
from prevalens.catalogue import parse
from prevalens.errors import FormatError, InputError
from prevalens.model import Model
from prevalens.model.drift import price_of_drift
from prevalens.model.fit import fit_files
from prevalens.model.quantify import quantify_files
from prevalens.samples import Samples
from prevalens.selection import GridSearch
from prevalens.tables.preparation import ArrayPreparation
from prevalens.tables.text import TextPreparation

LABELS = ("x", "y")


def _rows(count: int, year: int = 2023) -> list[list[object]]:
    """A ticket a day; the words say the labels, now and then wrongly."""
    rng = np.random.default_rng(year + 1)
    Y = rng.random((count, 2)) < [0.3, 0.5]
    said = Y ^ (rng.random((count, 2)) < 0.1)
    days = np.datetime64(f"{year}-01-01") + np.arange(count)
    noise = rng.choice(["red", "blue", "green", "new"], count)
    texts = [
        " ".join(["help", word, *(["alpha"] * int(a)), *(["beta"] * int(b))])
        for word, (a, b) in zip(noise, said, strict=True)
    ]
    return [
        [day, t, *map(int, y)]
        for day, t, y in zip(days.astype(str), texts, Y.tolist(), strict=True)
    ]


def _write(path: Path, rows: list[list[object]], head: tuple[str, ...] = ("date", "text")) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([[*head, *LABELS], *rows])
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("drift")
    _write(place / "train.csv", _rows(300))
    _write(place / "batch.csv", _rows(120, 2024))
    return place


HOW = {"text": "text", "labels": ["x", "y"], "method": "lr+pcc"}


@pytest.fixture(scope="module")
def model(folder: Path) -> Model:
    return fit_files(folder / "train.csv", time="date", **HOW)


def test_the_model_says_what_the_backtest_found(model: Model, tmp_path: Path) -> None:
    assert model.columns == ("text",)
    assert (model.drift.first, model.drift.last) == ("2023-01-01", "2023-10-27")
    assert model.drift.backtest.startswith("In a backtest over 4 origins, estimates were off ")
    assert model.drift.source == "backtest"
    assert "points for a label of 10 %" in model.drift.allowance
    assert "measured in the backtest" in model.drift.allowance
    model.save(tmp_path / "m.prevalens")
    again = Model.load(tmp_path / "m.prevalens")
    assert again.description.to_dict() == model.description.to_dict()
    assert again.time_column is not None
    assert again.time_column.name == "date"


def test_estimates_and_horizons_survive_the_file(
    model: Model, folder: Path, tmp_path: Path
) -> None:
    model.save(tmp_path / "m.prevalens")
    ours, theirs = (
        quantify_files(each, folder / "batch.csv", by_time="date")
        for each in (model, tmp_path / "m.prevalens")
    )
    np.testing.assert_array_equal(ours.upper, theirs.upper)


def test_later_batches_have_wider_intervals(model: Model, folder: Path) -> None:
    texts = [row[1] for row in _rows(120, 2024)]
    near, far = (model.quantify(texts, time=day) for day in ("2023-11-01", "2030-11-01"))
    assert np.all(far.upper - far.lower > near.upper - near.lower)
    np.testing.assert_array_equal(near.point, far.point)
    with pytest.raises(InputError, match="fitted with dates as times; the batch has numbers"):
        model.quantify(texts, time=7.0)


def test_a_batch_of_a_file_has_the_horizon_of_its_dates(model: Model, folder: Path) -> None:
    rows = _rows(120, 2024)
    by_file = quantify_files(model, folder / "batch.csv")
    texts, days = [row[1] for row in rows], [row[0] for row in rows]
    same = model.quantify(texts, time=days)
    np.testing.assert_allclose(by_file.upper[0], same.upper, atol=1e-6)
    assert not [notice for notice in by_file.notices if "no time" in notice.text]
    by_month = quantify_files(model, folder / "batch.csv", by_time="date")
    months = model.quantify(texts, time=days, groups=[day[:7] for day in days])
    np.testing.assert_allclose(by_month.upper, months.upper, atol=1e-6)


def test_batches_without_times_are_told(model: Model, tmp_path: Path) -> None:
    rows = _rows(120, 2024)
    bare = _write(tmp_path / "bare.csv", [row[1:] for row in rows], head=("text",))
    found = quantify_files(model, bare)
    assert [notice.level for notice in found.notices] == ["note"]
    assert found.notices[0].text.startswith("The batch has no time; intervals assume ")
    usual = model.quantify([row[1] for row in rows])
    np.testing.assert_allclose(found.upper[0], usual.upper, atol=1e-6)
    some = [["" if row[0] >= "2024-03" else row[0], *row[1:]] for row in rows]
    mixed = quantify_files(model, _write(tmp_path / "some.csv", some), by_time="date")
    assert mixed.batches[-1] == "(none)"
    assert "1 of 3 batches have no time ((none) first)" in mixed.notices[-1].text


def test_the_price_in_width_is_that_of_the_intervals(folder: Path) -> None:
    texts = [row[1] for row in _rows(120, 2024)]
    plain, wide = (fit_files(folder / "train.csv", drift=d, id="date", **HOW) for d in (0.0, 0.2))
    result = quantify_files(wide, folder / "batch.csv")
    widths = [
        float((m.quantify(texts).upper - m.quantify(texts).lower).mean()) for m in (plain, wide)
    ]
    assert f"{100 * (1 - widths[0] / widths[1]):.0f} % narrower" in result.provenance["drift"]
    assert "as given" in result.provenance["drift"]
    assert plain.drift.allowance.startswith("Intervals allow for no drift")
    batches = ScoredSamples(plain.score(texts), Samples.whole(120))
    assert price_of_drift(plain.quantifier, batches, 0.9, None) == ""
    assert price_of_drift(wide.quantifier, batches, None, None) == ""


def test_the_preparation_sees_the_past_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    fitted: list[int] = []
    learn = TextPreparation._learn
    monkeypatch.setattr(
        TextPreparation,
        "_learn",
        lambda self, items: (fitted.append(len(items)), learn(self, items))[1],
    )
    rows = _rows(300)
    Y = np.array([row[2:] for row in rows])
    Model.fit([row[1] for row in rows], Y, method="lr+pcc", time=[row[0] for row in rows])
    assert fitted == [300, 250, 200, 150, 100]


def test_a_column_that_only_later_items_fill(tmp_path: Path) -> None:
    rows = [
        [day, len(text), "north" if i >= 200 else "7", x, y]
        for i, (day, text, x, y) in enumerate(_rows(300))
    ]
    path = _write(tmp_path / "t.csv", rows, head=("date", "length", "place"))
    found = fit_files(path, time="date", labels=["x", "y"], method="lr+pcc")
    assert found.columns == ("length", "place")
    assert found.drift.backtest


def test_arrays_need_no_preparation_of_their_own() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = (X[:, :2] + rng.normal(size=(300, 2)) > 0.3).astype(int)
    found = Model.fit(X, Y, method="lr+pcc", time=np.arange(300))
    assert isinstance(found.preparation, ArrayPreparation)
    assert found.drift.column is None
    assert found.drift.backtest
    assert (found.drift.first, found.drift.last) == ("0", "299")


@pytest.mark.parametrize(
    ("times", "reason"),
    [
        (lambda rows: ["2024-05-31"] * len(rows), "all items have the same time"),
        (lambda rows: [row[0] for row in rows], "40 items with 40 different times leave no two"),
    ],
)
def test_times_that_say_nothing_are_told_once(times: object, reason: str) -> None:
    rows = _rows(40)
    Y = [row[2:] for row in rows]
    found = Model.fit([row[1] for row in rows], Y, method="lr+pcc", time=times(rows))
    assert sum(reason in text for text in found.summary.warnings) == 1
    assert found.drift.source == "default"
    assert found.drift.backtest == ""
    assert found.drift.first


def test_the_weights_of_the_candidates_are_told(folder: Path, tmp_path: Path) -> None:
    found = fit_files(folder / "train.csv", time="date", time_budget=2, **{**HOW, "method": "auto"})
    told = found.drift.backtest.partition("Estimates are the weighted median of ")[2]
    shares = [int(share) for share in re.findall(r"\((\d+) %\)", told)]
    assert sorted(shares, reverse=True) == shares
    assert abs(sum(shares) - 100) <= len(shares)
    found.save(tmp_path / "m.prevalens")
    texts = [row[1] for row in _rows(60, 2024)]
    ours, theirs = (
        each.quantify(texts, time="2024-03-01")
        for each in (found, Model.load(tmp_path / "m.prevalens"))
    )
    np.testing.assert_array_equal(ours.point, theirs.point)
    np.testing.assert_array_equal(ours.upper, theirs.upper)


def test_progress_names_the_origins(folder: Path) -> None:
    said: list[str] = []
    fit_files(folder / "train.csv", time="date", progress=lambda s: said.append(s.detail), **HOW)
    assert [text for text in said if text.startswith("backtest")] == [
        f"backtest over time, origin {number} of 4" for number in (1, 2, 3, 4)
    ]


def test_a_budget_that_is_spent_ends_the_backtest(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prevalens.model.model._WITH_BACKTEST", 0.0)
    monkeypatch.setattr(
        "prevalens.selection.backtest.time.perf_counter", iter(range(0, 900, 9)).__next__
    )
    found = fit_files(folder / "train.csv", time="date", time_budget=5, **HOW)
    assert "The time budget ended the backtest after 1 of 4 origins." in found.drift.backtest


def test_what_is_refused(folder: Path, tmp_path: Path) -> None:
    train = folder / "train.csv"
    search = GridSearch(parse("lr+pcc"), {"classifier__estimator__C": [1.0]})
    with pytest.raises(InputError, match="A GridSearch takes no times; search without them"):
        fit_files(train, time="date", **{**HOW, "method": search})
    with pytest.raises(InputError, match="Times measure the drift"):
        fit_files(train, time="date", drift=0.1, **HOW)
    with pytest.raises(InputError, match="a Quantifier has its own"):
        fit_files(train, drift=0.1, **{**HOW, "method": parse("lr+pcc")})
    with pytest.raises(InputError, match="drift must be a number from 0"):
        fit_files(train, drift=-1.0, **HOW)
    with pytest.raises(InputError, match="has no column 'day'"):
        fit_files(train, time="day", **HOW)
    with pytest.raises(InputError, match="`date_form=` needs the column"):
        fit_files(train, date_form="%Y", **HOW)
    rows = _rows(60)
    rows[7][0] = ""
    with pytest.raises(FormatError, match=r"t\.csv, line 9: the column 'date' has no time"):
        fit_files(_write(tmp_path / "t.csv", rows), time="date", **HOW)
    plain = fit_files(train, id="date", **HOW)
    with pytest.raises(InputError, match="fitted without times"):
        plain.quantify(["help"], time="2024-05-31")
    assert quantify_files(plain, folder / "batch.csv", by_time="date").ordered
