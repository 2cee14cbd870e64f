"""What commands load at the first call."""

from __future__ import annotations

from prevalens.cli import calls


def test_every_name_is_what_its_module_defines() -> None:
    for name in calls.__all__:
        found = getattr(calls, name)
        assert found is not None
        assert getattr(found, "__name__", name) == name
