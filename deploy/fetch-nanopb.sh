#!/bin/sh
# Puts pb.h, the header that nanopb's generated ones include, into a folder of the build tree.
# Debian ships only the generator as a binary, so it comes from its source package, through
# a private source list: nothing of the system's apt configuration changes, no root is needed.
#
# usage: fetch-nanopb.sh FOLDER
# Without effect where FOLDER already holds this version. NANOPB_TARBALL=FILE uses a tarball at hand.
set -eu

package=nanopb
version=0.4.7-2
upstream=0.4.7
tarball=nanopb_$upstream.orig.tar.gz
files="pb.h"

die() {
  printf 'fetch-nanopb: %s\n' "$1" >&2
  exit 1
}

[ $# -eq 1 ] || die "usage: fetch-nanopb.sh FOLDER"
out=$1
[ "$(cat "$out/VERSION" 2>/dev/null || true)" = "$version" ] && exit 0

mkdir -p "$out"
out=$(cd "$out" && pwd)
# Two build trees may be configured at once.
exec 9>"$out/lock"
flock 9
[ "$(cat "$out/VERSION" 2>/dev/null || true)" = "$version" ] && exit 0
work=$out/download
rm -rf "$work"
mkdir -p "$work/sources" "$work/lists/partial" "$work/cache/archives/partial" "$work/tree"

# The mirror this machine installs from; its first bookworm/main index says so.
mirror() {
  apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Identifier: Packages' \
    2>/dev/null | while read -r uri release component; do
    case "$release $component" in
      "bookworm main" | "oldstable main" | "stable main") printf '%s\n' "$uri" && break ;;
    esac
  done
}

private_apt() {
  apt-get -q \
    -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" \
    -o APT::Sandbox::User="$(id -un)" -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

default_mirror=http://deb.debian.org/debian/

# from URI
try_mirror() {
  uri=$1
  cat >"$work/sources/nanopb.sources" <<LIST
Types: deb-src
URIs: $uri
Suites: bookworm
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
LIST
  private_apt update >"$work/log" 2>&1 && (
    cd "$work/tree" && private_apt source --download-only "$package=$version" >>"$work/log" 2>&1
  )
}

download() {
  # Not every private mirror carries sources.
  own=$(mirror)
  try_mirror "${own:-$default_mirror}" || try_mirror "$default_mirror" || {
    tail -n 5 "$work/log" >&2
    die "cannot download the source package $package $version from $uri (network? try again, or set NANOPB_TARBALL to $tarball)"
  }
  # apt has checked the .dsc against the signed index; this checks the tarball against the .dsc.
  dsc=$(ls "$work"/tree/*.dsc)
  want=$(sed -n '/^Checksums-Sha256:/,/^[^ ]/p' "$dsc" | awk -v f="$tarball" '$3 == f { print $1 }')
  got=$(sha256sum "$work/tree/$tarball" | cut -d' ' -f1)
  [ -n "$want" ] && [ "$want" = "$got" ] ||
    die "$tarball: SHA-256 $got, the .dsc says ${want:-nothing}; delete $out and try again"
}

if [ -n "${NANOPB_TARBALL:-}" ]; then
  [ -r "$NANOPB_TARBALL" ] || die "NANOPB_TARBALL=$NANOPB_TARBALL cannot be read"
  cp "$NANOPB_TARBALL" "$work/tree/$tarball"
else
  download
fi

top=$(tar -tzf "$work/tree/$tarball" | sed -n '1s,/.*,,p')
for f in $files; do
  tar -xzf "$work/tree/$tarball" -C "$work" "$top/$f" || die "$tarball has no $f"
  mv "$work/$top/$f" "$out/$f"
done
mv "$work/tree/$tarball" "$out/$tarball"
rm -rf "$work"
printf '%s\n' "$version" >"$out/VERSION"
