"""Answers of estimates as files that are read whole, by pages of batches, or label by label.

``answer.json`` is the whole answer. ``index.json`` says where in it the groups and rows of every
batch are, so that a page of 20,000 batches is a few reads and not a document of 70 MB.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from prevalens.service.problems import Problem

#: Batches of a page: a year of days; and its rows.
_MOST_BATCHES, _MOST_ROWS = 366, 20_000
#: Sentences of a page; there are few unless something is very wrong.
_MOST_MESSAGES = 50
#: Parts of the whole answer that grow with the batches.
_LONG = ("groups", "rows", "warnings")

Span = tuple[int, int]


def encoded(content: Any) -> bytes:
    """Content as JSON."""
    return json.dumps(content, ensure_ascii=False).encode()


def write_answer(
    folder: Path,
    answer: Mapping[str, Any],
    order: Sequence[int] | npt.NDArray[np.int64],
    examples: Iterable[Any],
) -> None:
    """Write an answer with its index.

    Parameters
    ----------
    folder : Path
    answer : mapping
        ``rows`` has the labels of the first group, then those of the second, and so on.
    order : sequence of int
        The groups in the order that pages show them in.
    examples : iterable
        For each group its examples, or None.
    """
    head = {name: value for name, value in answer.items() if name not in ("groups", "rows")}
    n_labels, rows = len(answer["labels"]), answer["rows"]
    with (folder / "answer.json").open("wb") as file:
        file.write(encoded(head)[:-1] + b', "groups": [')
        groups = _write_parts(file, map(encoded, answer["groups"]))
        file.write(b'], "rows": [')
        of_groups = (rows[at : at + n_labels] for at in range(0, len(rows), n_labels))
        lines = _write_parts(file, (encoded(own)[1:-1] for own in of_groups))
        file.write(b"]}")
    with (folder / "examples.json").open("wb") as file:
        spans = _write_parts(file, map(encoded, examples))
    index = {
        "head": {name: value for name, value in head.items() if name not in _LONG},
        "names": [group["name"] for group in answer["groups"]],
        "order": list(map(int, order)),
        **{"groups": groups, "rows": lines, "examples": spans},
    }
    (folder / "index.json").write_bytes(encoded(index))


def _write_parts(file: Any, parts: Iterable[bytes]) -> list[Span]:
    """Write parts with commas between them; returns where each begins and ends."""
    spans = []
    for number, part in enumerate(parts):
        start = file.tell() + 2 * bool(number)
        file.write((b", " if number else b"") + part)
        spans.append((start, start + len(part)))
    return spans


@lru_cache(maxsize=4)
def _index(path: str) -> dict[str, Any]:
    return dict(json.loads(Path(path).read_bytes()))


def read_page(folder: Path, page: int | None, find: str) -> bytes:
    """A page of the batches whose names contain a text, as JSON.

    Parameters
    ----------
    folder : Path
    page : int, optional
        From 0. Default: the first, or the last where batches are in the order of time.
    find : str
        Empty for all batches.
    """
    index = _index(str(folder / "index.json"))
    head, names, wanted = index["head"], index["names"], find.casefold()
    found = [place for place in index["order"] if wanted in names[place].casefold()]
    size = max(1, min(_MOST_BATCHES, _MOST_ROWS // len(head["labels"])))
    n_pages = max(1, -(-len(found) // size))
    if page is None:
        page = n_pages - 1 if head["ordered"] else 0
    if page >= n_pages:
        raise Problem("not_found", f"There is no page {page}; the last one is {n_pages - 1}.")
    messages = head["messages"]
    about = {
        **head,
        "messages": messages[:_MOST_MESSAGES],
        "n_messages": len(messages),
        "n_groups": len(names),
        "n_found": len(found),
        **{"page": page, "n_pages": n_pages, "first": page * size},
    }
    shown = found[page * size : (page + 1) * size]
    with (folder / "answer.json").open("rb") as file:
        parts = {
            name: b", ".join(_read(file, index[name][place]) for place in shown)
            for name in ("groups", "rows")
        }
    lists = b"".join(b', "%s": [%s]' % (name.encode(), part) for name, part in parts.items())
    return encoded(about)[:-1] + lists + b"}"


def _read(file: Any, span: Span) -> bytes:
    file.seek(span[0])
    return bytes(file.read(span[1] - span[0]))


def read_examples(folder: Path, group: str, label: str) -> dict[str, Any]:
    """The items of a batch with the highest and lowest scores of a label."""
    index = _index(str(folder / "index.json"))
    if group not in index["names"]:
        raise Problem("not_found", f"There is no batch {group!r}.")
    if label not in index["head"]["labels"]:
        raise Problem("not_found", f"There is no label {label!r}.")
    with (folder / "examples.json").open("rb") as file:
        own = json.loads(_read(file, index["examples"][index["names"].index(group)]))
    if own is None:
        raise Problem(
            "not_found",
            f"No items of {group!r} were kept; of many batches, only the largest or latest have "
            "examples.",
        )
    return dict(next(told for told in own if told["label"] == label))
