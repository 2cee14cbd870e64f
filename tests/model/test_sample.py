"""From files to a sheet, by hand, and back: the labels reach the items they were given to."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from prevalens.datasets.tickets import tickets
from prevalens.errors import InputError
from prevalens.model import Model, quantify_files, sample_files
from prevalens.model.labelling import ITEM, WEIGHT
from prevalens.model.result import COLUMNS
from prevalens.samples import Samples
from prevalens.tables.opening import open_table

NAMES = ("a", "b")
Rows = list[dict[str, Any]]


def _texts(count: int, seed: int) -> tuple[list[str], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    Y = (rng.random((count, 2)) < [0.6, 0.3]).astype(int)
    seen = Y ^ (rng.random(Y.shape) < 0.1)
    texts = [
        f"word{k}" + " alpha" * a + " beta" * b
        for k, (a, b) in zip(rng.integers(0, 9, count), seen, strict=True)
    ]
    return texts, Y


@pytest.fixture(scope="module")
def model() -> Model:
    texts, Y = _texts(200, 0)
    return Model.fit({"text": texts}, Y, labels=NAMES, text="text", method="lr+pcc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files with a column of their own, and the labels of the items in the column `truth`."""
    place = tmp_path_factory.mktemp("batches")
    for number, month in enumerate(("may", "june")):
        texts, Y = _texts(80, 1 + number)
        with (place / f"{month}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "truth", "team", "a"])
            rows = zip(texts, Y.tolist(), strict=True)
            writer.writerows([t, f"{a}{b}", "xy"[i % 2], 5] for i, (t, (a, b)) in enumerate(rows))
    return place


@pytest.fixture
def fill(tmp_path: Path) -> Callable[..., Path]:
    """Write the labels of the column `truth` into the first rows of a sheet."""

    def write(content: bytes, change: Callable[[Rows], Rows] = list, count: int = 999) -> Path:
        rows: Rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))
        for row in rows[:count]:
            row |= dict(zip(NAMES, row["truth"], strict=True))
        rows = change(rows)
        path = tmp_path / "labelled.csv"
        with path.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
        return path

    return write


def test_a_sheet_has_the_items_empty_labels_and_who_they_are(model: Model, folder: Path) -> None:
    sheet = sample_files(model, [folder / "may.csv", folder / "june.csv"], 10)
    assert (len(sheet.rows), sheet.n_items) == (20, 160)
    # The column `a` of the batch would be mistaken for the label `a`.
    assert list(sheet.rows[0]) == ["text", "truth", "team", "a", "b", ITEM]
    assert all(row["a"] is None and row["b"] is None for row in sheet.rows)
    batch = open_table(folder / "may.csv").read()
    for row in sheet.rows[:10]:
        number, _, name = row[ITEM].split(":")
        assert name == "may.csv"
        assert batch["text"][int(number) - 1] == row["text"]
    assert sample_files(model, folder, 10).rows != sheet.rows
    again = sample_files(model, [folder / "may.csv", folder / "june.csv"], 10)
    assert again.rows == sheet.rows


@pytest.mark.parametrize("stratified", [False, True])
def test_labels_come_back_to_their_items(
    model: Model, folder: Path, fill: Callable[..., Path], stratified: bool
) -> None:
    paths = [folder / "may.csv", folder / "june.csv"]
    sheet = sample_files(model, paths, 30, stratified=stratified)
    assert (WEIGHT in sheet.rows[0]) == stratified
    result = quantify_files(model, paths, labelled=fill(sheet.to_bytes(".csv"), count=40))
    assert result.n_labelled is not None
    assert result.n_labelled.tolist() == [30, 10]
    # The same by row numbers, in Python.
    table = {"text": [t for path in paths for t in open_table(path).read()["text"]]}
    truth = [t for path in paths for t in open_table(path).read()["truth"]]
    Y = np.array([[int(a) for a in one] for one in truth])
    groups = Samples.from_indices([np.arange(80), np.arange(80, 160)], n_items=160)
    draw = model.sample(table, 30, groups=groups, stratified=stratified)
    assert len(draw.rows) == 60
    numbers = [row[ITEM].split(":") for row in sheet.rows[:40]]
    rows = np.array([int(n) - 1 + 80 * (name == "june.csv") for n, _, name in numbers])
    weights = [float(row.get(WEIGHT, 1)) for row in sheet.rows[:40]]
    estimate = model.quantify(table, groups=groups, labelled=(rows, Y[rows], weights))
    np.testing.assert_allclose(result.point, estimate.point, rtol=1e-6)
    np.testing.assert_allclose(result.more_labels, estimate.more_labels)
    assert len(result.label_notes) == 2
    assert result.label_notes[0].startswith("may uses the labels of 30 of the 80 items; about ")


def test_groups_have_their_own_draws_and_others_their_usual_estimate(
    model: Model, folder: Path, fill: Callable[..., Path]
) -> None:
    sheet = sample_files(model, folder / "may.csv", 5, by="team")
    assert [row["team"] for row in sheet.rows] == ["x"] * 5 + ["y"] * 5
    path = fill(sheet.to_bytes(".csv"), count=5)
    result = quantify_files(model, folder / "may.csv", by="team", labelled=path)
    usual = quantify_files(model, folder / "may.csv", by="team")
    assert result.n_labelled is not None
    assert result.n_labelled.tolist() == [5, 0]
    # Scores of labelled batches are kept, in single precision.
    np.testing.assert_allclose(result.point[1], usual.point[1], atol=1e-6)
    assert not np.array_equal(result.point[0], usual.point[0])
    rows = result.to_rows()
    assert (rows[0]["n_labelled"], rows[2]["n_labelled"], rows[2]["more_labels"]) == (5, 0, None)
    assert rows[0]["more_labels"] > 0
    assert tuple(result.to_frame()) == COLUMNS
    assert result.estimate.n_labelled.tolist() == [5, 0]


def test_all_labels_give_the_truth(model: Model, folder: Path, fill: Callable[..., Path]) -> None:
    sheet = sample_files(model, folder / "may.csv", 500)
    result = quantify_files(model, folder / "may.csv", labelled=fill(sheet.to_bytes(".csv")))
    np.testing.assert_allclose(result.point[0], _texts(80, 1)[1].mean(axis=0))
    assert result.label_notes == ("may uses the labels of 80 of the 80 items.",)


def test_a_spreadsheet_may_change_the_file(
    model: Model, folder: Path, fill: Callable[..., Path]
) -> None:
    """Other columns reformatted, rows in another order, semicolons, decimal commas, a comment."""
    sheet = sample_files(model, folder / "may.csv", 20, stratified=True)
    first = fill(sheet.to_bytes(".csv"))
    expected = quantify_files(model, folder / "may.csv", labelled=first).point

    def change(rows: Rows) -> Rows:
        return [
            {**row, "text": "", WEIGHT: row[WEIGHT].replace(".", ","), "comment": "hm"}
            for row in reversed(rows)
        ]

    path = fill(sheet.to_bytes(".csv"), change)
    rows = list(csv.reader(io.StringIO(path.read_text())))
    with path.open("w", newline="") as file:
        csv.writer(file, delimiter=";").writerows(rows)
    found = quantify_files(model, folder / "may.csv", labelled=[path]).point
    np.testing.assert_allclose(found, expected)


def _second(**changes: Any) -> Callable[[Rows], Rows]:
    return lambda rows: [rows[0], {**rows[1], **changes}, *rows[2:]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (_second(a="2"), r"labelled.csv, line 3: the label 'a' is '2'; write 0 or 1"),
        (_second(b=""), r"labelled.csv, line 3: the label 'b' is empty and others are not"),
        (lambda rows: [*rows, rows[0]], r"line 7: this item is labelled twice, first in .*line 2"),
        (_second(**{ITEM: "?"}), r"line 3: the column 'prevalens_item' holds '\?'"),
        (
            _second(**{ITEM: "500:0:may.csv"}),
            r"line 3: the batch does not have this item \(row 500",
        ),
        (_second(**{WEIGHT: "-1"}), r"line 3: the weight is '-1'"),
        (lambda rows: [{**row, "c": "1"} for row in rows], r"labels in the column 'c', which is"),
        (lambda rows: [{**row, "a": "", "b": ""} for row in rows], r"No row of .*csv is labelled"),
        (
            lambda rows: [{k: v for k, v in row.items() if k != "b"} for row in rows],
            r"has no column 'b'",
        ),
        (
            lambda rows: [{k: v for k, v in row.items() if k != ITEM} for row in rows],
            r"has no column 'prevalens_item', which tells the items apart",
        ),
    ],
)
def test_refusals_name_the_line(
    model: Model,
    folder: Path,
    fill: Callable[..., Path],
    change: Callable[[Rows], Rows],
    sentence: str,
) -> None:
    sheet = sample_files(model, folder / "may.csv", 5, stratified=True)
    path = fill(sheet.to_bytes(".csv"), change)
    with pytest.raises(InputError, match=sentence):
        quantify_files(model, folder / "may.csv", labelled=path)


def test_labels_of_another_batch_are_refused(
    model: Model, folder: Path, fill: Callable[..., Path], tmp_path: Path
) -> None:
    path = fill(sample_files(model, folder / "may.csv", 5).to_bytes(".csv"))
    with pytest.raises(InputError, match="line 2: the batch does not have this item"):
        quantify_files(model, folder / "june.csv", labelled=path)
    # The same name and rows, but other content.
    other = tmp_path / "other"
    other.mkdir()
    (other / "may.csv").write_bytes((folder / "june.csv").read_bytes())
    with pytest.raises(InputError, match="give the batch that it was drawn from"):
        quantify_files(model, other / "may.csv", labelled=path)
    with pytest.raises(InputError, match="ask for an interval"):
        quantify_files(model, folder / "may.csv", labelled=path, interval=None)


def test_formats(model: Model, folder: Path, tmp_path: Path) -> None:
    sheet = sample_files(model, folder / "may.csv", 3)
    for ending in (".csv", ".tsv", ".jsonl", ".json", ".parquet", ".xlsx"):
        path = tmp_path / f"sheet{ending}"
        sheet.write(path)
        read = open_table(path).read()
        assert list(read[ITEM]) == [row[ITEM] for row in sheet.rows], ending
        assert list(read["text"]) == [row["text"] for row in sheet.rows], ending
    with pytest.raises(InputError, match="ends in none of them"):
        sheet.write(tmp_path / "sheet.doc")
    mixed = type(sheet)([{"a": 1}, {"a": "x"}], 2)
    with pytest.raises(InputError, match="one type per column"):
        mixed.to_bytes(".parquet")
    assert json.loads(mixed.to_bytes(".json")) == [{"a": 1}, {"a": "x"}]


def test_a_draw_in_python_from_any_items(model: Model) -> None:
    texts, Y = _texts(60, 9)
    draw = model.sample({"text": texts}, 20)
    combined = model.quantify({"text": texts}, labelled=(draw.rows, Y[draw.rows]))
    assert combined.n_labelled == 20
    assert combined.shape == (2,)
    plain = Model.fit(texts, Y, labels=NAMES, method="lr+pcc").sample(texts, 7)
    assert len(plain.rows) == 7


def test_labels_of_rows_in_any_form_and_columns_by_name() -> None:
    data = tickets(200, 40, months=2)
    model = Model.fit(data.train.X, data.train.Y, labels=data.train.labels, method="lr+pcc")
    rows = model.sample(data.test.X, 20).rows
    Y, names = data.test.Y[rows], list(data.train.labels)
    frame = pd.DataFrame(Y, columns=names)
    sets = [{name for name, has in zip(names, row, strict=True) if has} for row in Y]
    expected = model.quantify(data.test.X, labelled=(rows, Y))
    for form in (frame, frame[names[::-1]], sets):
        found = model.quantify(data.test.X, labelled=(rows, form))
        np.testing.assert_array_equal(found.point, expected.point)
    for other, sentence in (
        (frame.rename(columns={names[0]: "other"}), f"no column for the label '{names[0]}'"),
        (frame.assign(other=0), "the column 'other', which is no label"),
    ):
        with pytest.raises(InputError, match=sentence):
            model.quantify(data.test.X, labelled=(rows, other))
