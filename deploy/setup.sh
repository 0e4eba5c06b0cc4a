# Sourced by deploy/demo.sh and tests/run.sh: distribution check, packages, who builds, progress, the build itself.
# shellcheck shell=bash

ODT_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
ODT_BUILD=${ODT_BUILD:-$ODT_ROOT/build}
ODT_JOBS=${ODT_JOBS:-$(nproc)}

say() { printf '%s\n' "$*"; }
# One clear error: what, then what to do.
die() {
  printf 'error: %s\n' "$1" >&2
  [ $# -lt 2 ] || printf '  try: %s\n' "$2" >&2
  exit 1
}

check_distribution() {
  local id= version=
  if [ -r /etc/os-release ]; then
    id=$(. /etc/os-release && echo "${ID:-}")
    version=$(. /etc/os-release && echo "${VERSION_ID:-}")
  fi
  [ "$id" = debian ] && [ "$version" = 12 ] && return
  die "this is ${id:-an unknown system} ${version:-}; odt-fleet is built and tested on Debian 12" \
    "a Debian 12 machine, container or chroot (debootstrap --variant=minbase bookworm DIR)"
}

# Under sudo the build belongs to the user who called: only apt runs as root.
as_owner() {
  if [ "$(id -u)" = 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$SUDO_USER" != root ]; then
    sudo -u "$SUDO_USER" -H -- "$@"
  else
    "$@"
  fi
}
# mortal COMMAND...: as the owner; ends when the shell that runs it ends.
mortal() { as_owner setpriv --pdeathsig TERM -- "$@"; }
# tied COMMAND...: the same in the foreground, for a shell that must still hear a signal meanwhile.
tied() {
  mortal "$@" &
  wait $!
}
# A shell takes its jobs with it and leaves with its own code: under `set -e` a kill that finds nothing to kill would
# set one of its own. Every subshell that starts jobs calls it anew: traps are not inherited.
take_jobs_along() {
  trap 'odt_code=$?; kill $(jobs -p) 2>/dev/null || true; exit $odt_code' EXIT
  trap 'exit 143' TERM HUP
  trap 'exit 130' INT
}
take_jobs_along

# apt needs root; a plain user gets it by sudo where there is one.
as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo -- "$@"
  else
    die "packages are missing and this user cannot install them" "run this as root, or install sudo"
  fi
}

# packages_of FILE...: names, comments dropped.
packages_of() { sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$@"; }

# install_packages YES FILE...: installs what is missing; YES=1 does not ask.
install_packages() {
  local yes=$1 missing=() package size
  shift
  while read -r package; do
    # nodejs of another vendor may bring npm along.
    [ "$package" = npm ] && command -v npm >/dev/null && continue
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      missing+=("$package")
  done < <(packages_of "$@")
  [ ${#missing[@]} -gt 0 ] || return 0
  say "packages to install (${#missing[@]}): ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update -qq || die "apt-get update failed" "check the network and /etc/apt/sources.list"
  size=$(apt-get install --no-install-recommends -y --print-uris "${missing[@]}" 2>/dev/null |
    awk '/^\x27/ {n++; s += $3} END {printf "%d packages with dependencies, %.0f MB to download", n, s / 1e6}')
  say "$size"
  if [ "$yes" != 1 ] && { [ "$(id -u)" != 0 ] || [ -t 0 ]; }; then
    [ -t 0 ] || die "packages are missing and nobody can be asked" "--yes"
    local answer
    read -r -p "Install them now? [Y/n] " answer
    case $answer in '' | [yY]*) ;; *) die "not installed" "apt-get install --no-install-recommends ${missing[*]}" ;; esac
  fi
  step "installing packages" as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y --no-install-recommends "${missing[@]}"
}

# step TEXT COMMAND...: runs it with a line that lives (terminal) or two lines (log); output is kept in
# build/logs and its end shown on failure.
step() {
  local text=$1 log start=$SECONDS pid last=
  shift
  as_owner mkdir -p "$ODT_BUILD/logs"
  log=$ODT_BUILD/logs/$(printf '%s' "$text" | tr -cs 'a-zA-Z0-9' '-' | sed 's/-$//').log
  [ -t 1 ] || say "$text ..."
  "$@" >"$log" 2>&1 &
  pid=$!
  if [ -t 1 ]; then
    while kill -0 $pid 2>/dev/null; do
      last=$(tail -c 300 "$log" 2>/dev/null | tr '\r' '\n' | tail -n 1 | tr -cd '[:print:]' | cut -c 1-60)
      printf '\r\033[K%s  %d s  %s' "$text" $((SECONDS - start)) "$last"
      sleep 0.5
    done
  else
    while kill -0 $pid 2>/dev/null; do
      sleep 1
      [ $(((SECONDS - start) % 30)) -eq 29 ] || continue
      last=$(tail -c 300 "$log" 2>/dev/null | tr '\r' '\n' | tail -n 1 | tr -cd '[:print:]' | cut -c 1-60)
      say "  $text: $((SECONDS - start)) s  $last"
      sleep 1
    done
  fi
  if wait $pid; then
    [ -t 1 ] && printf '\r\033[K'
    say "$text: done in $((SECONDS - start)) s"
  else
    local code=$?
    [ -t 1 ] && printf '\n'
    grep -E 'error:|Error|FAILED' "$log" | head -n 5 >&2 || true
    tail -n 25 "$log" >&2
    die "$text failed (exit $code); the whole log is $log" "fix what it names and run this again: finished steps are quick"
  fi
}

configure_build() {
  local preset=$1 dir=$2
  shift 2
  [ -f "$dir/build.ninja" ] ||
    step "configuring ($preset)" mortal cmake -S "$ODT_ROOT" --preset "$preset" -B "$dir" "$@"
}

# build_targets DIR TEXT TARGET...
build_targets() {
  local dir=$1 text=$2
  shift 2
  step "$text" mortal env CCACHE_BASEDIR="$ODT_ROOT" CCACHE_NOHASHDIR=1 \
    ninja -C "$dir" -j "$ODT_JOBS" "$@"
}

# The dashboard is built again only where its sources changed.
build_web() {
  local stamp sum
  stamp=$ODT_ROOT/web/dist/.sources
  sum=$(cd "$ODT_ROOT/web" && find . -path ./node_modules -prune -o -path ./dist -prune -o -type f -print0 |
    sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)
  [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ] && return 0
  [ -d "$ODT_ROOT/web/node_modules/.bin" ] && [ "$ODT_ROOT/web/node_modules/.package-lock.json" -nt "$ODT_ROOT/web/package-lock.json" ] ||
    step "fetching dashboard packages (npm)" mortal npm --prefix "$ODT_ROOT/web" ci --no-audit --no-fund
  step "building the dashboard" mortal npm --prefix "$ODT_ROOT/web" run build
  printf '%s' "$sum" | as_owner tee "$stamp" >/dev/null
}
