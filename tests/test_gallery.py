"""The scripts of the gallery run and find what their pages say; here with less data."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from prevalens import catalogue

SITE = Path(__file__).parents[1] / "docs" / "site"
Names = dict[str, Any]
Run = Callable[..., Names]


@pytest.fixture
def gallery(monkeypatch: pytest.MonkeyPatch) -> Any:
    pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(str(SITE))
    return importlib.import_module("gallery")


@pytest.fixture
def run(gallery: Any) -> Run:
    """Run a script; every figure must have a description and follow the theme."""

    def run_script(script: str, **parameters: Any) -> Names:
        names, done = gallery.run(gallery.SCRIPTS / f"{script}.py", **parameters)
        figures = [figure for _, output in done for figure in output.figures]
        assert figures
        for figure in figures:
            root = ElementTree.fromstring(figure)
            assert root.get("role") == "img"
            assert len(str(root.get("aria-label"))) > 40
            # Every colour is the default of a variable, whose value depends on the theme.
            assert len(re.findall(r"#[0-9a-f]{6}", figure)) == figure.count("var(--pv-") > 5
        return names

    return run_script


def test_a_first_estimate(run: Run) -> None:
    names = run("first_estimate", n_train=250, n_batch=150)
    estimate, truth = names["estimate"], names["truth"]
    kept = names["quantifier"].prevalence_
    assert np.abs(estimate.point - truth).mean() < np.abs(kept - truth).mean()
    assert names["inside"].mean() > 0.7


def test_tickets_by_month(run: Run) -> None:
    names = run("by_month", n_train=700, n_per_month=120, months=5)
    assert names["error"] < names["kept"] / 1.5
    assert names["result"].batches == tuple(f"2026-0{month}" for month in range(1, 6))
    moved = names["result"].moved
    assert moved.any()
    assert (moved * np.sign(names["truth"] - names["result"].training) >= 0).all()


def test_a_backtest_widens_the_intervals_of_far_batches(run: Run) -> None:
    names = run("drift_and_backtest", n_train=1200, n_per_month=100)
    widths = {name: names[name].upper - names[name].lower for name in ("fixed", "grown")}
    assert widths["grown"][-1].mean() > 1.1 * widths["fixed"][-1].mean()
    assert widths["grown"][-1].mean() > widths["grown"][0].mean()
    assert names["coverage"](names["grown"]) > names["coverage"](names["fixed"])


def test_a_few_labels_are_better_than_either_alone(run: Run) -> None:
    names = run("few_labels", n_train=1000, n_batch=600, repeats=12)
    assert names["of_both"] < min(names["of_labels"], names["of_model"])


def test_the_counts_of_a_labeller_are_corrected(run: Run) -> None:
    names = run("own_scores", n_people=300, n_month=200)
    raw = np.abs(names["counted"] - names["true"]).mean()
    assert np.abs(names["corrected"].point - names["true"]).mean() < 0.6 * raw
    assert names["inside"].mean() > 0.75


def test_a_method_of_ones_own(run: Run) -> None:
    try:
        names = run("own_method", n_items=800, n_samples=400)
    finally:
        catalogue.unregister("half")
    assert names["own"].name == "lr+half"
    assert names["errors"]["lr+half"] < names["errors"]["lr+cc"]


def test_settings_and_a_plan(run: Run) -> None:
    names = run("model_selection", n_train=400, grid=5, repeats=2)
    assert (names["outcome"].computed, names["again"].computed) == (10, 0)
    assert names["errors"]["ml-app", "lr+rq(pcc,ridge)"] < names["errors"]["ml-app", "lr+cc"]
    losses = -names["search"].cv_results_["mean_test_score"]
    chosen = names["search"].cv_results_["params"][int(losses.argmin())]
    assert chosen == names["search"].best_params_


# Batches of 40 items may alarm by chance.
@pytest.mark.filterwarnings("ignore::prevalens.uncertainty.goodness_of_fit.MisfitWarning")
def test_a_cluster_computes_what_one_process_does(run: Run) -> None:
    distributed = pytest.importorskip("distributed")
    # Threads instead of processes, which take seconds to start.
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0"
    ) as cluster:
        names = run(
            "many_machines",
            n_train=300,
            n_per_month=40,
            months=3,
            scheduler=cluster.scheduler_address,
        )
    assert names["summary"].n_items == 120
    for found in (names["one_process"], names["total"]):
        np.testing.assert_array_equal(found.point, names["estimate"].point)
        np.testing.assert_array_equal(found.lower, names["estimate"].lower)


def test_every_script_is_tested_and_has_a_place_in_the_site(gallery: Any) -> None:
    scripts = {path.stem for path in gallery.SCRIPTS.glob("*.py")}
    assert len(scripts) >= 8
    assert all(f'"{script}",' in Path(__file__).read_text("utf-8") for script in scripts)
    assemble = importlib.import_module("assemble")
    assert set(assemble.SECTIONS["gallery"]["pages"]) == scripts


def test_a_page_has_code_output_and_figure(gallery: Any, tmp_path: Path) -> None:
    script = tmp_path / "small.py"
    script.write_text(
        "# %% [markdown]\n# # Small\n#\n# Text.\n\n"
        '# %% tags=["parameters"]\nn = 3\n\n'
        "# %%\nfrom matplotlib import pyplot as plt\nprint('<n>', n)\nn + 1\n\n"
        '# %% alt="A line from 0 to 1"\nplt.plot([0, 1])\nplt.gca().set_title("<T>")\n',
        "utf-8",
    )
    page = gallery.page(script, "source.py")
    assert page.startswith("# Small\n\nText.")
    assert "```text\n<n> 3\n4\n```" in page
    assert page.count('<svg role="img" aria-label="A line from 0 to 1"') == 1
    assert page.endswith("(source.py)\n")
    assert gallery.run(script, n=5)[1][2][1].text == "<n> 5\n6\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = 1\n# %%\n", "lines before its first cell"),
        ("# %%\nfrom matplotlib import pyplot as plt\nplt.plot([0, 1])\n", "no description"),
        ('# %% tags=["parameters"]\nm = 1\n', "no parameter n"),
    ],
)
def test_faulty_scripts_are_refused(
    gallery: Any, tmp_path: Path, content: str, message: str
) -> None:
    script = tmp_path / "faulty.py"
    script.write_text(content, "utf-8")
    with pytest.raises(ValueError, match=message):
        gallery.run(script, n=1)
