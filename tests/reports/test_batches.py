"""What drives an estimate: the pushes add up to the move of the mean log-odds."""

from __future__ import annotations

import numpy as np
import pytest

from prevalens.datasets.tickets import tickets
from prevalens.model import Model
from prevalens.reports.batches import drivers_of, label_weights

DATA = tickets(300, 80, months=2)


@pytest.fixture(scope="module")
def model() -> Model:
    return Model.fit(DATA.train.X, DATA.train.Y, labels=DATA.train.labels, method="lr+pcc")


def test_all_pushes_add_up_to_the_move_of_the_mean_log_odds(model: Model) -> None:
    before = model.preparation.transform(list(DATA.train.X))
    after = model.preparation.transform(list(DATA.test.X))
    means = np.asarray(after.mean(axis=0)).ravel()
    (drivers,) = drivers_of(model, means, labels=[1], batch="later", most=10**6)
    scores = [
        model.quantifier.classifier_.decision_function(X)[:, 1].mean() for X in (before, after)
    ]
    assert sum(driver.push for driver in drivers.drivers) == pytest.approx(
        scores[1] - scores[0], abs=1e-4
    )
    pushes = [abs(driver.push) for driver in drivers.drivers]
    assert pushes == sorted(pushes, reverse=True)
    assert (drivers.label, drivers.batch) == (model.labels[1], "later")


def test_terms_have_their_names(model: Model) -> None:
    means = model.feature_means.copy()
    place = model.preparation.terms_.index("parcel")
    means[place] += 0.1
    (drivers,) = drivers_of(model, means, labels=[1], batch="later")
    assert [driver.name for driver in drivers.drivers] == ["parcel"]
    assert drivers.drivers[0].batch - drivers.drivers[0].training == pytest.approx(0.1)


def test_what_is_not_linear_has_no_drivers() -> None:
    forest = Model.fit(
        DATA.train.X, DATA.train.Y, labels=DATA.train.labels, method="forest(n_estimators=5)+pcc"
    )
    assert label_weights(forest) is None
    assert drivers_of(forest, forest.feature_means, labels=[0], batch="later") == ()
