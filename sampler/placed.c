/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/placed.h"

#include "sampler/bytecode.h"

#define SOUGHT_TICKS 16 /* a search for a specialised call takes two microseconds */

/* Whether code that stood in the call at `from` can have come to `to` without another call. */
static bool no_call_between(const struct code *code, int64_t from, int64_t to)
{
	for (int64_t at = from + 2; at < to; at += 2)
		if (code_calls(code, at) && !code_calls_seldom(code, at))
			return false;
	return from <= to;
}

/* Where one call of a function is specialised for the callee, it is called there. Believed like what was seen: found so again and again, and
 * nowhere else. */
static bool find_specialised(struct walker *w, const struct code *code, const struct code *callee,
                             int64_t *ret_place)
{
	uint32_t calls;

	if (callee->version == 0 || w->tick - w->resumed->sought_tick < SOUGHT_TICKS)
		return false;
	w->resumed->sought_tick = w->tick;
	calls = bytecode_find_calls(w->abi, w->remote, code, callee->version, ret_place);
	if (calls != 1)
		return false;
	resumed_note(w->resumed, code->content, callee->content, *ret_place);
	return resumed_find(w->resumed, code->content, callee->content, ret_place);
}

bool placed_by_callee(struct walker *w, const struct code *code, const struct code *callee, int64_t *offset)
{
	int64_t place;

	if (!(resumed_find(w->resumed, code->content, callee->content, &place) ||
	      find_specialised(w, code, callee, &place)) ||
	    !no_call_between(code, place, *offset))
		return false;
	*offset = place;
	return true;
}

bool placed_by_awaited(const struct walker *w, const struct links *links, raddr_t frame, const struct code *code,
                       int64_t *offset)
{
	const struct link *callee = links_to(links, false, frame), *own = links_find(links, frame);
	const struct code *awaited;

	if (!code->resuming || !callee || callee->yielded ||
	    (own && code_resumes(code, *offset) && link_awaits(w->abi, own, callee->frame)))
		return false;
	awaited = codes_find(w->codes, frame_code(w->abi, callee->bytes));
	return awaited && resumed_find(w->resumed, code->content, awaited->content, offset);
}
