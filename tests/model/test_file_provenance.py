"""The birth certificate."""

from __future__ import annotations

from datetime import datetime

from prevalens import __version__
from prevalens.model.file import provenance


def test_what_made_it_and_when() -> None:
    found = provenance("lr+pcc", {"rows": 3})
    assert found["method"] == "lr+pcc"
    assert found["prevalens"] == __version__
    assert found["rows"] == 3
    assert datetime.fromisoformat(found["created"]).tzinfo is not None
