"""Settings of a server: address, token, models and limits."""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from prevalens.errors import InputError

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMG]?)B?", re.IGNORECASE)
#: Visible ASCII characters: what a header carries unchanged.
_TOKEN = re.compile(r"[!-~]+")
#: Shorter tokens could be guessed.
MIN_TOKEN = 16


@dataclass(frozen=True)
class Limits:
    """Limits on requests, work and stored data.

    Parameters
    ----------
    upload_bytes : int
        Maximum size of the body of a request.
    unpacked_bytes : int
        Maximum size of a compressed file when unpacked.
    stored_bytes : int
        Maximum size of all uploads together, with those that are arriving, and of what was
        unpacked from them.
    files : int
        Maximum number of files in a request.
    rows, columns : int
        Maximum size of a table.
    quantify_seconds, train_seconds : float
        Time limit per estimate and per training.
    stall_seconds : float
        Maximum pause of a client in the middle of a request.
    body_seconds : float
        Maximum time to send a body.
    workers : int
        Maximum number of estimates at the same time.
    trainings : int
        Maximum number of trainings at the same time.
    waiting : int
        Maximum number of requests and jobs that wait for a worker.
    connections : int
        Maximum number of open connections.
    kept_jobs, kept_models : int
        Maximum number of finished jobs and of models trained here.
    kept_seconds : float
        Time for which unused uploads and finished jobs are kept.
    grace_seconds : float
        Time that running work gets to finish when the server is stopped.
    worker_bytes : int, optional
        Maximum memory of a worker; None for no limit.
    """

    upload_bytes: int = 500 * 10**6
    unpacked_bytes: int = 2 * 10**9
    stored_bytes: int = 4 * 10**9
    files: int = 200
    rows: int = 1_000_000
    columns: int = 5_000
    quantify_seconds: float = 300.0
    train_seconds: float = 3600.0
    stall_seconds: float = 20.0
    body_seconds: float = 900.0
    workers: int = field(default_factory=lambda: min(2, os.cpu_count() or 1))
    trainings: int = 1
    waiting: int = 64
    connections: int = 200
    kept_jobs: int = 50
    kept_models: int = 20
    kept_seconds: float = 3600.0
    grace_seconds: float = 10.0
    worker_bytes: int | None = field(default_factory=lambda: min(8 * 10**9, _physical() // 2))


def _physical() -> int:
    """Bytes of the machine's memory; very many if the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 2**62


@dataclass(frozen=True)
class Settings:
    """Address, secret, models and limits of one server.

    Parameters
    ----------
    host, port : str, int
        Where to listen; port 0 takes a free one.
    token : str, optional
        Secret that every request must carry. If omitted, one is generated for any address other
        than loopback.
    hosts : tuple of str
        Host names, in addition to ``localhost``, under which the server may be called.
    models : tuple of Path
        Model files, or folders of them.
    keep : Path, optional
        Folder for models trained here; if omitted, they are removed when the server stops.
    limits : Limits
    """

    host: str = "127.0.0.1"
    port: int = 8321
    token: str | None = None
    hosts: tuple[str, ...] = ()
    models: tuple[Path, ...] = ()
    keep: Path | None = None
    limits: Limits = field(default_factory=Limits)

    def checked(self) -> Settings:
        """These settings, with a token if one is needed; one that is not fit is refused."""
        if self.token is not None and len(self.token) < MIN_TOKEN:
            raise InputError(
                f"A token needs at least {MIN_TOKEN} characters; this one has {len(self.token)}."
            )
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise InputError(
                "A token is made of visible ASCII characters without spaces; this one has other "
                "characters, which a header may not carry unchanged."
            )
        if self.token is None and not is_loopback(self.host):
            return Settings(**{**vars(self), "token": secrets.token_urlsafe(24)})
        return self


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    Examples
    --------
    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def parse_size(text: str) -> int:
    """The number of bytes that a text such as ``500MB`` stands for.

    Examples
    --------
    >>> parse_size("500MB"), parse_size("2g"), parse_size("1024")
    (500000000, 2000000000, 1024)
    """
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if size < 1:
        raise InputError(f"{text!r} is not a size; write for example 500MB or 2GB.")
    return size
