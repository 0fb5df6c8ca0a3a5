#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Profiles a Python process, leaves ./flamegraph.html and prints sampled's closing summary: tests/demo.sh [PID [SECONDS]].
# Without PID: tests/targets/demo.py, which is started for it. SAMPLED is the program, PYTHON the interpreter of the demo.
set -eu
cd "$(dirname "$0")/.."
sampled=${SAMPLED:-build/sampled}
seconds=${2:-5}
page=flamegraph.html
target=
ready=
trap '[ -z "$target" ] || kill "$target" 2>/dev/null || true; rm -f "$ready"' EXIT
trap 'exit 130' INT TERM

if [ $# -gt 0 ]; then
	pid=$1
else
	ready=$(mktemp)
	"${PYTHON:-python3}" tests/targets/demo.py >"$ready" &
	target=$!
	pid=$target
	# It says so when it runs. `python3` may be a script of pyenv's, which takes a while to become a Python.
	until [ -s "$ready" ] || ! kill -0 "$target" 2>/dev/null; do sleep 0.1; done
fi

profile() { "$@" attach -d "$seconds" -f flamegraph -o "$page" "$pid" >/dev/null; }

status=0
profile "$sampled" || status=$?
if [ $status -eq 4 ] && [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null 2>&1; then
	echo 'demo: reading that process needs more rights: trying with sudo' >&2
	# Made beforehand, so that it stays this user's file when root writes it.
	: >>"$page"
	status=0
	profile sudo "$sampled" || status=$?
fi
[ $status -eq 0 ] || exit $status
printf '\n%s\n' "flame graph: file://$(pwd)/$page" >&2
