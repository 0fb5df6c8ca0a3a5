/* SPDX-License-Identifier: Apache-2.0 */
/* The options that convert, report and diff have in common: which part of a profile, and how it is folded. */
#ifndef SAMPLED_DAEMON_FILTERS_H
#define SAMPLED_DAEMON_FILTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/transform.h"
#include "base/fault.h"
#include "daemon/option_table.h"
#include "daemon/option_values.h"

struct filters {
	struct transform how; /* complete after filters_finish(); points into the rest */
	struct thread_list threads;
	struct pattern focus, ignore, omit, stop;
	enum sample_mode mode; /* which samples count, by their state */
	bool no_idle;
	const char *value;       /* which of a profile's values its shares are of; NULL: the file's own choice */
	uint64_t from_ns, to_ns; /* of the profile's time, from its start; to_ns 0: to the end */
};

enum { FILTER_ROWS = 16 };

/* The table that reads them; the filters stay where they are until they are released, and so does argv. */
void filters_rows(struct filters *filters, struct option_row ret_rows[FILTER_ROWS]);
/* After the last option: 0, or -EINVAL (a window that ends before it begins). */
int filters_finish(struct filters *filters, struct fault *fault);
void filters_release(struct filters *filters);
/* Whether anything but a window of time is asked for, which is for the readers. */
bool filters_fold(const struct filters *filters);
/* Whether samples are asked for by their state. */
bool filters_need_states(const struct filters *filters);
/* Whether anything is asked for that a call graph cannot do. */
bool filters_need_profile(const struct filters *filters);

#endif
