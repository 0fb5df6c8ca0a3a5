/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/merge.h"

#include <errno.h>

#include "sampler/thread.h"

#define CHANGING_FRAMES 3u /* that the loop calls, one from the other, while a frame is made or left */

/* Whether a run of the loop ends, inward, at this frame: a handler is one with the frame of the loop that called it. */
static bool is_run(const struct unwound *native, uint32_t i)
{
	if (!native->frames[i].eval && !native->frames[i].eval_inner)
		return false;
	return i == 0 || !(native->frames[i].eval && native->frames[i - 1].eval_inner);
}

static uint32_t count_runs(const struct unwound *native, uint32_t depth)
{
	uint32_t runs = 0;

	for (uint32_t i = 0; i < depth; i++)
		runs += is_run(native, i);
	return runs;
}

/* Whether the innermost run of the loop may be being entered or left: then its Python frame is not there yet, or no more, while it calls a function or two of
 * the interpreter's own (_Py_CheckFunctionResult and the like). 0: no; else how many native frames there are up to that run. */
static uint32_t may_change(const struct unwound *native)
{
	uint32_t within = 0;

	while (within < native->depth && within <= CHANGING_FRAMES &&
	       native->frames[within].module->flags & MAPPING_INTERPRETER && !native->frames[within].eval &&
	       !native->frames[within].eval_inner)
		within++;
	if (within == native->depth || within > CHANGING_FRAMES ||
	    !(native->frames[within].eval || native->frames[within].eval_inner))
		return 0;
	return within + 1;
}

static bool is_shown(const struct unwind_frame *frame, enum native_frames show, uint32_t runs_within)
{
	switch (show) {
	case NATIVE_LEAF:
		return runs_within == 0;
	case NATIVE_EXTENSIONS:
		return !(frame->module->flags & (MAPPING_INTERPRETER | MAPPING_SYSTEM));
	default:
		return true;
	}
}

static int push_native(struct pystack *to, const struct unwind_frame *frame)
{
	struct pyframe native = {.mapping = frame->module->id,
	                         .offset = (int64_t)modules_where(frame->module, frame->pc)};

	return native.mapping && stack_push(to, native) ? 0 : -ENOMEM;
}

/* Python's frames of the entries from `outer` to `inner`, both counted from the innermost. *at: how many of its frames are done. */
static int push_python(struct pystack *to, const struct pystack *python, uint32_t *at, uint32_t inner)
{
	while (*at < python->depth && python->frames[*at].entry >= inner)
		if (!stack_push(to, python->frames[(*at)++]))
			return -ENOMEM;
	return 0;
}

/* From the outermost native frame inward, the innermost `depth` of them. `within`: runs of the loop that are still to come, of which the innermost
 * `idle` run no Python frame. */
static int interleave(struct pystack *to, const struct pystack *python, const struct unwound *native, uint32_t depth,
                      uint32_t within, uint32_t idle, enum native_frames show)
{
	uint32_t at = 0;
	int err = 0;

	if (native->end != UNWIND_ROOT) {
		err = push_python(to, python, &at, within - idle);
		if (!err && !stack_push(to, (struct pyframe){.code = MERGE_CUT_CODE}))
			err = -ENOMEM;
	}
	for (uint32_t i = depth; !err && i-- > 0;) {
		const struct unwind_frame *frame = &native->frames[i];

		if (frame->eval || frame->eval_inner) {
			if (!is_run(native, i))
				continue;
			within--;
			if (within >= idle)
				err = push_python(to, python, &at, within - idle);
		} else if (is_shown(frame, show, within)) {
			err = push_native(to, frame);
		}
	}
	return err;
}

void merge_leave_outer(struct unwound *native, raddr_t entry)
{
	uint32_t depth = 0;

	while (depth < native->depth && native->frames[depth].sp <= entry)
		depth++;
	while (depth < native->depth && !native->frames[depth].eval && !native->frames[depth].eval_inner)
		depth++;
	if (depth == native->depth)
		return;
	native->depth = depth;
	native->end = UNWIND_ROOT;
}

int merge_native(struct pystack *to, const struct pystack *python, uint32_t entries, const struct unwound *native,
                 enum native_frames show, enum merged *ret_merged)
{
	uint32_t depth = native ? native->depth : 0, runs, change, idle = 0;
	bool whole;

	to->depth = 0;
	*ret_merged = MERGED_FAILED;
	if (depth == 0 || native->end == UNWIND_BAD)
		return stack_copy(to, python, python->depth) ? 0 : -ENOMEM;
	whole = native->end == UNWIND_ROOT;
	change = may_change(native);
	/* Of a stack that is cut the count does not tell: what is known for sure are the frames within the innermost run. */
	if (change && !whole)
		depth = change;
	runs = count_runs(native, depth);
	if (change && runs == entries + 1)
		idle = 1;
	*ret_merged = whole ? MERGED_WHOLE : MERGED_CUT;
	if (runs - idle > entries || (whole && runs - idle != entries))
		*ret_merged = MERGED_MISMATCHED;
	else if (interleave(to, python, native, depth, runs, idle, show) == 0)
		return 0;
	else
		*ret_merged = MERGED_FAILED;
	return stack_copy(to, python, python->depth) ? 0 : -ENOMEM;
}
