#!/usr/bin/env bash
# Plans of shipped models as a user makes them, executed on the GPU and held against the host: budgets,
# micro-batches, values made again, pins, inference. Needs a GPU: without one the test is skipped, loudly
# (77), and passes nothing.
#   validate_on_cuda.sh PROGRAM [cuda|host]
set -u
program=$1 on=${2:-cuda}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
count=0 failed=0

run() { # MODEL OPTION...
  local model=$1 plan=$scratch/plan.yaml status
  shift
  # Without TF32, so that the host's results are the same but for rounding in float32.
  "$program" plan "$model" --tf32 off "$@" --host-memory 8GiB -o "$plan" >"$scratch/out" 2>&1 || {
    cat "$scratch/out"
    exit 1
  }
  "$program" validate "$plan" --on "$on" >"$scratch/out" 2>&1
  status=$?
  ((status == 3)) && { tail -n 1 "$scratch/out"; echo "skipped: no plan was executed on a GPU"; exit 77; }
  if ((status != 0)); then
    echo "FAILED: $model $*"
    cat "$scratch/out"
    failed=$((failed + 1))
    return
  fi
  count=$((count + 1))
  echo "$count: $model $*: $(tail -n 1 "$scratch/out")"
}

run mlp --batch 64 --budget 24MiB
run mlp --batch 64 --budget 6MiB
run mlp --batch 64 --optimizer adam --budget 80% --pin 'class:optimizer_state=cpu'
run mnist-cnn --batch 64 --budget 100MiB
run mnist-cnn --batch 64 --budget 16MiB
run mnist-cnn --batch 64 --budget 12MiB --placement activations,recompute
run mnist-cnn --batch 64 --budget 6MiB
run mnist-cnn --batch 64 --mode inference --budget 4MiB
run mnist-cnn --batch 16 --optimizer sgd --pin 'op:max_pool2d=cpu' --budget 16MiB
run resnet18 --batch 4 --budget 256MiB
run resnet18 --batch 4 --budget 150MiB
run resnet18 --batch 4 --mode inference --budget 60MiB
run vit_tiny_patch16_224 --batch 2 --budget 70%
run dcgan-generator --batch 8 --budget 60%
((failed == 0)) || { echo "$failed plans failed"; exit 1; }
