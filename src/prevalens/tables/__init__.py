"""Tables: reading files and frames, and turning them into a matrix.

Files are read in chunks of rows (CSV, TSV, JSON lines, JSON; Parquet needs pyarrow, Excel needs
openpyxl); frames, lists of records and lists of texts become tables as well. A preparation, fitted
once and without labels, turns the columns into a matrix; `ColumnGuard` holds columns that have
drifted at their training mean. This package imports nothing above `prevalens.files`. Names are
loaded when they are first used, so that a header can be read without the estimators.
"""

from typing import TYPE_CHECKING

from prevalens.lazy import lazy_names

if TYPE_CHECKING:
    from prevalens.tables.column_guard import ColumnGuard, DriftWarning, guard_of
    from prevalens.tables.columns import ColumnPreparation
    from prevalens.tables.formats import as_table
    from prevalens.tables.kinds import ColumnUse
    from prevalens.tables.opening import Reading, expand, open_table
    from prevalens.tables.preparation import (
        ArrayPreparation,
        CellError,
        GivenPreparation,
        Preparation,
        Unfamiliar,
    )
    from prevalens.tables.scores import ScorePreparation
    from prevalens.tables.table import CHUNK_ROWS, Chunk, Table
    from prevalens.tables.text import TextPreparation

#: The module that defines each public name; it is imported when the name is first used.
_MODULE_OF = {
    "CHUNK_ROWS": "prevalens.tables.table",
    "ArrayPreparation": "prevalens.tables.preparation",
    "CellError": "prevalens.tables.preparation",
    "Chunk": "prevalens.tables.table",
    "ColumnGuard": "prevalens.tables.column_guard",
    "ColumnPreparation": "prevalens.tables.columns",
    "ColumnUse": "prevalens.tables.kinds",
    "DriftWarning": "prevalens.tables.column_guard",
    "GivenPreparation": "prevalens.tables.preparation",
    "Preparation": "prevalens.tables.preparation",
    "Reading": "prevalens.tables.opening",
    "ScorePreparation": "prevalens.tables.scores",
    "Table": "prevalens.tables.table",
    "TextPreparation": "prevalens.tables.text",
    "Unfamiliar": "prevalens.tables.preparation",
    "as_table": "prevalens.tables.formats",
    "expand": "prevalens.tables.opening",
    "guard_of": "prevalens.tables.column_guard",
    "open_table": "prevalens.tables.opening",
}

__all__ = [
    "CHUNK_ROWS",
    "ArrayPreparation",
    "CellError",
    "Chunk",
    "ColumnGuard",
    "ColumnPreparation",
    "ColumnUse",
    "DriftWarning",
    "GivenPreparation",
    "Preparation",
    "Reading",
    "ScorePreparation",
    "Table",
    "TextPreparation",
    "Unfamiliar",
    "as_table",
    "expand",
    "guard_of",
    "open_table",
]

__getattr__, __dir__ = lazy_names(__name__, _MODULE_OF)
