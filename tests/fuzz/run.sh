#!/usr/bin/env bash
# Runs every fuzzer for its share of the time: run.sh BUILD_DIR SECONDS. One PASS or FAIL line each.
# A finding is kept in BUILD_DIR/findings; committed seeds are only read.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=$1 seconds=$2
shopt -s nullglob
fuzzers=("$build"/bin/fuzz_*)
[ ${#fuzzers[@]} -gt 0 ] || { echo "FAIL fuzz/none: no fuzzer in $build/bin"; exit 1; }
share=$((seconds / ${#fuzzers[@]}))
mkdir -p "$build/findings"
status=0
for fuzzer in "${fuzzers[@]}"; do
  name=$(basename "$fuzzer")
  corpus=$build/corpus/$name
  mkdir -p "$corpus"
  seeds=()
  [ -d "$here/corpus/$name" ] && seeds=("$here/corpus/$name")
  if setpriv --pdeathsig TERM -- "$fuzzer" -max_total_time="$share" -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$name-" "$corpus" "${seeds[@]}" 2>"$build/$name.log"; then
    echo "PASS fuzz/$name"
  else
    tail -n 40 "$build/$name.log"
    echo "FAIL fuzz/$name: see $build/$name.log and $build/findings"
    status=1
  fi
done
exit $status
