"""Bodies of requests: JSON, and forms whose files go to the private folder as they arrive."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from prevalens.service.problems import PROBLEM_TYPE, Problem
from prevalens.service.schemas import ProblemAnswer, refused
from prevalens.service.settings import Limits
from prevalens.service.storage import Storage

#: Endings that tell a format; nothing else of a client's file name becomes part of a path.
ENDINGS = ("csv", "tsv", "txt", "jsonl", "ndjson", "json", "parquet", "xlsx")
#: Where the OpenAPI document describes types.
COMPONENTS = "#/components/schemas/{model}"
NO_FILE = "The form brings no file; add one as the part 'file'."
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
        The client's name for it, to be shown to people; never a path.
    path : Path
        Where it is stored.
    part : str
        The name of its part of the form.
    size : int
        Bytes.
    """

    name: str
    path: Path
    part: str = "file"
    size: int = 0


@dataclass
class _FormPart:
    """One part of a form while it arrives: a file if `handle` is set, else a field."""

    header: bytes = b""
    value: bytes = b""
    name: str = ""
    text: bytearray = field(default_factory=bytearray)
    stored: StoredFile | None = None
    handle: IO[bytes] | None = None


class FormReader:
    """Takes a multipart form apart while it arrives.

    Its own code rather than that of Starlette, which collects files in other places than the
    private folder, and accepts forms that end in the middle.

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
        self._part = _FormPart()
        self._ended = False
        callbacks: Any = {
            "on_part_begin": self._begin,
            "on_header_field": self._header,
            "on_header_value": self._value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._open,
            "on_part_data": self._data,
            "on_part_end": self._close_part,
            "on_end": self._finish,
        }
        with _damages():
            self._parser = MultipartParser(boundary, callbacks)

    def write(self, chunk: bytes) -> None:
        """Take the next piece of the body."""
        try:
            with _damages():
                self._parser.write(chunk)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise Problem("storage", "The server's disk is full; try again later.") from error
            raise Problem("internal", "The upload could not be stored.") from error

    def end(self) -> None:
        """Refuse the form unless the body is complete."""
        if not self._ended:
            raise Problem("bad_request", "The form ends in the middle.")

    def abandon(self) -> None:
        """Close a file that is still open."""
        if self._part.handle is not None:
            self._part.handle.close()

    def _begin(self) -> None:
        self._part = _FormPart()

    def _header(self, data: bytes, start: int, end: int) -> None:
        self._part.header += data[start:end]

    def _value(self, data: bytes, start: int, end: int) -> None:
        self._part.value += data[start:end]

    def _header_end(self) -> None:
        part = self._part
        if part.header.lower() == b"content-disposition":
            _, options = parse_options_header(part.value)
            part.name = options.get(b"name", b"").decode("utf-8", "replace")
            if b"filename" in options:
                name = options[b"filename"].decode("utf-8", "replace")
                path = self._folder / f"{len(self.files)}.{file_ending(name)}"
                part.stored = StoredFile(display_name(name), path, part.name)
        part.header = part.value = b""

    def _open(self) -> None:
        part = self._part
        if not part.name:
            raise Problem("bad_request", "A part of the form has no name.")
        if part.stored is None:
            if len(self.fields) >= _FIELDS:
                raise Problem("too_large", f"A form may have up to {_FIELDS} fields.")
            return
        if len(self.files) >= self._limits.files:
            raise Problem("too_large", f"A request may bring up to {self._limits.files} files.")
        part.handle = part.stored.path.open("xb")

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
        self.abandon()
        if part.stored is not None:
            self.files.append(part.stored)
        else:
            self.fields[part.name] = part.text.decode("utf-8", "replace")

    def _finish(self) -> None:
        self._ended = True


@contextmanager
def _damages() -> Iterator[None]:
    try:
        yield
    except FormParserError as error:
        raise Problem("bad_request", f"The form is damaged: {error}") from error


async def read_files(
    request: Request, folder: Path, limits: Limits, storage: Storage
) -> FormReader:
    """Read a whole form, which must bring at least one file; files go to `folder`."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    boundary = options.get(b"boundary", b"")
    if kind != b"multipart/form-data" or not boundary:
        raise Problem("media_type", "Files are sent as multipart/form-data with a boundary.")
    form = FormReader(boundary, folder, limits)
    try:
        async for chunk in request.stream():
            storage.hold(folder, len(chunk))
            form.write(chunk)
        form.end()
    finally:
        with suppress(OSError):
            form.abandon()
    if not form.files:
        raise Problem("bad_input", NO_FILE)
    return form


def display_name(name: str) -> str:
    r"""The client's name of a file, without folders and unprintable characters.

    Examples
    --------
    >>> display_name("../../etc/pass\x00wd.csv"), display_name("C:\\data\\May.csv")
    ('passwd.csv', 'May.csv')
    """
    last = PurePosixPath(name.replace("\\", "/")).name
    return _UNPRINTABLE.sub("", last).strip(" .")[-_NAME_LENGTH:] or "file"


def file_ending(name: str) -> str:
    """The ending that tells the format, or a refusal if it is unknown.

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


def schema_of(model: type[BaseModel]) -> dict[str, str]:
    """A reference to a type among the components of the OpenAPI document."""
    return {"$ref": COMPONENTS.format(model=model.__name__)}


#: The OpenAPI description of refusals.
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": sentence,
        "content": {PROBLEM_TYPE: {"schema": schema_of(ProblemAnswer)}},
    }
    for status, sentence in (
        ("4XX", "The request is refused; `detail` says why."),
        ("5XX", "The server cannot do it, now or at all."),
    )
}
_SMALL = 10**6

Body = TypeVar("Body", bound=BaseModel)


def media_type(request: Request) -> str:
    """The media type of the body, without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def body_of(*kinds: tuple[str, type[BaseModel]]) -> dict[str, Any]:
    """The OpenAPI description of a body that a route reads itself."""
    content = {kind: {"schema": schema_of(model)} for kind, model in kinds}
    return {"requestBody": {"required": True, "content": content}}


def declared_size(request: Request) -> int:
    """Bytes that the body has according to its head; 0 if that does not tell."""
    return int(request.headers.get("content-length", "0"))


async def read_json(request: Request, kind: type[Body]) -> Body:
    """Read and check a small JSON body."""
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
        raise refused(error) from error


async def save_body(request: Request, path: Path, storage: Storage) -> None:
    """Write a body of any kind to a file."""
    with path.open("xb") as file:
        async for chunk in request.stream():
            storage.hold(path.parent, len(chunk))
            file.write(chunk)
