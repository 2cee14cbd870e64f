from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from prevalens.datasets import load
from prevalens.experiments import DataSource
from prevalens.experiments.cells import data_checksum, open_dataset
from prevalens.validation import InputError


@pytest.fixture
def tickets(tmp_path: Path) -> DataSource:
    terms = {"billing": "invoice paid twice refund", "login": "password cannot enter account"}
    for name, count in (("train", 40), ("test", 12)):
        lines = ["body,topics"]
        for i in range(count):
            topic = list(terms)[i % 2]
            lines.append(
                f"{terms[topic]} {i},{topic}" + (";rare" if (name, i) == ("test", 0) else "")
            )
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    options = {"text": "body", "tags": "topics"}
    return DataSource("tickets", str(tmp_path / "train.csv"), str(tmp_path / "test.csv"), options)


def test_a_dataset_of_the_registry_is_loaded_once() -> None:
    first = open_dataset(DataSource("synthetic"))
    assert open_dataset(DataSource("synthetic")) is first
    np.testing.assert_array_equal(first.test.Y, load("synthetic").test.Y)
    assert data_checksum(DataSource("synthetic")) == first.sha


@pytest.mark.data
@pytest.mark.parametrize("name", ["emotions", "medical"])
def test_checksum_is_that_of_the_loaded_data(name: str) -> None:
    assert data_checksum(DataSource(name)) == load(name).sha


@pytest.mark.filterwarnings("ignore:.*rare")
def test_files_of_ones_own_become_features_and_the_training_labels(tickets: DataSource) -> None:
    data = open_dataset(tickets)
    assert data.train.labels == data.test.labels == ("billing", "login")
    assert data.train.X.shape[0] == 40
    assert data.train.n_features == data.test.n_features
    assert data.sha == data_checksum(tickets)


def test_checksum_follows_the_contents(tickets: DataSource) -> None:
    before = data_checksum(tickets)
    Path(tickets.test).write_text(Path(tickets.test).read_text() + "invoice,billing\n")
    assert data_checksum(tickets) != before


def test_files_with_different_labels_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,label_a\n1,1\n2,0\n")
    (tmp_path / "b.csv").write_text("x,label_b\n1,1\n2,0\n")
    source = DataSource(
        "own", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), {"labels": "label_*"}
    )
    with pytest.raises(InputError, match="of the dataset 'own' have different labels"):
        open_dataset(source)
