"""A server on loopback, and writers of small files in the formats of the datasets."""

from __future__ import annotations

import gzip
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest


@dataclass
class Server:
    """What the server has, how it misbehaves, and what it was asked."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    #: How many bytes to send before cutting the connection, for the next requests.
    cuts: list[int] = field(default_factory=list)
    #: Status codes to answer the next requests with.
    statuses: list[int] = field(default_factory=list)
    ranges: bool = True
    etag: str | None = '"one"'
    length: bool = True
    asked: list[tuple[str, str | None]] = field(default_factory=list)


def _handler(server: Server) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

        def do_GET(self) -> None:
            wanted = self.headers.get("Range")
            server.asked.append((self.path, wanted))
            content = server.files.get(self.path)
            status = server.statuses.pop(0) if server.statuses else 200
            if content is None or status != 200:
                self.send_error(404 if content is None else status)
                return
            start = self._start(wanted)
            if start > len(content):
                self.send_error(416)
                return
            self.send_response(206 if start else 200)
            if start:
                self.send_header(
                    "Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}"
                )
            if server.etag:
                self.send_header("ETag", server.etag)
            if server.length:
                self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            cut = server.cuts.pop(0) if server.cuts else len(content)
            self.wfile.write(content[start : start + cut])

        def _start(self, wanted: str | None) -> int:
            same = self.headers.get("If-Range") in (None, server.etag)
            match = re.fullmatch(r"bytes=(\d+)-", wanted or "")
            return int(match.group(1)) if match and server.ranges and same else 0

    return Handler


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loopback is reached directly, whatever the machine's proxy."""
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "127.0.0.1")


@pytest.fixture
def server() -> Iterator[Server]:
    """A real HTTP server on loopback."""
    state = Server()
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    state.address = f"http://127.0.0.1:{httpd.server_address[1]}"
    thread = threading.Thread(target=httpd.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def _mulan(n_items: int, seed: int, *, n_features: int = 3, n_labels: int = 2) -> str:
    rng = np.random.default_rng(seed)
    lines = ["@relation small"]
    lines += [f"@attribute x{j} numeric" for j in range(n_features)]
    lines += [f"@attribute y{j} {{0,1}}" for j in range(n_labels)]
    lines.append("@data")
    for _ in range(n_items):
        values = [f"{value:.3f}" for value in rng.normal(size=n_features)]
        labels = [str(value) for value in rng.integers(0, 2, size=n_labels)]
        lines.append(",".join(values + labels))
    return "\n".join(lines) + "\n"


_XML = (
    '<?xml version="1.0" encoding="utf-8"?>\n'
    '<labels xmlns="http://mulan.sourceforge.net/labels">\n'
    '<label name="y0"></label>\n<label name="y1"></label>\n</labels>\n'
)


@pytest.fixture
def mulan_texts() -> dict[str, str]:
    """The training, test and label files of a small dataset in Mulan's format."""
    return {"train": _mulan(40, 1), "test": _mulan(30, 2), "labels": _XML}


@pytest.fixture
def place_mulan(mulan_texts: dict[str, str]) -> Callable[..., None]:
    """Put such files into a folder under the names a dataset expects."""

    def place(folder: Path, train: str, test: str, labels: str, *, packed: bool = False) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        for name, role in ((train, "train"), (test, "test"), (labels, "labels")):
            content = mulan_texts[role].encode()
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content))
            else:
                (folder / name).write_bytes(content)

    return place


def _story(number: int, split: str, topics: list[str], text: str, indexed: str = "YES") -> str:
    listed = "".join(f"<D>{topic}</D>" for topic in topics)
    return (
        f'<REUTERS TOPICS="{indexed}" LEWISSPLIT="{split}" CGISPLIT="TRAINING-SET" OLDID="1" '
        f'NEWID="{number}">\n<DATE>26-FEB-1987 15:01:{number % 60:02d}.79</DATE>\n'
        f"<TOPICS>{listed}</TOPICS>\n<PLACES><D>usa</D></PLACES>\n<UNKNOWN>\n&#5;&#5;</UNKNOWN>\n"
        f"<TEXT>&#2;\n<TITLE>STORY {number}</TITLE>\n<BODY>{text}\n&#3;</BODY></TEXT>\n</REUTERS>\n"
    )


@pytest.fixture(scope="session")
def story() -> Callable[..., str]:
    """One story in the SGML of Reuters-21578."""
    return _story


@pytest.fixture
def reuters_files() -> dict[str, bytes]:
    """Two SGML files and the list of topics, as in Reuters-21578."""
    crops = "wheat harvest rain grain fields"
    money = "dollar rates bank currency trade"
    head = '<!DOCTYPE lewis SYSTEM "lewis.dtd">\n'
    training = [
        _story(i, "TRAIN", ["wheat"] if i % 2 else ["money-fx"], crops if i % 2 else money)
        for i in range(1, 21)
    ]
    others = [
        _story(21, "TEST", ["wheat", "wheat"], crops),
        _story(22, "TEST", [], "nothing caf\xe9"),
        _story(23, "NOT-USED", ["wheat"], crops),
        _story(24, "TRAIN", ["wheat"], crops, indexed="NO"),
    ]
    return {
        "reut2-000.sgm": (head + "".join(training)).encode("latin-1"),
        "reut2-001.sgm": (head + "".join(others)).encode("latin-1"),
        "all-topics-strings.lc.txt": b"acq\nmoney-fx\nwheat\n",
    }
