#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every source file names its licence in its first three lines.
set -u
cd "$(dirname "$0")/../.." || exit 1
bad=0
for file in Makefile bootstrap systemd/make-deb systemd/*.service systemd/*.sysusers.conf systemd/*.tmpfiles.conf $(find base sampler aggregator exporters daemon tests -name node_modules -prune -o \
	\( -name '*.[chS]' -o -name '*.py' -o -name '*.sh' -o -name '*.js' -o -name '*.mjs' \) -print); do
	head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || { echo "$file: no SPDX line"; bad=1; }
done
exit $bad
