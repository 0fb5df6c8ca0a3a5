/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define PLAN_BYTES_MAX    (64u << 20)
#define SEGMENTS_MAX      1024u /* UIO_MAXIOV: what one call takes */
#define GAP_MAX           512u  /* bytes between two pieces that are read along */
#define SEGMENT_BYTES_MAX 65536u

void plan_release(struct plan *p)
{
	free(p->pieces);
	free(p->segments);
	free(p->memory);
	free(p->local);
	free(p->from);
	*p = (struct plan){0};
}

void plan_slim(struct plan *p)
{
	struct plan kept = *p;

	plan_release(p);
	p->usual_ns = kept.usual_ns;
	p->usual_piece_ns = kept.usual_piece_ns;
	p->reads = kept.reads;
	p->read_segments = kept.read_segments;
	p->read_bytes = kept.read_bytes;
	p->read_ns = kept.read_ns;
}

/* *array, of elements of `bytes` bytes, with room for `room` of them. */
static bool grow_array(void **array, uint32_t room, size_t bytes)
{
	void *grown = realloc(*array, room * bytes);

	if (grown)
		*array = grown;
	return grown != NULL;
}

static bool grow_pieces(struct plan *p)
{
	uint32_t room = p->room ? 2 * p->room : 64;

	if (!grow_array((void **)&p->pieces, room, sizeof(*p->pieces)) ||
	    !grow_array((void **)&p->segments, room, sizeof(*p->segments)) ||
	    !grow_array((void **)&p->local, room, sizeof(*p->local)) ||
	    !grow_array((void **)&p->from, room, sizeof(*p->from)))
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
	memory = aligned_alloc(REMOTE_LINE, room);
	if (!memory)
		return false;
	if (p->used_bytes > 0)
		memcpy(memory, p->memory, p->used_bytes);
	free(p->memory);
	p->memory = memory;
	p->room_bytes = room;
	return true;
}

/* Where the copy of what lies there begins, behind what is used (REMOTE_LINE). */
static uint32_t place_of(const struct plan *p, raddr_t from)
{
	return p->used_bytes + (uint32_t)((from - p->used_bytes) % REMOTE_LINE);
}

/* How much longer the last segment gets when it takes in this piece; UINT32_MAX: they do not lie together. */
static uint32_t lengthens(const struct plan *p, raddr_t from, uint32_t bytes)
{
	const struct segment *last;
	uint64_t end;

	if (p->segment_count == p->closed)
		return UINT32_MAX;
	last = &p->segments[p->segment_count - 1];
	if (from < last->from || from - last->from > last->bytes + (uint64_t)GAP_MAX)
		return UINT32_MAX;
	end = from - last->from + bytes;
	if (end > SEGMENT_BYTES_MAX)
		return UINT32_MAX;
	return end > last->bytes ? (uint32_t)end - last->bytes : 0;
}

uint32_t plan_add(struct plan *p, raddr_t from, uint32_t bytes)
{
	uint32_t more = lengthens(p, from, bytes), need = more != UINT32_MAX ? more : bytes + PLAN_PADDING;
	struct segment *segment;

	if (bytes > PLAN_BYTES_MAX / 2)
		return PLAN_FULL;
	if (p->count == p->room && !grow_pieces(p))
		return PLAN_FULL;
	if (p->room_bytes - p->used_bytes < need && !grow_memory(p, need))
		return PLAN_FULL;
	if (more == UINT32_MAX) {
		p->used_bytes = place_of(p, from);
		p->segments[p->segment_count++] =
			(struct segment){.from = from, .at = p->used_bytes, .first = p->count};
		more = bytes;
	}
	segment = &p->segments[p->segment_count - 1];
	segment->bytes += more;
	p->used_bytes += more;
	p->pieces[p->count] =
		(struct piece){.from = from, .bytes = bytes, .at = segment->at + (uint32_t)(from - segment->from)};
	return p->count++;
}

bool plan_reserve(struct plan *p, uint32_t bytes)
{
	return p->room_bytes - p->used_bytes >= bytes || grow_memory(p, bytes);
}

static uint32_t end_of(const struct plan *p, uint32_t segment)
{
	return segment + 1 < p->segment_count ? p->segments[segment + 1].first : p->count;
}

static void take(struct plan *p, uint32_t segment)
{
	for (uint32_t i = p->segments[segment].first; i < end_of(p, segment); i++)
		p->pieces[i].ok = true;
}

/* A segment that cannot be read as a whole: what can be had of it, piece by piece. */
static int take_pieces(struct plan *p, const struct remote *r, uint32_t segment)
{
	uint32_t first = p->segments[segment].first, end = end_of(p, segment);

	for (uint32_t i = first; end - first > 1 && i < end; i++) {
		struct piece *piece = &p->pieces[i];
		int err = remote_read(r, piece->from, p->memory + piece->at, piece->bytes);

		p->reads++;
		if (err == -ESRCH || err == -EPERM)
			return err;
		piece->ok = err == 0;
	}
	return 0;
}

/* Whether something took much longer than usual. */
static bool take_time(uint64_t *usual_ns, uint64_t ns)
{
	bool slow = ns > *usual_ns + *usual_ns / 2;

	if (slow)
		*usual_ns += *usual_ns / 16 + 1;
	else
		*usual_ns = (15 * *usual_ns + ns) / 16;
	return slow;
}

int plan_read(struct plan *p, const struct remote *r)
{
	return plan_read_from(p, r, clock_now_ns(), &p->usual_ns);
}

int plan_read_from(struct plan *p, const struct remote *r, uint64_t started_ns, uint64_t *usual_ns)
{
	uint64_t ns;
	uint32_t i = 0;
	int err = 0;

	for (uint32_t k = 0; k < p->segment_count; k++) {
		const struct segment *segment = &p->segments[k];

		p->local[k] = (struct iovec){.iov_base = p->memory + segment->at, .iov_len = segment->bytes};
		p->from[k] = (struct iovec){.iov_base = (void *)(uintptr_t)segment->from, .iov_len = segment->bytes};
		p->read_bytes += segment->bytes;
	}
	while (!err && i < p->segment_count) {
		uint32_t n = p->segment_count - i < SEGMENTS_MAX ? p->segment_count - i : SEGMENTS_MAX;
		int whole = remote_readv(r, &p->local[i], &p->from[i], n);

		p->reads++;
		if (whole == -ESRCH || whole == -EPERM) {
			err = whole;
			break;
		}
		if (whole < 0)
			whole = 0; /* the first one is bad */
		for (int k = 0; k < whole; k++)
			take(p, i + (uint32_t)k);
		i += (uint32_t)whole;
		if ((uint32_t)whole < n)
			err = take_pieces(p, r, i++); /* go on behind the bad one */
	}
	p->read_segments += p->segment_count;
	ns = clock_now_ns() - started_ns;
	p->read_ns += ns;
	p->took_ns = ns;
	p->slow = take_time(usual_ns, ns);
	return err;
}

/* Takes a piece into the segment before it. False: they do not lie together. */
static bool join(struct iovec *segment, const struct iovec *piece)
{
	uintptr_t from = (uintptr_t)segment->iov_base, end = from + segment->iov_len;
	uintptr_t piece_from = (uintptr_t)piece->iov_base, piece_end = piece_from + piece->iov_len;

	if (piece_from > end + PLAN_PUT_GAP || from > piece_end + PLAN_PUT_GAP)
		return false;
	if (piece_from < from)
		from = piece_from;
	if (piece_end > end)
		end = piece_end;
	*segment = (struct iovec){.iov_base = (void *)from, .iov_len = end - from};
	return true;
}

uint32_t plan_put(struct plan *p, const struct remote *r, const struct iovec *from, uint32_t count, enum plan_put put, int *ret_read)
{
	uint32_t first = p->count, segments = 0, end, read_to;
	uint64_t started_ns = clock_now_ns(), ns;

	while (p->room - p->count < count)
		if (!grow_pieces(p))
			return PLAN_FULL;
	for (uint32_t i = 0; i < count; i = end) {
		struct iovec *segment = &p->from[segments];
		uint32_t at;

		*segment = from[i];
		for (end = i + 1; put == PLAN_TOGETHER && end < count && join(segment, &from[end]); end++)
			;
		at = place_of(p, (uintptr_t)segment->iov_base);
		if (at > p->room_bytes || p->room_bytes - at < segment->iov_len)
			return PLAN_FULL;
		p->local[segments++] = (struct iovec){.iov_base = p->memory + at, .iov_len = segment->iov_len};
		for (uint32_t k = i; k < end; k++) {
			uintptr_t addr = (uintptr_t)from[k].iov_base;

			p->pieces[p->count++] = (struct piece){.from = addr,
			                                       .bytes = (uint32_t)from[k].iov_len,
			                                       .at = at + (uint32_t)(addr - (uintptr_t)segment->iov_base)};
		}
		p->used_bytes = at + (uint32_t)segment->iov_len;
		p->read_bytes += segment->iov_len;
	}
	*ret_read = remote_readv(r, p->local, p->from, segments);
	read_to = p->used_bytes;
	if (*ret_read < (int)segments)
		read_to = *ret_read > 0 ? (uint32_t)((uint8_t *)p->local[*ret_read].iov_base - p->memory) : 0;
	for (uint32_t i = first; i < p->count; i++)
		p->pieces[i].ok = p->pieces[i].at < read_to;
	p->reads++;
	p->read_segments += segments;
	ns = clock_now_ns() - started_ns;
	p->read_ns += ns;
	p->slow_fetch = segments > 0 && take_time(&p->usual_piece_ns, ns / segments);
	return first;
}
