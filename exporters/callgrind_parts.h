/* SPDX-License-Identifier: Apache-2.0 */
/* Pieces of Callgrind's profile format for its reader: numbered names, positions, events and their costs. All of it may be hostile. */
#ifndef SAMPLED_EXPORTERS_CALLGRIND_PARTS_H
#define SAMPLED_EXPORTERS_CALLGRIND_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/fault.h"
#include "exporters/intern.h"
#include "exporters/span.h"

/* What names a thing of the lines that follow: NAME, "(NUMBER) NAME", which gives it a number, or "(NUMBER)". */
enum callgrind_key {
	CALLGRIND_OB,
	CALLGRIND_FL,
	CALLGRIND_FI, /* fe= as well: the file goes on in another, or in its own again */
	CALLGRIND_FN,
	CALLGRIND_COB,
	CALLGRIND_CFI, /* cfl= as well */
	CALLGRIND_CFN,
	CALLGRIND_JFI,
	CALLGRIND_JFN,
	CALLGRIND_KEYS
};

struct callgrind_names { /* all zero: empty */
	struct text_set texts;
	struct pair_set numbers; /* (kind, number) → index of numbered */
	struct buf numbered;     /* uint32_t, texts */
	int err;                 /* sticky: -ENOMEM */
};

void callgrind_names_release(struct callgrind_names *names);
/* The number in texts of what stands behind a key. INTERN_FAILED: it has no name, or no memory (names->err). */
uint32_t callgrind_take_name(struct callgrind_names *names, enum callgrind_key key, struct span text);
/* Good until the next name is taken; INTERN_FAILED is the empty text. */
struct span callgrind_name(const struct callgrind_names *names, uint32_t name);

/* A decimal number or 0xHEX, and nothing else. */
bool callgrind_number(struct span text, uint64_t *ret_number);

/* Positions are numbers, or say how far they are from the last ones: +N, -N, *. */
struct callgrind_positions {
	unsigned count, line_at; /* how many a line has, which of them is the line; line_at = count: none */
	uint64_t last[3];
	uint32_t line; /* 0: unknown */
};

/* The head's "positions: instr line". */
void callgrind_choose_positions(struct callgrind_positions *positions, struct span text);
/* Takes them off the text. False: they are none. */
bool callgrind_take_position(struct callgrind_positions *positions, struct span *text);

struct callgrind_events {
	unsigned count;            /* 0: not known yet */
	unsigned weight;           /* which of them is read */
	unsigned samples, cpu;     /* which is named so in files of ours; count: none is */
	double scale;              /* of a unit of its, in `unit` */
	char unit[72], other[200]; /* "seconds", or the event's name; the other events' names */
};

struct callgrind_cost {
	uint64_t weight, samples, cpu_ns;
};

/* The head's "events: …". value: the one that is asked for; NULL: the first that is a time, or else the first that does not count samples. 0 or
 * -errno with *fault filled: -EINVAL there is none of that name. */
int callgrind_choose_events(struct callgrind_events *ret_events, struct span text, const char *value,
                            struct fault *fault);
/* Costs that are not there are 0. False: something else is. */
bool callgrind_take_cost(const struct callgrind_events *events, struct span text, struct callgrind_cost *ret_cost);

#endif
