"""Opening tables: formats by content and name, patterns and folders of files."""

from __future__ import annotations

import glob
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from prevalens.errors import InputError
from prevalens.files import ByteSource, damaged, file_ending, from_stdin
from prevalens.tables.embeddings import EmbeddedTable, embeddings_path
from prevalens.tables.formats import CsvTable, ExcelTable, JsonLinesTable, ParquetTable, json_table
from prevalens.tables.signatures import check_readable
from prevalens.tables.table import Table

#: The format of a file by its ending.
FORMATS = {
    ".csv": "csv",
    ".txt": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".xlsx": "excel",
    ".xlsm": "excel",
}
_NAMES = ("csv", "tsv", "jsonl", "json", "parquet", "excel")


def open_table(
    path: str | Path | IO[bytes],
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    format: str | None = None,
    name: str | None = None,
) -> Table:
    r"""Open a table for reading in chunks.

    Parameters
    ----------
    path : str, Path or binary file
        CSV, TSV, JSON lines, JSON, Parquet or Excel, also compressed by gzip, bzip2 or xz; ``"-"``
        is standard input.
    delimiter : str, optional
        Column delimiter of a CSV file. Default: the most frequent of comma, semicolon, tab and
        vertical bar in its first line.
    encoding : str, optional
        Encoding of a text file. Default: that of its byte order mark, else UTF-8.
    sheet : str, optional
        Sheet of an Excel workbook. Default: the first.
    format : {"csv", "tsv", "jsonl", "json", "parquet", "excel"}, optional
        Default: detected from the first bytes and the ending of the name.
    name : str, optional
        Name of the table in messages.

    Examples
    --------
    >>> import io
    >>> table = open_table(io.BytesIO(b"text,urgent\nprinter on fire,1\n"), name="tickets.csv")
    >>> table.columns
    ('text', 'urgent')
    >>> next(table.chunks())["text"]
    ['printer on fire']
    """
    if format is not None and format not in _NAMES:
        raise InputError(f"There is no format {format!r}; there are {', '.join(_NAMES)}.")
    source = _source(path, name)
    with source.held():
        start = source.start()
        if not start:
            raise damaged(source.name, "the file is empty.")
        if format is None:
            check_readable(source, start, encoded=encoding is not None)
        match format or _guess(source, start):
            case "tsv":
                return CsvTable(source, delimiter or "\t", encoding)
            case "jsonl":
                return JsonLinesTable(source, encoding)
            case "json":
                return json_table(source, encoding)
            case "parquet":
                return ParquetTable(source)
            case "excel":
                return ExcelTable(source, sheet)
            case _:
                return CsvTable(source, delimiter, encoding)


def _source(path: str | Path | IO[bytes], name: str | None) -> ByteSource:
    if not isinstance(path, (str, Path)):
        return ByteSource(path, name or str(getattr(path, "name", "the file")))
    if str(path) == "-":
        return from_stdin(name or "standard input")
    return ByteSource(Path(path), name)


def _guess(source: ByteSource, start: bytes) -> str:
    """The format by the first bytes, or by the name if these do not decide."""
    if start.startswith(b"PAR1"):
        return "parquet"
    if start.startswith(b"PK"):
        return "excel"
    known = FORMATS.get(source.suffix)
    if known in ("parquet", "excel"):
        what = "Parquet file" if known == "parquet" else "Excel workbook"
        raise damaged(source.name, f"this is no {what}, though its name says so.")
    return known or {b"{": "jsonl", b"[": "json"}.get(start.lstrip()[:1], "csv")


@dataclass(frozen=True)
class Reading:
    """Settings of `open_table` that hold for several files.

    Attributes
    ----------
    delimiter, encoding, sheet, format : str, optional
        As in `open_table`.
    embeddings : str, optional
        A ``.npy`` file with a row of numbers per row of the table, which become the column
        ``embeddings``. For several files a pattern such as ``vectors/*.npy``, in which the star
        stands for the name of each table.
    """

    delimiter: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    format: str | None = None
    embeddings: str | None = None

    def open(self, path: str | Path) -> Table:
        """Open a file with these settings."""
        settings = asdict(self)
        embeddings = settings.pop("embeddings")
        table = open_table(path, **settings)
        if embeddings is None:
            return table
        return EmbeddedTable(table, embeddings_path(embeddings, path))


_WILD = "*?["


def expand(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """The files of names, patterns and folders, each once, in order.

    A folder means the tables in it, sorted by name; a pattern such as ``2024-*.csv`` or
    ``**/*.csv`` the files that match. ``-`` is standard input and is returned as it is.

    Examples
    --------
    >>> expand("-")
    [PosixPath('-')]
    """
    given = [paths] if isinstance(paths, (str, Path)) else list(paths)
    if not given:
        raise InputError("No file is named; give at least one.")
    files = [file for path in given for file in _expanded(Path(path))]
    return list(dict.fromkeys(files))


def _expanded(path: Path) -> list[Path]:
    if path.is_dir():
        inside = sorted(
            file
            for file in path.iterdir()
            if file.is_file() and not file.name.startswith(".") and file_ending(file) in FORMATS
        )
        if not inside:
            endings = ", ".join(FORMATS)
            raise InputError(f"The folder {path} holds no table; tables end in {endings}.")
        return inside
    if path.exists() or str(path) == "-" or not any(mark in str(path) for mark in _WILD):
        return [path]
    fitting = sorted(map(Path, glob.glob(str(path), recursive=True)))  # noqa: PTH207
    files = [file for file in fitting if file.is_file()]
    if not files:
        raise InputError(f"No file fits the pattern {str(path)!r}.")
    return files
