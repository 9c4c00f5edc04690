"""What a valid chat request is, judged twice and independently of the product: by OpenAI's rules and by Mistral's.

A fault reads `kind (subject): place and reason`. Two requests are compared by kind and subject, never by index, since
an edit moves messages.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

ROLES = {"system", "developer", "user", "assistant", "tool", "function"}
PARTS_OF = {  # content parts that each role may carry
    "system": {"text"},
    "developer": {"text"},
    "user": {"text", "image_url", "input_audio", "file"},
    "assistant": {"text", "refusal"},
    "tool": {"text"},
    "function": {"text"},
}
REPAIRABLE = {  # what DESIGN 1.3 wants repaired in every edited request; what a client meant is not guessed
    "orphan-result",
    "second-result",
    "unanswered-call",
    "empty-tools",
    "tool-choice-without-tools",
    "orphan-function",
    "unanswered-function",
}
CHOICES = {"none", "auto", "required"}

Found = Iterator[tuple[str, str, str]]  # kind, subject, place and reason


def faults(body: dict[str, Any]) -> list[str]:
    """Every way in which the request breaks OpenAI's chat grammar; empty when it is valid."""
    return [f"{kind} ({subject}): {reason}" for kind, subject, reason in _faults(body)]


def introduced(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Faults of `after` that `before` did not have, or had less often."""
    had = Counter(_identity(fault) for fault in faults(before))
    new: list[str] = []
    for fault in faults(after):
        if had[_identity(fault)] > 0:
            had[_identity(fault)] -= 1
        else:
            new.append(fault)
    return new


def unrepaired(body: dict[str, Any]) -> list[str]:
    """The faults that an edited request must not have, whoever made them."""
    return [fault for fault in faults(body) if fault.partition(" ")[0] in REPAIRABLE]


def _identity(fault: str) -> str:
    return fault.partition("): ")[0]


def _faults(body: dict[str, Any]) -> Found:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "empty-messages", "", "messages is not an array with elements"
        return
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            yield "not-an-object", "", f"messages[{index}]"
            return
        for kind, reason in _message_faults(message):
            yield kind, str(message.get("role")), f"messages[{index}]: {reason}"
    yield from _pair_faults(messages)
    yield from _legacy_faults(messages)
    yield from _tool_faults(body)
    yield from _legacy_choice_faults(body)


def _message_faults(message: dict[str, Any]) -> Iterator[tuple[str, str]]:
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        yield "unknown-role", repr(role)
        return
    if content is None:
        if not _may_be_null(message):
            yield "null-content", "content is null or absent"
    elif isinstance(content, list):
        yield from _part_faults(role, content)
    elif not isinstance(content, str):
        yield "content-kind", f"content is a {type(content).__name__}"
    if message.get("tool_calls") == []:
        yield "empty-calls", "tool_calls is an empty array"
    if message.get("tool_calls") is not None and role != "assistant":
        yield "calls-elsewhere", "tool_calls outside an assistant message"


def _may_be_null(message: dict[str, Any]) -> bool:
    if message["role"] == "assistant":
        return any(message.get(name) for name in ("tool_calls", "function_call", "refusal", "audio"))
    return message["role"] == "function" and "content" in message


def _part_faults(role: str, content: list[Any]) -> Iterator[tuple[str, str]]:
    if not content:
        yield "empty-content", "content is an empty array"
    for part in content:
        kind = part.get("type") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in PARTS_OF[role]:
            yield "part-kind", f"a part of type {kind!r}"
        elif kind in ("text", "refusal") and not isinstance(part.get(kind), str):
            yield "part-text", f"a {kind} part without {kind}"


def calls_of(message: dict[str, Any]) -> list[str]:
    """The ids of an assistant message's calls, in order; a call without an id counts as ''."""
    calls = message.get("tool_calls")
    if message.get("role") != "assistant" or not isinstance(calls, list):
        return []
    return [str(call.get("id") or "") if isinstance(call, dict) else "" for call in calls]


def _pair_faults(messages: Sequence[dict[str, Any]]) -> Found:
    opened: list[str] = []  # the calls of the nearest assistant message, while only tool messages followed it
    answered: list[str] = []
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            subject = str(message.get("tool_call_id"))
            if opened.count(subject) > answered.count(subject):
                answered.append(subject)
            else:
                kind = "second-result" if subject in answered else "orphan-result"
                yield kind, subject, f"messages[{index}] answers no open call"
            continue
        yield from _unanswered(opened, answered, index)
        opened, answered = calls_of(message), []
        for subject, times in Counter(opened).items():
            if times > 1:
                yield "duplicate-id", subject, f"messages[{index}] has {times} calls of one id"
    yield from _unanswered(opened, answered, len(messages))


def _unanswered(opened: Sequence[str], answered: Sequence[str], index: int) -> Found:
    for subject in (Counter(opened) - Counter(answered)).elements():
        yield "unanswered-call", subject, f"no result stands before messages[{index}]"


def _legacy_faults(messages: Sequence[dict[str, Any]]) -> Found:
    pending: str | None = None
    for index, message in enumerate(messages):
        role, call = message.get("role"), message.get("function_call")
        if role == "function" and message.get("name") != pending:
            yield "orphan-function", str(message.get("name")), f"messages[{index}] follows no call of it"
        if pending is not None and role != "function":
            yield "unanswered-function", pending, f"no result stands before messages[{index}]"
        pending = str(call.get("name")) if role == "assistant" and isinstance(call, dict) else None
    if pending is not None:
        yield "unanswered-function", pending, "no result stands before the end"


def tool_name(tool: Any) -> str:
    """The name of a tool, a tool_choice or an allowed tool, of function or custom kind; '' when it has none."""
    if not isinstance(tool, dict):
        return ""
    inner = tool.get("function") if isinstance(tool.get("function"), dict) else tool.get("custom")
    return str(inner.get("name", "")) if isinstance(inner, dict) else ""


def chosen(body: dict[str, Any]) -> list[str]:
    """The tool names that tool_choice mentions: one, or those of `allowed_tools`."""
    choice = body.get("tool_choice")
    if not isinstance(choice, dict):
        return []
    allowed = choice.get("allowed_tools")
    if isinstance(allowed, dict):
        return [tool_name(tool) for tool in allowed.get("tools") or []]
    return [tool_name(choice)]


def _tool_faults(body: dict[str, Any]) -> Found:
    tools = body.get("tools")
    if tools == []:
        yield "empty-tools", "", "tools is an empty array"
    if not tools:
        for name in ("tool_choice", "parallel_tool_calls"):
            if body.get(name) is not None:
                yield "tool-choice-without-tools", name, f"{name} stands without tools"
        return
    yield from _choice_faults([tool_name(tool) for tool in tools], body)


def _choice_faults(offered: Sequence[str], body: dict[str, Any]) -> Found:
    choice = body.get("tool_choice")
    for name, times in Counter(offered).items():
        if times > 1:
            yield "duplicate-tool", name, f"{times} tools of one name"
    if isinstance(choice, str) and choice not in CHOICES:
        yield "tool-choice-unknown", choice, "tool_choice is none of none, auto, required"
    for name in chosen(body):
        if name not in offered:
            yield "tool-choice-unknown", name, "tool_choice names a tool that is not offered"


def _legacy_choice_faults(body: dict[str, Any]) -> Found:
    functions, choice = body.get("functions"), body.get("function_call")
    if functions == []:
        yield "empty-functions", "", "functions is an empty array"
    if choice is None:
        return
    if not functions:
        yield "function-call-without-functions", "", "function_call stands without functions"
    elif isinstance(choice, dict) and choice.get("name") not in [function.get("name") for function in functions]:
        yield "function-call-unknown", str(choice.get("name")), "function_call names a function that is not offered"


def mistral_faults(body: dict[str, Any]) -> list[str]:
    """What mistral-common's serving validator says: at most one fault, since it stops at the first.

    Judged on shape: ids become nine alphanumerics, texts are shortened, fields that Mistral does not know are left
    out. Needs the `mistral-common` package.
    """
    from mistral_common.exceptions import MistralCommonException  # noqa: PLC0415  (a second to import)
    from mistral_common.protocol.instruct.request import ChatCompletionRequest  # noqa: PLC0415  (the same)

    try:
        request = ChatCompletionRequest.from_openai(**_for_mistral(body))
        _validator()(request)
    except (MistralCommonException, ValueError, KeyError) as error:
        return [f"mistral ({type(error).__name__}): {str(error).partition(chr(10))[0]}"]
    return []


def mistral_introduced(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """Mistral's fault of `after`, unless `before` had one too: it knows fewer shapes than OpenAI."""
    found = mistral_faults(after)
    return found if found and not mistral_faults(before) else []


def _validator() -> Callable[[Any], object]:
    from mistral_common.protocol.instruct.validator import ValidationMode, get_validator  # noqa: PLC0415  (the same)
    from mistral_common.tokens.tokenizers.base import TokenizerVersion  # noqa: PLC0415  (the same)

    validate: Callable[[Any], object] = get_validator(TokenizerVersion.v15, ValidationMode.serving).validate_request
    return validate


def _for_mistral(body: dict[str, Any]) -> dict[str, Any]:
    ids: dict[str, str] = {}
    messages = [_mistral_message(message, ids) for message in body["messages"]]
    return {"model": "judged", "messages": messages, "tools": [_mistral_tool(tool) for tool in body.get("tools") or []]}


def _mistral_message(message: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    kept: dict[str, Any] = {name: message[name] for name in ("role", "name") if name in message}
    if isinstance(kept.get("name"), str):
        kept["name"] = re.sub(r"[^a-zA-Z0-9_-]", "_", kept["name"])[:64]
    kept["content"] = _shortened(message.get("content"))
    if message.get("role") == "tool":
        kept["tool_call_id"] = _nine(ids, str(message.get("tool_call_id")))
    if message.get("tool_calls") is not None:
        kept["tool_calls"] = [_mistral_call(call, ids) for call in message["tool_calls"]]
    return kept


def _mistral_call(call: dict[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    return {
        "id": _nine(ids, str(call.get("id"))),
        "type": "function",
        "function": {"name": _name(call), "arguments": ""},
    }


def _mistral_tool(tool: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": _name(tool), "parameters": {"type": "object"}}}


def _name(tool: Any) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", tool_name(tool))[:64]


def _nine(ids: dict[str, str], given: str) -> str:
    return ids.setdefault(given, f"{len(ids):09d}")


def _shortened(content: Any) -> Any:
    if isinstance(content, str):
        return content[:64].encode("utf-8", "replace").decode()
    if isinstance(content, list):
        return [_shortened_part(part) for part in content]
    return content


def _shortened_part(part: Any) -> Any:
    if isinstance(part, dict) and part.get("type") == "image_url":
        return {"type": "image_url", "image_url": {"url": "http://127.0.0.1/a.png"}}
    if isinstance(part, dict) and isinstance(part.get("text"), str):
        return {"type": part.get("type"), "text": _shortened(part["text"])}
    return part
