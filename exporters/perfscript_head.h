/* SPDX-License-Identifier: Apache-2.0 */
/* The line above a sample's frames in the text of `perf script`: who, when, how much and by which event. */
#ifndef SAMPLED_EXPORTERS_PERFSCRIPT_HEAD_H
#define SAMPLED_EXPORTERS_PERFSCRIPT_HEAD_H

#include <stdbool.h>
#include <stdint.h>

#include "exporters/span.h"

struct perfscript_head {
	struct span comm, event, rest;      /* rest: of the line, behind the event */
	uint64_t pid, tid, time_ns, period; /* period: 1 where none is said */
	bool has_time, has_period;
};

/* Takes the line apart; the texts point into it. A command may hold blanks and numbers, so it ends at the last that looks like ids before the
 * time. False: it is no such line. */
/* Where there is neither a time nor a pid, a number before the event is the period if a command of one word and the tid stand before it. */
bool perfscript_head(struct span line, struct perfscript_head *ret_head);

/* Whether the line is a frame: blanks, an address in hexadecimal, and more. *ret_rest: behind the address. */
bool perfscript_is_frame(struct span line, struct span *ret_rest);

#endif
