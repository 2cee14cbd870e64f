"""Fit from files: which columns are items, which labels stay, where the data came from."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from prevalens.errors import FormatError, InputError, PrevalensWarning
from prevalens.model.fit import fit_files
from prevalens.model.labelled import read_labelled
from prevalens.model.progress import CancelledError, Step
from prevalens.model.quantify import quantify_files
from prevalens.quantifier import Quantifier
from prevalens.tables.opening import Reading

HEADER = ["id", "text", "age", "ward", "tags", "x", "y"]


def rows(count: int = 60) -> list[list[object]]:
    found = []
    for i in range(count):
        x, y = i % 2, (i // 2) % 2
        tags = ";".join(name for name, one in (("x", x), ("y", y)) if one)
        words = ["hello"] + ["alpha"] * x + ["beta"] * y
        found.append([i, " ".join(words), 20 + x * 30 + i % 5, "ns"[y] * 3, tags, x, y])
    return found


@pytest.fixture
def train(tmp_path: Path) -> Path:
    path = tmp_path / "train.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([HEADER, *rows()])
    return path


def test_texts_with_tags_and_with_label_columns_are_the_same(train: Path) -> None:
    by_tags = fit_files(train, text="text", tags="tags", sep=";", method="lr+pcc")
    by_labels = fit_files(train, text="text", labels=["x", "y"], method="lr+pcc")
    assert by_tags.labels == by_labels.labels == ("x", "y")
    assert by_tags.columns == ("text",)
    np.testing.assert_array_equal(by_tags.prevalence, by_labels.prevalence)
    assert by_tags.provenance["rows"] == 60
    assert by_tags.provenance["files"][0]["name"] == str(train)


def test_features_named_and_all_others(train: Path) -> None:
    named = fit_files(train, features=["age", "ward"], labels=["x", "y"], method="lr+pcc")
    assert named.columns == ("age", "ward")
    others = fit_files(train, labels=["x", "y"], id="id", method="lr+pcc")
    assert others.columns == ("text", "age", "ward", "tags")


def test_several_files_of_several_formats(train: Path, tmp_path: Path) -> None:
    lines = [dict(zip(HEADER, map(str, row), strict=True)) for row in rows()]
    more = tmp_path / "more.jsonl.gz"
    more.write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    found = read_labelled([train, more], text="text", labels=["x", "y"])
    assert len(found.items) == len(found.Y) == 120
    assert found.items.source == "2 files"
    np.testing.assert_array_equal(found.Y[:60], found.Y[60:])
    with pytest.raises(InputError, match=r"train\.csv has no column 'zz'"):
        read_labelled([train, more], text="text", labels=["x"], id="zz")


def test_rare_tags_are_left_out_with_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    body = [["text", "tags"], *([row[1], row[4].replace(";", ",")] for row in rows(110))]
    body[5][1] = "once"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows(body)
    with pytest.warns(PrevalensWarning, match="1 label with fewer than 5 positive items.*'once'"):
        model = fit_files(path, text="text", tags="tags", method="lr+pcc")
    assert model.labels == ("x", "y")
    assert read_labelled(path, text="text", tags="tags").labels == ("once", "x", "y")


def test_a_cell_of_another_kind_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    lines = [{"text": f"word {i}", "x": i % 2} for i in range(20)]
    lines[7]["text"] = {"deep": 1}
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(FormatError, match=r"t\.jsonl, line 8: expected a text, but here is"):
        fit_files(path, text="text", labels=["x"], method="lr+pcc")


def test_progress_and_cancelling(train: Path) -> None:
    steps: list[Step] = []
    fit_files(train, text="text", labels=["x"], method="lr+pcc", progress=steps.append)
    assert list(dict.fromkeys(step.stage for step in steps)) == ["reading", "fitting"]
    assert steps[0].done == steps[0].total == train.stat().st_size
    assert {step.n_items for step in steps[1:]} == {60}
    assert [step.detail for step in steps[1:4]] == [
        "",
        "preparing items",
        "training the classifier",
    ]
    with pytest.raises(CancelledError, match="The work was cancelled"):
        fit_files(train, text="text", labels=["x"], method="lr+pcc", cancelled=lambda: True)


def test_an_automatic_fit_is_cancelled_within(train: Path) -> None:
    steps: list[Step] = []

    def cancelled() -> bool:
        return bool(steps) and steps[-1].detail == "logistic regressions, fold 1 of 5"

    with pytest.raises(CancelledError):
        fit_files(train, text="text", labels=["x"], progress=steps.append, cancelled=cancelled)
    assert steps[-1] == Step("fitting", n_items=60, detail="logistic regressions, fold 1 of 5")


def test_reading_settings(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with path.open("w", newline="", encoding="cp1252") as file:
        csv.writer(file, delimiter=":").writerows([["té", "x"], *([r[1], r[5]] for r in rows())])
    reading = Reading(delimiter=":", encoding="cp1252")
    assert fit_files(path, text="té", labels=["x"], method="lr+pcc", reading=reading).columns == (
        "té",
    )


def test_items_of_one_group_are_kept_together(tmp_path, monkeypatch):
    rows = [f"{i % 8},{i // 4},{i % 2},{i // 2 % 2}" for i in range(80)]
    (tmp_path / "t.csv").write_text("\n".join(["a,author,x,y", *rows]))
    given = {}
    fit = Quantifier.fit

    def noted(self, X, Y, *, groups=None, **more):
        given["groups"], given["X"] = groups, X
        return fit(self, X, Y, groups=groups, **more)

    monkeypatch.setattr(Quantifier, "fit", noted)
    model = fit_files(tmp_path / "t.csv", labels=["x", "y"], group="author", method="lr+pacc")
    assert given["groups"].tolist() == [str(i // 4) for i in range(80)]
    # The column of groups is no feature.
    assert model.columns == ("a",)


def test_rows_without_a_group_are_groups_of_their_own(tmp_path):
    rows = [f"{i},{'' if i % 2 else 'ann'},{i % 2},{i // 2 % 2}" for i in range(20)]
    (tmp_path / "t.csv").write_text("\n".join(["a,author,x,y", *rows]))
    found = read_labelled(tmp_path / "t.csv", labels=["x", "y"], group="author")
    assert len(set(found.groups.tolist())) == 11


def test_a_preparation_that_could_not_be_saved_is_refused_before_training(tmp_path):
    class Own(BaseEstimator):
        def transform(self, X):
            return X

    (tmp_path / "t.csv").write_text("\n".join(["a,x", *(f"{i},{i % 2}" for i in range(20))]))
    with pytest.raises(InputError, match=r"The model (holds .*Own|cannot be stored)"):
        fit_files(tmp_path / "t.csv", labels=["x"], method="lr+pcc", preparation=Own())


def test_a_transformer_of_texts_and_one_of_columns(train: Path, tmp_path: Path) -> None:
    labels = {"labels": ["x", "y"], "method": "lr+pcc"}
    texts = fit_files(train, text="text", preparation=TfidfVectorizer(), **labels)
    assert texts.columns == ("text",)
    ours = fit_files(train, text="text", **labels)
    ward = make_column_transformer((OneHotEncoder(), ["ward"]), (StandardScaler(), ["age"]))
    columns = fit_files(train, features=["ward", "age"], preparation=ward, **labels)
    assert columns.summary.n_features == 3
    for model in (texts, columns, ours):
        model.save(tmp_path / "m.prevalens")
        found = quantify_files(tmp_path / "m.prevalens", train, interval=None).point
        np.testing.assert_allclose(found, [model.prevalence], atol=0.1)
    with pytest.raises(InputError, match="The preparation OneHotEncoder does not take these items"):
        fit_files(train, text="text", preparation=OneHotEncoder(), **labels)
    with pytest.raises(InputError, match="with a preparation there are none"):
        fit_files(train, preparation=ward, kinds={"age": "drop"}, **labels)


def test_columns_are_told_before_the_training(train: Path) -> None:
    events: list[object] = []
    model = fit_files(
        train,
        labels=["x", "y"],
        features=["id", "age", "ward"],
        kinds={"age": "category"},
        method="lr+pcc",
        on_columns=lambda uses: events.append({use.column: use.use for use in uses}),
        progress=lambda step: events.append(step.detail),
    )
    uses = {"id": "dropped", "age": "category", "ward": "category"}
    assert events.index(uses) == events.index("preparing items") + 1 < len(events) - 1
    assert {use.column: use.use for use in model.column_uses} == uses
    assert model.columns == ("age", "ward")


def test_dates_among_the_features_in_a_form_that_is_given(train: Path) -> None:
    with train.open("w", newline="") as file:
        body = [[f"0{1 + i % 9}/0{1 + i % 7}/2024", i % 2, i // 2 % 2] for i in range(60)]
        csv.writer(file).writerows([["seen", "x", "y"], *body])
    labels = {"labels": ["x", "y"], "method": "lr+pcc"}
    assert "read as %d/%m/%Y" in fit_files(train, **labels).summary.warnings[0]
    model = fit_files(train, date_form="%m/%d/%Y", **labels)
    assert model.summary.warnings == ()
    # 03/04/2024 is then the fourth of March, a Monday.
    names = model.preparation.get_feature_names_out()
    row = model.preparation.transform({"seen": ["03/04/2024"]})[0]
    assert names[row == 1].tolist() == ["seen = month 3", "seen = weekday 0"]
