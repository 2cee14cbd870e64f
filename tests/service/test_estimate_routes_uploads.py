from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx


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
