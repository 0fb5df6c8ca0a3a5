/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/apart.h"

#include <errno.h>
#include <string.h>

#include "base/hash.h"
#include "base/ways.h"

/* A frame that one tick in nine meets is worth copying: one that is not is read a microsecond later, and is often gone by then. */
#define CREDIT_HIT  8u
#define CREDIT_MISS 1u
#define CREDIT_PLAN 16u
#define CREDIT_MAX  128u
#define PLANNED_MAX 16u /* each costs some 0.25 µs */
#define DOUBT_OF    8   /* of so many ticks, one looks for what proves calls: it costs a microsecond more */
#define STEADY      8   /* readings */
#define WAYS        4u  /* of the tables of links (base/ways.h) */
#define NONE_TICKS  16  /* so long what was no frame is not looked at again; a coroutine may begin there soon */

bool apart_in_doubt(const struct apart *apart, uint64_t tick)
{
	return apart->doubts > 0 && tick % DOUBT_OF == 0;
}

bool apart_plan(const struct apart *apart, struct plan *plan, uint64_t tick, struct apart_copy *ret_copy)
{
	uint8_t chosen[APART_FRAMES] = {0}; /* of apart->frames */
	uint32_t planned = 0, count = 0;

	*ret_copy = (struct apart_copy){.frames = plan->count};
	if (!apart)
		return true;
	for (uint32_t i = 0; i < apart->count; i++) {
		const struct apart_frame *frame = &apart->frames[i];

		if (frame->used_tick != tick && (frame->credit < CREDIT_PLAN || planned++ >= PLANNED_MAX))
			continue;
		chosen[count++] = (uint8_t)i;
	}
	for (uint32_t i = 0; i < count; i++) {
		const struct apart_frame *frame = &apart->frames[chosen[i]];

		if (plan_add(plan, frame->frame, frame->bytes) == PLAN_FULL)
			return false;
	}
	ret_copy->frame_count = count;
	return true;
}

const uint8_t *apart_find(const struct apart_copy *copy, const struct plan *plan, raddr_t addr, uint32_t *ret_bytes)
{
	const struct piece *pieces = plan->pieces;
	uint32_t low = copy->frames, high = copy->frames + copy->frame_count, found = UINT32_MAX;

	for (uint32_t i = copy->fetched; found == UINT32_MAX && i < copy->fetched + copy->fetched_count; i++)
		if (pieces[i].from == addr)
			found = i;
	while (low < high && found == UINT32_MAX) {
		uint32_t middle = (low + high) / 2;

		if (pieces[middle].from == addr)
			found = middle;
		else if (pieces[middle].from < addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (found == UINT32_MAX || !pieces[found].ok)
		return NULL;
	*ret_bytes = pieces[found].bytes;
	return plan->memory + pieces[found].at;
}

int apart_fetch(struct apart_copy *copy, struct plan *plan, const struct remote *remote, const struct iovec *frames,
                uint32_t count, enum plan_put put)
{
	uint32_t first;
	int read;

	if (count == 0 || count > APART_FETCHES - copy->fetched_count)
		return -ENOSPC;
	first = plan_put(plan, remote, frames, count, put, &read);
	if (first == PLAN_FULL)
		return -ENOMEM;
	if (copy->fetched_count == 0)
		copy->fetched = first;
	copy->fetched_count += count;
	return read < 0 ? read : 0;
}

static uint32_t place_of(const struct apart *apart, raddr_t frame)
{
	uint32_t low = 0, high = apart->count;

	while (low < high) {
		uint32_t middle = (low + high) / 2;

		if (apart->frames[middle].frame < frame)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void remove_poorest(struct apart *apart)
{
	uint32_t poorest = 0;

	for (uint32_t i = 1; i < apart->count; i++)
		if (apart->frames[i].credit < apart->frames[poorest].credit)
			poorest = i;
	apart->count--;
	memmove(&apart->frames[poorest], &apart->frames[poorest + 1],
	        (apart->count - poorest) * sizeof(*apart->frames));
}

void apart_note(struct apart *apart, raddr_t frame, uint32_t bytes, uint64_t tick)
{
	uint32_t at = place_of(apart, frame);
	struct apart_frame *f;

	if (at == apart->count || apart->frames[at].frame != frame) {
		if (apart->count == APART_FRAMES) {
			remove_poorest(apart);
			at = place_of(apart, frame);
		}
		memmove(&apart->frames[at + 1], &apart->frames[at], (apart->count - at) * sizeof(*apart->frames));
		apart->count++;
		apart->frames[at] = (struct apart_frame){.frame = frame};
	}
	f = &apart->frames[at];
	f->bytes = bytes;
	if (f->used_tick == tick)
		return;
	f->used_tick = tick;
	f->credit = f->credit + CREDIT_HIT < CREDIT_MAX ? f->credit + CREDIT_HIT : CREDIT_MAX;
}

void apart_age(struct apart *apart, uint64_t tick)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < apart->count; i++) {
		struct apart_frame *frame = &apart->frames[i];

		if (frame->used_tick != tick) {
			if (frame->credit <= CREDIT_MISS)
				continue;
			frame->credit -= CREDIT_MISS;
		}
		if (kept != i)
			apart->frames[kept] = *frame;
		kept++;
	}
	apart->count = kept;
}

void apart_note_link(struct apart *apart, struct apart_link link)
{
	struct apart_link *set = &apart->links[ways_set(hash_u64(link.frame), APART_LINKS, WAYS)];
	uint32_t way = 0;

	while (way < WAYS - 1 && set[way].frame != link.frame)
		way++;
	if (set[way].frame == link.frame && set[way].previous == link.previous && set[way].shim == link.shim) {
		link.steady = set[way].steady;
		if (link.steady < STEADY)
			link.steady++;
	}
	ways_make_first(set, sizeof(*set), way);
	set[0] = link;
}

struct apart_link apart_link(const struct apart *apart, raddr_t frame)
{
	const struct apart_link *set = &apart->links[ways_set(hash_u64(frame), APART_LINKS, WAYS)];

	for (uint32_t way = 0; way < WAYS; way++)
		if (set[way].frame == frame)
			return set[way];
	return (struct apart_link){0};
}

bool apart_is_steady(const struct apart *apart, raddr_t shim, raddr_t caller)
{
	struct apart_link link = apart ? apart_link(apart, shim) : (struct apart_link){0};

	return link.shim && link.previous == caller && link.steady == STEADY;
}

void apart_note_none(struct apart *apart, raddr_t addr, uint64_t tick)
{
	apart->none[hash_u64(addr) % APART_NO_FRAME] = (struct apart_none){.addr = addr, .tick = tick};
}

void apart_forget_none(struct apart *apart, raddr_t addr)
{
	struct apart_none *none = &apart->none[hash_u64(addr) % APART_NO_FRAME];

	if (none->addr == addr)
		*none = (struct apart_none){0};
}

bool apart_is_none(const struct apart *apart, raddr_t addr, uint64_t tick)
{
	const struct apart_none *none = &apart->none[hash_u64(addr) % APART_NO_FRAME];

	return none->addr == addr && tick - none->tick < NONE_TICKS;
}
