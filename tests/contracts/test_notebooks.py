"""What people do in notebooks: frames in and out, pipelines, set_output, clone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prevalens import Quantifier, parse
from prevalens.aggregators import PACC, PCC
from prevalens.classifiers import PerLabel
from prevalens.datasets import synthetic
from prevalens.datasets.tickets import tickets
from prevalens.model import Model
from prevalens.model.groups import ByColumn
from prevalens.model.quantify import quantify_tables
from prevalens.tables.formats import as_table

DATA = synthetic(n_train=200, n_test=100, n_labels=3, n_features=6)
NAMES = [f"x{j}" for j in range(6)]


def _frames(library: Any) -> tuple[Any, Any, Any]:
    X, Z = (
        library.DataFrame(dict(zip(NAMES, part.X.T, strict=True)))
        for part in (DATA.train, DATA.test)
    )
    Y = library.DataFrame(dict(zip(DATA.train.labels, DATA.train.Y.T, strict=True)))
    return X, Y, Z


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_frames_in_and_out(backend: str) -> None:
    library = pytest.importorskip(backend)
    X, Y, Z = _frames(library)
    quantifier = Quantifier(PerLabel(LogisticRegression()), PCC()).fit(X, Y)
    assert quantifier.labels_ == DATA.train.labels
    plain = Quantifier(PerLabel(LogisticRegression()), PCC()).fit(DATA.train.X, DATA.train.Y)
    found = quantifier.quantify(Z)
    np.testing.assert_allclose(found.point, plain.quantify(DATA.test.X).point, atol=1e-9)
    groups = library.Series(["may", "june"] * 50)
    frame = quantifier.quantify_many(Z, groups).to_frame(backend)
    assert isinstance(frame, library.DataFrame)
    assert frame["sample"].to_list() == ["june", "may"]
    assert list(frame.columns) == ["sample", *DATA.train.labels]


def test_a_pipeline_is_a_classifier() -> None:
    data = tickets(200, 30, months=2)
    pipeline = make_pipeline(TfidfVectorizer(), MultiOutputClassifier(LogisticRegression()))
    quantifier = Quantifier(pipeline, PCC()).fit(data.train.X, data.train.Y)
    assert quantifier.quantify(data.test.X).shape == (9,)


def test_a_quantifier_is_the_last_step_of_a_pipeline() -> None:
    whole = make_pipeline(StandardScaler(), parse("lr+pcc")).fit(DATA.train.X, DATA.train.Y)
    scaler = StandardScaler().fit(DATA.train.X)
    apart = parse("lr+pcc").fit(scaler.transform(DATA.train.X), DATA.train.Y)
    found = whole[-1].quantify(whole[:-1].transform(DATA.test.X))
    np.testing.assert_array_equal(found.point, apart.quantify(scaler.transform(DATA.test.X)).point)


def test_frames_from_set_output_are_understood() -> None:
    pytest.importorskip("pandas")
    steps = [StandardScaler().set_output(transform=kind) for kind in ("default", "pandas")]
    plain, framed = (
        Quantifier(make_pipeline(step, MultiOutputClassifier(LogisticRegression())), PCC())
        .fit(DATA.train.X, DATA.train.Y)
        .quantify(DATA.test.X)
        for step in steps
    )
    np.testing.assert_allclose(plain.point, framed.point, atol=1e-12)


def test_results_show_themselves() -> None:
    data = tickets(200, 30, months=2)
    model = Model.fit({"text": data.train.X}, data.train.Y, text="text", method="lr+pcc")
    table = {"text": data.test.X, "month": [f"m{i // 30}" for i in range(60)]}
    several = quantify_tables(model, [as_table(table)], ByColumn("month"))
    one = quantify_tables(model, [as_table({**table, "month": ["m"] * 60})], ByColumn("month"))
    for shown in (several, one, several.estimate, one.estimate.sample(0)):
        assert len(repr(shown).splitlines()) < 20
        assert "<table>" in shown._repr_html_()


def test_clones_have_the_settings_and_nothing_else() -> None:
    fitted = Quantifier(PerLabel(C=3), PACC()).fit(DATA.train.X, DATA.train.Y)
    copy = clone(fitted)
    assert copy.name == fitted.name
    assert not hasattr(copy, "aggregator_")
    assert copy.set_params(classifier__C=7).classifier.C == 7
    assert fitted.classifier.C == 3
