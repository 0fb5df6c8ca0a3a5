/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling facts and losses of a profile, worked out and worded once, so that every format and the closing summary
 * say the same. */
#ifndef SAMPLED_EXPORTERS_FACTS_H
#define SAMPLED_EXPORTERS_FACTS_H

#include <stddef.h>
#include <stdint.h>

#include "aggregator/profile.h"

enum fact_weight {
	FACT_PLAIN, /* for the reader's information */
	FACT_GOOD,  /* a loss that did not happen */
	FACT_LOSS   /* something was lost: worth a look */
};

struct fact {
	const char *key; /* "samples", "lost_torn": for programs; static */
	const char *
		label; /* "samples", "lost, torn": for people; static, or of the profile's notes, and then hostile text */
	double number; /* in the unit the key names; counts are exact up to 2^53 */
	char text[96]; /* the number in words: "12,345", "998.7 Hz", "1.25 s (0.4 % of thread time)" */
	enum fact_weight weight;
};

struct facts {
	struct rec_facts sum; /* of all processes */
	uint64_t in_profile;  /* samples in the trees: sum.samples less filtered, omitted and out of memory */
	uint64_t lost;        /* of all causes; sum.attempts = sum.samples + lost */
	uint64_t duration_ns; /* of the window */
	double covered;       /* the part, up to 1, of the thread time that was due for which samples stand: the kernel counts in all of it */
	double asked_hz;      /* 0: unthrottled, or unknown */
	double reached_hz;    /* ticks a second of a process, on average */
	struct fact items[96];
	size_t count;
};

/* Within how many nanoseconds `percent` of the stops ended, from their bins: in the middle, by ratio, of the bin where that one is, and never above the
 * longest. 0: their lengths are not known. */
uint64_t facts_stop_ns(const struct rec_facts *facts, double percent);

void facts_make(struct facts *ret_facts, const struct profile *profile);

/* "1,234,567" */
void facts_count_text(char *to, size_t room, uint64_t count);
/* "1.25 s", "3.10 ms", "2 m 05 s" */
void facts_time_text(char *to, size_t room, uint64_t ns);
/* "998.7 Hz", "10 kHz" */
void facts_rate_text(char *to, size_t room, double hz);
/* 100 × part / whole; 0 of nothing is 0. */
double facts_percent(uint64_t part, uint64_t whole);
/* The same in words: "12.3 %", "0.45 %", "<0.01 %" of what is not 0. */
void facts_percent_text(char *to, size_t room, uint64_t part, uint64_t whole);
/* "3.11.2"; "?" for 0. */
void facts_version_text(char *to, size_t room, uint32_t version);

#endif
