"""`prevalens fit`, `quantify` and `inspect` as a user types them, one after the other."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from prevalens import __main__ as program
from prevalens.errors import InputError
from prevalens.model import Model
from prevalens.model.progress import Step


def run(*words: str | Path, **how: object) -> Result:
    done = CliRunner().invoke(program.cli, list(map(str, words)), catch_exceptions=False, **how)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("cli")
    for name, count in (("train", 60), ("may", 30), ("june", 60)):
        with (place / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["date", "text", "tags", "x", "y"])
            for i in range(count):
                x, y = i % 2, i // 2 % 2
                words = ["hello"] + ["alpha"] * x + ["beta"] * y
                tags = ";".join(["x"] * x + ["y"] * y)
                writer.writerow([f"2024-0{5 + i % 2}-03", " ".join(words), tags, x, y])
    run("fit", place / "train.csv", "-o", place / "m.prevalens", "--text", "text", "--tags", "tags",
        "--sep", ";", "--method", "lr+pacc")  # fmt: skip
    return place


def test_what_fit_says(folder: Path, tmp_path: Path) -> None:
    words = ["fit", folder / "train.csv", "--text", "text", "--labels", "x,y", "--method", "lr+pcc"]
    said = run(*words, "-o", tmp_path / "m.prevalens").stdout
    assert "Learnt 2 labels from 60 items" in said
    assert f"prevalens quantify {tmp_path / 'm.prevalens'} BATCH..." in said
    found = json.loads(run(*words, "-o", tmp_path / "m.prevalens", "--json").stdout)
    assert found["prevalence"] == {"x": 0.5, "y": 0.5}
    assert found["summary"]["method"] == "lr+pcc"
    assert Model.load(found["model"]).labels == ("x", "y")


def test_fit_tests_itself_on_items_that_it_holds_out(folder: Path, tmp_path: Path) -> None:
    words = ["fit", folder / "train.csv", folder / "june.csv", "--text", "text", "--labels", "x,y"]
    words += ["--method", "lr+pcc", "--holdout", "0.3", "-o", tmp_path / "m.prevalens"]
    said = run(*words).stdout
    assert "Tested on 36 items that were held out (drawn at random)" in said
    assert "this model is fitted on all of them" in said
    tested = json.loads(run(*words, "--json").stdout)["holdout"]
    assert tested["headline"] in said
    assert tested["reasons"][0] in said
    assert tested["n_items"] == 36


def test_standard_input(folder: Path, tmp_path: Path) -> None:
    content = (folder / "train.csv").read_bytes()
    target = tmp_path / "m.prevalens"
    run("fit", "-", "-o", target, "--text", "text", "--labels", "x", "--labels", "y",
        "--method", "lr+pcc", input=content)  # fmt: skip
    said = run("quantify", target, "-", "--interval", "0", input=content).stdout
    assert "standard input,x,60," in said


def test_time_budgets(folder: Path, tmp_path: Path) -> None:
    run("fit", folder / "train.csv", "-o", tmp_path / "m.prevalens", "--text", "text", "--labels",
        "x,y", "--method", "lr+pcc", "--time-budget", "1.5h")  # fmt: skip
    assert (tmp_path / "m.prevalens").exists()


def test_the_same_seed_gives_the_same_model_and_another_another(
    folder: Path, tmp_path: Path
) -> None:
    def estimates(seed: str, *options: str) -> str:
        model = tmp_path / "m.prevalens"
        run("fit", folder / "train.csv", "-o", model, "--text", "text", "--labels", "x,y",
            "--force", "--seed", seed, *options)  # fmt: skip
        return run("quantify", model, folder / "may.csv").stdout

    assert estimates("3", "--fast") == estimates("3", "--time-budget", "5s")
    named = ("--method", "lr+pacc")
    assert estimates("0", *named) == estimates("0", *named) != estimates("1", *named)


def test_the_stages_of_an_automatic_fit_are_shown(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["fit", folder / "may.csv", "-o", tmp_path / "m.prevalens", "--text", "text",
             "--labels", "x,y"]  # fmt: skip
    assert "logistic" not in run(*words).stderr
    shown: list[Step] = []

    @contextmanager
    def recorded() -> Iterator[Callable[[Step], None]]:
        yield shown.append

    monkeypatch.setattr("prevalens.cli.fit.progress_bar", recorded)
    run(*words)
    told = [step.detail for step in shown if step.stage == "fitting"]
    assert told[1] == "preparing items"
    assert "logistic regressions, fold 5 of 5" in told
    assert "choosing" in told


def test_a_fit_that_is_interrupted_writes_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(step: Step) -> None:
        if step.detail == "choosing":
            raise KeyboardInterrupt

    @contextmanager
    def impatient() -> Iterator[Callable[[Step], None]]:
        yield interrupt

    monkeypatch.setattr("prevalens.cli.fit.progress_bar", impatient)
    words = ["fit", folder / "may.csv", "-o", tmp_path / "m.prevalens", "--text", "text",
             "--labels", "x,y"]  # fmt: skip
    done = CliRunner().invoke(program.cli, list(map(str, words)))
    assert done.exit_code != 0
    assert list(tmp_path.iterdir()) == []


def test_inspect(folder: Path) -> None:
    said = run("inspect", folder / "m.prevalens").stdout
    for words in ("lr+pacc", "60 items, 2 labels", "train.csv", "50.00 %"):
        assert words in said
    found = json.loads(run("inspect", folder / "m.prevalens", "--json").stdout)
    assert found["columns"] == ["text"]
    assert found["provenance"]["rows"] == 60


def test_inspect_shows_some_labels_or_all(tmp_path: Path) -> None:
    Y = [[int(i % 50 != j) for j in range(50)] for i in range(60)]
    model = Model.fit([[float(i)] for i in range(60)], Y, method="lr+pcc")
    model.save(tmp_path / "m.prevalens")
    some = run("inspect", tmp_path / "m.prevalens").stdout
    assert "(40 of 50; --all shows all)" in some
    assert "label_49" in run("inspect", tmp_path / "m.prevalens", "--all").stdout


def test_times_from_fit_to_quantify(tmp_path: Path) -> None:
    rows = [
        f"2023-{1 + i // 25:02d}-{1 + i % 25:02d},{('alpha', 'beta')[i % 2]} number{i % 7},{i % 2}"
        for i in range(300)
    ]
    for name, lines in (("train", rows), ("later", rows[:60])):
        (tmp_path / f"{name}.csv").write_text("\n".join(["date,text,x", *lines]) + "\n")
    train, target = tmp_path / "train.csv", tmp_path / "m.prevalens"
    words = ["fit", train, "-o", target, "--text", "text", "--labels", "x", "--method", "lr+pcc"]
    said = run(*words, "--time", "date").stdout
    assert "In a backtest over 4 origins, estimates were off" in said
    # The column of the training is found again, without a word about it.
    done = run("quantify", target, tmp_path / "later.csv")
    assert "no time" not in done.stderr
    (tmp_path / "bare.csv").write_text("text\n" + "alpha number1\nbeta number2\n" * 40)
    assert "no time; intervals assume" in run("quantify", target, tmp_path / "bare.csv").stderr
    narrow = run(*words, "--id", "date", "--drift", "0").stdout
    assert "Intervals allow for no drift" in narrow


def test_times_that_are_refused_or_not_used(folder: Path, tmp_path: Path) -> None:
    words = ["fit", folder / "train.csv", "-o", tmp_path / "m.prevalens", "--text", "text",
             "--labels", "x,y", "--method", "lr+pcc"]  # fmt: skip
    done = run(*words, "--time", "date")
    assert done.stderr.count("The times of the items are not used") == 1
    for more, problem in (
        (["--time", "text"], "line 2: 'hello' in the column 'text' is no date"),
        (["--time", "date", "--drift", "0.1"], "Times measure the drift"),
        (["--drift", "7"], "drift must be a number from 0"),
        (["--date-form", "%Y"], "`date_form=` needs the column"),
    ):
        with pytest.raises(InputError) as error:
            CliRunner().invoke(
                program.cli,
                [*map(str, words), *more],
                catch_exceptions=False,
                standalone_mode=False,
            )
        assert problem in str(error.value)


def test_counts_of_a_labeller_are_corrected_in_two_commands(tmp_path: Path) -> None:
    for name, shift in (("labelled", 0), ("batch", 1)):
        with (tmp_path / f"{name}.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "llm_labels", "rules_bug", "rules_login", "human_labels"])
            for i in range(120):
                human = ["bug"] * (i % 4 <= shift) + ["login"] * (i % 5 == 0)
                # The labeller misses some bugs, and refuses some items.
                said = [f"{label}:0.{9 - i % 3}" for label in human if i % 7]
                answer = "refused" if i % 11 == 0 else ";".join(said)
                writer.writerow(
                    ["t", answer, int(i % 3 == 0), int("login" in human), ",".join(human)]
                )
    model = tmp_path / "m.prevalens"
    words = [
        "fit",
        tmp_path / "labelled.csv",
        "--tags",
        "human_labels",
        "-o",
        model,
        "--scores-tags",
    ]
    said = run(*words, "llm_labels", "--scores", "rules_*", "--method", "given+pacc")
    assert "Learnt 2 labels from 120 items" in said.stdout
    assert "scores of 2 labellers as given" in said.stdout
    assert "bug counts 21%, people 25%" in " ".join(said.stderr.split())
    shown = " ".join(run("inspect", model).stdout.split())
    assert "reads rules_bug, rules_login, llm_labels" in shown
    assert "labellers count" in shown
    page = tmp_path / "report.html"
    run("quantify", model, tmp_path / "batch.csv", "--html", page, "-o", tmp_path / "out.csv")
    assert "uncorrected" in page.read_text()
    with (tmp_path / "out.csv").open() as file:
        estimates = {row["label"]: float(row["prevalence"]) for row in csv.DictReader(file)}
    assert estimates["bug"] == pytest.approx(0.5, abs=0.06)
    assert estimates["login"] == pytest.approx(0.2, abs=0.03)
    summary = tmp_path / "batch.summary"
    run("summarise", model, tmp_path / "batch.csv", "-o", summary)
    again = json.loads(run("quantify", model, summary, "--json").stdout)
    assert estimates["bug"] == pytest.approx(
        next(row["prevalence"] for row in again["rows"] if row["label"] == "bug")
    )
    tested = ["evaluate", model, tmp_path / "batch.csv", "--tags", "human_labels"]
    report = json.loads(run(*tested, "--samples", "20", "--json").stdout)
    assert report["verdict"] in ("yes", "with care", "no")
