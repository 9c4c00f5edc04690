"""Known vulnerabilities in the locked packages, by pip-audit: `audit.py LOCK...`.

A finding fails. Only a vulnerability service that cannot be reached at all lets the build go on, with a line that says
that nothing was checked. Locks are read in order, the smallest first, so that this is found out early.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec


class Vulnerability(msgspec.Struct):
    id: str
    fix_versions: list[str]


class Package(msgspec.Struct):
    """A package as pip-audit reports it: with what was found, or with why it was skipped."""

    name: str
    version: str = "?"
    vulns: list[Vulnerability] = []
    skip_reason: str | None = None


class Audit(msgspec.Struct):
    dependencies: list[Package]


OPTIONS = ["--require-hashes", "--disable-pip", "--format", "json", "--progress-spinner", "off", "--timeout", "15"]
UNREACHABLE = ("ConnectionError", "ConnectTimeout", "ReadTimeout", "Failed to resolve", "ServiceError")


def run_audit(lock: str) -> Audit | None:
    """What pip-audit says of one lock file; None when its service could not be reached.

    Raises:
        RuntimeError: pip-audit itself failed.
    """
    program = str(Path(sys.executable).with_name("pip-audit"))
    ran = subprocess.run([program, *OPTIONS, "-r", lock], capture_output=True, text=True, check=False)
    if ran.stdout.startswith("{"):
        return msgspec.json.decode(ran.stdout, type=Audit)
    if any(sign in ran.stderr for sign in UNREACHABLE):
        return None
    raise RuntimeError(ran.stderr)


def faults(audit: Audit) -> Iterator[str]:
    """A line for each finding, and for each package that the service does not know while it knows others."""
    for package in audit.dependencies:
        for found in package.vulns:
            fix = ", ".join(found.fix_versions) or "none yet"
            yield f"{package.name} {package.version}: {found.id}, fixed in: {fix}"
        if package.skip_reason:
            yield f"not checked: {package.skip_reason}"


def verdict(lock: str, audit: Audit | None) -> tuple[str, int]:
    """What to print for a lock file, and the exit code."""
    if audit is None or all(package.skip_reason for package in audit.dependencies):
        return f"audit: NOT CHECKED: the vulnerability service does not answer from here ({lock})", 0
    found = list(faults(audit))
    if found:
        return "\n".join([f"audit: {lock}:", *found]), 1
    return f"audit: {lock}: {len(audit.dependencies)} packages, no known vulnerability", 0


def main(locks: list[str]) -> int:
    for lock in locks:
        audit = run_audit(lock)
        text, code = verdict(lock, audit)
        print(text)
        if code or "NOT CHECKED" in text:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
