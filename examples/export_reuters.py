"""Write Reuters-21578 as the CSV files an analyst would have: labelled stories, and later ones.

    python examples/export_reuters.py FOLDER

writes FOLDER/train.csv (9,603 stories with their topics) and FOLDER/later.csv (3,299 stories with
their dates; the topics are there too, to compare with). Then:

    prevalens fit FOLDER/train.csv -o reuters.prevalens --text text --tags topics --sep ' '
    prevalens quantify reuters.prevalens FOLDER/later.csv --by-time date --freq W
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import numpy as np

from prevalens import Collection, datasets


def write(path: Path, stories: Collection, times: np.ndarray) -> None:
    """One row per story: date, text, topics."""
    names = np.array(stories.labels, dtype=object)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["date", "text", "topics"])
        for text, row, time in zip(stories.X, stories.Y, times, strict=True):
            day = "" if np.isnat(time) else str(time)[:10]
            writer.writerow([day, text, " ".join(names[row == 1])])


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = datasets.load("reuters21578", text=True)
    write(folder / "train.csv", data.train, data.train_times)
    write(folder / "later.csv", data.test, data.test_times)
    print(f"{data.train.n_items} and {data.test.n_items} stories in {folder}.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "reuters"))
