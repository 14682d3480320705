#!/usr/bin/env bash
# Times whole processes: the median, the least and the most of 11 runs after one that warms up, and
# the processor time of the median run, which a busy machine lengthens less. Exit code 1 where a
# median is over its mark.
#   bench/whole_process.sh [PROGRAM]     default: build/stowage beside this checkout
# The cache of cuDNN's answers is a folder of the script's own, warm unless --no-cache is given.
set -euo pipefail

program=${1:-"$(dirname -- "${BASH_SOURCE[0]}")/../build/stowage"}
runs=11
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export XDG_CACHE_HOME=$scratch/cache TIMEFORMAT='%R %U %S'
unset STOWAGE_NO_CACHE
missed=0

times_of() { # runs "$@" once: "elapsed processor" in ms; an answer of "no" (1) is an answer
  local status=0
  { time "$program" "$@" >"$scratch/out" 2>"$scratch/err" || status=$?; } 2>"$scratch/time"
  if ((status > 1)); then
    printf 'failed (%d): stowage %s\n' "$status" "$*" >&2
    cat "$scratch/err" >&2
    return 1
  fi
  awk '{ print $1 * 1000, ($2 + $3) * 1000 }' "$scratch/time"
}

scenario() { # mark in ms, or -, then the words
  local mark=$1 i median
  shift
  times_of "$@" >/dev/null
  : >"$scratch/times"
  for ((i = 0; i < runs; ++i)); do times_of "$@" >>"$scratch/times"; done
  median=$(sort -n "$scratch/times" | awk -v middle=$(((runs + 1) / 2)) 'NR == middle { print $1 }')
  sort -n "$scratch/times" | awk -v mark="$mark" -v what="stowage $*" '
    { t[NR] = $1; cpu[NR] = $2 }
    END { m = int((NR + 1) / 2)
          printf "%10.0f %8.0f %8.0f %10.0f %6s  %s\n", t[m], t[1], t[NR], cpu[m], mark, what }'
  if [[ $mark != - ]] && awk -v m="$median" -v mark="$mark" 'BEGIN { exit !(m > mark) }'; then
    missed=1
  fi
}

printf '%s, %d cores, load %s\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" \
  "$(nproc)" "$(cut -d ' ' -f 1 /proc/loadavg)"
printf '%10s %8s %8s %10s %6s  %s\n' 'median ms' 'least' 'most' 'processor' 'mark' 'command'
scenario 20 check gpt2 --gpu rtx3090 --batch 8
scenario 30 check gpt2-xl --gpu a100-80gb --batch 4 --optimizer adamw
scenario 10 check resnet50 --gpu rtx3090 --batch 64
scenario - check resnet50 --gpu rtx3090 --batch 64 --no-cache
scenario - check vgg16 --gpu rtx3090 --batch 64
scenario - batch resnet50 --gpu rtx3090
scenario 500 plan gpt2 --gpu rtx3060 --batch 8
scenario - plan vgg16 --gpu rtx3060 --batch 256
# Tables over all cards, of which there are more than 100.
scenario 2000 batch gpt2-medium --gpu all
# 100 cards in two seconds are 247 in 4.9.
for model in resnet50 vit_b_16 swin_t densenet121; do scenario 4900 batch "$model" --gpu all; done
llama=$(dirname -- "${BASH_SOURCE[0]}")/../tests/hf/llama-3-8b/config.json
serving=(--mode inference --precision bf16)
scenario 2000 batch "$llama" --gpu all "${serving[@]}" --of context-length
scenario 2000 batch "$llama" --gpu all "${serving[@]}" --of users --context-length 8192
scenario 2000 batch gpt2 --gpu all --of seq
scenario 2000 check "$llama" --gpu all "${serving[@]}" --context-length 8192 --users 32
exit "$missed"
