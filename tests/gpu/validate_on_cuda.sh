#!/usr/bin/env bash
# Plans of several models, executed on the GPU. Needs one: without it the test is skipped, loudly
# (77), and passes nothing.
#   validate_on_cuda.sh PROGRAM
set -u
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

run() { # model batch budget
  "$program" plan "$1" --batch "$2" --budget "$3" -o "$scratch/$1.yaml" >"$scratch/out" 2>&1 || {
    cat "$scratch/out"
    exit 1
  }
  "$program" validate "$scratch/$1.yaml" --on cuda
  local status=$?
  ((status == 3)) && { echo "skipped: no plan was executed on a GPU"; exit 77; }
  ((status == 0)) || exit 1
}

run mlp 64 24MiB
run mnist-cnn 64 16MiB
run resnet18 8 256MiB
