"""Exports of annotation tools and embeddings at every command that reads tables."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from prevalens.__main__ import cli
from prevalens.errors import InputError

WORDS = {"billing": "invoice", "login": "password"}


def run(*words: object) -> Result:
    done = CliRunner().invoke(cli, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


def _items(count: int, seed: int) -> list[tuple[str, list[str]]]:
    rng = np.random.default_rng(seed)
    sets = [[name for name in WORDS if rng.random() < 0.4] for _ in range(count)]
    return [
        (" ".join([f"{'abcdefg'[i % 7]}x please", *(WORDS[name] for name in labels)]), labels)
        for i, labels in enumerate(sets)
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An export in which every tenth task was skipped, a batch, and vectors that tell labels."""
    place = tmp_path_factory.mktemp("annotations")
    tasks = []
    for number, (text, labels) in enumerate(_items(200, 0)):
        result = {"from_name": "t", "type": "choices", "value": {"choices": labels}}
        entry = {"completed_by": 1, "was_cancelled": number % 10 == 0, "result": [result]}
        tasks.append({"data": {"text": text}, "annotations": [entry], "predictions": []})
    (place / "export.json").write_text(json.dumps(tasks))
    items = _items(80, 1)
    (place / "may.csv").write_text("text,age\n" + "".join(f"{t},{len(t)}\n" for t, _ in items))
    rng = np.random.default_rng(2)
    for name, rows in (("export", _items(200, 0)), ("may", items)):
        signal = np.array([[float(label in labels) for label in WORDS] for _, labels in rows])
        np.save(place / f"{name}.npy", np.hstack([signal, rng.normal(size=(len(rows), 6))]))
    return place


def test_an_export_needs_no_options(folder: Path) -> None:
    model = folder / "m.prevalens"
    done = run("fit", folder / "export.json", "--method", "lr+pacc", "-o", model)
    assert "Learnt 2 labels from 180 items" in done.output
    assert "20 items of" in done.output
    assert "was skipped" in done.output
    run("evaluate", model, folder / "export.json", "--samples", 10)
    rows = run("quantify", model, folder / "may.csv", folder / "export.json").stdout.splitlines()
    assert [row.split(",")[:3] for row in rows[1::2]] == [
        ["may", "billing", "80"],
        ["export", "billing", "200"],
    ]
    compared = run("compare", folder / "export.json", "--methods", "lr+pcc", "--samples", 10)
    assert "lr+pcc" in compared.output


def test_texts_embeddings_and_columns_together(folder: Path, tmp_path: Path) -> None:
    rows = [{"body": text, "age": len(text), "labels": labels} for text, labels in _items(200, 0)]
    train = tmp_path / "export.jsonl"
    train.write_text("".join(json.dumps(row) + "\n" for row in rows))
    batch = (folder / "may.csv").read_text().replace("text,age", "body,age")
    (tmp_path / "may.csv").write_text(batch)
    vectors = ["--embeddings", folder / "*.npy"]
    model = tmp_path / "m.prevalens"
    how = ["--text", "body", "--features", "age", "--method", "lr+pacc", "-o", model]
    done = run("fit", train, *how, *vectors)
    assert "3 columns (1 text, 1 number, 1 vector)" in done.output
    estimates = run("quantify", model, tmp_path / "may.csv", *vectors).stdout.splitlines()[1:]
    true = np.mean([[name in labels for name in WORDS] for _, labels in _items(80, 1)], axis=0)
    found = [float(row.split(",")[3]) for row in estimates]
    np.testing.assert_allclose(found, true, atol=0.08)
    sheet = tmp_path / "sheet.jsonl"
    run("sample", model, tmp_path / "may.csv", "-n", 5, *vectors, "-o", sheet)
    assert "embeddings" not in json.loads(sheet.read_text().splitlines()[0])
    with pytest.raises(InputError, match=r"no column 'embeddings'.*name it with `embeddings=`"):
        run("quantify", model, tmp_path / "may.csv")


def test_tasks_for_a_tool(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model = folder / "tasks.prevalens"
    run("fit", folder / "export.json", "--method", "lr+pcc", "-o", model)
    done = run("sample", model, folder / "may.csv", "-n", 5, "--format", "label-studio")
    assert "to_label.json, to_label.xml" in done.output
    assert "--labelled EXPORT" in done.output
    assert len(json.loads(Path("to_label.json").read_text())) == 5
    with pytest.raises(InputError, match=r"to_label.json exists and may have labels"):
        run("sample", model, folder / "may.csv", "--format", "argilla")
    with pytest.raises(InputError, match=r"are written as .jsonl"):
        run("sample", model, folder / "may.csv", "--format", "doccano", "-o", "x.csv")
