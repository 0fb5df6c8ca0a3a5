/* SPDX-License-Identifier: Apache-2.0 */
/* Values that several commands' options have, as readers for their tables (struct option_row, read): each takes what it reads into, and
 * returns 0 or -EINVAL with *fault filled. */
#ifndef SAMPLED_DAEMON_OPTION_VALUES_H
#define SAMPLED_DAEMON_OPTION_VALUES_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include "aggregator/aggregator.h"
#include "base/fault.h"

enum { THREAD_LIST_MAX = 64 };

/* An extended regular expression; all zero: none was given. */
struct pattern {
	bool is_set;
	regex_t regex; /* compiled where it is set */
};

/* Each --thread; texts point into argv. */
struct thread_list {
	struct thread_filter items[THREAD_LIST_MAX];
	size_t count; /* 0: all threads */
};

/* Into a struct pattern; the last one given holds. */
int option_read_pattern(void *pattern, const char *option, const char *text, struct fault *fault);
/* NULL: none was given. */
const regex_t *pattern_regex(const struct pattern *pattern);
void pattern_release(struct pattern *pattern);

/* One more, into a struct thread_list: a name or a number. */
int option_read_thread(void *list, const char *option, const char *text, struct fault *fault);
/* Into a double: 0 to 100. */
int option_read_percent(void *percent, const char *option, const char *text, struct fault *fault);
/* Into an enum sample_mode. */
int option_read_mode(void *mode, const char *option, const char *text, struct fault *fault);
/* Into an enum native_frames; text NULL: NATIVE_CALLS. */
int option_read_native(void *native, const char *option, const char *text, struct fault *fault);
/* Into an enum push_type. */
int option_read_push_type(void *type, const char *option, const char *text, struct fault *fault);
/* Into an enum collapsed_style. */
int option_read_style(void *style, const char *option, const char *text, struct fault *fault);

#endif
