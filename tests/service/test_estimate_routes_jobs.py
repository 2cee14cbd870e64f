from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from prevalens.service.schemas import ExamplesAnswer, PageAnswer, QuantifyAnswer, QuantifyBody


@pytest.fixture
def slow(client: httpx.Client, paused: list[int]) -> dict[str, Any]:
    """A job that does not end by itself."""
    answer = client.post("/v1/models/small/quantify?wait=false", json={"texts": ["my parcel"]})
    return dict(answer.json())


def test_a_running_job_is_cancelled_with_its_process(
    client: httpx.Client, slow: dict[str, Any], server: Any
) -> None:
    until = time.monotonic() + 60
    while client.get(f"/v1/jobs/{slow['id']}").json()["state"] == "waiting":
        assert time.monotonic() < until
        time.sleep(0.01)
    busy = [worker.pid for worker in server.state.small._busy]
    cancelled = client.delete(f"/v1/jobs/{slow['id']}").json()
    assert cancelled["state"] == "cancelled"
    assert cancelled["error"]["code"] == "cancelled"
    assert busy
    assert not any(psutil.pid_exists(pid) for pid in busy)
    assert client.get(f"/v1/jobs/{slow['id']}/result.csv").status_code == 409
    # The next one gets a new process.
    again = client.post("/v1/models/small/quantify", json={"texts": ["my parcel"]})
    assert again.status_code == 200


def test_an_unfinished_job_has_no_result_yet(
    client: httpx.Client, slow: dict[str, Any], finished: Callable[..., Any]
) -> None:
    early = client.get(f"/v1/jobs/{slow['id']}/answer")
    assert (early.status_code, early.json()["error"]["code"]) == (409, "conflict")
    assert slow["id"] in {job["id"] for job in client.get("/v1/jobs").json()["jobs"]}
    client.delete(f"/v1/jobs/{slow['id']}")
    assert finished(client, slow)["state"] == "cancelled"


def test_a_failed_job_tells_why(client: httpx.Client, finished: Callable[..., Any]) -> None:
    body = {"rows": [{"message": "hi"}]}
    job = finished(client, client.post("/v1/models/small/quantify?wait=false", json=body).json())
    assert job["state"] == "failed"
    assert "no column 'text'" in job["error"]["message"]
    refused = client.get(f"/v1/jobs/{job['id']}/result.csv")
    assert refused.json()["error"] == job["error"]


def test_a_full_queue_is_told_when_a_job_is_asked_for(
    client: httpx.Client, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pool in server.state._pools():
        monkeypatch.setattr(pool, "_tasks", Counter({"another": 10**6}))
    asked = [
        client.post("/v1/models/small/quantify?wait=false", json={"texts": ["my parcel"]}),
        client.post("/v1/uploads", files=[("file", ("a.csv", b"a\n1\n"))]),
        client.post("/v1/demo", json={}),
    ]
    for answer in asked:
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")


def test_a_small_request_does_not_wait_for_large_ones(
    client: httpx.Client, server: Any, tickets_folder: Path
) -> None:
    large = b"text\n" + b"where is my parcel\n" * 12_000
    place = "/v1/models/small/quantify"
    # Far more than there are workers, from one client; they would be refused for their rows.
    client.post(place, files=[("file", ("a.csv", large))])
    pids = server.state.quantifying.pids()
    for pid in pids:
        psutil.Process(pid).suspend()
    jobs = [
        client.post(f"{place}?wait=false", files=[("file", ("a.csv", large))]) for _ in range(4)
    ]
    try:
        start = time.monotonic()
        assert client.post(place, json={"texts": ["my parcel"]}).status_code == 200
        small = [("file", ("a.csv", b"text\nmy parcel\n"))]
        assert client.post("/v1/uploads", files=small).status_code == 201
        assert time.monotonic() - start < 10
    finally:
        for job in jobs:
            assert job.headers["location"] == f"/v1/jobs/{job.json()['id']}"
            client.delete(job.headers["location"])
        for pid in filter(psutil.pid_exists, pids):
            psutil.Process(pid).resume()


def test_a_model_is_evaluated(
    client: httpx.Client,
    uploaded: Callable[..., Any],
    finished: Callable[..., Any],
    tickets_folder: Path,
) -> None:
    (upload,) = uploaded(tickets_folder / "labelled.csv")
    body = {"uploads": [upload["id"]], "tags": "tags", "sep": ";", "n_samples": 20}
    asked = client.post("/v1/models/small/evaluate", json=body)
    assert asked.status_code == 202, asked.text
    job = finished(client, asked.json())
    assert job["state"] == "done", job
    assert job["result"]["verdict"] in ("yes", "with care", "no")
    place = asked.headers["location"]
    found = client.get(f"{place}/result.json").json()
    assert found["headline"] == job["result"]["headline"]
    assert client.get(f"{place}/result.csv").text.startswith("label,positives,error")
    assert client.get(f"{place}/result.html").text.startswith("<!DOCTYPE html>")
    assert client.get(f"{place}/answer").status_code == 404
    wrong = client.post("/v1/models/small/evaluate", json={**body, "tags": "no such"}).json()
    assert "no column 'no such'" in finished(client, wrong)["error"]["message"]


def test_a_finished_estimate_is_read_by_pages_with_examples(
    client: httpx.Client, finished: Callable[..., dict[str, Any]]
) -> None:
    texts = ["where is my parcel", "I want my money back", "the app crashes"] * 20
    body = {"texts": texts, "groups": [f"<team {n // 20}>" for n in range(60)]}
    job = finished(client, client.post("/v1/models/small/quantify?wait=false", json=body).json())
    page = client.get(job["result"]["batches"]).json()
    whole = client.get(job["result"]["answer"]).json()
    assert page["groups"] == whole["groups"]
    assert page["rows"] == whole["rows"]
    assert whole["headline"]["text"] or whole["headline"]["alarm"]
    assert whole["method"].startswith("Logistic regression for each label")
    assert PageAnswer.model_validate(page, strict=True)
    assert QuantifyAnswer.model_validate(whole, strict=True)
    found = client.get(job["result"]["batches"], params={"find": "TEAM 1"}).json()
    assert [group["name"] for group in found["groups"]] == ["<team 1>"]
    address = f"/v1/jobs/{job['id']}/examples"
    own = client.get(address, params={"group": "<team 1>", "label": "delivery"})
    assert own.headers["content-type"] == "application/json"
    answer = ExamplesAnswer.model_validate(own.json())
    assert answer.highest[0].text in texts
    assert answer.highest[0].score >= answer.highest[-1].score >= answer.lowest[-1].score
    assert answer.highest[0].place.startswith("texts, row ")
    assert client.get(address, params={"group": "x", "label": "delivery"}).status_code == 404
    assert client.get(job["result"]["batches"], params={"page": 1}).status_code == 404


def test_a_finished_job_tells_what_it_was_made_from(
    client: httpx.Client,
    finished: Callable[..., Any],
    uploaded: Callable[..., Any],
    tickets_folder: Path,
) -> None:
    (kept,) = uploaded(tickets_folder / "months" / "2026-01.csv")
    asked = {"uploads": [kept["id"]], "by_time": "date", "interval": 0.8}
    place = "/v1/models/small/quantify?wait=false"
    job = finished(client, client.post(place, json=asked).json())
    told = client.get(f"/v1/jobs/{job['id']}/request").json()
    assert told["model"] == "small"
    assert told["readings"] == [{"encoding": None, "delimiter": None}]
    given = {name: value for name, value in told.items() if name in QuantifyBody.model_fields}
    assert QuantifyBody(**given) == QuantifyBody(**asked)
    # Of a form with files there is nothing to send again.
    form = {"file": ("a.csv", b"text\nmy parcel\n")}
    job = finished(client, client.post(place, files=form).json())
    assert job["state"] == "done"
    assert client.get(f"/v1/jobs/{job['id']}/request").status_code == 404


def test_one_column_cannot_stand_for_two(
    client: httpx.Client,
    finished: Callable[..., Any],
    uploaded: Callable[..., Any],
    tmp_path: Path,
) -> None:
    rows = [f"{n},{n * 7 % 11},{n % 2}" for n in range(20)]
    (tmp_path / "numbers.csv").write_text("\n".join(["age,income,bought", *rows]) + "\n")
    (kept,) = uploaded(tmp_path / "numbers.csv")
    asked = {"upload": kept["id"], "features": ["age", "income"], "labels": ["bought"]}
    job = client.post("/v1/models", json={**asked, "method": "lr+cc"}).json()
    name = finished(client, job)["result"]["model"]
    place = f"/v1/models/{name}/quantify"
    for columns in ({"age": "customer", "income": "customer"}, {"age": "income"}):
        body = {"rows": [{"customer": 1, "income": 2}], "columns": columns}
        answer = client.post(place, json=body)
        assert answer.status_code == 422
        assert "for 'age' and for 'income' of the model" in answer.json()["error"]["message"]
    swapped = {"rows": [{"age": 1, "income": 2}], "columns": {"age": "income", "income": "age"}}
    assert client.post(place, json=swapped).status_code == 200
    client.delete(f"/v1/models/{name}")
