"""Store: the results of finished cells in a folder, one complete file each.

    cells/KEY.parquet     one row per sample; in its metadata the cell, versions, checksums
    usage/KEY.json        time and memory, which differ from run to run
    failures/KEY.log      the traceback of a cell that has failed

A cell is finished if and only if its Parquet file exists.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import asdict
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from prevalens.experiments.cells import FORMAT, Cell
from prevalens.experiments.run import CellResult, Failure, Usage
from prevalens.experiments.specs import canonical
from prevalens.files import make_folder, sweep, write_whole
from prevalens.records import Record
from prevalens.validation import FormatError, InputError

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = pq = None

_METADATA = b"prevalens"


class Store:
    """Results in a folder.

    Parameters
    ----------
    folder : str or Path
        Created when the first result is written.

    Notes
    -----
    Several processes may write to one store: names are checksums of contents, and every file
    is renamed into place when it is complete. Needs pyarrow (``pip install
    "prevalens[frames]"``).
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def __contains__(self, key: str) -> bool:
        return self._result(key).is_file()

    def __len__(self) -> int:
        return len(self.keys())

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> list[str]:
        """Keys of the finished cells, sorted."""
        return sorted(path.stem for path in self._part("cells").glob("[!.]*.parquet"))

    def check(self) -> None:
        """Raise an error if results cannot be stored, before hours of work."""
        _need_pyarrow()
        wanted = self._part("cells").absolute()
        place = next(path for path in (wanted, *wanted.parents) if path.exists())
        if not place.is_dir():
            raise InputError(f"Results cannot be kept in {self.folder}: {place} is a file.")
        if not os.access(place, os.W_OK):
            raise InputError(f"Results cannot be kept in {self.folder}: no right to write there.")

    def write(self, result: CellResult) -> None:
        """Store a finished cell and delete the log of an earlier failure."""
        content = _to_parquet(result)
        if result.usage is not None:
            usage = json.dumps(asdict(result.usage), indent=1).encode()
            write_whole(make_folder(self._part("usage")) / f"{result.key}.json", usage)
        # Written last, because this file marks the cell as finished.
        make_folder(self._part("cells"))
        write_whole(self._result(result.key), content)
        self.failure_log(result.key).unlink(missing_ok=True)

    def write_failure(self, key: str, failure: Failure) -> Path:
        """Store the traceback of a failed cell; it does not count as finished."""
        path = self.failure_log(key)
        make_folder(path.parent)
        write_whole(path, f"{failure.cell}\n\n{failure.trace}\n".encode())
        return path

    def failure_log(self, key: str) -> Path:
        """Path of the traceback of a failed cell."""
        return self._part("failures") / f"{key}.log"

    def read(self, key: str) -> CellResult:
        """Read the result of a finished cell; the error for a damaged file names it."""
        _need_pyarrow()
        path = self._result(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise InputError(f"The store {self.folder} has no result {key}.") from None
        return _from_parquet(content, path, self.usage(key))

    def usage(self, key: str) -> Usage | None:
        """Time and memory of a cell; None if they are not known."""
        path = self._part("usage") / f"{key}.json"
        try:
            content = json.loads(path.read_text("utf-8"))
            return Usage(**{**content, "warnings": tuple(content["warnings"])})
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def version(self, key: str) -> str | None:
        """The version of prevalens that computed a cell; None if it is not known."""
        _need_pyarrow()
        try:
            metadata = json.loads(pq.read_schema(self._result(key)).metadata[_METADATA])
            return str(metadata["versions"]["prevalens"])
        except (pa.ArrowException, OSError, ValueError, KeyError, TypeError):
            return None

    def results(self) -> Iterator[CellResult]:
        """All finished cells, in the order of their keys."""
        return map(self.read, self.keys())

    def records(self) -> list[Record]:
        """Mean errors of all finished cells, by shift regime and over all."""
        return [record for result in self.results() for record in result.records()]

    def clean(self) -> int:
        """Delete incomplete files of killed processes; return their number."""
        return sum(sweep(self._part(name)) for name in ("cells", "usage", "failures"))

    def _part(self, name: str) -> Path:
        return self.folder / name

    def _result(self, key: str) -> Path:
        return self._part("cells") / f"{key}.parquet"


def _need_pyarrow() -> None:
    if pa is None:
        raise InputError('Results are kept as Parquet files: pip install "prevalens[frames]".')


def _to_parquet(result: CellResult) -> bytes:
    _need_pyarrow()
    metadata = {
        "format": FORMAT,
        "key": result.key,
        "cell": result.cell.to_dict(),
        "data_sha": result.data_sha,
        "versions": dict(result.versions),
        "chosen": dict(result.chosen),
        "labels": dict(result.labels),
    }
    if result.validation_loss is not None:
        metadata["validation_loss"] = result.validation_loss
    metadata["checksum"] = _checksum(metadata, result.columns)
    table = pa.table(dict(result.columns), metadata={_METADATA: canonical(metadata)})
    content = BytesIO()
    pq.write_table(table, content, compression="zstd", compression_level=9)
    return content.getvalue()


def _checksum(metadata: dict[str, Any], columns: Any) -> str:
    total = hashlib.sha256(canonical(metadata).encode())
    for name, values in columns.items():
        total.update(f"{name} {values.dtype.str}\n".encode())
        total.update(np.ascontiguousarray(values).tobytes())
    return total.hexdigest()


def _from_parquet(content: bytes, path: Path, usage: Usage | None) -> CellResult:
    try:
        # Arrow's threads may release a Python file only at exit and then abort the interpreter.
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        metadata = json.loads(table.schema.metadata[_METADATA])
        columns = {name: table[name].to_numpy() for name in table.column_names}
        sound = metadata.pop("checksum") == _checksum(metadata, columns)
        cell = Cell.from_dict(metadata["cell"])
        sound &= metadata["key"] == path.stem == cell.key(metadata["data_sha"])
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise _damaged(path, "cannot be read") from error
    if not sound:
        raise _damaged(path, "has been changed since it was written")
    return CellResult(
        cell=cell,
        key=metadata["key"],
        data_sha=metadata["data_sha"],
        versions=metadata["versions"],
        chosen=metadata["chosen"],
        columns=columns,
        labels=metadata["labels"],
        usage=usage,
        # Results of earlier versions do not have it.
        validation_loss=metadata.get("validation_loss"),
    )


def _damaged(path: Path, what: str) -> FormatError:
    return FormatError(f"The result {path} {what}; delete it and run the plan again.")
