/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/plan.h"

#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"

#define PLAN_BYTES_MAX (64u << 20)
#define SEGMENTS_MAX 1024u /* UIO_MAXIOV: what one call takes */

void plan_release(struct plan *p)
{
	free(p->pieces);
	free(p->memory);
	free(p->local);
	free(p->from);
	*p = (struct plan){0};
}

static bool grow_pieces(struct plan *p)
{
	uint32_t room = p->room ? 2 * p->room : 64;
	struct piece *pieces = realloc(p->pieces, room * sizeof(*pieces));
	struct iovec *local, *from;

	if (pieces)
		p->pieces = pieces;
	local = realloc(p->local, room * sizeof(*local));
	if (local)
		p->local = local;
	from = realloc(p->from, room * sizeof(*from));
	if (from)
		p->from = from;
	if (!pieces || !local || !from)
		return false;
	p->room = room;
	return true;
}

static bool grow_memory(struct plan *p, uint32_t bytes)
{
	uint32_t room = p->room_bytes ? p->room_bytes : 16384;
	uint8_t *memory;

	while (room - p->used_bytes < bytes)
		room *= 2;
	if (room > PLAN_BYTES_MAX)
		return false;
	memory = realloc(p->memory, room);
	if (!memory)
		return false;
	p->memory = memory;
	p->room_bytes = room;
	return true;
}

uint32_t plan_add(struct plan *p, raddr_t from, uint32_t bytes)
{
	uint32_t rounded = (bytes + 15) & ~15u;

	if (bytes > PLAN_BYTES_MAX / 2)
		return PLAN_FULL;
	if (p->count == p->room && !grow_pieces(p))
		return PLAN_FULL;
	if (p->room_bytes - p->used_bytes < rounded && !grow_memory(p, rounded))
		return PLAN_FULL;
	p->pieces[p->count] = (struct piece){.from = from, .bytes = bytes, .at = p->used_bytes};
	p->used_bytes += rounded;
	return p->count++;
}

int plan_read(struct plan *p, const struct remote *r)
{
	uint64_t started_ns = clock_now_ns();
	uint32_t i = 0;
	int err = 0;

	for (uint32_t k = 0; k < p->count; k++) {
		const struct piece *piece = &p->pieces[k];

		p->local[k] = (struct iovec){.iov_base = p->memory + piece->at, .iov_len = piece->bytes};
		p->from[k] = (struct iovec){.iov_base = (void *)(uintptr_t)piece->from, .iov_len = piece->bytes};
		p->read_bytes += piece->bytes;
	}
	while (i < p->count) {
		uint32_t n = p->count - i < SEGMENTS_MAX ? p->count - i : SEGMENTS_MAX;
		int whole = remote_readv(r, &p->local[i], &p->from[i], n);

		p->reads++;
		if (whole == -ESRCH || whole == -EPERM) {
			err = whole;
			break;
		}
		if (whole < 0)
			whole = 0; /* the first piece is bad */
		for (int k = 0; k < whole; k++)
			p->pieces[i + (uint32_t)k].ok = true;
		i += (uint32_t)whole;
		if ((uint32_t)whole < n)
			i++; /* go on behind the bad one */
	}
	p->read_segments += p->count;
	p->read_ns += clock_now_ns() - started_ns;
	return err;
}
