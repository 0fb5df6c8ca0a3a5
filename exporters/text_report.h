/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the text report share. */
#ifndef SAMPLED_EXPORTERS_TEXT_REPORT_H
#define SAMPLED_EXPORTERS_TEXT_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "exporters/facts.h"
#include "exporters/ranking.h"
#include "exporters/writer.h"

struct report {
	const struct profile *profile;
	struct writer *to;
	struct facts facts;
	struct buf line;
	unsigned columns;
	bool is_narrow; /* shares alone are shown, and of them those that matter most */
	enum value_index by; /* what shares are of: the profile's weight, or samples where that is nothing */
	uint64_t whole;      /* sum of it */
	bool is_time;        /* it is nanoseconds, shown as seconds */
	struct ranking ranking;
	bool color;
	int err;
};

/* A line of words that says what a part is, and what holds for it; broken where it must be. */
void report_heading(struct report *r, const char *title, const char *note);
void report_note(struct report *r, const char *words);
/* Writes out the line that was built, and begins the next. */
void report_end_line(struct report *r);
/* Columns that are left in the line, which up to here is plain ASCII. */
unsigned report_columns_left(const struct report *r);
void report_add_amount(struct report *r, uint64_t value);
void report_add_share(struct report *r, uint64_t part, uint64_t whole);
/* What a share is of: of what the kernel counted, the time that was not sampled, too, of which each has the same part; but where one lost more, at least all
 * that the kernel counted of it. */
uint64_t report_whole_of(const struct report *r, enum value_index value, const uint64_t values[VALUE_COUNT]);
void report_add_thread_name(struct report *r, const struct thread_tree *tree);
/* An imported profile may have some of the states, or others in their places. */
bool report_has_share(const struct report *r, enum value_index value);

/* text_functions.c: the table of functions, and the heaviest path. */
void report_functions(struct report *r);
void report_path(struct report *r);

#endif
