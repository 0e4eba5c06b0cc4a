#!/usr/bin/env bash
# Source files stay readable: at most 500 lines (generated files and golden data apart).
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/gates/files.sh
long=$(files | grep -E '\.(c|h|cc|cpp|ts|tsx|py|sh|mjs)$' | grep -v /generated/ | xargs wc -l |
  awk '$2 != "total" && $1 > 500 {print $1, $2}')
[ -z "$long" ] || { printf 'over 500 lines:\n%s\n' "$long"; exit 1; }
