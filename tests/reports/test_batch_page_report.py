"""From a batch result to the report's data and file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from prevalens.cli.demo import DemoRun, run_demo
from prevalens.errors import InputError
from prevalens.reports.batch_page import report_html, report_of
from prevalens.reports.page import write_page


@pytest.fixture(scope="module")
def story() -> DemoRun:
    return run_demo(n_train=300, n_per_month=60)


def test_the_report_holds_what_the_result_holds(story: DemoRun) -> None:
    report = report_of(story.result, story.model, true=story.true, title="Tickets")
    assert report.batches == story.result.batches
    assert report.ordered
    np.testing.assert_array_equal(report.point, story.result.estimate.point)
    np.testing.assert_array_equal(report.lower, story.result.estimate.lower)
    assert report.level == 0.9
    assert report.drivers
    assert {drivers.batch for drivers in report.drivers} == {story.result.batches[-1]}
    assert report.provenance["method"].startswith("lr(C=10)+rq(pcc,ridge)")
    assert "300 items" in report.provenance["training"]
    assert all(isinstance(value, str) for value in report.provenance.values())


def test_without_a_model_there_are_no_drivers(story: DemoRun) -> None:
    report = report_of(story.result)
    assert report.drivers == ()
    assert report.true is None
    assert "<html" in report_html(story.result)


def test_a_page_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write_page(tmp_path / "page.html", "<p>ä</p>")
    assert (tmp_path / "page.html").read_text("utf-8") == "<p>ä</p>"
    with pytest.raises(InputError, match="there is no folder"):
        write_page(tmp_path / "no" / "page.html", "")
