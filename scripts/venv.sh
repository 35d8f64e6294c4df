#!/bin/sh
# Make .venv with a Python of at least 3.11 and put uv into it. One clear sentence when there is none.
set -eu
cd "$(dirname "$0")/.."

found=
for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
        found=$candidate
        break
    fi
done
if [ -z "$found" ]; then
    echo "turnscope needs Python 3.11 or newer and found none: install one, or name it with 'make PYTHON=/path/to/python3'." >&2
    exit 2
fi
if ! "$found" -c 'import ensurepip, venv' >/dev/null 2>&1; then
    echo "$found cannot make virtual environments: install its venv module (on Debian or Ubuntu: apt-get install python3-venv)." >&2
    exit 2
fi
[ -x .venv/bin/python ] || "$found" -m venv .venv
.venv/bin/python -m pip install --quiet --no-cache-dir --disable-pip-version-check uv
