"""Names to quantifiers and back, and errors that point at the character."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prevalens import parse
from prevalens.aggregators import ACC, PACC, PCC, RQ
from prevalens.catalogue import ENTRIES, parse_value, register, unregister
from prevalens.classifiers import ClassifierEnsemble, HoldOut, PerLabel, Stacked, Tree
from prevalens.datasets import synthetic
from prevalens.quantifier import Quantifier
from prevalens.validation import InputError

CODES = {
    role: [c for c, e in ENTRIES.items() if e.role == role]
    for role in ("classifier", "aggregator", "regressor", "clusterer", "scheme")
}
#: Aggregators that read items and take no classifier.
NATIVE = ("hdx", "naive")


@given(st.sampled_from(CODES["classifier"]), st.sampled_from(CODES["aggregator"]))
def test_name_and_back(classifier: str, aggregator: str) -> None:
    text = aggregator if aggregator in NATIVE else f"{classifier}+{aggregator}"
    name = parse(text).name
    assert parse(name).name == name


@pytest.mark.parametrize("code", ENTRIES)
def test_every_part_has_a_summary_and_defaults(code: str) -> None:
    entry = ENTRIES[code]
    assert entry.summary.endswith((".", ")"))
    if entry.role != "quantifier":
        # Binary relevance without an estimator is logistic regression.
        assert entry.make().code == ("lr" if code == "br" else code)


@pytest.mark.parametrize(
    "text",
    [
        "lr+pcc",
        "lr(C=10,class_weight=balanced)+acc",
        "stack(lr)+rq(pcc,svr)",
        "stack(lr)+rq(sld,ridge)",
        "rq(hdx,ridge)",
        "lr+pacc@holdout(fraction=0.3)",
        "rq(lr+acc@holdout,svr(C=10))",
        "mlknn(k=5,s=0.7)+pcc",
        "lr+lpq(pcc,kmeans(n_clusters=3))",
    ],
)
def test_canonical_names_stay_as_they_are(text: str) -> None:
    assert parse(text).name == text


def test_what_is_built() -> None:
    quantifier = parse("stack(lr(C=10))+rq(pcc,svr)@holdout(0.3)")
    assert isinstance(quantifier, Quantifier)
    assert isinstance(quantifier.classifier, Stacked)
    assert isinstance(quantifier.classifier.base, PerLabel)
    assert quantifier.classifier.base.C == 10
    assert isinstance(quantifier.aggregator, RQ)
    assert isinstance(quantifier.aggregator.base, PCC)
    assert isinstance(quantifier.scheme, HoldOut)
    assert quantifier.scheme.fraction == 0.3


@pytest.mark.parametrize(
    ("text", "sentence", "character"),
    [
        ("lrr+pcc", "There is no classifier called 'lrr'. Did you mean 'lr'?", 1),
        ("lr+pc", "There is no aggregator called 'pc'. Did you mean 'pcc'?", 4),
        ("pcc+lr", "'pcc' is an aggregator, but a classifier belongs here", 1),
        ("lr", "'lr' is a classifier, but an aggregator belongs here", 1),
        ("lr(c=1)+pcc", "lr has no parameter 'c'; it has .*C.*", 1),
        ("lr+rq(pcc,svr(K=1))", "svr has no parameter 'K'", 11),
        ("lr+pcc(1,2,3)", "pcc cannot take these arguments", 4),
        ("lr+pcc@svr", "'svr' is a regressor, but a scheme belongs here", 8),
        ("panel(lr,lr,forrest)+pcc", "There is no classifier called 'forrest'.* 'forest'", 13),
        ("stack(lr,meta=lrr)+pcc", "There is no classifier called 'lrr'", 15),
        ("stack(pcc)+pcc", "'pcc' is an aggregator, but a classifier belongs here", 7),
    ],
)
def test_errors_point_at_the_character(text: str, sentence: str, character: int) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        parse(text)
    assert str(caught.value).endswith(f"^ character {character}")


def test_values() -> None:
    assert parse_value("None") is None
    assert parse_value("[1, 2.5, balanced]") == [1, 2.5, "balanced"]
    assert isinstance(parse_value("pcc"), PCC)


@pytest.mark.parametrize(
    "text",
    [
        "lr+cc",
        "rq(hdx,ridge)",
        "lr+lpq(pcc,kmeans(n_clusters=2))",
        "rq(lr+pcc,ridge)",
        "quapy:CC",
        "lpq(quapy:EMQ)",
    ],
)
def test_parsed_methods_run(text: str) -> None:
    data = synthetic(n_train=200, n_test=60, n_labels=3, n_features=5, random_state=0)
    method = parse(text).set_params(uncertainty=None)
    estimate = method.fit(data.train.X, data.train.Y).quantify(data.test.X)
    assert np.all((estimate >= 0) & (estimate <= 1))


FOREIGN = [
    Quantifier(PerLabel(GaussianNB()), PCC()),
    Quantifier(Stacked(PerLabel(GaussianNB()), PerLabel()), PACC()),
    Quantifier(OneVsRestClassifier(LogisticRegression(C=10)), ACC()),
    Quantifier(make_pipeline(StandardScaler(), PerLabel()), PCC()),
    Quantifier(FrozenEstimator(PerLabel()), PCC()),
    Quantifier(PerLabel(), RQ(PCC(), LinearRegression())),
    Quantifier(
        ClassifierEnsemble(PerLabel(), PerLabel(GaussianNB()), more=[Tree(criterion="gini")]), PCC()
    ),
    Quantifier(ClassifierEnsemble(more=[GaussianNB()]), PCC()),
    Quantifier(Tree(random_state=np.random.RandomState(1)), PCC()),
]


@pytest.mark.parametrize("quantifier", FOREIGN, ids=lambda quantifier: quantifier.name)
def test_a_name_that_cannot_be_read_back_says_so(quantifier: Quantifier) -> None:
    assert "<" in quantifier.name
    with pytest.raises(InputError, match="stands for an object without a name in the catalogue"):
        parse(quantifier.name)


def _parts(role: str) -> list[Any]:
    return [entry.make() for entry in ENTRIES.values() if entry.role == role]


@pytest.mark.parametrize("classifier", _parts("classifier"), ids=lambda part: type(part).__name__)
@pytest.mark.parametrize("aggregator", _parts("aggregator"), ids=lambda part: type(part).__name__)
def test_names_of_compositions_of_the_catalogue_are_read_back(
    classifier: Any, aggregator: Any
) -> None:
    quantifier = Quantifier(classifier, aggregator, scheme=HoldOut(0.3))
    again = parse(quantifier.name)
    assert again.name == quantifier.name
    assert type(again.classifier) is type(classifier)
    assert type(again.aggregator) is type(aggregator)


def test_binary_relevance_with_an_estimator_is_not_called_logistic_regression() -> None:
    assert Quantifier(PerLabel(C=3), PCC()).name == "lr(C=3)+pcc"
    assert Quantifier(PerLabel(GaussianNB()), PCC()).name == "br(<GaussianNB>)+pcc"
    assert parse("br(tree)+pcc").name == "br(tree)+pcc"


def test_a_subclass_does_not_go_by_the_name_of_its_parent() -> None:
    class Other(PCC):
        """Counts otherwise."""

    assert Quantifier(PerLabel(), Other()).name == "lr+<Other>"


def test_a_registered_class_is_read_back() -> None:
    register(GaussianNB, code="bayes", role="classifier")
    try:
        quantifier = parse("br(bayes)+pcc")
        assert isinstance(quantifier.classifier.estimator, GaussianNB)
        assert quantifier.name == "br(bayes)+pcc"
    finally:
        unregister("bayes")
    assert quantifier.name == "br(<GaussianNB>)+pcc"
