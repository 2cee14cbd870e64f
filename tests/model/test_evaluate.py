"""Evaluation of a model: figures agree with slow references, files with arrays."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from prevalens.datasets.dataset import Dataset
from prevalens.datasets.tickets import tickets, write_tickets
from prevalens.errors import InputError
from prevalens.model import Model
from prevalens.model.evaluate import evaluate_files, evaluate_model
from prevalens.model.fit import fit_files
from prevalens.model.progress import CancelledError, Step
from prevalens.model.trust import COUNTED, ESTIMATE, TRAINING


@pytest.fixture(scope="module")
def data() -> Dataset:
    return tickets(600, 100, months=3, random_state=1)


@pytest.fixture(scope="module")
def model(data: Dataset) -> Model:
    return Model.fit(data.train.X, data.train.Y, labels=data.train.labels, method="lr+pacc")


def test_counting_and_training_are_what_they_say(data: Dataset, model: Model) -> None:
    found = evaluate_model(model, data.test.X, data.test.Y, n_samples=60, interval=None)
    assert found.compared == (ESTIMATE, COUNTED, TRAINING)
    for trial in found.trials:
        assert len(trial) == 60
        assert trial.counted is not None
        counts = trial.counted * found.size
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-6)
        np.testing.assert_array_equal(found.values(trial, TRAINING)[0], model.prevalence)
    assert found.coverage() == {}
    assert found.positives.tolist() == data.test.Y.sum(axis=0).tolist()


def test_intervals_are_those_of_the_model(data: Dataset, model: Model) -> None:
    steps: list[Step] = []
    found = evaluate_model(
        model,
        data.test.X,
        data.test.Y,
        n_samples=150,
        protocols="label-tilt",
        progress=steps.append,
    )
    (trial,) = found.trials
    assert len(trial.rows) == 100
    assert trial.lower is not None
    assert trial.upper is not None
    assert np.all(trial.lower <= trial.estimated[trial.rows] + 1e-9)
    assert np.all(trial.upper >= trial.estimated[trial.rows] - 1e-9)
    assert 0.5 < found.coverage()["all"][0] <= 1
    assert [step.stage for step in steps] == ["scoring", "label-tilt"]


def test_the_same_seed_gives_the_same_figures(data: Dataset, model: Model) -> None:
    settings = {"n_samples": 30, "interval": None}
    first, again, other = (
        evaluate_model(model, data.test.X, data.test.Y, seed=seed, **settings) for seed in (0, 0, 1)
    )
    assert first.to_dict() == again.to_dict()
    assert first.to_dict() != other.to_dict()


def test_a_method_without_classifier_is_not_counted(data: Dataset) -> None:
    naive = Model.fit(data.train.X, data.train.Y, labels=data.train.labels, method="naive")
    found = evaluate_model(naive, data.test.X, data.test.Y, n_samples=20, interval=None)
    np.testing.assert_allclose(found.errors(ESTIMATE), found.errors(TRAINING))


@pytest.fixture(scope="module")
def folder(data: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tickets")
    write_tickets(data, folder, held_out=0.4)
    return folder


@pytest.fixture(scope="module")
def from_file(folder: Path) -> Model:
    return fit_files(folder / "train.csv", text="text", tags="tags", sep=";", method="lr+pcc")


def test_files_and_arrays_give_the_same(folder: Path, from_file: Model, data: Dataset) -> None:
    settings = {"n_samples": 30, "interval": None}
    found = evaluate_files(from_file, folder / "labelled.csv", tags="tags", sep=";", **settings)
    columns = [data.train.labels.index(name) for name in from_file.labels]
    texts = {"text": list(data.train.X[360:])}
    same = evaluate_model(from_file, texts, data.train.Y[360:][:, columns], **settings)
    np.testing.assert_array_equal(found.errors(ESTIMATE), same.errors(ESTIMATE))
    assert found.seen == 0
    assert found.provenance["labelled items"].endswith("labelled.csv")


def test_training_items_are_recognised(folder: Path, from_file: Model) -> None:
    found = evaluate_files(
        from_file, folder / "train.csv", tags="tags", sep=";", n_samples=20, interval=None
    )
    assert found.seen == 1


def test_labels_that_do_not_fit_are_told(folder: Path, from_file: Model, tmp_path: Path) -> None:
    with (folder / "labelled.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    path = tmp_path / "other.csv"

    def write(change: str) -> None:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "tags", "id"])
            writer.writerows(
                [row["text"], row["tags"].replace("login", change), row["id"]] for row in rows
            )

    write("entrance")
    found = evaluate_files(from_file, path, tags="tags", sep=";", n_samples=20, interval=None)
    assert found.notices == (
        "1 of the model's labels occur in no item.",
        "1 labels that the model does not know were left out.",
    )
    with pytest.raises(InputError, match=r"has none of the model's 9 labels"):
        evaluate_files(from_file, path, tags="id", n_samples=20)
    with pytest.raises(InputError, match="has no column"):
        evaluate_files(from_file, path)


def test_what_cannot_be_evaluated_is_refused(data: Dataset, model: Model) -> None:
    with pytest.raises(InputError, match="too few to draw samples from"):
        evaluate_model(model, data.test.X[:5], data.test.Y[:5])
    with pytest.raises(InputError, match="was not trained on a table"):
        evaluate_files(model, "labelled.csv")
    with pytest.raises(InputError, match="seed must be at least 0"):
        evaluate_model(model, data.test.X, data.test.Y, seed=-1)
    with pytest.raises(CancelledError):
        evaluate_model(model, data.test.X, data.test.Y, cancelled=lambda: True)
