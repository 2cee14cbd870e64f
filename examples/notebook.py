"""What one would do in a notebook: texts in, a table, charts and frames out.

    python examples/notebook.py [FOLDER]

writes FOLDER/month.png, FOLDER/months.png and FOLDER/report.html. The charts need
``pip install "prevalens[plot]"``, the frames ``pip install "prevalens[frames]"``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

from prevalens.cli.demo import run_demo
from prevalens.datasets.tickets import month_names, tickets
from prevalens.model import Model
from prevalens.model.evaluate import evaluate_model

mpl.use("Agg")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    data = tickets(800, 150, months=4)
    model = Model.fit(
        data.train.X, data.train.Y, labels=data.train.labels, method="lr(C=10)+rq(pcc,ridge)"
    )

    # One batch: a table with bars in a notebook, a frame, a chart beside the training prevalence.
    months = np.array(month_names(data.test_times))
    last = model.quantify(list(data.test.X[months == months[-1]]))
    print(last.to_frame().round(3).to_string(index=False))
    last.plot(reference=model.prevalence).figure.savefig(folder / "month.png")

    # Many batches: a row per month, a line per label.
    estimate = model.quantify(list(data.test.X), groups=months)
    print(estimate.to_frame("polars"))
    estimate.plot(labels=["delivery", "login"]).figure.savefig(folder / "months.png")

    # Should it be trusted? On labelled tickets it has not seen.
    found = evaluate_model(model, list(data.test.X), data.test.Y, n_samples=200)
    print(found.to_frame()[["label", "error", "coverage"]].round(3).to_string(index=False))

    # The demo, with the report as a file.
    (folder / "report.html").write_text(
        run_demo(n_train=400, n_per_month=80).html(), encoding="utf-8"
    )


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "notebook-example"))
