"""Models of scores that labellers gave: from files to estimates, and what is refused."""

import csv
import json
import re
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from prevalens import Quantifier
from prevalens.aggregators import PCC
from prevalens.classifiers import Given
from prevalens.errors import FormatError, InputError, PrevalensWarning
from prevalens.model import Model, compare_files, evaluate_files, fit_files, quantify_files

LABELS = ["billing", "login", "bug"]
#: A method that is fitted quickly, as no intervals are prepared.
QUICK = Quantifier(Given(), PCC(), uncertainty=None)
PREVALENCE = np.array([0.35, 0.2, 0.3])


def _frame(n_items, seed, prevalence=PREVALENCE):
    """Labels of people (y_, human), probabilities (p_), votes of rules (r_), answers (llm)."""
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_items, 3)) < prevalence).astype(int)
    P = np.round(1 / (1 + np.exp(-(rng.normal(0, 1.2, Y.shape) + 3 * Y - 0.5))), 3)
    R = np.where(Y == 1, rng.random(Y.shape) < 0.6, rng.random(Y.shape) < 0.1).astype(int)
    columns = {"text": ["some text"] * n_items}
    for j, label in enumerate(LABELS):
        columns |= {f"y_{label}": Y[:, j], f"p_{label}": P[:, j], f"r_{label}": R[:, j]}
    named = [[f"{LABELS[j]}:{p[j]}" for j in np.flatnonzero(p > 0.4)] for p in P]
    columns["llm"] = [";".join(answer) for answer in named]
    columns["human"] = [",".join(np.array(LABELS)[y == 1]) for y in Y]
    return pd.DataFrame(columns)


@pytest.fixture(scope="module")
def train():
    return _frame(300, 0)


@pytest.fixture(scope="module")
def batch():
    return _frame(1500, 1, PREVALENCE[[1, 0, 2]])


def _written(folder, frame, name="train.csv"):
    path = folder / name
    frame.to_csv(path, index=False)
    return path


SOURCES = {
    "columns": {"scores": ["p_*"], "labels": ["y_*"]},
    "answers": {"scores_tags": ["llm"], "tags": "human"},
    "answers and label columns": {"scores_tags": ["llm"], "labels": ["y_*"]},
    "panel": {"scores": ["p_*", ["r_billing", "r_login", "r_bug"]], "labels": ["y_*"]},
    "panel of both kinds": {"scores": ["r_*"], "scores_tags": ["llm"], "tags": "human"},
}


@pytest.mark.parametrize("source", list(SOURCES))
def test_counts_of_a_labeller_are_corrected(tmp_path, train, batch, source):
    model = fit_files(_written(tmp_path, train), **SOURCES[source])
    assert model.summary.kind == "scores"
    model.save(tmp_path / "model.prevalens")
    result = quantify_files(tmp_path / "model.prevalens", _written(tmp_path, batch, "batch.csv"))
    short = [label.removeprefix("y_") for label in result.labels]
    truth = batch[[f"y_{label}" for label in short]].mean().to_numpy()
    raw = np.abs(result.counted[0] - truth).mean()
    trained = train[[f"y_{label}" for label in short]].mean().to_numpy()
    error = np.abs(result.point[0] - truth).mean()
    assert error < 0.6 * raw
    assert error < 0.6 * np.abs(trained - truth).mean()
    assert ((result.lower[0] <= truth) & (truth <= result.upper[0])).all()


def test_the_report_counts_what_the_labeller_says(tmp_path, train, batch):
    model = fit_files(_written(tmp_path, train), scores=["p_*"], labels=["y_*"], method=QUICK)
    votes = batch[[f"p_{label}" for label in LABELS]].gt(0.5).mean().to_numpy()
    path = _written(tmp_path, batch, "batch.csv")
    result = quantify_files(model, path, interval=None)
    assert result.counted[0] == pytest.approx(votes)
    before = train[[f"p_{label}" for label in LABELS]].gt(0.5).mean().to_numpy()
    assert model.summary.counted == pytest.approx(tuple(before))
    use = model.column_uses[0]
    people = train["y_billing"].mean()
    assert (use.column, use.use) == ("p_billing", "scores of y_billing")
    assert use.detail == f"counts {before[0]:.0%}, people {people:.0%}"


def test_frames_columns_and_files_give_the_same_model(tmp_path, train, batch):
    from_file = fit_files(_written(tmp_path, train), scores=["p_*"], labels=["y_*"], method=QUICK)
    Y = train[[f"y_{label}" for label in LABELS]]
    in_memory = Model.fit(train, Y, scores=["p_*"], method=QUICK)
    expected = from_file.quantify(batch, interval=None).point
    assert in_memory.quantify(batch, interval=None).point == pytest.approx(expected)


@pytest.mark.parametrize("digits", [3, 12])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_scores_that_are_only_counted_give_the_same_estimates(tmp_path, train, digits, ending):
    rng = np.random.default_rng(0)
    scores = {f"p_{label}": rng.beta(0.4, 1, 9000).round(digits) for label in LABELS}
    scores["p_bug"][:200] = np.nan
    frame = pd.DataFrame(scores)
    path = tmp_path / f"batch.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    model = fit_files(_written(tmp_path, train), scores=["p_*"], labels=["y_*"])
    assert model.quantifier.sums_scores
    with mock.patch.object(Given, "member_posteriors", side_effect=AssertionError):
        result = quantify_files(model, path)
    expected = model.quantify(frame, interval=0.9)
    np.testing.assert_allclose(result.point[0], expected.point, rtol=1e-9)
    np.testing.assert_allclose(result.lower[0], expected.lower, rtol=1e-7)
    answered = frame.notna().sum()
    np.testing.assert_allclose(result.counted[0], (frame > 0.5).sum() / answered)
    assert result.sizes.tolist() == [9000]


@pytest.mark.parametrize("bad", [1.5, -0.25, np.inf])
def test_a_score_out_of_range_is_named_by_its_row(tmp_path, train, bad):
    frame = pd.DataFrame({f"p_{label}": np.full(9000, 0.25) for label in LABELS})
    frame.loc[7000, "p_login"] = bad
    frame.to_parquet(tmp_path / "batch.parquet")
    model = fit_files(_written(tmp_path, train), scores=["p_*"], labels=["y_*"], method=QUICK)
    automatic = fit_files(_written(tmp_path, train), scores=["p_*"], labels=["y_*"])
    sentences = set()
    for each in (model, automatic):
        with pytest.raises(FormatError, match="row 7001: the score 'p_login' is") as caught:
            quantify_files(each, tmp_path / "batch.parquet")
        sentences.add(str(caught.value))
    assert len(sentences) == 1


def test_all_forms_of_an_answer_say_the_same(tmp_path, train):
    pairs = [
        [tuple(part.split(":")) for part in answer.split(";") if part] for answer in train["llm"]
    ]
    mappings = [{name: float(score) for name, score in answer} for answer in pairs]
    forms = {
        "json mapping": [json.dumps(answer) for answer in mappings],
        "json list": [json.dumps([f"{n}:{s}" for n, s in a.items()]) for a in mappings],
        "python list": [str([f"{n}:{s}" for n, s in a.items()]) for a in mappings],
        "objects": [json.dumps([{"label": n, "score": s} for n, s in a.items()]) for a in mappings],
        "pipeline": [json.dumps({"labels": list(a), "scores": list(a.values())}) for a in mappings],
        "commas": [", ".join(f"{n} : {s}" for n, s in a.items()) for a in mappings],
        "capitals": [answer.replace("b", "B").upper() for answer in train["llm"]],
    }
    settings = {"tags": "human", "method": QUICK}
    first = fit_files(_written(tmp_path, train), scores_tags=["llm"], **settings)
    expected = first.quantify({"llm": list(train["llm"])}, interval=None).point
    for answers in forms.values():
        path = _written(tmp_path, train.assign(llm=answers))
        model = fit_files(path, scores_tags=["llm"], **settings)
        point = model.quantify({"llm": answers}, interval=None).point
        assert point == pytest.approx(expected)
    path = tmp_path / "train.jsonl"
    rows = train.assign(llm=mappings).to_dict(orient="records")
    path.write_text("\n".join(map(json.dumps, rows)))
    model = fit_files(path, scores_tags=["llm"], **settings)
    assert model.quantify({"llm": mappings}, interval=None).point == pytest.approx(expected)


def test_no_answer_is_not_no_label(tmp_path, train):
    silent = train.assign(llm=train["llm"].where(train["y_bug"] == 0, "refused"))
    model = fit_files(_written(tmp_path, silent), scores_tags=["llm"], tags="human", method=QUICK)
    bug = model.labels.index("bug")
    silent, none = (
        model.quantify({"llm": [cell] * 50}, interval=None).point[bug] for cell in ("refused", "")
    )
    assert silent > 0.9
    assert none < 0.1


def test_unknown_labels_of_a_batch_are_counted_and_said_once(tmp_path, train, batch):
    model = fit_files(_written(tmp_path, train), scores_tags=["llm"], tags="human", method=QUICK)
    answers = [f"{answer};weather" for answer in batch["llm"]] * 8
    with pytest.warns(PrevalensWarning, match="'weather' \\(12,000 items\\)") as caught:
        model.quantify({"llm": answers}, interval=None)
    assert len(caught) == 1
    path = _written(tmp_path, batch.assign(llm=answers[: len(batch)]), "batch.csv")
    said = [notice.text for notice in quantify_files(model, path, interval=None).notices]
    assert sum("'weather' (1,500 items)" in text for text in said) == 1


@pytest.mark.parametrize(
    ("change", "settings", "says"),
    [
        (
            {"p_spam": 0.1},
            {"scores": ["p_*"], "labels": ["y_*"]},
            "1 column of scores left out.*'p_spam'",
        ),
        (
            {"y_rare": [1, 0] * 150},
            {"scores": ["p_*"], "labels": ["y_*"]},
            "1 label of people without scores left out: 'y_rare'",
        ),
        (
            {"y_rare": [1, 0] * 150, "r_rare": [1, 0] * 150},
            {"scores": ["p_*", "r_*"], "labels": ["y_*"]},
            "labeller of 'p_billing', 'p_login', 'p_bug' has no scores of 1 label: 'y_rare'",
        ),
        (
            {"llm": "weather"},
            {"scores_tags": ["llm"], "scores": ["p_*"], "labels": ["y_*"]},
            "name 1 label without labels of people in the training: 'weather' \\(300 items\\)",
        ),
        (
            {"p_bug": 0.5},
            {"scores": ["p_*"], "labels": ["y_*"]},
            "scores of 1 label are the same for every item: 'y_bug'",
        ),
    ],
)
def test_labels_on_one_side_only_are_named(tmp_path, train, change, settings, says):
    path = _written(tmp_path, train.assign(**change))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fit_files(path, method=QUICK, **settings)
    said = " ".join([*(str(w.message) for w in caught), *model.summary.warnings])
    assert re.search(says, said)
    if "y_rare" in change and "r_rare" not in change:
        assert "y_rare" not in model.labels


def test_estimates_do_not_depend_on_how_the_numbers_are_read(train, batch, tmp_path):
    # Plain CSV and Parquet are read without Python objects; quoted cells and lists are not.
    settings = {"scores": ["p_*", "r_*"], "labels": ["y_*"], "method": QUICK}
    model = fit_files(_written(tmp_path, train), **settings)
    batch = batch.assign(p_bug=batch["p_bug"].where(batch.index % 7 > 0))
    paths = [tmp_path / name for name in ("plain.csv", "quoted.csv", "b.parquet", "b.jsonl")]
    batch.to_csv(paths[0], index=False)
    batch.to_csv(paths[1], index=False, quoting=csv.QUOTE_ALL)
    batch.to_parquet(paths[2])
    batch.to_json(paths[3], orient="records", lines=True)
    with mock.patch("prevalens.tables.plain_csv._BLOCK", 9000):
        results = [quantify_files(model, path, interval=None) for path in paths]
    for result in results:
        np.testing.assert_allclose(result.point, results[0].point, rtol=1e-12)
        np.testing.assert_array_equal(result.counted, results[0].counted)
    grouped = quantify_files(model, paths[2], by="r_bug", interval=None)
    np.testing.assert_allclose(
        grouped.sizes @ grouped.point / len(batch), results[0].point[0], rtol=1e-12
    )


@pytest.mark.parametrize("score", [1.5, np.float32(2), 7, np.inf])
def test_errors_in_parquet_files_show_the_number(train, batch, tmp_path, score):
    model = fit_files(_written(tmp_path, train), scores=["p_*"], labels=["y_*"], method=QUICK)
    cells = np.zeros(len(batch), dtype=np.asarray(score).dtype)
    cells[1200] = score
    batch.assign(p_bug=cells).to_parquet(tmp_path / "b.parquet")
    shown = re.escape(repr(cells[1200].item()))
    with pytest.raises(FormatError, match=rf"b.parquet, row 1201: the score 'p_bug' is {shown};"):
        quantify_files(model, tmp_path / "b.parquet")


def _worded(frame, seed):
    """The frame with texts that name every label of people in words, and noise."""
    rng = np.random.default_rng(seed)
    words = {"billing": ["invoice", "card"], "login": ["password", "locked"], "bug": ["crash"]}
    texts = [
        " ".join(
            [*(rng.choice(words[t]) for t in tags.split(",") if t), *rng.choice(list("xyz"), 4)]
        )
        for tags in frame["human"]
    ]
    return frame.assign(text=texts)


WITH_TEXT = {
    "votes": {"scores": ["r_*"], "labels": ["y_*"], "text": "text"},
    "answers": {"scores_tags": ["llm"], "tags": "human", "text": "text"},
    "panel": {"scores": ["r_*", "p_*"], "labels": ["y_*"], "text": "text"},
    "features": {"scores": ["r_*"], "labels": ["y_*"], "features": ["text", "p_bug"]},
}


@pytest.mark.parametrize("source", list(WITH_TEXT))
def test_texts_besides_the_answers_sharpen_the_estimate(tmp_path, train, batch, source):
    few = _written(tmp_path, _worded(train[:150], 2))
    later = _worded(batch[:400], 3).assign(llm=lambda f: f["llm"].where(f.index % 9 > 0, "refused"))
    path = _written(tmp_path, later, "batch.csv")
    columns = WITH_TEXT[source] | ({"kinds": {"text": "text"}} if source == "features" else {})
    model = fit_files(few, **columns)
    assert model.summary.kind == "scores"
    assert "text" in model.columns
    model.save(tmp_path / "model.prevalens")
    result = quantify_files(tmp_path / "model.prevalens", path)
    names = [f"y_{label.removeprefix('y_')}" for label in result.labels]
    truth = later[names].mean().to_numpy()
    alone = fit_files(
        few, **{k: v for k, v in columns.items() if k not in ("text", "features", "kinds")}
    )
    without = quantify_files(alone, path)
    assert np.abs(result.point - truth).mean() < 0.6 * np.abs(without.point - truth).mean() + 0.005
    assert (result.upper - result.lower).mean() < (without.upper - without.lower).mean()
    np.testing.assert_array_equal(result.counted, without.counted)
    later.drop(columns="text").to_csv(tmp_path / "no_text.csv", index=False)
    with pytest.raises(InputError, match=r"no_text\.csv has no column 'text'"):
        quantify_files(model, tmp_path / "no_text.csv")


def test_texts_besides_scores_in_memory_are_those_of_files(tmp_path, train):
    frame = _worded(train, 2).assign(p_bug=train["p_bug"].where(train.index % 5 > 0))
    columns = {"scores": ["p_*"], "text": "text"}
    Y = frame[[f"y_{label}" for label in LABELS]]
    own = Model.fit(frame, Y, method=QUICK, **columns)
    read = fit_files(_written(tmp_path, frame), labels=["y_*"], method=QUICK, **columns)
    assert own.summary.method == "given(n_labellers=1)+pcc"
    assert own.quantify(frame, interval=None).point == pytest.approx(
        quantify_files(read, tmp_path / "train.csv", interval=None).point[0]
    )
    assert np.isfinite(own.feature_means).all()


def test_methods_are_compared_and_evaluated_with_texts_besides_scores(tmp_path, train):
    frame = _worded(train[:120], 2)
    path = _written(tmp_path, frame.assign(p_bug=frame["p_bug"].where(frame.index % 5 > 0)))
    columns = {"scores": ["p_*"], "labels": ["y_*"], "text": "text"}
    board = compare_files(path, "given+pcc;given+cc", folds=2, n_samples=20, **columns)
    assert set(board.methods) == {"given(n_labellers=1)+pcc", "given(n_labellers=1)+cc"}
    assert board.best == "given(n_labellers=1)+pcc"
    model = fit_files(path, method=QUICK, **columns)
    shifts = {"protocols": ["covariate-tilt"], "n_samples": 20, "interval": None}
    result = evaluate_files(model, path, labels=["y_*"], **shifts)
    (trial,) = result.trials
    assert np.abs(trial.estimated - trial.true).mean() < 0.1


COLUMNS = {"scores": ["p_*"], "labels": ["y_*"]}
ANSWERS = {"scores_tags": ["llm"], "tags": "human"}
#: What is changed in the training file, what is asked for, and what the sentence says.
BAD = {
    "no column matches": ({}, {"scores": ["q_*"], "labels": ["y_*"]}, "has no column 'q_\\*'"),
    "no such answers": ({}, {"scores_tags": ["gpt"], "tags": "human"}, "has no column 'gpt'"),
    "misspelt column": ({}, {"scores": ["p_biling"], "labels": ["y_*"]}, "mean 'p_billing'"),
    "no labels": ({}, {"scores": ["p_*"]}, "No labels named"),
    "two kinds of labels": ({}, COLUMNS | {"tags": "human"}, "Both label columns and a column"),
    "score and label": ({}, {"scores": ["y_*"], "labels": ["y_*"]}, "a score and a label"),
    "answers and tags": ({}, {"scores_tags": ["human"], "tags": "human"}, "a score and a label"),
    "named twice": ({}, {"scores": ["p_*", "p_*"], "labels": ["y_*"]}, "named twice"),
    "answers named twice": ({}, {"scores_tags": ["llm", "llm"], "tags": "human"}, "named twice"),
    "score and text": ({}, ANSWERS | {"text": "llm"}, "'llm' cannot be a score and a feature"),
    "score and feature": ({}, COLUMNS | {"features": ["p_bug"]}, "be a score and a feature"),
    "label and feature": ({}, COLUMNS | {"features": ["y_bug"]}, "be a feature and a label"),
    "no such text": ({}, COLUMNS | {"text": "words"}, "has no column 'words'"),
    "features of none": (
        {},
        COLUMNS | {"method": "given(n_labellers=1)+pcc"},
        "there are no features; leave n_labellers out",
    ),
    "other labellers": (
        {},
        COLUMNS | {"features": ["r_bug"], "method": "given(n_labellers=2)+pcc"},
        "reads 2 labellers and features .* there are 1 labellers and features",
    ),
    "kinds and scores": ({}, COLUMNS | {"kinds": {"text": "drop"}}, "nothing to change"),
    "no names in common": (
        {"q_rain": 0.1, "q_sun": 0.3},
        {"scores": ["q_*"], "labels": ["y_*"]},
        "No column of scores \\('q_rain', 'q_sun'\\) has the name of a label \\('y_billing'",
    ),
    "two columns of one label": (
        {"p_Bug": 0.3},
        COLUMNS,
        "'p_bug' and 'p_Bug' are both scores of the label 'y_bug'",
    ),
    "text in a score": ({"p_bug": "high"}, COLUMNS, "line 2: the score 'p_bug' is 'high', which"),
    "answers as scores": ({}, {"scores": ["llm"], "labels": ["y_bug"]}, "`scores_tags=`"),
    "percentages": ({"p_bug": 85}, COLUMNS, "line 2: the score 'p_bug' is '85'; .* by 100"),
    "percent signs": ({"p_bug": "85 %"}, COLUMNS, "the score 'p_bug' is '85 %'; .* by 100"),
    "negative score": (
        {"p_bug": -0.5},
        COLUMNS,
        "'p_bug' is '-0.5'; scores lie between 0 and 1\\.",
    ),
    "infinite score": ({"p_bug": "inf"}, COLUMNS, "'p_bug' is 'inf'"),
    "log-odds": ({"p_bug": 1234.5}, COLUMNS, "'p_bug' is '1234.5'; scores lie between 0 and 1\\."),
    "only refusals": ({"llm": "refused"}, ANSWERS, "No item has an answer in the column 'llm'"),
    "empty scores": (
        {"p_bug": "", "p_login": "", "p_billing": ""},
        COLUMNS,
        "No item has an answer in the columns 'p_billing', 'p_login', 'p_bug'",
    ),
    "JSON cut off": ({"llm": '["billing", "lo'}, ANSWERS, "line 2: the answer 'llm' is .* broken"),
    "object cut off": ({"llm": '{"billing": 0.9'}, ANSWERS, "broken or cut off"),
    "confidence in percent": ({"llm": "billing:90"}, ANSWERS, "score 90 is outside; .* by 100"),
    "negative confidence": ({"llm": '{"billing": -1}'}, ANSWERS, "the score -1 is outside"),
    "confidence in words": ({"llm": '{"billing": "high"}'}, ANSWERS, "'high' is no score"),
    "uneven lists": (
        {"llm": '{"labels": ["bug", "login"], "scores": [0.3]}'},
        ANSWERS,
        "not as many scores as labels",
    ),
    "a number for an answer": ({"llm": "[1, 2"}, ANSWERS, "broken or cut off"),
    "label that is never given": ({"y_bug": 0}, COLUMNS, "no item has the label 'y_bug'"),
    "label that is no label": ({"y_bug": 2}, COLUMNS, "the label 'y_bug' is '2'"),
    "unknown method": ({}, COLUMNS | {"method": "givn+pcc"}, "Did you mean 'given'"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_bad_input_is_refused_in_one_sentence(tmp_path, train, case):
    change, settings, says = BAD[case]
    path = _written(tmp_path, train.assign(**change))
    with pytest.raises((InputError, FormatError), match=says) as refused:
        fit_files(path, **settings)
    assert "\n" not in str(refused.value).strip() or case == "unknown method"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda frame: frame.drop(columns="p_bug"), "has no column 'p_bug'"),
        (lambda frame: frame.assign(p_bug="?!"), "batch.csv, line 2: the score 'p_bug'"),
        (lambda frame: frame.assign(p_bug=50), "divide percentages by 100"),
    ],
)
def test_bad_batches_are_refused(tmp_path, train, batch, change, says):
    model = fit_files(_written(tmp_path, train), method=QUICK, **COLUMNS)
    with pytest.raises(InputError, match=says):
        quantify_files(model, _written(tmp_path, change(batch), "batch.csv"))


def test_one_label_needs_no_common_name(tmp_path, train):
    frame = train[["p_bug", "y_bug"]].rename(columns={"p_bug": "score", "y_bug": "fault"})
    model = fit_files(
        _written(tmp_path, frame), scores=["score"], labels=["fault"], method="given+pacc"
    )
    assert model.labels == ("fault",)
    assert model.quantify(frame, interval=None).point[0] == pytest.approx(
        frame["fault"].mean(), abs=0.05
    )


def test_scores_in_memory_may_be_called_like_the_labels(train):
    items = train[[f"p_{label}" for label in LABELS]].set_axis(LABELS, axis=1)
    Y = train[[f"y_{label}" for label in LABELS]].set_axis(LABELS, axis=1)
    model = Model.fit(items, Y, scores=[LABELS], method=QUICK)
    assert model.labels == tuple(LABELS)
    assert model.columns == tuple(LABELS)
    with pytest.raises(InputError, match="'bug' is named twice"):
        Model.fit(items, Y, scores=[LABELS, "bug"], method=QUICK)
