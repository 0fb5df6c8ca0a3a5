/* SPDX-License-Identifier: Apache-2.0 */
/* What a pprof file that we wrote says in its comments, one "key: text" each: processes, mode, and the facts and losses of sampling. Comments of other
 * writers mean nothing to us and are passed over. */
#ifndef SAMPLED_EXPORTERS_PPROF_SAID_H
#define SAMPLED_EXPORTERS_PPROF_SAID_H

#include <stdint.h>

#include "aggregator/builder.h"
#include "exporters/pprof_tables.h"

enum { PPROF_SAID_PROCESSES_MAX = 4096 };

struct pprof_said {
	struct said_process {
		int32_t pid;
		char *name; /* owned */
	} * processes;
	unsigned process_count;
};

/* Losses become notes of the builder's profile. Without memory less is kept. */
void pprof_said_read(struct pprof_said *said, const struct pprof_tables *tables, struct builder *to);
void pprof_said_release(struct pprof_said *said);

/* NULL: nothing was said of this process. */
char *pprof_said_name(const struct pprof_said *said, int32_t pid);

#endif
