#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every source file names its licence in its first three lines.
set -u
cd "$(dirname "$0")/../.." || exit 1
{
	printf '%s\n' Makefile bootstrap systemd/make-deb systemd/*.service systemd/*.sysusers.conf systemd/*.tmpfiles.conf
	find base sampler aggregator exporters daemon tests -name node_modules -prune -o \
		\( -name '*.[chS]' -o -name '*.py' -o -name '*.sh' -o -name '*.js' -o -name '*.mjs' \) -print
} | awk '{
	file = $0
	found = 0
	for (line = 1; line <= 3 && (getline text < file) > 0; line++)
		found += text ~ /SPDX-License-Identifier: Apache-2\.0/
	close(file)
	if (!found) {
		print file ": no SPDX line"
		bad = 1
	}
}
END { exit bad }'
