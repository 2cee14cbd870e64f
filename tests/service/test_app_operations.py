from __future__ import annotations

import httpx

from prevalens._version import __version__


def test_health_tells_the_version(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "version": __version__}


def test_metrics_follow_what_happens(client: httpx.Client) -> None:
    def items() -> float:
        lines = client.get("/metrics").text.splitlines()
        return sum(float(line.split()[1]) for line in lines if line.startswith("prevalens_items_"))

    before = items()
    client.post("/v1/models/small/quantify", json={"texts": ["my parcel"] * 7}).raise_for_status()
    assert items() == before + 7
