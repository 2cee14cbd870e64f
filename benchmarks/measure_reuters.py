"""Estimates beside the truth, counting and the training prevalence, on Reuters as CSV files.

python examples/export_reuters.py FOLDER
prevalens fit FOLDER/train.csv -o FOLDER/model.prevalens --text text --tags topics --sep ' '
python benchmarks/measure_reuters.py FOLDER/model.prevalens FOLDER/later.csv
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from prevalens.model import Model
from prevalens.samples import Samples

#: Letters of an ISO date that name the period.
PERIODS = {"month": 7, "day": 10}
FEWEST = 30


def main(model_path: str, batch_path: str) -> None:
    with Path(batch_path).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    model = Model.load(model_path)
    quantifier = model.quantifier
    Y = np.array([[label in row["topics"].split(" ") for label in model.labels] for row in rows])
    X = model.preparation.transform([row["text"] for row in rows])
    scores, votes = quantifier.score(X), np.asarray(quantifier.classifier_.predict(X))
    for period, letters in PERIODS.items():
        of = np.array([row["date"][:letters] for row in rows])
        names, counts = np.unique(of, return_counts=True)
        bags = [np.flatnonzero(of == name) for name in names[counts >= FEWEST]]
        samples = Samples.from_indices(bags, n_items=len(rows))
        truth = samples.mean(Y.astype(float))
        guesses = {
            "estimate": quantifier.aggregator_.aggregate(scores, samples),
            "classify and count": samples.mean(votes.astype(float)),
            "mean posterior": samples.mean(scores.values),
            "training prevalence": quantifier.prevalence_,
        }
        print(f"by {period}, {len(bags)} batches, mean absolute error:")
        for name, guess in guesses.items():
            print(f"  {name:20} {np.abs(guess - truth).mean():.5f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
