"""Recorded requests in Anthropic's and Gemini's own formats, as the chat requests that a client would have sent here.

What a chat request cannot say stays behind (`sayable` tells): what it costs nobody could count from it.
"""

from base64 import urlsafe_b64decode
from collections.abc import Iterator
from typing import Any

import msgspec

FILLER = "A"  # stands for each character of base64 that was taken out of the recording
WORD = "word "  # the same for text

CHOICES = {"auto": "auto", "none": "none", "any": "required", "tool": "required"}
BLOCKS = frozenset(["text", "tool_use", "tool_result", "image", "document", "thinking"])
BEYOND = frozenset(["executableCode", "codeExecutionResult", "toolCall", "toolResponse", "videoMetadata"])
DECLARED = frozenset(["functionDeclarations", "function_declarations"])

Object = dict[str, Any]


def chat_of(api: str, request: Object) -> Object:
    """`request` of `api` ("anthropic", "anth_count", "gemini", "gem_count", "chat") as a chat request."""
    if api.startswith("anth"):
        return _from_anthropic(request)
    return _from_gemini(request) if api.startswith("gem") else request


def sayable(api: str, request: Object) -> bool:
    """Whether a chat request can say all of it: no tools that run at the provider's, no containers, no videos."""
    if api.startswith("anth"):
        tools = request.get("tools") or []
        plain = all(tool.get("type", "custom") == "custom" and not tool.get("defer_loading") for tool in tools)
        blocks = [block for message in request["messages"] for block in _blocks(message["content"])]
        inner = [
            part for block in blocks if block.get("type") == "tool_result" for part in _blocks(block.get("content"))
        ]
        return plain and all(block.get("type") in BLOCKS for block in (*blocks, *inner))
    if api.startswith("gem"):
        tools = request.get("tools") or []
        declared = all(isinstance(tool, dict) and DECLARED & tool.keys() for tool in tools)
        parts = [part for content in _contents(request["contents"]) for part in content.get("parts") or []]
        return declared and not any(BEYOND & part.keys() or "video/" in _json(part) for part in parts)
    return True


def _from_anthropic(request: Object) -> Object:
    messages = list(_system(request.get("system")))
    for message in request["messages"]:
        messages += _anthropic_message(message["role"], _blocks(message["content"]))
    tools = [_function(tool["name"], tool, tool.get("input_schema")) for tool in request.get("tools") or []]
    chosen = CHOICES.get((request.get("tool_choice") or {}).get("type", ""))
    return _request(request["model"], messages, tools, chosen)


def _anthropic_message(role: str, blocks: list[Object]) -> Iterator[Object]:
    """Results stand before what the user says beside them."""
    calls, parts, thoughts = [], [], []
    for block in blocks:
        kind = block.get("type")
        if kind == "tool_result":
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": _result(block.get("content"))}
        elif kind == "tool_use":
            calls.append(_call(block["id"], block["name"], block["input"]))
        elif kind == "thinking":
            thoughts.append(block["thinking"])
        else:
            parts.append(_anthropic_part(block))
    yield from _message(role, parts, calls, "".join(thoughts))


def _result(content: Any) -> Any:
    parts = [_anthropic_part(block) for block in _blocks(content)]
    return parts[0]["text"] if len(parts) == 1 and parts[0]["type"] == "text" else parts


def _anthropic_part(block: Object) -> Object:
    kind, source = block.get("type"), block.get("source") or {}
    if kind == "text":
        return {"type": "text", "text": block["text"]}
    if kind == "image":
        return _image(source, source.get("media_type", "image/png"))
    if kind == "document":
        return _file(source, source.get("media_type", "application/pdf"))
    return {"type": "text", "text": _json(block)}


def _from_gemini(request: Object) -> Object:
    messages: list[Object] = []
    for part in _list((request.get("systemInstruction") or {}).get("parts")):
        messages.append({"role": "system", "content": part.get("text", "")})
    for turn, content in enumerate(_contents(request["contents"])):
        messages += _gemini_message(turn, content)
    return _request(request.get("model", ""), messages, list(_gemini_tools(request.get("tools"))))


def _gemini_tools(tools: Any) -> Iterator[Object]:
    for tool in _list(tools):
        declared = tool.get("functionDeclarations") or tool.get("function_declarations") or []
        for one in declared:
            schema = one.get("parameters") or one.get("parametersJsonSchema") or one.get("parameters_json_schema")
            yield _function(one["name"], one, _lower(schema))


def _gemini_message(turn: int, content: Object) -> Iterator[Object]:
    calls: list[Object] = []
    parts, thoughts, results = [], [], 0
    for part in content.get("parts") or []:
        called = part.get("functionCall") or part.get("function_call")
        answered = part.get("functionResponse") or part.get("function_response")
        if called:
            call = _call(f"call_{turn}_{len(calls)}", called["name"], called.get("args") or {})
            signature = part.get("thoughtSignature") or part.get("thought_signature")
            signed = {"extra_content": {"google": {"thought_signature": signature}}} if signature else {}
            calls.append({**call, **signed})
        elif answered:
            yield _answered(turn, results, answered)
            results += 1
        elif part.get("thought"):
            thoughts.append(part.get("text", ""))
        else:
            parts.append(_gemini_part(part))
    yield from _message({"model": "assistant"}.get(content.get("role", ""), "user"), parts, calls, "".join(thoughts))


def _answered(turn: int, at: int, answered: Object) -> Object:
    texts = [{"type": "text", "text": _json(answered.get("response") or {})}]
    media = [_gemini_part(part) for part in answered.get("parts") or []]
    content = [*texts, *media] if media else texts[0]["text"]
    return {"role": "tool", "tool_call_id": f"call_{turn - 1}_{at}", "content": content}


def _gemini_part(part: Object) -> Object:
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    held = next((part[key] for key in ("inlineData", "inline_data", "fileData", "file_data") if key in part), None)
    if held is None:
        return {"type": "text", "text": _json({key: part[key] for key in part if "hought" not in key})}
    media_type = held.get("mimeType") or held.get("mime_type") or ""
    if media_type.startswith("image/"):
        return _image(held, media_type)
    if media_type.startswith("audio/"):
        return {"type": "input_audio", "input_audio": {"data": _bytes(held), "format": media_type[6:]}}
    return _file(held, media_type)


def _image(source: Object, media_type: str) -> Object:
    url = source.get("url") or source.get("fileUri") or source.get("file_uri") or f"file:{source.get('file_id', '')}"
    data = _bytes(source)
    return {
        "type": "image_url",
        "image_url": {"url": f"data:{media_type};base64,{data}" if data else url, **_size(source)},
    }


def _size(source: Object) -> Object:
    return {"_dims": source["_dims"]} if source.get("_dims") else {}


def _file(source: Object, media_type: str) -> Object:
    if source.get("type") == "text":
        return {"type": "text", "text": _words(source["_len"]) if "_len" in source else source["data"]}
    if media_type.startswith("text/") and source.get("data"):
        encoded = source["data"]
        text = _words(source["_len"] * 3 // 4) if "_len" in source else urlsafe_b64decode(encoded).decode()
        return {"type": "text", "text": text}
    return {"type": "file", "file": {"file_data": f"data:{media_type};base64,{_bytes(source)}"}}


def _words(characters: int) -> str:
    return WORD * (characters // len(WORD))


def _bytes(source: Object) -> str:
    stripped = source.get("_len")
    return FILLER * stripped if stripped else str(source.get("data") or "")


def _message(role: str, parts: list[Object], calls: list[Object], thoughts: str) -> Iterator[Object]:
    if not parts and not calls and not thoughts:
        return
    only_text = len(parts) == 1 and parts[0]["type"] == "text"
    message: Object = {"role": role, "content": parts[0]["text"] if only_text else parts or None}
    if calls:
        message["tool_calls"] = calls
    if thoughts:
        message["reasoning_content"] = thoughts
    yield message


def _function(name: str, tool: Object, schema: Any) -> Object:
    function: Object = {"name": name, "description": tool.get("description") or ""}
    if schema:
        function["parameters"] = schema
    return {"type": "function", "function": function}


def _call(call_id: str, name: str, given: Any) -> Object:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": _json(given)}}


def _request(model: str, messages: list[Object], tools: list[Object], chosen: str | None = None) -> Object:
    choice = {"tool_choice": chosen} if tools and chosen else {}
    return {"model": model, "messages": messages, **({"tools": tools} if tools else {}), **choice}


def _system(system: Any) -> Iterator[Object]:
    texts = [block["text"] for block in _blocks(system)]
    if texts:
        yield {"role": "system", "content": "".join(texts)}


def _blocks(content: Any) -> list[Object]:
    """Anthropic's content: a string is one block of text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or [])


def _contents(contents: Any) -> list[Object]:
    if isinstance(contents, str):
        return [{"role": "user", "parts": [{"text": contents}]}]
    return _list(contents)


def _list(value: Any) -> list[Object]:
    """Gemini takes one where it takes several; some recordings hold a list that was taken apart by characters."""
    found = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
    return [one for one in found if isinstance(one, dict)]


def _lower(schema: Any) -> Any:
    """Gemini spells types in capitals."""
    if isinstance(schema, list):
        return [_lower(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    lowered = {key: _lower(value) for key, value in schema.items()}
    if isinstance(lowered.get("type"), str):
        lowered["type"] = lowered["type"].lower()
    return lowered


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
