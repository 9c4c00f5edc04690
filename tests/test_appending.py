import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.appending import appended

ONE, TWO = b'{"role":"assistant","content":null}', b'{"role": "tool", "content":"7"}'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"messages":[{"a":1e5}]}', b'{"messages":[{"a":1e5},%b,%b]}'),
        (b'{ "messages" : [ {"a":1} ] , "b":\t2 }\n', b'{ "messages" : [ {"a":1} ,%b,%b] , "b":\t2 }\n'),
        (b'{"messages":[ ],"b":2}', b'{"messages":[ %b,%b],"b":2}'),
    ],
)
def test_every_other_byte_stays_where_it_was(body: bytes, expected: bytes) -> None:
    assert appended(body, (ONE, TWO)) == expected % (ONE, TWO)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"messages":[1],"b":2 }\n', b'{"messages":[1,%b],"b":2 ,"tool_choice":"none"}\n'),
        (b'{"tool_choice" : "auto", "messages":[1]}', b'{"tool_choice" : "none", "messages":[1,%b]}'),
        (b'{"messages":[1],"tool_choice":null}', b'{"messages":[1,%b],"tool_choice":"none"}'),
    ],
)
def test_the_last_round_may_call_nothing(body: bytes, expected: bytes) -> None:
    assert appended(body, (ONE,), calls=False) == expected % ONE


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.lists(st.booleans())), st.booleans())
def test_what_is_read_is_the_request_with_more_messages(members: dict[str, object], calls: bool) -> None:
    messages = [{"role": "user", "content": "]}"}]
    request = {**members, "messages": messages}
    made = json.loads(appended(json.dumps(request, indent=1).encode(), (ONE, TWO), calls=calls))
    choice = {} if calls else {"tool_choice": "none"}
    assert made == {**request, **choice, "messages": [*messages, json.loads(ONE), json.loads(TWO)]}
