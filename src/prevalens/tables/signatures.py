"""Files that are no tables, recognised by their first bytes."""

from __future__ import annotations

import zipfile

from prevalens.errors import FormatError
from prevalens.files import ByteSource, damaged

_UNPACK = "unpack it first"
_EXPORT = "export the table as CSV"
_SAVE = "save it as .xlsx or CSV"

#: First bytes, what they show, and what to do about it.
_SIGNATURES = (
    (b"\x89PNG", "a PNG image", ""),
    (b"\xff\xd8\xff", "a JPEG image", ""),
    (b"GIF8", "a GIF image", ""),
    (b"II*\0", "a TIFF image", ""),
    (b"MM\0*", "a TIFF image", ""),
    (b"RIFF", "an audio, video or image file", ""),
    (b"OggS", "an audio file", ""),
    (b"ID3", "an audio file", ""),
    (b"%PDF", "a PDF document", _EXPORT),
    (b"{\\rtf", "an RTF document", _EXPORT),
    (b"\x7fELF", "a program", ""),
    (b"MZ\x90\0", "a program", ""),
    (b"\xcf\xfa\xed\xfe", "a program", ""),
    (b"\xca\xfe\xba\xbe", "a program", ""),
    (b"\0asm", "a program", ""),
    (b"SQLite format 3\0", "an SQLite database", _EXPORT),
    (b"\x89HDF", "an HDF5 file", _EXPORT),
    (b"\x93NUMPY", "a NumPy array", _EXPORT),
    (b"ARROW1", "an Arrow or Feather file", "save it as Parquet"),
    (b"Obj\x01", "an Avro file", "save it as Parquet"),
    (b"ORC", "an ORC file", "save it as Parquet"),
    (b"\x80\x04\x95", "a Python pickle", _EXPORT),
    (b"\x80\x05\x95", "a Python pickle", _EXPORT),
    (b"Rar!\x1a", "a RAR archive", _UNPACK),
    (b"7z\xbc\xaf", "a 7-Zip archive", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a file compressed by zstd", _UNPACK),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook or Word document", _SAVE),
    (b"<?xml", "an XML file", _EXPORT),
    (b"<!doctype html", "a web page", "download the table itself"),
    (b"<svg", "an SVG image", ""),
    (b"<html", "a web page", "download the table itself"),
)  # fmt: skip
#: What an archive holds, by the beginning of a member's name.
_MEMBERS = (
    ("manifest.json", "a model that `prevalens fit` wrote", "name a table instead"),
    ("word/", "a Word document", _EXPORT),
    ("ppt/", "a PowerPoint presentation", _EXPORT),
    ("mimetype", "an OpenDocument file", _SAVE),
    ("", "a zip archive", _UNPACK),
)
#: Where a tar archive says that it is one.
_TAR = slice(257, 262)
#: Byte order marks of encodings with NUL bytes.
_WIDE = (b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff")


def check_readable(source: ByteSource, start: bytes, *, encoded: bool) -> None:
    """Refuse a file that is no table, by its first bytes, and name what it is.

    Parameters
    ----------
    source : ByteSource
    start : bytes
    encoded : bool
        Whether an encoding was named, in which bytes may mean anything.
    """
    lower = start[:64].lower()
    for signature, what, remedy in _SIGNATURES:
        if start.startswith(signature) or (signature[:1] == b"<" and lower.startswith(signature)):
            raise _no_table(source, what, remedy)
    if start[_TAR] == b"ustar":
        raise _no_table(source, "a tar archive", _UNPACK)
    if start.startswith(b"PK"):
        _check_archive(source)
    elif b"\0" in start and not encoded and not start.startswith((*_WIDE, b"PAR1")):
        raise _binary(source, start)


def _no_table(source: ByteSource, what: str, remedy: str) -> FormatError:
    way_out = remedy or "give a CSV, TSV, JSON, Parquet or Excel file"
    return damaged(source.name, f"this is {what}, not a table; {way_out}.")


def _check_archive(source: ByteSource) -> None:
    """Refuse a zip archive that is no workbook; one that cannot be opened is left to its reader."""
    try:
        with source.opened() as (stream, _), zipfile.ZipFile(stream) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError):
        return
    if any(name.startswith("xl/") for name in names):
        return
    for beginning, what, remedy in _MEMBERS:
        if any(name.startswith(beginning) for name in names):
            raise _no_table(source, what, remedy)


def _binary(source: ByteSource, start: bytes) -> FormatError:
    """The error for NUL bytes; many of them at every other place are UTF-16."""
    for places, encoding in ((start[1::2], "utf-16-le"), (start[::2], "utf-16-be")):
        if places.count(0) > 0.8 * len(places):
            return damaged(
                source.name, f"this looks like {encoding}; say so with `encoding={encoding!r}`."
            )
    return damaged(
        source.name, "it holds NUL bytes, so it is no text; give a text, Parquet or Excel file."
    )
