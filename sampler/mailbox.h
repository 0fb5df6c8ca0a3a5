/* SPDX-License-Identifier: Apache-2.0 */
/* A mailbox without a lock: anybody puts something in, one thread takes all of it. What is put in begins with a struct letter, and is whoever's takes
 * it from then on. */
#ifndef SAMPLED_SAMPLER_MAILBOX_H
#define SAMPLED_SAMPLER_MAILBOX_H

#include <stdatomic.h>
#include <stddef.h>

struct letter {
	struct letter *next;
};

struct mailbox {
	_Atomic(struct letter *) latest; /* release by mailbox_put, acquire by mailbox_take */
};

static inline void mailbox_put(struct mailbox *box, struct letter *letter)
{
	/* relaxed is enough to read the head: the exchange below checks it */
	struct letter *head = atomic_load_explicit(&box->latest, memory_order_relaxed);

	do
		letter->next = head;
	while (!atomic_compare_exchange_weak_explicit(&box->latest, &head, letter,
	                                              memory_order_release, /* pairs with mailbox_take */
	                                              memory_order_relaxed));
}

/* All that was put in, the latest first; NULL: nothing. */
static inline struct letter *mailbox_take(struct mailbox *box)
{
	/* a plain look first: an exchange each tick would take the cache line from the other side for nothing */
	if (!atomic_load_explicit(&box->latest, memory_order_relaxed))
		return NULL;
	return atomic_exchange_explicit(&box->latest, NULL, memory_order_acquire); /* pairs with mailbox_put */
}

#endif
