"""Text collections: Ohsumed, Reuters-21578 and RCV1-v2.

Ohsumed has a folder per class with a file per document; a document of several classes is in several
folders under the same name. The class folders are either below ``training`` and ``test``, or there
is one set of them, and the split follows the reference implementation of Moreo et al.: class after
class, 70 % of the documents that are not yet assigned go to training, the others to test. With all
34,389 documents this gives the paper's 24,061 and 10,328. In the paper the selected documents
depend on the order of a folder listing, here on the order of their names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import fetch_rcv1

from prevalens.collection import Collection
from prevalens.datasets.dataset import DatasetParts
from prevalens.datasets.fetch import DownloadError
from prevalens.files import damaged, members, read_text
from prevalens.validation import InputError

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

    def labels(self) -> list[str]:
        return sorted(set().union(*self.classes.values()))


def read_ohsumed(path: str | Path) -> Collection:
    """Read a folder, or a tar archive, with one folder per class and one file per document.

    Documents and labels are sorted by name. Each file may be compressed.
    """
    documents = _Documents()
    for part in _read(Path(path)).values():
        for name, text in part.texts.items():
            for class_name in part.classes[name]:
                documents.add(name, class_name, text)
    return documents.collection(sorted(documents.texts), documents.labels())


def ohsumed_parts(documents: Path, test: Path | None = None) -> DatasetParts:
    """Training and test documents.

    Parameters
    ----------
    documents : Path
        A folder or archive with all documents, or with those for training.
    test : Path, optional
        The folder with the documents for test.
    """
    parts = _read(documents)
    if test is not None:
        parts = {"train": parts.get("", _Documents()), "test": _read(test).get("", _Documents())}
    if not {"train", "test"} <= parts.keys():
        return _split(documents, parts.get("", _Documents()))
    labels = sorted({*parts["train"].labels(), *parts["test"].labels()})
    train_items, test_items = (
        parts[part].collection(sorted(parts[part].texts), labels) for part in ("train", "test")
    )
    return DatasetParts(train_items, test_items)


def _read(path: Path) -> dict[str, _Documents]:
    """Documents by part; the part is "" if no folder names it."""
    parts: dict[str, _Documents] = {}
    for name, content in members(path):
        place = PurePosixPath(name)
        if len(place.parts) < 2:
            continue
        class_name = place.parts[-2]
        part = _PARTS.get(place.parts[-3].lower(), "") if len(place.parts) > 2 else ""
        document = place.name.removesuffix(".gz")
        parts.setdefault(part, _Documents()).add(document, class_name, content.decode("latin-1"))
    if not parts:
        raise InputError(f"There is no class folder with documents in {path}.")
    return parts


def _split(path: Path, documents: _Documents) -> DatasetParts:
    train: list[str] = []
    test: list[str] = []
    free = set(documents.texts)
    labels = documents.labels()
    for label in labels:
        chosen = sorted(name for name in free if label in documents.classes[name])
        free.difference_update(chosen)
        cut = len(chosen) * _TRAIN_PERCENT // 100
        train += chosen[:cut]
        test += chosen[cut:]
    if not train or not test:
        what = f"{len(documents.texts)} documents are too few for a training and a test part."
        raise damaged(path, what)
    return DatasetParts(documents.collection(train, labels), documents.collection(test, labels))


_OPENING = re.compile(r"<REUTERS\s([^>]*)>")
_ATTRIBUTE = re.compile(r'([A-Z]+)="([^"]*)"')
_TOPICS = re.compile(r"<TOPICS>(.*?)</TOPICS>", re.DOTALL)
_TOPIC = re.compile(r"<D>(.*?)</D>", re.DOTALL)
_TEXT = re.compile(r"<TEXT[^>]*>(.*)</TEXT>", re.DOTALL)
_TAG = re.compile(r"</?(?:TITLE|AUTHOR|DATELINE|BODY)>")
_DATE = re.compile(r"<DATE>\s*(\d{1,2})-([A-Z]{3})-(\d{4})(?:\s+(\d\d):(\d\d):(\d\d)\b)?")
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_CLOSING = "</REUTERS>"


@dataclass(frozen=True)
class ReutersDocument:
    """A newswire story.

    Attributes
    ----------
    number : int
        NEWID, in chronological order.
    split : {"TRAIN", "TEST", "NOT-USED"}
        LEWISSPLIT.
    indexed : str
        The attribute TOPICS: "YES" if the indexers considered topics, else "NO" or "BYPASS".
    topics : tuple of str
    time : datetime64[s]
        NaT if the date in the file cannot be read.
    text : str
        All character data of the TEXT element, entities as they are in the file.
    """

    number: int
    split: str
    indexed: str
    topics: tuple[str, ...]
    time: np.datetime64
    text: str


def read_reuters(path: str | Path) -> list[ReutersDocument]:
    """Read the stories of one SGML file, plain or compressed, or of an archive or folder of them.

    The files are Latin-1, and not XML: they have character references XML does not allow.
    """
    path = Path(path)
    stories: list[ReutersDocument] = []
    for name, content in members(path):
        single = name == path.name
        if single or PurePosixPath(name.removesuffix(".gz")).suffix == ".sgm":
            place = path if single else path / name
            stories += parse_stories(content.decode("latin-1"), place)
    return stories


def parse_stories(sgml: str, path: str | Path) -> Iterator[ReutersDocument]:
    """The stories in the text of one SGML file; `path` is for error sentences."""
    line, counted, end = 1, 0, 0
    for opening in _OPENING.finditer(sgml):
        line += sgml.count("\n", counted, opening.start())
        counted = opening.start()
        end = sgml.find(_CLOSING, opening.end())
        following = sgml.find("<REUTERS ", opening.end())
        if end < 0 or 0 <= following < end:
            raise damaged(path, "the story that starts here has no end.", line=line)
        yield _story(path, line, opening.group(1), sgml[opening.end() : end])
    if end == 0:
        raise damaged(path, "there is no story (<REUTERS ...>) in it.")


def _story(path: str | Path, line: int, attributes: str, inner: str) -> ReutersDocument:
    values = dict(_ATTRIBUTE.findall(attributes))
    topics, text = _TOPICS.search(inner), _TEXT.search(inner)
    if topics is None or text is None:
        raise damaged(path, "the story that starts here lacks <TOPICS> or <TEXT>.", line=line)
    if not {"LEWISSPLIT", "TOPICS", "NEWID"} <= values.keys() or not values["NEWID"].isdecimal():
        what = "the story that starts here lacks LEWISSPLIT, TOPICS or NEWID."
        raise damaged(path, what, line=line)
    return ReutersDocument(
        number=int(values["NEWID"]),
        split=values["LEWISSPLIT"],
        indexed=values["TOPICS"],
        # Two stories name a topic twice.
        topics=tuple(dict.fromkeys(_TOPIC.findall(topics.group(1)))),
        time=_time(inner),
        text=_TAG.sub(" ", text.group(1)),
    )


def _time(inner: str) -> np.datetime64:
    match = _DATE.search(inner)
    groups = match.groups(default="00") if match else ("00",) * 6
    day, name, year, hour, minute, second = groups
    month = 1 + _MONTHS.index(name) if name in _MONTHS else 0
    try:
        return np.datetime64(f"{year}-{month:02}-{int(day):02}T{hour}:{minute}:{second}", "s")
    except ValueError:
        return np.datetime64("NaT", "s")


def reuters_parts(stories: Sequence[Path], topics: Path | None = None) -> DatasetParts:
    """The ModApte split: 9,603 stories for training, 3,299 for test.

    Parameters
    ----------
    stories : sequence of Path
        The SGML files, or an archive or folder that holds them and the list of topics.
    topics : Path, optional
        The file ``all-topics-strings.lc.txt``.
    """
    indexed = [story for path in stories for story in read_reuters(path) if story.indexed == "YES"]
    labels = _topic_names(topics, stories)
    train, test = (_part(indexed, split, labels, stories[0]) for split in ("TRAIN", "TEST"))
    return DatasetParts(train, test)


def _topic_names(topics: Path | None, stories: Iterable[Path]) -> list[str]:
    if topics is not None:
        return read_text(topics).split()
    for path in stories:
        for name, content in members(path):
            if "all-topics-strings" in name:
                return content.decode("latin-1").split()
    raise damaged(next(iter(stories)), "there is no list of topics in it.")


def _part(
    stories: Iterable[ReutersDocument], split: str, labels: list[str], path: Path
) -> Collection:
    chosen = sorted(
        (story for story in stories if story.split == split), key=lambda story: story.number
    )
    if not chosen:
        raise damaged(path, f'no story has LEWISSPLIT="{split}" and TOPICS="YES".')
    topics = [set(story.topics) for story in chosen]
    times = np.array([story.time for story in chosen], dtype="datetime64[s]")
    return Collection([story.text for story in chosen], topics, labels, times=times)


def download_rcv1(folder: Path) -> None:
    """Let scikit-learn download RCV1-v2 (some 650 MB) into ``folder/RCV1``."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        fetch_rcv1(data_home=folder, download_if_missing=True)
    except (OSError, EOFError) as error:
        raise DownloadError(f"scikit-learn could not download it: {error}.") from error


def rcv1_parts(pickles: Sequence[Path], *, n_train: int) -> DatasetParts:
    """The chronological split of Lewis et al. (2004): the first 23,149 are for training.

    Parameters
    ----------
    pickles : sequence of Path
        scikit-learn's files, all in one folder ``RCV1``.
    n_train : int
    """
    folder = pickles[0].parent.parent
    try:
        corpus = fetch_rcv1(data_home=folder, subset="all", download_if_missing=False)
    # The cached files are pickles: a damaged one fails in its own ways.
    except Exception as error:
        what = f"scikit-learn's files of RCV1 cannot be read ({error}); delete the folder."
        raise damaged(folder / "RCV1", what) from error
    if corpus.data.shape[0] <= n_train:
        what = f"there are {corpus.data.shape[0]} documents, {n_train} are for training."
        raise damaged(folder / "RCV1", what)
    whole = Collection(sp.csr_matrix(corpus.data), corpus.target, corpus.target_names)
    return DatasetParts(whole.take(slice(None, n_train)), whole.take(slice(n_train, None)))
