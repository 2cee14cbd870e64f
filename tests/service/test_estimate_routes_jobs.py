from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import httpx
import psutil
import pytest


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
    busy = [worker.pid for worker in server.state.quantifying._busy]
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
