"""Every composition of the catalogue's parts can be saved, loaded, and then answers the same."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier

from prevalens.aggregators import PACC, PCC, HDx
from prevalens.aggregators.external import without_intervals
from prevalens.catalogue import ENTRIES, parse
from prevalens.classifiers import PerLabel
from prevalens.datasets import synthetic
from prevalens.datasets.tickets import tickets
from prevalens.errors import InputError
from prevalens.model import Model, fit_files
from prevalens.model.file import read_parts, trusted_types, write_model
from prevalens.model.manifest import read_manifest
from prevalens.quantifier import Quantifier
from prevalens.response import VaryingLabels
from prevalens.selection import GridSearch
from prevalens.tables.text import TextPreparation
from prevalens.uncertainty import Bootstrap


def codes(role: str) -> list[str]:
    return [code for code, entry in ENTRIES.items() if entry.role == role]


def numbers() -> tuple[Any, Any, Any]:
    data = synthetic(n_train=40, n_test=20, n_labels=2, random_state=0)
    return data.train.X, data.train.Y, data.test.X


def texts() -> tuple[Any, Any, Any]:
    data = tickets(40, 20, months=1)
    preparation = TextPreparation().fit(list(data.train.X))
    X, batch = (preparation.transform(list(items)) for items in (data.train.X, data.test.X))
    return X, data.train.Y[:, :2], batch


DATA = {"numbers": numbers(), "texts": texts()}


def data_for(classifier: str, form: str) -> tuple[Any, Any, Any]:
    X, Y, batch = DATA[form]
    if classifier == "given":
        # Its items are scores, one per label.
        X, batch = ((items[:, : Y.shape[1]] > 0) * 1.0 for items in (X, batch))
    return X, Y, batch


#: Quantifiers that LPQ runs on label states.
STATES = [f"lr+lpq({inner})" for inner in ("cc", "pcc", "acc", "pacc", "sld", "hdy")]
OTHERS = [
    *(f"lr+rq(pcc,{code})" for code in codes("regressor")),
    *(f"lr+lpq(pcc,{code})" for code in codes("clusterer")),
    *(f"lr+pacc@{code}" for code in codes("scheme")),
    "rq(hdx)",
    "stack+rq(pacc)",
    "auto(time_budget=1)",
]


def fitted(quantifier: Any, X: Any, Y: Any) -> Any:
    with warnings.catch_warnings():
        # So few items leave some folds without a label.
        warnings.simplefilter("ignore")
        return quantifier.fit(X, Y)


def check_round_trip(quantifier: Any, batch: Any, path: Path, **options: Any) -> Any:
    """Save and load a fitted quantifier, compare its answers, and return what was loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        write_model(path, {}, {"quantifier": quantifier})
        again = read_parts(path, read_manifest(path))["quantifier"]
        ours, theirs = (each.quantify(batch, **options) for each in (quantifier, again))
    for name in ("point", "lower", "upper", "band_lower", "band_upper", "p_value"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    return again


@pytest.mark.parametrize(
    ("classifier", "form"),
    [*((code, "numbers") for code in codes("classifier")), ("lr", "texts")],
)
def test_a_classifier_with_every_aggregator(classifier: str, form: str, tmp_path: Path) -> None:
    X, Y, batch = data_for(classifier, form)
    # A hold-out trains the classifier twice instead of six times; what is saved is the same.
    for code in codes("aggregator"):
        try:
            quantifier = without_intervals(parse(f"{classifier}+{code}@holdout(0.5)"))
            fitted(quantifier, X, Y)
        except InputError:
            # Aggregators that read the items, and LPQ over classifiers of several labels.
            assert code in ("hdx", "naive", "lpq")
            continue
        check_round_trip(quantifier, batch, tmp_path / "m.prevalens")


@pytest.mark.parametrize("classifier", codes("classifier"))
def test_a_classifier_of_texts(classifier: str, tmp_path: Path) -> None:
    # What is sparse is the classifier's alone: one aggregator is enough.
    X, Y, batch = data_for(classifier, "texts")
    quantifier = without_intervals(parse(f"{classifier}+pcc@holdout(0.5)"))
    check_round_trip(fitted(quantifier, X, Y), batch, tmp_path / "m.prevalens")


@pytest.mark.parametrize("form", DATA)
@pytest.mark.parametrize("method", [*STATES, *OTHERS, "hdx", "naive"])
def test_other_compositions(method: str, form: str, tmp_path: Path) -> None:
    X, Y, batch = DATA[form]
    quantifier = fitted(without_intervals(parse(method)), X, Y)
    check_round_trip(quantifier, batch, tmp_path / "m.prevalens")


def test_calibrated_intervals_a_search_and_labels_that_do_not_vary(tmp_path: Path) -> None:
    X, Y, batch = DATA["numbers"]
    for aggregator in (PCC(), PACC()):
        calibrated = fitted(Quantifier(PerLabel(), aggregator), X, Y)
        check_round_trip(calibrated, batch, tmp_path / "bootstrap", interval=0.9)
    search = GridSearch(parse("lr+pcc"), {"classifier__C": [0.1, 1]})
    check_round_trip(fitted(search, X, Y), batch, tmp_path / "search")
    constant = np.column_stack([Y, np.ones(len(Y), dtype=np.int8)])
    varying = Quantifier(MultiOutputClassifier(LogisticRegression()), PCC())
    fitted(varying, X, constant)
    assert isinstance(varying.classifier_, VaryingLabels)
    check_round_trip(varying, batch, tmp_path / "varying")


@pytest.mark.parametrize(
    "quantifier",
    [
        Quantifier(PerLabel(), PCC(), uncertainty=Bootstrap(replicas=2, resamples=4)),
        Quantifier(None, HDx(), uncertainty=Bootstrap(replicas=2, resamples=4)),
        Quantifier(time_budget=0.01),
    ],
    ids=lambda quantifier: quantifier.name,
)
@pytest.mark.parametrize("dates", [False, True])
def test_times_come_back(quantifier: Quantifier, dates: bool, tmp_path: Path) -> None:
    data = synthetic(n_train=120, n_test=60, n_labels=2, random_state=0)
    days = np.arange(120)
    times = np.datetime64("2024-01-01") + days if dates else days
    later = np.datetime64("2024-06-01") if dates else 150
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quantifier.fit(data.train.X, data.train.Y, time=times)
    again = check_round_trip(quantifier, data.test.X, tmp_path / "m", interval=0.9, time=later)
    assert again.backtest_.describe() == quantifier.backtest_.describe()
    assert again.backtest_.axis == quantifier.backtest_.axis


def test_a_model_is_read_by_a_process_that_has_fitted_nothing(tmp_path: Path) -> None:
    X, Y, batch = DATA["numbers"]
    Model.fit(X, Y, method="stack+rq(pacc)").save(tmp_path / "m")
    np.save(tmp_path / "batch.npy", batch)
    code = (
        "import numpy as np; from prevalens.model import Model\n"
        "found = Model.load('m').quantify(np.load('batch.npy'), interval=None)\n"
        "print(found.shape)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout == "(2,)\n"


def test_foreign_types_are_trees_and_sparse_matrices_only() -> None:
    foreign = {name for name in trusted_types() if not name.startswith("prevalens.")}
    assert foreign == {"sklearn.tree._tree.Tree"} | {
        f"scipy.sparse._cs{kind}.cs{kind}_{form}" for kind in "rc" for form in ("array", "matrix")
    }


def test_a_method_that_could_not_be_saved_is_refused_before_it_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = "\n".join(f"{i},{i % 7},{i % 2},{(i // 2) % 2}" for i in range(40))
    (tmp_path / "t.csv").write_text(f"a,b,x,y\n{rows}\n")
    monkeypatch.setattr(Model, "fit", lambda *_, **__: pytest.fail("it was trained"))
    foreign = Quantifier(PerLabel(HistGradientBoostingClassifier(max_iter=2)), PCC())
    with pytest.raises(InputError, match=r"The model holds .*TreePredictor, which model files"):
        fit_files(tmp_path / "t.csv", labels=["x", "y"], method=foreign)
