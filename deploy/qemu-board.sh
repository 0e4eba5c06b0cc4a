#!/bin/sh
# Runs one board under QEMU in the foreground; ends with its parent.
#
# usage: qemu-board.sh [options] BOARD UIDHEX (--listen HOST:PORT | --connect HOST:PORT | --pty)
#   BOARD          one that firmware/boards/boards.txt gives a machine: mps2_an505, lm3s6965evb, ...
#   UIDHEX         chip uid, 16 or 32 hex digits: these boards have no uid register of their own
#   --listen       the UART is a TCP server (odtd dials); --connect: it dials odtd, for ever
#   --pty          the UART is a pty; QEMU prints its name
# options:
#   --image FILE   firmware (default: build/bin/firmware/BOARD.elf)
#   --seed HEX     16 digits, entropy of this boot (default: random)
#   --log FILE     everything that the board sends
#   --qmp PATH     QEMU's control socket
#   --nvm FILE     EEPROM (boards with at24c); made with 64 KB if it is not there. 64 to 512 KB: 1 to 8 chips
#   --gdb PATH     QEMU's gdb stub at this socket
#   --keep         starts QEMU again when it ends by itself (a core that locks up aborts it): same uid, another seed
set -eu

die() {
  printf 'qemu-board: %s\n' "$1" >&2
  exit 2
}
usage() { sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0"; }

# A kept board's starter stays; it ends with its parent as QEMU alone does.
case " $* " in
  *' --keep '*)
    [ -n "${ODT_KEPT:-}" ] || ODT_KEPT=1 exec setpriv --pdeathsig TERM /bin/sh "$0" "$@"
    ;;
esac

image='' seed='' log='' qmp='' nvm='' gdb='' keep='' board='' uid='' mode='' where=''
while [ $# -gt 0 ]; do
  case $1 in
    --image | --seed | --log | --qmp | --nvm | --gdb | --listen | --connect)
      [ $# -ge 2 ] || die "$1 needs a value"
      case $1 in
        --image) image=$2 ;;
        --seed) seed=$2 ;;
        --log) log=$2 ;;
        --qmp) qmp=$2 ;;
        --nvm) nvm=$2 ;;
        --gdb) gdb=$2 ;;
        *) mode=${1#--} where=$2 ;;
      esac
      shift 2
      ;;
    --pty) mode=pty && shift ;;
    --keep) keep=yes && shift ;;
    -h | --help) usage && exit 0 ;;
    -*) die "unknown option $1 (see --help)" ;;
    *)
      if [ -z "$board" ]; then board=$1; elif [ -z "$uid" ]; then uid=$1; else die "argument too many: $1"; fi
      shift
      ;;
  esac
done
[ -n "$board" ] && [ -n "$uid" ] && [ -n "$mode" ] || {
  usage >&2
  exit 2
}

list=$(dirname "$0")/../firmware/boards/boards.txt
[ -r "$list" ] || die "no list of boards: $list"
# shellcheck disable=SC2046
set -- $(awk -v board="$board" '$1 == board' "$list")
machine=${2:-} identity=${4:-} has_nvm=${5:-}
if [ -z "$machine" ] || [ "$machine" = - ]; then
  die "no board $board under QEMU: $(awk '/^[a-z]/ && $2 != "-" { printf "%s%s", sep, $1; sep = ", " }' "$list")"
fi
case $uid in *[!0-9a-fA-F]*) die "uid $uid: hex digits only" ;; esac
[ ${#uid} -eq 16 ] || [ ${#uid} -eq 32 ] || die "uid $uid: ${#uid} digits, wanted 16 or 32"
image=${image:-$(dirname "$0")/../build/bin/firmware/$board.elf}
[ -r "$image" ] || die "no firmware $image: build it with cmake --build build --target firmware_images"
new_seed() { od -An -N8 -tx8 /dev/urandom | tr -d ' '; }
seed=${seed:-$(new_seed)}
case $seed in *[!0-9a-fA-F]* | '') die "seed $seed: hex digits only" ;; esac

case $mode in
  listen) chardev="socket,id=u0,host=${where%:*},port=${where##*:},server=on,wait=off,nodelay=on" ;;
  connect) chardev="socket,id=u0,host=${where%:*},port=${where##*:},reconnect=1,nodelay=on" ;;
  pty) chardev="pty,id=u0" ;;
esac
[ -z "$log" ] || chardev="$chardev,logfile=$log"

# Eight bytes in the order written -> number for the loader (little-endian core).
word() { printf '0x%s' "$(printf '%s' "$1" | sed 's/\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)\(..\)/\8\7\6\5\4\3\2\1/')"; }
at() { printf '0x%x' $((identity + $1)); }
rest=$(printf '%s' "$uid" | cut -c17-32)
set -- -M "$machine" -nographic -nodefaults -monitor none -kernel "$image" \
  -chardev "$chardev" -serial chardev:u0 \
  -device "loader,addr=$(at 0),data=0x3144494f,data-len=4" \
  -device "loader,addr=$(at 4),data=$((${#uid} / 2)),data-len=4" \
  -device "loader,addr=$(at 8),data=$(word "$(printf '%s' "$uid" | cut -c1-16)"),data-len=8" \
  -device "loader,addr=$(at 16),data=$(word "${rest:-0000000000000000}"),data-len=8"
[ -z "$qmp" ] || set -- "$@" -qmp "unix:$qmp,server=on,wait=off"
[ -z "$gdb" ] || set -- "$@" -chardev "socket,id=gdb0,path=$gdb,server=on,wait=off" -gdb chardev:gdb0
if [ -n "$nvm" ]; then
  [ "$has_nvm" = at24c ] || die "$board has no EEPROM: --nvm is for boards with at24c in boards.txt"
  # An erased chip reads 0xFF.
  [ -e "$nvm" ] || head -c 65536 /dev/zero | tr '\000' '\377' >"$nvm"
  bytes=$(stat -Lc %s "$nvm") chip=65536
  [ "$bytes" -gt 0 ] && [ $((bytes % chip)) -eq 0 ] && [ "$bytes" -le $((8 * chip)) ] ||
    die "$nvm: $bytes bytes, wanted 1 to 8 times $chip"
  n=0
  while [ $((n * chip)) -lt "$bytes" ]; do
    # One chip of several opens its part of the file only: no lock of the whole.
    [ "$bytes" -eq "$chip" ] && lock='' || lock=',file.locking=off'
    set -- "$@" -drive "if=none,id=ee$n,format=raw,file.filename=$nvm,offset=$((n * chip)),size=$chip$lock" \
      -device "at24c-eeprom,address=$(printf '0x%x' $((80 + n))),rom-size=$chip,drive=ee$n"
    n=$((n + 1))
  done
fi
[ -n "$keep" ] || exec setpriv --pdeathsig TERM qemu-system-arm "$@" -device "loader,addr=$(at 24),data=0x$seed,data-len=8"

child=''
# shellcheck disable=SC2317  # called by the trap
end() {
  trap '' TERM INT HUP
  # The signal may come between a start and child=$!.
  [ -z "${child:-${!:-}}" ] || kill "${child:-$!}" 2>/dev/null || :
  wait
  exit 0
}
trap end TERM INT HUP
pause=1
while :; do
  begun=$(date +%s) code=0
  setpriv --pdeathsig TERM qemu-system-arm "$@" -device "loader,addr=$(at 24),data=0x$seed,data-len=8" &
  child=$!
  wait "$child" || code=$?
  child=''
  # A board that cannot even start is not tried twice a second for ever.
  [ $(($(date +%s) - begun)) -lt 10 ] || pause=1
  printf 'qemu-board: %s %s ended (exit %s); again in %s s\n' "$board" "$uid" "$code" "$pause" >&2
  sleep "$pause" &
  child=$!
  wait "$child" || :
  child=''
  pause=$((pause < 16 ? pause * 2 : 30))
  seed=$(new_seed)
done
