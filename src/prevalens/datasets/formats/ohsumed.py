"""Ohsumed: a folder per class, holding a file per document.

A document of several classes lies in several folders under the same name. Either the classes
stand below ``training`` and ``test``, or they stand alone, and the split follows the reference
implementation of Moreo et al.: class after class, 70 % of the documents that are not yet
assigned go to training, the others to test. With all 34,389 documents this gives the paper's
24,061 and 10,328; which documents they are depends on the order of the folder listing there, and
is the order of the names here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from prevalens.collection import Collection
from prevalens.datasets.archives import members
from prevalens.datasets.dataset import Parts
from prevalens.datasets.files import malformed
from prevalens.validation import InputError

__all__ = ["ohsumed_parts", "read_ohsumed"]

_TRAIN_PERCENT = 70
_PARTS = {"training": "train", "train": "train", "test": "test"}


@dataclass
class _Documents:
    """Documents of one part: their texts and classes, by name."""

    texts: dict[str, str] = field(default_factory=dict)
    classes: dict[str, set[str]] = field(default_factory=dict)

    def add(self, name: str, class_name: str, text: str) -> None:
        self.texts.setdefault(name, text)
        self.classes.setdefault(name, set()).add(class_name)

    def collection(self, names: Iterable[str], labels: Iterable[str]) -> Collection:
        names = list(names)
        return Collection(
            [self.texts[name] for name in names], [self.classes[name] for name in names], labels
        )

    def labels(self) -> set[str]:
        return set().union(*self.classes.values())


def read_ohsumed(path: str | Path) -> Collection:
    """Read a folder, or a tar archive, with one folder per class and one file per document.

    Documents come in the order of their names, labels too. Each file may be compressed.
    """
    documents = _Documents()
    for part in _read(Path(path)).values():
        for name, text in part.texts.items():
            for class_name in part.classes[name]:
                documents.add(name, class_name, text)
    return documents.collection(sorted(documents.texts), sorted(documents.labels()))


def ohsumed_parts(documents: Path, test: Path | None = None) -> Parts:
    """Training and test documents.

    Parameters
    ----------
    documents : Path
        A folder or archive with all documents, or with those for training.
    test : Path, optional
        The folder with the documents for test.
    """
    found = _read(documents)
    if test is not None:
        found = {"train": found.get("", _Documents()), "test": _read(test).get("", _Documents())}
    if not {"train", "test"} <= found.keys():
        return _split(documents, found.get("", _Documents()))
    labels = sorted(found["train"].labels() | found["test"].labels())
    train, test_ = (
        found[part].collection(sorted(found[part].texts), labels) for part in ("train", "test")
    )
    return Parts(train, test_)


def _read(path: Path) -> dict[str, _Documents]:
    """Documents by part; the part is "" where no folder tells it."""
    found: dict[str, _Documents] = {}
    for name, content in members(path):
        place = PurePosixPath(name)
        if len(place.parts) < 2:
            continue
        class_name = place.parts[-2]
        part = _PARTS.get(place.parts[-3].lower(), "") if len(place.parts) > 2 else ""
        document = place.name.removesuffix(".gz")
        found.setdefault(part, _Documents()).add(document, class_name, content.decode("latin-1"))
    if not found:
        raise InputError(f"There is no class folder with documents in {path}.")
    return found


def _split(path: Path, documents: _Documents) -> Parts:
    train: list[str] = []
    test: list[str] = []
    free = set(documents.texts)
    labels = sorted(documents.labels())
    for label in labels:
        chosen = sorted(name for name in free if label in documents.classes[name])
        free.difference_update(chosen)
        cut = len(chosen) * _TRAIN_PERCENT // 100
        train += chosen[:cut]
        test += chosen[cut:]
    if not train or not test:
        what = f"{len(documents.texts)} documents are too few for a training and a test part."
        raise malformed(path, None, what)
    return Parts(documents.collection(train, labels), documents.collection(test, labels))
