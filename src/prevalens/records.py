"""Results with their provenance.

A `Result` has the errors of a method on a dataset, sample by sample; a `Record` is one figure of
it. All tables and charts are made from these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from prevalens.types import Array
from prevalens.validation import InputError


@dataclass(frozen=True)
class Record:
    """One figure: which method, on which data, under which protocol, measured how.

    Attributes
    ----------
    dataset, method, protocol : str
        The names of method and protocol in the catalogue.
    seed : int
        Seed of the random numbers.
    shift : str
        The shift regime (``low``, ``mid``, ``high``), or ``all``.
    metric : str
    value : float
        Mean over the samples of that regime.
    n_samples : int
        How many samples that mean is over.
    version : str
        Version of the package that made it.
    data_sha : str
        Checksum of the data it was made on; empty if unknown.
    """

    dataset: str
    method: str
    protocol: str
    seed: int
    shift: str
    metric: str
    value: float
    n_samples: int
    version: str
    data_sha: str = ""

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Record:
        """A record from its row; a missing or unknown column is an error."""
        known = {field.name for field in fields(cls)}
        missing = sorted(known - set(row) - {"data_sha"})
        if missing:
            raise InputError(f"A record lacks {', '.join(missing)}.")
        unknown = sorted(set(row) - known)
        if unknown:
            raise InputError(f"A record has the unknown column {unknown[0]!r}.")
        return cls(**row)


def to_rows(records: Iterable[Record]) -> list[dict[str, object]]:
    """Turn records into plain rows, for a data frame or a file."""
    return [asdict(record) for record in records]


@dataclass(frozen=True)
class Result:
    """The errors of a method on the samples of a dataset.

    Attributes
    ----------
    dataset, protocol : str
    method : str
        Its name in tables, such as ``BC+BA``.
    expression : str
        The method's name in the catalogue.
    variant : str
        Which of several ways to run the method; empty if there is a single way.
    seed : int
    shift : array of float, shape (n_samples,)
        How far each sample has moved from the training prevalences.
    errors : dict of array of float, shape (n_samples,)
        One error per sample for each measure by name.
    by_label : dict of float
        Mean absolute error of each label.
    version, data_sha : str
        Of the package and the data it was made with.
    usage : dict
        Seconds and bytes, where known.
    validation_loss : float or None
        Loss of the chosen settings on validation samples; None if no settings were searched.
    """

    dataset: str
    protocol: str
    method: str
    expression: str
    seed: int
    shift: Array
    errors: Mapping[str, Array]
    variant: str = ""
    by_label: Mapping[str, float] = field(default_factory=dict)
    version: str = ""
    data_sha: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)
    validation_loss: float | None = None
