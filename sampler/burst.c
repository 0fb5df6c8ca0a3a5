/* SPDX-License-Identifier: Apache-2.0 */
#include "sampler/burst.h"

#include <errno.h>

#include "base/clock.h"
#include "base/hash.h"
#include "sampler/bracket.h"
#include "sampler/look.h"
#include "sampler/lookalike.h"
#include "sampler/owed.h"
#include "sampler/polling.h"
#include "sampler/prove.h"
#include "sampler/recheck.h"
#include "sampler/target.h"

#define MOST_NS     (500 * NS_PER_US)
#define PART        4                 /* of the interval, at most, of all processes together */
#define SHARE       200               /* of the time is one part in so many earned, … */
#define FIRST_SHARE 10                /* … and one in so many in the beginning, … */
#define FIRST_NS    (300 * NS_PER_MS) /* … until it is this; no more than this is kept, either */
#define BRACKET_OF  16                /* unthrottled: of so many ticks one is for a bracket */
#define POLL_LEAST  16                /* unthrottled: so many ticks between two polls, twice as many after each that was in vain, … */
#define POLL_MOST   512               /* … and no more than so many */
#define OTHERS_OF   4             /* to 3.10: of so many looks one is for another function than the one that ran at the sample */
#define KNOWN_LOOKS 256 /* so many in a row that showed no unknown call, and … */
#define LEARN_OF    16  /* … one tick of the process in so many has another one, … */
#define SURE_LOOKS  1024 /* … after so many … */
#define SURE_OF     64   /* … one in so many */
#define STOOD_MOST  8   /* looks in a row: it stands, and is not met elsewhere soon */
#define PAUSE_NS    NS_PER_US /* between two looks, at random up to this: in step, what is torn once is torn again and again */

void burst_earn(struct burst *burst, uint64_t interval_ns, uint32_t count)
{
	uint64_t own_ns = interval_ns / (count > 0 ? count : 1), first_ns = own_ns / FIRST_SHARE;

	if (first_ns > FIRST_NS - burst->first_ns)
		first_ns = FIRST_NS - burst->first_ns;
	burst->first_ns += first_ns;
	burst->credit_ns += (int64_t)(first_ns + own_ns / SHARE);
	if (burst->credit_ns > (int64_t)FIRST_NS)
		burst->credit_ns = FIRST_NS;
	burst->most_ns = own_ns / PART < MOST_NS ? own_ns / PART : MOST_NS;
}

/* How long one may last now. The last look of one takes longer than what was left; that is owed before the next begins. */
static uint64_t may_take_ns(const struct burst *burst)
{
	if (burst->credit_ns <= 0)
		return 0;
	return (uint64_t)burst->credit_ns < burst->most_ns ? (uint64_t)burst->credit_ns : burst->most_ns;
}

/* What took longer than one may was kept waiting for a CPU. */
static void spend(struct burst *burst, uint64_t took_ns)
{
	burst->credit_ns -= (int64_t)(took_ns < MOST_NS ? took_ns : MOST_NS);
}

static uint64_t wait_until(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();

	while (now_ns < until_ns)
		now_ns = clock_now_ns();
	return now_ns;
}

/* One look. 0: the stack in t->seen is one that the thread had. */
static int look_once(struct target *target, struct thread *t, struct walker *w)
{
	int err;

	w->tick = ++target->tick;
	codes_new_tick(target->codes);
	w->grew = w->exhausted = false;
	w->doubted = 0;
	target->facts.confirms++;
	err = look_again(target, w, t);
	if (err && w->doubted)
		recheck_doubted(target, t, w);
	if (!err)
		err = recheck_stack(target, t, w->now_ns);
	if (!err && w->abi->frames == FRAMES_STACK)
		lookalike_learn(w, t, false);
	return err;
}

/* To 3.10: for which frame the next look is made. What ran at the sample is `own`; 0: it was met since. A function that runs for less than a look takes is
 * met where that look was made for it, or where it runs in two looks in a row by chance. */
static raddr_t frame_wanted(const struct target *target, const struct thread *t, const struct walker *w, raddr_t own)
{
	const struct owed *owed = target->owed_count > 0 ? &target->owed[hash_u64(target->tick) % target->owed_count] : NULL;

	if (own && target->tick % OTHERS_OF != 0)
		return own;
	return owed && owed->thread == t->id && owed->frame ? owed->frame : w->current;
}

static bool is_alike(const struct pystack *a, const struct pystack *b)
{
	bool ignored;

	return a->depth == b->depth && stack_alike(a, b, &ignored) == a->depth;
}

/* Looks at the thread until nothing is owed to it any more, until so many looks in a row show it where it was, or until this time. */
static void look_until(struct target *target, struct thread *t, struct walker *w, uint32_t stood_most, uint64_t end_ns)
{
	struct pystack *stack = &target->burst.stack;
	struct apart *apart = t->apart;
	struct look before = {.stack = NULL};
	raddr_t own = w->expected;
	uint32_t stood = 0;

	if (apart)
		apart->learns = true;
	while (owed_by(target, t) && w->now_ns < end_ns && stood < stood_most) {
		int err = look_once(target, t, w);
		bool whole = err == 0, known;
		struct look now = {.stack = stack, .agreed = t->agreed};

		if (err == -ESRCH)
			break;
		if (whole && t->seen.depth > 0 && t->seen.frames[t->seen.depth - 1].frame == own)
			own = 0;
		w->expected = target->callees ? frame_wanted(target, t, w, own) : 0;
		known = whole && prove_learn(target, w, t, before.stack ? &before : NULL);
		if (known)
			sample_pay(target, t, w);
		stood = whole && before.stack && is_alike(before.stack, &t->seen) ? stood + 1 : 0;
		if (whole && stack_copy(stack, &t->seen, t->seen.depth)) {
			stack->apart = t->seen.apart;
			before = now;
		} else {
			before.stack = NULL;
		}
		if (apart && !known)
			bracket_calls(target, w, t);
		if (apart)
			polling_links(target, w, t);
		thread_prune(t, target->tick);
		w->now_ns = wait_until(clock_now_ns() + hash_u64(target->tick) % PAUSE_NS);
	}
	if (apart)
		apart->learns = false;
}

/* Unthrottled: what coroutines link to is polled for, but seldom where they have all ended. */
static void poll_seldom(struct target *target, struct thread *t, struct walker *w)
{
	struct apart *apart = t->apart;

	if (target->tick < apart->poll_tick)
		return;
	apart->poll_wait = polling_links(target, w, t) || apart->poll_wait == 0 ? POLL_LEAST : 2 * apart->poll_wait;
	if (apart->poll_wait > POLL_MOST)
		apart->poll_wait = POLL_MOST;
	apart->poll_tick = target->tick + apart->poll_wait;
}

void burst_look(struct target *target, struct thread *t, struct walker *w)
{
	struct burst *burst = &target->burst;
	uint64_t started_ns = clock_now_ns();

	if ((!t->apart && (target->interval_ns == 0 || !target->callees)) || near_serves(target, w->now_ns))
		return;
	if (target->interval_ns == 0) { /* the samples are looks enough, but for these */
		if (target->tick % BRACKET_OF == 0)
			bracket_calls(target, w, t);
		poll_seldom(target, t, w);
		return;
	}
	w->now_ns = started_ns;
	look_until(target, t, w, STOOD_MOST, started_ns + may_take_ns(burst));
	spend(burst, w->now_ns - started_ns);
}

/* One look for what it shows of calls; it pays what is owed, too. */
static void learn_once(struct target *target, struct thread *t, struct walker *w)
{
	int err;

	t->learns = true;
	err = look_once(target, t, w);
	t->learns = false;
	if (err || t->seen.depth == 0)
		return;
	if (prove_learn(target, w, t, NULL)) {
		sample_pay(target, t, w);
		t->all_known += t->all_known < SURE_LOOKS;
	} else if (t->agreed) {
		t->all_known = 0;
	}
}

void burst_learn(struct target *target, struct thread *t, struct walker *w)
{
	bool known = t->all_known >= KNOWN_LOOKS;
	uint64_t started_ns, most_ns = known ? 0 : may_take_ns(&target->burst), ticks_a_look = t->all_known < SURE_LOOKS ? LEARN_OF : SURE_OF;

	/* Without frames there are no calls to learn. */
	if (target_plan_order(target) != PLAN_TELL || target->callees || t->looks < FIRST_LOOKS || (t->taken && t->last.depth == 0) ||
	    ((known || most_ns == 0) && hash_combine(target->tick, t->id) % (ticks_a_look * target->awake_count) != 0))
		return;
	started_ns = clock_now_ns();
	do {
		learn_once(target, t, w);
		w->now_ns = clock_now_ns();
	} while (w->now_ns - started_ns < most_ns && t->all_known < KNOWN_LOOKS);
	if (most_ns > 0) /* the one in LEARN_OF needs no credit: at high rates it takes more than these ticks earn */
		spend(&target->burst, w->now_ns - started_ns);
}

void burst_settle(struct target *target, uint64_t end_ns)
{
	struct walker w = {.abi = &target->proc.abi,
	                   .remote = &target->remote,
	                   .codes = target->codes,
	                   .edges = target->edges,
	                   .resumed = &target->resumed,
	                   .ends = &target->ends};

	if (target->interval_ns == 0)
		return;
	for (uint32_t i = 0; i < target->thread_count; i++) {
		struct thread *t = target->threads[i];

		w.now_ns = clock_now_ns();
		w.current = w.expected = 0;
		if ((t->apart || target->callees) && owed_by(target, t))
			look_until(target, t, &w, UINT32_MAX, end_ns);
	}
}
