from __future__ import annotations

import httpx


def test_a_small_body_is_small(client: httpx.Client) -> None:
    kind = {"content-type": "application/json"}
    answer = client.post("/v1/models", content=b'{"upload": "' + b"x" * 1_100_000, headers=kind)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


def test_json_must_say_that_it_is_json(client: httpx.Client) -> None:
    # What a form of another page could send.
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        answer = client.post("/v1/demo", content=b"{}", headers={"content-type": kind})
        assert (answer.status_code, answer.json()["error"]["code"]) == (415, "media_type")
    assert len(client.get("/v1/models").json()["models"]) >= 1
