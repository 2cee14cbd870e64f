from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from prevalens.errors import InputError
from prevalens.model import Model
from prevalens.service.settings import Limits
from prevalens.service.tasks import TASKS

LIMITS = Limits()


def _do(what: str, /, **task: Any) -> tuple[dict[str, Any], list[str]]:
    stages: list[str] = []
    done = TASKS[what]({"limits": LIMITS, **task}, lambda stage, share=None: stages.append(stage))
    # What a task answers has to travel as JSON.
    return json.loads(json.dumps(done)), stages


def test_a_model_is_described(model_file: Path) -> None:
    about, _ = _do("describe", model=str(model_file))
    assert about["columns"] == ["text"]
    assert about["kind"] == "text"
    assert about["n_items"] == 300
    assert sorted(about["training"]) == sorted(about["labels"])


def test_a_model_file_that_was_written_anew_is_read_anew(model_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.prevalens"
    shutil.copy(model_file, path)
    assert _do("describe", model=str(path))[0]["n_items"] == 300
    path.write_bytes(b"something else")
    with pytest.raises(InputError, match="no model file"):
        _do("describe", model=str(path))
    path.unlink()
    with pytest.raises(InputError, match="There is no file"):
        _do("describe", model=str(path))


def test_training_writes_the_model_the_workflow_would(tickets_folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "model.prevalens"
    about, stages = _do(
        "train",
        path=str(tickets_folder / "train.csv"),
        source="my tickets.csv",
        output=str(output),
        text="text",
        tags="tags",
        sep=";",
        method="lr+cc",
        labels=None,
        features=None,
    )
    model = Model.load(output)
    assert list(model.labels) == about["labels"]
    assert about["method"] == model.summary.method
    assert {"reading", "fitting", "saving"} <= {stage.split()[0] for stage in stages}
    assert model.provenance["files"][0]["name"] == "my tickets.csv"


@pytest.mark.parametrize(
    ("asked", "columns"),
    [
        ({"scores": ["p_*", ["r_x", "r_y"]], "labels": ["y_*"]}, ["p_x", "p_y", "r_x", "r_y"]),
        ({"scores_tags": ["llm"], "labels": ["y_*"]}, ["llm"]),
    ],
)
def test_answers_of_a_labeller_are_trained_on(
    tmp_path: Path, asked: dict[str, Any], columns: list[str]
) -> None:
    rows = [f"0.{2 + n % 6},0.{3 + n % 5},{n % 2},1,x;y,{n % 2},{n // 2 % 2}" for n in range(40)]
    path = tmp_path / "0.csv"
    path.write_text("p_x,p_y,r_x,r_y,llm,y_x,y_y\n" + "\n".join(rows) + "\n")
    output = str(tmp_path / "m.prevalens")
    given = {"path": str(path), "source": "a.csv", "output": output, "method": "given+cc"}
    about, _ = _do("train", **given, **asked)
    assert about["kind"] == "scores"
    assert about["columns"] == columns
    assert about["labels"] == ["y_x", "y_y"]


def test_training_tells_its_stages_and_stops_where_it_is_stopped(tmp_path: Path) -> None:
    path, output = tmp_path / "0.csv", tmp_path / "m.prevalens"
    rows = [f"text number {n},{'odd' if n % 2 else 'even'}" for n in range(30)]
    path.write_text("text,tags\n" + "\n".join(rows) + "\n")
    asked = {"path": str(path), "source": "a.csv", "text": "text", "tags": "tags", "sep": ";"}
    told: list[tuple[str, float | None]] = []

    def report(stage: str, share: float | None = None) -> None:
        told.append((stage, share))
        if stage == "choosing":
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        TASKS["train"]({"limits": LIMITS, "output": str(output), **asked}, report)
    assert told[1:4] == [
        ("fitting 30 items", None),
        ("preparing items", None),
        ("logistic regressions, fold 1 of 5", None),
    ]
    assert ("logistic regressions, fold 5 of 5", None) in told
    assert not output.exists()


def test_rare_labels_are_told(tickets_folder: Path, tmp_path: Path) -> None:
    rows = [f"text number {n},{'odd' if n % 2 else 'even'}" for n in range(40)]
    path = tmp_path / "0.csv"
    path.write_text("text,tags\n" + "\n".join([*rows, "one more text,unique"]) + "\n")
    about, _ = _do(
        "train",
        path=str(path),
        source="a.csv",
        output=str(tmp_path / "m.prevalens"),
        text="text",
        tags="tags",
        sep=";",
        method="lr+cc",
    )
    assert any("'unique'" in sentence for sentence in about["summary"]["warnings"])


def test_what_cannot_be_trained_is_a_sentence(tickets_folder: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"my\.csv has no column 'body'"):
        _do(
            "train",
            path=str(tickets_folder / "train.csv"),
            source="my.csv",
            output=str(tmp_path / "m"),
            text="body",
            tags="tags",
            sep=";",
        )


def test_a_file_is_previewed_under_its_name(tickets_folder: Path) -> None:
    found, _ = _do("preview", path=str(tickets_folder / "train.csv"), name="mine.csv")
    kinds = {column["name"]: column["kind"] for column in found["columns"]}
    assert kinds == {"id": "id", "date": "time", "text": "text", "tags": "tags"}
    assert found["columns"][3]["separator"] == ";"
    assert len(found["rows"]) == 6


def test_the_demo_brings_months_and_trains_once(tmp_path: Path) -> None:
    output = tmp_path / "model.prevalens"
    made, _ = _do("demo", folder=str(tmp_path), output=str(output), train=False)
    assert made["about"] is None
    assert not output.exists()
    assert [Path(one["path"]).name for one in made["files"]][:2] == ["2026-01.csv", "2026-02.csv"]


def test_training_with_times_tells_what_the_backtest_found(
    tickets_folder: Path, tmp_path: Path
) -> None:
    asked = {
        "path": str(tickets_folder / "train.csv"),
        "source": "my tickets.csv",
        "text": "text",
        "tags": "tags",
        "sep": ";",
        "method": "lr+pcc",
    }
    about, stages = _do("train", output=str(tmp_path / "m.prevalens"), time="date", **asked)
    assert about["drift"].startswith("In a backtest over 4 origins")
    assert "backtest over time, origin 1 of 4" in stages
    with pytest.raises(InputError, match=r"my tickets\.csv, line 2: 't\d+' in the column 'id'"):
        _do("train", output=str(tmp_path / "n.prevalens"), time="id", **asked)
