#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Includes point one way: daemon → exporters → aggregator → sampler → base; and no version of CPython is compared outside
# sampler/pyabi. Prints what stands against that; exit 1 if anything does.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0

# forbid FOLDER REGEX: no file of FOLDER includes what REGEX matches.
forbid()
{
	if grep -rnE "^[[:space:]]*#[[:space:]]*include[[:space:]]+[\"<]($2)/" --include='*.[ch]' "$1"; then
		echo "^ $1/ must not include from: $2" >&2
		bad=1
	fi
}
forbid base 'sampler|aggregator|exporters|daemon'
forbid sampler 'aggregator|exporters|daemon'
forbid aggregator 'exporters|daemon'
forbid exporters 'daemon'

# Layouts and behaviour are data chosen in sampler/pyabi. Elsewhere a version may be kept and printed, never compared.
if grep -rnE '(\bminor\b|[.>]minor\b|\bversion\b|[.>]version\b|PY_VERSION_HEX)[^=!<>;"]{0,24}(==|!=|<=|>=|<|>)[[:space:]]*(0x0?3[0-9a-fA-F]+|[0-9]+)' \
	--include='*.[ch]' base sampler aggregator exporters daemon | grep -v '^sampler/pyabi/' | grep -vE '(==|!=)[[:space:]]*0\b'; then
	echo '^ versions are compared in sampler/pyabi only' >&2
	bad=1
fi

# Only daemon/ logs or prints.
if grep -rnE '(^|[^_[:alnum:]])(printf|puts|putchar|perror|syslog|err|warn|errx|warnx)[[:space:]]*\(|fprintf[[:space:]]*\([[:space:]]*(stderr|stdout)' \
	--include='*.[ch]' base sampler aggregator exporters | grep -vE '^[^:]+:[0-9]+:[[:space:]]*(/?\*|//)'; then
	echo '^ only daemon/ prints' >&2
	bad=1
fi
exit $bad
