"""Requests without the client's annotations: what is counted, planned and forwarded never holds one."""

from collections.abc import Sequence

import msgspec

from policies.annotations import MARK, Annotation, WrongAnnotation, read_message, read_tool
from policies.counting.memo import Memo
from policies.grown import before, leave
from policies.jsonraw import NotJSON, array
from policies.request import BadRequest, ChatRequest, Item

SHORT = 16_384  # bytes that are looked through sooner than each message is looked up
REMEMBERED = 65_536  # messages and tools, in each of two generations


class NoteReader:
    """Takes annotations out. Which messages and tools have none is remembered by content: to look for them in a long
    conversation again and again would cost as much as to count it."""

    def __init__(self) -> None:
        self._bare: Memo[bytes, bool] = Memo(REMEMBERED)

    def bare(self, request: ChatRequest) -> ChatRequest:
        """The request with its annotations as `notes`; the same object where it has none. Raises BadRequest."""
        if len(request.body) < SHORT and MARK not in request.body:
            return request
        prompt = request.prompt
        known, _ = before(prompt.messages, self)
        items = [*prompt.messages[known:], *prompt.tools]
        bare = self._bare.all([item.key for item in items])
        fresh = [item for item, found in zip(items, bare, strict=True) if found is None]
        if not any([self._marked(item) for item in fresh]):
            leave(prompt.messages, self, True)
            return request
        try:
            body, notes = _unannotated(request)
        except (WrongAnnotation, NotJSON) as error:
            raise BadRequest(str(error)) from None
        return request if body is None else msgspec.structs.replace(ChatRequest.parse(body), notes=notes)

    def _marked(self, item: Item) -> bool:
        """Every fresh item is looked at, so that all are remembered."""
        if MARK in item.raw:
            return True
        self._bare.set(item.key, True)
        return False


def _unannotated(request: ChatRequest) -> tuple[bytes | None, dict[str, Annotation]]:
    """The body without annotations (None: there are none) and what they say; all other bytes stay as they are."""
    changes: dict[str, bytes | None] = {}
    messages = [read_message(one.raw, f"messages[{at}]") for at, one in enumerate(request.prompt.messages)]
    tools = [read_tool(one.raw, f"tools[{at}]") for at, one in enumerate(request.prompt.tools)]
    if _differ(messages, request.prompt.messages):
        changes["messages"] = array([raw for raw, _ in messages])
    if _differ(tools, request.prompt.tools):
        changes["tools"] = array([raw for raw, _ in tools])
    notes = {f"m{at}": said for at, (_, said) in enumerate(messages) if said is not None}
    notes |= {f"t{at}": said for at, (_, said) in enumerate(tools) if said is not None}
    return (request.object.splice(changes) if changes else None), notes


def _differ(read: Sequence[tuple[bytes, Annotation | None]], items: Sequence[Item]) -> bool:
    return any(raw is not item.raw for (raw, _), item in zip(read, items, strict=True))
