"""Uploads that mean harm: refused in the one form, while other requests go on."""

from __future__ import annotations

import gzip
import io
import json
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

PLACE = "/v1/models/small/quantify"


@pytest.fixture(autouse=True)
def others(server: Any) -> Iterator[None]:
    """Somebody else asks all the time, and must get every answer."""
    answers: list[int] = []
    over = threading.Event()

    def ask() -> None:
        with server.client() as client:
            while not answers or not over.is_set():
                answer = client.post(PLACE, json={"texts": ["where is my parcel"] * 20})
                answers.extend([answer.status_code, client.get("/healthz").status_code])
                # Without a pause these requests take most of the time of the server.
                over.wait(0.02)

    thread = threading.Thread(target=ask)
    thread.start()
    yield
    over.set()
    thread.join(60)
    assert len(answers) >= 2
    assert set(answers) == {200}


def _refused(answer: httpx.Response, status: int, code: str) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["error"]["code"] == code
    message: str = answer.json()["error"]["message"]
    return message


def _post(client: httpx.Client, name: str, content: bytes) -> httpx.Response:
    first = client.post(PLACE, files=[("file", (name, content))])
    second = client.post("/v1/uploads", files=[("file", (name, content))])
    assert (first.status_code, first.json()) == (second.status_code, second.json())
    return first


def _bomb(size: int) -> bytes:
    """A workbook whose sheet is `size` zeros."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", b"0" * size)
    return file.getvalue()


def test_a_zip_bomb_in_a_workbook(client: httpx.Client) -> None:
    content = _bomb(65 * 10**6)
    assert len(content) < 200_000
    assert "would unpack" in _refused(_post(client, "a.xlsx", content), 413, "too_large")
    # Its name does not hide it.
    _refused(_post(client, "a.csv", content), 413, "too_large")


def test_a_bomb_in_gzip(client: httpx.Client) -> None:
    content = gzip.compress(b"text\n" + b"a" * 65 * 10**6)
    _refused(_post(client, "a.csv.gz", content), 413, "too_large")


def test_a_bomb_in_gzip_in_gzip(client: httpx.Client) -> None:
    content = gzip.compress(gzip.compress(b"text\n" + b"a\n" * 10**7))
    assert len(content) < 1000
    assert "compressed twice" in _refused(_post(client, "a.csv.gz", content), 422, "bad_input")


def test_a_dictionary_that_multiplies(client: httpx.Client) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    text = arrow.DictionaryArray.from_arrays([0] * 1000, ["x" * 10**6])
    file = io.BytesIO()
    how = {"compression": "zstd", "dictionary_pagesize_limit": 10**9}
    parquet.write_table(arrow.table({"text": text}), file, **how)
    assert len(file.getvalue()) < 10_000
    _refused(_post(client, "a.parquet", file.getvalue()), 413, "too_large")


def test_ten_gigabytes_declared(server: Any) -> None:
    with server.raw() as line:
        head = (
            f"POST {PLACE} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 10000000000\r\n\r\n"
        )
        line.sendall(head.encode())
        answer = _all(line)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["code"] == "too_large"


def test_more_than_allowed_without_declaring_it(client: httpx.Client, server: Any) -> None:
    before = set(server.state.storage.root.iterdir())

    def endless() -> Iterator[bytes]:
        while True:
            yield b'{"texts": ["' + b"x" * 10**5

    # The server answers and closes; whether the client still reads the answer is up to it.
    try:
        answer = client.post(PLACE, content=endless(), headers={"content-type": "application/json"})
    except httpx.TransportError:
        pass
    else:
        _refused(answer, 413, "too_large")
    until = time.monotonic() + 5
    while set(server.state.storage.root.iterdir()) - before and time.monotonic() < until:
        time.sleep(0.02)
    refused = 'prevalens_problems_total{code="too_large"}'
    assert refused in client.get("/metrics").text


def test_a_hundred_thousand_columns(client: httpx.Client) -> None:
    head = ",".join(f"c{number}" for number in range(100_000)).encode()
    message = _refused(_post(client, "wide.csv", head + b"\n"), 413, "too_large")
    assert "100,000 columns" in message
    rows = [{f"c{number}": 1 for number in range(100_000)}]
    _refused(client.post(PLACE, json={"rows": rows}), 413, "too_large")


def test_too_many_rows(client: httpx.Client) -> None:
    content = b"text\n" + b"where is my parcel\n" * 6000
    answer = client.post(PLACE, files=[("file", ("long.csv", content))])
    assert "rows or more" in _refused(answer, 413, "too_large")


@pytest.mark.parametrize(
    "name", ["../../../etc/cron.d/evil.csv", "..\\evil.csv", "/abs.csv", "a\0.csv"]
)
def test_names_that_want_out(name: str, client: httpx.Client, server: Any, tmp_path: Path) -> None:
    content = b"text\nwhere is my parcel\n"
    body = b'--B\r\nContent-Disposition: form-data; name="file"; filename="' + name.encode()
    body += b'"\r\n\r\n' + content + b"\r\n--B--\r\n"
    kind = {"content-type": "multipart/form-data; boundary=B"}
    answer = client.post("/v1/uploads", content=body, headers=kind)
    assert answer.status_code == 201
    (one,) = answer.json()["uploads"]
    stored = server.state.uploads.get(one["id"]).path
    assert stored.resolve().is_relative_to(server.state.storage.root.resolve())
    assert stored.name == "0.csv"
    assert "/" not in one["name"]
    client.delete(f"/v1/uploads/{one['id']}")


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models/..%2f..%2fetc%2fpasswd",
        "/v1/models/%2e%2e/file",
        "/v1/jobs/..%2f..%2f/result.csv",
        "/v1/uploads/%00",
        "/static/..%2f..%2fapp.py",
    ],
)
def test_addresses_that_want_out(path: str, client: httpx.Client) -> None:
    assert client.get(path).status_code in {404, 405}


def test_markup_and_formulas_in_labels(
    client: httpx.Client, uploaded: Any, finished: Any, tmp_path: Path
) -> None:
    evil = ["<img src=x onerror=alert(1)>", "=HYPERLINK(1)", "@SUM(1)"]
    lines = [
        f'item number {n} about {"cats" if n % 2 else "dogs"},"{evil[n % 3]}"' for n in range(60)
    ]
    path = tmp_path / "evil.csv"
    path.write_text("text,tags\n" + "\n".join(lines) + "\n")
    (one,) = uploaded(path)
    how = {"upload": one["id"], "name": "evil", "text": "text", "tags": "tags", "sep": ";"}
    job = finished(client, client.post("/v1/models", json={**how, "method": "lr+cc"}).json())
    assert job["state"] == "done", job
    body = {"texts": ["item about cats"] * 5}
    csv = client.post("/v1/models/evil/quantify?format=csv", json=body).text
    assert "'=HYPERLINK(1)" in csv
    assert ",=HYPERLINK" not in csv
    page = client.post("/v1/models/evil/quantify?format=html", json=body).text
    assert "<img src=x" not in page
    client.delete("/v1/models/evil")


def test_a_client_that_sends_a_little_and_waits(server: Any) -> None:
    with server.raw() as line:
        head = (
            f"POST {PLACE} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            "Content-Length: 1000\r\n\r\n{"
        )
        line.sendall(head.encode())
        answer = _all(line)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["code"] == "slow_client"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\0" * 100,
        b'"',
        b"text\n\xff\xfe\n",
        b"PAR1" + b"x" * 50,
        b"[" * 100_000,
        b"a,a\n1,2\n",
    ],
)
def test_files_that_are_nothing(content: bytes, client: httpx.Client) -> None:
    answer = client.post(PLACE, files=[("file", ("a.csv", content))])
    assert "." in _refused(answer, 422, "bad_input")


def test_nesting_without_end(client: httpx.Client) -> None:
    body = b'{"rows": ' + b"[" * 200_000
    kind = {"content-type": "application/json"}
    _refused(client.post(PLACE, content=body, headers=kind), 400, "bad_request")
    answer = client.post(PLACE, files=[("file", ("a.json", b"[" * 200_000))])
    _refused(answer, 422, "bad_input")


def _all(line: Any) -> bytes:
    found = b""
    while piece := line.recv(65536):
        found += piece
    return found
