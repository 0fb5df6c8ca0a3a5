#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The units: systemd finds no fault with them, and they are exposed at most as much as docs/SERVICE.md says. Prints what stands against that; exit 1
# if anything does. Needs systemd-analyze; no systemd need be running.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT

# check UNIT EXPOSURE: of 10, 0 being none.
check()
{
	# The program stands where make leaves it; any that can be run does.
	program=$PWD/build/sampled
	[ -x "$program" ] || program=/bin/true
	sed "s,/usr/bin/sampled,$program," "systemd/$1" >"$folder/$1"
	said=$(systemd-analyze verify --man=no "$folder/$1" 2>&1) && [ -z "$said" ] || { echo "systemd/$1: $said"; bad=1; }
	exposure=$(systemd-analyze security --offline=true --no-pager "systemd/$1" 2>&1 |
		sed -n 's/.*Overall exposure level for .*: \([0-9.]*\) .*/\1/p')
	awk -v is="$exposure" -v most="$2" 'BEGIN { exit !(is != "" && is + 0 <= most) }' ||
		{ echo "systemd/$1: exposure ${exposure:-unknown}, more than $2"; bad=1; }
	# Other versions weigh differently.
	systemctl --version | grep -q '^systemd 252' || return
	grep -q "| \`$1\` | $exposure |" docs/SERVICE.md || { echo "docs/SERVICE.md does not say that the exposure of $1 is $exposure"; bad=1; }
}
check sampled.service 1.8
check sampled-push.service 1.5
exit $bad
