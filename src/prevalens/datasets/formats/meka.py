"""MEKA: an ARFF file whose relation name says how many attributes are labels."""

from __future__ import annotations

import re
from pathlib import Path

from prevalens.collection import Collection
from prevalens.datasets.files import malformed
from prevalens.datasets.formats.arff import Arff, parse_arff

__all__ = ["label_count", "read_meka"]

_OPTION = re.compile(r"(?:^|[\s:])-[cC]\s+(-?\d{1,9})\b")


def read_meka(path: str | Path) -> Collection:
    """Read a MEKA dataset.

    The relation name ends in options, as in ``'Enron: -C 53'``: with ``-C n`` the first n
    attributes are labels, with ``-C -n`` the last n.

    Notes
    -----
    Fails with a FormatError if the relation name has no such option.
    """
    return by_count(parse_arff(path))


def label_count(relation: str) -> int | None:
    """The number after ``-C`` in a relation name, or None."""
    match = _OPTION.search(relation)
    return int(match.group(1)) if match else None


def by_count(arff: Arff) -> Collection:
    """Split attributes into features and labels by the option in the relation name."""
    count = label_count(arff.relation)
    n = len(arff.attributes)
    if count is None:
        raise malformed(
            arff.path, None, "the relation name has no option -C n (labels first or last)."
        )
    if not 0 < abs(count) < n:
        raise malformed(arff.path, None, f"the option -C {count} does not fit {n} attributes.")
    return arff.collection(range(count) if count > 0 else range(n + count, n))
