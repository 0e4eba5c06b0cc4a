#!/bin/sh
# The library as an archive, as a project with a compiler of its own has it.
#
# usage: build_library.sh SOURCES OUT COMPILER [OPTION...]
set -eu
src=$1
out=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for source in "$src"/*.c "$src"/*/*.c; do
  object=$(echo "${source#"$src"/}" | tr / -)
  "$@" -std=c11 -O2 -ffunction-sections -fdata-sections -I"$src" -I"$src/../include" -c "$source" \
    -o "$folder/${object%.c}.o"
done
rm -f "$out"
ar rcs "$out" "$folder"/*.o
