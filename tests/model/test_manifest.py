"""The training in figures, to JSON and back."""

from __future__ import annotations

import json

import pytest

from prevalens.errors import FormatError
from prevalens.model import Model, TrainingSummary
from prevalens.model.manifest import DriftSummary


def test_to_json_and_back(model: Model) -> None:
    text = json.dumps(model.summary.to_dict())
    assert TrainingSummary.from_dict(json.loads(text)) == model.summary
    with pytest.raises(FormatError, match="the training summary lacks 'n_items'"):
        TrainingSummary.from_dict({})


def test_drift_in_words() -> None:
    default = DriftSummary(0.025)
    assert default.sentences == (
        "Intervals allow for drift: 1.5 points for a label of 10 %, 2.5 points for a label of 50 % "
        "(standard deviation, the default; times or groups of the training items would measure it)."
    )
    column = {"name": "day", "form": None, "numbers": False}
    found = DriftSummary(0.05, "backtest", column, "2023", "2024", "3 months", "Off by 1 point.")
    assert found.sentences.startswith("Off by 1 point. Intervals allow for drift: 3.0 points")
    assert "measured in the backtest, 3 months ahead" in found.sentences
    assert DriftSummary.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert DriftSummary().sentences == ""
    assert "between groups" in DriftSummary(0.05, "groups").sentences
