"""What people do in notebooks: frames in and out, pipelines, set_output, clone."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prevalens import Collection, PrevalenceEstimate, Quantifier, evaluate, parse
from prevalens.aggregators import PACC, PCC
from prevalens.classifiers import PerLabel
from prevalens.datasets import synthetic
from prevalens.datasets.tickets import tickets
from prevalens.model import BatchResult
from prevalens.protocols import Natural
from prevalens.selection.automatic import Candidate, Choice

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


class Shown(NamedTuple):
    """A result, and how many small charts it has."""

    value: Any
    n_charts: int


@pytest.fixture(scope="module")
def results() -> dict[str, Shown]:
    labels = ("<i>odd</i>", "plain & simple", "last")
    quantifier = parse("lr+pcc").fit(DATA.train.X, DATA.train.Y, labels=labels)
    one = quantifier.quantify(DATA.test.X, interval=0.9)
    several = quantifier.quantify_many(DATA.test.X, np.arange(100) % 4, interval=0.9)
    pool = Collection(DATA.test.X, DATA.test.Y, labels)
    candidates = tuple(Candidate(name, 0.5 + i / 9, {}) for i, name in enumerate(("<lr>", "pcc")))
    batches = {"sizes": [25] * 4, "training": quantifier.prevalence_}
    return {
        "quantifier": Shown(quantifier, 3),
        "one batch": Shown(one, 3),
        "several batches": Shown(several, 3),
        "evaluation": Shown(evaluate(quantifier, pool, Natural(size=50, n_samples=20)), 3),
        "choice": Shown(Choice(None, PCC(), candidates, 1.0, ()), 2),
        "result": Shown(BatchResult.from_estimate(several, ordered=True, **batches), 3),
        "loose batches": Shown(BatchResult.from_estimate(several, ordered=False, **batches), 3),
    }


NAMES_OF_RESULTS = (
    "quantifier", "one batch", "several batches", "evaluation", "choice", "result",
    "loose batches",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES_OF_RESULTS)
def test_results_show_themselves_with_a_chart_and_as_text(
    name: str, results: dict[str, Shown]
) -> None:
    html5lib = pytest.importorskip("html5lib")
    value, n_charts = results[name]
    assert 0 < len(repr(value).splitlines()) < 20
    page = value._repr_html_()
    assert "<i>" not in page
    # The diagram of scikit-learn has a body of its own; what prevalens adds follows it.
    own = page.rpartition("</body>")[2]
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    tree = parser.parseFragment(own)
    assert parser.errors == []
    pictures = list(tree.iter("{http://www.w3.org/2000/svg}svg"))
    assert len(pictures) == n_charts
    assert all(picture.get("aria-hidden") == "true" for picture in pictures)
    # What the pictures show is in the cells, too.
    assert len(list(tree.iter("td"))) >= 2 * n_charts


def test_a_quantifier_has_the_diagram_of_its_parts() -> None:
    page = Quantifier(PerLabel(), PACC())._repr_html_()
    assert "sk-container" in page
    assert all(f">{name}<" in page for name in ("Quantifier", "PerLabel", "PACC"))
    assert "<svg" not in page


def test_many_batches_do_not_flood_a_notebook() -> None:
    many = PrevalenceEstimate(np.full((5000, 2), 0.5), ["a", "b"])
    page = many._repr_html_()
    assert page.count("<tr>") == 200 + 2
    assert "and 4800 more" in page
    assert len(page) < 100_000


@pytest.mark.parametrize("room", ["", ".model", ".tables", ".engines"])
def test_lazy_names_are_completed_and_have_docstrings(room: str) -> None:
    module = importlib.import_module(f"prevalens{room}")
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        value = getattr(module, name)
        if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception)):
            assert (value.__doc__ or "").strip(), name
            # "..." or (*args, **kwargs) would tell nobody what to write.
            assert not {"args", "kwargs"} & set(inspect.signature(value).parameters), name


def test_clones_have_the_settings_and_nothing_else() -> None:
    fitted = Quantifier(PerLabel(C=3), PACC()).fit(DATA.train.X, DATA.train.Y)
    copy = clone(fitted)
    assert copy.name == fitted.name
    assert not hasattr(copy, "aggregator_")
    assert copy.set_params(classifier__C=7).classifier.C == 7
    assert fitted.classifier.C == 3
