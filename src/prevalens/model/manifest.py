"""The manifest of a model file: what a model is, readable without its fitted objects.

This module imports no estimator, so that `prevalens inspect` answers at once.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np

from prevalens.errors import FormatError, InputError
from prevalens.tables.kinds import ColumnUse
from prevalens.types import Floats
from prevalens.validation import check_label_names

#: Raised whenever files of another number cannot be read any more, in either direction.
FORMAT_VERSION = 6
_FORMAT = "prevalens model"
#: The member of the archive that holds the manifest.
MANIFEST = "manifest.json"
#: An archive that unpacks to more than this many times its size is taken for an attack.
MOST_EXPANSION = 100

#: Damaged archives fail in several ways, unreadable encodings and lengths among them.
_DAMAGE = (zipfile.BadZipFile, zlib.error, RuntimeError, ValueError, EOFError, OSError)


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
        The quantifier's name, and its group, such as BC+MLA.
    preparation : str
        How items become numbers, for people.
    kind : str
        Kind of the items: "text", "columns", "array", "given" or "scores".
    seconds : float
        Duration of the training.
    warnings : tuple of str
        Warnings of the training.
    counted : tuple of float
        Share of the answers of labellers for each label, if the items are scores; else empty.
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
    counted: tuple[float, ...] = ()

    @property
    def prevalence(self) -> Floats:
        """Share of training items that have each label."""
        return np.asarray(self.positives, dtype=np.float64) / self.n_items

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> TrainingSummary:
        """The summary that `to_dict` has turned into a dict."""
        try:
            # Models of texts and features have no counts of labellers.
            known = {f.name: values[f.name] for f in fields(cls) if f.name != "counted"}
        except KeyError as error:
            raise FormatError(f"the training summary lacks {error}.") from None
        known["counted"] = values.get("counted", ())
        for name in ("positives", "warnings", "counted"):
            known[name] = tuple(known[name])
        return cls(**known)


@dataclass(frozen=True)
class DriftSummary:
    """How far items may drift between training and batch, as far as it is known.

    Attributes
    ----------
    deviation : float or None
        Standard deviation of the drift that intervals allow for, on the scale of
        ``arcsin(sqrt(p))``; after a backtest, at its mean horizon. None without intervals.
    source : {"default", "given", "groups", "backtest"}
        Where the deviation comes from.
    column : mapping or None
        The fields of the `TimeColumn` that the times came from, if any.
    first, last : str
        First and last time of the training items; empty without times.
    horizon : str
        Mean time ahead of the batches of the backtest, for people; empty without a backtest.
    backtest : str
        What the backtest found, in sentences; empty without a backtest.
    """

    deviation: float | None = None
    source: str = "default"
    column: Mapping[str, Any] | None = None
    first: str = ""
    last: str = ""
    horizon: str = ""
    backtest: str = ""

    @property
    def allowance(self) -> str:
        """What intervals allow for, in one sentence; empty without intervals."""
        if self.deviation is None:
            return ""
        if not self.deviation:
            return (
                "Intervals allow for no drift: they hold only if items with the same labels look "
                "as they did in training."
            )
        sizes = ", ".join(
            f"{200 * self.deviation * np.sqrt(share * (1 - share)):.1f} points for a label of "
            f"{100 * share:.0f} %"
            for share in (0.1, 0.5)
        )
        origin = _SOURCES[self.source].format(horizon=self.horizon)
        return f"Intervals allow for drift: {sizes} (standard deviation, {origin})."

    @property
    def sentences(self) -> str:
        """The findings of the backtest, and what intervals allow for."""
        return " ".join(filter(None, (self.backtest, self.allowance)))

    def to_dict(self) -> dict[str, Any]:
        """The summary for JSON, with the sentence on the allowance."""
        return {**asdict(self), "allowance": self.allowance}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> DriftSummary:
        """The summary that `to_dict` has turned into a dict."""
        known = {field.name: values[field.name] for field in fields(cls)}
        if known["source"] not in _SOURCES:
            raise ValueError(f"unknown source of drift {known['source']!r}")
        if known["deviation"] is not None and not known["deviation"] >= 0:
            raise ValueError(f"a drift of {known['deviation']!r}")
        if known["column"] is not None and set(known["column"]) != {"name", "form", "numbers"}:
            raise ValueError(f"a time column of {known['column']!r}")
        return cls(**known)


#: Where an allowance for drift comes from, for people.
_SOURCES = {
    "default": "the default; times or groups of the training items would measure it",
    "given": "as given",
    "groups": "measured between groups",
    "backtest": "measured in the backtest, {horizon} ahead",
}


@dataclass(frozen=True)
class Description:
    """What a model is, apart from its fitted objects.

    Attributes
    ----------
    labels : tuple of str
    summary : TrainingSummary
    provenance : mapping
        Versions, time, and where the training data came from.
    columns : tuple of str or None
        The columns of a table that the model reads; None if it was not trained on a table.
    drift : DriftSummary
    column_uses : tuple of ColumnUse
        What each of the columns became; empty without columns.
    label_errors : str
        What is known of errors in the training labels, in sentences; empty if nothing is.
    """

    labels: tuple[str, ...]
    summary: TrainingSummary
    provenance: Mapping[str, Any] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    drift: DriftSummary = field(default_factory=DriftSummary)
    column_uses: tuple[ColumnUse, ...] = ()
    label_errors: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The description for JSON; it includes the training prevalence of each label."""
        return {
            "labels": list(self.labels),
            "prevalence": dict(zip(self.labels, self.summary.prevalence.tolist(), strict=True)),
            "columns": None if self.columns is None else list(self.columns),
            "column_uses": [asdict(use) for use in self.column_uses],
            "summary": self.summary.to_dict(),
            "drift": self.drift.to_dict(),
            "label_errors": self.label_errors,
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_manifest(cls, path: str | Path, manifest: Mapping[str, Any]) -> Description:
        """The description in the manifest of the model file `path`."""
        try:
            columns = manifest["columns"]
            return cls(
                labels=check_label_names(manifest["labels"], len(manifest["labels"])),
                summary=TrainingSummary.from_dict(manifest["summary"]),
                provenance=dict(manifest["provenance"]),
                columns=None if columns is None else tuple(columns),
                drift=DriftSummary.from_dict(manifest["drift"]),
                column_uses=tuple(map(_column_use, manifest["column_uses"])),
                label_errors=str(manifest.get("label_errors", "")),
            )
        except (LookupError, TypeError, ValueError) as error:
            raise FormatError(f"{path}: its description is damaged ({error}).") from None


def _column_use(values: Mapping[str, Any]) -> ColumnUse:
    use = ColumnUse(**values)
    if not all(isinstance(value, str) for value in asdict(use).values()):
        raise ValueError(f"a column of {values!r}")
    return use


def manifest_text(content: Mapping[str, Any]) -> str:
    """The manifest with this content as JSON, with the format and its number."""
    page = {"format": _FORMAT, "version": FORMAT_VERSION, **content}
    return json.dumps(page, indent=1, ensure_ascii=False)


def read_manifest(path: str | Path) -> dict[str, Any]:
    """The description of a model; the fitted objects stay in the file."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            if file.read(2) != b"PK":
                raise FormatError(f"{path}: this is no model file; `prevalens fit` writes one.")
            with zipfile.ZipFile(file) as archive:
                _check_archive(path, archive)
                page = json.loads(archive.read(MANIFEST))
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
    if MANIFEST not in archive.namelist():
        raise FormatError(
            f"{path}: this is no model file; it lacks {MANIFEST}. `prevalens fit` writes one."
        )
    if sum(member.file_size for member in members) > MOST_EXPANSION * path.stat().st_size:
        raise FormatError(
            f"{path}: the model in it claims to unpack to more than {MOST_EXPANSION} times the "
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
