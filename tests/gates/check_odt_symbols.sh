#!/bin/sh
# firmware/odt links no float, heap, I/O or mutable data, has no recursion and no variable-length
# arrays. Compiled for cores without FPU, so that any float becomes a call to __aeabi_*, and for one with Helium. One file
# may use float, ti_prequant.c (TI's interface); nothing but TI's interface may call it.
#
# usage: check_odt_symbols.sh [STAMP]; what passed with the same sources, compiler and script (STAMP) is not compiled again.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
cc=${ODT_ARM_CC:-arm-none-eabi-gcc}
nm=${ODT_ARM_NM:-arm-none-eabi-nm}
stamp=${1:-}
sum=$({ "$cc" --version; find "$root/firmware/odt" "$0" -name '*.[ch]' -o -name '*.sh' | sort | xargs cat; } | sha256sum)
if [ -n "$stamp" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$sum" ]; then
  echo "odt: unchanged since it passed"
  exit 0
fi
all=$(mktemp -d)
trap 'rm -rf "$all"' EXIT
status=0

for cpu in '-mcpu=cortex-m3' '-mcpu=cortex-m33 -mfloat-abi=soft' '-mcpu=cortex-m55 -mfloat-abi=hard'; do
core=$(echo "$cpu" | sed 's/ .*//; s/.*=//')
out=$all/$core
mkdir "$out"
for source in "$root"/firmware/odt/src/*.c "$root"/firmware/odt/src/*/*.c; do
  object=$out/$(echo "${source#"$root"/firmware/odt/src/}" | tr / -)
  object=${object%.c}.o
  # shellcheck disable=SC2086
  "$cc" -std=c11 $cpu -mthumb -O2 -Wall -Wextra -Wvla -Werror -fstack-usage \
    -fcallgraph-info -I"$root/firmware/odt/include" \
    -I"$root/firmware/odt/src" -c "$source" -o "$object"
done

allowed='memcpy memset memmove memcmp __aeabi_uldivmod __aeabi_ldivmod'
float='__aeabi_fadd __aeabi_fmul __aeabi_f2iz __aeabi_i2f __aeabi_fcmpgt __aeabi_fcmpge __aeabi_fcmplt __aeabi_fcmple'
for object in "$out"/*.o; do
  may=$allowed
  case $object in */ti_prequant.o) may="$allowed $float" ;; esac
  for name in $("$nm" -u "$object" | awk '$1 == "U" { print $2 }'); do
    case " $may " in *" $name "*) continue ;; esac
    case $object:$name in
      */ti-*.o:odt_ti_prequant) continue ;;
      *:odt_ti_prequant) ;;
      *:odt_*) continue ;;
    esac
    echo "odt: $(basename "$object" .o) calls $name, allowed are: $may" >&2
    status=1
  done
done
if "$nm" "$out"/*.o | awk '$2 ~ /^[bBdDC]$/ { print; found = 1 } END { exit !found }' >&2; then
  echo "odt: mutable data (above)" >&2
  status=1
fi

# Every function calls only others; tsort names a cycle.
cat "$out"/*.ci | awk -F'"' '/^edge:/ { print $2, $4 }' | sed 's#[^ ]*/##g' | sort -u >"$out/calls"
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
[ $status -eq 0 ] && echo "odt: $core: symbols, recursion and stack are fine (largest frame $stack bytes)"
done
[ $status -ne 0 ] || [ -z "$stamp" ] || echo "$sum" >"$stamp"
exit $status
