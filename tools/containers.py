"""The container files, linted without an engine: hadolint, `compose config`, and promtool where it is installed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent

CHECKS = [
    [str(BIN / "hadolint"), "--failure-threshold", "info", "Dockerfile"],
    [str(BIN / "docker-compose"), "-f", "compose.yaml", "config", "--quiet"],
    ["promtool", "check", "config", "--syntax-only", "docker/prometheus.yml"],
    ["promtool", "check", "rules", "docker/alerts.yml"],
    ["promtool", "test", "rules", "docker/alerts_test.yml"],
]
# Values that compose.yaml leaves to whoever starts it.
GIVEN = {"OPENAI_API_KEY": "sk-made-up", "PATH": os.environ["PATH"]}


def main() -> int:
    """0 when every check passes. The wheels exist for Linux only and promtool comes with Prometheus: what is not
    installed is named as not checked."""
    failed = 0
    for command in CHECKS:
        shown = " ".join([Path(command[0]).name, *command[1:]])
        if shutil.which(command[0]) is None:
            print(f"containers: NOT CHECKED: {shown}: not installed here")
            continue
        code = subprocess.run(command, check=False, env=GIVEN).returncode
        print(f"containers: {shown}: {'ok' if code == 0 else f'failed ({code})'}")
        failed += code != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
