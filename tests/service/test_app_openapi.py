"""The interface against its own description: requests are made up from it, answers checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from prevalens.service.app import create_app
from prevalens.service.settings import Settings

schema = schemathesis.openapi.from_dict(create_app(Settings()).openapi())


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    """Connections that are kept; without it every request opens one, and looks for proxies."""
    with requests.Session() as one:
        one.trust_env = False
        yield one


# The demo takes no input; every call of it would train a model.
@schema.exclude(path="/v1/demo").parametrize()
@settings(max_examples=12, suppress_health_check=list(HealthCheck), database=None)
def test_answers_are_as_described(case: Any, server: Any, session: Any) -> None:
    if case.path in ("/v1/models/{name}/quantify", "/v1/models/{name}/sample"):
        case.path_parameters["name"] = "small"
    # Files that are no tables, and fields that exclude each other, fit the description's types.
    excluded = [positive_data_acceptance] if case.method == "POST" else []
    case.call_and_validate(base_url=server.url, session=session, excluded_checks=excluded)


def test_the_description_is_served_and_complete(client: httpx.Client) -> None:
    found = client.get("/openapi.json").json()
    assert found == create_app(Settings()).openapi()
    operations = {
        f"{verb.upper()} {path}" for path, verbs in found["paths"].items() for verb in verbs
    }
    assert operations == {
        "DELETE /v1/jobs/{key}",
        "DELETE /v1/models/{name}",
        "DELETE /v1/uploads/{key}",
        "GET /healthz",
        "GET /metrics",
        "GET /v1/jobs",
        "GET /v1/jobs/{key}",
        "GET /v1/jobs/{key}/answer",
        "GET /v1/jobs/{key}/batches",
        "GET /v1/jobs/{key}/examples",
        "GET /v1/jobs/{key}/request",
        "GET /v1/jobs/{key}/result.{ending}",
        "GET /v1/models",
        "GET /v1/models/{name}",
        "GET /v1/models/{name}/file",
        "GET /v1/uploads",
        "GET /v1/uploads/{key}",
        "POST /v1/demo",
        "POST /v1/models",
        "POST /v1/models/{name}/evaluate",
        "POST /v1/models/{name}/quantify",
        "POST /v1/models/{name}/restore",
        "POST /v1/models/{name}/sample",
        "POST /v1/uploads",
        "POST /v1/uploads/{key}/labels",
        "POST /v1/uploads/{key}/reading",
    }
    for path, verbs in found["paths"].items():
        for verb, about in verbs.items():
            assert {"4XX", "5XX"} <= set(about["responses"]), (path, verb)
            assert about["description"], (path, verb)


def test_a_generated_client_gets_readable_names() -> None:
    document = create_app(Settings()).openapi()
    operations = [about for verbs in document["paths"].values() for about in verbs.values()]
    names = [about["operationId"] for about in operations]
    assert len(set(names)) == len(names)
    assert {"quantify", "train_model", "list_uploads", "evaluate"} <= set(names)
    schemas = document["components"]["schemas"]
    for about in operations:
        for content in about.get("requestBody", {}).get("content", {}).values():
            assert content["schema"]["$ref"].rpartition("/")[2] in schemas
    assert schemas["UploadForm"]["properties"]["file"]["type"] == "array"


def test_the_token_is_described() -> None:
    for token, security in ((None, [{}, {"token": []}]), ("x" * 16, [{"token": []}])):
        document = create_app(Settings(token=token)).openapi()
        scheme = {"type": "http", "scheme": "bearer"}
        assert document["components"]["securitySchemes"] == {"token": scheme}
        assert document["paths"]["/v1/models"]["get"]["security"] == security
        assert "security" not in document["paths"]["/healthz"]["get"]
