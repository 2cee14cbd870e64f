"""Second annotators in files: columns, tags, stated agreement, and the way to the report."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from prevalens import __main__ as program
from prevalens.errors import InputError, PrevalensWarning
from prevalens.model import Model, fit_files, read_labelled


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(program.cli, list(map(str, words)), catch_exceptions=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Texts that say their labels; both annotators miss 30 % of them; 200 of 400 read twice."""
    place = tmp_path_factory.mktemp("annotators")
    rng = np.random.default_rng(0)
    truth = rng.random((400, 2)) < [0.5, 0.3]
    first, second = (truth & (rng.random(truth.shape) < 0.7) for _ in range(2))
    names = ("alpha", "beta")
    columns = ["text,y_alpha,y_beta,z_beta,z_alpha,tags,again"]
    for i in range(400):
        said = " ".join(n for n, yes in zip(names, truth[i], strict=True) if yes)
        one = ";".join(n for n, yes in zip(names, first[i], strict=True) if yes)
        two = ";".join(n for n, yes in zip(names, second[i], strict=True) if yes) or "-"
        a, b = second[i].astype(int)
        twice = (b, a, one, two) if i < 200 else ("", "", one, "")
        columns.append(",".join(map(str, (f"hi {said}", *first[i].astype(int), *twice))))
    (place / "train.csv").write_text("\n".join(columns) + "\n")
    (place / "share.txt").write_text(json.dumps(truth.mean(axis=0).tolist()))
    return place


def test_columns_and_tags_of_a_second_annotator_are_the_same(folder: Path) -> None:
    train = folder / "train.csv"
    by_column = read_labelled(train, text="text", labels=["y_*"], second_labels=["z_*"])
    by_tag = read_labelled(train, text="text", tags="tags", sep=";", second_tags="again")
    assert by_column.second is not None
    assert by_tag.second is not None
    np.testing.assert_array_equal(by_column.second, by_tag.second)
    assert np.isnan(by_column.second).all(axis=1).sum() == 200
    assert "z_alpha" not in read_labelled(train, labels=["y_*"], second_labels=["z_*"]).columns


def test_from_fit_to_inspect_and_report(folder: Path) -> None:
    model, page = folder / "m.prevalens", folder / "r.html"
    words = ("--text", "text", "--labels", "y_*", "--second-labels", "z_*", "--errors", "misses")
    done = run("fit", folder / "train.csv", "-o", model, *words, "--method", "lr+pacc")
    assert done.exit_code == 0, done.output
    sentence = "Two annotators labelled 200 items and agree in"
    assert sentence in done.stdout
    assert "they miss labels, but never set one wrongly" in done.stdout
    assert sentence in " ".join(run("inspect", model).stdout.split())
    loaded = Model.load(model)
    truth = json.loads((folder / "share.txt").read_text())
    assert loaded.prevalence == pytest.approx(truth, abs=0.06)
    given = ["quantify", model, folder / "train.csv", "--html", page, "--json"]
    done = run(*given)
    assert done.exit_code == 0, done.output
    answer = json.loads(done.stdout)
    assert [row["prevalence"] for row in answer["rows"]] == pytest.approx(truth, abs=0.06)
    assert sentence in answer["provenance"]["label errors"]
    assert sentence in page.read_text()


def test_a_stated_agreement_is_enough(folder: Path) -> None:
    settings = {"text": "text", "labels": ["y_*"], "method": "lr+pacc"}
    model = fit_files(folder / "train.csv", agreement="0.9", errors="symmetric", **settings)
    assert model.quantifier.noise_ is not None
    assert model.quantifier.noise_.agreement == 0.9
    plain = fit_files(folder / "train.csv", **settings)
    assert np.all(model.prevalence < plain.prevalence)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"agreement": 0.9, "kappa": 0.8}, "give one of them"),
        ({"second_labels": ["z_*"], "kappa": 0.8}, "give one of them"),
        ({"errors": "misses"}, "name a second annotator"),
        ({"agreement": "often"}, "The agreement is written 0.85"),
        ({"kappa": 0.8, "holdout": 0.3}, "these have errors"),
        ({"second_labels": ["z_beta"]}, "'y_alpha' has no column of the second annotator"),
        ({"second_labels": ["z_*"], "second_tags": "again"}, "Name either columns"),
        ({"second_tags": "nothing"}, "has no column 'nothing'"),
    ],
)
def test_contradictions_are_refused(
    folder: Path, settings: dict[str, object], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        fit_files(folder / "train.csv", text="text", labels=["y_*"], method="lr+pcc", **settings)  # type: ignore[arg-type]


def test_a_label_of_the_second_annotator_alone_is_named(tmp_path: Path) -> None:
    lines = ["text,tags,again", *["a,x,x", "b,,gamma"] * 10]
    (tmp_path / "train.csv").write_text("\n".join(lines) + "\n")
    with pytest.warns(PrevalensWarning, match="only the second annotator gave 'gamma'"):
        read_labelled(tmp_path / "train.csv", text="text", tags="tags", second_tags="again")
