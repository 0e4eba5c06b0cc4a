#!/bin/sh
# firmware/odt links no float, heap, I/O or mutable data, has no recursion and no variable-length
# arrays. Compiled for a core without FPU, so that any float becomes a call to __aeabi_*.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cc=${ODT_ARM_CC:-arm-none-eabi-gcc}
nm=${ODT_ARM_NM:-arm-none-eabi-nm}
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
status=0

for source in "$root"/firmware/odt/src/*.c "$root"/firmware/odt/src/kernels/*.c; do
  object=$out/$(basename "$source" .c).o
  "$cc" -std=c11 -mcpu=cortex-m3 -mthumb -O2 -Wall -Wextra -Wvla -Werror -fstack-usage \
    -fcallgraph-info -I"$root/firmware/odt/include" \
    -I"$root/firmware/odt/src" -c "$source" -o "$object"
done

allowed='memcpy memset memmove memcmp __aeabi_uldivmod __aeabi_ldivmod'
for name in $("$nm" -u "$out"/*.o | awk '$1 == "U" { print $2 }' | sort -u); do
  case " $allowed " in *" $name "*) continue ;; esac
  case $name in odt_*) continue ;; esac
  echo "odt: calls $name, allowed are: $allowed" >&2
  status=1
done
if "$nm" "$out"/*.o | awk '$2 ~ /^[bBdDC]$/ { print; found = 1 } END { exit !found }' >&2; then
  echo "odt: mutable data (above)" >&2
  status=1
fi

# Every function calls only others; tsort names a cycle.
cat "$out"/*.ci | awk -F'"' '/^edge:/ { print $2, $4 }' | sed 's/[^ ]*\.c://g' | sort -u >"$out/calls"
if ! tsort "$out/calls" >/dev/null 2>"$out/cycles"; then
  echo "odt: recursion:" >&2
  cat "$out/cycles" >&2
  status=1
fi
if awk '$1 == $2 { print; found = 1 } END { exit !found }' "$out/calls" >&2; then
  echo "odt: recursion (above)" >&2
  status=1
fi

stack=$(cat "$out"/*.su | awk '{ print $(NF - 1) }' | sort -n | tail -1)
if [ "$stack" -gt 512 ]; then
  echo "odt: a function takes $stack bytes of stack, the limit is 512" >&2
  status=1
fi
if grep -h 'dynamic' "$out"/*.su | grep -v bounded >&2; then status=1; fi
[ $status -eq 0 ] && echo "odt: symbols, recursion and stack are fine (largest frame $stack bytes)"
exit $status
