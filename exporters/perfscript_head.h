/* SPDX-License-Identifier: Apache-2.0 */
/* The line above a sample's frames in the text of `perf script`: who, when, how much and by which event. */
#ifndef SAMPLED_EXPORTERS_PERFSCRIPT_HEAD_H
#define SAMPLED_EXPORTERS_PERFSCRIPT_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "exporters/span.h"

struct perfscript_head {
	struct span comm, event, rest; /* rest: of the line, behind the event */
	uint64_t pid, tid, time_ns, period;
	bool has_time;
};

/* Takes the line apart; the texts point into it. A command may hold blanks and numbers, so it ends at the last that looks like ids before the
 * time. False: it is no such line. */
bool perfscript_head(struct span line, struct perfscript_head *ret_head);

#endif
