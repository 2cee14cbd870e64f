"""The training in figures, to JSON and back."""

from __future__ import annotations

import json

import pytest

from prevalens.errors import FormatError
from prevalens.model import Model, TrainingSummary


def test_to_json_and_back(model: Model) -> None:
    text = json.dumps(model.summary.to_dict())
    assert TrainingSummary.from_dict(json.loads(text)) == model.summary
    with pytest.raises(FormatError, match="the training summary lacks 'n_items'"):
        TrainingSummary.from_dict({})
