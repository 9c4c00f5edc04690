from typing import Any

import pytest

from proxy.errors import Refusal
from proxy.observe import Mode
from proxy.planner import Call
from proxy.policyshelf import Shelf
from proxy.routing import Upstream
from proxy.settings import Settings
from proxy.wanted import Wanted

SHELF = Shelf.load("balanced", ("frugal",))


def wanted(*headers: tuple[bytes, bytes], **settings: Any) -> Wanted:
    call = Call("ew_1", headers, "ab" * 16, Upstream.of("http://a.test/v1", None))
    return Wanted.of(call, "gpt-4o", SHELF, Settings.load(**settings))


def test_without_headers_it_is_as_the_operator_says() -> None:
    assert wanted() == Wanted(SHELF.main, "enforce")
    assert wanted(mode="observe").mode == "observe"


def test_a_policy_on_the_list_may_be_asked_for() -> None:
    assert wanted((b"edgewise-policy", b"frugal")).policy.name == "frugal"


@pytest.mark.parametrize(
    ("mode", "asked", "allowed", "expected"),
    [
        ("enforce", b"observe", True, "observe"),
        ("observe", b"observe", False, "observe"),
        ("observe", b"enforce", False, "enforce"),
        ("enforce", b"enforce", False, "enforce"),
    ],
)
def test_a_mode_may_be_raised_and_lowered_where_that_is_allowed(
    mode: Mode, asked: bytes, allowed: bool, expected: Mode
) -> None:
    assert wanted((b"edgewise-mode", asked), mode=mode, allow_observe=allowed).mode == expected


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ((b"edgewise-policy", b"none"), "'Edgewise-Policy' names no policy that may be asked for; allowed are frugal"),
        ((b"edgewise-mode", b"off"), "'Edgewise-Mode' must be observe or enforce"),
        ((b"edgewise-mode", b"observe"), "'Edgewise-Mode: observe' is not allowed here"),
    ],
)
def test_what_is_unknown_or_not_allowed_is_refused(header: tuple[bytes, bytes], message: str) -> None:
    with pytest.raises(Refusal, match=message) as raised:
        wanted(header)
    assert raised.value.status == 400
