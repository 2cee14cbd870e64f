"""Model files: a manifest and the fitted objects in one archive; reading runs no code of it."""

from __future__ import annotations

import inspect
import io
import platform
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.tree._tree import Tree
from skops.io import dump, get_untrusted_types, load

from prevalens._version import __version__
from prevalens.catalogue import own_types
from prevalens.classifiers.trees import CompactForest
from prevalens.errors import FormatError, InputError
from prevalens.files import writing
from prevalens.model.manifest import MANIFEST, MOST_EXPANSION, manifest_text, read_manifest


def provenance(method: str, source: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Method, time, versions and source of a model or a result."""
    return {
        "method": method,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "prevalens": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        **dict(source or {}),
    }


#: Rooms and modules whose classes fitted models consist of.
_ROOMS = (
    "prevalens.aggregators",
    "prevalens.classifiers",
    "prevalens.crossfit",
    "prevalens.labelsets",
    "prevalens.quantifier",
    "prevalens.response",
    "prevalens.scores",
    "prevalens.selection",
    "prevalens.solvers",
    "prevalens.tables",
    "prevalens.uncertainty",
)
#: Modules among them that open files or import code by name; a model file must not trigger that.
_LEFT_OUT = (
    "prevalens.aggregators.external",
    "prevalens.tables.annotations",
    "prevalens.tables.embeddings",
    "prevalens.tables.formats",
    "prevalens.tables.opening",
    "prevalens.tables.plain_csv",
    "prevalens.tables.table",
)
#: Types of other packages beyond those that skops trusts, each with the reason.
_FOREIGN = (
    # The nodes of a decision tree; `check_sound` refuses children outside the tree.
    "sklearn.tree._tree.Tree",
    # Arrays of numbers; `check_sound` refuses indices outside the matrix.
    "scipy.sparse._csc.csc_array",
    "scipy.sparse._csc.csc_matrix",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
)


def trusted_types() -> frozenset[str]:
    """Full names of the types that model files may hold: ours, and parts registered by the user.

    Ours are the classes of the loaded modules that estimators and their fitted state come from.
    skops makes their instances without calling `__init__`, from attributes of trusted types only.
    """
    modules = [
        (name, module)
        for name, module in tuple(sys.modules.items())
        if name.startswith(_ROOMS) and name not in _LEFT_OUT
    ]
    ours = {
        f"{name}.{value.__qualname__}"
        for name, module in modules
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == name and _is_state(value)
    }
    return frozenset({*ours, *_FOREIGN, *own_types()})


def _is_state(cls: type) -> bool:
    """Whether instances hold parameters and arrays only."""
    return not issubclass(cls, (BaseException, io.IOBase)) and not inspect.isabstract(cls)


_LEAF = -1


def check_sound(parts: Any, name: str) -> None:
    """Refuse objects that hold a tree or a sparse matrix with indices out of its range."""
    for part in _delicate(parts, set()):
        damaged = isinstance(part, Tree) and not _is_sound(part)
        if damaged or (isinstance(part, CompactForest) and not part.is_sound()):
            raise FormatError(f"{name}: a decision tree in it is damaged.")
        if sp.issparse(part):
            _check_sparse(part, name)


def _check_sparse(matrix: Any, name: str) -> None:
    try:
        if not hasattr(matrix, "check_format"):
            matrix = matrix.tocsr()
        matrix.check_format(full_check=True)
    except ValueError:
        raise FormatError(f"{name}: a sparse matrix in it is damaged.") from None


def _delicate(value: Any, seen: set[int]) -> Iterator[Any]:
    """Every tree and sparse matrix in a value, its attributes and its elements, at any depth."""
    if isinstance(value, Tree | CompactForest) or sp.issparse(value):
        yield value
        return
    if id(value) in seen or isinstance(value, (str, bytes, int, float, type(None))):
        return
    seen.add(id(value))
    inside: Any = ()
    if isinstance(value, dict):
        inside = value.values()
    elif isinstance(value, (list, tuple, set)):
        inside = value
    elif isinstance(value, np.ndarray):
        inside = value.ravel().tolist() if value.dtype == object else ()
    elif hasattr(value, "__dict__"):
        inside = vars(value).values()
    for part in list(inside):
        yield from _delicate(part, seen)


def _is_sound(tree: Any) -> bool:
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)
    numbers = np.arange(tree.node_count)
    inner = left != _LEAF
    feature = np.asarray(tree.feature)[inner]
    # Children come after their parent, so no path can form a cycle.
    after = all(
        np.all((side[inner] > numbers[inner]) & (side[inner] < tree.node_count))
        for side in (left, right)
    )
    return bool(
        tree.node_count > 0
        and after
        and np.all((right == _LEAF) == ~inner)
        and np.all((feature >= 0) & (feature < tree.n_features))
    )


#: The member of the archive in which skops names the types.
_SCHEMA = "schema.json"
#: Fast, and within a few percent of the smallest size.
_COMPRESSION = 3


def check_storable(parts: Any, trusted: Iterable[str] = ()) -> None:
    """Refuse objects that could not be read back from a file."""
    _dump(parts, io.BytesIO(), trusted)


def write_model(
    path: str | Path,
    manifest: Mapping[str, Any],
    parts: Mapping[str, Any],
    trusted: Iterable[str] = (),
) -> None:
    """Write the file; it appears under its name only when it is complete.

    Parameters
    ----------
    path : str or Path
    manifest : mapping
        The content that `read_manifest` returns without reading the parts.
    parts : mapping of str to fitted object
    trusted : iterable of str
        Full names of further types that the file may hold.
    """
    with writing(path) as file:
        _dump(parts, file, trusted)
        with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(MANIFEST, manifest_text(manifest))


def _dump(parts: Any, file: IO[bytes], trusted: Iterable[str]) -> None:
    """Write the archive of skops into an empty file, compressed unless that looks like a bomb."""
    try:
        dump(parts, file, compression=zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION)
        with zipfile.ZipFile(file) as archive:
            unknown = _unknown_types(archive, trusted)
            expanded = sum(member.file_size for member in archive.infolist())
        if expanded > MOST_EXPANSION * file.seek(0, io.SEEK_END):
            file.truncate(file.seek(0))
            dump(parts, file)
    except OSError:
        raise
    # A foreign object may raise anything when skops asks for its state.
    except Exception as error:
        raise InputError(f"The model cannot be stored: {' '.join(str(error).split())}") from error
    if unknown:
        raise InputError(
            f"The model holds {', '.join(unknown)}, which model files may not; name it with "
            "trusted=[...] when saving and loading, if you trust it."
        )


def _unknown_types(archive: zipfile.ZipFile, trusted: Iterable[str]) -> list[str]:
    """Types in the archive that are not trusted, determined without reading any array."""
    outline = io.BytesIO()
    with zipfile.ZipFile(outline, "w") as copy:
        for name in archive.namelist():
            # Only the schema names types; skops reads the other members as bytes when it parses it.
            copy.writestr(name, archive.read(name) if name == _SCHEMA else b"")
    untrusted = get_untrusted_types(data=outline.getvalue())
    return sorted(set(untrusted) - trusted_types() - set(trusted))


def read_parts(
    path: str | Path, manifest: Mapping[str, Any], trusted: Iterable[str] = ()
) -> dict[str, Any]:
    """The fitted objects of a model; only objects of trusted types are made.

    Parameters
    ----------
    path : str or Path
    manifest : mapping
        The result of `read_manifest`; the file must not have changed since.
    trusted : iterable of str
        Full names of further types that the file may hold.
    """
    if read_manifest(path) != manifest:
        raise FormatError(f"{path}: the file has changed since it was opened; load it again.")
    try:
        with zipfile.ZipFile(path) as archive:
            unknown = _unknown_types(archive, trusted)
        if not unknown:
            parts: dict[str, Any] = load(path, trusted=[*trusted_types(), *trusted])
            check_sound(parts, str(path))
            return parts
    except FormatError:
        raise
    # A file that was tampered with can make the reader fail in any way.
    except Exception as error:
        what = f"the model in it cannot be rebuilt ({' '.join(str(error).split())[:200]})."
        raise FormatError(f"{path}: {what}") from error
    ours = [name for name in unknown if name.startswith("prevalens.")]
    if ours:
        raise FormatError(
            f"{path}: it holds {', '.join(ours)}, which is no part of a model in prevalens "
            f"{__version__}; nothing of it was loaded. Fit the model again."
        )
    raise FormatError(
        f"{path}: it holds {', '.join(unknown)}, which is not among the types that model files "
        "may hold; nothing of it was loaded. If it is a part of your own, load its code first: "
        "prevalens --with FILE."
    )
