"""The content of one message: its text in one piece, and what its images, sounds and files cost."""

import string

import msgspec

from policies.counting import COUNTED_CHARS
from policies.counting.images import UNKNOWN, Images, size
from policies.jsonraw import NotJSON, TooDeep
from policies.messages import Message, Part
from policies.request import Item

FILE_BYTES = 40  # bytes of a document a token: a page of a PDF is billed as its text and a picture
AUDIO_BYTES = 1_000  # bytes of sound a token: 10 to 15 tokens a second of compressed speech
AUDIO, DOCUMENT = 20, 200  # on top
ENDINGS = (string.punctuation + string.whitespace).replace("'", "")  # an apostrophe may belong to the letters
SPOKEN = ("text", "refusal", "other")


class Body(msgspec.Struct, frozen=True):
    """`media` in tokens; `exact` is False as soon as one part of it is an estimate."""

    text: str
    media: int
    exact: bool


def opened(item: Item) -> Message:
    """The message; bytes that are no JSON object are one text. Raises TooDeep: what the pipeline cannot open again."""
    try:
        return Message.of(item.raw) if item.raw[:1] == b"{" else _text(item)
    except TooDeep:
        raise
    except NotJSON:
        return _text(item)


def _text(item: Item) -> Message:
    return Message("", "text", (Part("text", item.raw.decode("utf-8", "replace")),))


def body(item: Item, message: Message, images: Images, *, reasoning: bool = False, document: int = DOCUMENT) -> Body:
    """Text parts are joined with no separator; base64 is never text. `reasoning`: it is part of the text. `document`:
    tokens of one beside what its bytes tell."""
    if message.content == "text" and not message.refusal:  # one text, as of most messages
        text = message.reasoning + message.parts[0].text if reasoning else message.parts[0].text
        return Body(text, 0, len(text) <= COUNTED_CHARS)
    text = "".join(part.text for part in message.parts if part.kind in SPOKEN) + message.refusal
    text = message.reasoning + text if reasoning else text
    media, exact = 0, len(text) <= COUNTED_CHARS
    flat = {"audio": AUDIO, "file": document}
    for part in message.parts:
        if part.kind in SPOKEN:
            exact = exact and part.kind != "other"
            continue
        tokens, measured = _image(part, images) if part.kind == "image" else (flat[part.kind], False)
        media, exact = media + tokens, exact and measured
    return Body(text, media + _bulk(item, message, text), exact)


def ending(text: str) -> str:
    """What stands behind the last letter or digit: encodings merge nothing across that place. All of it if unsure."""
    head = text.rstrip(ENDINGS)
    return text[len(head) :] if head and head[-1].isalnum() else text


def _image(part: Part, images: Images) -> tuple[int, bool]:
    found = size(part.source)
    width, height = found or UNKNOWN
    return images.tokens(width, height, low=part.detail == "low"), found is not None


def _bulk(item: Item, message: Message, text: str) -> int:
    """Tokens of files and sounds, by the bytes of the message that are neither text nor image."""
    kinds = {part.kind for part in message.parts}
    if not kinds & {"file", "audio"}:
        return 0
    seen = len(text) + sum(len(part.source) for part in message.parts)
    return max(0, len(item.raw) - seen) * 3 // 4 // (AUDIO_BYTES if "audio" in kinds else FILE_BYTES)
