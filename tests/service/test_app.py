"""The form of errors, before any worker is needed."""

from __future__ import annotations

import httpx
import pytest

from prevalens.service.app import create_app
from prevalens.service.settings import Settings


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/v1/models/none", 404, "not_found"),
        ("GET", "/v1/jobs/none", 404, "not_found"),
        ("GET", "/v1/uploads/none", 404, "not_found"),
        ("GET", "/static/../app.py", 404, "not_found"),
        ("GET", "/static/%2e%2e%2fapp.py", 404, "not_found"),
        ("PUT", "/v1/models", 405, "method"),
        ("POST", "/healthz", 405, "method"),
        ("POST", "/v1/models", 415, "media_type"),
        ("POST", "/v1/uploads", 415, "media_type"),
        ("POST", "/v1/models/small/quantify", 415, "media_type"),
        ("POST", "/v1/models/small/quantify?wait=perhaps", 422, "bad_input"),
        ("POST", "/v1/models/small/quantify?format=pdf", 422, "bad_input"),
        ("DELETE", "/v1/models/small", 403, "forbidden"),
    ],
)
def test_every_refusal_has_the_same_form(
    method: str, path: str, status: int, code: str, client: httpx.Client
) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    error = answer.json()["error"]
    assert error["code"] == code
    assert error["message"].endswith(".")
    assert answer.json()["detail"] == error["message"]
    assert answer.json()["status"] == status
    assert set(error) == {"code", "message"}


def test_a_method_that_is_not_taken_names_those_that_are(client: httpx.Client) -> None:
    assert client.put("/v1/uploads/x").headers.get_list("allow") == ["DELETE, GET, HEAD, OPTIONS"]
    assert client.delete("/v1/models").headers.get_list("allow") == ["GET, HEAD, OPTIONS, POST"]


def test_options_names_the_methods(client: httpx.Client) -> None:
    answer = client.options("/v1/jobs/x")
    assert (answer.status_code, answer.headers["allow"]) == (204, "DELETE, GET, HEAD, OPTIONS")
    assert client.options("/nothing").status_code == 404


def test_large_answers_are_compressed_if_the_client_can(client: httpx.Client) -> None:
    plain = client.get("/openapi.json", headers={"accept-encoding": "identity"})
    packed = client.get("/openapi.json")
    assert "content-encoding" not in plain.headers
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content) / 4
    assert packed.json() == plain.json()


def test_what_nobody_foresaw_shows_no_inner_workings(
    server: object, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("inner workings")

    monkeypatch.setattr(server.state.models, "all", fail)  # type: ignore[attr-defined]
    answer = client.get("/v1/models")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "internal"
    assert "inner workings" not in answer.text


def test_the_framework_s_own_pages_are_off() -> None:
    app = create_app(Settings())
    assert app.docs_url is None
    assert app.redoc_url is None
