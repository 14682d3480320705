#!/usr/bin/env bash
# Runs every file of a folder through the command that its case names (tests/cases.py has the table), and
# says for each what came of it, how long it took and how much memory:
#
#   tests/cases.sh FOLDER
#
# Exit status 1 where an outcome is not the expected one, or takes too much. Recordings need a Python with
# torch: the one that STOWAGE_PYTHON names, else python3; without torch they are said to be not run.
set -euo pipefail
root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)

if (($# != 1)) || [[ ! -d $1 ]]; then
  echo "usage: tests/cases.sh FOLDER" >&2
  exit 2
fi
command -v python3 >/dev/null || {
  echo "tests/cases.sh: needs python3, which measures time and memory" >&2
  exit 2
}
"$root/stowage" --version >/dev/null # builds what is out of date
exec python3 -B "$root/tests/cases.py" "$root/build/stowage" "$1"
