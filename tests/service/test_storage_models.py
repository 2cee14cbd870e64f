from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prevalens.errors import InputError
from prevalens.service.problems import Problem
from prevalens.service.storage import ModelEntry, Models, model_files, slug


def _entry(name: str, origin: str = "trained") -> ModelEntry:
    return ModelEntry(name, Path("/nowhere"), origin, {"labels": ["a"]})


def test_names_are_kept_apart() -> None:
    models = Models()
    names = [models.add(_entry(name)).name for name in ("a", "a", "a b", "a-2", "")]
    assert names == ["a", "a-2", "a-b", "a-2-2", "model"]
    assert all(name in models for name in names)
    assert models.get("a-b").shown() == {
        "id": "a-b",
        "name": "a-b",
        "origin": "trained",
        "labels": ["a"],
    }


def test_only_models_trained_here_can_be_removed() -> None:
    models = Models()
    models.add(_entry("given", "given"))
    models.add(_entry("own"))
    assert [entry.name for entry in models.trained()] == ["own"]
    models.remove("own")
    with pytest.raises(Problem, match="this one was given"):
        models.remove("given")
    with pytest.raises(Problem, match="no model 'own'"):
        models.get("own")


def test_a_removed_model_comes_back_until_it_is_forgotten() -> None:
    models = Models()
    first = models.add(_entry("own"))
    assert models.remove("own") is first
    second = models.add(_entry("own"))
    # Its name was taken meanwhile.
    assert models.restore("own").name == "own-2"
    assert models.all() == [second, first]
    with pytest.raises(Problem, match="No model 'own' was removed lately"):
        models.restore("own")
    models.remove("own")
    assert models.forget(before=0) == []
    assert models.forget(before=time.time() + 1) == [second]
    with pytest.raises(Problem, match="removed lately"):
        models.restore("own")


@given(st.text(max_size=100))
def test_a_slug_is_a_plain_file_name(text: str) -> None:
    name = slug(text)
    assert 0 < len(name) <= 60
    assert Path(name).name == name
    assert name.isascii()
    assert not name.startswith(".")


def test_files_and_folders_stand_for_models(tmp_path: Path) -> None:
    for name in ("b.prevalens", "a.prevalens", "notes.txt"):
        (tmp_path / name).write_bytes(b"")
    found = model_files([tmp_path / "b.prevalens", tmp_path])
    assert [path.name for path in found] == ["b.prevalens", "a.prevalens"]
    with pytest.raises(InputError, match="no model file and no folder"):
        model_files([tmp_path / "c.prevalens"])
