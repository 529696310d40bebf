#!/usr/bin/env bash
# Installs those of the given Debian packages that are missing: cmake/install_packages.sh g++ cmake ...
set -euo pipefail

missing=()
for package in "$@"; do
  status=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
  [ "$status" = installed ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "apt-get is not here; install what these Debian packages hold by hand: ${missing[*]}" >&2
  exit 1
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "these packages are missing, and installing them needs root or sudo: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "installing ${missing[*]}"
# A list that cannot be refreshed may still name packages that can be had, so the verdict is left to the installation.
"${as_root[@]}" apt-get update -qq || echo "apt-get update failed; trying with the package lists at hand" >&2
# One at a time, so that the message names the one that fails.
for package in "${missing[@]}"; do
  if ! "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$package" >/dev/null; then
    echo "cannot install the package $package" >&2
    exit 1
  fi
done
