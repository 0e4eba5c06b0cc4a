#!/usr/bin/env bash
# Every public failure report has its named tests, and the table of them is true (tests/integration/session/REPORTS.md).
set -euo pipefail
cd "$(dirname "$0")/../.."
table=tests/integration/session/REPORTS.md
fail=0
say() { echo "$1"; fail=1; }

there=$(grep -rhoE '^TEST(_F|_P)?\([A-Za-z0-9]+, *Report[0-9]{2}_[A-Za-z0-9_]+' tests/unit tests/integration |
  sed -E 's/^TEST(_F|_P)?\(([A-Za-z0-9]+), */\2./' | sort)
named=$(grep -E '^\| [0-9]{2} \|' "$table" | grep -oE '`[A-Za-z0-9]+\.Report[0-9]{2}_[A-Za-z0-9_]+`' | tr -d '`' | sort)
while read -r test; do
  [ -z "$test" ] || say "$table names $test, which is not there"
done < <(comm -13 <(echo "$there") <(echo "$named"))
while read -r test; do
  [ -z "$test" ] || say "$test is not in $table"
done < <(comm -23 <(echo "$there") <(echo "$named"))
for n in $(seq -w 1 23); do
  grep -E "^\| $n \|" "$table" | grep -q "Report${n}_" || say "report $n has no test in $table"
done
grep -E '^\| [0-9]{2} \|' "$table" | while IFS='|' read -r _ number _ tests _; do
  ! grep -oE 'Report[0-9]{2}_' <<<"$tests" | grep -qv "Report${number// /}_" || { echo "row $number names another report's test"; exit 1; }
done || fail=1
grep -q 'ENV{ID_MM_DEVICE_IGNORE}="1"' deploy/60-odt-fleet.rules || say "the udev rules do not keep ModemManager away"
exit $fail
