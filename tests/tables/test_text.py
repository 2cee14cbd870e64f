"""Texts of any language: the weights of scikit-learn, scripts without spaces, unseen words."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from prevalens.errors import InputError
from prevalens.tables import text as module
from prevalens.tables.preparation import CellError
from prevalens.tables.text import TextPreparation

TEXTS = ["the printer is on fire", "the printer printed 12 pages", "no pages, no fire, no printer"]


def test_weights_are_those_of_scikit_learn() -> None:
    ours = TextPreparation(min_df=1).fit(TEXTS)
    theirs = TfidfVectorizer(
        preprocessor=module._normal,
        token_pattern=module._WORD,
        ngram_range=(1, 2),
        sublinear_tf=True,
    ).fit(TEXTS)
    assert ours.terms_ == theirs.get_feature_names_out().tolist()
    np.testing.assert_allclose(
        ours.transform(TEXTS).toarray(), theirs.transform(TEXTS).toarray(), rtol=1e-6
    )


def test_learning_and_transforming_at_once_is_the_same() -> None:
    texts = TEXTS * 3
    at_once = TextPreparation().fit_transform(texts)
    after = TextPreparation().fit(texts).transform(texts)
    np.testing.assert_array_equal(at_once.toarray(), after.toarray())


def test_numbers_count_by_their_length() -> None:
    prepared = TextPreparation(min_df=1).fit(["in 1987", "in 2024", "at 5.30"])
    assert "0000" in prepared.terms_
    assert "1987" not in prepared.terms_


@pytest.mark.parametrize(
    ("texts", "term"),
    [(["打印机着火了", "打印机坏了"], "打 印"), (["เครื่องพิมพ์ไฟไหม้", "เครื่องพิมพ์เสีย"], "เ ค")],
    ids=["Chinese", "Thai"],
)
def test_scripts_without_spaces(texts: list[str], term: str) -> None:
    prepared = TextPreparation(min_df=1).fit(texts)
    assert term in prepared.terms_
    assert prepared.longest_ == 3


def test_mixed_scripts_keep_words_whole() -> None:
    prepared = TextPreparation(min_df=1).fit(["printer 着火 " + "very long English text " * 5])
    assert {"printer", "着", "着 火"} <= set(prepared.terms_)
    assert prepared.longest_ == 2


def test_the_least_number_of_texts_grows() -> None:
    assert [TextPreparation()._least(n) for n in (10, 500, 9603, 50_000)] == [1, 2, 3, 5]


def test_unseen_words() -> None:
    texts = [f"common words {'alpha' if i % 2 else 'beta'} here" for i in range(50)]
    prepared = TextPreparation().fit(texts)
    same = prepared.unfamiliar(texts)
    assert same.share == 0
    other = prepared.unfamiliar(["utterly novel vocabulary here"])
    assert other.share == pytest.approx(0.75)
    assert set(other.examples) == {"utterly", "novel", "vocabulary"}


def test_what_is_usual_is_a_words_absence_from_the_other_texts() -> None:
    # Every text has one word of its own among four.
    texts = [f"shared words here unique{chr(97 + i)}" for i in range(20)]
    assert TextPreparation(min_df=1).fit(texts).usual_unfamiliar_ == pytest.approx(0.25)


def test_hashing_above_a_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HASH_FROM", 3)
    prepared = TextPreparation().fit(TEXTS)
    assert prepared.terms_ is None
    X = prepared.transform(["the printer burns"])
    assert X.shape == (1, 2**18)
    np.testing.assert_allclose(np.sqrt(X.multiply(X).sum()), 1, rtol=1e-6)
    assert prepared.unfamiliar(["zzzz qqqq"]).share == 1
    assert len(prepared.get_feature_names_out()) == prepared.n_features_


def test_state_goes_through_a_pickle_and_a_clone() -> None:
    prepared = TextPreparation(min_df=1).fit(TEXTS)
    again = pickle.loads(pickle.dumps(prepared))
    assert again.terms_ == prepared.terms_
    np.testing.assert_array_equal(
        again.transform(TEXTS).toarray(), prepared.transform(TEXTS).toarray()
    )
    assert clone(prepared).get_params() == prepared.get_params()
    pipeline = make_pipeline(TextPreparation(), LogisticRegression()).fit(TEXTS, [0, 1, 1])
    assert pipeline.predict(TEXTS).shape == (3,)


def test_empty_and_missing_texts() -> None:
    prepared = TextPreparation(min_df=1).fit(TEXTS)
    X = prepared.transform(["", None, float("nan"), 12])
    assert X.shape[0] == 4
    assert X[:3].nnz == 0
    with pytest.raises(InputError, match="No word occurs in 1 or more of the 2 texts"):
        TextPreparation().fit(["", "?!"])
    with pytest.raises(InputError, match="a single string"):
        prepared.transform("text")
    with pytest.raises(CellError, match="Item 2: expected a text, but here is"):
        prepared.transform(["a", ["b"]])
