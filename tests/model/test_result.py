from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import numpy as np
import openpyxl
import pandas as pd
import pytest

from prevalens.errors import InputError
from prevalens.estimate import PrevalenceEstimate
from prevalens.model.result import COLUMNS, WIDE_COLUMNS, BatchResult, Notice

POINT = np.array([[0.1, 0.5], [0.2, 0.4]])


@pytest.fixture
def result():
    estimate = PrevalenceEstimate(
        POINT, ["a", "=b"], index=["May", "June"], lower=POINT - 0.1, upper=POINT + 0.1, level=0.9
    )
    return BatchResult.from_estimate(
        estimate,
        sizes=np.array([30, 40]),
        training=np.array([0.3, 0.3]),
        notices=(Notice("A warning."),),
    )


def test_rows_are_one_per_group_and_label_in_order(result):
    rows = result.to_rows()
    assert [tuple(row) for row in rows] == [COLUMNS] * 4
    assert [(row["group"], row["label"], row["n_items"]) for row in rows] == [
        *(("May", "a", 30), ("May", "=b", 30)),
        *(("June", "a", 40), ("June", "=b", 40)),
    ]
    assert [row["prevalence"] for row in rows] == POINT.ravel().tolist()
    assert rows[3]["lower"] == pytest.approx(0.3)
    assert result.warnings == ("A warning.",)


def test_a_name_that_looks_like_a_formula_is_defused_in_csv_only(result, tmp_path):
    result.write(tmp_path / "out.csv")
    assert "'=b" in (tmp_path / "out.csv").read_text()
    result.write(tmp_path / "out.json")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["rows"] == result.to_rows()
    assert found["interval"] == 0.9


def test_an_unknown_ending_leaves_no_file(result, tmp_path):
    with pytest.raises(InputError, match="xyz"):
        result.write(tmp_path / "out.xyz")
    assert not list(tmp_path.iterdir())


def test_the_estimate_comes_back(result):
    estimate = result.estimate
    np.testing.assert_array_equal(estimate.point, POINT)
    np.testing.assert_array_equal(estimate.upper, POINT + 0.1)
    assert (estimate.labels, list(estimate.index), estimate.level) == (
        ("a", "=b"),
        ["May", "June"],
        0.9,
    )


@pytest.fixture
def trusted():
    """Two batches, of which the second alarms."""
    ends = {"lower": POINT - 0.05, "upper": POINT + 0.05}
    bands = {"band_lower": POINT - 0.1, "band_upper": POINT + 0.1}
    return BatchResult(
        ["a", "=b"],
        ["May", "=June"],
        [30, 40],
        POINT,
        [0.3, 0.3],
        **ends,
        **bands,
        level=0.9,
        p_value=[0.5, 0.001],
        n_labelled=[0, 12],
        more_labels=[[np.nan, np.nan], [36, 0]],
        notices=(
            Notice("All."),
            Notice("June only.", "note", "=June"),
            Notice("Both.", "note", batches=("May", "=June")),
            Notice("Neither.", "note", "July"),
        ),
        provenance={"files": [{"name": "x.csv"}], "method": "=cmd"},
    )


def test_rows_say_how_far_to_trust_them(trusted):
    first, _, _, last = trusted.to_rows()
    assert tuple(first) == COLUMNS
    assert (first["alarm"], last["alarm"]) == (False, True)
    assert (last["p_value"], last["level"], last["training"]) == (0.001, 0.9, 0.3)
    assert (last["band_lower"], last["band_upper"]) == (pytest.approx(0.3), pytest.approx(0.5))
    assert (first["n_labelled"], first["more_labels"]) == (0, None)
    assert (last["n_labelled"], last["more_labels"]) == (12, 0)
    assert (first["notes"], last["notes"]) == ("All. Both.", "All. June only. Both.")


def test_without_alarm_it_is_unknown_not_false(result):
    assert {row["alarm"] for row in result.to_rows()} == {None}
    assert {row["alarm"] for row in result.batch_rows()} == {None}


def test_every_format_has_the_same_cells(trusted):
    rows = trusted.to_rows()
    plain = {**rows[3], "group": "'=June", "label": "'=b"}
    text = csv.DictReader(io.StringIO(trusted.to_bytes(".csv").decode()))
    assert list(text)[3] == {k: str(v).lower() if v is True else str(v) for k, v in plain.items()}
    lines = trusted.to_bytes(".jsonl").decode().splitlines()
    assert [json.loads(line) for line in lines] == rows
    frame = pd.read_parquet(io.BytesIO(trusted.to_bytes(".parquet")))
    assert frame["alarm"].tolist() == [False, False, True, True]
    book = openpyxl.load_workbook(io.BytesIO(trusted.to_bytes(".xlsx")))
    cells = [tuple(row) for row in book["estimates"].iter_rows(values_only=True)]
    assert cells[0] == COLUMNS
    for found, row in zip(cells[1:], rows, strict=True):
        near = [pytest.approx(cell) if type(cell) is float else cell for cell in row.values()]
        assert list(found) == near


def test_a_workbook_has_batches_notes_and_provenance(trusted):
    book = openpyxl.load_workbook(io.BytesIO(trusted.to_bytes(".xlsx")))
    assert book.sheetnames == ["estimates", "batches", "notes"]
    batches = list(book["batches"].iter_rows(values_only=True))
    assert batches[2] == ("=June", 40, True, 0.001, 12, 18, "All. June only. Both.")
    notes = list(book["notes"].iter_rows(values_only=True))
    assert ("note", "May, =June", "Both.") in notes
    assert ("provenance", "method", "=cmd") in notes
    types = [cell.data_type for sheet in book for row in sheet.iter_rows() for cell in row]
    assert "f" not in types


def test_the_wide_form_has_a_row_per_label(trusted):
    rows = trusted.to_rows(wide=True)
    assert [row["label"] for row in rows] == ["a", "=b"]
    batches = [f"{name} {batch}" for batch in ("May", "=June") for name in WIDE_COLUMNS]
    assert list(rows[0]) == ["label", "training", *batches]
    assert (rows[1]["prevalence May"], rows[1]["prevalence =June"]) == (0.5, 0.4)
    assert rows[1]["lower =June"] == pytest.approx(0.35)
    assert (rows[0]["alarm May"], rows[0]["alarm =June"], rows[0]["n_items =June"]) == (
        *(False, True),
        40,
    )
    assert trusted.to_frame(wide=True).shape == (2, 12)


def test_two_batches_of_one_name_have_no_wide_form():
    twice = BatchResult(["a"], ["May", "May"], [1, 2], [[0.1], [0.2]], [0.3])
    assert len(twice.to_rows()) == 2
    with pytest.raises(InputError, match="same name"):
        twice.to_rows(wide=True)


def test_percent_changes_shares_and_their_names_only(trusted):
    shares, percent = trusted.to_rows(), trusted.to_rows(percent=True)
    for before, after in zip(shares, percent, strict=True):
        for name, value in before.items():
            if f"{name}_percent" in after:
                assert after[f"{name}_percent"] == pytest.approx(100 * value)
            else:
                assert after[name] == value
    names = [name for name in percent[0] if name.endswith("_percent")]
    assert len(names) == 6
    assert percent[0]["prevalence_percent"] == 10.0
    wide = trusted.to_rows(wide=True, percent=True)[0]
    assert (wide["prevalence_percent May"], wide["training_percent"]) == (10.0, 30.0)
    assert wide["n_items May"] == 30


def test_json_has_batches_too(trusted):
    found = json.loads(trusted.to_bytes(".json", percent=True))
    assert found["rows"] == trusted.to_rows(percent=True)
    assert [batch["alarm"] for batch in found["batches"]] == [False, True]
    assert found["notices"][2]["batches"] == ["May", "=June"]


def test_one_batch_shows_a_chart_of_its_labels(trusted):
    alone = BatchResult(["<a>"], ["June"], [40], [[0.2]], [0.3], p_value=[0.001])
    page = alone._repr_html_()
    assert "<caption>June (alarm)</caption>" in page
    assert "&lt;a&gt;" in page
    assert page.count("<svg") == 1
    assert trusted._repr_html_().count("<svg") == len(trusted.labels)


@pytest.fixture
def axes():
    plt = pytest.importorskip("matplotlib.pyplot")
    yield lambda: plt.subplots()[1]
    plt.close("all")


def test_plots_follow_the_kind_of_batches(trusted, axes):
    lines = trusted.plot(ax=axes())
    assert [line.get_label() for line in lines.lines] == ["a", "=b"]
    one = trusted.plot(batch="=June", ax=axes())
    assert one.get_title() == "=June (alarm)"
    assert [tick.get_text() for tick in one.get_yticklabels()] == ["a", "=b"]
    groups = replace(trusted, ordered=False).plot(labels=["a"], ax=axes())
    assert groups.get_title() == "a"
    # The largest prevalence comes first.
    assert [tick.get_text() for tick in groups.get_yticklabels()] == ["=June (alarm)", "May"]
    np.testing.assert_allclose(groups.lines[0].get_xdata(), [0.2, 0.1])


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"batch": "July"}, "no batch 'July'"),
        ({"labels": ["c"]}, "no label 'c'"),
        ({"labels": ["a", "=b"]}, "drawn for one label; got 2"),
    ],
)
def test_what_cannot_be_drawn_is_refused(trusted, wrong, sentence):
    with pytest.raises(InputError, match=sentence):
        replace(trusted, ordered=False).plot(**wrong)


def test_a_result_writes_its_report(trusted, tmp_path):
    trusted.report(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "=June" in page
    with pytest.raises(InputError, match="there is no folder"):
        trusted.report(tmp_path / "nowhere" / "report.html")


GIVEN = {
    "labels": ["a", "b"],
    "batches": ["May", "June", "July"],
    "sizes": [5, 6, 7],
    "point": [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]],
    "training": [0.2, 0.5],
}


def test_changes_and_the_moves_that_bands_support() -> None:
    point = np.array(GIVEN["point"])
    given = {**GIVEN, "sizes": [50, 60, 70], "level": 0.9}
    report = BatchResult(**given, lower=point - 0.05, upper=point + 0.05)
    np.testing.assert_allclose(report.change, point - [0.2, 0.5])
    assert report.moved.tolist() == [[-1, -1], [1, -1], [1, 1]]
    # Bands go before intervals.
    wide = replace(report, band_lower=point - 0.15, band_upper=point + 0.15)
    assert wide.moved.tolist() == [[0, -1], [0, 0], [1, 0]]
    assert not BatchResult(**given).moved.any()
    assert replace(report, p_value=[0.9, 0.001, 0.9]).moved.tolist() == [[-1, -1], [0, 0], [1, 1]]
    assert replace(report, sizes=[1, 60, 70]).moved.tolist() == [[0, 0], [1, -1], [1, 1]]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"batches": []}, "at least one batch"),
        ({"point": [[0.1, 0.2]]}, r"point must have shape \(3, 2\); got \(1, 2\)"),
        ({"sizes": [1]}, r"sizes must have shape \(3,\)"),
        ({"labels": ["a"]}, "2 label columns but 1 label names"),
        ({"lower": GIVEN["point"]}, "both ends of the intervals, or none"),
        ({"p_value": [0.5]}, r"p_value must have shape \(3,\)"),
        ({"true": [0.5]}, "true must have shape"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        BatchResult(**{**GIVEN, **change})


def test_a_selection_keeps_the_verdicts_among_all_batches():
    n = 40
    point = np.full((n, 1), 0.5)
    p_value = np.linspace(0.05, 1, n)
    p_value[:4] = 0.002
    names = [f"b{i}" for i in range(n)]
    notices = (Notice("all"), Notice("one", batch="b39"), Notice("two", batches=("b0", "b1")))
    ends = {"lower": point - 0.1, "upper": point + 0.1, "level": 0.9}
    whole = BatchResult(
        ["a"], names, [50] * n, point, [0.1], p_value=p_value, notices=notices, **ends
    )
    places = [39, 10, 12]
    part = whole.select(places)
    assert part.batches == ("b39", "b10", "b12")
    np.testing.assert_array_equal(part.judged, whole.judged[places])
    np.testing.assert_array_equal(part.unusual, whole.unusual[places])
    np.testing.assert_array_equal(part.moved, whole.moved[places])
    # Alone, the three raise no suspicion of drift, and all would get a verdict.
    alone = BatchResult(["a"], part.batches, [50] * 3, part.point, [0.1], p_value=part.p_value)
    assert alone.judged.sum() > part.judged.sum()
    assert [notice.text for notice in part.notices] == ["all", "one"]
    assert [part.notes_of(name) for name in part.batches] == ["all one", "all", "all"]
