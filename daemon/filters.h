/* SPDX-License-Identifier: Apache-2.0 */
/* The options that convert, report and diff have in common: which part of a profile, and how it is folded. */
#ifndef SAMPLED_DAEMON_FILTERS_H
#define SAMPLED_DAEMON_FILTERS_H

#include <getopt.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "aggregator/transform.h"
#include "base/fault.h"

enum { FILTER_THREADS_MAX = 64 };

struct filters {
	struct transform how; /* points into the rest */
	struct thread_filter threads[FILTER_THREADS_MAX];
	regex_t focus, ignore, omit, stop;
	uint64_t from_ns, to_ns; /* of the profile's time, from its start; to_ns 0: to the end */
};

/* Long options of these commands have numbers from FILTER_FIRST on; a command's own stay below. */
enum {
	FILTER_FIRST = 512,
	FILTER_THREAD = FILTER_FIRST,
	FILTER_FROM,
	FILTER_TO,
	FILTER_FUNCTION_LEVEL,
	FILTER_LINE_LEVEL,
	FILTER_STRIP_DIRS,
	FILTER_FOCUS,
	FILTER_IGNORE,
	FILTER_OMIT,
	FILTER_STOP,
	FILTER_MIN_PERCENT,
};

/* For a command's table of struct option; each stands in it by one X-macro, so that there is one list. */
#define FILTER_OPTIONS                                                                                                 \
	{"thread", required_argument, NULL, FILTER_THREAD}, {"from", required_argument, NULL, FILTER_FROM},            \
		{"to", required_argument, NULL, FILTER_TO},                                                            \
		{"function-level", no_argument, NULL, FILTER_FUNCTION_LEVEL},                                          \
		{"line-level", no_argument, NULL, FILTER_LINE_LEVEL},                                                  \
		{"strip-dirs", no_argument, NULL, FILTER_STRIP_DIRS},                                                  \
		{"focus", required_argument, NULL, FILTER_FOCUS}, {"ignore", required_argument, NULL, FILTER_IGNORE},  \
		{"omit", required_argument, NULL, FILTER_OMIT}, {"stop", required_argument, NULL, FILTER_STOP},        \
	{                                                                                                              \
		"min-percent", required_argument, NULL, FILTER_MIN_PERCENT                                             \
	}

/* Takes in one option. 0, -ENOENT: it is none of these, or -EINVAL with *fault filled. `text` must outlive the filters. */
int filters_take(struct filters *filters, int option, const char *text, struct fault *fault);
/* After the last option: 0, or -EINVAL (a window that ends before it begins). */
int filters_check(const struct filters *filters, struct fault *fault);
void filters_release(struct filters *filters);
/* Whether anything but a window of time is asked for, which is for the readers. */
bool filters_fold(const struct filters *filters);
/* Whether anything is asked for that a call graph cannot do. */
bool filters_need_profile(const struct filters *filters);

#endif
