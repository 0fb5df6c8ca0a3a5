/* SPDX-License-Identifier: Apache-2.0 */
/* struct _err_stackitem (Include/cpython/pystate.h, 3.7+): the thread has one, and each generator its own, which points to the outer one while
 * the generator runs. An item without a value handles nothing itself: the outer one counts (_PyErr_GetTopmostException). */
#include "sampler/handled.h"

#include <string.h>

#include "sampler/frames.h"
#include "sampler/pyobj.h"

#define ITEM_BYTES_MAX 32
#define CHAIN_MAX      64 /* generators that run one another; deeper, an exception further out is not seen */

/* Not 0, and not None, of which there is one a process. */
static bool is_exception(struct target *target, raddr_t value)
{
	char name[16];

	if (value == 0 || value == target->none)
		return false;
	if (target->none || pyobj_type_name(&target->remote, &target->proc.abi, value, name, sizeof(name)) < 0 ||
	    strcmp(name, "NoneType") != 0)
		return true;
	target->none = value;
	return false;
}

/* An item's bytes: of the thread's own copy where they are in it, else as they are now. */
static int get_item(const struct target *target, const struct thread *t, const struct plan *plan, raddr_t item,
                    uint8_t *to)
{
	uint32_t size = pyabi_item_bytes(&target->proc.abi);

	for (uint32_t i = 0; i < t->copy.item_count; i++) {
		const uint8_t *bytes = plan_bytes(plan, t->copy.items + i);

		if (bytes && plan->pieces[t->copy.items + i].from == item) {
			memcpy(to, bytes, size);
			return 0;
		}
	}
	return remote_read(&target->remote, item, to, size);
}

enum handled handled_ask(struct target *target, struct thread *t, const struct plan *plan)
{
	const struct pyabi *abi = &target->proc.abi;
	const uint8_t *head = plan_bytes(plan, t->copy.head);
	raddr_t item = head ? frame_u64(head, abi->tstate.exc_info) : 0;
	bool triple = abi->exceptions == EXCEPTIONS_TRIPLE, any = false;
	uint8_t bytes[ITEM_BYTES_MAX];

	t->item_count = 0;
	if (abi->exceptions == EXCEPTIONS_VALUE) {
		any = is_exception(target, item);
		item = 0;
	}
	for (int i = 0; i < CHAIN_MAX && item != 0 && !any; i++) {
		/* A generator that ran then may have ended since. */
		if (get_item(target, t, plan, item, bytes) != 0)
			return HANDLED_UNKNOWN;
		if (t->item_count < ITEMS_MAX)
			t->items[t->item_count++] = item;
		any = is_exception(target, frame_u64(bytes, triple ? 8 : 0));
		item = frame_u64(bytes, triple ? 24 : 8);
	}
	return any ? HANDLED_ANY : HANDLED_NONE;
}
