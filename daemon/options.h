/* SPDX-License-Identifier: Apache-2.0 */
/* The options of attach and run, as read from the command line. */
#ifndef SAMPLED_DAEMON_OPTIONS_H
#define SAMPLED_DAEMON_OPTIONS_H

#include <getopt.h>
#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregator/aggregator.h"
#include "base/fault.h"
#include "exporters/format.h"

enum { OPTION_LIST_MAX = 64 }; /* how often -f, -o or -t may be given */

enum options_action {
	OPTIONS_GO,      /* do the work */
	OPTIONS_HELP,    /* print the help and leave */
	OPTIONS_VERSION, /* print the version and leave */
};

/* Texts point into argv, or are static. */
struct options {
	enum options_action action;
	uint64_t interval_ns;                 /* 0: unthrottled */
	uint64_t duration_ns;                 /* 0: none */
	const char *formats[OPTION_LIST_MAX]; /* each -f */
	size_t format_count;
	const char *outputs[OPTION_LIST_MAX]; /* each -o */
	size_t output_count;
	const char *record; /* --record; NULL: none */
	enum collapsed_style collapsed_style;
	enum sample_mode mode;
	struct thread_filter threads[OPTION_LIST_MAX]; /* each -t; none: all threads */
	size_t thread_count;
	bool idle, gc, jitter, subprocesses, stats, realtime, svg, quiet, verbose;
	bool has_omit, has_stop;
	regex_t omit, stop; /* compiled where has_ is set */
	char **operands;    /* PIDs, or the command and its arguments; NULL-terminated, in argv */
	int operand_count;
};

/* getopt_long() that tells what is wrong: an option's letter or number, -1 at the end (optind is the first operand's index), or -EINVAL
 * with *fault filled. Set opterr and optind to 0 first. ret_which may be NULL. */
int options_next(int argc, char **argv, const char *letters, const struct option *options, int *ret_which,
                 struct fault *fault);
/* The value of --collapsed-style. */
int options_read_style(enum collapsed_style *ret_style, const char *text, struct fault *fault);

/* Reads argv, of which argv[0] is the command's name ("attach"). With stop_early the first word that is no option
 * ends them (run). 0, or -EINVAL with *fault filled and nothing to release. */
int options_read(struct options *ret_options, int argc, char **argv, bool stop_early, struct fault *fault);
void options_release(struct options *options);

#endif
