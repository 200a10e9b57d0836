#!/bin/bash
# The web pages, with the Node that setup installed: `build` into the Python package, `test` what needs no browser and then
# what does. Debian's Chromium is installed where there is none and it may be.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
PATH="$PWD/.venv/bin:$PATH"
# Node trusts the authorities it was built with; here it trusts those of the system too, as everything else does.
authorities=/etc/ssl/certs/ca-certificates.crt
if [ -z "${NODE_EXTRA_CA_CERTS:-}" ] && [ -r "$authorities" ]; then
  export NODE_EXTRA_CA_CERTS=$authorities
fi

say() { echo "web: $*" >&2; }

install_dependencies() { # once for each lock file
  local stamp=web/node_modules/.ready
  if [ ! "$stamp" -nt web/package-lock.json ]; then
    say "installing what the pages are built with"
    (cd web && npm ci --no-audit --no-fund --loglevel=error)
    touch "$stamp"
  fi
}

find_chromium() {
  if [ -n "${CHROMIUM:-}" ]; then
    echo "$CHROMIUM"
  elif ! command -v chromium && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    say "installing chromium, for the tests in a real browser"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
    command -v chromium
  fi
}

build() {
  install_dependencies
  (cd web && npm run --silent build)
}

case "${1:-}" in
build) build ;;
test)
  chromium=$(find_chromium || true)
  if [ -z "$chromium" ]; then
    say "there is no chromium: install it, or name one in CHROMIUM"
    exit 1
  fi
  build
  (cd web && CHROMIUM=$chromium npm run --silent test && CHROMIUM=$chromium npm run --silent e2e -w @holdfast/pages)
  ;;
*)
  say "say build or test"
  exit 2
  ;;
esac
