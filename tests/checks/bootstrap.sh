#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What ./bootstrap installs is what README.md asks for; and every program that a test is skipped without is one that ./bootstrap check installs. Prints those that are not; exit 1 if there are any.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
# README.md names what ./bootstrap installs for a build, all of it and nothing else.
installs=$(sed -n "/^build_set='/,/^'/p" bootstrap | sed "1d;\$d" | awk '{ print $2 }' | sort)
named=$(sed -n '/sudo apt-get install make/,/[^\\]$/p' README.md | tr ' \\' '\n\n' | grep -vxE 'sudo|apt-get|install|' | sort)
[ "$installs" = "$named" ] || { echo 'README.md and ./bootstrap do not name the same packages for a build'; bad=1; }
# util-linux is on every Debian; Python 2.7 is on none that is supported.
known=' unshare python2.7 '
programs=$(grep -rhoE '(which|needs|missing)\("[^)]*"\)' --include='*.py' tests/integration tests/runner |
	sed 's/missing("[^"]*",//' | grep -oE '"[a-z][a-z0-9_.-]*"' | tr -d '"' | sort -u)
[ -n "$programs" ] || { echo 'no test asks for a program: is this check still right?'; exit 1; }
for program in $programs; do
	case $known in *" $program "*) continue ;; esac
	grep -qE "^$program[[:space:]]" bootstrap || { echo "bootstrap: check installs no $program, which tests are skipped without"; bad=1; }
done
exit $bad
