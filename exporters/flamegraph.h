/* SPDX-License-Identifier: Apache-2.0 */
/* What the two files that write a flame graph's data share: flamegraph.c and flamegraph_sources.c. */
#ifndef SAMPLED_EXPORTERS_FLAMEGRAPH_H
#define SAMPLED_EXPORTERS_FLAMEGRAPH_H

#include <stdint.h>

#include "aggregator/profile.h"
#include "exporters/intern.h"
#include "exporters/source.h"
#include "exporters/writer.h"

struct flamegraph {
	const struct profile *profile;
	struct pair_set frames; /* (symbol + 1, line); number 0 is the root's, which is none */
	struct text_set texts;
	uint32_t *process_of; /* a process in which the symbol was seen: whose files hold its source */
	int err;
};

/* Writes the member "sources": [process, file's text number, first line's number, [lines]] for each run of lines within two of a
 * frame's line, and "sourcesLeftOut", the count of files that were not read, or of which lines were left out, because of a bound.
 * 0 or -ENOMEM; files that cannot be read are passed over. */
int flamegraph_sources(struct flamegraph *f, const struct source_access *access, struct writer *to);

#endif
