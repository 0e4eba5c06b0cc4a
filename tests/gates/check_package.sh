#!/usr/bin/env bash
# The Debian packages: build, hold what they should, depend on what the binaries link, their programs start, their units
# are sound. The whole (installed, upgraded, removed in a chroot): tests/package/install.py.
#   check_package.sh BUILD_DIR
set -euo pipefail
repo=$(cd "$(dirname "$0")/../.." && pwd)
build=$(cd "$1" && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
fail() { echo "$1"; exit 1; }
(cd "$build" && cpack -G DEB -B "$out" >"$out/cpack.log") || { cat "$out/cpack.log"; exit 1; }
version=$(sed -n 's/^project(odt-fleet VERSION \([0-9.]*\).*/\1/p' "$repo/CMakeLists.txt")
for name in odt-fleet odt-fleet-dev python3-odtfleet; do
  deb=$(echo "$out/${name}"_*.deb)
  [ -f "$deb" ] || fail "no package $name: $(ls "$out")"
  said=$(dpkg-deb -f "$deb" Version)
  case $said in "$version" | "$version+git"*) ;; *) fail "$name has version $said, expected $version or $version+gitN" ;; esac
  dpkg-deb -x "$deb" "$out/$name"
done
deb=$(echo "$out"/odt-fleet_*.deb)
dpkg-deb -f "$deb" Depends | grep -q libgrpc || fail "no dependency on gRPC: $(dpkg-deb -f "$deb" Depends)"
for file in usr/bin/{odtd,odtctl,odtc,odt-worker,odt-flash} usr/share/odt-fleet/web/index.html etc/odt-fleet/odtd.toml \
  lib/systemd/system/{odtd.service,odt-flash@.service,odt-flash@.path} lib/udev/rules.d/60-odt-fleet.rules \
  usr/lib/sysusers.d/odt-fleet.conf usr/lib/tmpfiles.d/odt-fleet.conf etc/logrotate.d/odt-fleet \
  usr/share/odt-fleet/boards/stm32u575.toml usr/share/doc/odt-fleet/docs/{operations.md,faq.md,api.md} \
  usr/share/man/{man1/odtctl.1,man1/odtc.1,man1/odt-worker.1,man8/odtd.8,man8/odt-flash.8} \
  usr/share/bash-completion/completions/odtctl usr/share/zsh/vendor-completions/_odtctl \
  usr/share/fish/vendor_completions.d/odtctl.fish \
  usr/share/odt-fleet/python/simple/odtfleet/index.html "usr/share/odt-fleet/python/odtfleet-$version-py3-none-any.whl"; do
  [ -e "$out/odt-fleet/$file" ] || { echo "missing in the package: /$file"; dpkg-deb -c "$deb"; exit 1; }
done
[ -e "$out/odt-fleet-dev/usr/include/odt-fleet/proto/odt/api/v1/services.proto" ] || fail "odt-fleet-dev has no services.proto"
[ -e "$out/python3-odtfleet/usr/lib/python3/dist-packages/odtfleet/__init__.py" ] || fail "python3-odtfleet has no package"
for program in odtd odtctl odtc odt-flash; do
  "$out/odt-fleet/usr/bin/$program" --version | grep -q "$version" || fail "$program --version does not say $version"
done
"$out/odt-fleet/usr/bin/odtd" check-config "$out/odt-fleet/etc/odt-fleet/odtd.toml" >/dev/null || fail "the package's own configuration is not valid"
# Conffiles and maintainer scripts are what dpkg will run.
mkdir "$out/control"
dpkg-deb -e "$deb" "$out/control"
while read -r file; do
  [ -e "$out/odt-fleet$file" ] || fail "conffile $file is not in the package"
done <"$out/control/conffiles"
for script in "$out"/control/{postinst,prerm,postrm}; do sh -n "$script"; done
if command -v systemd-analyze >/dev/null; then
  # systemd's own targets, which the units name.
  for target in sysinit basic shutdown network multi-user paths; do
    echo "[Unit]" >"$out/odt-fleet/lib/systemd/system/$target.target"
  done
  for unit in odtd.service odt-flash@odtd.service odt-flash@odtd.path; do
    said=$(systemd-analyze --root="$out/odt-fleet" verify --man=no "$unit" 2>&1 || :)
    [ -z "$said" ] || fail "systemd-analyze verify $unit: $said"
  done
  for unit in odtd.service odt-flash@odtd.service; do
    systemd-analyze --root="$out/odt-fleet" security --offline=yes --threshold=30 "$unit" >"$out/security.log" 2>&1 ||
      fail "systemd-analyze security $unit: $(tail -3 "$out/security.log")"
  done
fi
echo "$deb: $(stat -c %s "$deb") bytes"
