/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler thread: absolute deadlines, all targets at each, and the mailboxes through which the main thread hands
 * targets over and gets them back. No lock: a target waits in an atomic list until the other side takes the whole list. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/affinity.h"
#include "sampler/target.h"

#define SPIN_BELOW_NS (50 * NS_PER_US) /* above 20 kHz a sleep is too coarse */
#define NAP_NS        (20 * NS_PER_MS) /* the longest sleep, so that requests are seen */
#define WAKE_PART     8                /* the consumer is woken when the ring is this part full */

struct sampler {
	struct sampler_options options;
	struct ring *ring;
	struct symtab *symbols;
	pthread_t thread;
	bool started;
	bool realtime;
	int event_fd;
	uint32_t next_target_id;
	struct target *targets; /* the sampler thread's list */
	struct target *taken;   /* the main thread's list of ended ones */
	uint64_t random;
	struct affinity affinity; /* of the thread */
	_Atomic(struct target *) added; /* release by sampler_add, acquire by the thread */
	_Atomic(struct target *) ended; /* release by the thread, acquire by sampler_take_ended */
	atomic_bool stop;
	_Atomic uint64_t mark_asked;
	uint64_t mark_done;
};

static void push(_Atomic(struct target *) *list, struct target *target)
{
	/* relaxed is enough to read the head: the exchange below checks it */
	struct target *head = atomic_load_explicit(list, memory_order_relaxed);

	do
		target->next = head;
	while (!atomic_compare_exchange_weak_explicit(list, &head, target,
	                                              memory_order_release, /* pairs with take_all */
	                                              memory_order_relaxed));
}

static struct target *take_all(_Atomic(struct target *) *list)
{
	/* a plain look first: an exchange each tick would take the cache line from the other side for nothing */
	if (!atomic_load_explicit(list, memory_order_relaxed))
		return NULL;
	return atomic_exchange_explicit(list, NULL, memory_order_acquire); /* pairs with the release in push */
}

int sampler_new(struct sampler **ret_sampler, const struct sampler_options *options, struct ring *ring)
{
	struct sampler *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->options = *options;
	s->ring = ring;
	s->random = clock_now_ns() | 1;
	s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = s->event_fd < 0 ? -errno : symtab_new(&s->symbols);
	if (err) {
		sampler_free(s);
		return err;
	}
	*ret_sampler = s;
	return 0;
}

static enum target_event event_of(int err)
{
	switch (err) {
	case -ESRCH:
		return TARGET_EXITED;
	case -ESTALE:
		return TARGET_EXECED;
	default: /* it lives on, but cannot be read any more */
		return TARGET_DETACHED;
	}
}

static void end_target(struct sampler *s, struct target *target, int err)
{
	uint64_t one = 1;

	target->execed = err == -ESTALE;
	if (target->codes)
		target_finish(target, clock_now_ns(), event_of(err));
	push(&s->ended, target);
	if (write(s->event_fd, &one, sizeof(one)) < 0)
		return; /* full: it is readable already */
}

static void adopt_added(struct sampler *s)
{
	struct target *target = take_all(&s->added), *next;

	for (; target; target = next) {
		next = target->next;
		if (target_adopt(target, &s->options, s->symbols, s->ring, ++s->next_target_id) != 0) {
			end_target(s, target, -ENOMEM);
			continue;
		}
		target->next = s->targets;
		s->targets = target;
		target->attached = target_announce(target, TARGET_ATTACHED, clock_now_ns());
		affinity_avoid(&s->affinity, target->proc.pid);
	}
}

static void tick_all(struct sampler *s, uint64_t now_ns, uint64_t late_ns, uint64_t missed)
{
	struct target **link = &s->targets;

	while (*link) {
		struct target *target = *link;
		int err = target_tick(target, now_ns);

		if (s->options.interval_ns && late_ns > s->options.interval_ns / 2)
			target->facts.ticks_late++;
		if (target->facts.ticks > 1)
			target->facts.ticks_missed += missed;
		if (err == 0 || err == -ENOMEM) {
			link = &target->next;
		} else {
			*link = target->next;
			end_target(s, target, err);
		}
		if (*link)
			now_ns = clock_now_ns();
	}
}

/* Closes all runs and writes the mark that was asked for; when the ring has no room for it, the next tick tries again. */
static void write_mark(struct sampler *s)
{
	uint64_t asked = atomic_load_explicit(&s->mark_asked, memory_order_acquire); /* pairs with sampler_ask_mark */
	struct rec_mark *record;

	if (asked == s->mark_done)
		return;
	for (struct target *target = s->targets; target; target = target->next) {
		runs_close_all(target);
		target_write_facts(target);
	}
	record = ring_reserve(s->ring, sizeof(*record), REC_MARK);
	if (record) {
		record->sequence = asked;
		record->t_ns = clock_now_ns();
		ring_commit(s->ring);
		s->mark_done = asked;
	}
	ring_wake(s->ring);
}

static uint64_t next_random(struct sampler *s)
{
	/* xorshift64: G. Marsaglia, "Xorshift RNGs", Journal of Statistical Software 8 (2003) */
	s->random ^= s->random << 13;
	s->random ^= s->random >> 7;
	s->random ^= s->random << 17;
	return s->random;
}

static bool is_stopped(struct sampler *s)
{
	return atomic_load_explicit(&s->stop, memory_order_acquire); /* pairs with sampler_stop */
}

/* Sleeps to the deadline, in naps. False: stopped meanwhile. */
static bool wait_until(struct sampler *s, uint64_t due_ns)
{
	uint64_t now_ns;

	while ((now_ns = clock_now_ns()) < due_ns) {
		uint64_t to_ns = due_ns - now_ns > NAP_NS ? now_ns + NAP_NS : due_ns;
		struct timespec to = clock_to_timespec(to_ns);

		if (is_stopped(s))
			return false;
		if (s->targets && s->options.interval_ns && s->options.interval_ns < SPIN_BELOW_NS)
			continue;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &to, NULL);
		if (to_ns < due_ns)
			write_mark(s);
	}
	return !is_stopped(s);
}

static void *run_sampler(void *context)
{
	struct sampler *s = context;
	uint64_t interval_ns = s->options.interval_ns;
	uint64_t base_ns = clock_now_ns(); /* of the deadlines, before jitter */

	prctl(PR_SET_NAME, "sampled-sampler");
	affinity_begin(&s->affinity);
	prctl(PR_SET_TIMERSLACK, 1); /* the default of 50 µs makes a 10 kHz sampler miss one tick in ten */
	while (!is_stopped(s)) {
		uint64_t jitter_ns = s->options.jitter ? next_random(s) % (interval_ns / 4 + 1) : 0;
		uint64_t due_ns = base_ns + jitter_ns;
		uint64_t now_ns, missed = 0;

		adopt_added(s);
		if (!s->targets) {
			wait_until(s, clock_now_ns() + NS_PER_MS);
			base_ns = clock_now_ns();
			write_mark(s);
			continue;
		}
		if (interval_ns && !wait_until(s, due_ns))
			break;
		now_ns = clock_now_ns();
		if (interval_ns && now_ns - base_ns >= 2 * interval_ns) {
			missed = (now_ns - base_ns) / interval_ns - 1;
			base_ns += missed * interval_ns;
		}
		tick_all(s, now_ns, interval_ns && now_ns > due_ns ? now_ns - due_ns : 0, missed);
		base_ns += interval_ns;
		write_mark(s);
		if (ring_used_bytes(s->ring) > ring_room_bytes(s->ring) / WAKE_PART)
			ring_wake(s->ring);
	}
	write_mark(s);
	for (struct target *target = s->targets; target; target = target->next)
		target_finish(target, clock_now_ns(), TARGET_DETACHED);
	ring_close(s->ring);
	return NULL;
}

int sampler_start(struct sampler *s, struct fault *fault)
{
	struct sched_param param = {.sched_priority = 1};
	int err = pthread_create(&s->thread, NULL, run_sampler, s);

	if (err)
		return fault_set(fault, -err, NULL, "cannot start the sampler thread: %s", strerror(err));
	s->started = true;
	if (s->options.realtime)
		s->realtime = pthread_setschedparam(s->thread, SCHED_FIFO, &param) == 0;
	return 0;
}

void sampler_stop(struct sampler *s)
{
	if (!s->started)
		return;
	atomic_store_explicit(&s->stop, true, memory_order_release); /* pairs with is_stopped */
	pthread_join(s->thread, NULL);
	s->started = false;
}

void sampler_free(struct sampler *s)
{
	struct target *next;

	if (!s)
		return;
	sampler_stop(s);
	for (struct target *target = s->targets; target; target = next) {
		next = target->next;
		target_free(target);
	}
	for (struct target *target = take_all(&s->added); target; target = next) {
		next = target->next;
		target_free(target);
	}
	for (struct target *target; (target = sampler_take_ended(s));)
		target_free(target);
	if (s->event_fd >= 0)
		close(s->event_fd);
	symtab_free(s->symbols);
	free(s);
}

void sampler_add(struct sampler *s, struct target *target)
{
	push(&s->added, target);
}

struct target *sampler_take_ended(struct sampler *s)
{
	struct target *target;
	uint64_t count;

	if (!s->taken) {
		if (s->event_fd >= 0 && read(s->event_fd, &count, sizeof(count)) < 0)
			count = 0; /* nothing ended since */
		s->taken = take_all(&s->ended);
	}
	target = s->taken;
	if (target)
		s->taken = target->next;
	return target;
}

int sampler_event_fd(const struct sampler *s)
{
	return s->event_fd;
}

void sampler_ask_mark(struct sampler *s, uint64_t sequence)
{
	atomic_store_explicit(&s->mark_asked, sequence, memory_order_release); /* pairs with write_mark */
}

bool sampler_is_realtime(const struct sampler *s)
{
	return s->realtime;
}
