#!/usr/bin/env bash
# The repository speaks of the product alone: no paths of one machine, no unfinished marks without an issue number.
set -euo pipefail
cd "$(dirname "$0")/../.."
faults=0
. tests/gates/files.sh
list=$(files | grep -vE '\.(odtm|odts|i8|i32|bin|gz|png|db)$|package-lock.json|^tests/gates/check_words.sh$')
look() {
  if printf '%s\n' "$list" | xargs grep -nIE "$1" 2>/dev/null; then
    echo "^ $2"
    faults=1
  fi
}
look '(^|[^A-Za-z0-9_.])/(work|home|root)/[A-Za-z0-9]' "a path of one machine"
look '\b(TODO|FIXME|XXX)\b' "an unfinished mark: finish it, or file an issue"
look 'registry\.(npmjs|yarnpkg)' "a registry's host"
exit $faults
