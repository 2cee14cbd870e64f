"""Model files: what was saved comes back; whatever is wrong with a file is told in a sentence."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from skops.io import dumps

from prevalens.errors import FormatError, InputError
from prevalens.model import Model
from prevalens.model.file import FORMAT_VERSION, from_bytes, read_model, write_model


@pytest.fixture(scope="session")
def path(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("model") / "m.prevalens"
    model.save(place)
    return place


def rewritten(path: Path, target: Path, **changes: Any) -> Path:
    """A copy of a model file with other members or another description."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    page = json.loads(members["manifest.json"]) | changes.pop("page", {})
    members |= {"manifest.json": json.dumps(page).encode()}
    members |= changes.pop("members", {})
    with zipfile.ZipFile(target, "w", changes.pop("compression", zipfile.ZIP_STORED)) as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)
    return target


@pytest.mark.filterwarnings("ignore:Sample 0 looks unlike")
def test_everything_comes_back(model: Model, path: Path, labelled: tuple) -> None:
    again = Model.load(path)
    assert again.labels == model.labels
    assert again.summary == model.summary
    assert again.provenance == model.provenance
    assert again.columns == model.columns
    np.testing.assert_array_equal(again.feature_means, model.feature_means)
    for interval in (None, 0.8):
        ours, theirs = (one.quantify(labelled[0], interval=interval) for one in (model, again))
        np.testing.assert_array_equal(ours.point, theirs.point)


def test_parts_are_rebuilt_only_when_needed(
    path: Path, labelled: tuple, monkeypatch: pytest.MonkeyPatch
) -> None:
    rebuilt: list[str] = []

    def noted(name: str, *args: Any) -> Any:
        rebuilt.append(name)
        return from_bytes(name, *args)

    monkeypatch.setattr("prevalens.model.model.from_bytes", noted)
    model = Model.load(path)
    assert model.summary.n_items == 120
    assert not rebuilt
    model.quantify(labelled[0], interval=None)
    model.quantify(labelled[0], interval=None)
    assert rebuilt == [str(path)]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"page": {"version": FORMAT_VERSION + 1}}, "written by a newer prevalens (file version 2"),
        ({"page": {"version": "x"}}, "written by a newer prevalens"),
        ({"page": {"format": "other"}}, "this is no model file of prevalens"),
        ({"page": {"sha256": "0" * 64}}, "the checksum does not fit"),
        ({"members": {"parts.skops": b"PK other"}}, "the checksum does not fit"),
        ({"members": {"manifest.json": None}}, "this is no model file; it lacks manifest.json"),
        ({"members": {"parts.skops": None}}, "this is no model file; it lacks parts.skops"),
        ({"members": {"manifest.json": b"{"}}, "its description is damaged"),
        ({"page": {"labels": 7}}, "its description is damaged"),
        ({"page": {"labels": ["a", "a"]}}, "its description is damaged"),
        ({"page": {"summary": {}}}, "its description is damaged"),
        ({"compression": zipfile.ZIP_DEFLATED}, "is compressed, which no model file"),
    ],
)
def test_changed_files(path: Path, tmp_path: Path, changes: dict, sentence: str) -> None:
    target = rewritten(path, tmp_path / "changed.prevalens", **changes)
    with pytest.raises(FormatError) as error:
        Model.load(target)
    assert sentence in str(error.value)
    assert str(target) in str(error.value)


def test_a_description_that_does_not_fit_the_parts(path: Path, tmp_path: Path) -> None:
    page = {"labels": ["x", "y", "z"]}
    target = rewritten(path, tmp_path / "changed.prevalens", page=page)
    with pytest.raises(FormatError, match="does not fit its description"):
        _ = Model.load(target).quantifier


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_cut_files(path: Path, tmp_path: Path, share: float) -> None:
    content = path.read_bytes()
    target = tmp_path / "cut.prevalens"
    target.write_bytes(content[: int(share * len(content))])
    with pytest.raises(FormatError, match=r"damaged or cut off|no model file"):
        Model.load(target)


@settings(max_examples=40)
@given(data=st.data())
def test_a_changed_byte_is_noticed_or_harmless(
    data: st.DataObject, path: Path, labelled: tuple
) -> None:
    content = bytearray(path.read_bytes())
    place = data.draw(st.integers(0, len(content) - 1))
    content[place] ^= data.draw(st.integers(1, 255))
    target = path.with_name("changed.prevalens")
    target.write_bytes(content)
    sentence, shape = "", None
    try:
        shape = Model.load(target).quantify(labelled[0][:5], interval=None).shape
    except InputError as error:
        sentence = str(error)
    assert shape == (3,) or sentence.startswith(str(target))
    assert "\n" not in sentence


def test_other_files(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b\n")
    with pytest.raises(FormatError, match="this is no model file; `prevalens fit` writes one"):
        Model.load(tmp_path / "t.csv")
    with pytest.raises(InputError, match="There is no file"):
        Model.load(tmp_path / "nothing")
    with pytest.raises(InputError, match="is a folder, not a model file"):
        Model.load(tmp_path)


class Evil(BaseEstimator):
    """A type that nobody trusts."""

    made = 0

    def __setstate__(self, state: dict) -> None:
        Evil.made += 1


def test_untrusted_types_are_never_made(tmp_path: Path, path: Path) -> None:
    page, _ = read_model(path)
    parts = dumps({"preparation": Evil(), "quantifier": 1, "feature_means": 2})
    kept = {name: page[name] for name in ("labels", "columns", "summary", "provenance")}
    write_model(tmp_path / "evil.prevalens", kept, parts)
    model = Model.load(tmp_path / "evil.prevalens")
    with pytest.raises(FormatError, match=r"it holds .*Evil, which is not among the types"):
        _ = model.preparation
    assert Evil.made == 0


def test_a_model_that_could_not_be_read_is_not_written(labelled: tuple, tmp_path: Path) -> None:
    class Own(BaseEstimator):
        def fit(self, texts: Any, y: Any = None) -> Own:
            return self

        def transform(self, texts: Any) -> Any:
            return np.array([[len(text), text.count("e")] for text in texts], dtype=float)

    model = Model.fit(*labelled, method="lr+pcc", preparation=Own())
    with pytest.raises(InputError, match=r"cannot be stored|which model files may not"):
        model.save(tmp_path / "own.prevalens")
    assert list(tmp_path.iterdir()) == []


def test_parts_that_claim_to_be_larger_than_the_file() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", b"0" * 10_000_000)
    with pytest.raises(FormatError, match="claims to be larger than the file"):
        from_bytes("bomb.prevalens", buffer.getvalue())
