"""Record: one result with its birth certificate.

Everything that is ever put into a table is a list of these; pages and tables only read them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from prevalens.validation import InputError

__all__ = ["Record", "to_rows"]


@dataclass(frozen=True)
class Record:
    """One figure: which method, on which data, under which protocol, measured how.

    Attributes
    ----------
    dataset, method, protocol : str
        The method and the protocol in the words of the catalogue.
    seed : int
        What the randomness came from.
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
        """Read one back; a missing or unknown column gets a sentence."""
        known = {field.name for field in fields(cls)}
        missing = sorted(known - set(row) - {"data_sha"})
        if missing:
            raise InputError(f"A record lacks {', '.join(missing)}.")
        unknown = sorted(set(row) - known)
        if unknown:
            raise InputError(f"A record has the unknown column {unknown[0]!r}.")
        return cls(**row)


def to_rows(records: Iterable[Record]) -> list[dict[str, Any]]:
    """Turn records into plain rows, for a data frame or a file."""
    return [asdict(record) for record in records]
