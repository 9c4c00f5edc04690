#!/usr/bin/env bash
# The bars, one script each, in this order. Every script prints its method and its figures, and fails over its bar.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

python=.venv/bin/python

"$python" bench/size.py
"$python" bench/counts.py
"$python" bench/calibration.py
"$python" bench/fit.py
"$python" bench/folding.py
"$python" bench/lossless.py
"$python" bench/windows60.py
"$python" bench/cost.py
"$python" bench/turns.py
"$python" bench/loops.py
