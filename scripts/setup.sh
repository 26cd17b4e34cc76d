#!/bin/sh
# Leaves .venv/bin/tpu-ray and a Pulumi CLI. Needs Python 3.11 or newer; uv is got when it is missing.
# A second run that finds nothing changed ends at once.
set -eu
cd "$(dirname "$0")/.."
cache="${TPU_RAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tpu-ray}"
stamp=.venv/.tpu-ray-setup
say() { printf 'setup: %s\n' "$*" >&2; }

find_python() {
    for name in python3 python3.14 python3.13 python3.12 python3.11 python; do
        if command -v "$name" >/dev/null 2>&1 &&
            "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return 0
        fi
    done
    return 1
}

fingerprint() { cat uv.lock pyproject.toml scripts/setup.sh | cksum; }

find_uv() {
    for candidate in "$(command -v uv 2>/dev/null || true)" "$cache/uv/bin/uv"; do
        if [ -n "$candidate" ] && "$candidate" --version >/dev/null 2>&1; then
            printf '%s\n' "$candidate"
            return 0
        fi
    done
    return 1
}

if ! { [ -f "$stamp" ] && [ -x .venv/bin/tpu-ray ] && [ "$(fingerprint)" = "$(cat "$stamp")" ]; }; then
    if ! uv="$(find_uv)"; then
        if ! python="$(find_python)"; then
            say "there is no Python 3.11 or newer on PATH; install one and run this again"
            exit 1
        fi
        say "installing uv into $cache/uv"
        mkdir -p "$cache"
        rm -rf "$cache/uv"
        "$python" -m venv "$cache/uv"
        "$cache/uv/bin/python" -m pip install --quiet 'uv>=0.9,<1'
        uv="$cache/uv/bin/uv"
    fi
    # A venv is made with the Python found here; uv looks for one itself only where there is none.
    if python="$(find_python)"; then export UV_PYTHON="$python"; fi
    say "installing the Python environment into .venv (first time: a few minutes, about 2 GB)"
    "$uv" sync --locked --all-extras
    # Pulumi looks for the environment of dynamic resources from the folder of the program (`main`), not the project's.
    ln -sfn ../.venv infra/.venv
    fingerprint >"$stamp"
fi
say "looking for the Pulumi CLI"
.venv/bin/tpu-ray setup
