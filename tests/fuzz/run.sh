#!/usr/bin/env bash
# Builds the fuzz targets and runs each for SECONDS (default 60): tests/fuzz/run.sh SECONDS [TARGET...]
# Needs clang with its runtime (Debian: clang libclang-rt-dev). Seeds are the repository's own files;
# what the fuzzer adds stays in build-fuzz/corpus. An input that fails is kept in build-fuzz/findings,
# is named, and makes the exit status 1. As many targets run at once as there are processors.
set -euo pipefail
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.."

seconds=${1:-60}
shift || true
targets=("$@")
[[ ${#targets[@]} -gt 0 ]] || targets=(description plan pytorch_plan step answers machine alloc_conf import fold inline hub config weights)

command -v clang++ >/dev/null || { echo "fuzzing needs clang++" >&2; exit 77; }
[[ -f build-fuzz/build.ninja ]] || cmake --preset fuzz >/dev/null
cmake --build build-fuzz --target fuzz_seeds "${targets[@]/#/fuzz_}" >build-fuzz/build.log 2>&1 || {
  tail -n 40 build-fuzz/build.log
  exit 1
}

# The seeds of a target, copied into its folder.
seeds() {
  case $1 in
    description) cp -n configs/models/*.yaml tests/bad/*.yaml "$2" ;;
    plan)
      build-fuzz/tests/fuzz/fuzz_seeds "$1" "$2"
      cp -n tests/plans/plan-*/*.yaml "$2"
      ;;
    answers | pytorch_plan | weights) build-fuzz/tests/fuzz/fuzz_seeds "$1" "$2" ;;
    config)
      for folder in tests/hf/small-*/ tests/hf/tiny-*/; do  # whose networks are small
        cp -n "${folder}config.json" "$2/$(basename "$folder").json"
      done
      ;;
    step)
      # tests/fuzz/step: what tests/python/recorded_seeds.py records; anew where PyTorch is at hand.
      cp -n tests/plans/step-*/*.json tests/recorded/*.json tests/fuzz/step/*.json "$2"
      if [[ -n ${STOWAGE_PYTHON:-} ]]; then
        "$STOWAGE_PYTHON" tests/python/recorded_seeds.py build-fuzz/recorded >build-fuzz/recorded.log 2>&1 || {
          tail -n 5 build-fuzz/recorded.log
          exit 1
        }
        for file in build-fuzz/recorded/*.json; do cp "$file" "$2/recorded-$(basename "$file")"; done
      fi
      ;;
    import)
      cp -n tests/keras/*.json "$2"
      find tests/onnx -name '*.onnx' -size -64k -exec cp -n {} "$2" ';'
      ;;
    machine) cp -n configs/gpus/*.yaml configs/hosts/*.yaml "$2" ;;
    *) [[ ! -d tests/fuzz/$1 ]] || cp -n "tests/fuzz/$1"/* "$2" ;;
  esac
}

fuzz() { # TARGET; prints when it has ended
  local target=$1 corpus=build-fuzz/corpus/$1 log=build-fuzz/$1.log dictionary=() result=0 count
  mkdir -p "$corpus" "build-fuzz/findings/$target"
  seeds "$target" "$corpus"
  [[ ! -f tests/fuzz/$target.dict ]] || dictionary=(-dict="tests/fuzz/$target.dict")
  count=$(find "$corpus" -type f | wc -l)
  "build-fuzz/tests/fuzz/fuzz_$target" "${dictionary[@]}" -max_total_time="$seconds" \
    -timeout=25 -rss_limit_mb=4096 -max_len=65536 -print_final_stats=1 -print_funcs=0 \
    -artifact_prefix="build-fuzz/findings/$target/" "$corpus" >"$log" 2>&1 || result=1
  {
    echo "== fuzz_$target, $seconds s, $count inputs to begin with"
    ((result == 0)) || {
      echo "fuzz_$target FAILED:"
      grep -aE 'ERROR|SUMMARY|Test unit written' "$log" || tail -n 5 "$log"
    }
    grep -aE 'stat::number_of_executed_units|stat::new_units_added' "$log" || true
  } >"build-fuzz/$target.told"
  cat "build-fuzz/$target.told"
  return "$result"
}

status=0 running=0
for target in "${targets[@]}"; do
  if ((running == $(nproc))); then
    wait -n || status=1
    running=$((running - 1))
  fi
  fuzz "$target" &
  running=$((running + 1))
done
while ((running-- > 0)); do
  wait -n || status=1
done
exit "$status"
