"""Tasks for annotation tools: labelled there and exported, they give the labels of a sheet."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from prevalens.errors import InputError, PrevalensWarning
from prevalens.model import Model, quantify_files, sample_files
from prevalens.model.labelling import ITEM, WEIGHT
from prevalens.model.sample import LabelSheet
from prevalens.model.tasks import TASK_ENDINGS

LABELS = ["a & b", '"c"']
Record = dict[str, Any]


@pytest.fixture(scope="module")
def model() -> Model:
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (120, 2))
    texts = [f"word{i % 7}" + " alpha" * a + " beta" * b for i, (a, b) in enumerate(Y.tolist())]
    return Model.fit({"body": texts}, Y, labels=LABELS, text="body", method="lr+pcc")


@pytest.fixture(scope="module")
def batch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("batch") / "may.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["body", "ward", "truth"])
        for number in range(60):
            a, b = rng.integers(0, 2, 2).tolist()
            truth = ";".join(name for name, has in zip(LABELS, (a, b), strict=True) if has)
            writer.writerow([f"word{number % 7}" + " alpha" * a + " beta" * b, "n", truth])
    return path


def truth_of(cells: Record) -> list[str]:
    return cells["truth"].split(";") if cells.get("truth") else []


def _label_studio(record: Record, labels: list[str], skipped: bool) -> Record:
    """As Label Studio exports a task that one person has submitted or skipped."""
    value = {"from_name": "labels", "to_name": "text", "type": "choices"}
    chosen = [{**value, "value": {"choices": labels}}] if labels else []
    entry = {"completed_by": 1, "was_cancelled": skipped, "result": chosen}
    return {"id": 1, **record, "annotations": [entry], "predictions": [], "meta": {}}


def _argilla(record: Record, labels: list[str], skipped: bool) -> Record:
    responses = {} if skipped else {"labels": [{"value": labels, "user_id": "u"}]}
    return {**record, "responses": responses, "_server_id": "s"}


def _doccano(record: Record, labels: list[str], skipped: bool) -> Record:
    return {"id": 1, **record, "label": None if skipped else labels, "Comments": []}


def _prodigy(record: Record, labels: list[str], skipped: bool) -> Record:
    hashes = {"_input_hash": 1, "_task_hash": 2, "_view_id": "choice"}
    return {**record, **hashes, "accept": labels, "answer": "ignore" if skipped else "accept"}


TOOLS: dict[str, tuple[Callable[[Record, list[str], bool], Record], Callable[[Record], Record]]] = {
    "label-studio": (_label_studio, lambda record: record["data"]),
    "argilla": (_argilla, lambda record: record["metadata"]),
    "doccano": (_doccano, lambda record: record),
    "prodigy": (_prodigy, lambda record: record["meta"]),
}


def exported(path: Path, tool: str, skip: int = 0) -> Path:
    """The tasks as the tool exports them, all labelled as the truth says but the first ones."""
    text = path.read_text(encoding="utf-8")
    lines = path.suffix == ".jsonl"
    records = [json.loads(line) for line in text.splitlines()] if lines else json.loads(text)
    finish, cells = TOOLS[tool]
    done = [finish(r, truth_of(cells(r)), i < skip) for i, r in enumerate(records)]
    target = path.with_name(f"{tool}-export{path.suffix}")
    target.write_text("\n".join(map(json.dumps, done)) if lines else json.dumps(done))
    return target


def filled(sheet: LabelSheet, path: Path, skip: int = 0) -> Path:
    """The same labels in a sheet."""
    rows = [
        {**row, **{name: None if i < skip else int(name in truth_of(row)) for name in LABELS}}
        for i, row in enumerate(sheet.rows)
    ]
    path.write_text(json.dumps(rows))
    return path


@pytest.mark.filterwarnings("ignore:.*without labels count as seen")
@pytest.mark.parametrize("stratified", [False, True])
@pytest.mark.parametrize("tool", TOOLS)
def test_the_export_gives_what_a_sheet_gives(
    model: Model, batch: Path, tmp_path: Path, tool: str, stratified: bool
) -> None:
    sheet = sample_files(model, batch, 20, stratified=stratified)
    written = sheet.write_tasks(tmp_path / f"tasks{TASK_ENDINGS[tool][0]}", tool)
    assert all(path.exists() for path in written)
    by_tool = quantify_files(model, batch, labelled=exported(written[0], tool, skip=3))
    by_sheet = quantify_files(model, batch, labelled=filled(sheet, tmp_path / "s.json", skip=3))
    assert by_tool.to_rows() == by_sheet.to_rows()
    assert by_tool.to_rows()[0]["n_labelled"] == 17


def test_the_configuration_of_label_studio_offers_all_labels(
    model: Model, batch: Path, tmp_path: Path
) -> None:
    sheet = sample_files(model, batch, 5)
    tasks, config = sheet.write_tasks(tmp_path / "tasks.json", "label-studio")
    view = ElementTree.parse(config).getroot()
    assert [choice.get("value") for choice in view.iter("Choice")] == LABELS
    shown = view.find("Text").get("value")
    assert shown == "$body"
    first = json.loads(tasks.read_text())[0]["data"]
    assert {"body", "ward", ITEM} <= {*first}
    assert WEIGHT not in first


def test_items_without_a_text_are_shown_as_lines(tmp_path: Path) -> None:
    row = {"age": 40, "ward": "north", "a & b": None, '"c"': None, ITEM: "1:0:x"}
    sheet = LabelSheet([row], 1, tuple(LABELS))
    tasks, _ = sheet.write_tasks(tmp_path / "t.json", "label-studio")
    assert json.loads(tasks.read_text())[0]["data"]["prevalens_text"] == "age: 40\nward: north"
    (tasks,) = sheet.write_tasks(tmp_path / "t.jsonl", "prodigy")
    task = json.loads(tasks.read_text())
    assert [option["id"] for option in task["options"]] == LABELS


def test_wrong_names_are_refused(tmp_path: Path) -> None:
    sheet = LabelSheet([], 1)
    with pytest.raises(InputError, match=r"Tasks for doccano are written as .jsonl"):
        sheet.write_tasks(tmp_path / "t.csv", "doccano")
    with pytest.raises(InputError, match="got 'excel'"):
        sheet.write_tasks(tmp_path / "t.csv", "excel")


def test_labels_that_the_model_does_not_know(model: Model, batch: Path, tmp_path: Path) -> None:
    path = sample_files(model, batch, 5).write_tasks(tmp_path / "t.jsonl", "prodigy")[0]
    wrong = exported(path, "prodigy")
    wrong.write_text(
        wrong.read_text()
        .replace('"accept": [', '"accept": ["new", ', 1)
        .replace('"new", ]', '"new"]')
    )
    with pytest.raises(InputError, match="line 1: the label 'new' is not among the 2 labels"):
        quantify_files(model, batch, labelled=wrong)


def test_doccano_does_not_say_who_was_seen(model: Model, batch: Path, tmp_path: Path) -> None:
    path = sample_files(model, batch, 30).write_tasks(tmp_path / "t.jsonl", "doccano")[0]
    with pytest.warns(PrevalensWarning, match="without labels count as seen"):
        quantify_files(model, batch, labelled=exported(path, "doccano"))
