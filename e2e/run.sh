#!/usr/bin/env bash
# The product before a real model and real clients. Each script starts what it needs on loopback and stops it by pid.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=.venv/bin/python

"$python" e2e/counts.py
"$python" e2e/clients.py
"$python" e2e/conversation.py
bash e2e/image.sh
"$python" e2e/select_tools.py
