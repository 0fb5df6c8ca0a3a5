/* SPDX-License-Identifier: Apache-2.0 */
/* One stack of both kinds: Python's frames, each where the interpreter's loop runs it among the native ones.
 *
 * The loop (_PyEval_EvalFrameDefault) is entered by C once for each Python frame to 3.10, and since 3.11 once for all frames that call one another
 * within it; Python's own frames say where C called them (struct pyframe, entry). So the native stack must hold as many runs of the loop as
 * Python's stack has entries. Where it does not, nothing is put together. */
#ifndef SAMPLED_SAMPLER_MERGE_H
#define SAMPLED_SAMPLER_MERGE_H

#include "sampler/frames.h"
#include "sampler/sampler.h"
#include "sampler/unwind.h"

enum merged {
	MERGED_WHOLE,
	MERGED_CUT,        /* the native frames are known from the innermost one up to some place only */
	MERGED_MISMATCHED, /* the counts differ */
	MERGED_FAILED,     /* there are no native frames to be had */
};

/* What stands between the outer Python frames and the native ones where these are cut off: its `code`. No code object lies there. */
#define MERGE_CUT_CODE 1u

/* Of a thread that entered one interpreter from another: leaves the frames within, up to the C function that entered it. `entry`: an address on the C stack, in
 * the frame of the loop's outermost run there. */
void merge_leave_outer(struct unwound *native, raddr_t entry);

/* Puts both into *to, outermost first. `entries`: how many Python's stack has; `native`: NULL where it is not
 * to be had, and its modules have their ids. For MERGED_MISMATCHED and MERGED_FAILED, and without memory for it, it
 * is Python's alone. -ENOMEM: not even that. */
int merge_native(struct pystack *to, const struct pystack *python, uint32_t entries, const struct unwound *native,
                 enum native_frames show, enum merged *ret_merged);

#endif
