from __future__ import annotations

from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from prevalens.datasets.generated import WORDS_PER_SUBJECT, everyday_words, subjects


def test_any_number_of_subjects_with_their_own_names() -> None:
    for n in (1, 12, 13, 200, 3000):
        found = subjects(n)
        assert len({name for name, _ in found}) == n
        assert all(len(words) == len(set(words)) == WORDS_PER_SUBJECT for _, words in found)


def test_invented_words_belong_to_one_subject() -> None:
    invented = [word for _, words in subjects(3000)[12:] for word in words]
    assert len(invented) == len(set(invented))


def test_most_subject_words_survive_the_text_preparation() -> None:
    words = [word for _, own in subjects(12) for word in own]
    assert sum(word in ENGLISH_STOP_WORDS for word in words) == 0
    assert not set(words) & set(everyday_words())
