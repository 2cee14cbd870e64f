"""Answers in files: the whole is what was written, and pages are parts of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from prevalens.service import answers
from prevalens.service.answers import read_examples, read_page, write_answer
from prevalens.service.problems import Problem


def _answer(n_groups: int, *, ordered: bool = False) -> dict[str, Any]:
    names = [f'Größe {i}, "quoted"' for i in range(n_groups)]
    return {
        "messages": ["one"] * 60,
        "labels": ["a", "b"],
        "ordered": ordered,
        "warnings": [{"text": "long", "batches": names}],
        "groups": [{"name": name, "n_items": i} for i, name in enumerate(names)],
        "rows": [{"group": name, "label": label} for name in names for label in "ab"],
        "command": None,
    }


def _written(folder: Path, n_groups: int, *, ordered: bool = False) -> dict[str, Any]:
    answer = _answer(n_groups, ordered=ordered)
    told = [
        None
        if i % 2
        else [{"label": label, "highest": [{"text": f"{i}{label}"}]} for label in "ab"]
        for i in range(n_groups)
    ]
    order = range(n_groups) if ordered else reversed(range(n_groups))
    write_answer(folder, answer, list(order), told)
    return answer


def test_the_whole_answer_is_what_was_given(tmp_path: Path) -> None:
    answer = _written(tmp_path, 7)
    assert json.loads((tmp_path / "answer.json").read_bytes()) == answer


@pytest.mark.parametrize("ordered", [False, True])
def test_pages_together_are_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ordered: bool
) -> None:
    monkeypatch.setattr(answers, "_MOST_BATCHES", 3)
    answer = _written(tmp_path, 7, ordered=ordered)
    pages = [json.loads(read_page(tmp_path, number, "")) for number in range(3)]
    groups = [group for page in pages for group in page["groups"]]
    assert groups == (answer["groups"] if ordered else answer["groups"][::-1])
    assert [len(page["rows"]) for page in pages] == [6, 6, 2]
    assert [page["first"] for page in pages] == [0, 3, 6]
    assert json.loads(read_page(tmp_path, None, ""))["page"] == (2 if ordered else 0)
    assert "warnings" not in pages[0]
    assert (len(pages[0]["messages"]), pages[0]["n_messages"]) == (50, 60)
    with pytest.raises(Problem, match="the last one is 2"):
        read_page(tmp_path, 3, "")


def test_batches_are_found_by_a_part_of_their_name(tmp_path: Path) -> None:
    _written(tmp_path, 12)
    page = json.loads(read_page(tmp_path, None, "GRÖSSE 1"))
    assert [group["n_items"] for group in page["groups"]] == [11, 10, 1]
    assert (page["n_found"], page["n_groups"]) == (3, 12)
    none = json.loads(read_page(tmp_path, None, "nowhere"))
    assert (none["groups"], none["rows"], none["n_pages"]) == ([], [], 1)


def test_examples_are_read_by_batch_and_label(tmp_path: Path) -> None:
    names = [group["name"] for group in _written(tmp_path, 3)["groups"]]
    assert read_examples(tmp_path, names[2], "b")["highest"] == [{"text": "2b"}]
    for group, label, reason in (
        (names[1], "a", "were kept"),
        ("nowhere", "a", "no batch 'nowhere'"),
        (names[0], "z", "no label 'z'"),
    ):
        with pytest.raises(Problem, match=reason):
            read_examples(tmp_path, group, label)
