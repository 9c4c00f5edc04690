"""A request's place in its conversation."""

import json

from support.ledgers import ALICE
from support.prompts import chat, said, system, user

from policies.identity import CanonicalHashes, chain, hashed, root
from policies.opener import SHORT, Opener
from policies.request import ChatRequest
from proxy.chained import HASHED_INLINE, Chained, Head
from proxy.planner import Call
from proxy.routing import Upstream

CALL = Call("ew_1", (), ALICE, Upstream("api.example", "http://a.test/v1"))
TALK = [system("x" * SHORT), user("Look."), said("Well?"), user("Go on.")]


def placed(request: ChatRequest, known: CanonicalHashes | None = None) -> Chained:
    chained = Chained(known or CanonicalHashes(), CALL, request)
    assert chained.place_at_once(HASHED_INLINE)
    return chained


def test_nothing_is_known_before_it_is_placed() -> None:
    chained = Chained(CanonicalHashes(), CALL, chat(TALK))
    assert (list(chained.links), chained.id) == ([], "")


def test_a_request_without_messages_has_no_links() -> None:
    chained = placed(ChatRequest.parse(b'{"model": "m", "messages": []}'))
    assert (list(chained.links), chained.id) == ([], "")


def test_the_chain_goes_on_from_that_of_the_request_before() -> None:
    opener, known = Opener(), CanonicalHashes()
    bodies = [json.dumps({"model": "gpt-4o", "messages": TALK[:count]}).encode() for count in (2, 4)]
    first, second = (placed(opener.parse(body), known) for body in bodies)
    hashes = [hashed(item.raw) for item in ChatRequest.parse(bodies[1]).prompt.messages]
    assert list(second.links) == chain(root(ALICE, "api.example", "gpt-4o"), hashes)
    assert list(first.links) == list(second.links)[:2]
    assert first.id == second.id == second.links[1].hex()
    assert Head.decode(b"\x91\xc4\x20" + hashes[0] + hashes[1]) == first.head
    assert second.head.each() == hashes


async def test_what_is_much_is_hashed_in_a_thread() -> None:
    request = chat([system("x" * HASHED_INLINE), user("Look.")])
    chained = Chained(CanonicalHashes(), CALL, request)
    assert not chained.place_at_once(HASHED_INLINE)
    assert list(chained.links) == []
    await chained.place()
    assert list(chained.links) == list(placed_in_full(request).links)


def placed_in_full(request: ChatRequest) -> Chained:
    chained = Chained(CanonicalHashes(), CALL, request)
    assert chained.place_at_once(len(request.body))
    return chained


def test_a_head_is_named_by_the_client_or_by_the_first_message_behind_the_instructions() -> None:
    ours, changed, other = (
        placed(chat(messages))
        for messages in (TALK, [system("y"), *TALK[1:]], [TALK[0], user("Elsewhere."), *TALK[2:]])
    )
    assert ours.head_key == changed.head_key != other.head_key
