#!/usr/bin/env bash
# Everything that only a GPU can tell, in the order of its worth, on a machine with a GPU, PyTorch and no
# network. It prints as it goes and stops by itself: what does not begin in time is said.
#   all.sh [--seconds N] [--build FOLDER] [--output FOLDER] [--only PART,PART]
#     --seconds N      no part begins after so many, and each ends by then (480)
#     --build FOLDER   with stowage and tests/gpu_tests (build)
#     --output FOLDER  where logs and results are written (gpu-results)
# kernels      gpu_tests: every kernel, operator, small plans and the traps; gpu-runs.md
# plans        validate_on_cuda.sh: plans of shipped models
# applied      bench/apply/on_gpu.py: plans for PyTorch, carried out; applied.json
# moves        bench/moves: what moving tensors costs PyTorch; moves.json
# tuning       bench/ground_truth/fine_tuning.py, of the cases with a word of $STOWAGE_CASES; tuning.json
# precisions   bench/ground_truth/measure.py: every model in 16 bits; precisions.json
# optimizers   the same with other optimizers, in fp32; optimizers.json
# capped       bench/ground_truth/capped.py of these and of $STOWAGE_MEASURED: in no more than is predicted
# Exit code: 0 all parts passed, 1 some failed, 2 usage.
set -u
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit 2
seconds=480 build=$PWD/build output=$PWD/gpu-results
all=(kernels plans applied moves tuning precisions optimizers capped)
parts=("${all[@]}")
while (($#)); do
  case $1 in
    --seconds) seconds=$2 ;;
    --build) build=$(realpath "$2") ;;
    --output) output=$(realpath -m "$2") ;;
    --only) IFS=, read -ra parts <<<"$2" ;;
    *) sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
  esac
  shift 2 || exit 2
done
for part in "${parts[@]}"; do
  [[ " ${all[*]} " == *" $part "* ]] || { echo "no part is called '$part'" >&2; exit 2; }
done
python=${STOWAGE_PYTHON:-python3} parallel=${STOWAGE_PARALLEL:-8}
ground=$PWD/bench/ground_truth
models=vgg16,resnet18,resnet50,resnet152,densenet121,mobilenet_v2,efficientnet_b0,inception_v3,unet
models+=,convnext_tiny,swin_t,vit_b_16,timm/vit_base_patch16_224,keras-deep-16x16
models+=,bert-base,bert-base-mlm,gpt2,gpt2-medium
mkdir -p "$output"
export PYTHONUNBUFFERED=1 STOWAGE_CONFIGS=${STOWAGE_CONFIGS:-$PWD/configs}
export STOWAGE_GPU_DEADLINE=${STOWAGE_GPU_DEADLINE:-$(($(date +%s) + seconds))}

left() { echo $((STOWAGE_GPU_DEADLINE - $(date +%s))); }
# stop_after MARGIN: seconds from now; no job is started after them.
stop_after() { echo $(($(left) > $1 ? $(left) - $1 : 1)); }
kernels() {
  cp docs/gpu-runs.md "$output/gpu-runs.md"
  timeout 150 "$build/tests/gpu_tests" --document "$output/gpu-runs.md"
}
plans() { timeout 120 bash tests/gpu/validate_on_cuda.sh "$build/stowage"; }
applied() {
  PYTHONPATH=$PWD/python "$python" bench/apply/on_gpu.py --stowage "$build/stowage" \
    --stop-after "$(($(stop_after 25) < 200 ? $(stop_after 25) : 200))" -o "$output/applied.json"
}
moves() { (cd bench/moves && timeout 100 "$python" costs.py -o "$output/moves.json"); }
measured() { # NAME OPTION...
  local name=$1
  shift
  (cd "$ground" && "$python" measure.py "$@" --parallel "$parallel" --timeout 60 --steps 5 --warmup 3 \
    --stop-after "$(stop_after 25)" -o "$output/$name.json")
}
tuning() {
  local words
  read -ra words <<<"${STOWAGE_CASES:-}"
  export PYTHONPATH=${STOWAGE_SITE:-}${PYTHONPATH:+:$PYTHONPATH}  # bitsandbytes, torchao
  (cd "$ground" && "$python" fine_tuning.py ask --stowage "$build/stowage" -o "$output/estimates.json" \
    "${words[@]}" >/dev/null
  "$python" fine_tuning.py measure --parallel "$parallel" --timeout 60 \
    --stop-after "$(stop_after 25)" --estimates "$output/estimates.json" \
    -o "$output/tuning.json" "${words[@]}")
}
precisions() { measured precisions --models "$models" --optimizers adam --precisions amp-bf16,bf16,amp-fp16; }
optimizers() {
  measured optimizers --models "$models" --precisions fp32 \
    --optimizers sgd-momentum,adam:fused,adam:for-loop,adamw,rmsprop
}
capped() {
  local file result=0
  for file in ${STOWAGE_MEASURED:-} "$output/precisions.json" "$output/optimizers.json"; do
    [[ -f $file && $(left) -gt 30 ]] || continue
    echo "- under what is predicted of $file"
    (cd "$ground" && "$python" capped.py "$file" --stowage "$build/stowage" --parallel "$parallel" \
      --timeout 60 --stop-after "$(stop_after 25)" -o "$output/capped-$(basename "$file")") || result=1
  done
  return "$result"
}

# Each part is this script once more, so that one that hangs is ended with the time; what it wrote stays.
if [[ -n ${STOWAGE_GPU_PART:-} ]]; then
  "$STOWAGE_GPU_PART"
  exit
fi
failures=0
for part in "${parts[@]}"; do
  if (($(left) < 30)); then
    echo "== $part: not begun, $(left) seconds were left"
    continue
  fi
  start=$SECONDS
  echo "== $part, at $start s"
  STOWAGE_GPU_PART=$part timeout -k 10 "$(left)" bash tests/gpu/all.sh --build "$build" --output "$output" \
    2>&1 | sed -u "s/^/[$part] /"
  status=${PIPESTATUS[0]} result=passed
  ((status == 0)) || { failures=$((failures + 1)) && result="ended with exit code $status"; }
  echo "== $part: $result in $((SECONDS - start)) s"
done
((failures == 0))
