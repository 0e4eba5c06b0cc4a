#!/usr/bin/env bash
# Figures, one group at a time. Not a test: nothing here fails because it is slow.
#
#   tests/bench/run.sh [fleet] [BUILD]          the product on this machine, JSON (default: build)
#   tests/bench/run.sh kernels [--json FILE]    instructions of the training kernels under QEMU
#   tests/bench/run.sh NAME ...                 tests/bench/NAME/run.py
set -euo pipefail
cd "$(dirname "$0")/../.."
group=${1:-fleet}
if [ "$group" != fleet ] && [ -f "tests/bench/$group/run.py" ]; then
  shift
  exec /usr/bin/python3 -B "tests/bench/$group/run.py" "$@"
fi
[ "$group" != fleet ] || [ $# -eq 0 ] || shift
exec /usr/bin/python3 -B tests/bench/bench.py --bin "${1:-build}/bin"
