#!/usr/bin/env bash
# Make a virtual environment with the first Python of 3.11 or newer: $PYTHON, else python3, else a versioned name.
set -euo pipefail

venv=$1
supported='import sys; sys.exit(sys.version_info < (3, 11))'

for python in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}; do
  if "$python" -c "$supported" 2>/dev/null; then
    if "$python" -m venv "$venv"; then
      exit 0
    fi
    echo "$python cannot make a virtual environment; on Debian and Ubuntu: apt-get install python3-venv" >&2
    exit 1
  fi
done
echo "Edgewise needs Python 3.11 or newer; none of these is: ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11}" >&2
exit 1
