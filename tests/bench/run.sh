#!/usr/bin/env bash
# Figures of a built tree, as JSON on standard output. Not a test: nothing here fails because it is slow.
#
#   tests/bench/run.sh [BUILD]     (default: build)
set -euo pipefail
cd "$(dirname "$0")/../.."
exec /usr/bin/python3 -B tests/bench/bench.py --bin "${1:-build}/bin"
