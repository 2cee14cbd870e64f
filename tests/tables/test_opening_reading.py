"""Settings that hold for several files."""

from __future__ import annotations

from pathlib import Path

from prevalens.tables.opening import Reading


def test_settings_reach_the_table(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes("a:é\n1:2\n".encode("cp1252"))
    table = Reading(delimiter=":", encoding="cp1252").open(path)
    assert table.columns == ("a", "é")
