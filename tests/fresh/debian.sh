#!/usr/bin/env bash
# Both commands of the README from nothing: a minimal Debian made by debootstrap, a clean clone in
# it, and nothing of this machine's but its kernel and its package sources. Needs root.
#
#   tests/fresh/debian.sh RELEASE [PART...]     RELEASE: bookworm, trixie; PART: user root tests
#
#   user    who is not root and has no sudo: ./stowage says the line to type (exit code 2); once root
#           has typed it as printed, ./stowage check vgg16 --gpu rtx3090 --batch 64 works
#   root    ./stowage check vgg16 --gpu rtx3090 --batch 64, which installs what is missing
#   tests   ./run-tests, by root
#
#   DEBIAN_MIRROR=URL    where packages come from; without it, where this machine's apt takes Debian's
#   FRESH_BASE=FOLDER    a minimal system to copy; made there if there is none
#
# Prints what was run, with its times. Exit codes: 0 all as it should be, 1 not, 2 cannot be tried.
set -u

release=${1:?usage: debian.sh RELEASE [PART...]}
shift
parts=("$@")
((${#parts[@]})) || parts=(user root tests)
repository=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
check=(./stowage check vgg16 --gpu rtx3090 --batch 64)

stop() {
  printf 'fresh: %s\n' "$*" >&2
  exit 2
}
((EUID == 0)) || stop "debootstrap and chroot need root"
command -v debootstrap >/dev/null || stop "debootstrap is missing: apt-get install debootstrap"

. "$(dirname -- "${BASH_SOURCE[0]}")/mirror.sh"
mirror=$(debian_mirror)
[[ -n $mirror ]] || stop "apt names no source of Debian's packages; set DEBIAN_MIRROR"

scratch=$(mktemp -d)
base=${FRESH_BASE:-$scratch/base}
system=$scratch/system
leave_system() {
  umount "$system/dev/pts" "$system/proc" 2>/dev/null
  # Below a mount that would not go lies this machine's own.
  if grep -q " $system/" /proc/mounts; then
    stop "$system is left as it is: something is still mounted there"
  fi
  rm -rf --one-file-system "$system"
}
trap 'leave_system; rm -rf --one-file-system "$scratch"' EXIT

if [[ ! -x $base/bin/bash ]]; then
  mkdir -p "$base"
  debootstrap --variant=minbase "$release" "$base" "$mirror" >"$scratch/log" 2>&1 || {
    tail -n 20 "$scratch/log" >&2
    stop "debootstrap failed"
  }
fi

# enter_system USER FOLDER: a fresh copy, with a clean clone that belongs to USER in FOLDER.
enter_system() {
  leave_system
  cp -a "$base" "$system"
  cp /etc/resolv.conf "$system/etc/resolv.conf"
  mount -t proc proc "$system/proc" || stop "cannot mount /proc"
  # Some tests open a terminal.
  mount -t devpts -o ptmxmode=0666 devpts "$system/dev/pts" || stop "cannot mount /dev/pts"
  [[ $1 == root ]] || chroot "$system" useradd -m "$1" || stop "cannot add a user"
  git clone -q "$repository" "$system$2/stowage" || stop "cannot clone $repository"
  chroot "$system" chown -R "$1:" "$2/stowage"
}

# shellcheck disable=SC2016  # expanded inside
inside() { # USER FOLDER COMMAND...
  local user=$1 folder=$2
  shift 2
  chroot "$system" /usr/bin/env -i HOME="$folder" \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    setpriv --reuid="$user" --regid="$user" --clear-groups \
    bash -c 'cd "$0/stowage" && exec "$@"' "$folder" "$@"
}

failures=0
fail() {
  printf '%-8s FAILED: %s\n' "$@"
  failures=$((failures + 1))
}
# try PART EXPECTED USER FOLDER COMMAND...: runs it, prints its exit code and its times.
try() {
  local part=$1 expected=$2 status
  shift 2
  printf '%-8s %s\n' "$part" "${*:3}"
  local TIMEFORMAT="%R s; processor time %U s in user mode, %S s in the kernel"
  { time inside "$@" </dev/null >"$scratch/out" 2>"$scratch/err"; } 2>"$scratch/time"
  status=$?
  printf '%-8s exit code %d, %s\n' "$part" "$status" "$(<"$scratch/time")"
  ((status == expected)) && return
  fail "$part" "the exit code should be $expected"
  tail -n 40 "$scratch/out" "$scratch/err"
  return 1
}

printf 'Debian %s (%s), %d processors, commit %s\n' "$(<"$base/etc/debian_version")" "$release" \
  "$(nproc)" "$(git -C "$repository" rev-parse --short HEAD)"
for part in "${parts[@]}"; do
  case $part in
    user)
      enter_system stowaway /home/stowaway
      try user 2 stowaway /home/stowaway "${check[@]}" || continue
      line=$(grep -m 1 '^  .*apt-get install' "$scratch/err")
      printf '%-8s told to type:%s\n' user "$line"
      chroot "$system" env DEBIAN_FRONTEND=noninteractive bash -c "$line" >"$scratch/out" 2>&1 || {
        fail user "what it said to type"
        tail -n 20 "$scratch/out"
        continue
      }
      try user 0 stowaway /home/stowaway "${check[@]}" && tail -n 1 "$scratch/out"
      ;;
    root)
      enter_system root /root
      try root 0 root /root "${check[@]}" && tail -n 1 "$scratch/out"
      ;;
    tests)
      [[ -d $system/root/stowage ]] || enter_system root /root
      try tests 0 root /root ./run-tests && tail -n 3 "$scratch/out"
      ;;
    *) stop "no part is called '$part'" ;;
  esac
done
((failures == 0))
