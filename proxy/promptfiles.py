"""The side model's prompts: markdown files with placeholders. An operator's own go before those that ship.

A file is the instructions, a line `---`, and the message; `{{name}}` stands for a value. What comes from a conversation
is fenced: it stands between tags that it cannot close, because their names are made from a digest of it.
"""

import difflib
import hashlib
import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

Kind = Literal["plain", "cut", "whole"]
"""`plain`: the operator's or our own words. The others come from a conversation and are fenced; `cut`: what is too long
for the side model is clipped, `whole`: it is not asked then."""

PROMPTS: Mapping[str, Mapping[str, Kind]] = {
    "summary": {"words": "plain", "text": "cut"},
    "extract": {"fields": "plain", "part": "plain", "question": "cut", "text": "whole"},
    "select_tools": {"question": "cut", "tools": "whole"},
}
BREAK = "\n---\n"  # between the instructions and the message

_PLACE = re.compile(r"\{\{\s*(\w*)\s*\}\}")


class PromptError(ValueError):
    """A prompt file cannot be used. The message is one line: place, fault, remedy."""


class Prompt(msgspec.Struct, frozen=True):
    """One file, opened: what the model is told to do, and what it is given."""

    instructions: str
    message: str
    values: Mapping[str, Kind]

    def filled(self, values: Mapping[str, str]) -> tuple[str, str]:
        """Instructions and message with every value in its place. Raises KeyError when one is missing."""

        def value(match: re.Match[str]) -> str:
            name = match[1]
            return values[name] if self.values[name] == "plain" else fenced(name, values[name])

        return _PLACE.sub(value, self.instructions), _PLACE.sub(value, self.message)


def fenced(name: str, text: str) -> str:
    """`text` between tags that cannot stand in it."""
    tag = f"{name}-{hashlib.blake2b(text.encode('utf-8', 'surrogatepass'), digest_size=6).hexdigest()}"
    return f"<{tag}>\n{text}\n</{tag}>"


def load(folder: str | None = None, seen: set[Path] | None = None) -> dict[str, Prompt]:
    """All prompts by name; files of `folder` go before the shipped ones, and come into `seen`. Raises PromptError."""
    shipped = resources.files("proxy") / "prompts"
    texts = {name: (f"prompt '{name}'", (shipped / f"{name}.md").read_text("utf-8")) for name in PROMPTS}
    if folder is not None:
        if seen is not None:
            seen |= {Path(folder), *Path(folder).glob("*.md")}
        texts |= _own(Path(folder))
    return {name: _opened(place, text, PROMPTS[name]) for name, (place, text) in texts.items()}


def _own(folder: Path) -> dict[str, tuple[str, str]]:
    if not folder.is_dir():
        raise PromptError(f"EDGEWISE_PROMPTS: {folder} is no directory; name one that holds prompt files")
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(folder.glob("*.md")):
        if path.stem not in PROMPTS:
            near = difflib.get_close_matches(path.stem, PROMPTS, 1)
            hint = f"did you mean '{near[0]}.md'?" if near else f"prompts are {', '.join(PROMPTS)}"
            raise PromptError(f"{path}: no prompt has this name; {hint}")
        try:
            found[path.stem] = (str(path), path.read_text("utf-8"))
        except OSError as error:
            raise PromptError(f"{path}: cannot be read: {error.strerror}; check its permissions") from None
        except UnicodeDecodeError:
            raise PromptError(f"{path}: is not UTF-8 text; save it as UTF-8") from None
    return found


def _opened(place: str, text: str, values: Mapping[str, Kind]) -> Prompt:
    parts = text.replace("\r\n", "\n").split(BREAK)
    if len(parts) != 2 or not all(part.strip() for part in parts):
        raise PromptError(f"{place}: must be instructions, one line '---', and a message; give it both parts")
    used = set(_PLACE.findall(text))
    known = ", ".join(f"{{{{{name}}}}}" for name in values)
    for name in sorted(used - set(values)):
        raise PromptError(f"{place}: unknown placeholder '{{{{{name}}}}}'{_meant(name, values)}; known are {known}")
    for name in sorted(set(values) - used):
        raise PromptError(f"{place}: the placeholder '{{{{{name}}}}}' is missing; put it where its value shall stand")
    return Prompt(parts[0].strip(), parts[1].strip(), values)


def _meant(name: str, values: Mapping[str, Kind]) -> str:
    near = difflib.get_close_matches(name, values, 1)
    return f"; did you mean '{{{{{near[0]}}}}}'?" if near else ""
