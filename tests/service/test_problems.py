from __future__ import annotations

from prevalens.service.problems import STATUS, Problem


def test_every_code_has_an_error_status() -> None:
    assert all(400 <= status < 600 for status in STATUS.values())
    assert {Problem(code, "x").status for code in STATUS} == {int(one) for one in STATUS.values()}


def test_an_unknown_code_is_an_inner_failure() -> None:
    assert Problem("no such code", "x").status == 500
    assert Problem("no such code", "x").body()["error"]["code"] == "internal"


def test_the_form_is_that_of_problem_details() -> None:
    body = Problem("too_large", "Too many rows.").body()
    assert (body["type"], body["status"], body["detail"]) == ("about:blank", 413, "Too many rows.")
    assert body["error"] == {"code": "too_large", "message": "Too many rows."}
