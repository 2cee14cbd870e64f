"""Names that are loaded when they are first used."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

PACKAGES = ["prevalens", "prevalens.engines", "prevalens.model", "prevalens.tables"]


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_name_is_what_its_module_defines(name: str) -> None:
    package = importlib.import_module(name)
    assert set(dir(package)) == set(package.__all__)
    for public in package.__all__:
        found = getattr(package, public)
        if inspect.ismodule(found):
            assert found.__name__ == f"{name}.{public}"
        elif callable(found):
            # Not a module of that name, such as `prevalens.model.quantify`.
            assert found.__module__.startswith("prevalens.")
            assert found.__name__ == public


@pytest.mark.parametrize("name", PACKAGES)
def test_a_name_that_is_not_there(name: str) -> None:
    package = importlib.import_module(name)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing


@pytest.mark.parametrize("name", PACKAGES)
def test_nothing_is_loaded_before_it_is_used(name: str) -> None:
    code = f"import sys, {name}; sys.exit('sklearn' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
