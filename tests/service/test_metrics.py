from __future__ import annotations

import re

import httpx

from prevalens.service.metrics import BUCKETS, Metrics

_LINE = re.compile(r'(# (HELP|TYPE) \w+ .+|\w+(\{(\w+="([^"\\]|\\.)*",?)*\})? [0-9.e+-]+)')


def test_every_line_is_in_the_text_format() -> None:
    metrics = Metrics()
    metrics.add("prevalens_problems_total", code='a"b\\c\nd')
    metrics.add("prevalens_items_total", 2.5)
    metrics.observe(0.3, route="/")
    metrics.gauge("prevalens_models", "Models.", lambda: 3)
    lines = metrics.text().splitlines()
    assert [line for line in lines if not _LINE.fullmatch(line)] == []
    assert 'prevalens_problems_total{code="a\\"b\\\\c\\nd"} 1.0' in lines
    assert "prevalens_items_total 2.5" in lines
    assert "prevalens_models 3.0" in lines


def test_the_histogram_adds_up() -> None:
    metrics = Metrics()
    for seconds in (0.001, 0.02, 0.02, 3.0, 1000.0):
        metrics.observe(seconds, route="/")
    found = dict(re.findall(r'le="([^"]+)",route="/"\} (\d+)', metrics.text()))
    assert len(found) == len(BUCKETS) + 1
    assert (found["0.005"], found["0.025"], found["5.0"], found["+Inf"]) == ("1", "3", "4", "5")
    assert 'prevalens_request_seconds_count{route="/"} 5.0' in metrics.text()


def test_the_server_counts_routes_not_paths(client: httpx.Client) -> None:
    client.get("/v1/jobs/does-not-exist")
    client.get("/no/such/place")
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert [line for line in answer.text.splitlines() if not _LINE.fullmatch(line)] == []
    assert 'route="/v1/jobs/{key}",status="404"' in answer.text
    assert "does-not-exist" not in answer.text
    assert "no/such/place" not in answer.text
    assert 'prevalens_problems_total{code="not_found"}' in answer.text
