import json

import pytest

from policies.request import BadRequest
from proxy.errors import (
    STATUS_OF,
    Disconnected,
    Malformed,
    Refusal,
    TimedOut,
    Unreachable,
    UpstreamError,
    error_body,
    refusal_of,
)


def test_the_error_object_has_the_four_members_that_clients_read() -> None:
    body = json.loads(error_body("no", "server_error", "c", "p"))
    assert body == {"error": {"message": "no", "type": "server_error", "param": "p", "code": "c"}}


def test_a_bad_request_is_a_400_that_names_the_field() -> None:
    refusal = refusal_of(BadRequest("'tools' must be an array", "tools"))
    assert refusal.status == 400
    assert json.loads(refusal.body)["error"] == {
        "message": "'tools' must be an array",
        "type": "invalid_request_error",
        "param": "tools",
        "code": None,
    }


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Unreachable("a"), 502, "upstream_unreachable"),
        (Disconnected("a"), 502, "upstream_disconnected"),
        (Malformed("a"), 502, "upstream_malformed"),
        (TimedOut("a"), 504, "upstream_timeout"),
    ],
)
def test_every_fault_of_an_upstream_has_its_status(error: UpstreamError, status: int, code: str) -> None:
    refusal = refusal_of(error)
    assert (refusal.status, json.loads(refusal.body)["error"]["code"]) == (status, code)


def test_no_fault_is_missing_from_the_table() -> None:
    assert set(STATUS_OF) == set(UpstreamError.__subclasses__())


def test_a_refusal_is_an_invalid_request_unless_it_says_otherwise() -> None:
    assert json.loads(Refusal(404, "x").body)["error"]["type"] == "invalid_request_error"
