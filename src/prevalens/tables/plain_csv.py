"""Plain CSV files of numbers, read by pyarrow: block by block, until a line is not plain."""

from __future__ import annotations

import codecs
import importlib
from collections.abc import Iterator, Mapping
from typing import IO, Any, NamedTuple

#: Bytes of a block: so many that the steps of Python in between do not count.
_BLOCK = 2**22
#: A line that is longer is not plain.
_LONGEST_LINE = 2**24
#: What stands for a missing number; other spellings are not plain.
_MISSING = ("", "NA", "NaN", "nan", "null", "NULL")


class CsvLayout(NamedTuple):
    """What is read of the lines of a CSV file.

    Attributes
    ----------
    delimiter : str
    width : int
        Number of cells of a line.
    positions : mapping of str to int
        Place of each column in a line.
    columns : tuple of str
        Those to be read.
    scores : frozenset of str
        Those of them that are numbers from 0 to 1; the others are texts.
    """

    delimiter: str
    width: int
    positions: Mapping[str, int]
    columns: tuple[str, ...]
    scores: frozenset[str]


def is_utf8(encoding: str) -> bool:
    """Whether pyarrow can read texts of this encoding, a byte order mark aside."""
    return codecs.lookup(encoding).name in {"utf-8", "utf-8-sig"}


def skip_header(stream: IO[bytes]) -> bool:
    """Go to the second line, and tell whether the first is plain; go to the start if not."""
    header = stream.readline(_LONGEST_LINE)
    plain = header.endswith(b"\n") and header.count(b"\r") == header.count(b"\r\n")
    if not plain:
        stream.seek(0)
    return plain


def plain_blocks(stream: IO[bytes], layout: CsvLayout) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number of rows and cells of one block after the other, while they are plain.

    Plain are lines without quotation marks that have as many cells as the header, with numbers
    from 0 to 1, or nothing, in all columns of scores. Of these, every cell is the number that
    Python reads in it. At the first block that is not plain, the stream is set to its start.

    O(bytes), without a Python object per cell of the scores; memory is that of a block.
    """
    at, parse = stream.tell(), _parser(layout)
    while block := stream.read(_BLOCK):
        block += stream.readline(_LONGEST_LINE)
        cells = parse(block) if _is_plain(block) else None
        if cells is None:
            stream.seek(at)
            return
        yield cells
        at += len(block)


def _is_plain(block: bytes) -> bool:
    """Whether lines end as usual, and there are neither quotation marks nor characters amiss."""
    if b'"' in block or b"\0" in block or len(block) >= _LONGEST_LINE:
        return False
    if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
        return False
    try:
        return block.isascii() or bool(block.decode())
    except UnicodeDecodeError:
        return False


def _parser(layout: CsvLayout) -> Any:
    """A function from a block to its number of rows and cells; None if it is not plain."""
    arrow, csv = (importlib.import_module(name) for name in ("pyarrow", "pyarrow.csv"))
    names = [str(place) for place in range(layout.width)]
    own = {name: names[layout.positions[name]] for name in layout.columns}
    kinds = {
        own[name]: arrow.float64() if name in layout.scores else arrow.string() for name in own
    }
    parsing = csv.ParseOptions(delimiter=layout.delimiter, quote_char=False)
    conversion = csv.ConvertOptions(
        column_types=kinds, include_columns=[*kinds], null_values=_MISSING
    )

    def parse(block: bytes) -> tuple[int, dict[str, Any]] | None:
        reading = csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names)
        try:
            table = csv.read_csv(arrow.BufferReader(block), reading, parsing, conversion)
        except arrow.ArrowInvalid:
            return None
        # Blank lines are no rows; line numbers are right only without them.
        if table.num_rows != block.count(b"\n") + (not block.endswith(b"\n")):
            return None
        columns = {name: table.column(place).combine_chunks() for name, place in own.items()}
        if not all(_is_from_0_to_1(columns[name]) for name in layout.scores):
            return None
        return table.num_rows, {
            name: column.to_numpy(zero_copy_only=False)
            if name in layout.scores
            else column.to_pylist()
            for name, column in columns.items()
        }

    return parse


def _is_from_0_to_1(column: Any) -> bool:
    """Whether all numbers that are not missing lie between 0 and 1."""
    numbers = (column.drop_null() if column.null_count else column).to_numpy()
    # NaN fails too: only what is declared missing may be.
    return not len(numbers) or bool(numbers.min() >= 0 and numbers.max() <= 1)
