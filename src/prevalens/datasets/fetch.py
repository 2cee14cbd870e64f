"""Downloads: resumed, retried, checked, and renamed only when complete.

While a file is being fetched its bytes are in ``<name>.part``, and ``<name>.part.tag`` contains the
server's name for this version of the file. An interrupted download is resumed, also by a later
call, if the server still has the same version. Only a complete file with the right checksum gets
its final name.
"""

from __future__ import annotations

import http.client
import importlib
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tqdm.auto import tqdm

from prevalens.files import digest
from prevalens.validation import FormatError, InputError, PrevalensError

try:
    # Dynamic, because there is no such module on Windows.
    fcntl: Any = importlib.import_module("fcntl")
except ImportError:
    fcntl = None

_CHUNK = 2**16
_SCHEMES = ("http", "https")


class DownloadError(PrevalensError):
    """A file could not be fetched."""


class NotFoundError(DownloadError):
    """The server says there is no such file."""


class _CutOffError(Exception):
    """The connection ended before the file did."""


def download(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    timeout: float = 30.0,
    retries: int = 3,
    wait: float = 0.5,
    schemes: tuple[str, ...] = _SCHEMES,
) -> Path:
    """Fetch a file.

    Parameters
    ----------
    url : str
    target : Path
        Final path of the file; an incomplete file never has this name.
    sha256 : str, optional
        Checksum of the file's content, uncompressed if the file is compressed.
    timeout : float
        Seconds to wait for the server at each step.
    retries : int
        Number of further attempts after a temporary failure.
    wait : float
        Seconds before the first of these attempts, doubled for each further one.
    schemes : tuple of str
        Allowed schemes of the address.

    Raises
    ------
    DownloadError
        One sentence that names the address and the reason.
    """
    if urlsplit(url).scheme not in schemes:
        raise InputError(f"Only {' and '.join(schemes)} addresses are fetched; got {url!r}.")
    _make_folder(target.parent)
    with _alone(target.parent):
        if not target.exists():
            part = _PartialFile(target)
            _fetch_with_retries(url, part, timeout=timeout, retries=retries, wait=wait)
            _check(url, part, sha256)
            part.finish()
    return target


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DownloadError(f"{folder} cannot be made: {error.strerror}.") from error
    if not os.access(folder, os.W_OK):
        raise DownloadError(f"{folder} cannot be written to.")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Lock a folder against other processes that download into it, if the system supports that."""
    if fcntl is None:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


class _PartialFile:
    """The bytes fetched so far, and the server's name for the version they belong to."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.path = target.with_name(f"{target.name}.part")
        self._tag_path = target.with_name(f"{target.name}.part.tag")

    @property
    def size(self) -> int:
        return self.path.stat().st_size if self.path.exists() else 0

    @property
    def tag(self) -> str:
        return self._tag_path.read_text() if self._tag_path.exists() else ""

    def start_over(self, tag: str = "") -> None:
        self.path.unlink(missing_ok=True)
        self._tag_path.unlink(missing_ok=True)
        if tag:
            self._tag_path.write_text(tag)

    def finish(self) -> None:
        self.path.replace(self.target)
        self._tag_path.unlink(missing_ok=True)


def _fetch_with_retries(
    url: str, part: _PartialFile, *, timeout: float, retries: int, wait: float
) -> None:
    for attempt in range(retries + 1):
        if attempt:
            time.sleep(wait * 2 ** (attempt - 1))
        try:
            _fetch(url, part, timeout)
        except urllib.error.HTTPError as error:
            with error:
                if error.code in (404, 410):
                    raise NotFoundError(f"There is no file at {url} (HTTP {error.code}).") from None
                reason = f"HTTP {error.code} {error.reason}"
                if error.code == 416:
                    part.start_over()
                elif error.code < 500 and error.code not in (408, 429):
                    break
        except urllib.error.URLError as error:
            reason = str(error.reason)
        except (_CutOffError, OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
        else:
            return
    raise DownloadError(f"{url} could not be fetched: {reason}.")


def _fetch(url: str, part: _PartialFile, timeout: float) -> None:
    """One request, resumed where the last one ended if the server supports that."""
    headers = {"User-Agent": "prevalens", "Accept-Encoding": "identity"}
    start = part.size if part.tag else 0
    if start:
        headers |= {"Range": f"bytes={start}-", "If-Range": part.tag}
    request = urllib.request.Request(url, headers=headers)
    with urllib.request.urlopen(request, timeout=timeout) as response:
        continues = str(response.headers.get("Content-Range", "")).startswith(f"bytes {start}-")
        if response.status != 206 or not continues:
            start = 0
            part.start_over(_version(response))
        _save(response, part, start)


def _version(response: Any) -> str:
    """The server's name for this version of the file; empty if it gives none."""
    tag = str(response.headers.get("ETag") or "")
    # A weak tag does not promise the same bytes.
    weak = not tag or tag.startswith("W/")
    return str(response.headers.get("Last-Modified") or "") if weak else tag


def _save(response: Any, part: _PartialFile, start: int) -> None:
    length = response.headers.get("Content-Length")
    total = start + int(length) if length and length.isdecimal() else None
    # disable=None: no bar if standard error is neither a terminal nor a notebook.
    bar = tqdm(
        desc=part.target.name, initial=start, total=total, unit="B", unit_scale=True, disable=None
    )
    with bar, part.path.open("ab") as file:
        while chunk := response.read(_CHUNK):
            file.write(chunk)
            bar.update(len(chunk))
    if total is not None and part.size < total:
        raise _CutOffError(f"the connection was cut after {part.size} of {total} bytes")


def _check(url: str, part: _PartialFile, sha256: str | None) -> None:
    if sha256 is None:
        return
    try:
        content = f"its SHA-256 is {digest(part.path)}"
    except FormatError:
        content = "its compressed data is damaged"
    if not content.endswith(sha256):
        part.start_over()
        what = f"{content}, not {sha256}; it was deleted."
        raise DownloadError(f"{url} is not the expected file: {what}")
