/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/polling.h"

static struct iovec piece_at(raddr_t addr, uint64_t bytes)
{
	return (struct iovec){.iov_base = (void *)(uintptr_t)addr, .iov_len = bytes};
}

static struct code *code_of(struct walker *w, raddr_t addr)
{
	struct code *code = addr ? codes_find(w->codes, addr) : NULL;

	return code || (addr && codes_load(w->codes, w->remote, addr, w->now_ns, &code) == 0) ? code : NULL;
}

/* How a generator's frame in copied bytes is linked. False: it does not run. */
static bool read_link(struct walker *w, raddr_t frame, const uint8_t *bytes, struct apart_link *ret_link)
{
	struct code *code = bytes ? code_of(w, frame_code(w->abi, bytes)) : NULL;

	if (!code || !frame_is_generator(w->abi, bytes) || frame_previous(w->abi, bytes) == 0)
		return false;
	*ret_link = (struct apart_link){.frame = frame,
	                                .previous = frame_previous(w->abi, bytes),
	                                .code = code->addr,
	                                .bytes = code->frame_bytes < APART_FRAME_MAX ? code->frame_bytes
	                                                                             : APART_FRAME_MAX};
	return true;
}

/* What a frame was seen to be linked to must be a frame: a generator's, or a shim, which is read between two copies of that frame, since it is gone as
 * soon as C returns. Remembers the shim. */
static bool leads_on(struct target *target, struct walker *w, struct thread *t, const struct apart_link *link)
{
	struct plan *p = &target->again;
	uint32_t head_bytes = (uint32_t)w->abi->frame.bytes, first;
	struct iovec pieces[3] = {piece_at(link->frame, head_bytes), piece_at(link->previous, head_bytes),
	                          piece_at(link->frame, head_bytes)};
	const uint8_t *bytes;
	struct apart_link before, behind;
	int read;

	if (thread_in_chunks(t, link->previous) || apart_link(t->apart, link->previous).frame != 0)
		return true;
	plan_clear(p);
	if (!plan_reserve(p, 3 * (head_bytes + PLAN_PADDING)))
		return false;
	first = plan_put(p, w->remote, pieces, 3, PLAN_SINGLY, &read);
	target->facts.confirms++;
	if (first == PLAN_FULL || read != 3)
		return false;
	bytes = plan_bytes(p, first + 1);
	if (!frame_is_shim(w->abi, bytes))
		return frame_is_generator(w->abi, bytes);
	if (!read_link(w, link->frame, plan_bytes(p, first), &before) || before.previous != link->previous ||
	    !read_link(w, link->frame, plan_bytes(p, first + 2), &behind) || behind.previous != link->previous ||
	    frame_previous(w->abi, bytes) == 0)
		return false;
	apart_note_link(t->apart, (struct apart_link){.frame = link->previous,
	                                              .previous = frame_previous(w->abi, bytes),
	                                              .bytes = head_bytes,
	                                              .shim = true});
	return true;
}

bool polling_links(struct target *target, struct walker *w, struct thread *t)
{
	struct apart *apart = t->apart;
	struct plan *p = &target->again;
	uint32_t head_bytes = (uint32_t)w->abi->frame.bytes, count = 0, link_count = 0, first;
	struct iovec pieces[APART_UNLINKED];
	struct apart_link links[APART_UNLINKED];
	bool linked = false;
	int read;

	for (uint32_t i = 0; i < APART_UNLINKED; i++)
		if (apart->unlinked[i] != 0)
			pieces[count++] = piece_at(apart->unlinked[i], head_bytes);
	plan_clear(p);
	if (count == 0 || !plan_reserve(p, count * (head_bytes + PLAN_PADDING)))
		return false;
	first = plan_put(p, w->remote, pieces, count, PLAN_SINGLY, &read);
	target->facts.confirms++;
	if (first == PLAN_FULL)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		raddr_t frame = (raddr_t)(uintptr_t)pieces[i].iov_base;

		link_count += read_link(w, frame, plan_bytes(p, first + i), &links[link_count]);
	}
	if (read < (int)count) /* the first one that cannot be read */
		apart_forget_unlinked(apart, (raddr_t)(uintptr_t)pieces[read > 0 ? read : 0].iov_base);
	for (uint32_t i = 0; i < link_count; i++) {
		if (!leads_on(target, w, t, &links[i]))
			continue;
		apart_note_link(apart, links[i]);
		apart_forget_unlinked(apart, links[i].frame);
		linked = true;
	}
	return linked;
}
