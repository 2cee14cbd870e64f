"""Arguments of Python as options."""

from __future__ import annotations

import pytest

from prevalens.cli.wording import as_options


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("Let `min_positives=1` leave it out.", "Let --min-positives 1 leave it out."),
        ("Give `date_form=` or `encoding=`.", "Give --date-form or --encoding."),
        ("Say `kinds={'a b': 'drop'}`.", 'Say --as "a b=drop".'),
        ("Name them with `groups=`.", "Name them with --group."),
        ("`kinds=` is about columns.", "--as is about columns."),
        ("`prevalens fit` writes one; a = b.", "`prevalens fit` writes one; a = b."),
    ],
)
def test_options(sentence: str, said: str) -> None:
    assert as_options(sentence) == said
