"""Tables: reading files and frames, and turning them into a matrix.

Files are read in chunks of rows (CSV, TSV, JSON lines, JSON; Parquet needs pyarrow, Excel needs
openpyxl); frames, lists of records and lists of texts become tables as well. A preparation, fitted
once and without labels, turns the columns into a matrix; `ColumnGuard` holds columns that have
drifted at their training mean. This package imports nothing above `prevalens.files`.
"""

from prevalens.tables.column_guard import ColumnGuard, DriftWarning, guard_of
from prevalens.tables.columns import ColumnPreparation
from prevalens.tables.formats import as_table
from prevalens.tables.opening import Reading, expand, open_table
from prevalens.tables.preparation import (
    ArrayPreparation,
    CellError,
    GivenPreparation,
    Preparation,
    Unfamiliar,
)
from prevalens.tables.table import CHUNK_ROWS, Chunk, Table
from prevalens.tables.text import TextPreparation

__all__ = [
    "CHUNK_ROWS",
    "ArrayPreparation",
    "CellError",
    "Chunk",
    "ColumnGuard",
    "ColumnPreparation",
    "DriftWarning",
    "GivenPreparation",
    "Preparation",
    "Reading",
    "Table",
    "TextPreparation",
    "Unfamiliar",
    "as_table",
    "expand",
    "guard_of",
    "open_table",
]
