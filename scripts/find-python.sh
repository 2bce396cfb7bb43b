#!/bin/sh
# Prints a Python that can make the virtual environment (3.11 or newer, with venv), or says what to
# install. PYTHON names one to use instead of looking.
set -u

refuse() {
    cat >&2 <<EOF
Skewless needs Python 3.11 or newer with venv: $1

  Debian, Ubuntu   sudo apt-get install python3 python3-venv
                   (where python3 is older than 3.11: python3.11 python3.11-venv)
  Fedora           sudo dnf install python3
  macOS            brew install python@3.12

To use a Python that is not on PATH: make setup PYTHON=/path/to/python3
EOF
    exit 1
}

# Runs it rather than trusting the name: a version manager's shim may point at nothing.
new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

has_venv() {
    # Debian ships venv without ensurepip until python3-venv is installed.
    "$1" -c 'import ensurepip, venv' >/dev/null 2>&1
}

if [ -n "${PYTHON:-}" ]; then
    new_enough "$PYTHON" || refuse "PYTHON=$PYTHON is older or does not start."
    has_venv "$PYTHON" || refuse "PYTHON=$PYTHON has no venv."
    echo "$PYTHON"
    exit 0
fi

without_venv=
for name in python3 python3.13 python3.12 python3.11 python; do
    python=$(command -v "$name") || continue
    new_enough "$python" || continue
    if has_venv "$python"; then
        echo "$python"
        exit 0
    fi
    without_venv=${without_venv:-$python}
done
[ -z "$without_venv" ] || refuse "$without_venv is new enough, but has no venv."
refuse "none was found."
