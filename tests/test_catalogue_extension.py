"""Parts of one's own: known by name, in experiments and in model files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from prevalens import catalogue, datasets, parse, register
from prevalens.aggregators import PCC, Aggregator
from prevalens.catalogue import (
    ENTRIES,
    fingerprints,
    load_parts,
    own_modules,
    own_types,
    unregister,
)
from prevalens.experiments import Cell, DataSource, MethodSpec, Plan, ProtocolSpec, Store, run_plan
from prevalens.experiments.cache import identity
from prevalens.model import Model
from prevalens.validation import InputError

EXAMPLE = Path(__file__).parents[1] / "examples" / "own_method.py"
PLAN = {
    "name": "own",
    "datasets": ["synthetic"],
    "protocols": [{"name": "natural", "size": 50, "n_samples": 20}],
    "methods": [{"expression": "lr+pcc"}, {"expression": "lr+stretched(factor=1)"}],
}


class Half(Aggregator):
    """One half, always."""

    code = "half"
    consumes = "posteriors"
    joint = False
    needs_labelled_scores = False

    def _fit(self, scores: Any, Y: Any) -> None:
        pass

    def _aggregate(self, scores: Any, samples: Any) -> Any:
        return np.full((len(samples), self.n_labels_), 0.5)


@pytest.fixture(autouse=True)
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test registers and imports is forgotten afterwards."""
    modules, path = set(sys.modules), list(sys.path)
    yield
    for code in list(catalogue._own):
        unregister(code)
    catalogue._checksum.cache_clear()
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture
def module(tmp_path: Path) -> Path:
    """The example under a name that no other test has imported."""
    path = tmp_path / f"own_{tmp_path.name.replace('-', '_')}.py"
    path.write_text(EXAMPLE.read_text("utf-8"))
    return path


def test_a_registered_part_can_be_named() -> None:
    assert register(Half) is Half
    data = datasets.synthetic(n_train=60, n_test=20, n_labels=3, random_state=0)
    quantifier = parse("lr+half").fit(data.train.X, data.train.Y)
    np.testing.assert_array_equal(quantifier.quantify(data.test.X), 0.5)
    assert quantifier.name == "lr+half"
    unregister("half")
    with pytest.raises(InputError, match="no aggregator called 'half'"):
        parse("lr+half")


def test_roles_are_seen_from_the_class() -> None:
    class Sorter(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
        code = "sorter"

    class Line(RegressorMixin, BaseEstimator):  # type: ignore[misc]
        code = "line"

    class Whole:
        code = "whole"

        def quantify_many(self) -> None: ...

    for part in (Sorter, Line, Whole, Half):
        register(part)
    roles = {code: ENTRIES[code].role for code in ("sorter", "line", "whole", "half")}
    assert roles == {
        "sorter": "classifier",
        "line": "regressor",
        "whole": "quantifier",
        "half": "aggregator",
    }


@pytest.mark.parametrize(
    ("part", "options", "sentence"),
    [
        (PCC, {}, "'pcc' is the name of a part of prevalens"),
        (Half, {"code": "a half"}, "'a half' cannot name Half"),
        (Half, {"code": "2"}, "'2' cannot name Half"),
        (Half, {"role": "judge"}, "role must be one of 'classifier'"),
        (lambda: None, {"code": "nothing"}, "cannot be seen from it; say register"),
        (lambda: None, {"role": "classifier"}, "has no name to be known by"),
        (3, {}, "takes a class or a function"),
    ],
)
def test_what_cannot_be_registered(part: Any, options: dict[str, str], sentence: str) -> None:
    before = dict(ENTRIES)
    with pytest.raises(InputError, match=sentence):
        register(part, **options)
    assert before == ENTRIES


def test_a_name_of_ones_own_can_be_given_anew() -> None:
    register(Half)

    @register(code="half", role="aggregator")
    def other() -> PCC:
        """Another."""
        return PCC()

    assert ENTRIES["half"].make is other
    unregister("half")
    with pytest.raises(InputError, match="no part of your own called 'half'"):
        unregister("half")


def test_results_are_bound_to_the_file(module: Path, tmp_path: Path) -> None:
    def keys() -> tuple[str, str, Any]:
        cells = Plan.from_dict(PLAN).cells()
        shared = identity(parse("lr+stretched").aggregator)
        return cells[0].key("data"), cells[1].key("data"), shared

    load_parts(str(module))
    assert own_modules() == (module.stem,)
    counted, stretched, shared = keys()
    # The part of an expression matters, not only its head.
    inside = Cell(
        DataSource("synthetic"),
        MethodSpec("x", "lr+rq(pcc,ridge)", {"aggregator__base": ("stretched",)}),
        ProtocolSpec("natural", "natural"),
        0,
    )
    assert "own" in inside._training()
    unregister("stretched")
    del sys.modules[module.stem]
    catalogue._checksum.cache_clear()
    module.write_text(module.read_text() + "# edited\n")
    load_parts(str(module))
    assert keys()[0] == counted
    assert keys()[1] != stretched
    assert keys()[2] != shared


def test_parts_of_the_package_have_no_fingerprint() -> None:
    register(Half)
    assert list(fingerprints(["lr", "half", "pcc"])) == ["half"]
    assert fingerprints(["lr", "pcc"]) == {}


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_plan_runs_with_a_method_of_ones_own(module: Path, tmp_path: Path, n_jobs: int) -> None:
    load_parts(str(module))
    summary = run_plan(Plan.from_dict(PLAN), Store(tmp_path), n_jobs=n_jobs, progress=False)
    assert (summary.computed, summary.failed) == (2, ())
    errors = [r.value for r in Store(tmp_path).records() if (r.metric, r.shift) == ("ae", "all")]
    assert errors[0] == pytest.approx(errors[1])  # factor 1 is PCC


def test_other_processes_cannot_see_a_notebook(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Half, "__module__", "__main__")
    monkeypatch.setattr("os.process_cpu_count", lambda: 2, raising=False)
    register(Half)
    with pytest.raises(InputError, match="put them into a module"):
        run_plan(
            Plan.from_dict(PLAN | {"methods": [{"expression": "lr+half"}]}),
            Store(tmp_path),
            n_jobs=2,
            progress=False,
        )


def test_models_hold_registered_classes_only_where_they_are_known(
    module: Path, tmp_path: Path
) -> None:
    load_parts(str(module))
    assert own_types() == (f"{module.stem}.Stretched",)
    data = datasets.synthetic(n_train=80, n_test=30, n_labels=3, random_state=0)
    model = Model.fit(data.train.X, data.train.Y, method="lr+stretched")
    model.save(tmp_path / "model")
    again = Model.load(tmp_path / "model")
    np.testing.assert_allclose(
        np.asarray(again.quantify(data.test.X)), np.asarray(model.quantify(data.test.X))
    )
    unregister("stretched")
    with pytest.raises(InputError, match="load its code first: prevalens --with FILE"):
        Model.load(tmp_path / "model").quantify(data.test.X)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("1 / 0", "cannot be imported: ZeroDivisionError"),
        ("def (", "cannot be imported: SyntaxError"),
        ("from prevalens import register\nregister(3)", "takes a class or a function"),
    ],
)
def test_a_file_that_fails_gets_a_sentence(tmp_path: Path, content: str, sentence: str) -> None:
    path = tmp_path / f"bad_{abs(hash(content))}.py"
    path.write_text(content)
    with pytest.raises(InputError, match=sentence):
        load_parts(str(path))


def test_a_file_or_module_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"There is no file nowhere\.py"):
        load_parts("nowhere.py")
    with pytest.raises(InputError, match="No module named 'nowhere_at_all'"):
        load_parts("nowhere_at_all")


def test_the_command_line_takes_code_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(EXAMPLE.read_text("utf-8"))
    command = [sys.executable, "-c", "from prevalens.__main__ import main; main()"]
    for name in ("mine.py", "mine"):
        done = subprocess.run(
            [*command, "--with", name, "methods", "stretched"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert "stretched(factor=1.5)" in done.stdout
    done = subprocess.run(
        [*command, "--with", "none.py", "methods"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("prevalens: There is no file none.py")
