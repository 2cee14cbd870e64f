from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from prevalens.datasets.loading import NUMBER, mask_numbers, text_pipeline


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("In 1987, 3.5 pct", "in #, # pct"),
        ("1,234.5-6 dlrs", "# dlrs"),
        ("5-year", "#year"),
        ("B52 x9", "b52 x9"),
        ("-7 (8)", "-# (#)"),
    ],
)
def test_numbers_are_masked(text: str, masked: str) -> None:
    assert mask_numbers(text) == masked.replace("#", NUMBER)


@given(st.text())
def test_masking_leaves_no_free_number_and_can_be_repeated(text: str) -> None:
    once = mask_numbers(text)
    assert mask_numbers(once) == once


TEXTS = ["The dogs, 12 dogs!", "A dog and 7 cats", "dogs: cats"] * 5


def test_words_of_the_pipeline() -> None:
    pipeline = text_pipeline().fit(TEXTS)
    assert pipeline.get_feature_names_out().tolist() == ["cats", "dog", "dogs", NUMBER]
    lengths = np.linalg.norm(pipeline.transform(TEXTS).toarray(), axis=1)
    np.testing.assert_allclose(lengths, 1)


def test_document_frequency_counts_not_occurrences() -> None:
    texts = ["rare " * 10] * 4 + ["common"] * 5
    assert text_pipeline().fit(texts).get_feature_names_out().tolist() == ["common"]
    assert len(text_pipeline(min_df=4).fit(texts).get_feature_names_out()) == 2


def test_it_can_be_cloned_pickled_and_used() -> None:
    pipeline = pickle.loads(
        pickle.dumps(clone(text_pipeline(min_df=2, sublinear_tf=True)).fit(TEXTS))
    )
    assert pipeline.transform(["cats"]).shape == (1, 4)
    model = make_pipeline(text_pipeline(), LogisticRegression()).fit(TEXTS, [0, 1, 1] * 5)
    assert model.predict(["The dogs"]).shape == (1,)
