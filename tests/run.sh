#!/usr/bin/env bash
# Installs what is missing, builds, and runs the tests. Last line: N passed, N failed, N skipped.
#
#   tests/run.sh [--yes] [--full] [--only SUITE[,SUITE]] [--list]
#
# Suites: gates, web and firmware build what the others need; then system, browser and qemu with package run at once, for
# they mostly wait; beside all of them, at low priority (they compile), fuzz and unit. Everyday each behaviour is tested
# once; --full has more seeds, more rounds, every board in every mode, fuzzers for 20 minutes, and soak at the end.
# A skip is named with its reason; a skip that tests/skips.txt does not list is a failure.
set -euo pipefail
cd "$(dirname "$0")/.."
. deploy/setup.sh

ALL_SUITES="gates web unit firmware fuzz qemu system browser package"
# What runs one after the other, by track: TRACK_first alone (it builds), then the others at once; beside them from the start the last.
TRACKS="first system browser qemu last beside"
TRACK_first="gates web firmware" TRACK_system="system" TRACK_browser="browser" TRACK_qemu="qemu package" TRACK_last="soak"
TRACK_beside="fuzz unit"
yes=0 full=0 only=
while [ $# -gt 0 ]; do
  case $1 in
    --yes) yes=1 ;;
    --full) full=1 ;;
    --only)
      [ $# -ge 2 ] || die "--only needs a suite" "one or more of: $ALL_SUITES soak (comma between)"
      only=${2//,/ }
      shift
      ;;
    --list)
      say "$ALL_SUITES soak"
      exit 0
      ;;
    -h | --help)
      sed -n '2,9s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    *) die "unknown option '$1'" "tests/run.sh --help" ;;
  esac
  shift
done
suites=${only:-$ALL_SUITES}
[ $full = 0 ] || [ -n "$only" ] || suites="$ALL_SUITES soak"
for suite in $suites; do
  case " $ALL_SUITES soak " in *" $suite "*) ;; *) die "unknown suite '$suite'" "one of: $ALL_SUITES soak" ;; esac
done

check_distribution
install_packages $yes deploy/packages-demo.txt deploy/packages-tests.txt

results=$ODT_BUILD/results.txt
as_owner mkdir -p "$ODT_BUILD"
as_owner rm -f "$results"
as_owner touch "$results"
export ODT_FULL=$full

# One line a test: PASS|FAIL|SKIP name [reason]. Several suites write at once.
put() { flock "$results" tee -a "$results" >/dev/null; }
record() { printf '%s %s %s\n' "$1" "$2" "${3:-}" | put; }

# check NAME COMMAND...: a test that is one command; what it prints is shown where it fails.
check() {
  local name=$1 log
  shift
  log=$ODT_BUILD/logs/test-$(printf '%s' "$name" | tr -cs 'a-zA-Z0-9\n' '-').log
  as_owner mkdir -p "$ODT_BUILD/logs"
  if tied "$@" >"$log" 2>&1; then
    record PASS "$name"
  else
    record FAIL "$name" "log: $log"
    say "FAIL $name"
    tail -n 40 "$log"
  fi
}

# collect NAME COMMAND...: a suite that prints a PASS/FAIL/SKIP line a test. One that ends badly without a FAIL line,
# or says nothing at all, is a failure itself.
collect() {
  local name=$1 log code=0
  shift
  log=$ODT_BUILD/logs/test-$name.log
  as_owner mkdir -p "$ODT_BUILD/logs"
  tied "$@" >"$log" 2>&1 || code=$?
  { grep -E '^(PASS|FAIL|SKIP) ' "$log" || true; } | put
  if [ $code != 0 ] && ! grep -q '^FAIL ' "$log"; then record FAIL "$name" "exit $code; log: $log"; fi
  grep -qE '^(PASS|FAIL|SKIP) ' "$log" || record FAIL "$name" "no test ran; log: $log"
  if grep -q '^FAIL ' "$log" || [ $code != 0 ]; then
    say "suite $name:"
    grep -E '^FAIL ' "$log" || true
    tail -n 60 "$log"
  fi
}

need_release() {
  configure_build release "$ODT_BUILD"
  build_targets "$ODT_BUILD" "building (release)" all
  build_web
}
need_firmware() {
  need_release
  build_targets "$ODT_BUILD" "building the firmware" firmware_images
}
need_npm() {
  [ "$ODT_ROOT/web/node_modules/.package-lock.json" -nt "$ODT_ROOT/web/package-lock.json" ] ||
    step "fetching dashboard packages (npm)" mortal npm --prefix web ci --no-audit --no-fund
}

suite_gates() {
  need_npm
  check gates/clang-format bash -c \
    "{ git ls-files -co --exclude-standard -- daemon firmware proto tests 2>/dev/null || find daemon firmware proto tests -type f; } |
     grep -E '\.(c|h|cc|cpp)$' | xargs clang-format --dry-run -Werror"
  check gates/layering python3 tests/layering/check_includes.py
  check gates/buf-lint npm --prefix web run lint-proto
  check gates/buf-breaking npm --prefix web run check-breaking
  check gates/generated-bindings npm --prefix web run check-generated
  check gates/web-layers npm --prefix web run check-layers
  check gates/web-format npm --prefix web run check-format
  check gates/repository-words tests/gates/check_words.sh
  check gates/file-length tests/gates/check_length.sh
  check gates/exit-codes tests/gates/check_exit.sh
  check gates/failure-reports tests/gates/check_reports.sh
}

suite_web() {
  need_npm
  check web/typescript npm --prefix web run check
  check web/build npm --prefix web run build
  collect web-unit node tests/support/vitest_lines.mjs
}

suite_unit() {
  configure_build sanitize "$ODT_BUILD/sanitize"
  build_targets "$ODT_BUILD/sanitize" "building unit and integration tests (ASan, UBSan)" all
  local junit=$ODT_BUILD/sanitize/junit.xml code=0
  say "unit and integration tests ..."
  as_owner rm -rf "$ODT_BUILD/sanitize/gtest"
  tied env ASAN_OPTIONS=detect_stack_use_after_return=0 UBSAN_OPTIONS=print_stacktrace=1 \
    ctest --test-dir "$ODT_BUILD/sanitize" -j $((ODT_JOBS + 2)) --timeout 180 --output-on-failure \
    --output-junit "$junit" >"$ODT_BUILD/logs/test-ctest.log" 2>&1 || code=$?
  /usr/bin/python3 tests/support/junit_lines.py "$junit" "$ODT_BUILD/sanitize/gtest" | put || record FAIL unit "no result of ctest"
  if [ $code != 0 ]; then
    grep -E '\*\*\*|FAILED|Failure|ERROR: ' "$ODT_BUILD/logs/test-ctest.log" | sed -n 1,60p || true
    say "the whole log: $ODT_BUILD/logs/test-ctest.log"
  fi
}

suite_firmware() {
  need_firmware
  check firmware/size-and-symbols tests/gates/check_firmware.sh "$ODT_BUILD"
  check firmware/odt-no-float-no-heap tests/gates/check_odt_symbols.sh "$ODT_BUILD/odt-symbols.passed"
}

suite_qemu() {
  need_firmware
  collect qemu /usr/bin/python3 tests/qemu/run.py --bin "$ODT_BUILD/bin"
}

suite_system() {
  need_firmware
  collect system /usr/bin/python3 tests/system/run.py --bin "$ODT_BUILD/bin"
}

suite_browser() {
  need_release
  need_npm
  collect browser /usr/bin/python3 tests/browser/run.py --bin "$ODT_BUILD/bin"
}

suite_package() {
  need_release
  check package/deb tests/gates/check_package.sh "$ODT_BUILD"
  # Installed, used and removed in a chroot: root, debootstrap, minutes.
  if [ $full = 1 ]; then
    need_firmware
    rm -rf "$ODT_BUILD/debs"
    step "packing" as_owner sh -c "cd '$ODT_BUILD' && cpack -G DEB -B '$ODT_BUILD/debs'"
    collect package /usr/bin/python3 tests/package/install.py --debs "$ODT_BUILD/debs" --sim-board "$ODT_BUILD/bin/odt-sim-board"
  fi
}

suite_fuzz() {
  configure_build fuzz "$ODT_BUILD/fuzz"
  build_targets "$ODT_BUILD/fuzz" "building the fuzzers" fuzzers
  # One core for forty seconds, while the next suite compiles.
  (
    take_jobs_along
    collect fuzz tests/fuzz/run.sh "$ODT_BUILD/fuzz" $([ $full = 1 ] && echo 1200 || echo 40)
  ) &
  fuzzing=$!
}

suite_soak() {
  need_firmware
  collect soak /usr/bin/python3 tests/system/run.py --bin "$ODT_BUILD/bin" --soak
}

# core_seconds PID: seconds of a core that the ended children of a shell took.
core_seconds() {
  local stat
  read -r stat <"/proc/$1/stat"
  # shellcheck disable=SC2086
  set -- ${stat##*) }
  echo $(((${14} + ${15}) / $(getconf CLK_TCK)))
}

# run SUITE...: one after the other.
run() {
  local suite begun spent fuzzing= shell=$BASHPID
  for suite in "$@"; do
    say "== $suite"
    begun=$SECONDS spent=$(core_seconds $shell)
    "suite_$suite"
    say "   $suite took $((SECONDS - begun)) s ($(($(core_seconds $shell) - spent)) s of a core)"
  done
  [ -z "$fuzzing" ] || wait "$fuzzing" || true
}

# of_track NAME: its suites that were asked for.
of_track() {
  local suite track=TRACK_$1
  for suite in ${!track}; do
    case " $suites " in *" $suite "*) printf ' %s' "$suite" ;; esac
  done
}

# aside NAME [NICE]: starts a track whose lines go to a log; its process stands in beside[NAME].
declare -A beside=()
aside() {
  local name=$1 niceness=${2:-} asked
  asked=$(of_track "$name")
  [ -n "$asked" ] || return 0
  (
    take_jobs_along
    [ -z "$niceness" ] || renice -n "$niceness" -p $BASHPID >/dev/null
    run $asked
  ) >"$ODT_BUILD/logs/track-$name.log" 2>&1 &
  beside[$name]=$!
}

# follow NAME: what a track has said so far, and the rest as it comes.
follow() {
  local name=$1
  [ -n "${beside[$name]:-}" ] || return 0
  tied tail -n +1 -f --pid="${beside[$name]}" "$ODT_BUILD/logs/track-$name.log"
  wait "${beside[$name]}" || record FAIL "track-$name" "$(of_track "$name") did not end; log: $ODT_BUILD/logs/track-$name.log"
}

start=$SECONDS
as_owner mkdir -p "$ODT_BUILD/logs"
aside beside 10
run $(of_track first)
# Built once: the tracks would else build the same at once.
case " $suites " in *" qemu "* | *" system "*) need_firmware ;; *" browser "* | *" package "*) need_release ;; esac
case " $suites " in *" browser "*) need_npm ;; esac
for track in system browser qemu; do aside $track; done
for track in system browser qemu beside; do follow $track; done
run $(of_track last)

# Skips: named, and only those that the list allows.
skips=0
while read -r _ name reason; do
  skips=$((skips + 1))
  say "skipped: $name ($reason)"
  grep -qE "^${name//./\\.}([[:space:]]|$)" tests/skips.txt || record FAIL "skip-list" "$name is skipped but not in tests/skips.txt"
done < <(grep '^SKIP ' "$results" || true)

passed=$(grep -c '^PASS ' "$results" || true)
failed=$(grep -c '^FAIL ' "$results" || true)
[ "$failed" = 0 ] || grep '^FAIL ' "$results"
say "time: $(((SECONDS - start) / 60)) min $(((SECONDS - start) % 60)) s"
say "$passed passed, $failed failed, $skips skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
