"""The README's Python runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from prevalens import PrevalenceEstimate

README = Path(__file__).parents[1] / "README.md"


def test_the_code_of_the_readme_runs() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {"months": np.arange(2000) % 3}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    estimate = names["quantifier"].quantify(names["data"].test.X)  # type: ignore[attr-defined]
    assert isinstance(estimate, PrevalenceEstimate)
    assert estimate.labels == names["data"].train.labels  # type: ignore[attr-defined]


def test_the_two_commands_are_targets() -> None:
    makefile = README.with_name("Makefile").read_text("utf-8")
    for target in ("demo", "test"):
        assert f"make {target}" in README.read_text("utf-8")
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)
