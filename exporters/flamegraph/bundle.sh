#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Joins page.html, style.css and the scripts of a folder beside this one into one page, on standard output: bundle.sh flamegraph|heatmap.
# What all pages have before their body is in head.html beside this file; page.html says where, and its title: @HEAD@ TITLE.
# The page's Content-Security-Policy allows exactly this script and this style, by their SHA-256. Needs only what every build machine
# has: awk, sed, coreutils.
set -eu
cd "$(dirname "$0")/../$1"
case $1 in
flamegraph) scripts="data.js tree.js colors.js paint.js panels.js search.js main.js" ;;
heatmap) scripts="data.js views.js main.js" ;;
esac

# Of what stands between the tags: a line end, then the files.
digest()
{
	bytes=$({ echo; cat "$@"; } | sha256sum | cut -c1-64 | sed 's/../\\x&/g')
	env printf "$bytes" | base64
}

# shellcheck disable=SC2086 # a list of names without blanks
awk -v script="$(digest $scripts)" -v style="$(digest style.css)" -v scripts="$scripts" '
function insert(file,   line) { while ((getline line < file) > 0) print line }
function put(line,   count, names, i) {
	if (line == "@STYLE@") {
		insert("style.css")
	} else if (line == "@SCRIPT@") {
		count = split(scripts, names, " ")
		for (i = 1; i <= count; i++)
			insert(names[i])
	} else {
		sub(/@TITLE@/, title, line)
		sub(/@SCRIPT_HASH@/, "sha256-" script, line)
		sub(/@STYLE_HASH@/, "sha256-" style, line)
		print line
	}
}
sub(/^@HEAD@ /, "") { title = $0; while ((getline line < "../flamegraph/head.html") > 0) put(line); next }
{ put($0) }' page.html
