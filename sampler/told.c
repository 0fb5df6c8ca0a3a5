/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/told.h"

#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "sampler/callnames.h"
#include "sampler/pyobj.h"

#define KEEP_NS         (2 * NS_PER_MS) /* so long a function object is believed without reading it again */
#define OBJECT_BYTES    64
#define METHOD_FUNCTION 16   /* PyMethodObject.im_func (Include/classobject.h) */
#define FRAME_STACK_END 4096 /* a longer copy is of no instant */

/* Of which kind objects of a type are; TOLD_KINDS: none. */
static uint32_t kind_of(struct told_objects *objects, const struct walker *w, raddr_t object, raddr_t type)
{
	static const char *const names[TOLD_KINDS] = {"function", "method", "generator", "coroutine"};
	raddr_t *other = &objects->others[hash_u64(type) % TOLD_OTHERS];
	char name[16];
	uint32_t kind = 0;

	while (kind < TOLD_KINDS && objects->types[kind] != type)
		kind++;
	if (kind < TOLD_KINDS || *other == type || pyobj_type_name(w->remote, w->abi, object, name, sizeof(name)) <= 0)
		return kind;
	for (kind = 0; kind < TOLD_KINDS && strcmp(name, names[kind]) != 0;)
		kind++;
	*(kind < TOLD_KINDS ? &objects->types[kind] : other) = type;
	return kind;
}

/* Whether it is a function, and its code: read from the target. */
static void read_object(struct told_objects *objects, const struct walker *w, struct told_object *object)
{
	uint8_t bytes[OBJECT_BYTES];
	raddr_t type;
	uint32_t kind;

	object->code = 0;
	object->method = object->resumes = false;
	object->read_ns = clock_now_ns();
	if (remote_read(w->remote, object->addr, bytes, sizeof(bytes)) != 0)
		return;
	type = frame_u64(bytes, w->abi->type.type);
	kind = type != 0 ? kind_of(objects, w, object->addr, type) : TOLD_KINDS;
	if (kind == TOLD_FUNCTION)
		object->code = frame_u64(bytes, w->abi->func.code);
	object->method = kind == TOLD_METHOD;
	object->resumes = kind == TOLD_GENERATOR || kind == TOLD_COROUTINE;
}

const struct told_object *told_object_at(struct told_objects *objects, const struct walker *w, raddr_t addr, bool afresh)
{
	struct told_object *object = &objects->at[hash_u64(addr) % TOLD_PLACES];

	if (addr == 0 || (addr & 7) != 0)
		return NULL;
	if (afresh || object->addr != addr || clock_now_ns() - object->read_ns > KEEP_NS) {
		object->addr = addr;
		read_object(objects, w, object);
	}
	return object;
}

raddr_t told_code_at(struct told_objects *objects, const struct walker *w, raddr_t addr)
{
	const struct told_object *object = told_object_at(objects, w, addr, false);

	return object ? object->code : 0;
}

/* The slots of a site, out of a frame's copy of `bytes` bytes. NULL: they are not in it; the next copy will be longer. */
static const uint8_t *find_slots(struct walker *w, const struct told *told, const uint8_t *copy, uint32_t bytes)
{
	uint64_t stack = frame_u64(copy, w->abi->frame.valuestack) - told->frame.frame;
	uint64_t end = stack + 8 * (uint64_t)told->code->stack_slots;

	if (stack < (uint64_t)w->abi->frame.bytes || (stack & 7) != 0 || end > FRAME_STACK_END)
		return NULL;
	if (stack + 8 * (uint64_t)told->site->end <= bytes)
		return copy + stack + 8 * (uint64_t)told->site->slot;
	w->grew |= told->code->frame_bytes != end;
	told->code->frame_bytes = (uint32_t)end;
	return NULL;
}

struct told told_read(struct walker *w, uint32_t index, bool called)
{
	const struct piece *piece = &w->plan->pieces[index];
	const uint8_t *copy = w->plan->memory + piece->at;
	struct told told = {.frame.frame = piece->from};

	if (!piece->ok)
		return told;
	told.copy = copy;
	told.bytes = piece->bytes;
	told.frame.code = frame_code(w->abi, copy);
	told.previous = frame_previous(w->abi, copy);
	told.generator = frame_u64(copy, w->abi->frame.gen);
	told.code = codes_find(w->codes, told.frame.code);
	if (!told.code || !frame_offset(w->abi, copy, told.code, &told.frame.offset))
		return told;
	/* One that has not begun is executed all the same when its call is being traced. */
	if (told.frame.offset >= 0 && !frame_is_executing(w->abi, copy))
		return told;
	told.ok = true;
	told.site = callsites_at(told.code->sites, told.code->site_count, told.frame.offset);
	if (!called || !told.site || told.site->kind == CALLSITE_OTHER)
		return told;
	told.slots = find_slots(w, &told, copy, piece->bytes);
	if (!told.slots)
		return told;
	told.frame.callable = frame_u64(told.slots, 0);
	told.callable_at = piece->from + (uint64_t)(told.slots - copy);
	if (told.frame.callable == 0 && told.site->kind == CALLSITE_METHOD && told.site->end > told.site->slot + 1) {
		told.frame.callable = frame_u64(told.slots, 8);
		told.callable_at += 8;
	}
	return told;
}

raddr_t told_code(struct told_objects *objects, const struct walker *w, const struct told *told)
{
	const struct told_object *object = told_object_at(objects, w, told->frame.callable, false);
	const struct code *code = object ? codes_find(w->codes, object->code) : NULL;
	uint8_t bytes[PYABI_FRAME_MAX], slot[8];
	raddr_t addr = object ? object->code : 0;
	int64_t offset;

	if (code && !code->is_nested && !object->method)
		return addr;
	if (!object)
		return 0;
	object = told_object_at(objects, w, told->frame.callable, true);
	addr = object->code;
	if (!object->method && addr == 0)
		return 0;
	if (object->method && (remote_read(w->remote, told->frame.callable + METHOD_FUNCTION, &addr, sizeof(addr)) != 0 ||
	                       remote_read(w->remote, addr + (uint64_t)w->abi->func.code, &addr, sizeof(addr)) != 0))
		return 0;
	if (remote_read(w->remote, told->frame.frame, bytes, (size_t)w->abi->frame.bytes) != 0 ||
	    remote_read(w->remote, told->callable_at, slot, 8) != 0)
		return 0;
	return frame_code(w->abi, bytes) == told->frame.code && frame_offset(w->abi, bytes, told->code, &offset) &&
	                       offset == told->frame.offset && frame_previous(w->abi, bytes) == told->previous &&
	                       frame_is_executing(w->abi, bytes) && frame_u64(slot, 0) == told->frame.callable
	               ? addr
	               : 0;
}

bool told_is_named(const struct walker *w, const struct told *told, const struct code *callee)
{
	struct callsite *site = told->site;
	char text[CALLNAME_BYTES];
	bool cut;
	int bytes;
	raddr_t name;

	if (site->name_index == 0)
		return false;
	if (site->name == 0) {
		if (remote_read(w->remote, told->code->names + (uint64_t)w->abi->tuple.items + 8 * (site->name_index - UINT64_C(1)),
		                &name, sizeof(name)) != 0)
			return false;
		bytes = pyobj_str(w->remote, w->abi, name, text, sizeof(text), &cut);
		site->name = bytes > 0 && !cut ? callname_hash(text, (size_t)bytes) : 0;
		if (site->name == 0)
			site->name_index = 0;
	}
	return site->name == callee->name;
}
