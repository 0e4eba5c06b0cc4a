#!/usr/bin/env bash
# The package of an earlier version, out of its tag: where upgrades begin.
#   build_old.sh TAG OUT_DIR      prints the package's name; keeps the build in OUT_DIR/build for the next time
set -euo pipefail
tag=$1
mkdir -p "$2"
out=$(cd "$2" && pwd)
repo=$(cd "$(dirname "$0")/../.." && pwd)
git -C "$repo" rev-parse -q --verify "$tag^{commit}" >/dev/null || { echo "build_old.sh: no tag $tag in $repo" >&2; exit 77; }
if [ ! -d "$out/source" ]; then
  mkdir "$out/source.new"
  git -C "$repo" archive "$tag" | tar -x -C "$out/source.new"
  mv "$out/source.new" "$out/source"
fi
# Its dashboard plays no part in an upgrade.
mkdir -p "$out/source/web/dist"
[ -e "$out/source/web/dist/index.html" ] || echo '<!doctype html><title>odt-fleet</title>' >"$out/source/web/dist/index.html"
nanopb=$repo/build/nanopb
[ -e "$nanopb/VERSION" ] && set -- "-DODT_NANOPB_DIR=$nanopb" || set --
cmake -S "$out/source" -B "$out/build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DODT_UNITY=ON \
  -DCMAKE_SKIP_INSTALL_ALL_DEPENDENCY=ON "$@" >"$out/cmake.log"
cmake --build "$out/build" --target odtd odtctl odtc odt-worker odt-sim-board -- -j2 >"$out/build.log"
(cd "$out/build" && cpack -G DEB >"$out/cpack.log")
ls "$out"/build/odt-fleet_*.deb
