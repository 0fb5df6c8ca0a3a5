/* SPDX-License-Identifier: Apache-2.0 */
/* One line of collapsed (folded) stacks, of any origin, taken apart. Told apart by how it begins:
 *
 *   process PID "NAME";interpreter N;thread TID "NAME";FUNCTION (FILE:LINE);…   ours; py-spy's: process PID:"NAME", thread (TID): NAME
 *   tid:TID;FILE:FUNCTION:LINE;…                                                Tachyon's
 *   P<pid>;T<interpreter>:<tid>;FILE:FUNCTION:LINE;… METRIC                     Austin's
 *   COMM-PID/TID;FRAME;…  and  FRAME;FRAME;…                                    stackcollapse-perf.pl's, and everybody's */
#ifndef SAMPLED_EXPORTERS_FOLDED_H
#define SAMPLED_EXPORTERS_FOLDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporters/span.h"

enum folded_style { FOLDED_PLAIN, FOLDED_TACHYON, FOLDED_AUSTIN };

/* Who a line's elements above the frames name. */
struct folded_who {
	uint64_t pid, tid;
	uint64_t interpreter;
	struct span process, thread; /* names; at NULL: none */
	bool has_thread;             /* the line says of which thread it is */
};

struct folded_count {
	uint64_t count;
	bool negative; /* below zero: memory that was given back */
	bool rounded;
	bool idle; /* Austin says that the thread was */
};

struct folded_frame {
	struct span name, file; /* file empty: none */
	uint32_t line;
	char special[32]; /* where name was made anew */
};

/* A decimal number that takes the whole text, and reads as we would write it. */
bool folded_number(struct span text, uint64_t max, uint64_t *ret_number);
/* Cuts a line into stack and number. False: it is no stack. */
bool folded_split(struct span line, struct span *ret_stack, struct span *ret_number);
/* The number at the end of a line, at most max: an integer, or one with a fraction, which is rounded (flamegraph.pl takes those); or Austin's
 * time,idle,memory of mode "full". */
bool folded_count(struct span text, uint64_t max, struct folded_count *ret_count);
/* Whether a line's stack itself ends in a number, as where difffolded.pl writes two counts; what we say of threads does not count. */
bool folded_has_two_counts(struct span stack);
/* Whether a line, by the text before its number, is a stack: frames joined by ';', or one frame, which no word with a colon begins ("pid: 12"), and
 * no number ("16 400"). *ret_joined: the former. */
bool folded_is_stack(struct span stack, bool *ret_joined);
/* The element at `at` of a stack of which each, the last too, has a ';' behind it. */
struct span folded_element(struct span stack, size_t at);
/* Reads the elements of such a stack that are no frames. Returns where the frames begin. */
size_t folded_who(struct span stack, struct folded_who *ret_who, enum folded_style *ret_style);
/* Takes a frame apart; *ret_frame and the text must stay. The text that we write of it is the one that was read. */
void folded_frame(struct span text, enum folded_style style, struct folded_frame *ret_frame);

#endif
