"""Fixtures of the tests of reports."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree import ElementTree

import pytest


@pytest.fixture
def read_xml() -> Callable[[str], ElementTree.Element]:
    """Parse markup as XML, which forgives nothing."""
    return ElementTree.fromstring
