#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Profiles a Python process and leaves ./flamegraph.html and a ten-line summary: tests/demo.sh [PID [SECONDS]].
# Without PID: tests/targets/demo.py, which is started for it. SAMPLED is the program, PYTHON the interpreter of the demo.
set -eu
cd "$(dirname "$0")/.."
sampled=${SAMPLED:-build/sampled}
seconds=${2:-5}
page=flamegraph.html
report=$(mktemp)
target=
trap 'rm -f "$report"; [ -z "$target" ] || kill "$target" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

if [ $# -gt 0 ]; then
	pid=$1
else
	"${PYTHON:-python3}" tests/targets/demo.py >/dev/null &
	target=$!
	pid=$target
	sleep 0.5
fi

profile() { "$@" attach -q -d "$seconds" -f flamegraph -o "$page" -f text -o "$report" "$pid" >/dev/null; }

status=0
if [ "$(id -u)" -ne 0 ] && command -v sudo >/dev/null 2>&1; then
	# Only try without rights first; the page is made beforehand, so that it stays this user's when root writes it.
	profile "$sampled" 2>/dev/null || status=$?
	if [ $status -eq 4 ]; then
		status=0
		: >>"$page"
		profile sudo "$sampled" || status=$?
	elif [ $status -ne 0 ]; then
		status=0
		profile "$sampled" || status=$?
	fi
else
	profile "$sampled" || status=$?
fi
[ $status -eq 0 ] || exit $status

sed -n '/[^[:space:]]/p' "$report" | head -n 10
printf '\n%s\n' "flame graph: file://$(pwd)/$page"
