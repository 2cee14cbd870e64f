"""The code of README and documentation runs: every command and every block of Python.

Each block is run in a copy of a folder that has all files which the pages name, with few items.
"""

from __future__ import annotations

import csv
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import prevalens
from prevalens import catalogue, parse
from prevalens.__main__ import cli
from prevalens.datasets.tickets import tickets, write_tickets
from prevalens.model import fit_files
from prevalens.model.summarise import summarise_files

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
#: Commands at the beginning of a line, after the prompt of a site, or after a pipe.
COMMAND = re.compile(r"^(?:\w*\$ |.*\| )?prevalens (?!: )(.*)$", re.MULTILINE)
#: Commands that take long or do not end; each has tests of its own.
ELSEWHERE = ("demo", "serve", "paper", "datasets --table")
#: Pages whose Python is run by test_docs.py or test_readme.py, with a look at what it gives.
PYTHON_ELSEWHERE = {
    "README.md",
    "concepts/groups.md",
    "develop/add-a-method.md",
    "start/five-minutes.md",
    "uncertainty.md",
}
#: What the pages call by a name of another machine or by a large dataset.
HERE = {
    "s3://tickets/": "tickets/parquet/",
    "tickets/*.parquet": "tickets/parquet/*.parquet",
    "/shared/2026/*.parquet": "2026-*.parquet",
    "--scheduler local --jobs 4": "--scheduler tcp://host:8786",
    "--scheduler local": "--scheduler tcp://host:8786",
    "n_jobs=2": "n_jobs=1",
    'text="text", tags="tags"': 'text="text", tags="tags", method="lr+pcc"',
    "texts, label_sets": 'texts, label_sets, method="lr+pcc"',
    'sheet.write("to_label.csv")': 'sheet.write("to_label.csv"); fill_in(Path("to_label.csv"))',
    '("1970", "1985", "1995", "2005")': '("1985",)',
    "examples/plan.toml": "plan.toml",
    **{f"--jobs {number}": "--jobs 1" for number in (2, 4, 8)},
    "model.fit(news.train.X, news.train.Y)": "model.fit(news.train.X[:99], news.train.Y[:99, :1])",
}
SCHEDULER = "tcp://host:8786"
#: Few items need no choice of a method.
SHORTER = {
    "fit": ["--method", "lr+pcc"],
    "compare": ["--methods", "naive;lr+pcc", "--folds", "2"],
    "watch": ["--once"],
    "evaluate": ["--samples", "20"],
    "plan": ["--method", "lr+pcc"],
}
PLAN = """
name = "first"
datasets = ["synthetic"]
[[protocols]]
name = "natural"
n_samples = 5
[[methods]]
expression = "lr+pcc"
"""


def blocks(page: Path) -> list[tuple[str, str]]:
    """Language and text of the blocks of code."""
    return BLOCK.findall(page.read_text("utf-8"))


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix().removeprefix("docs/")


def commands(text: str) -> list[str]:
    return [line for line in COMMAND.findall(text) if not line.startswith(ELSEWHERE)]


SHELL = [
    pytest.param(text, id=f"{name_of(page)}-{number}")
    for page in PAGES
    for number, (language, text) in enumerate(blocks(page))
    if language in ("", "sh", "console") and commands(text)
]
PYTHON = [
    page
    for page in PAGES
    if name_of(page) not in PYTHON_ELSEWHERE and any(kind == "python" for kind, _ in blocks(page))
]


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages name."""
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("pages")
    write_tickets(tickets(220, 30, months=5), folder / "tickets")
    rng = np.random.default_rng(0)
    with chdir(folder):
        _write_training(rng)
        _write_batches(rng)
        _write_counts()
        _write_formats()
        Path("plan.toml").write_text(PLAN, "utf-8")
        shutil.copy(ROOT / "examples" / "own_method.py", "my_methods.py")
        model = fit_files("train.csv", text="text", tags="tags", method="lr+pcc")
        model.save("model.prevalens")
        for name, source in (("north", "2026-01"), ("south", "2026-02"), ("2026", "2026")):
            summarise_files(model, f"{source}.csv", by_time="date").save(f"{name}.summary")
    return folder


def _write_training(rng: np.random.Generator) -> None:
    rows: list[dict[str, Any]] = rows_of(Path("tickets/train.csv"))
    for row in rows:
        row["tags"] = row["tags"].replace(";", ",")
        row |= {"age": rng.integers(20, 80), "ward": rng.choice(["north", "south"])}
        row |= {
            "llm_labels": row["tags"].replace(",", ";"),
            "human_labels": row["tags"].replace(",", ";"),
        }
        scores = rng.random(2).round(2)
        row |= dict(zip(("p_a", "p_b"), scores, strict=True))
        row |= dict(zip(("y_a", "y_b"), (scores > rng.random(2)).astype(int), strict=True))
    for name in ("train.csv", "labelled.csv", "pilot.csv"):
        write_rows(Path(name), rows)
    np.save("train.npy", rng.normal(size=(len(rows), 4)))


def _write_batches(rng: np.random.Generator) -> None:
    pd = pytest.importorskip("pandas")
    whole = []
    for path in sorted(Path("tickets/months").glob("*.csv")):
        rows: list[dict[str, Any]] = rows_of(path)
        for row in rows:
            site = rng.choice(["north", "south"])
            row |= {"month": path.stem, "discharged": row["date"], "llm_labels": "login"}
            row |= {"country": site, "region": site, "ward": site, "age": 50}
            row |= {"p_a": 0.5, "p_b": 0.2}
        for place in (".", "months", "letters", "inbox"):
            write_rows(Path(place, path.name), rows)
        pd.DataFrame(rows).to_parquet(f"{path.stem}.parquet")
        Path("vectors").mkdir(exist_ok=True)
        np.save(Path("vectors", path.stem), rng.normal(size=(len(rows), 4)))
        whole += rows
    for name in ("2026.csv", "big.csv", "months.csv", "batch.csv", "may.csv", "june.csv"):
        write_rows(Path(name), whole)
    pd.DataFrame(whole).to_json("tickets.jsonl", orient="records", lines=True)
    Path("tickets/parquet").mkdir()
    for name in ("tickets/parquet/all.parquet", "archive.parquet"):
        pd.DataFrame(whole).to_parquet(name)


def _write_counts() -> None:
    tests = [{"flu": +(i % 3 == 0), "rsv": +(i % 5 == 0), "region": "ab"[i % 2]} for i in range(40)]
    write_rows(Path("tests.csv"), tests)
    write_rows(Path("counts.csv"), [{"label": "flu", "positive": 23, "n": 150}])
    rates = {"sensitivity": "0.9", "specificity": "0.95"}
    write_rows(Path("rates.csv"), [{"label": name, **rates} for name in ("flu", "rsv")])


def _write_formats() -> None:
    pd = pytest.importorskip("pandas")
    texts = pd.DataFrame({"body": ["my parcel", "my bill"], "topics": ["a;b", "b"]})
    texts.to_csv("tickets.csv", index=False)
    texts.assign(topics=texts["topics"].str.split(";")).to_json(
        "tickets.jsonl.gz", orient="records", lines=True
    )
    numbers = pd.DataFrame({"age": [40, 50, 60], "income": [1, 2, 3], "icu": [0, 1, 1]})
    numbers.assign(dialysis=[1, 0, 1]).to_parquet("patients.parquet")
    numbers.assign(q_a=[1, 0, 1], q_b=[0, 1, 1]).to_csv("survey.tsv", sep="\t", index=False)
    head = "@relation 'enron: -C 1'\n@attribute a {0,1}\n@attribute x numeric\n@data\n"
    Path("enron.arff").write_text(f"{head}1,0.5\n0,1\n", "utf-8")
    Path("train.svm").write_text("3,17 1:0.5 8:1\n3 2:1\n", "utf-8")
    for label in ("billing", "login"):
        Path("archive", label).mkdir(parents=True)
        Path("archive", label, "1.txt").write_text("some text", "utf-8")


@pytest.fixture
def workshop(template: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the folder, as the working directory."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    with chdir(tmp_path):
        yield tmp_path


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster whose workers are threads."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0"
    ) as cluster:
        yield cluster.scheduler_address


def here(text: str, request: pytest.FixtureRequest) -> str:
    """The text, with names of this machine."""
    for name, own in HERE.items():
        text = text.replace(name, own)
    if SCHEDULER in text:
        text = text.replace(SCHEDULER, request.getfixturevalue("scheduler"))
    return text


def fill_in(path: Path) -> None:
    """Do what a person would do who was asked to label items: answer every question."""
    if path.exists():
        rows = rows_of(path)
        write_rows(path, [{key: cell or "1" for key, cell in row.items()} for row in rows])


@pytest.mark.slow
@pytest.mark.usefixtures("workshop")
@pytest.mark.parametrize("text", SHELL)
def test_commands_run(text: str, request: pytest.FixtureRequest) -> None:
    try:
        for line in commands(here(text, request)):
            run_command(shlex.split(line, comments=True))
            fill_in(Path("to_label.csv"))
    finally:
        if "stretched" in catalogue.ENTRIES:
            catalogue.unregister("stretched")


def run_command(words: list[str]) -> None:
    more = SHORTER.get(words[2] if words[0] == "--with" else words[0], [])
    if any(word.startswith("--scores") for word in words):
        more = ["--method", "given+pcc"] if "--method" in more else more
    words += [] if set(more) & set(words) else more
    stdin = Path("tickets.jsonl").read_text("utf-8") if "-" in words else None
    result = CliRunner().invoke(cli, words, input=stdin)
    assert result.exit_code == 0, (words, result.output, result.exception)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::prevalens.errors.PrevalensWarning")
@pytest.mark.parametrize("page", PYTHON, ids=name_of)
def test_python_runs(page: Path, workshop: Path, request: pytest.FixtureRequest) -> None:
    if name_of(page) == "datasets.md":
        request.getfixturevalue("data_home")
    names = given_names()
    for kind, text in blocks(page):
        # test_docs.py runs the other blocks of this page; test_spark.py those with Spark.
        known = "read_plan" in text if name_of(page) == "experiments.md" else "spark" not in text
        if kind == "python" and known:
            exec(compile(here(text, request), name_of(page), "exec"), names)


def given_names() -> dict[str, Any]:
    """What pages take as given: items, labels and scores of the reader."""
    data = tickets(120, 60, months=1)
    X = np.random.default_rng(0).random((len(data.train.Y), 9))
    return {
        "Quantifier": lambda: parse("lr+pcc"),
        **{"prevalens": prevalens, "fill_in": fill_in, "Path": Path},
        **{"X": X, "Y": data.train.Y, "scores": X, "scores_of_batch": X[:50]},
        **{"texts": list(data.train.X), "label_sets": data.train.Y},
        **{"new_texts": list(data.test.X), "labels_of_rows": data.test.Y[:50]},
        **{"january": list(data.test.X[:30]), "february": list(data.test.X[30:])},
    }


def test_no_block_of_python_is_forgotten() -> None:
    with_code = {
        name_of(page) for page in PAGES if any(kind == "python" for kind, _ in blocks(page))
    }
    assert with_code == {name_of(page) for page in PYTHON} | PYTHON_ELSEWHERE


def test_most_pages_with_commands_are_found() -> None:
    assert len(SHELL) > 20
    assert sum(len(commands(param.values[0])) for param in SHELL) > 40
