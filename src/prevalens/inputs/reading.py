"""How files are to be read, where they do not tell themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from prevalens.inputs.opening import open_table
from prevalens.inputs.table import Table

__all__ = ["Reading"]


@dataclass(frozen=True)
class Reading:
    """Settings of `open_table` that hold for several files.

    Attributes
    ----------
    delimiter, encoding, sheet, format : str, optional
        As in `open_table`.
    """

    delimiter: str | None = None
    encoding: str | None = None
    sheet: str | None = None
    format: str | None = None

    def open(self, path: str | Path) -> Table:
        """Open a file with these settings."""
        return open_table(
            path,
            delimiter=self.delimiter,
            encoding=self.encoding,
            sheet=self.sheet,
            format=self.format,
        )
