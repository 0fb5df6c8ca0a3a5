/* SPDX-License-Identifier: Apache-2.0 */
/* Two profiles compared function by function, and joined into one tree for a differential flame graph.
 *
 * A function is its name and file: its first line moves when something above it is edited. Where a file was renamed or lies elsewhere, functions of
 * one name are matched, see difference_moved.c. What is compared are shares of each side's whole, so
 * that profiles of different length and rate can be, and these are of CPU time where both know it: a thread that sleeps longer would make all others shrink. Two are held to differ where chance alone would seldom part them so far, see
 * struct change. */
#ifndef SAMPLED_EXPORTERS_DIFFERENCE_H
#define SAMPLED_EXPORTERS_DIFFERENCE_H

#include <stdbool.h>
#include <stdint.h>

#include "aggregator/profile.h"
#include "exporters/callgraph.h"
#include "exporters/facts.h"
#include "exporters/intern.h"
#include "exporters/ranking.h"

enum side { BEFORE, AFTER };
enum { SIDES = 2 };

/* Of a function, or of all, on one side. */
struct side_sums {
	double self, total; /* in difference.unit */
	/* Where amounts are a part of the sampled time only, as many samples as have so much of it: never more than had any. */
	uint64_t self_samples, total_samples;
};

/* Of a share, from before to after.
 *
 * Samples that hit a function or not are counts of a binomial distribution: z is that of the two-proportion test with the pooled share, and
 * the interval is that of Agresti and Caffo (one hit and one miss added on each side), which holds with few samples too. The test needs some:
 * where fewer than five hits are to be expected on a side, nothing is certain. Both take samples for
 * independent. Samples at neighbouring ticks are not quite: a call that lasts a hundred ticks is a hundred like samples. So the noise is rather
 * wider than said here, the more the longer single calls are; a second pair of profiles is the better proof. */
struct change {
	double points;   /* of percent: +1.5 is from 10 % to 11.5 % */
	double within;   /* half the width of the 95 % interval around it, in points; 0: not known */
	bool is_certain; /* beyond the noise: |z| is at least 1.96; always, where both sides were counted exactly */
};

struct difference_row {
	uint32_t name, file;  /* numbers in texts */
	uint32_t file_before; /* another one, where the file was renamed or lies elsewhere after */
	uint32_t line;        /* of its definition, after; before, where it is gone; 0: unknown */
	bool in[SIDES];       /* which profiles name it */
	struct side_sums sides[SIDES];
	struct change self, total;
};

enum difference_key { DIFFERENCE_SELF, DIFFERENCE_TOTAL, DIFFERENCE_NAME };
enum difference_kind { KIND_SAME, KIND_NEW, KIND_GREW, KIND_SHRANK, KIND_GONE };

struct difference {
	struct text_set texts;
	struct pair_set functions;   /* (name, file) → index of row, until difference_finish() */
	struct difference_row *rows; /* owned */
	uint32_t row_count, row_room;
	struct side_sums wholes[SIDES]; /* self and total are the same here */
	uint64_t samples[SIDES];        /* all that were taken */
	struct ranking ranking;         /* what amounts are of; the caller's to choose before any is added */
	bool waiting;                   /* … or, in shares of all time, what that leaves out: idle, and awaiting the GIL; so too */
	double duration_s[SIDES];       /* 0: not known */
	bool has_samples;               /* both sides count samples: there are intervals */
	bool is_time;                   /* amounts are seconds */
	const char *unit;               /* of amounts; the caller's, or static */
	int err;                        /* sticky: -ENOMEM */
};

void difference_init(struct difference *d);
void difference_release(struct difference *d);

/* What two profiles can be compared by: CPU time where both have it, else time that is not idle, where both tell this, else their weight, where both have
 * one of the same unit, else the samples. by_weight: by the weight in any case. */
struct ranking difference_ranking(const struct profile *before, const struct profile *after, bool by_weight);

/* Adds what is on one side; once for each, both by difference.ranking. 0 or -ENOMEM. */
int difference_add_profile(struct difference *d, enum side side, const struct profile *profile);
int difference_add_callgraph(struct difference *d, enum side side, const struct callgraph *graph);
/* Matches functions that moved, and works out the changes. 0 or -ENOMEM. */
int difference_finish(struct difference *d);
/* The largest change first, up or down; by name: in the order of names. */
void difference_sort(struct difference *d, enum difference_key key);

const struct change *difference_change(const struct difference_row *row, enum difference_key key);
enum difference_kind difference_kind(const struct difference_row *row, enum difference_key key);
const char *difference_kind_text(enum difference_kind kind);
const char *difference_name(const struct difference *d, const struct difference_row *row);
const char *difference_file(const struct difference *d, const struct difference_row *row);
static inline bool difference_is_moved(const struct difference_row *row)
{
	return row->file != row->file_before;
}
/* Makes one row of the two of a function whose file is another one after; for difference_finish(). 0 or -ENOMEM. */
int difference_match_moved(struct difference *d);
/* "CPU time": what shares are of, in words. */
const char *difference_shares_of(const struct difference *d);
/* 100 × part of the side's whole. */
double difference_percent(const struct difference *d, enum side side, double part);
/* Of hits out of all samples, on both sides. */
struct change difference_test(const uint64_t hits[SIDES], const uint64_t all[SIDES]);

/* What a writer that draws two profiles is told beside the joined one. */
struct comparison {
	const char *titles[SIDES];
	const struct facts *facts[SIDES];
	const struct difference *difference;
	uint8_t samples[SIDES], weight[SIDES]; /* places in the joined profile's values */
};

/* One tree a thread's name, by function, that holds the values of both (comparison->samples, weight), by comparison->difference->ranking. 0 or -errno. */
int difference_join(struct profile **ret_profile, struct comparison *comparison, const struct profile *before,
                    const struct profile *after);

#endif
