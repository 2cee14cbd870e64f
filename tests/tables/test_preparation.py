"""Arrays as they are, and transformers of users."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from prevalens.errors import InputError
from prevalens.tables.preparation import ArrayPreparation, GivenPreparation


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array])
def test_arrays_pass(form: object) -> None:
    X = form(np.eye(3))
    prepared = ArrayPreparation().fit(X)
    assert (prepared.transform(X) != X).sum() == 0
    with pytest.raises(InputError, match="trained on 3 features, but the items have 2"):
        prepared.transform(np.eye(2))
    with pytest.raises(InputError, match="The items has nan at row 0, column 1"):
        prepared.transform([[1.0, np.nan, 0.0]])
    assert prepared.get_feature_names_out().tolist() == ["x0", "x1", "x2"]


def test_pipelines_of_users() -> None:
    texts = ["printer on fire", "no printer", "fire again", "printer again"]
    pipeline = make_pipeline(TfidfVectorizer(), TruncatedSVD(2, random_state=0))
    prepared = GivenPreparation(pipeline).fit(texts)
    assert prepared.transform(texts).shape == (4, 2)
    assert len(prepared.get_feature_names_out()) == 2
    assert not hasattr(pipeline[0], "vocabulary_")
    assert "2 features" in prepared.describe()
    with pytest.raises(InputError, match="A preparation needs fit and transform"):
        GivenPreparation("tfidf").fit(texts)
