#!/usr/bin/env bash
# The small launches under NVIDIA's compute-sanitizer: every kernel in every type, and a small network.
# Needs a GPU and that program; without them the test is skipped, loudly (77), and passes nothing. Writes
# no document: under a tool, nothing has run as it runs.
#   compute_sanitizer.sh memcheck|racecheck GPU_TESTS
set -u
tool=$1 program=$2

"$program" --no-document --test-case='(no such test)' >/dev/null
status=$?
((status == 77)) && { echo "skipped: no GPU is here, compute-sanitizer's $tool was not run"; exit 77; }
((status == 0)) || exit 1

sanitizer=$(command -v compute-sanitizer) || for folder in "${CUDA_PATH:-/usr/local/cuda}" /usr/local/cuda*; do
  [[ -x $folder/bin/compute-sanitizer ]] && sanitizer=$folder/bin/compute-sanitizer && break
done
[[ -n $sanitizer ]] || { echo "skipped: compute-sanitizer is not here, $tool was not run"; exit 77; }

"$sanitizer" --tool "$tool" --error-exitcode 1 "$program" --no-document \
  --test-case='every kernel in every type*,a small network with everything resident*'
