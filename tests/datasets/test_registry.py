from __future__ import annotations

import pytest

from prevalens.datasets.loading import _GENERATORS, _READERS
from prevalens.datasets.registry import ALIASES, lookup, names
from prevalens.validation import InputError

PAPER = [
    "emotions",
    "scene",
    "yeast",
    "birds",
    "genbase",
    "medical",
    "tmc2007_500",
    "ohsumed",
    "enron",
    "reuters21578",
    "rcv1",
    "mediamill",
    "bibtex",
    "corel5k",
    "delicious",
]
STAND_INS = [
    "tmc2007_500_paper",
    "mediamill_discretized",
    "mediamill_reduced",
    "ohsumed_f",
    "rcv1subset1_top944",
    "rcv1subset2_top944",
    "rcv1subset3_top944",
]


def test_all_names_in_the_order_of_the_paper() -> None:
    assert names("paper") == tuple(PAPER)
    assert names("stand-in") == tuple(STAND_INS)
    assert names("timeline") == ("un", "arxiv", "goemotions")
    assert names() == (*PAPER, *STAND_INS, *names("timeline"), "synthetic", "synthetic_text")


@pytest.mark.parametrize("name", names())
def test_entries_are_complete(name: str) -> None:
    entry = lookup(name)
    assert entry.about.endswith(".")
    assert entry.reference
    assert (entry.printed is not None) or entry.kind != "paper"
    if entry.kind == "built-in":
        assert name in _GENERATORS
        return
    assert entry.layouts
    for layout in entry.layouts:
        assert layout.format in _READERS
        assert layout.files
        for file in layout.files:
            assert file.url is None or file.url.startswith(("http://", "https://"))
            assert file.sha256 is None or len(file.sha256) == 64


def test_printed_figures_are_consistent() -> None:
    for name in names():
        printed = lookup(name).printed
        if printed is not None:
            assert printed.dens == pytest.approx(printed.card / printed.classes, abs=6e-4)
            assert printed.norm_div == pytest.approx(printed.div / printed.classes, abs=6e-4)


def test_mulan_files_are_pinned_and_have_checksums() -> None:
    for name in names("paper"):
        layout = lookup(name).layouts[0]
        if layout.format == "mulan" and layout.origin:
            assert "43f6389095ad71984264db4387a8074b22bc7d4a" in layout.origin
            assert all(file.sha256 and file.url for file in layout.files)


def test_addresses_of_single_files() -> None:
    urls = {file.role: file.url for file in lookup("mediamill_reduced").layouts[0].files}
    assert str(urls["train"]).endswith("/data/mediamill_reduced/mediamill-train.arff")
    assert str(urls["labels"]).endswith("/data/mediamill/mediamill.xml")


def test_other_names_and_unknown_names() -> None:
    for other, name in ALIASES.items():
        assert lookup(other).name == name
    with pytest.raises(InputError, match="no dataset 'yeats'; did you mean 'yeast'"):
        lookup("yeats")
    with pytest.raises(InputError, match=r"see prevalens\.datasets\.names\(\)"):
        lookup("qqqq")
