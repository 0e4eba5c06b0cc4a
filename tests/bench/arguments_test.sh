#!/bin/sh
# Wrong arguments are told at once and in one line, not behind the work.
#   arguments_test.sh [BENCH_LEARN]
set -u
here=$(dirname "$0")
failed=0
refused() { # text, command...
  text=$1
  shift
  out=$("$@" 2>&1)
  code=$?
  case $code:$out in
    0:* | *Traceback*) ;;
    *"$text"*) return ;;
  esac
  echo "expected '$text' and a failure of: $*"
  echo "ended with $code: $out"
  failed=1
}
refused "neither a group of figures (all compiler federated fleet install kernels learn link size web)" "$here/run.sh" kernel
refused "cannot write /no/such/folder/x.json" "$here/run.sh" kernels --json /no/such/folder/x.json
bin=$(mktemp -d)
for tool in bash dirname gcc cmake; do ln -s "$(command -v $tool)" "$bin/$tool"; done
refused "arm-none-eabi-gcc is not in PATH" env PATH="$bin" "$here/run.sh" kernels --build "$bin/build"
rm -r "$bin"
if [ $# -gt 0 ]; then
  refused "/no/such/folder/x.json: cannot write" "$1" --digits none --json /no/such/folder/x.json
  refused "--only 'digit': no such task" "$1" --digits none --only digit
  refused "--draws '2x'" "$1" --digits none --draws 2x
fi
exit $failed
