#!/bin/sh
# The system packages that the tests use: installed when root and missing, otherwise named.
# What cannot be had is no error here: the tests that need it fail and say so.
set -eu

missing=
command -v prometheus >/dev/null && command -v promtool >/dev/null || missing="$missing prometheus"
command -v prometheus-alertmanager >/dev/null && command -v amtool >/dev/null || missing="$missing prometheus-alertmanager"
command -v chromium >/dev/null || missing="$missing chromium"
[ -e /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf ] || missing="$missing fonts-dejavu-core"
command -v npm >/dev/null || missing="$missing nodejs npm"
[ -n "$missing" ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing the system packages that the tests use:$missing"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2086
    apt-get update -qq && apt-get install -qq -y --no-install-recommends $missing </dev/null >/dev/null && exit 0
    echo "apt-get could not install:$missing; the tests that need them will fail." >&2
else
    echo "missing system packages:$missing; the tests that need them will fail (as root: apt-get install --no-install-recommends$missing)." >&2
fi
