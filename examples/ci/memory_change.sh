#!/usr/bin/env bash
# What a change adds to a model's memory, and whether the model still fits: for continuous integration.
#
#   memory_change.sh BEFORE MODEL [options of stowage check]
#
# BEFORE is a revision of git (origin/main), MODEL a file of the working tree: a description, a config.json,
# or FILE.py:FUNCTION, which is recorded at both (with PyTorch). Prints markdown: what grew, by class and by
# layer. Exit codes: 0 the model fits, 1 it does not, 2 it cannot be read.
#
#   memory_change.sh origin/main model.yaml --gpu rtx3060 --batch 32 >comment.md
set -u

before=${1:?usage: memory_change.sh BEFORE MODEL [options]}
model=${2:?usage: memory_change.sh BEFORE MODEL [options]}
shift 2
file=${model%%:*}
folder=$(mktemp -d)
trap 'git worktree remove --force "$folder/tree" 2>/dev/null; rm -rf "$folder"' EXIT

# step MODEL: the name of what `stowage` reads: the file itself, or the recorded step of a Python source.
step() { # FOLDER NAME
  case $model in
    *.py:*)
      (cd -- "$1" && stowage record "$model" -o "$folder/$2.json") >&2 || return 2
      printf '%s\n' "$folder/$2.json"
      ;;
    *) printf '%s\n' "$1/$file" ;;
  esac
}

root=$(git rev-parse --show-toplevel) || exit 2
here=$(git rev-parse --show-prefix)
git worktree add --quiet --detach "$folder/tree" "$before" >&2 || exit 2
new=$(step "$root/$here." new) || exit 2
if [[ ! -e $folder/tree/$here$file ]]; then
  printf '`%s` is new.\n\n' "$model"
  stowage check "$new" "$@" --format markdown
  exit
fi
old=$(step "$folder/tree/$here." old) || exit 2
printf 'What `%s` takes, before (`%s`) and after this change:\n\n' "$model" "$before"
stowage diff "$old" "$new" "$@" --format markdown
