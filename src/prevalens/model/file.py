"""The birth certificate of a model or a result."""

from __future__ import annotations

import hashlib
import io
import json
import platform
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
import sklearn
from sklearn.tree._tree import Tree
from skops.io import dumps, get_untrusted_types, loads

from prevalens._version import __version__
from prevalens.catalogue import own_types
from prevalens.classifiers.trees import CompactForest
from prevalens.errors import FormatError, InputError
from prevalens.files import writing
from prevalens.types import Floats

__all__ = [
    "FORMAT_VERSION",
    "TRUSTED",
    "TrainingSummary",
    "check_sound",
    "from_bytes",
    "provenance",
    "read_model",
    "to_bytes",
    "write_model",
]


def provenance(method: str, source: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What made it, when, and from what."""
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


TRUSTED: tuple[str, ...] = (
    "prevalens.aggregators.mixture.calibration.Bands",
    "prevalens.aggregators.mixture.calibration.Multiples",
    "prevalens.aggregators.mixture.posterior.Moments",
    "prevalens.aggregators.sld_blocked.Rule",
    "prevalens.aggregators.adjusted.ACC",
    "prevalens.aggregators.adjusted.PACC",
    "prevalens.aggregators.counting.TrainingPrevalence",
    "prevalens.aggregators.calibrated.PAV",
    "prevalens.labelsets.KMeansClusters",
    "prevalens.labelsets.RandomClusters",
    "prevalens.aggregators.counting.CC",
    "prevalens.aggregators.counting.PCC",
    "prevalens.aggregators.matching.HDx",
    "prevalens.aggregators.matching._Dense",
    "prevalens.aggregators.matching.HDy",
    "prevalens.aggregators.lpq.LPQ",
    "prevalens.aggregators.lpq._Inner",
    "prevalens.aggregators.mixture.aggregator.ScenarioMixture",
    "prevalens.aggregators.regressors.MomentsRidge",
    "prevalens.aggregators.multiclass.MulticlassPACC",
    "prevalens.aggregators.multiclass.MulticlassPCC",
    "prevalens.aggregators.regressors.NormalisedLasso",
    "prevalens.aggregators.regressors.NormalisedRidge",
    "prevalens.aggregators.regressors.PrevalenceForest",
    "prevalens.aggregators.rq.RQ",
    "prevalens.aggregators.sld.SLD",
    "prevalens.aggregators.regressors.BatchedLinearSVR",
    "prevalens.aggregators.regressors.ChainedSVR",
    "prevalens.aggregators.regressors.StackedSVR",
    "prevalens.selection.automatic.Candidate",
    "prevalens.selection.automatic.Choice",
    "prevalens.classifiers.chain.Chain",
    "prevalens.classifiers.chain.ChainEnsemble",
    "prevalens.classifiers.clems.CLEMS",
    "prevalens.classifiers.powerset.LabelSpaceClusters",
    "prevalens.classifiers.knn.MLkNN",
    "prevalens.crossfit.CrossFit",
    "prevalens.crossfit.HoldOut",
    "prevalens.classifiers.logistic.BatchedLogistic",
    "prevalens.solvers.multinomial.MultinomialLogistic",
    "prevalens.classifiers.ensemble.ClassifierEnsemble",
    "prevalens.classifiers.per_label.PerLabel",
    "prevalens.classifiers.powerset.Powerset",
    "prevalens.classifiers.powerset.RAkEL",
    "prevalens.classifiers.stacked.Stacked",
    "prevalens.classifiers.trees.CompactForest",
    "prevalens.classifiers.trees.ExtraTrees",
    "prevalens.classifiers.trees.Forest",
    "prevalens.classifiers.trees.Tree",
    "prevalens.tables.columns.CategoryEncoder",
    "prevalens.tables.columns.DateEncoder",
    "prevalens.tables.columns.NumberEncoder",
    "prevalens.tables.columns.TextEncoder",
    "prevalens.tables.columns.VectorEncoder",
    "prevalens.tables.column_guard.ColumnGuard",
    "prevalens.tables.columns.ColumnPreparation",
    "prevalens.tables.preparation.ArrayPreparation",
    "prevalens.tables.preparation.GivenPreparation",
    "prevalens.tables.text.TextPreparation",
    "prevalens.quantifier.Quantifier",
    "prevalens.scores.Scores",
    "prevalens.uncertainty.bootstrap.Bootstrap",
    "prevalens.uncertainty.errors.ErrorModel",
    "prevalens.uncertainty.goodness_of_fit.Misfit",
    "prevalens.uncertainty.goodness_of_fit._Frame",
    # The nodes of a decision tree; `prevalens.model.file` checks them after loading.
    "sklearn.tree._tree.Tree",
)


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
