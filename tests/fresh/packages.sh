#!/usr/bin/env bash
# What scripts/release made, as its user gets it: in a minimal Debian made by debootstrap, without a
# compiler, CUDA or torch. Needs root, and nothing of this machine's but its kernel and package sources.
#
#   tests/fresh/packages.sh RELEASE FILE...     RELEASE: bookworm, trixie; FILE: of dist/
#
#   *.whl          pip install in a virtual environment; the program, its Python calls, its host kernels
#   *.deb          dpkg -i; the program and its host kernels
#   *.tar.xz       unpacked in a folder; the same
#   *.tar.gz       said to be left out: it is built where a compiler is (sdist in .ci/full)
#
#   DEBIAN_MIRROR, FRESH_BASE   as tests/fresh/debian.sh
# Exit codes: 0 all as it should be, 1 not, 2 cannot be tried.
set -u

release=${1:?usage: packages.sh RELEASE FILE...}
shift
stop() {
  printf 'fresh: %s\n' "$*" >&2
  exit 2
}
((EUID == 0)) || stop "debootstrap and chroot need root"
command -v debootstrap >/dev/null || stop "debootstrap is missing: apt-get install debootstrap"
(($#)) || stop "no file is named"

. "$(dirname -- "${BASH_SOURCE[0]}")/mirror.sh"
mirror=$(debian_mirror)
[[ -n $mirror ]] || stop "apt names no source of Debian's packages; set DEBIAN_MIRROR"
scratch=$(mktemp -d)
base=${FRESH_BASE:-$scratch/base}
system=$scratch/system
leave() {
  umount "$system/proc" 2>/dev/null
  grep -q " $system/" /proc/mounts && stop "$system is left as it is: something is still mounted there"
  rm -rf --one-file-system "$scratch"
}
trap leave EXIT
if [[ ! -x $base/bin/bash ]]; then
  mkdir -p "$base"
  debootstrap --variant=minbase --include=python3,python3-venv,xz-utils "$release" "$base" "$mirror" \
    >"$scratch/log" 2>&1 || {
    tail -n 20 "$scratch/log" >&2
    stop "debootstrap failed"
  }
fi
cp -a "$base" "$system"
mount -t proc proc "$system/proc"

status=0
inside() { # COMMAND LINE
  printf 'fresh: %s: %s\n' "$release" "$1"
  chroot "$system" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    bash -c "cd /root && $1" >"$scratch/out" 2>&1 || {
    tail -n 20 "$scratch/out"
    printf 'fresh: %s: FAILED: %s\n' "$release" "$1"
    status=1
    return 1
  }
  tail -n 1 "$scratch/out" | sed 's/^/  /'
}
program() { # THE PROGRAM
  inside "$1 check vgg16 --gpu rtx3090 --batch 64"
  inside "$1 batch llama-3-8b --gpu all --lora targets=all-linear,r=16"
  inside "$1 plan mlp --batch 2 --budget 64MiB --validate | grep -E 'passed|host'"
}

! chroot "$system" sh -c 'command -v gcc cc nvcc' >/dev/null || stop "the minimal system has a compiler"
for file in "$@"; do
  copy=/root/$(basename "$file")
  cp "$file" "$system$copy" || stop "$file is not there"
  case $file in
    *.whl)
      inside "python3 -m venv venv && venv/bin/pip install --no-index $copy" || continue
      program venv/bin/stowage
      inside "venv/bin/python -c 'import stowage; a = stowage.check(\"resnet50\", gpu=\"t4\", batch=64);
print(a.fits, a.device_bytes, stowage.batch(\"resnet50\", gpu=\"t4\").recommended)'"
      inside "venv/bin/python -m stowage check resnet50 --gpu t4"
      inside "venv/bin/stowage record x.py -o s.json; test \$? = 2"
      ;;
    *.deb)
      inside "dpkg -i $copy" || continue
      program stowage
      inside "dpkg -r stowage-gpu && ! command -v stowage"
      ;;
    *.tar.xz)
      inside "mkdir moved && tar -xf $copy --strip-components=1 -C moved" || continue
      program moved/bin/stowage
      ;;
    *) printf 'fresh: %s: not tried: %s\n' "$release" "$file" ;;
  esac
done
exit "$status"
