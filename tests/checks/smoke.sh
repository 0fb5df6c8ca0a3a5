#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The least that a build must do where it is made: smoke.sh PROGRAM. A dump, a profile and the service, of one Python program; prints what is wrong.
set -u
program=$1
folder=$(mktemp -d) || exit 1
printf '%s\n' 'def spin_here():' '    while True:' '        pass' 'spin_here()' >"$folder/spinning.py"
python3 "$folder/spinning.py" &
target=$!
service=
trap 'kill $target $service 2>/dev/null; wait; rm -rf "$folder"' EXIT
fail() { echo "$*"; exit 1; }

# within SECONDS COMMAND…: until it succeeds.
within()
{
	left=$(($1 * 10))
	shift
	until "$@" >"$folder/said" 2>&1; do
		left=$((left - 1))
		[ "$left" -gt 0 ] || { cat "$folder/said"; fail "not in time: $*"; }
		sleep 0.1
	done
}

shows() { "$program" dump "$target" | grep -q spin_here; }
within 30 shows
"$program" attach "$target" -d 2 -f collapsed -o "$folder/stacks" >/dev/null 2>"$folder/said" || { cat "$folder/said"; fail 'attach failed'; }
grep -q spin_here "$folder/stacks" || fail 'attach saw nothing of the program'
mkdir "$folder/dumps"
printf '[dump]\ndirectory = %s\nformat = collapsed\n[rule all]\ncommand = *spinning.py*\n' "$folder/dumps" >"$folder/conf"
"$program" daemon --config "$folder/conf" --socket "$folder/socket" >"$folder/log" 2>&1 &
service=$!
lists() { "$program" ctl --socket "$folder/socket" list | grep -q "\b$target\b"; }
within 60 lists
dumped() { "$program" ctl --socket "$folder/socket" dump "$target" -f collapsed -o "$folder/held" && grep -q spin_here "$folder/held"; }
within 60 dumped
kill "$service"
wait "$service" || { cat "$folder/log"; fail 'the service did not end as it should'; }
service=
