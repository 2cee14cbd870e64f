"""Correct the counts of a labeller with some hundred labels of people.

    python examples/own_scores.py [FOLDER]

The labeller is a set of rules, a few words per label; it stands for a language model or any other
service that names labels. Its answers and those of people are written as CSV files to FOLDER, so
that the same can be done without Python:

    prevalens fit labelled-300.csv --scores-tags llm_labels --text text \\
        --tags human_labels --sep ';'
    prevalens quantify model.prevalens months.csv --by month --html report.html
"""

from __future__ import annotations

import csv
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from prevalens.collection import Collection
from prevalens.datasets.tickets import tickets
from prevalens.model import fit_files, quantify_files

WORDS = {
    "billing": ("invoice", "charge", "bill", "payment", "receipt", "statement", "fee"),
    "delivery": ("parcel", "courier", "tracking", "shipment", "driver", "box", "packaging"),
    "refund": ("refund", "money", "credited", "reimburse", "return"),
    "login": ("password", "sign in", "login", "locked", "reset", "logs me out"),
    "bug": ("error", "crash", "broken", "freezes", "empty", "bug"),
    "slow": ("slow", "load", "timeout", "hangs", "minutes", "forever"),
    "cancel": ("cancel", "contract", "subscription", "renew", "close the account"),
    "praise": ("thank", "great", "love", "excellent", "friendly", "wonderful"),
    "wish": ("would be", "could you", "suggestion", "offer", "option"),
}


def answer(text: str) -> str:
    """The labels that the rules name, separated by semicolons."""
    lowered = text.lower()
    return ";".join(label for label, own in WORDS.items() if any(word in lowered for word in own))


def write(path: Path, items: Collection, rows: Iterable[int], *, labelled: bool) -> None:
    months = np.datetime_as_string(items.times, unit="M")
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["month", "text", "llm_labels", *(["human_labels"] if labelled else [])])
        for row in rows:
            people = ";".join(np.array(items.labels)[items.Y[row] == 1])
            cells = [months[row], items.X[row], answer(items.X[row])]
            table.writerow([*cells, people] if labelled else cells)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = tickets(n_train=3000, n_per_month=500)
    labels = data.train.labels
    months = np.datetime_as_string(data.test.times, unit="M")
    truth = np.array([data.test.Y[months == m].mean(axis=0) for m in np.unique(months)])
    write(folder / "months.csv", data.test, range(len(data.test.Y)), labelled=False)
    counted = np.array([[label in answer(t).split(";") for label in labels] for t in data.test.X])
    raw = np.array([counted[months == m].mean(axis=0) for m in np.unique(months)])
    print(f"counts of the rules: off by {100 * np.abs(raw - truth).mean():.1f} points")
    order = np.random.default_rng(0).permutation(len(data.train.Y))
    for n_labelled in (100, 300, 1000):
        path = folder / f"labelled-{n_labelled}.csv"
        write(path, data.train, order[:n_labelled], labelled=True)
        for text in (None, "text"):
            columns = {"scores_tags": ["llm_labels"], "text": text, "tags": "human_labels"}
            model = fit_files(path, sep=";", **columns)
            found = quantify_files(model, folder / "months.csv", by="month")
            own = [labels.index(label) for label in found.labels]
            error = 100 * np.abs(found.point - truth[:, own]).mean()
            holds = ((found.lower <= truth[:, own]) & (truth[:, own] <= found.upper)).mean()
            width = 100 * (found.upper - found.lower).mean()
            print(
                f"corrected with {n_labelled} labels of people{' and texts' if text else ''}: "
                f"off by {error:.1f} points; {holds:.0%} of the 90 % intervals hold, "
                f"{width:.0f} points wide"
            )
    print(f"\n{'last month':12}{'rules':>8}{'corrected':>11}{'90 % interval':>16}{'truth':>8}")
    for j, label in zip(own, found.labels, strict=True):
        k = found.labels.index(label)
        low, high = 100 * found.lower[-1, k], 100 * found.upper[-1, k]
        print(
            f"{label:12}{raw[-1, j]:8.0%}{found.point[-1, k]:11.0%}"
            f"{f'{low:.0f} to {high:.0f} %':>16}{truth[-1, j]:8.0%}"
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as name:
            main(Path(name))
