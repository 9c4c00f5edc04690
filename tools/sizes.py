"""The tail is capped: no file over 300 lines, no function over 50.

Prints every place that is over and exits with 1, else with 0. Data is apart: only Python files are read.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

MAX_FILE = 300  # lines
MAX_FUNCTION = 50  # lines, decorators apart


def oversized(name: str, source: str) -> Iterator[str]:
    """One line of text for the file, and one for each function, that is over its cap."""
    lines = len(source.splitlines())
    if lines > MAX_FILE:
        yield f"{name}: {lines} lines, at most {MAX_FILE}"
    for node in ast.walk(ast.parse(source, name)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > MAX_FUNCTION:
                yield f"{name}:{node.lineno}: {node.name} has {length} lines, at most {MAX_FUNCTION}"


def main() -> int:
    listed = subprocess.run(["git", "ls-files", "-zco", "--exclude-standard", "*.py"], capture_output=True, check=True)
    files = [Path(name) for name in listed.stdout.decode().split("\0") if name]
    over = [text for path in files if path.exists() for text in oversized(str(path), path.read_text("utf-8"))]
    print("\n".join(over) or f"sizes: {len(files)} files within {MAX_FILE} lines, functions within {MAX_FUNCTION}")
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
