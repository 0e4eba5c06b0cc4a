#!/usr/bin/env bash
# Figures, one group at a time. Not a test: nothing here fails because it is slow.
#
#   tests/bench/run.sh [BUILD]                  delays of the product on this machine, JSON (default: build)
#   tests/bench/run.sh fleet [--minutes N]      1,000 boards, calls and queries at once
#   tests/bench/run.sh kernels [--json FILE]    instructions of the training kernels under QEMU
#   tests/bench/run.sh all [--only GROUP,...]   every group, each with its command
#   tests/bench/run.sh NAME ...                 tests/bench/NAME/run.py
set -euo pipefail
cd "$(dirname "$0")/../.."
if [ $# -gt 0 ] && [ -f "tests/bench/$1/run.py" ]; then
  group=$1
  shift
  exec /usr/bin/python3 -B "tests/bench/$group/run.py" "$@"
fi
build=${1:-build}
if [ ! -x "$build/bin/odtd" ]; then
  groups=$(cd tests/bench && echo */run.py | sed 's|/run.py||g')
  echo "run.sh: '$build' is neither a group of figures ($groups) nor a folder with bin/odtd; build that first: README.md" >&2
  exit 2
fi
exec /usr/bin/python3 -B tests/bench/bench.py --bin "$build/bin"
