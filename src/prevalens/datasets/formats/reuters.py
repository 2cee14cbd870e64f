"""Reuters-21578, Distribution 1.0: SGML files, split as in the ModApte split."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath

import numpy as np

from prevalens.collection import Collection
from prevalens.datasets.archives import members
from prevalens.datasets.dataset import Parts, Times
from prevalens.datasets.files import malformed, read_text

__all__ = ["Story", "parse_stories", "read_reuters", "reuters_parts"]

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
class Story:
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
        NaT where the file's date is noise.
    text : str
        All character data of the TEXT element, entities as they are in the file.
    """

    number: int
    split: str
    indexed: str
    topics: tuple[str, ...]
    time: np.datetime64
    text: str


def read_reuters(path: str | Path) -> list[Story]:
    """Read the stories of one SGML file, plain or compressed, or of an archive or folder of them.

    The files are Latin-1, and not XML: they have character references XML does not allow.
    """
    path = Path(path)
    stories: list[Story] = []
    for name, content in members(path):
        single = name == path.name
        if single or PurePosixPath(name.removesuffix(".gz")).suffix == ".sgm":
            place = path if single else path / name
            stories += parse_stories(content.decode("latin-1"), place)
    return stories


def parse_stories(sgml: str, path: str | Path) -> Iterator[Story]:
    """The stories in the text of one SGML file; `path` is for error sentences."""
    line, counted, end = 1, 0, 0
    for opening in _OPENING.finditer(sgml):
        line += sgml.count("\n", counted, opening.start())
        counted = opening.start()
        end = sgml.find(_CLOSING, opening.end())
        following = sgml.find("<REUTERS ", opening.end())
        if end < 0 or 0 <= following < end:
            raise malformed(path, line, "the story that starts here has no end.")
        yield _story(path, line, opening.group(1), sgml[opening.end() : end])
    if end == 0:
        raise malformed(path, None, "there is no story (<REUTERS ...>) in it.")


def _story(path: str | Path, line: int, attributes: str, inner: str) -> Story:
    values = dict(_ATTRIBUTE.findall(attributes))
    topics, text = _TOPICS.search(inner), _TEXT.search(inner)
    if topics is None or text is None:
        raise malformed(path, line, "the story that starts here lacks <TOPICS> or <TEXT>.")
    if not {"LEWISSPLIT", "TOPICS", "NEWID"} <= values.keys() or not values["NEWID"].isdecimal():
        what = "the story that starts here lacks LEWISSPLIT, TOPICS or NEWID."
        raise malformed(path, line, what)
    return Story(
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
    if match is None or match.group(2) not in _MONTHS:
        return np.datetime64("NaT", "s")
    day, month, year, hour, minute, second = match.groups(default="0")
    date = (int(year), _MONTHS.index(month) + 1, int(day))
    try:
        when = datetime(*date, int(hour), int(minute), int(second))
        return np.datetime64(when, "s")
    except ValueError:
        return np.datetime64("NaT", "s")


def reuters_parts(stories: Sequence[Path], topics: Path | None = None) -> Parts:
    """The ModApte split: 9,603 stories for training, 3,299 for test.

    Parameters
    ----------
    stories : sequence of Path
        The SGML files, or an archive or folder that holds them and the list of topics.
    topics : Path, optional
        The file ``all-topics-strings.lc.txt``.
    """
    found = [story for path in stories for story in read_reuters(path) if story.indexed == "YES"]
    labels = _topic_names(topics, stories)
    train, train_times = _part(found, "TRAIN", labels, stories[0])
    test, test_times = _part(found, "TEST", labels, stories[0])
    return Parts(train, test, train_times, test_times)


def _topic_names(topics: Path | None, stories: Iterable[Path]) -> list[str]:
    if topics is not None:
        return read_text(topics).split()
    for path in stories:
        for name, content in members(path):
            if "all-topics-strings" in name:
                return content.decode("latin-1").split()
    raise malformed(next(iter(stories)), None, "there is no list of topics in it.")


def _part(
    stories: Iterable[Story], split: str, labels: list[str], path: Path
) -> tuple[Collection, Times]:
    chosen = sorted((one for one in stories if one.split == split), key=lambda one: one.number)
    if not chosen:
        raise malformed(path, None, f'no story has LEWISSPLIT="{split}" and TOPICS="YES".')
    collection = Collection(
        [one.text for one in chosen], [set(one.topics) for one in chosen], labels
    )
    return collection, np.array([one.time for one in chosen], dtype="datetime64[s]")
