"""BatchResult: estimated prevalences of batches, with what belongs to them."""

from __future__ import annotations

import csv
import importlib
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.errors import InputError
from prevalens.estimate import PrevalenceEstimate
from prevalens.model import writing
from prevalens.reporting.batch_data import Notice
from prevalens.validation import check_choice

__all__ = ["COLUMNS", "BatchResult", "check_ending", "safe_cell"]

#: Columns of the long form.
COLUMNS = ("group", "label", "n_items", "prevalence", "lower", "upper", "training")
#: What makes a spreadsheet take a text for a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".parquet")


@dataclass(frozen=True)
class BatchResult:
    """Estimated prevalences of batches.

    Attributes
    ----------
    groups : tuple of str
        The batches' names, in the order they are shown in.
    sizes : array of int, shape (n_groups,)
    estimate : PrevalenceEstimate, shape (n_groups, n_labels)
    training : array of float, shape (n_labels,)
        Prevalences in the training items.
    counted : array of float, shape (n_groups, n_labels), or None
        Mean scores before any correction.
    notices : tuple of Notice
        What the reader should know before trusting a number.
    provenance : dict
    ordered : bool
        Whether the order of the groups is that of time.
    feature_means : array of float, shape (n_groups, n_features), or None
        Means of the prepared items of each group, as the classifier sees them.
    """

    groups: tuple[str, ...]
    sizes: npt.NDArray[np.int64]
    estimate: PrevalenceEstimate
    training: npt.NDArray[np.float64]
    counted: npt.NDArray[np.float64] | None = None
    notices: tuple[Notice, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    ordered: bool = False
    feature_means: npt.NDArray[np.float32] | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels' names."""
        return self.estimate.labels

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of the notices."""
        return tuple(one.text for one in self.notices)

    def to_rows(self) -> list[dict[str, Any]]:
        """The long form: one row per group and label, with the columns `COLUMNS`."""
        return list(self._rows())

    def _rows(self) -> Iterator[dict[str, Any]]:
        point, low, high = self.estimate.point, self.estimate.lower, self.estimate.upper
        for i, group in enumerate(self.groups):
            for j, label in enumerate(self.labels):
                yield {
                    "group": group,
                    "label": label,
                    "n_items": int(self.sizes[i]),
                    "prevalence": float(point[i, j]),
                    "lower": None if low is None else float(low[i, j]),
                    "upper": None if high is None else float(high[i, j]),
                    "training": float(self.training[j]),
                }

    def to_frame(self, backend: str = "pandas") -> Any:
        """The long form as a pandas or polars frame."""
        check_choice(backend, "backend", ("pandas", "polars"))
        try:
            library = importlib.import_module(backend)
        except ImportError:
            raise InputError(
                f'to_frame needs {backend}: pip install "prevalens[frames]".'
            ) from None
        rows = self.to_rows()
        return library.DataFrame({name: [row[name] for row in rows] for name in COLUMNS})

    def to_dict(self) -> dict[str, Any]:
        """Everything but the features, as JSON takes it."""
        return {
            "rows": self.to_rows(),
            "interval": self.estimate.level,
            "notices": [vars(one) for one in self.notices],
            "provenance": dict(self.provenance),
        }

    def write(self, path: str | Path) -> None:
        """Write the long form: ``.csv``, ``.tsv``, ``.jsonl``, ``.parquet``, or all as ``.json``.

        The file appears when it is complete. In CSV, a name that a spreadsheet would take for a
        formula gets an apostrophe.
        """
        path = Path(path)
        content = self.to_bytes(path.suffix.lower())
        with writing(path) as file:
            file.write(content)

    def to_bytes(self, ending: str) -> bytes:
        """The content of a file with that ending."""
        check_ending(ending)
        if ending == ".json":
            return (json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n").encode()
        if ending == ".jsonl":
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in self._rows())
            return "".join(lines).encode()
        return _parquet(self.to_rows()) if ending == ".parquet" else self._csv(ending)

    def _csv(self, ending: str) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.DictWriter(
            text, COLUMNS, delimiter="\t" if ending == ".tsv" else ",", lineterminator="\n"
        )
        writer.writeheader()
        for row in self._rows():
            writer.writerow({name: safe_cell(value) for name, value in row.items()})
        return text.getvalue().encode()


def check_ending(name: str | Path) -> None:
    """Refuse a file name whose ending says no format that results are written in."""
    ending = Path(f"x{name}" if str(name).startswith(".") else name).suffix.lower()
    if ending not in _ENDINGS:
        raise InputError(
            f"Results are written as {', '.join(_ENDINGS)}; {str(name)!r} ends in none of them."
        )


def safe_cell(value: Any) -> Any:
    """A cell of a CSV file: no text that a spreadsheet would run as a formula.

    Examples
    --------
    >>> safe_cell("=1+1"), safe_cell(-0.5), safe_cell(None)
    ("'=1+1", -0.5, '')
    """
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value


def _parquet(rows: list[dict[str, Any]]) -> bytes:
    try:
        arrow = importlib.import_module("pyarrow")
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise InputError(
            'A Parquet file needs pyarrow to be written: pip install "prevalens[frames]".'
        ) from None
    buffer = io.BytesIO()
    columns = {name: [row[name] for row in rows] for name in COLUMNS}
    types = {"lower": arrow.float64(), "upper": arrow.float64()}
    arrays = {name: arrow.array(cells, type=types.get(name)) for name, cells in columns.items()}
    parquet.write_table(arrow.table(arrays), buffer)
    return buffer.getvalue()
