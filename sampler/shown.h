/* SPDX-License-Identifier: Apache-2.0 */
/* Which frames a stack is shown as: its own, named by symbols, and special ones among them.
 *
 *     <truncated>     for those that are missing on the root side
 *     <native>        before a frame that C called (NATIVE_MARKS)
 *     <LOAD_ATTR>     behind the innermost Python frame: its instruction (opcodes)
 *     <GC>            behind the frame that started the collector, before what that called; innermost where the version does not tell
 */
#ifndef SAMPLED_SAMPLER_SHOWN_H
#define SAMPLED_SAMPLER_SHOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "sampler/target.h"

#define SHOWN_EACH 4u /* frames that one of a stack's is shown as, at most */

struct shown {
	struct target *target;
	const struct pystack *stack;
	uint32_t leaf;      /* index of the innermost Python frame; SHOWN_NONE */
	uint32_t collector; /* of the frame behind which <GC> stands; SHOWN_NONE */
	bool tail;          /* <GC> stands behind all of them */
	bool plain;         /* each frame is one, but for the tail */
};

#define SHOWN_NONE UINT32_MAX

/* Cuts a stack that is too deep to be shown whole: the root side goes, and a special frame stands for it. STACK_TRUNCATED, or 0. */
uint16_t shown_cut(const struct target *target, struct pystack *stack);
/* How a stack with samples of this status is shown; the stack must stay as it is. */
struct shown shown_as(struct target *target, const struct pystack *stack, uint16_t status);
/* How many frames its `count` outermost ones are shown as, the tail not among them. */
uint32_t shown_count(const struct shown *shown, uint32_t count);
/* All of them. */
uint32_t shown_depth(const struct shown *shown);
/* What its frame `i` is shown as: into to[SHOWN_EACH]. How many. */
uint32_t shown_frames(const struct shown *shown, uint32_t i, uint64_t now_ns, struct frame *to);
/* The tail: 0 or 1 frames. */
uint32_t shown_tail(const struct shown *shown, struct frame *to);
/* So many of the outermost frames are shown as those of the stack `before` were; the first `same` are known to be the same. */
uint32_t shown_same(const struct shown *shown, const struct pystack *before, uint32_t same);
/* Whether a frame is there that started the collector. */
bool shown_any_collects(const struct pystack *stack);

#endif
