#!/usr/bin/env bash
# Times whole processes: the median, the least and the most of 11 runs after one that warms up.
#   bench/whole_process.sh [PROGRAM]     default: build/stowage beside this checkout
set -euo pipefail

program=${1:-"$(dirname -- "${BASH_SOURCE[0]}")/../build/stowage"}
runs=11
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

microseconds_of() { # runs "$@" once; an answer of "no" (1) is an answer
  local begin end status=0
  begin=$(date +%s%N)
  "$program" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
  end=$(date +%s%N)
  if ((status > 1)); then
    printf 'failed (%d): stowage %s\n' "$status" "$*" >&2
    cat "$scratch/err" >&2
    return 1
  fi
  printf '%d\n' $(((end - begin) / 1000))
}

scenario() {
  local i
  microseconds_of "$@" >/dev/null
  : >"$scratch/times"
  for ((i = 0; i < runs; ++i)); do microseconds_of "$@" >>"$scratch/times"; done
  sort -n "$scratch/times" | awk -v what="stowage $*" '
    { t[NR] = $1 / 1000 }
    END { printf "%10.1f %10.1f %10.1f  %s\n", t[int((NR + 1) / 2)], t[1], t[NR], what }'
}

printf '%s, %d cores, load %s\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
  "$(nproc)" "$(cut -d ' ' -f 1 /proc/loadavg)"
printf '%10s %10s %10s  %s\n' 'median ms' 'least' 'most' 'command'
scenario check gpt2 --gpu rtx3090 --batch 8
scenario check resnet50 --gpu rtx3090 --batch 64
scenario check vgg16 --gpu rtx3090 --batch 64
scenario plan gpt2 --gpu rtx3060 --batch 8
scenario plan vgg16 --gpu rtx3060 --batch 256
