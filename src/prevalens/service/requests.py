"""Uploads as they arrive: the parts of a form go to files of the private folder, piece by piece."""

from __future__ import annotations

import errno
import re
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from prevalens.service.problems import Problem
from prevalens.service.schemas import ErrorAnswer, first_error
from prevalens.service.settings import Limits

__all__ = [
    "REFUSALS",
    "FormReader",
    "StoredFile",
    "body_of",
    "display_name",
    "file_ending",
    "media_type",
    "read_files",
    "read_form",
    "read_json",
    "save_body",
]

#: Endings by which readers know a format; a client's file name contributes nothing else to a path.
ENDINGS = ("csv", "tsv", "txt", "jsonl", "ndjson", "json", "parquet", "xlsx")
_PACKED = ("gz",)
_FIELD_BYTES = 64 * 1024
_FIELDS = 100
_NAME_LENGTH = 120
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


@dataclass
class StoredFile:
    """An uploaded file.

    Parameters
    ----------
    name : str
        What the client calls it, for people to read; never a path.
    path : Path
        Where it is.
    size : int
        Bytes.
    """

    name: str
    path: Path
    size: int = 0


@dataclass
class _Part:
    """One part of a form while it arrives."""

    headers: dict[bytes, bytes] = field(default_factory=dict)
    key: bytes = b""
    value: bytes = b""
    name: str = ""
    text: bytearray = field(default_factory=bytearray)
    stored: StoredFile | None = None
    handle: IO[bytes] | None = None


class FormReader:
    """Take a multipart form apart while it arrives.

    Parameters
    ----------
    boundary : bytes
    folder : Path
        Where files go, under names made here.
    limits : Limits

    Attributes
    ----------
    fields : dict of str
    files : list of StoredFile
    """

    def __init__(self, boundary: bytes, folder: Path, limits: Limits) -> None:
        self.fields: dict[str, str] = {}
        self.files: list[StoredFile] = []
        self._folder = folder
        self._limits = limits
        self._part = _Part()
        self._ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": self._header_field,
                "on_header_value": self._header_value,
                "on_header_end": self._header_end,
                "on_headers_finished": self._opened,
                "on_part_data": self._data,
                "on_part_end": self._close_part,
                "on_end": self._finish,
            },
        )

    def write(self, chunk: bytes) -> None:
        """Take the next piece of the body."""
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise Problem("bad_request", f"The form is damaged: {error}") from error
        except OSError as error:
            raise _no_space(error) from error

    def end(self) -> None:
        """Say that the body is complete."""
        if not self._ended:
            raise Problem("bad_request", "The form ends in the middle.")

    def abandon(self) -> None:
        """Let go of an open file."""
        if self._part.handle is not None:
            self._part.handle.close()

    def _begin(self) -> None:
        self._part = _Part()

    def _header_field(self, data: bytes, start: int, end: int) -> None:
        self._part.key += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._part.value += data[start:end]

    def _header_end(self) -> None:
        self._part.headers[self._part.key.lower()] = self._part.value
        self._part.key = self._part.value = b""

    def _opened(self) -> None:
        part = self._part
        _, options = parse_options_header(part.headers.get(b"content-disposition", b""))
        part.name = options.get(b"name", b"").decode("utf-8", "replace")
        if not part.name:
            raise Problem("bad_request", "A part of the form has no name.")
        if b"filename" in options:
            self._open_file(options[b"filename"].decode("utf-8", "replace"))
        elif len(self.fields) >= _FIELDS:
            raise Problem("too_large", f"A form may have up to {_FIELDS} fields.")

    def _open_file(self, name: str) -> None:
        if len(self.files) >= self._limits.files:
            raise Problem("too_large", f"A request may bring up to {self._limits.files} files.")
        path = self._folder / f"{len(self.files)}.{file_ending(name)}"
        self._part.stored = StoredFile(display_name(name), path)
        self._part.handle = path.open("xb")

    def _data(self, data: bytes, start: int, end: int) -> None:
        part = self._part
        if part.stored is not None and part.handle is not None:
            part.handle.write(data[start:end])
            part.stored.size += end - start
            return
        part.text += data[start:end]
        if len(part.text) > _FIELD_BYTES:
            raise Problem("too_large", f"The field {part.name!r} is longer than 64 KB.")

    def _close_part(self) -> None:
        part = self._part
        if part.stored is not None and part.handle is not None:
            part.handle.close()
            self.files.append(part.stored)
        else:
            self.fields[part.name] = part.text.decode("utf-8", "replace")

    def _finish(self) -> None:
        self._ended = True


async def read_form(
    content_type: str, chunks: AsyncIterator[bytes], folder: Path, limits: Limits
) -> FormReader:
    """Read a whole form, its files into `folder`."""
    kind, options = parse_options_header(content_type)
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise Problem("media_type", "Files are sent as multipart/form-data with a boundary.")
    try:
        form = FormReader(boundary, folder, limits)
    except FormParserError as error:
        raise Problem("bad_request", f"The form is damaged: {error}") from error
    try:
        async for chunk in chunks:
            form.write(chunk)
        form.end()
    finally:
        with suppress(OSError):
            form.abandon()
    return form


def display_name(name: str) -> str:
    r"""What a client calls its file, without folders and unprintable characters.

    Examples
    --------
    >>> display_name("../../etc/pass\x00wd.csv"), display_name("C:\\data\\May.csv")
    ('passwd.csv', 'May.csv')
    """
    last = PurePosixPath(name.replace("\\", "/")).name
    return _UNPRINTABLE.sub("", last).strip(" .")[-_NAME_LENGTH:] or "file"


def file_ending(name: str) -> str:
    """The ending by which a reader will know the format; a sentence if there is none for it.

    Examples
    --------
    >>> file_ending("May.CSV"), file_ending("a/../b.jsonl.gz")
    ('csv', 'jsonl.gz')
    """
    parts = display_name(name).lower().split(".")[1:]
    if parts[-1:] and parts[-1] in ENDINGS:
        return parts[-1]
    if len(parts) > 1 and parts[-1] in _PACKED and parts[-2] in ENDINGS:
        return ".".join(parts[-2:])
    raise Problem(
        "media_type",
        f"{display_name(name)!r} has no known ending; use {', '.join(ENDINGS)}, or one of them "
        "with .gz.",
    )


def _no_space(error: OSError) -> Problem:
    if error.errno == errno.ENOSPC:
        return Problem("storage", "The server's disk is full; try again later.")
    return Problem("internal", "The upload could not be stored.")


#: How refusals look in the OpenAPI document.
REFUSALS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorAnswer, "description": "The request is refused; the message says why."},
    "5XX": {"model": ErrorAnswer, "description": "The server cannot do it, now or at all."},
}
_SMALL = 10**6

Body = TypeVar("Body", bound=BaseModel)


def media_type(request: Request) -> str:
    """What the body says it is, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def body_of(*kinds: tuple[str, Any]) -> dict[str, Any]:
    """How bodies that a route reads itself look in the OpenAPI document."""
    content = {kind: {"schema": schema} for kind, schema in kinds}
    return {"requestBody": {"required": True, "content": content}}


async def read_json(request: Request, kind: type[Body]) -> Body:
    """A small JSON body, checked."""
    if media_type(request) != "application/json":
        raise Problem("media_type", "Send JSON, with Content-Type: application/json.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _SMALL:
            raise Problem("too_large", "This request may have up to 1 MB.")
    try:
        return kind.model_validate_json(bytes(body))
    except ValidationError as error:
        raise Problem("bad_input", first_error(error)) from error


async def save_body(request: Request, path: Path) -> None:
    """Any body, to a file."""
    with path.open("xb") as file:
        async for chunk in request.stream():
            file.write(chunk)


async def read_files(request: Request, folder: Path, limits: Limits) -> FormReader:
    """A form with at least one file."""
    form = await read_form(
        request.headers.get("content-type", ""), request.stream(), folder, limits
    )
    if not form.files:
        raise Problem("bad_input", "The form brings no file; add one as the part 'file'.")
    return form
