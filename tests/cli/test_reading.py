import io
import json

import pytest

from proxy.cli.reading import Read, requests

ONE = {"model": "m", "messages": [{"role": "user", "content": "a\nb"}]}


def read(source: bytes) -> list[Read]:
    return list(requests(io.BytesIO(source), "f"))


@pytest.mark.parametrize("indent", [None, 2])
def test_one_request_may_stand_on_one_line_or_many(indent: int | None) -> None:
    (found,) = read(json.dumps(ONE, indent=indent).encode())
    assert found.request is not None
    assert found.request.model == "m"


def test_many_requests_stand_on_a_line_each_and_blank_lines_do_not_count() -> None:
    line = json.dumps(ONE).encode()
    found = read(b"\xef\xbb\xbf" + line + b"\n\n" + line + b"\r\n" + line)
    assert [one.place for one in found] == ["f:1", "f:3", "f:4"]
    assert all(one.request for one in found)


def test_leading_blank_lines_are_skipped() -> None:
    line = json.dumps(ONE).encode()
    assert [one.place for one in read(b"\n\n" + line + b"\n" + line)] == ["f:3", "f:4"]


def test_a_file_with_one_line_needs_no_number() -> None:
    assert [one.place for one in read(json.dumps(ONE).encode() + b"\n")] == ["f"]


@pytest.mark.parametrize("wrapper", ["body", "request"])
def test_a_line_of_a_batch_file_is_its_body(wrapper: str) -> None:
    (found,) = read(json.dumps({"custom_id": "1", wrapper: ONE}).encode())
    assert found.request is not None
    assert found.request.model == "m"


def test_a_faulty_line_is_named_and_the_others_are_read() -> None:
    found = read(json.dumps(ONE).encode() + b'\n{"model": "m"}\n{oops\n' + json.dumps(ONE).encode())
    assert [one.fault for one in found] == [
        "",
        "'messages' is missing: it must be an array of messages",
        found[2].fault,
        "",
    ]
    assert found[2].place == "f:3"
    assert "not valid JSON" in found[2].fault


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        (b"", "it is empty; give a chat completion request as JSON"),
        (b"[1]", "it is a JSON array; give one request, or one request a line"),
        (b'{"body": 1}', "'messages' is missing: it must be an array of messages"),
        (b'"text"', "this is not valid JSON: expected an object"),
    ],
)
def test_what_is_no_request_says_why(source: bytes, fault: str) -> None:
    (found,) = read(source)
    assert (found.request, found.fault) == (None, fault)
