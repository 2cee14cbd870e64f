"""Model files: a description and the fitted objects in one archive; reading runs no code of it."""

from __future__ import annotations

import inspect
import io
import json
import platform
import sys
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
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
from prevalens.types import Floats


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


@dataclass(frozen=True)
class TrainingSummary:
    """The training in figures.

    Attributes
    ----------
    n_items, n_features : int
    positives : tuple of int
        Training items that have each label.
    cardinality : float
        Mean number of labels per item.
    method, group : str
        The quantifier's name, and which of its halves see labels together.
    preparation : str
        How items become numbers, in a sentence.
    kind : str
        What the items are: "text", "columns", "array" or "given".
    seconds : float
        What the training took.
    warnings : tuple of str
        What it warned of.
    """

    n_items: int
    n_features: int
    positives: tuple[int, ...]
    cardinality: float
    method: str
    group: str
    preparation: str
    kind: str
    seconds: float
    warnings: tuple[str, ...] = ()

    @property
    def prevalence(self) -> Floats:
        """Share of training items that have each label."""
        return np.asarray(self.positives, dtype=np.float64) / self.n_items

    def to_dict(self) -> dict[str, Any]:
        """As JSON takes it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainingSummary:
        """From what `to_dict` gave."""
        try:
            known = {one.name: values[one.name] for one in fields(cls)}
        except KeyError as error:
            raise FormatError(f"the training summary lacks {error}.") from None
        for name in ("positives", "warnings"):
            known[name] = tuple(known[name])
        return cls(**known)


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
#: Modules in them that open files or look up code by name, which no file may make us do.
_LEFT_OUT = (
    "prevalens.aggregators.external",
    "prevalens.tables.formats",
    "prevalens.tables.opening",
    "prevalens.tables.table",
)
#: Types of other packages beyond those that skops trusts, each with the reason.
_FOREIGN = (
    # The nodes of a decision tree; `check_sound` refuses nodes that lead out of the tree.
    "sklearn.tree._tree.Tree",
    # Arrays of numbers; `check_sound` refuses indices that lead out of the matrix.
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
    """Refuse objects that hold a tree or a sparse matrix which leads out of itself."""
    for one in _delicate(parts, set()):
        damaged = isinstance(one, Tree) and not _is_sound(one)
        if damaged or (isinstance(one, CompactForest) and not one.is_sound()):
            raise FormatError(f"{name}: a decision tree in it is damaged.")
        if sp.issparse(one):
            _check_sparse(one, name)


def _check_sparse(matrix: Any, name: str) -> None:
    try:
        if not hasattr(matrix, "check_format"):
            matrix = matrix.tocsr()
        matrix.check_format(full_check=True)
    except ValueError:
        raise FormatError(f"{name}: a sparse matrix in it is damaged.") from None


def _delicate(found: Any, seen: set[int]) -> Iterator[Any]:
    """Every tree and sparse matrix among objects, their attributes and what they hold."""
    if isinstance(found, Tree | CompactForest) or sp.issparse(found):
        yield found
        return
    if id(found) in seen or isinstance(found, (str, bytes, int, float, type(None))):
        return
    seen.add(id(found))
    inside: Any = ()
    if isinstance(found, dict):
        inside = found.values()
    elif isinstance(found, (list, tuple, set)):
        inside = found
    elif isinstance(found, np.ndarray):
        inside = found.ravel().tolist() if found.dtype == object else ()
    elif hasattr(found, "__dict__"):
        inside = vars(found).values()
    for one in list(inside):
        yield from _delicate(one, seen)


def _is_sound(tree: Any) -> bool:
    left, right = np.asarray(tree.children_left), np.asarray(tree.children_right)
    numbers = np.arange(tree.node_count)
    inner = left != _LEAF
    feature = np.asarray(tree.feature)[inner]
    # Children come after their parent, so no path can turn round.
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


#: Raised whenever files of another number cannot be read any more, in either direction.
FORMAT_VERSION = 2
_FORMAT = "prevalens model"
_MANIFEST, _SCHEMA = "manifest.json", "schema.json"
#: Fast, and within a few percent of the smallest size.
_COMPRESSION = 3
#: What unpacks to more than this many times the file's size is an attack.
_MOST_EXPANSION = 100

#: Damaged archives fail in several ways, unreadable encodings and lengths among them.
_DAMAGE = (zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, EOFError, OSError)


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
        What `read_manifest` gives back without touching the parts.
    parts : mapping of str to fitted object
    trusted : iterable of str
        Full names of further types that the file may hold.
    """
    page = {"format": _FORMAT, "version": FORMAT_VERSION, **manifest}
    with writing(path) as file:
        _dump(parts, file, trusted)
        with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr(_MANIFEST, json.dumps(page, indent=1, ensure_ascii=False))


def _dump(parts: Any, file: IO[bytes], trusted: Iterable[str]) -> None:
    """Write the archive of skops into an empty file, compressed unless that looks like a bomb."""
    try:
        dump(parts, file, compression=zipfile.ZIP_DEFLATED, compresslevel=_COMPRESSION)
        with zipfile.ZipFile(file) as archive:
            unknown = _unknown_types(archive, trusted)
            expanded = sum(member.file_size for member in archive.infolist())
        if expanded > _MOST_EXPANSION * file.seek(0, io.SEEK_END):
            file.truncate(file.seek(0))
            dump(parts, file)
    except OSError:
        raise
    # Whatever a foreign object answers when it is taken apart.
    except Exception as error:
        raise InputError(f"The model cannot be stored: {' '.join(str(error).split())}") from error
    if unknown:
        raise InputError(
            f"The model holds {', '.join(unknown)}, which model files may not; name it with "
            "trusted=[...] when saving and loading, if you trust it."
        )


def _unknown_types(archive: zipfile.ZipFile, trusted: Iterable[str]) -> list[str]:
    """Types in the archive that are not trusted, found without reading any array."""
    outline = io.BytesIO()
    with zipfile.ZipFile(outline, "w") as copy:
        for name in archive.namelist():
            # Only the schema names types; the arrays beside it are read as bytes when it is parsed.
            copy.writestr(name, archive.read(name) if name == _SCHEMA else b"")
    found = get_untrusted_types(data=outline.getvalue())
    return sorted(set(found) - trusted_types() - set(trusted))


def read_manifest(path: str | Path) -> dict[str, Any]:
    """The description of a model; the fitted objects stay in the file."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            if file.read(2) != b"PK":
                raise FormatError(f"{path}: this is no model file; `prevalens fit` writes one.")
            with zipfile.ZipFile(file) as archive:
                _check_archive(path, archive)
                page = json.loads(archive.read(_MANIFEST))
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder, not a model file.") from None
    except PermissionError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    except (*_DAMAGE, RecursionError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path}: the file is damaged or cut off ({error}).") from None
    return _checked_manifest(path, page)


def _check_archive(path: Path, archive: zipfile.ZipFile) -> None:
    members = archive.infolist()
    if _MANIFEST not in archive.namelist():
        raise FormatError(
            f"{path}: this is no model file; it lacks {_MANIFEST}. `prevalens fit` writes one."
        )
    if sum(member.file_size for member in members) > _MOST_EXPANSION * path.stat().st_size:
        raise FormatError(
            f"{path}: the model in it claims to unpack to more than {_MOST_EXPANSION} times the "
            "size of the file, which no model file does."
        )


def _checked_manifest(path: Path, page: Any) -> dict[str, Any]:
    if not isinstance(page, dict) or page.get("format") != _FORMAT:
        raise FormatError(f"{path}: this is no model file of prevalens.")
    version = page.get("version")
    if version == FORMAT_VERSION:
        return page
    if isinstance(version, int) and version < FORMAT_VERSION:
        raise FormatError(
            f"{path}: it was written by an older prevalens (file version {version}; this one reads "
            f"{FORMAT_VERSION}); fit the model again."
        )
    raise FormatError(
        f"{path}: it was written by a newer prevalens (file version {version}; this one reads "
        f"{FORMAT_VERSION}); update prevalens."
    )


def read_parts(
    path: str | Path, manifest: Mapping[str, Any], trusted: Iterable[str] = ()
) -> dict[str, Any]:
    """The fitted objects of a model; only objects of trusted types are made.

    Parameters
    ----------
    path : str or Path
    manifest : mapping
        What `read_manifest` has given; the file must not have changed since.
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
    raise FormatError(
        f"{path}: it holds {', '.join(unknown)}, which is not among the types that model files "
        "may hold; nothing of it was loaded. If it is a part of your own, load its code first: "
        "prevalens --with FILE."
    )
