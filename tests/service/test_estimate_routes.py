from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from prevalens.model.quantify import quantify_files
from prevalens.model.result import BatchResult

PLACE = "/v1/models/small/quantify"


@pytest.fixture
def months(tickets_folder: Path) -> list[Path]:
    return sorted((tickets_folder / "months").iterdir())


def _form(paths: list[Path]) -> list[tuple[str, tuple[str, bytes]]]:
    return [("file", (path.name, path.read_bytes())) for path in paths]


def _with_moves(result: BatchResult) -> zip[tuple[dict[str, Any], int]]:
    return zip(result.to_rows(), result.moved.ravel().tolist(), strict=True)


def test_files_as_a_form_give_what_the_workflow_writes(
    client: httpx.Client, months: list[Path], model_file: Path
) -> None:
    expected = quantify_files(model_file, months, by_time="date", freq="M", interval=0.8)
    fields = {"by_time": "date", "freq": "M", "interval": "0.8"}
    csv = client.post(f"{PLACE}?format=csv", files=_form(months), data=fields)
    assert csv.content == expected.to_bytes(".csv")
    assert csv.headers["content-disposition"] == 'attachment; filename="prevalence.csv"'
    answer = client.post(PLACE, files=_form(months), data=fields).json()
    assert answer["rows"] == [{**row, "moved": move} for row, move in _with_moves(expected)]
    assert answer["ordered"]
    assert answer["level"] == 0.8


def test_a_job_has_answer_and_files(
    client: httpx.Client,
    months: list[Path],
    model_file: Path,
    uploaded: Callable[..., Any],
    finished: Callable[..., Any],
) -> None:
    keys = [one["id"] for one in uploaded(*months)]
    expected = quantify_files(model_file, months)
    started = client.post(f"{PLACE}?wait=false", json={"uploads": keys})
    assert started.status_code == 202
    job = finished(client, started.json())
    assert job["state"] == "done", job
    assert job["result"]["n_items"] == 180
    rows = client.get(job["result"]["answer"]).json()["rows"]
    assert [{**row, "moved": move} for row, move in _with_moves(expected)] == rows
    place = f"/v1/jobs/{job['id']}/result"
    assert client.get(f"{place}.csv").content == expected.to_bytes(".csv")
    assert client.get(f"{place}.json").json()["rows"] == expected.to_rows()
    page = client.get(f"{place}.html")
    assert page.text.startswith("<!DOCTYPE html>")
    assert page.headers["content-disposition"].startswith("attachment")
    assert page.headers["content-security-policy"].startswith("sandbox")
    assert client.get(f"{place}.pdf").status_code == 422
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 200
    assert client.get(f"{place}.csv").status_code == 404


def test_a_waiting_request_leaves_nothing_behind(client: httpx.Client, server: Any) -> None:
    before = set(server.state.storage.root.iterdir())
    assert client.post(PLACE, json={"texts": ["my parcel"]}).status_code == 200
    assert client.post(PLACE, json={"texts": []}).status_code == 422
    assert client.post(f"{PLACE}?format=html", json={"texts": ["my parcel"]}).status_code == 200
    assert set(server.state.storage.root.iterdir()) == before
    assert [job for job in server.state.jobs.all() if not job.over] == []


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        (b"{", 400, "Invalid JSON"),
        (b"[]", 422, "should be an object"),
        (b'{"texts": ["a"], "x": 1}', 422, "X: "),
        (b'{"rows": [{"message": "a"}]}', 422, "no column 'text'"),
        (b'{"uploads": ["' + b"0" * 32 + b'"]}', 404, "no upload"),
    ],
)
def test_bad_bodies_are_one_sentence(
    body: bytes, status: int, words: str, client: httpx.Client
) -> None:
    answer = client.post(PLACE, content=body, headers={"content-type": "application/json"})
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


def test_names_that_look_like_markup_or_formulas_stay_text(client: httpx.Client) -> None:
    evil = ["=1+1", "<script>alert(1)</script>", "@cmd", "-2"]
    body = {"texts": ["my parcel is late"] * 4, "groups": evil, "interval": None}
    csv = client.post(f"{PLACE}?format=csv", json=body).text
    cells = {line.split(",")[0] for line in csv.splitlines()[1:]}
    assert {"'=1+1", "'@cmd", "-2"} <= cells
    page = client.post(f"{PLACE}?format=html", json=body).text
    assert "<script>alert(1)</script>" not in page
    answer = client.post(PLACE, json=body)
    assert answer.headers["content-type"] == "application/json"
    assert {one["name"] for one in json.loads(answer.text)["groups"]} == set(evil)


def test_a_client_that_leaves_ends_its_job(
    client: httpx.Client, server: Any, paused: list[int]
) -> None:
    before = len(server.state.jobs)
    with pytest.raises(httpx.ReadTimeout):
        client.post(PLACE, json={"texts": ["my parcel is late"]}, timeout=0.3)
    until = time.monotonic() + 20
    while len(server.state.jobs) > before and time.monotonic() < until:
        time.sleep(0.01)
    assert len(server.state.jobs) == before
    assert sum(map(psutil.pid_exists, paused)) == len(paused) - 1
