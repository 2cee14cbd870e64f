"""A few labels over HTTP: draw, label, hand in; the same numbers as the command line gives."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from prevalens.__main__ import cli

Rows = list[dict[str, str]]


def _sheet(content: bytes) -> Rows:
    return list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))


def _filled(content: bytes, count: int = 999) -> bytes:
    """Label the first rows by a word of their texts."""
    rows = _sheet(content)
    labels = list(rows[0])[list(rows[0]).index("text") + 1 : -1]
    for row in rows[:count]:
        row |= {name: str(int(name[:4] in row["text"])) for name in labels}
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


@pytest.fixture
def month(tickets_folder: Path) -> Path:
    return tickets_folder / "months" / "2026-01.csv"


def test_uploads_are_drawn_labelled_and_estimated_as_on_the_command_line(
    client: httpx.Client,
    uploaded: Callable[..., list[dict[str, Any]]],
    month: Path,
    model_file: Path,
    tmp_path: Path,
) -> None:
    body = {"uploads": [uploaded(month)[0]["id"]]}
    drawn = client.post("/v1/models/small/sample?n=20", json=body)
    assert drawn.status_code == 200, drawn.text
    assert drawn.headers["content-type"] == "text/csv; charset=utf-8"
    assert drawn.headers["content-disposition"] == 'attachment; filename="to_label.csv"'
    sheet = tmp_path / "to_label.csv"
    words = ["sample", str(model_file), str(month), "-n", "20", "-o", str(sheet)]
    assert CliRunner().invoke(cli, words).exit_code == 0
    assert sheet.read_bytes() == drawn.content

    before = client.post("/v1/models/small/quantify", json=body).json()
    labelled = tmp_path / "labelled.csv"
    labelled.write_bytes(_filled(drawn.content))
    body["labelled"] = [uploaded(labelled)[0]["id"]]
    answer = client.post("/v1/models/small/quantify", json=body).json()
    assert answer["groups"][0]["n_labelled"] == 20
    assert answer["groups"][0]["more_labels"] > 0
    assert {row["n_labelled"] for row in answer["rows"]} == {20}
    widths = [sum(row["upper"] - row["lower"] for row in one["rows"]) for one in (answer, before)]
    assert widths[0] < widths[1]
    assert "--labelled labelled.csv" in answer["command"]
    found = client.post("/v1/models/small/quantify?format=csv", json=body).content
    words = ["quantify", str(model_file), str(month), "--labelled", str(labelled)]
    done = CliRunner().invoke(cli, words)
    assert done.stdout_bytes == found


def test_a_form_brings_items_and_labels(client: httpx.Client, month: Path) -> None:
    items = ("file", (month.name, month.read_bytes()))
    drawn = client.post("/v1/models/small/sample?n=5&stratified=true&seed=4", files=[items])
    assert drawn.status_code == 200, drawn.text
    assert "prevalens_weight" in _sheet(drawn.content)[0]
    labels = ("labelled", ("done.csv", _filled_weighted(drawn.content)))
    answer = client.post("/v1/models/small/quantify", files=[items, labels])
    assert answer.status_code == 200, answer.text
    assert answer.json()["groups"][0]["n_labelled"] == 5
    alone = client.post("/v1/models/small/quantify", files=[labels])
    assert alone.status_code == 422
    assert "The form brings no file" in alone.json()["error"]["message"]


def _filled_weighted(content: bytes) -> bytes:
    rows = _sheet(content)
    for row in rows:
        row |= {name: "0" for name, cell in row.items() if cell == ""}
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode()


def test_texts_and_groups_can_be_drawn_too(client: httpx.Client) -> None:
    body = {"texts": [f"where is my parcel {n}" for n in range(9)], "groups": list("aaabbbccc")}
    rows = _sheet(client.post("/v1/models/small/sample?n=2", json=body).content)
    assert len(rows) == 6
    assert next(iter(rows[0])) == "text"
    assert not any("\0" in name for name in rows[0])


def test_refusals(
    client: httpx.Client, uploaded: Callable[..., list[dict[str, Any]]], month: Path, tmp_path: Path
) -> None:
    def sentence(answer: httpx.Response, status: int) -> str:
        assert answer.status_code == status, answer.text
        return str(answer.json()["error"]["message"])

    texts = {"texts": ["my parcel"]}
    path = "/v1/models/small/sample"
    assert "n" in sentence(client.post(f"{path}?n=0", json=texts), 422)
    assert "no model 'x'" in sentence(client.post("/v1/models/x/sample", json=texts), 404)
    assert "Send application/json" in sentence(client.post(path, content=b"x"), 415)
    assert "exactly one of" in sentence(client.post(path, json={}), 422)
    drawn = client.post(path, json={"uploads": [uploaded(month)[0]["id"]]}).content
    labelled = tmp_path / "labelled.csv"
    labelled.write_bytes(_filled(drawn))
    key = uploaded(labelled)[0]["id"]
    other = client.post("/v1/models/small/quantify", json={**texts, "labelled": [key]})
    assert "the batch does not have this item" in sentence(other, 422)
    gone = client.post("/v1/models/small/quantify", json={**texts, "labelled": ["0" * 32]})
    assert "There is no upload" in sentence(gone, 404)
