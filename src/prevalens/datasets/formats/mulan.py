"""Mulan: an ARFF file, and an XML file that names the attributes which are labels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

from prevalens.collection import Collection
from prevalens.datasets.dataset import DatasetParts
from prevalens.datasets.formats.arff import Arff, parse_arff
from prevalens.files import damaged, read_bytes
from prevalens.validation import InputError, check_label_names


def read_mulan(path: str | Path, labels: str | Path | Iterable[str]) -> Collection:
    """Read a Mulan dataset.

    Parameters
    ----------
    path : str or Path
        The ARFF file, plain or compressed.
    labels : str, Path or iterable of str
        The XML file with the label names, or the names themselves. Labels are matched by
        name, whatever their position in the ARFF file, and have the order given here.

    Notes
    -----
    Fails with a FormatError if a label has no attribute of its name.
    """
    names = label_names(labels) if isinstance(labels, (str, Path)) else list(labels)
    return by_names(parse_arff(path), names)


def by_names(arff: Arff, labels: Iterable[str]) -> Collection:
    """Split attributes into features and the labels of the given names."""
    names = list(labels)
    check_label_names(names, len(names))
    position = {attribute.name: j for j, attribute in enumerate(arff.attributes)}
    for name in names:
        if name not in position:
            raise damaged(arff.path, f"there is no attribute for the label {name!r}.")
    if not names:
        raise InputError(f"No labels are named for {arff.path}.")
    return arff.collection([position[name] for name in names])


def label_names(path: str | Path) -> list[str]:
    """The label names in Mulan's XML file, in its order; nested labels after their parents."""
    path = Path(path)
    try:
        root = ElementTree.fromstring(read_bytes(path))
    # Unknown encodings raise ValueError or LookupError.
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        line = error.position[0] if isinstance(error, ElementTree.ParseError) else None
        raise damaged(path, f"this is not well-formed XML ({error}).", line=line) from error
    labels = [element for element in root.iter() if str(element.tag).rpartition("}")[2] == "label"]
    names = [element.get("name", "") for element in labels]
    if not names or not all(name.strip() for name in names):
        raise damaged(path, "expected <label name=...> for every label.")
    return names


def mulan_parts(train: Path, test: Path, labels: Path) -> DatasetParts:
    """Training and test items of a dataset in Mulan's format."""
    names = label_names(labels)
    return DatasetParts(read_mulan(train, names), read_mulan(test, names))


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
        raise damaged(arff.path, "the relation name has no option -C n (labels first or last).")
    if not 0 < abs(count) < n:
        raise damaged(arff.path, f"the option -C {count} does not fit {n} attributes.")
    return arff.collection(range(count) if count > 0 else range(n + count, n))
