#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The documents: no link leads nowhere, no figure is still to be filled in, and README.md is read in five minutes. Prints what stands against that; exit 1 if
# anything does.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
words=$(wc -w <README.md)
[ "$words" -le 1000 ] || { echo "README.md has $words words, more than 1,000"; bad=1; }
grep -n '⟨' ./*.md docs/*.md docs/lab/*.md && { echo 'figures in angle brackets are to be filled in'; bad=1; }
for file in ./*.md docs/*.md docs/lab/*.md; do
	folder=$(dirname "$file")
	for link in $(grep -oE '\]\([^) ]+\)' "$file" | sed 's/^](//; s/)$//' | grep -vE '^[a-z]+:' | sort -u); do
		path=${link%%#*}
		target=$folder/$path
		[ -n "$path" ] || target=$file
		[ -e "$target" ] || { echo "$file: $link: no such file"; bad=1; continue; }
		case $link in *'#'*) ;; *) continue ;; esac
		# A heading's anchor: small letters, digits, hyphens for blanks.
		sed -n 's/^##* //p' "$target" | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9_\n-' | grep -qxF -- "${link#*#}" ||
			{ echo "$file: $link: no such heading"; bad=1; }
	done
done
exit $bad
