#!/bin/bash
# Installs the locked dependencies into .venv with uv, which it finds or fetches first. Needs python3 and nothing else.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

say() { echo "setup: $*" >&2; }

as_root() { # what only root may do, by whichever way there is
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    say "this needs root's rights and there is no sudo; run as root: $*"
    return 1
  fi
}

install_packages() { # Debian's
  as_root apt-get update -qq && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

make_tools_folder() { # a virtual environment of its own: Debian's Python installs nothing outside of one
  rm -rf .tools
  python3 -m venv .tools >/dev/null 2>&1 && return
  rm -rf .tools
  if ! command -v apt-get >/dev/null; then
    say "python3 cannot make virtual environments; install its venv module, or uv, and try again"
    return 1
  fi
  say "installing python3-venv, which Debian keeps apart from python3"
  install_packages python3-venv
  python3 -m venv .tools
}

find_uv() {
  if command -v uv; then
    return
  fi
  if ! .tools/bin/uv --version >/dev/null 2>&1; then
    make_tools_folder
    say "fetching uv"
    .tools/bin/python -m pip install --quiet --disable-pip-version-check uv
  fi
  echo .tools/bin/uv
}

find_python() { # the distribution's own where it is new enough: it is built for speed, others on the PATH often are not
  if /usr/bin/python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    echo /usr/bin/python3
  else
    command -v python3
  fi
}

have_jemalloc() {
  python3 -c 'import ctypes.util, sys; sys.exit(ctypes.util.find_library("jemalloc") is None)'
}

offer_jemalloc() { # not needed: the embedded Valkey is a third quicker with it, so nobody is asked for a password
  if have_jemalloc || [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    return
  fi
  say "installing libjemalloc2, with which the embedded Valkey is quicker"
  install_packages libjemalloc2 2>/dev/null || say "it could not be installed; going on without"
}

uv=$(find_uv)
say "installing the locked dependencies into .venv"
UV_PROJECT_ENVIRONMENT=.venv "$uv" sync --frozen --quiet --group web --python "$(find_python)"
offer_jemalloc
say "done"
