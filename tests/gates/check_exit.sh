#!/usr/bin/env bash
# Every script that sources deploy/setup.sh leaves with its own exit code, whatever it started, and leaves nothing
# of it running.
set -euo pipefail
cd "$(dirname "$0")/../.."

# leaves CODE WHAT SCRIPT: SCRIPT, after setup.sh, exits with CODE.
leaves() {
  local code=0
  bash -c "set -euo pipefail; . deploy/setup.sh; $3" >/dev/null 2>&1 || code=$?
  [ $code = "$1" ] || { echo "$2: exit $code, not $1"; exit 1; }
}

leaves 0 "nothing started" 'true'
leaves 0 "nothing started, exit 0" 'exit 0'
leaves 0 "a job that was waited for" 'sleep 0.1 & wait $!; true'
leaves 0 "a job that ended unwaited" 'true & sleep 0.2; true'
leaves 0 "a job in the foreground" 'tied true; true'
leaves 0 "a job that still runs" 'sleep 1000 & true'
leaves 1 "an error" 'die what "do"'
leaves 1 "a failed test at the end" 'true & wait $!; [ 1 = 0 ]'
leaves 3 "a foreground job's own code" 'tied bash -c "exit 3"'
leaves 143 "TERM" 'kill -TERM $$; sleep 1000 & wait $!'

# ends WHAT SCRIPT: the process whose number SCRIPT writes to $left is gone soon after it.
left=$(mktemp)
trap 'rm -f "$left"' EXIT
ends() {
  : >"$left"
  leaves 0 "$1" "$2"
  for _ in $(seq 50); do
    kill -0 "$(cat "$left")" 2>/dev/null || return 0
    sleep 0.1
  done
  echo "$1: it outlived its script"
  exit 1
}

ends "a job" "sleep 1000 & echo \$! >$left"
ends "a job of a job" "(take_jobs_along; tied bash -c 'echo \$\$ >$left; exec sleep 1000') & until [ -s $left ]; do sleep 0.1; done"
