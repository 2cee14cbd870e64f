from __future__ import annotations

import pytest

from prevalens.errors import InputError
from prevalens.service.settings import Settings, is_loopback, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [("500MB", 500_000_000), ("2 gb", 2_000_000_000), ("1.5k", 1500), ("17", 17)],
)
def test_sizes_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "MB", "-1MB", "ten", "0", "1TB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="is not a size"):
        parse_size(text)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    assert is_loopback(host)
    assert Settings(host=host).checked().token is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org"])
def test_other_addresses_get_a_token(host: str) -> None:
    first, second = Settings(host=host).checked().token, Settings(host=host).checked().token
    assert first is not None
    assert len(first) >= 32
    assert first != second


def test_a_given_token_stays() -> None:
    settings = Settings(host="0.0.0.0", token="x" * 16)
    assert settings.checked() is settings


def test_a_short_token_is_refused() -> None:
    with pytest.raises(InputError, match="at least 16 characters; this one has 3"):
        Settings(token="abc").checked()


@pytest.mark.parametrize("token", ["ü" * 16, "a token with spaces", "x" * 16 + "\n"])
def test_a_token_that_no_header_can_carry_is_refused(token: str) -> None:
    with pytest.raises(InputError, match="this one has other characters"):
        Settings(token=token).checked()
