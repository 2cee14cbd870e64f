"""Hostile files: what each costs the server, and what other clients notice meanwhile.

Run it with ``python benchmarks/measure_hostile.py``; it writes ``benchmarks/results/hostile.md``.
The files are made here. Each is uploaded and estimated on loopback while another client sends
requests of twenty texts all the time. Names of files as arguments measure only these, and write
nothing.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import platform
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import openpyxl
import psutil
import pyarrow as arrow
import pyarrow.parquet as parquet

from measure_service import running_server
from prevalens.datasets.tickets import SEPARATOR, tickets, write_tickets
from prevalens.model.fit import fit_files
from prevalens.service.settings import Limits

RESULTS = Path(__file__).parent / "results" / "hostile.md"
ROWS = Limits().rows
#: What a hostile file may take, and what other clients may wait: seconds, MB, seconds.
ALLOWED_SECONDS, ALLOWED_MEMORY, ALLOWED_WAIT = 10.0, 1000.0, 2.0
#: Large files that one client sends at the same time while another sends one.
CROWD = 12
_SHARED = (
    b'<Override PartName="/xl/sharedStrings.xml" ContentType="application/vnd.openxmlformats-'
    b'officedocument.spreadsheetml.sharedStrings+xml"/>'
)
_TEXT = "where is my parcel"
_PAUSE = 0.02


def _workbook(**members: Callable[[zipfile.ZipFile, str], None]) -> bytes:
    """A small proper workbook, some of whose members are replaced."""
    book, plain, changed = openpyxl.Workbook(), io.BytesIO(), io.BytesIO()
    book.active.append(["text", "b"])
    book.active.append([_TEXT, 1])
    book.save(plain)
    with (
        zipfile.ZipFile(plain) as good,
        zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as bad,
    ):
        for name in good.namelist():
            # The list of types names the shared strings, which openpyxl itself does not write.
            content = good.read(name).replace(b"</Types>", _SHARED + b"</Types>")
            if Path(name).stem not in members:
                bad.writestr(name, content)
        for stem, write in members.items():
            write(bad, "xl/worksheets/sheet1.xml" if stem == "sheet1" else f"xl/{stem}.xml")
    return changed.getvalue()


def _member(
    head: bytes, piece: bytes, count: int, tail: bytes
) -> Callable[[zipfile.ZipFile, str], None]:
    """A member of a workbook that is one piece over and over, written without holding it all."""

    def write(archive: zipfile.ZipFile, name: str) -> None:
        at_once = max(1, 2**20 // len(piece))
        with archive.open(name, "w", force_zip64=True) as member:
            member.write(head)
            for _ in range(count // at_once):
                member.write(piece * at_once)
            member.write(piece * (count % at_once) + tail)

    return write


_STRINGS = b'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">', b"</sst>"
_SHEET = (
    b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>',
    b"</sheetData></worksheet>",
)
_HEAD = b'<row r="1"><c r="A1" t="inlineStr"><is><t>text</t></is></c></row>'


def _strings(piece: bytes, count: int, rows: int = 1) -> bytes:
    """A workbook with shared strings, the first of which is in every row."""
    cell = b'<row><c t="s"><v>0</v></c></row>'
    return _workbook(
        sharedStrings=_member(_STRINGS[0], piece, count, _STRINGS[1]),
        sheet1=_member(_SHEET[0] + _HEAD, cell, rows, _SHEET[1]),
    )


def _sheet(piece: bytes, count: int) -> bytes:
    none = _member(_STRINGS[0], b"<si/>", 0, _STRINGS[1])
    return _workbook(sharedStrings=none, sheet1=_member(_SHEET[0] + _HEAD, piece, count, _SHEET[1]))


def _entities() -> bytes:
    laughs = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
    head = f'<!DOCTYPE x [<!ENTITY l0 "lol">{laughs}]>'.encode() + _SHEET[0]
    cell = b'<row r="1"><c r="A1" t="inlineStr"><is><t>&l9;</t></is></c></row>'
    none = _member(_STRINGS[0], b"<si/>", 0, _STRINGS[1])
    return _workbook(sharedStrings=none, sheet1=_member(head, cell, 1, _SHEET[1]))


def _parquet(table: arrow.Table) -> bytes:
    file = io.BytesIO()
    parquet.write_table(table, file, compression="zstd", dictionary_pagesize_limit=2**30)
    return file.getvalue()


def _dictionary(letters: int, rows: int) -> bytes:
    indices = arrow.array([0] * rows, arrow.int32())
    column = arrow.DictionaryArray.from_arrays(indices, ["x" * letters])
    return _parquet(arrow.table({"text": column}))


def _csv(rows: int) -> bytes:
    return b"text\n" + (_TEXT.encode() + b"\n") * rows


_ZEROS = b"text\n" + b"a" * 2**20 * 1000
#: Every file: its name, and how it is made.
FILES: dict[str, tuple[str, Callable[[], bytes]]] = {
    "gzip to 1 GB": ("a.csv.gz", lambda: gzip.compress(_ZEROS)),
    "bzip2 to 1 GB": ("a.csv.gz", lambda: bz2.compress(_ZEROS, 9)),
    "xz to 1 GB": ("a.csv.gz", lambda: lzma.compress(_ZEROS, preset=0)),
    "gzip in gzip": ("a.csv.gz", lambda: gzip.compress(gzip.compress(_ZEROS))),
    f"gzip of {ROWS + 1:,} short rows": ("a.csv.gz", lambda: gzip.compress(_csv(ROWS + 1))),
    "xlsx, sheet of 2 GB": ("a.xlsx", lambda: _sheet(b"<row></row>", 2 * 10**9 // 11)),
    "xlsx, shared strings of 3 GB": (
        "a.xlsx",
        lambda: _strings(b"<si><t>" + b"x" * 1000 + b"</t></si>", 3 * 10**6),
    ),
    "xlsx, 3,000,000 empty shared strings": ("a.xlsx", lambda: _strings(b"<si/>", 3 * 10**6)),
    "xlsx, one shared string of 45 MB": (
        "a.xlsx",
        lambda: _strings(b"<si><t>" + b"x" * 45 * 10**6 + b"</t></si>", 1),
    ),
    "xlsx, one shared string in 500,000 rows": (
        "a.xlsx",
        lambda: _strings(b"<si><t>" + b"x" * 20_000 + b"</t></si>", 1, 500_000),
    ),
    "xlsx, one row at 1,048,576": (
        "a.xlsx",
        lambda: _sheet(b'<row r="1048576"><c r="A1048576"><v>1</v></c></row>', 1),
    ),
    "xlsx, one row at 2,000,000,000": (
        "a.xlsx",
        lambda: _sheet(b'<row r="2000000000"><c r="A2000000000"><v>1</v></c></row>', 1),
    ),
    "xlsx, cells in column XFD of 100,000 rows": (
        "a.xlsx",
        lambda: _sheet(b'<row><c r="XFD1"><v>1</v></c></row>', 100_000),
    ),
    "xlsx, entities within entities": ("a.xlsx", _entities),
    "Parquet, dictionary to 4 GB": ("a.parquet", lambda: _dictionary(4 * 10**6, 1000)),
    "Parquet, one text of 1 GB": ("a.parquet", lambda: _dictionary(10**9, 1)),
    "Parquet, 20,000 columns": (
        "a.parquet",
        lambda: _parquet(arrow.table({f"c{n}": ["x"] for n in range(20_000)})),
    ),
    "Parquet, 100,000,000 rows": (
        "a.parquet",
        lambda: _parquet(arrow.table({"text": arrow.nulls(10**8, arrow.string())})),
    ),
    "CSV, 100,000 columns": ("a.csv", lambda: ",".join(f"c{n}" for n in range(10**5)).encode()),
    "CSV, 100 MB of first line": ("a.csv", lambda: b"a," * 50 * 10**6),
    "CSV, quotation mark that is never closed, 100 MB": (
        "a.csv",
        lambda: b'text\n"' + b"a b\n" * 25 * 10**6,
    ),
    "CSV, one text of 60 MB": ("a.csv", lambda: b"text\n" + b"word " * 12 * 10**6 + b"\n"),
    "CSV, 6,000 texts of 10 kB": ("a.csv", lambda: b"text\n" + (b"word " * 2000 + b"\n") * 6000),
    f"CSV, {ROWS:,} rows, as many as allowed": ("a.csv", lambda: _csv(ROWS)),
    f"CSV, {ROWS + 1:,} rows": ("a.csv", lambda: _csv(ROWS + 1)),
    "JSON, nested 10,000,000 times": ("a.json", lambda: b"[" * 10**7),
    "JSON, array of 5,000,000 empty objects": (
        "a.json",
        lambda: b"[" + b"{}," * (5 * 10**6) + b"{}]",
    ),
    "JSON lines, a new key in each of 300,000": (
        "a.jsonl",
        lambda: b'{"text": "a"}\n' + b"".join(b'{"k%d": 1}\n' % n for n in range(300_000)),
    ),
    "no file at all, 50 MB of zeros": ("a.csv", lambda: bytes(50 * 10**6)),
}


@dataclass
class Cost:
    """What one file took: bytes, seconds and answer per request, MB of one worker, others' wait."""

    size: int
    seconds: list[float]
    answers: list[str]
    memory: float
    waits: list[float]

    @property
    def within(self) -> bool:
        """Whether all of it is within what is allowed."""
        good = max(self.seconds) <= ALLOWED_SECONDS and self.memory <= ALLOWED_MEMORY
        return good and max(self.waits) <= ALLOWED_WAIT


def main() -> None:
    chosen = {name: FILES[name] for name in sys.argv[1:]} or FILES
    with tempfile.TemporaryDirectory() as folder:
        model = _model(Path(folder))
        with running_server(model) as (url, server):
            costs = {}
            for name, (file, make) in chosen.items():
                costs[name] = _cost(url, server, file, make())
                sys.stdout.write(f"{_row(name, costs[name])}\n")
                sys.stdout.flush()
            alone, crowd = _fairness(url)
    if len(chosen) == len(FILES):
        RESULTS.write_text(_page(costs, alone, crowd), encoding="utf-8")
    sys.stdout.write(_page(costs, alone, crowd))


def _model(folder: Path) -> Path:
    write_tickets(tickets(n_train=1200, n_per_month=10, months=1), folder)
    model = fit_files(
        folder / "train.csv", text="text", tags="tags", sep=SEPARATOR, method="lr+pacc"
    )
    model.save(folder / "tickets.prevalens")
    return folder / "tickets.prevalens"


def _client() -> httpx.Client:
    return httpx.Client(timeout=400, trust_env=False)


def _cost(url: str, server: psutil.Process, name: str, content: bytes) -> Cost:
    seconds, answers = [], []
    with _memory(server) as memory, _others(url) as waits, _client() as client:
        for place in ("v1/uploads", "v1/models/tickets/quantify"):
            start = time.perf_counter()
            answer = client.post(url + place, files=[("file", (name, content))])
            seconds.append(time.perf_counter() - start)
            said = f": {answer.json()['detail']}" if answer.status_code >= 400 else ""
            answers.append(f"{answer.status_code}{said}")
        kept = client.get(f"{url}v1/uploads").json()["uploads"]
        for upload in kept:
            client.delete(f"{url}v1/uploads/{upload['id']}")
    return Cost(len(content), seconds, answers, max(memory), waits)


@contextmanager
def _others(url: str) -> Iterator[list[float]]:
    """Somebody else asks all the time; the seconds of each request."""
    waits: list[float] = []
    over = threading.Event()

    def ask() -> None:
        with _client() as client:
            while not waits or not over.is_set():
                start = time.perf_counter()
                answer = client.post(
                    f"{url}v1/models/tickets/quantify", json={"texts": [_TEXT] * 20}
                )
                answer.raise_for_status()
                waits.append(time.perf_counter() - start)
                time.sleep(_PAUSE)

    with ThreadPoolExecutor(1) as threads:
        asking = threads.submit(ask)
        yield waits
        over.set()
        asking.result()


@contextmanager
def _memory(server: psutil.Process) -> Iterator[list[float]]:
    """MB of the largest of the server's processes that it shares with no other, now and then."""
    seen = [0.0]
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            for process in [server, *server.children(recursive=True)]:
                with suppress(psutil.Error):
                    seen.append(process.memory_full_info().uss / 1e6)
            over.wait(_PAUSE)

    watching = threading.Thread(target=look)
    watching.start()
    yield seen
    over.set()
    watching.join()


def _fairness(url: str) -> tuple[float, float]:
    """Seconds of one file alone, and while another client has sent `CROWD` such files."""
    place = f"{url}v1/models/tickets/quantify"

    def ask(address: str) -> float:
        transport = httpx.HTTPTransport(local_address=address)
        with httpx.Client(timeout=400, trust_env=False, transport=transport) as client:
            start = time.perf_counter()
            client.post(place, files=[("file", ("a.csv", content))]).raise_for_status()
            return time.perf_counter() - start

    content = _csv(100_000)
    ask("127.0.0.3")
    alone = ask("127.0.0.3")
    with ThreadPoolExecutor(CROWD) as clients:
        crowd = [clients.submit(ask, "127.0.0.2") for _ in range(CROWD)]
        time.sleep(0.5)
        beside = ask("127.0.0.3")
        for one in crowd:
            one.result()
    return alone, beside


def _page(costs: dict[str, Cost], alone: float, beside: float) -> str:
    load = " / ".join(f"{one:.1f}" for one in os.getloadavg())
    table = "\n".join(_row(name, cost) for name, cost in costs.items())
    good = sum(cost.within for cost in costs.values())
    return f"""# Hostile files

Written by `benchmarks/measure_hostile.py`. Python {platform.python_version()}; \
{os.cpu_count()} cores, load {load} at the end.

Each file is uploaded, then estimated, with the default limits. Memory is what the largest process
of the server shares with no other. Meanwhile another client sends requests of twenty texts all the
time; the slowest of them is shown. Asked are {ALLOWED_SECONDS:g} s, {ALLOWED_MEMORY:g} MB and
{ALLOWED_WAIT:g} s: {good} of {len(costs)} files are within all three.

| file | size | upload | estimate | memory | others | answers |
|---|---|---|---|---|---|---|
{table}

A file of 100,000 rows takes {alone:.1f} s alone, and {beside:.1f} s after another client has sent
{CROWD} of them.
"""


def _row(name: str, cost: Cost) -> str:
    first, second = (f"{seconds:.1f} s" for seconds in cost.seconds)
    numbers = f"{first} | {second} | {cost.memory:.0f} MB | {max(cost.waits):.2f} s"
    answers = "; ".join(dict.fromkeys(cost.answers))
    return f"| {name} | {cost.size / 1e3:,.0f} kB | {numbers} | {answers} |"


if __name__ == "__main__":
    main()
