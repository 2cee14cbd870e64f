"""ARFF, dense and sparse: what Weka, Mulan and MEKA write.

The parser is our own because the ones at hand are slow, keep the backslashes of quoted names, or
cannot read sparse rows. Values become numbers as they are read:

* a nominal attribute whose values are all numbers keeps them (``{2,10,1}`` stays 2, 10, 1);
* yes/no, true/false, y/n and t/f become 1 and 0, in whichever order they are declared;
* other nominal values become their position in the declaration.

In a sparse row an omitted entry is 0, or the first declared value of a nominal attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from prevalens.collection import Collection
from prevalens.datasets.files import about, malformed, read_text
from prevalens.datasets.formats.arff_header import Attribute, is_content, parse_header
from prevalens.datasets.formats.arff_rows import Body, parse_rows
from prevalens.validation import FormatError

__all__ = ["Arff", "parse_arff"]


@dataclass(frozen=True)
class Arff:
    """A parsed file.

    Attributes
    ----------
    path : Path
    relation : str
    attributes : tuple of Attribute
    values : float array or CSR matrix, shape (n_items, n_attributes)
        Columns of string attributes hold zeros.
    texts : dict of int to list of str
        The values of each string attribute, by its position.
    """

    path: Path
    relation: str
    attributes: tuple[Attribute, ...]
    values: Any
    texts: dict[int, list[str]]

    def collection(self, label_positions: Sequence[int]) -> Collection:
        """Items whose labels are the attributes at the given positions, in that order."""
        Y = self._label_matrix(list(label_positions))
        labels = [self.attributes[j].name for j in label_positions]
        chosen = set(label_positions)
        rest = [j for j in range(len(self.attributes)) if j not in chosen]
        if not rest:
            raise malformed(self.path, None, "every attribute is a label, there are no features.")
        with about(self.path):
            if any(j in self.texts for j in rest):
                return Collection(self._only_texts(rest), Y, labels)
            features = [self.attributes[j].name for j in rest]
            return Collection(self.values[:, rest], Y, labels, features=features)

    def _label_matrix(self, positions: list[int]) -> npt.NDArray[np.int8]:
        for j in positions:
            if j in self.texts:
                raise self._bad_label(j, "holds texts")
        columns = self.values[:, positions]
        found = columns.data if sp.issparse(columns) else columns
        bad = (found != 0) & (found != 1)
        if bad.any():
            dense = columns.toarray() if sp.issparse(columns) else columns
            row, column = np.argwhere((dense != 0) & (dense != 1))[0]
            raise self._bad_label(positions[column], f"has the value {dense[row, column]:g}")
        Y = columns.astype(np.int8)
        return np.asarray(Y.toarray() if sp.issparse(Y) else Y)

    def _bad_label(self, position: int, why: str) -> FormatError:
        name = self.attributes[position].name
        return malformed(self.path, None, f"the label {name!r} {why}; labels must be 0 or 1.")

    def _only_texts(self, positions: list[int]) -> list[str]:
        if len(positions) == 1:
            return self.texts[positions[0]]
        name = self.attributes[next(iter(self.texts))].name
        what = (
            f"the string attribute {name!r} stands among {len(positions)} features; texts are "
            "read only where they are the single feature."
        )
        raise malformed(self.path, None, what)


def parse_arff(path: str | Path) -> Arff:
    """Read an ARFF file, plain or compressed.

    Notes
    -----
    Fails with a FormatError that names the line on anything that is not ARFF, on missing
    values, and on date and relational attributes. Time and memory are linear in the file.
    """
    path = Path(path)
    # Not splitlines: it also cuts at characters that may stand inside a quoted text.
    lines = read_text(path).split("\n")
    relation, attributes, start = parse_header(path, lines)
    numbers = [i for i in range(start, len(lines)) if is_content(lines[i])]
    if not numbers:
        raise malformed(path, None, "there are no items after @data.")
    rows = [lines[i].strip() for i in numbers]
    values, texts = parse_rows(Body(path, attributes, rows, [i + 1 for i in numbers]))
    return Arff(path, relation, attributes, values, texts)
