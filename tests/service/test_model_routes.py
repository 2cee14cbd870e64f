from __future__ import annotations

import csv
import re
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import psutil
import pytest

from prevalens.datasets.tickets import tickets, write_tickets
from prevalens.model import Model
from prevalens.service.model_routes import _check_room, _keep
from prevalens.service.problems import Problem
from prevalens.service.settings import Limits, Settings
from prevalens.service.storage import ModelEntry, Models, Storage

HOW = {"text": "text", "tags": "tags", "sep": ";", "method": "lr+cc"}


def _state(tmp_path: Path, keep: Path | None, kept: int = 20) -> Any:
    return SimpleNamespace(
        models=Models(),
        limits=Limits(kept_models=kept),
        settings=Settings(keep=keep),
        storage=Storage(tmp_path),
        training=SimpleNamespace(check_room=lambda: None),
        jobs=SimpleNamespace(unfinished=[]),
    )


def _made(state: Any) -> Path:
    folder = state.storage.folder()
    (folder / "model.prevalens").write_bytes(b"new")
    return Path(folder)


def test_kept_models_never_write_over_a_file(tmp_path: Path) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "a.prevalens").write_bytes(b"old")
    state = _state(tmp_path, keep)
    entry = _keep(state, _made(state), "a", {})
    assert entry.path == keep / "a-2.prevalens"
    assert (keep / "a.prevalens").read_bytes() == b"old"
    assert entry.path.read_bytes() == b"new"
    state.storage.close()


def test_models_that_are_not_kept_live_in_the_private_folder(tmp_path: Path) -> None:
    state = _state(tmp_path, None, kept=2)
    names = []
    for _ in range(2):
        _check_room(state)
        names.append(_keep(state, _made(state), "../a b", {}))
    assert [entry.name for entry in names] == ["a-b", "a-b-2"]
    assert all(entry.path.is_relative_to(state.storage.root) for entry in names)
    with pytest.raises(Problem, match="keeps 2 models trained here"):
        _check_room(state)
    state.models.remove("a-b")
    _check_room(state)
    state.jobs.unfinished.append(SimpleNamespace(kind="train"))
    with pytest.raises(Problem, match="keeps 2 models trained here"):
        _check_room(state)
    state.storage.close()


def test_given_models_are_listed(client: httpx.Client, model_file: Path) -> None:
    (one,) = [one for one in client.get("/v1/models").json()["models"] if one["name"] == "small"]
    model = Model.load(model_file)
    assert one["origin"] == "given"
    assert one["labels"] == list(model.labels)
    assert list(one["training"].values()) == model.prevalence.tolist()
    assert one["columns"] == ["text"]
    assert client.get("/v1/models/small").json() == one
    assert str(model_file.parent) not in str(one)


def test_a_model_file_is_handed_out_as_it_is(client: httpx.Client, model_file: Path) -> None:
    answer = client.get("/v1/models/small/file")
    assert answer.content == model_file.read_bytes()
    assert answer.headers["content-disposition"] == 'attachment; filename="small.prevalens"'


def test_a_model_is_trained_used_and_removed(
    client: httpx.Client,
    uploaded: Callable[..., Any],
    finished: Callable[..., Any],
    tickets_folder: Path,
    tmp_path: Path,
) -> None:
    (train,) = uploaded(tickets_folder / "train.csv")
    started = client.post("/v1/models", json={"upload": train["id"], "name": "own", **HOW})
    assert started.status_code == 202
    job = finished(client, started.json())
    assert job["result"] == {"model": "own"}, job
    own = client.get("/v1/models/own").json()
    assert own["origin"] == "trained"
    assert own["n_items"] == 300
    answer = client.post("/v1/models/own/quantify", json={"texts": ["where is my parcel"] * 3})
    assert answer.json()["n_items"] == 3
    path = tmp_path / "own.prevalens"
    path.write_bytes(client.get("/v1/models/own/file").content)
    assert Model.load(path).labels == tuple(own["labels"])
    assert client.delete("/v1/models/own").status_code == 204
    assert client.get("/v1/models/own").status_code == 404
    assert client.post("/v1/models/own/restore").json() == own
    assert client.get("/v1/models/own/file").content == path.read_bytes()
    assert client.delete("/v1/models/own").status_code == 204
    assert client.post("/v1/models/small/restore").status_code == 404
    assert client.post("/v1/models/own/quantify", json={"texts": ["x"]}).status_code == 404


def test_a_removed_model_leaves_the_folder_of_kept_ones(
    start: Callable[[Settings], Any], model_file: Path, tmp_path: Path
) -> None:
    running = start(Settings(keep=tmp_path))
    state = running.state
    for _ in range(2):
        path = tmp_path / "own.prevalens"
        path.write_bytes(model_file.read_bytes())
        state.models.add(ModelEntry("own", path, "trained", {}))
        with running.client() as client:
            assert client.delete("/v1/models/own").status_code == 204
        assert list(tmp_path.iterdir()) == []
    # Of two removed models of one name only the last can come back; the other is gone.
    assert len(list(state.storage.root.rglob("*.prevalens"))) == 1
    assert state.models.restore("own").path.read_bytes() == model_file.read_bytes()


def test_a_queued_training_keeps_its_upload(
    client: httpx.Client,
    uploaded: Callable[..., Any],
    finished: Callable[..., Any],
    server: Any,
    tickets_folder: Path,
) -> None:
    (train,) = uploaded(tickets_folder / "train.csv")
    upload = server.state.uploads.get(train["id"])
    asked = {"upload": train["id"], "name": "queued", **HOW}
    first = client.post("/v1/models", json=asked).json()
    second = client.post("/v1/models", json=asked).json()
    # One removes the file, and time passes, while the second training still waits.
    upload.used = 0
    server.state.uploads.expire()
    assert client.get(f"/v1/uploads/{train['id']}").status_code == 200
    assert client.delete(f"/v1/uploads/{train['id']}").status_code == 204
    assert upload.n_users > 0
    for job in (first, second):
        assert finished(client, job)["state"] == "done"
    assert not upload.folder.exists()
    for name in ("queued", "queued-2"):
        client.delete(f"/v1/models/{name}")


def test_one_category_is_learnt_and_tested(
    client: httpx.Client,
    uploaded: Callable[..., Any],
    finished: Callable[..., Any],
    tmp_path: Path,
) -> None:
    topics = {"parts, spare": "a wheel is missing", "late": "it came too late", "[x]": "why this"}
    rows = [[f"{text} {n}", topic] for n in range(60) for topic, text in topics.items()]
    with (tmp_path / "topics.csv").open("w", newline="") as file:
        csv.writer(file).writerows([["text", "topic"], *rows])
    (kept,) = uploaded(tmp_path / "topics.csv")
    asked = {"upload": kept["id"], "text": "text", "category": "topic", "method": "lr+pacc"}
    job = finished(client, client.post("/v1/models", json={**asked, "holdout": 0.25}).json())
    assert job["state"] == "done", job
    about = client.get(f"/v1/models/{job['result']['model']}").json()
    assert about["labels"] == sorted(topics)
    assert not any("divides the tags" in said for said in about["summary"]["warnings"])
    quality = about["quality"]
    assert quality["verdict"] in ("yes", "with care", "no")
    errors = [float(found) for found in re.findall(r"off by (\d+\.\d)", quality["sentence"])]
    assert 0 <= errors[0] < errors[1]
    assert "45 items that were held out" in quality["tested"]
    assert "this model" in quality["errors"]
    assert {len(line) for line in quality["errors"].values()} == {len(quality["shifts"])}
    body = {"uploads": [kept["id"]], "category": "topic", "n_samples": 20, "interval": None}
    place = f"/v1/models/{job['result']['model']}"
    tested = finished(client, client.post(f"{place}/evaluate", json=body).json())
    assert tested["state"] == "done", tested
    client.delete(place)


def test_an_automatic_training_tells_its_stage_and_is_cancelled_within(
    client: httpx.Client,
    uploaded: Callable[..., Any],
    server: Any,
    tmp_path: Path,
) -> None:
    # Enough items for minutes of work, which nobody waits for.
    write_tickets(tickets(n_train=4000, n_per_month=2, months=1), tmp_path)
    (train,) = uploaded(tmp_path / "train.csv")
    how = {**HOW, "method": "auto", "name": "unwanted"}
    job = client.post("/v1/models", json={"upload": train["id"], **how}).json()
    until = time.monotonic() + 120
    while "logistic regressions" not in job["stage"]:
        assert time.monotonic() < until, job
        time.sleep(0.01)
        job = client.get(f"/v1/jobs/{job['id']}").json()
    assert (job["state"], job["share"]) == ("running", None)
    busy = [worker.pid for worker in server.state.training._busy]
    folder = server.state.jobs.get(job["id"]).folder
    assert client.delete(f"/v1/jobs/{job['id']}").json()["state"] == "cancelled"
    assert busy
    assert not any(psutil.pid_exists(pid) for pid in busy)
    assert not list(folder.rglob("*.prevalens*"))
    assert client.get("/v1/models/unwanted").status_code == 404


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"upload": "0" * 32}, 404, "no such upload"),
        ({"upload": "../../etc/passwd"}, 422, "Upload"),
        ({"name": "../evil"}, 422, "Name"),
        ({"time_budget": 0}, 422, "Time_budget"),
        ({"color": "red"}, 422, "Color"),
        ({"tags": None, "labels": []}, 422, "Labels"),
        ({"text": None, "features": []}, 422, "Features"),
        ({"category": "tags"}, 422, "at most one of labels, tags and category"),
    ],
)
def test_bad_requests_are_refused_at_once(
    change: dict[str, Any],
    status: int,
    words: str,
    client: httpx.Client,
    uploaded: Callable[..., Any],
    tickets_folder: Path,
) -> None:
    (train,) = uploaded(tickets_folder / "train.csv")
    answer = client.post("/v1/models", json={"upload": train["id"], **HOW, **change})
    assert answer.status_code == status
    assert words in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tags": "nothing"}, "no column 'nothing'"),
        ({"method": "no+such"}, "no"),
        ({"tags": None}, "No labels named"),
    ],
)
def test_what_cannot_be_trained_fails_with_a_sentence(
    change: dict[str, Any],
    words: str,
    client: httpx.Client,
    uploaded: Callable[..., Any],
    finished: Callable[..., Any],
    tickets_folder: Path,
) -> None:
    (train,) = uploaded(tickets_folder / "train.csv")
    started = client.post("/v1/models", json={"upload": train["id"], **HOW, **change})
    job = finished(client, started.json())
    assert job["state"] == "failed"
    assert job["error"]["code"] == "bad_input"
    assert words in job["error"]["message"]


def test_the_demo_is_ready_to_be_asked(
    client: httpx.Client, finished: Callable[..., Any], server: Any
) -> None:
    job = finished(client, client.post("/v1/demo", json={}).json())
    assert job["state"] == "done", job
    keys = [one["id"] for one in job["result"]["uploads"]]
    body = {"uploads": keys, "by_time": "date", "interval": None}
    answer = client.post(f"/v1/models/{job['result']['model']}/quantify", json=body).json()
    assert [one["name"] for one in answer["groups"]] == [f"2026-0{n}" for n in range(1, 9)]
    assert answer["ordered"]
    # A second click trains nothing.
    again = finished(client, client.post("/v1/demo", json={}).json())
    assert again["result"]["model"] == job["result"]["model"]
    assert len(server.state.models.trained()) == 1
    client.delete(f"/v1/models/{job['result']['model']}")
