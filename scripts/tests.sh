#!/bin/sh
# Lint, then the fast tests, then those that start the real engine, Ray and JAX. Ends with a table of times; fails when
# one part fails, after all have run.
set -u
cd "$(dirname "$0")/.."
summary="$(mktemp)"
trap 'rm -f "$summary"' EXIT
failed=0

part() {
    name="$1"
    shift
    printf '\n== %s\n' "$name" >&2
    .venv/bin/python scripts/measured.py "$name" "$summary" "$@" || failed=1
}

part "ruff check" .venv/bin/ruff check .
part "ruff format" .venv/bin/ruff format --check .
part "mypy" .venv/bin/mypy
part "fast tests" .venv/bin/python -m pytest -m "not slow and not rig and not cluster" --durations=10
part "slow tests (Pulumi, Ray, JAX)" .venv/bin/python -m pytest -m slow --durations=25

printf '\n%-32s %8s %10s  %s\n' part seconds peak_gib result
cat "$summary"
exit "$failed"
