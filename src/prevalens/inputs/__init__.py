"""Reading users' files: tables in chunks of rows, whatever their format and size.

CSV, TSV, JSON lines and JSON need nothing beyond the standard library; Parquet needs pyarrow and
Excel needs openpyxl. Frames, lists of records and lists of texts go through the same door.
"""

from prevalens.inputs.memory import as_table
from prevalens.inputs.opening import open_table
from prevalens.inputs.paths import expand
from prevalens.inputs.reading import Reading
from prevalens.inputs.table import CHUNK_ROWS, Chunk, Table

__all__ = ["CHUNK_ROWS", "Chunk", "Reading", "Table", "as_table", "expand", "open_table"]
