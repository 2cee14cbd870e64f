"""The model file: a zip of one JSON page and the fitted parts, read without running any code.

``manifest.json`` says what the model is (labels, training summary, provenance) and carries the
checksum of ``parts.skops``, which holds the fitted objects. Objects are rebuilt by skops from a
list of trusted types only; see `prevalens.model.trusted`.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from skops.io import dumps, get_untrusted_types, loads

from prevalens.errors import FormatError, InputError
from prevalens.extension import own_types
from prevalens.model.soundness import check_sound
from prevalens.model.trusted import TRUSTED
from prevalens.model.writing import writing

__all__ = ["FORMAT_VERSION", "from_bytes", "read_model", "to_bytes", "write_model"]

#: Raised when older versions of the package could not read the file any more.
FORMAT_VERSION = 1
_FORMAT = "prevalens model"
_MANIFEST, _PARTS = "manifest.json", "parts.skops"


def to_bytes(parts: Any, trusted: Iterable[str] = ()) -> bytes:
    """Fitted objects as bytes; refused if they could not be read back."""
    try:
        content = dumps(parts)
    # Whatever a foreign object answers when it is taken apart.
    except Exception as error:
        raise InputError(f"The model cannot be stored: {' '.join(str(error).split())}") from error
    unknown = sorted(set(get_untrusted_types(data=content)) - set(_trusted(trusted)))
    if unknown:
        raise InputError(
            f"The model holds {', '.join(unknown)}, which model files may not; name it with "
            "trusted=[...] when saving and loading, if you trust it."
        )
    return content


def from_bytes(name: str, content: bytes, trusted: Iterable[str] = ()) -> Any:
    """The fitted objects; only objects of trusted types are made."""
    _check_expansion(name, content)
    try:
        unknown = sorted(set(get_untrusted_types(data=content)) - set(_trusted(trusted)))
        if not unknown:
            parts = loads(content, trusted=_trusted(trusted))
            check_sound(parts, name)
            return parts
    except FormatError:
        raise
    # A file that was tampered with can make the reader fail in any way.
    except Exception as error:
        what = f"the model in it cannot be rebuilt ({' '.join(str(error).split())[:200]})."
        raise FormatError(f"{name}: {what}") from error
    raise FormatError(
        f"{name}: it holds {', '.join(unknown)}, which is not among the types that model files "
        "may hold; nothing of it was loaded. If it is a part of your own, load its code first: "
        "prevalens --with FILE."
    )


def _trusted(further: Iterable[str]) -> list[str]:
    """All types a file may hold here: ours, registered ones, and those that the caller trusts."""
    return [*TRUSTED, *own_types(), *further]


def _check_expansion(name: str, content: bytes) -> None:
    """Parts are stored as they are; what claims to be larger than the file is an attack."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as inner:
            claimed = sum(one.file_size for one in inner.infolist())
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise FormatError(f"{name}: the model in it is damaged ({error}).") from None
    if claimed > len(content):
        raise FormatError(f"{name}: the model in it claims to be larger than the file.")


def write_model(path: str | Path, manifest: Mapping[str, Any], parts: bytes) -> None:
    """Write the file; it appears under its name only when it is complete."""
    page = {
        "format": _FORMAT,
        "version": FORMAT_VERSION,
        "sha256": hashlib.sha256(parts).hexdigest(),
        **manifest,
    }
    with writing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_MANIFEST, json.dumps(page, indent=1, ensure_ascii=False))
        archive.writestr(_PARTS, parts)


def read_model(path: str | Path) -> tuple[dict[str, Any], bytes]:
    """The JSON page and the bytes of the parts, checked but not yet rebuilt."""
    path = Path(path)
    content = _content(path)
    if not content.startswith(b"PK"):
        raise FormatError(f"{path}: this is no model file; `prevalens fit` writes one.")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            page = _page(path, archive)
            parts = _member(path, archive, _PARTS)
    # Damaged archives fail in several ways, unreadable encodings and lengths among them.
    except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, OSError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path}: the file is damaged or cut off ({error}).") from None
    if hashlib.sha256(parts).hexdigest() != page.get("sha256"):
        raise FormatError(
            f"{path}: the checksum does not fit; the file was changed or damaged. Fit the model "
            "again, or get the file once more."
        )
    return page, parts


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, not a model file.") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        member = archive.getinfo(name)
    except KeyError:
        raise FormatError(
            f"{path}: this is no model file; it lacks {name}. `prevalens fit` writes one."
        ) from None
    if member.compress_type != zipfile.ZIP_STORED:
        raise FormatError(f"{path}: {name} is compressed, which no model file of prevalens is.")
    return archive.read(name)


def _page(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    try:
        page = json.loads(_member(path, archive, _MANIFEST))
    except (ValueError, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path}: its description is damaged ({error}).") from None
    if not isinstance(page, dict) or page.get("format") != _FORMAT:
        raise FormatError(f"{path}: this is no model file of prevalens.")
    version = page.get("version")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise FormatError(
            f"{path}: it was written by a newer prevalens (file version {version}; this one reads "
            f"up to {FORMAT_VERSION}); update prevalens."
        )
    return page
