# shellcheck shell=bash
# debian_mirror: where this machine's apt has Debian's packages from; empty: from nowhere. Sourced by what
# runs debootstrap. DEBIAN_MIRROR comes first.
debian_mirror() {
  # shellcheck disable=SC2016  # apt's own variables
  printf '%s\n' "${DEBIAN_MIRROR:-$(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' |
    grep -v -e security -e updates | grep '/debian ' | head -n 1 | cut -d ' ' -f 1)}"
}
