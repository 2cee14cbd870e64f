"""Draw the figures of the README, the concepts and the datasets: ``python docs/draw_figures.py``.

They are written to ``docs/images/figure-*.svg`` and follow the reader's light or dark setting. Most
show generated data. Those of the paper's datasets, label prevalences and shifts, come last and need
the files of the datasets; ``python docs/draw_figures.py datasets`` draws these alone.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from markupsafe import Markup

from prevalens import evaluate, parse
from prevalens.cli.demo import DemoRun, run_demo
from prevalens.datasets import Dataset, load, synthetic
from prevalens.evaluation import Evaluation
from prevalens.metrics import shift
from prevalens.protocols import MLAPP, Natural
from prevalens.reports import svg
from prevalens.reports.batch_charts import share_text
from prevalens.reports.charts import (
    diagonal,
    error_against_shift,
    prevalence_histogram,
    shift_distribution,
)
from prevalens.reports.grid import dataset_title
from prevalens.reports.theme import colour, standalone
from prevalens.studies.moreo2023.plan import AT_HAND
from prevalens.types import Floats

IMAGES = Path(__file__).parent / "images"
LABEL = "login"
#: The paper's datasets, with the release of Tmc2007_500 that it used.
DATASETS = [name for name in AT_HAND if name != "tmc2007_500"]


def main() -> None:
    """Write every figure."""
    if "datasets" not in sys.argv[1:]:
        demo = run_demo()
        found = {
            "trend": trend(demo),
            "errors": errors(demo),
            "intervals": intervals(demo),
            "groups": groups(),
            "choosing": choosing(),
            **of_shifts(),
        }
        write(found)
    write(of_datasets())


def write(found: dict[str, str]) -> None:
    """Write figures by name."""
    for name, drawn in found.items():
        (IMAGES / f"figure-{name}.svg").write_text(standalone(drawn) + "\n", "utf-8")


def of_datasets() -> dict[str, str]:
    """Prevalences of labels, and shifts of samples, of the paper's datasets."""
    titles = {
        "prevalences": "How frequent labels are in the training items, by dataset",
        "shifts": "How far samples move under ML-APP and under uniform sampling, by dataset",
    }
    drawn = [panels_of(name) for name in DATASETS]
    return {name: panels(title, [one[name] for one in drawn]) for name, title in titles.items()}


def panels_of(name: str) -> dict[str, str]:
    """The two charts of a dataset."""
    data, title = load(name), dataset_title(name)
    shifts = shifts_of(data, 21 if name == "delicious" else 101)
    return {
        "prevalences": prevalence_histogram(data.train.prevalence, title=title),
        "shifts": shift_distribution(shifts, title=title),
    }


def shifts_of(data: Dataset, grid: int) -> dict[str, Floats]:
    """Shifts of the paper's test samples, and of as many that are drawn uniformly."""
    steered = MLAPP(grid=grid, more_than=10_000).draw(data.test.Y, 0)
    uniform = Natural(n_samples=len(steered)).draw(data.test.Y, 0)
    moved, still = (
        shift(data.train.prevalence, samples.mean(data.test.Y)) for samples in (steered, uniform)
    )
    low = np.mean(still < moved.min() + (moved.max() - moved.min()) / 3)
    return {"ML-APP": moved, f"uniform sampling ({low:.0%} low)": still}


def panels(title: str, charts: list[str], width: float = 480.0, height: float = 340.0) -> str:
    """Charts in two columns as one figure."""
    placed = (
        svg.element(
            "svg",
            Markup(chart),
            x=(width + 20) * (i % 2),
            y=height * (i // 2),
            width=width,
            height=height,
        )
        for i, chart in enumerate(charts)
    )
    return svg.document(2 * width + 20, height * ((len(charts) + 1) // 2), title, *placed)


def months_frame(title: str, names: list[str], top: float, n_months: int) -> svg.Frame:
    """The plane of a chart over months, in percent."""
    return svg.Frame(title, (1.0, float(n_months)), (0.0, top), names=names)


def draw_months(frame: svg.Frame, lines: list[np.ndarray], y_name: str, *below: str) -> str:
    """A chart with a line per series over the months."""
    months = np.arange(1.0, len(lines[0]) + 1)
    drawn = (
        svg.path(
            zip(frame.x.all(months), frame.y.all(line), strict=True),
            **svg.line_style(number),
        )
        for number, line in enumerate(lines)
    )
    ticks = {float(month): f"{month:.0f}" for month in months}
    return frame.draw(*below, *drawn, x_name="month of 2026", y_name=y_name, x_ticks=ticks)


def trend(demo: DemoRun) -> str:
    """One label of the demo over the months: estimate, truth, and counted answers."""
    column = demo.model.labels.index(LABEL)
    result = demo.result
    lines = [100 * values[:, column] for values in (result.point, demo.true, demo.counted)]
    names = ["prevalens, with 90 % intervals", "truth", "classifier's answers counted"]
    title = f"Share of tickets about {LABEL}, by month"
    frame = months_frame(title, names, 80.0, len(lines[0]))
    band = svg.band(
        frame.x.all(np.arange(1.0, len(lines[0]) + 1)),
        frame.y.all(100 * result.lower[:, column]),
        frame.y.all(100 * result.upper[:, column]),
        fill=svg.line_style(0)["stroke"],
        fill_opacity=0.18,
    )
    return draw_months(frame, lines, "percent of tickets", band)


def errors(demo: DemoRun) -> str:
    """The mean error over all labels by month, of three ways to answer."""
    found = demo.errors()
    lines = [100 * values for values in found.values()]
    title = "Mean absolute error over nine labels, by month"
    frame = months_frame(title, list(found), 20.0, len(lines[0]))
    return draw_months(frame, lines, "percentage points")


def intervals(demo: DemoRun) -> str:
    """Estimates of the last month with intervals, the truth, and the training prevalence."""
    x = svg.Scale(0.0, 0.8, 90.0, 460.0)
    title = "The last month: estimates (dots), 90 % intervals, truth (crosses)"
    return svg.row_chart(title, x, interval_rows(demo, x), share_text, 480.0)


def interval_rows(demo: DemoRun, x: svg.Scale) -> Iterator[str]:
    """A row per label."""
    last = len(demo.true) - 1
    for number, name in enumerate(demo.model.labels):
        y = 46.0 + 24 * number
        low, point, high = (
            x(float(values[last, number]))
            for values in (demo.result.lower, demo.result.point, demo.result.upper)
        )
        truth = x(float(demo.true[last, number]))
        cross = f"M{truth - 4:.1f} {y - 4:.1f}l8 8m0 -8l-8 8"
        yield svg.element(
            "g",
            svg.label(name, 82.0, y + 4, text_anchor="end"),
            svg.line(low, y, high, y, stroke=colour("series-1"), stroke_width=3),
            svg.element("circle", cx=point, cy=y, r=5, fill=colour("series-1")),
            svg.element("path", d=cross, stroke=colour("series-2"), stroke_width=2),
        )


def of_shifts() -> dict[str, str]:
    """Errors by shift, and estimated against true prevalences, on generated data."""
    names = {"naive": "training prevalence", "lr+cc": "classify and count", "lr+pcc": "lr+pcc"}
    names |= {"lr+rq(pcc,ridge)": "lr+rq(pcc,ridge)", "lr+mixture": "lr+mixture"}
    found = {names[method]: evaluated(method) for method in names}
    curves = {name: (one.shift, one.errors("ae")) for name, one in found.items()}
    shown = ("classify and count", "lr+mixture")
    return {
        "shift": error_against_shift(curves, band=None, n_bins=10),
        "mixture": diagonal(
            {name: (found[name].true, found[name].estimated) for name in shown}, percent=True
        ),
    }


def evaluated(method: str) -> Evaluation:
    """A method on samples whose label mix has moved."""
    data = synthetic(n_train=1000, n_test=2000, n_labels=6, random_state=0)
    quantifier = parse(method).set_params(uncertainty=None)
    quantifier.fit(data.train.X, data.train.Y, labels=data.train.labels)
    return evaluate(quantifier, data.test, MLAPP(more_than=2000), random_state=0)


#: Questions of the guide, in order, and the method for those who answer yes.
QUESTIONS = {
    "Fewer than 20 labelled items with the label?": "lr+pcc",
    "No way to train a classifier?": "rq(hdx,ridge)",
    "Does the label mix hardly move?": "lr+pcc",
    "Labels occur together, some hundred items?": "lr+rq(pcc,ridge)",
    "Labels occur together, a few thousand?": "stack(lr)+rq(pcc,ridge)",
    "Does the classifier predict labels well?": "lr+pacc",
}
OTHERWISE = "lr+mixture, or no --method"


def choosing() -> str:
    """The questions as a decision tree: yes leads to a method, no to the next question."""
    title = "Which method when, as a decision tree"
    steps = [step(row, *pair) for row, pair in enumerate(QUESTIONS.items())]
    bottom = 40.0 + 56 * len(QUESTIONS)
    last = box(0.0, bottom, 290.0, OTHERWISE, raised=True)
    return svg.document(520.0, bottom + 44, title, svg.heading(title), *steps, last)


def step(row: int, question: str, method: str) -> str:
    """One question, the way to its method, and the way to the next."""
    top = 40.0 + 56 * row
    ways = (svg.line(290.0, top + 18, 350.0, top + 18), svg.line(30.0, top + 36, 30.0, top + 56))
    return svg.element(
        "g",
        svg.element("g", *ways, stroke=colour("muted")),
        svg.label("yes", 320.0, top + 13, text_anchor="middle", fill=colour("muted")),
        svg.label("no", 38.0, top + 51, fill=colour("muted")),
        box(0.0, top, 290.0, question),
        box(350.0, top, 170.0, method, raised=True),
    )


def box(left: float, top: float, width: float, text: str, *, raised: bool = False) -> Markup:
    """A text in a box; methods are raised."""
    fill, weight = (colour("raised"), 600) if raised else ("none", 400)
    frame = svg.element(
        "rect", x=left, y=top, width=width, height=36.0, rx=6, fill=fill, stroke=colour("line")
    )
    middle = left + width / 2
    written = svg.label(text, middle, top + 23, text_anchor="middle", font_weight=weight)
    return svg.element("g", frame, written)


def groups() -> str:
    """The four groups of methods, as a table of two rows and two columns."""
    title = "Four groups of methods, with examples"
    cells = {
        (0, 0): ("BC+BA", "lr+pacc"),
        (1, 0): ("MLC+BA", "stack(lr)+pacc"),
        (0, 1): ("BC+MLA", "lr+rq(pcc,ridge)"),
        (1, 1): ("MLC+MLA", "stack(lr)+rq(pcc,ridge)"),
    }
    heads = [
        ("each label alone (BC)", "all labels (MLC)"),
        ("label alone (BA)", "all labels (MLA)"),
    ]
    return svg.document(
        480.0,
        240.0,
        title,
        svg.heading(title),
        *(svg.label(heads[0][i], 230.0 + 165 * i, 62.0, text_anchor="middle") for i in (0, 1)),
        *(svg.label(heads[1][j], 136.0, 112.0 + 84 * j, text_anchor="end") for j in (0, 1)),
        svg.label("classifier:", 148.0, 42.0, fill=colour("muted")),
        svg.label("aggregator:", 136.0, 84.0, text_anchor="end", fill=colour("muted")),
        *(cell(place, *texts) for place, texts in cells.items()),
    )


def cell(place: tuple[int, int], group: str, example: str) -> str:
    """One group with an example."""
    left, top = 150.0 + 165 * place[0], 74.0 + 84 * place[1]
    middle = left + 80
    return svg.element(
        "g",
        svg.element(
            "rect", x=left, y=top, width=160.0, height=78.0, rx=6,
            fill=colour("raised"), stroke=colour("line"),
        ),
        svg.label(group, middle, top + 34, text_anchor="middle", font_size=15, font_weight=600),
        svg.label(example, middle, top + 56, text_anchor="middle", fill=colour("muted")),
    )  # fmt: skip


if __name__ == "__main__":
    main()
