from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.datasets.formats.corpora import parse_stories, read_reuters, reuters_parts
from prevalens.validation import FormatError


def place(folder: Path, files: dict[str, bytes], how: str) -> tuple[list[Path], Path | None]:
    folder.mkdir(exist_ok=True)
    if how == "archive":
        path = folder / "reuters21578.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name, content in files.items():
                info = tarfile.TarInfo(name)
                info.size = len(content)
                archive.addfile(info, io.BytesIO(content))
        return [path], None
    suffix = ".gz" if how == "packed" else ""
    for name, content in files.items():
        (folder / f"{name}{suffix}").write_bytes(gzip.compress(content) if suffix else content)
    stories = [folder / f"{name}{suffix}" for name in sorted(files) if name.endswith(".sgm")]
    return stories, folder / f"all-topics-strings.lc.txt{suffix}"


@pytest.mark.parametrize("how", ["plain", "packed", "archive"])
def test_modapte_split(tmp_path: Path, reuters_files: dict[str, bytes], how: str) -> None:
    parts = reuters_parts(*place(tmp_path, reuters_files, how))
    assert parts.train.labels == ("acq", "money-fx", "wheat")
    assert (parts.train.n_items, parts.test.n_items) == (20, 2)
    assert parts.train.Y.sum(axis=0).tolist() == [0, 10, 10]
    # A topic listed twice counts once; a story without topics stays.
    assert parts.test.Y.tolist() == [[0, 0, 1], [0, 0, 0]]
    assert "café" in parts.test.X[1]
    assert parts.train.times is not None
    assert parts.train.times[0] == np.datetime64("1987-02-26T15:01:01")
    assert (np.diff(parts.train.times) > np.timedelta64(0)).all()


def test_a_folder_reads_like_its_files(tmp_path: Path, reuters_files: dict[str, bytes]) -> None:
    stories, _ = place(tmp_path / "all", reuters_files, "plain")
    whole = read_reuters(tmp_path / "all")
    assert whole == [story for path in stories for story in read_reuters(path)]
    assert [story.number for story in whole] == list(range(1, 25))


def test_text_is_all_character_data(story: Callable[..., str]) -> None:
    (found,) = parse_stories(story(7, "TRAIN", ["a", "b"], "Rain &lt;Corp> fell"), "f")
    assert found.topics == ("a", "b")
    assert found.text.split() == ["&#2;", "STORY", "7", "Rain", "&lt;Corp>", "fell", "&#3;"]
    assert "usa" not in found.text


@pytest.mark.parametrize(
    ("date", "expected"),
    [
        ("26-FEB-1987 15:01:01.79", "1987-02-26T15:01:01"),
        (" 3-MAR-1987  09:15:05.40", "1987-03-03T09:15:05"),
        ("27-MAR-1987 00:02:59.13&#5;&#5;&#5;RM", "1987-03-27T00:02:59"),
        ("31-MAR-1987 605:12:19.12", "1987-03-31T00:00:00"),
        ("31-FEB-1987 05:12:19.12", "NaT"),
        ("31-XXX-1987 05:12:19.12", "NaT"),
        ("noise", "NaT"),
    ],
)
def test_dates(story: Callable[..., str], date: str, expected: str) -> None:
    sgml = story(1, "TRAIN", [], "x").replace("26-FEB-1987 15:01:01.79", date)
    (found,) = parse_stories(sgml, "f")
    assert str(found.time) == expected


@given(
    topics=st.lists(st.text(alphabet="abc-", min_size=1), unique=True),
    text=st.text(alphabet=st.characters(max_codepoint=255, exclude_characters="<>")),
    number=st.integers(0, 10**6),
)
def test_round_trip(story: Callable[..., str], topics: list[str], text: str, number: int) -> None:
    (found,) = parse_stories(story(number, "TEST", topics, text), "f")
    assert found.topics == tuple(topics)
    assert text in found.text
    assert (found.number, found.split, found.indexed) == (number, "TEST", "YES")


def test_bad_files_are_one_sentence(story: Callable[..., str]) -> None:
    good = story(1, "TRAIN", ["a"], "x")
    cases = {
        "no story": "nothing here",
        r"line 1: the story that starts here has no end": good.replace("</REUTERS>", ""),
        r"line 9: the story that starts here has no end": good + good.replace("</REUTERS>", ""),
        r"lacks <TOPICS> or <TEXT>": good.replace("</TEXT>", ""),
        r"lacks LEWISSPLIT": good.replace("LEWISSPLIT", "SPLIT"),
        r"lacks LEWISSPLIT, TOPICS or NEWID": good.replace('NEWID="1"', 'NEWID="x"'),
    }
    n_lines = good.count("\n")
    for words, sgml in cases.items():
        with pytest.raises(FormatError, match=words.replace("line 9", f"line {n_lines + 1}")):
            list(parse_stories(sgml, "f.sgm"))


def test_missing_parts(tmp_path: Path, reuters_files: dict[str, bytes]) -> None:
    stories, topics = place(tmp_path / "all", reuters_files, "plain")
    with pytest.raises(FormatError, match='no story has LEWISSPLIT="TEST"'):
        reuters_parts(stories[:1], topics)
    del reuters_files["all-topics-strings.lc.txt"]
    with pytest.raises(FormatError, match="there is no list of topics"):
        reuters_parts(*place(tmp_path / "archive", reuters_files, "archive"))
