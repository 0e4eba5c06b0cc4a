#!/bin/sh
# Budgets and forbidden symbols of the boards' images: flash and RAM per board, no floating point, no heap, no stdio,
# nothing of TI's interface.
#
# usage: check_firmware.sh BUILD   (after the target firmware_images)
set -eu
boards=$(cd "$(dirname "$0")/../../firmware/boards" && pwd)
build=${1:?usage: check_firmware.sh BUILD}
failed=0

fail() {
  printf '%s\n' "$1" >&2
  failed=1
}

# Budgets stand in each board's board.cmake. Raising one is a decision: say why in the commit.
budget() { sed -n "s/^set(BOARD_FIRMWARE_$2 \([0-9]*\))/\1/p" "$boards/$1/board.cmake"; }
for board in $(awk '/^[a-z]/ { print $1 }' "$boards/boards.txt"); do
  flash=$(budget $board FLASH) ram=$(budget $board RAM)
  [ -n "$flash" ] && [ -n "$ram" ] || { fail "$board: no budget in board.cmake"; continue; }
  elf=$build/bin/firmware/$board.elf
  [ -r "$elf" ] || { fail "$elf: missing"; continue; }
  # shellcheck disable=SC2046
  set -- $(arm-none-eabi-size "$elf" | tail -n 1)
  used_flash=$(($1 + $2))
  used_ram=$(($2 + $3))
  printf '%s: flash %s of %s, RAM %s of %s bytes\n' "$board" "$used_flash" "$flash" "$used_ram" "$ram"
  [ "$used_flash" -le "$flash" ] || fail "$board: flash $used_flash bytes, budget $flash"
  [ "$used_ram" -le "$ram" ] || fail "$board: RAM $used_ram bytes, budget $ram"
  bad=$(arm-none-eabi-nm "$elf" | awk '{ print $NF }' | grep -E \
    '^(__aeabi_([df](add|sub|rsub|mul|div|cmp.*|2.*)|u?[il]2[df]|ul2[df])|__(add|sub|mul|div)[sd]f3|(_)?(malloc|free|calloc|realloc|sbrk)(_r)?|.*printf.*|odt_ti_.*|INTODT_.*|pb_(d|f).*double.*)$' || true)
  [ -z "$bad" ] || fail "$board: forbidden symbols: $(printf '%s ' $bad)"
  stack=$(arm-none-eabi-nm "$elf" | awk '$3 == "__stack_top" { t = $1 } $3 == "__stack_limit" { l = $1 } END { print t, l }')
  [ -n "$stack" ] || fail "$board: no stack symbols"
  listed=$(awk -v board="$board" '$1 == board { print $4 }' "$boards/boards.txt")
  [ "$listed" = - ] || [ "0x${stack% *}" = "$listed" ] || fail "$board: identity at 0x${stack% *}, boards.txt says $listed"
done
exit $failed
