"""Model files: what was saved comes back; whatever is wrong with a file is told in a sentence."""

from __future__ import annotations

import inspect
import json
import re
import sys
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import BaseEstimator

from prevalens.aggregators.external import ExternalQuantifier
from prevalens.errors import FormatError, InputError
from prevalens.files import ByteSource
from prevalens.model import Model
from prevalens.model.file import check_storable, read_parts, trusted_types, write_model
from prevalens.model.manifest import FORMAT_VERSION, DriftSummary, read_manifest
from prevalens.quantifier import Quantifier


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
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in members.items():
            if content is not None:
                archive.writestr(name, content)
    return target


@pytest.mark.filterwarnings("ignore:Batch 0 differs")
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

    def noted(name: Path, *args: Any) -> Any:
        rebuilt.append(str(name))
        return read_parts(name, *args)

    monkeypatch.setattr("prevalens.model.model.read_parts", noted)
    model = Model.load(path)
    assert model.summary.n_items == 120
    assert not rebuilt
    model.quantify(labelled[0], interval=None)
    model.quantify(labelled[0], interval=None)
    assert rebuilt == [str(path)]


DRIFT = DriftSummary().to_dict()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"page": {"version": FORMAT_VERSION + 1}}, "written by a newer prevalens (file version 7"),
        (
            {"page": {"version": 4}},
            "an older prevalens (file version 4; this one reads 6); fit the model again",
        ),
        ({"page": {"version": "x"}}, "written by a newer prevalens"),
        ({"page": {"format": "other"}}, "this is no model file of prevalens"),
        ({"members": {"manifest.json": None}}, "this is no model file; it lacks manifest.json"),
        ({"members": {"manifest.json": b"{"}}, "the file is damaged or cut off"),
        ({"page": {"labels": 7}}, "its description is damaged"),
        ({"page": {"labels": ["a", "a"]}}, "its description is damaged"),
        ({"page": {"summary": {}}}, "its description is damaged"),
        (
            {"page": {"column_uses": [{"column": 7, "use": "x"}]}},
            "description is damaged (a column",
        ),
        ({"page": {"column_uses": [{"name": "a"}]}}, "its description is damaged"),
        ({"page": {"drift": {}}}, "its description is damaged ('deviation')"),
        ({"page": {"drift": {**DRIFT, "deviation": -1}}}, "its description is damaged (a drift of"),
        ({"page": {"drift": {**DRIFT, "source": "tea"}}}, "unknown source of drift 'tea'"),
        ({"page": {"drift": {**DRIFT, "column": {"x": 1}}}}, "a time column of {'x': 1}"),
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
    page = read_manifest(path)
    kept = {name: page[name] for name in page if name not in ("format", "version")}
    parts = {"preparation": Evil(), "quantifier": 1, "feature_means": 2}
    evil = tmp_path / "evil.prevalens"
    write_model(evil, kept, parts, [f"{Evil.__module__}.Evil"])
    model = Model.load(evil)
    with pytest.raises(FormatError, match=r"it holds .*Evil, which is not among the types"):
        _ = model.preparation
    assert Evil.made == 0


def test_a_class_of_ours_that_is_gone_asks_for_a_new_fit(path: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        schema = archive.read("schema.json").decode()
    gone = schema.replace('"TextPreparation"', '"GonePreparation"')
    assert gone != schema
    target = rewritten(path, tmp_path / "gone.prevalens", members={"schema.json": gone.encode()})
    with pytest.raises(FormatError, match=r"prevalens\.tables.*Gone.*Fit the model again\.$"):
        _ = Model.load(target).preparation


def test_no_file_can_make_us_open_files_or_look_up_code(tmp_path: Path) -> None:
    parts = {"source": ByteSource(tmp_path / "secret")}
    with pytest.raises(InputError, match=r"prevalens.files.ByteSource"):
        check_storable(parts)
    with pytest.raises(InputError, match=r"prevalens.aggregators.external.ExternalQuantifier"):
        check_storable(ExternalQuantifier(Quantifier()))
    words = re.compile(r"import_module|__import__|\beval\(|\bexec\(|\bopen\(|subprocess")
    modules = {name.rpartition(".")[0] for name in trusted_types() if name.startswith("prevalens.")}
    for name in sorted(modules):
        assert words.findall(inspect.getsource(sys.modules[name])) == [], name


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


def test_an_archive_that_unpacks_to_very_much_is_not_unpacked(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.prevalens"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", b"0" * 10_000_000)
    with pytest.raises(FormatError, match="claims to unpack to more than 100 times the size"):
        read_manifest(bomb)


def test_parts_are_compressed_unless_that_would_look_like_a_bomb(tmp_path: Path) -> None:
    for values, smallest, largest in (
        (np.arange(100_000), 20_000, 300_000),
        (np.zeros(100_000), 800_000, 820_000),
    ):
        write_model(tmp_path / "m", {"a": 1}, {"values": values})
        page = read_manifest(tmp_path / "m")
        np.testing.assert_array_equal(read_parts(tmp_path / "m", page)["values"], values)
        assert smallest < (tmp_path / "m").stat().st_size < largest


def test_a_file_that_was_replaced_after_loading(path: Path, model: Model, tmp_path: Path) -> None:
    place = tmp_path / "m.prevalens"
    place.write_bytes(path.read_bytes())
    loaded = Model.load(place)
    Model.fit(["red car", "blue bus"] * 5, [{"x"}, {"y"}] * 5, method="lr+pcc").save(place)
    with pytest.raises(FormatError, match="the file has changed since it was opened; load it"):
        _ = loaded.quantifier
    place.unlink()
    with pytest.raises(InputError, match="There is no file"):
        _ = loaded.preparation


def test_the_summary_is_read_without_the_parts(tmp_path: Path) -> None:
    write_model(tmp_path / "m", {"a": 1}, {"x": np.random.default_rng(0).random(4_000_000)})
    tracemalloc.start()
    assert read_manifest(tmp_path / "m")["a"] == 1
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
