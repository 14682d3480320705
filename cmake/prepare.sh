# shellcheck shell=bash
# What ./stowage and ./run-tests share: install, configure and build, with all chatter on stderr.
# Sourced by bash, with the repository's root as the working directory.
#
#   STOWAGE_NO_INSTALL=1   never call apt; print the line and stop instead

say() { printf 'stowage: %s\n' "$*" >&2; }
die() {
  say "$@"
  exit 2
}

# A command that is found stands for its package, whoever installed it.
declare -A command_of=([g++]=g++ [cmake]=cmake [ninja-build]=ninja [ccache]=ccache
  [coinor-cbc]=cbc)
packages=(g++ cmake ninja-build ccache libboost-dev libfmt-dev libyaml-cpp-dev doctest-dev
  libcli11-dev nlohmann-json3-dev libexpected-dev libxxhash-dev libbenchmark-dev librapidcheck-dev
  libdnnl-dev libopenblas-dev coinor-cbc)

missing_packages() {
  local package
  local -A installed=()
  while read -r package state; do
    [[ $state == installed ]] && installed[${package%%:*}]=1
  done < <(dpkg-query -W -f '${binary:Package} ${db:Status-Status}\n' "${packages[@]}" 2>/dev/null)
  for package in "${packages[@]}"; do
    [[ -n ${installed[$package]:-} ]] && continue
    [[ -n ${command_of[$package]:-} ]] && command -v "${command_of[$package]}" >/dev/null && continue
    printf '%s\n' "$package"
  done
}

install_missing() {
  command -v dpkg-query >/dev/null || return 0 # not Debian: CMake says what it does not find
  local missing line
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]})) || return 0
  line="apt-get install -y --no-install-recommends ${missing[*]}"

  # What to type: package lists that are old or not there are fetched first.
  local as_root=() typed="apt-get update && $line" how="as root"
  if ((EUID != 0)) && command -v sudo >/dev/null; then
    typed="sudo apt-get update && sudo $line" how="here"
  fi
  if [[ -n ${STOWAGE_NO_INSTALL:-} ]]; then
    die "these packages are missing; type $how, and run this again:" $'\n'"  $typed"
  elif ((EUID != 0)); then
    if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
      as_root=(sudo -n)
    else
      die "packages are missing, and installing them needs root; type $how, and run this again:" \
        $'\n'"  $typed"
    fi
  fi
  say "installing ${missing[*]}"
  local log
  log=$(mktemp)
  # Lists that cannot be refreshed may still be good enough, so only the install decides.
  "${as_root[@]}" apt-get update >"$log" 2>&1 || true
  # shellcheck disable=SC2086
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive $line >>"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "installing failed; what was run:" $'\n'"  $typed"
  fi
  rm -f "$log"
}

# Reads a build's output, keeps it in the log and says how far it is: one moving line on a terminal,
# else a line at each tenth.
show_progress() {
  local log=$1 line at all tenth=0 shown=-1
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
    at=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
    if [[ -t 2 ]]; then
      ((SECONDS > shown)) && printf '\r\e[Kstowage: building, %d of %d' "$at" "$all" >&2
      shown=$SECONDS
    elif ((all >= 20 && at * 10 / all > tenth)); then
      tenth=$((at * 10 / all))
      say "building, $((tenth * 10)) percent after $SECONDS s"
    fi
  done
  [[ -t 2 ]] && printf '\r\e[K' >&2
  return 0
}

# build_target TARGET: configures if needed and builds. A failure leaves no stamp and exits 2.
build_target() (
  target=$1
  log=build/build.log
  mkdir -p build || die "cannot write to $PWD/build"
  if command -v flock >/dev/null; then
    exec 9>build/.lock
    if ! flock -n 9; then
      say "waiting for another build"
      flock 9
    fi
  fi
  # Before the build, so that a file edited during it counts as newer.
  touch "build/.stamp-$target.new"
  : >"$log"
  install_missing || exit

  # A tree that was moved or copied has a cache that names the old place.
  if [[ -f build/CMakeCache.txt ]] &&
    ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" build/CMakeCache.txt; then
    rm -rf build/CMakeCache.txt build/CMakeFiles
  fi
  [[ -x build/stowage ]] || say "building in $PWD/build; the first time takes minutes"
  # Configuring needs no call of its own afterwards: ninja does it when a list file changes.
  if [[ ! -f build/build.ninja || ! -f build/CMakeCache.txt ]] &&
    ! cmake --preset user >>"$log" 2>&1; then
    tail -n 30 "$log" >&2
    rm -f build/build.ninja
    die "configuring failed; the whole log is $PWD/$log"
  fi
  set -o pipefail
  if ! cmake --build build --target "$target" 2>&1 | show_progress "$log"; then
    tail -n 40 "$log" >&2
    die "building failed; the whole log is $PWD/$log"
  fi
  mv "build/.stamp-$target.new" "build/.stamp-$target"
)
