/* SPDX-License-Identifier: Apache-2.0 */
/* The options of attach and run, as read from the command line. */
#ifndef SAMPLED_DAEMON_OPTIONS_H
#define SAMPLED_DAEMON_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/aggregator.h"
#include "base/fault.h"
#include "daemon/option_table.h"
#include "daemon/option_values.h"
#include "exporters/format.h"
#include "exporters/push_request.h"
#include "sampler/sampler.h"

enum { TEXT_LIST_MAX = 64 }; /* how often -f or -o may be given */

struct text_list {
	const char *items[TEXT_LIST_MAX];
	size_t count;
};

/* Texts point into argv, or are static. */
struct options {
	enum option_action action;
	uint64_t interval_ns;     /* 0: unthrottled */
	uint64_t duration_ns;     /* 0: none */
	struct text_list formats; /* each -f */
	struct text_list outputs; /* each -o */
	const char *record;       /* --record; NULL: none */
	const char *push;         /* --push: the address; NULL: none */
	enum push_type push_type; /* PUSH_TYPES: not given */
	enum collapsed_style collapsed_style;
	enum sample_mode mode;
	struct thread_list threads; /* each -t */
	struct pattern omit, stop;
	enum native_frames native;
	bool blocking, opcodes, debuginfod;
	double visit_budget; /* share of each CPU's time */
	bool idle, gc, jitter, subprocesses, stats, realtime, svg, quiet, verbose;
	char **operands; /* PIDs, or the command and its arguments; NULL-terminated, in argv */
	int operand_count;
};

/* Why an option is refused: it is not built yet; it is of dump alone; or it is another profiler's way to name a process. */
extern const char options_later[], options_dump_only[], options_dump_only_hint[], options_no_pid[], options_no_pid_hint[];

/* Reads argv, of which argv[0] is the command's name ("attach"). With stop_early the first word that is no option
 * ends them (run). 0, or -EINVAL with *fault filled and nothing to release. */
int options_read(struct options *ret_options, int argc, char **argv, bool stop_early, struct fault *fault);
void options_release(struct options *options);

#endif
