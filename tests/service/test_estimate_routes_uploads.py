from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest


def test_an_upload_is_shown_used_and_removed(
    uploaded: Callable[..., Any], client: httpx.Client, tickets_folder: Path, server: Any
) -> None:
    path = tickets_folder / "months" / "2026-01.csv"
    (one,) = uploaded(path)
    assert one["name"] == path.name
    assert one["bytes"] == path.stat().st_size
    assert [column["name"] for column in one["columns"]] == ["id", "date", "text"]
    assert client.get(f"/v1/uploads/{one['id']}").json() == one
    assert str(server.state.storage.root) not in str(one)
    stored = server.state.uploads.get(one["id"]).path
    assert stored.is_relative_to(server.state.storage.root)
    assert client.delete(f"/v1/uploads/{one['id']}").status_code == 204
    assert not stored.exists()
    assert client.get(f"/v1/uploads/{one['id']}").status_code == 404


def test_a_refused_upload_leaves_nothing(client: httpx.Client, server: Any) -> None:
    before = set(server.state.storage.root.iterdir())
    bad = [("file", ("good.csv", b"a\n1\n")), ("file", ("bad.xlsx", b"PK nothing"))]
    answer = client.post("/v1/uploads", files=bad)
    assert answer.status_code == 422
    assert "bad.xlsx" in answer.json()["error"]["message"]
    assert set(server.state.storage.root.iterdir()) == before


def test_a_form_without_a_file_is_refused(client: httpx.Client) -> None:
    body = b'--B\r\nContent-Disposition: form-data; name="by"\r\n\r\nx\r\n--B--\r\n'
    kind = {"content-type": "multipart/form-data; boundary=B"}
    answer = client.post("/v1/uploads", content=body, headers=kind)
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "bad_input")
    damaged = client.post("/v1/uploads", content=b"nonsense", headers=kind)
    assert (damaged.status_code, damaged.json()["error"]["code"]) == (400, "bad_request")
    kind["content-type"] = "multipart/form-data"
    assert client.post("/v1/uploads", content=body, headers=kind).status_code == 415


def test_uploads_are_listed_and_located(client: httpx.Client, uploaded: Callable[..., Any]) -> None:
    files = [("file", (name, b"a\n1\n")) for name in ("a.csv", "b.csv")]
    answer = client.post("/v1/uploads", files=files)
    first, second = answer.json()["uploads"]
    assert answer.headers["location"] == f"/v1/uploads/{first['id']}"
    assert client.get(answer.headers["location"]).json() == first
    assert client.get("/v1/uploads").json()["uploads"][-2:] == [first, second]
    for upload in (first, second):
        client.delete(f"/v1/uploads/{upload['id']}")


def test_what_arrives_counts_as_stored(server: Any, client: httpx.Client) -> None:
    with server.raw() as line:
        head = (
            "POST /v1/uploads HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000000\r\n"
            "Content-Type: multipart/form-data; boundary=B\r\n\r\n"
        )
        part = '--B\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
        before = server.state.storage.used
        line.sendall(head.encode() + part.encode() + b"x" * 10**6)
        until = time.monotonic() + 5
        while server.state.storage.used < before + 10**6 and time.monotonic() < until:
            time.sleep(0.01)
        assert server.state.storage.used >= before + 10**6
    while server.state.storage.used > before and time.monotonic() < until:
        time.sleep(0.01)
    assert server.state.storage.used == before


def test_a_dropped_upload_is_no_failure(
    server: Any, client: httpx.Client, caplog: pytest.LogCaptureFixture
) -> None:
    test_what_arrives_counts_as_stored(server, client)
    assert [record for record in caplog.records if record.name.startswith("prevalens")] == []


def test_a_full_store_refuses_before_the_body_arrives(
    server: Any, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.state.storage, "_limit", server.state.storage.used + 100)
    for place in ("/v1/uploads", "/v1/models/small/quantify"):
        answer = client.post(place, files=[("file", ("a.csv", b"text\n" * 100))])
        assert (answer.status_code, answer.json()["error"]["code"]) == (507, "storage")
    # A small request without files needs no room.
    assert client.post("/v1/models/small/quantify", json={"texts": ["my"]}).status_code == 200


def test_another_encoding_is_guessed_marked_and_can_be_chosen(
    client: httpx.Client, uploaded: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    path = tmp_path / "old.csv"
    path.write_bytes("id;text;topic\n1;Größe fehlt;a, b\n2;Straße gesperrt;c\n".encode("cp1252"))
    (kept,) = uploaded(path)
    assert kept["reading"] == {"encoding": "cp1252", "delimiter": None, "guessed": True}
    assert kept["rows"][0] == ["1", "Größe fehlt", "a, b"]
    assert [column["kind"] for column in kept["columns"]] == ["id", "text", "tags"]
    address = f"/v1/uploads/{kept['id']}/reading"
    other = client.post(address, json={"encoding": "cp1251", "delimiter": ";"}).json()
    assert other["reading"] == {"encoding": "cp1251", "delimiter": ";", "guessed": False}
    assert other["rows"][0][1] != "Größe fehlt"
    # A choice that cannot be read leaves the one before.
    refused = client.post(address, json={"encoding": "utf-8"})
    assert refused.status_code == 422
    assert client.get(f"/v1/uploads/{kept['id']}").json()["reading"]["encoding"] == "cp1251"


def test_a_file_that_does_not_show_how_to_read_it_is_uploaded_with_the_answer(
    client: httpx.Client,
) -> None:
    # Bytes that cp1252 does not have: shown in some way, so that the right one can be chosen.
    content = "text,tags\nはい、そう,x\n".encode("shift_jis")
    (kept,) = _sent(client, "old.csv", content).json()["uploads"]
    assert kept["reading"] == {"encoding": "iso-8859-15", "delimiter": None, "guessed": True}
    client.delete(f"/v1/uploads/{kept['id']}")
    # With the wrong delimiter the rows have different lengths, and nothing can be shown.
    uneven = b"a, b, c|tags\none, two|x\nthree|y\n"
    refused = _sent(client, "uneven.csv", uneven)
    assert refused.status_code == 422
    (kept,) = _sent(client, "uneven.csv", uneven, delimiter="|").json()["uploads"]
    assert kept["rows"] == [["one, two", "x"], ["three", "y"]]
    assert kept["reading"] == {"encoding": None, "delimiter": "|", "guessed": False}
    client.delete(f"/v1/uploads/{kept['id']}")


def _sent(client: httpx.Client, name: str, content: bytes, **how: str) -> httpx.Response:
    return client.post("/v1/uploads", files={"file": (name, content)}, params=how)


def test_two_files_of_one_name_are_two_batches(
    client: httpx.Client, uploaded: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    for folder, rows in (("a", 2), ("b", 3)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "may.csv").write_text("text\n" + "where is my parcel\n" * rows)
    kept = uploaded(tmp_path / "a" / "may.csv", tmp_path / "b" / "may.csv")
    body = {"uploads": [upload["id"] for upload in kept], "interval": None}
    answer = client.post("/v1/models/small/quantify", json=body).json()
    batches = {group["name"]: group["n_items"] for group in answer["groups"]}
    assert batches == {"may.csv": 2, "may.csv (2)": 3}


@pytest.mark.parametrize(
    ("body", "labels", "without"),
    [
        ({"tags": "tags"}, {"a": 2, "b": 1}, 1),
        ({"category": "topic"}, {"x, y": 2, "z": 1}, 0),
        ({"labels": ["urgent"]}, {"urgent": 1}, 2),
    ],
)
def test_labels_of_an_upload_are_counted(
    body: dict[str, Any],
    labels: dict[str, int],
    without: int,
    client: httpx.Client,
    uploaded: Callable[..., list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    path = tmp_path / "labels.csv"
    rows = ['"[""a"", ""b""]","x, y",1', '"[""a""]","x, y",0', "[],z,0"]
    path.write_text("\n".join(["tags,topic,urgent", *rows]) + "\n")
    (kept,) = uploaded(path)
    answer = client.post(f"/v1/uploads/{kept['id']}/labels", json=body).json()
    found = {"n_items": 3, "n_without": without, "n_labels": len(labels), "labels": labels}
    assert answer == found


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"tags": "nothing"}, "no column 'nothing'"),
        ({"labels": ["topic"]}, "the label 'topic' is 'x'"),
        ({}, "Give one of labels, tags and category"),
        ({"labels": []}, "Labels"),
    ],
)
def test_labels_that_are_none_are_a_sentence(
    body: dict[str, Any],
    words: str,
    client: httpx.Client,
    uploaded: Callable[..., list[dict[str, Any]]],
    tmp_path: Path,
) -> None:
    (tmp_path / "labels.csv").write_text("topic\nx\n")
    (kept,) = uploaded(tmp_path / "labels.csv")
    answer = client.post(f"/v1/uploads/{kept['id']}/labels", json=body)
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]


def test_items_that_nobody_labelled_are_not_counted(
    client: httpx.Client, uploaded: Callable[..., list[dict[str, Any]]], tmp_path: Path
) -> None:
    rows = ['{"labels": ["a"]}', '{"labels": []}', '{"labels": null}']
    (tmp_path / "answers.jsonl").write_text("\n".join(rows) + "\n")
    (kept,) = uploaded(tmp_path / "answers.jsonl")
    answer = client.post(f"/v1/uploads/{kept['id']}/labels", json={"tags": "labels"}).json()
    assert answer == {"n_items": 2, "n_without": 1, "n_labels": 1, "labels": {"a": 1}}
