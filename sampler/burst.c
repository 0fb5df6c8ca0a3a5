/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/burst.h"

#include "base/clock.h"
#include "base/hash.h"
#include "sampler/look.h"
#include "sampler/owed.h"
#include "sampler/polling.h"
#include "sampler/prove.h"
#include "sampler/recheck.h"
#include "sampler/target.h"

#define MOST_NS     (500 * NS_PER_US)
#define PART        4                 /* of the interval, at most, of all processes together */
#define SHARE       200               /* of the time is one part in so many earned, … */
#define FIRST_SHARE 20                /* … and one in so many in the beginning, … */
#define FIRST_NS    (100 * NS_PER_MS) /* … until it is this; no more than this is kept, either */
#define PAUSE_NS    NS_PER_US /* between two looks, at random up to this: in step, what is torn once is torn again and again */

void burst_earn(struct burst *burst, uint64_t interval_ns, uint32_t count)
{
	uint64_t own_ns = interval_ns / (count > 0 ? count : 1), first_ns = own_ns / FIRST_SHARE;

	if (first_ns > FIRST_NS - burst->first_ns)
		first_ns = FIRST_NS - burst->first_ns;
	burst->first_ns += first_ns;
	burst->credit_ns += first_ns + own_ns / SHARE;
	if (burst->credit_ns > FIRST_NS)
		burst->credit_ns = FIRST_NS;
	burst->most_ns = own_ns / PART < MOST_NS ? own_ns / PART : MOST_NS;
}

static uint64_t wait_until(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	while (now_ns < until_ns)
		now_ns = clock_now_ns();
	return now_ns;
}

/* One look. True: the stack in t->seen is one that the thread had. */
static bool look_once(struct target *target, struct thread *t, struct walker *w)
{
	w->tick = ++target->tick;
	codes_new_tick(target->codes);
	w->grew = w->exhausted = false;
	w->doubted = 0;
	target->facts.confirms++;
	if (look_again(target, w, t) != 0) {
		if (w->doubted)
			recheck_doubted(target, t, w);
		return false;
	}
	return recheck_stack(target, t, w->now_ns) == 0;
}

void burst_look(struct target *target, struct thread *t, struct walker *w)
{
	struct burst *burst = &target->burst;
	struct pystack *stack = &burst->stack;
	struct apart *apart = t->apart;
	uint64_t started_ns = clock_now_ns(), took_ns;
	uint64_t end_ns = started_ns + (burst->credit_ns < burst->most_ns ? burst->credit_ns : burst->most_ns);
	struct look before = {.stack = NULL};

	if (!apart)
		return;
	apart->learns = true;
	for (w->now_ns = started_ns; target->owed_count > 0 && w->now_ns < end_ns;) {
		bool whole = look_once(target, t, w);
		struct look now = {.stack = stack, .agreed = t->agreed, .late = t->late};

		if (whole && prove_learn(target, w, t, before.stack ? &before : NULL))
			sample_pay(target, t, w);
		if (whole && stack_copy(stack, &t->seen, t->seen.depth)) {
			stack->apart = t->seen.apart;
			before = now;
		} else {
			before.stack = NULL;
		}
		polling_links(target, w, t);
		thread_prune(t, target->tick);
		w->now_ns = wait_until(clock_now_ns() + hash_u64(target->tick) % PAUSE_NS);
	}
	apart->learns = false;
	took_ns = w->now_ns - started_ns;
	burst->credit_ns -= took_ns < burst->credit_ns ? took_ns : burst->credit_ns;
}
