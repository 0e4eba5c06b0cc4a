#!/usr/bin/env bash
# From a fresh Debian 12 to a fleet that trains: installs what is missing, builds, starts odtd with the dashboard, three
# QEMU boards and four simulated ones, trains a model, shifts every board's sensor, lets the boards adapt, shows the result.
#
#   deploy/demo.sh [--once] [--json FILE] [--yes] [--port N]
#   deploy/demo.sh --stop | --clean
#
#   --once      stop everything at the end; exit 0 only if the boards learned and none got worse
#   --json FILE write the table as JSON
#   --yes       install packages without asking
#   --port N    of the dashboard (default: 8420, or a free one)
#   --stop      end a running demo
#   --clean     end it and remove what it built (build/, web/dist, web/node_modules); packages stay
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/setup.sh

state=$ODT_BUILD/demo
once=0 yes=0 json= port= action=run
while [ $# -gt 0 ]; do
  case $1 in
    --once) once=1 ;;
    --yes) yes=1 ;;
    --json)
      [ $# -ge 2 ] || die "--json needs a file name"
      json=$(realpath -m "$2")
      [ -d "$(dirname "$json")" ] || die "--json: there is no folder $(dirname "$json")" "mkdir -p $(dirname "$json")"
      shift
      ;;
    --port)
      case ${2:-} in '' | *[!0-9]*) die "--port needs a number, got '${2:-}'" ;; esac
      [ "$2" -ge 1 ] && [ "$2" -le 65535 ] || die "--port $2 is out of range" "1 to 65535"
      port=$2
      shift
      ;;
    --stop) action=stop ;;
    --clean) action=clean ;;
    -h | --help)
      sed -n '2,13s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) die "unknown option '$1'" "deploy/demo.sh --help" ;;
  esac
  shift
done

# The driver holds a lock on state/pid as long as it lives, so a number left by a crash is never trusted.
running_pid() { [ -f "$state/pid" ] && ! flock -n "$state/pid" true 2>/dev/null && cat "$state/pid"; }

stop_demo() {
  local pid
  if pid=$(running_pid); then
    kill -TERM "$pid" 2>/dev/null || true
    for _ in $(seq 100); do
      running_pid >/dev/null || break
      sleep 0.1
    done
    ! running_pid >/dev/null || kill -KILL "$pid" 2>/dev/null || true
    say "demo stopped"
  else
    say "no demo is running"
  fi
}

case $action in
  stop)
    stop_demo
    exit 0
    ;;
  clean)
    stop_demo
    rm -rf "$ODT_BUILD" web/dist web/node_modules
    say "removed $ODT_BUILD, web/dist and web/node_modules; packages stay installed"
    exit 0
    ;;
esac

if pid=$(running_pid); then
  die "a demo is running already (process $pid)" "deploy/demo.sh --stop"
fi
check_distribution
install_packages $yes deploy/packages-demo.txt
configure_build release "$ODT_BUILD"
build_targets "$ODT_BUILD" "building odtd, odtctl and the simulated board" odtd odtctl odtc odt-worker odt-sim-board
build_web

as_owner mkdir -p "$state"
set -- --bin "$ODT_BUILD/bin" --build "$ODT_BUILD" --state "$state" --jobs "$ODT_JOBS"
[ $once = 0 ] || set -- "$@" --once
[ -z "$json" ] || set -- "$@" --json "$json"
[ -z "$port" ] || set -- "$@" --port "$port"
[ -z "${SSH_CONNECTION:-}" ] || set -- "$@" --ssh-host "$(echo "$SSH_CONNECTION" | cut -d ' ' -f 3)"
if [ "$(id -u)" = 0 ] && [ -n "${SUDO_USER:-}" ] && [ "$SUDO_USER" != root ]; then
  exec sudo -u "$SUDO_USER" -H -- env CCACHE_BASEDIR="$ODT_ROOT" CCACHE_NOHASHDIR=1 /usr/bin/python3 deploy/demo_fleet.py "$@"
fi
exec env CCACHE_BASEDIR="$ODT_ROOT" CCACHE_NOHASHDIR=1 /usr/bin/python3 deploy/demo_fleet.py "$@"
