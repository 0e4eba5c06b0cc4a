#!/usr/bin/env bash
# The Debian package: builds, holds what it should, depends on what the binaries link, and its programs start.
#   check_package.sh BUILD_DIR
set -euo pipefail
build=$(cd "$1" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
(cd "$build" && cpack -G DEB -B "$out" >"$out/cpack.log") || { cat "$out/cpack.log"; exit 1; }
deb=$(echo "$out"/odt-fleet_*_*.deb)
[ -f "$deb" ] || { echo "no package"; ls -R "$out"; exit 1; }
version=$(sed -n 's/^project(odt-fleet VERSION \([0-9.]*\).*/\1/p' "$(dirname "$0")/../../CMakeLists.txt")
[ "$(dpkg-deb -f "$deb" Version)" = "$version" ] || { echo "version $(dpkg-deb -f "$deb" Version), expected $version"; exit 1; }
dpkg-deb -f "$deb" Depends | grep -q libgrpc || { echo "no dependency on gRPC: $(dpkg-deb -f "$deb" Depends)"; exit 1; }
dpkg-deb -x "$deb" "$out/root"
for file in usr/bin/{odtd,odtctl,odtc,odt-worker} usr/share/odt-fleet/web/index.html etc/odt-fleet/odtd.toml \
  lib/systemd/system/odtd.service lib/udev/rules.d/60-odt-fleet.rules usr/share/man/man1/odtctl.1 \
  usr/share/odt-fleet/python/simple/odtfleet/index.html "usr/share/odt-fleet/python/odtfleet-$version-py3-none-any.whl"; do
  [ -e "$out/root/$file" ] || { echo "missing in the package: /$file"; dpkg-deb -c "$deb"; exit 1; }
done
for program in odtd odtctl odtc; do
  "$out/root/usr/bin/$program" --version | grep -q "$version" || { echo "$program --version does not say $version"; exit 1; }
done
echo "$deb: $(stat -c %s "$deb") bytes"
