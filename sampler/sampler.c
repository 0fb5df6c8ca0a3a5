/* SPDX-License-Identifier: Apache-2.0 */
/* The sampler thread: absolute deadlines, all targets of an interval at each, and the mailboxes through which the main thread hands
 * targets over and gets them back. No lock. (Above 400 lines: what the thread does and how others talk to it is about one struct that no other file sees.) */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/mailbox.h"
#include "sampler/near.h"
#include "sampler/pace.h"
#include "sampler/selfstop.h"
#include "sampler/stop.h"
#include "sampler/target.h"
#include "sampler/turns.h"

#define SPIN_BELOW_NS (50 * NS_PER_US)  /* above 20 kHz a sleep is too coarse */
#define COLLECT_NS    (500 * NS_PER_US) /* between looks for stops that were given up */
#define STOPPING_NICE (-15)
#define NAP_NS        (100 * NS_PER_MS) /* the longest sleep, so that requests are seen */
#define WAKE_PART     8                 /* the consumer is woken when the ring is this part full */

struct detachment { /* a wish that a process be given back */
	struct letter letter;
	pid_t pid;
	uint64_t start_time;
};

struct sampler {
	struct sampler_options options;
	struct ring *ring;
	struct symtab *symbols;
	pthread_t thread;
	bool started;
	bool realtime;
	int event_fd;
	uint32_t next_target_id;
	struct stopper stopper; /* the sampler thread's */
	struct selfstop selfstop;
	struct paces paces;     /* the sampler thread's */
	uint64_t scheduler_tick_ns;
	struct letter *taken;       /* the main thread's list of ended targets */
	struct affinity affinity;   /* of the thread */
	struct mailbox added;       /* targets, for the thread */
	struct mailbox ended;       /* targets, for the main thread */
	struct mailbox detachments; /* for the thread */
	int wake_fd;                /* an eventfd that ends the thread's sleep while it has no target */
	_Atomic uint32_t slowdown;
	_Atomic uint64_t beats;
	atomic_bool stop;
	_Atomic uint64_t mark_asked;
	uint64_t mark_done;
};

/* Ends wait_for_targets(). */
static void wake(struct sampler *s)
{
	(void)eventfd_write(s->wake_fd, 1); /* full: it is readable already */
}

int sampler_new(struct sampler **ret_sampler, const struct sampler_options *options, struct ring *ring)
{
	struct sampler *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->options = *options;
	if (sampler_stops(options))
		stop_prepare();
	s->ring = ring;
	s->paces.random = clock_now_ns() | 1;
	atomic_init(&s->slowdown, 1);
	s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	s->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = s->event_fd < 0 || s->wake_fd < 0 ? -errno : symtab_new(&s->symbols);
	if (!err && sampler_stops(options))
		err = selfstop_init(&s->selfstop);
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

static void end_target(void *sampler, struct target *target, int err)
{
	struct sampler *s = sampler;

	near_leave(target);
	target->execed = err == -ESTALE;
	if (target->codes)
		target_finish(target, clock_now_ns(), event_of(err));
	mailbox_put(&s->ended, &target->letter);
	(void)eventfd_write(s->event_fd, 1); /* full: it is readable already */
}

static void adopt_added(struct sampler *s)
{
	struct letter *letter = mailbox_take(&s->added), *next;

	for (; letter; letter = next) {
		struct target *target = (struct target *)letter;
		struct pace *pace;

		next = letter->next;
		if (target_adopt(target, &s->options, s->symbols, s->ring, &s->stopper, ++s->next_target_id) != 0) {
			end_target(s, target, -ENOMEM);
			continue;
		}
		pace = paces_find(&s->paces, target->interval_ns);
		if (!pace || pace_add(pace, target) != 0) {
			end_target(s, target, -ENOMEM);
			continue;
		}
		if (pace->count == 1) {
			pace->base_ns = clock_now_ns();
			paces_set_due(&s->paces, pace, s->options.jitter);
		}
		target->attached = target_announce(target, TARGET_ATTACHED, clock_now_ns());
		near_join(target, &s->affinity);
	}
}

static void detach_wished(struct sampler *s)
{
	struct letter *letter = mailbox_take(&s->detachments), *next;

	for (; letter; letter = next) {
		const struct detachment *wish = (struct detachment *)letter;
		struct target *target = paces_remove(&s->paces, wish->pid, wish->start_time);

		next = letter->next;
		if (target)
			end_target(s, target, 0);
		free(letter);
	}
}

static uint32_t slowdown(struct sampler *s)
{
	return atomic_load_explicit(&s->slowdown, memory_order_relaxed); /* a number, nothing hangs on it */
}

/* Closes all runs and writes the mark that was asked for; when the ring has no room for it, the next tick tries again. */
static void write_mark(struct sampler *s)
{
	uint64_t asked = atomic_load_explicit(&s->mark_asked, memory_order_acquire); /* pairs with sampler_ask_mark */
	struct rec_mark *record;

	if (asked == s->mark_done)
		return;
	paces_flush(&s->paces);
	record = ring_reserve(s->ring, sizeof(*record), REC_MARK);
	if (record) {
		record->sequence = asked;
		record->t_ns = clock_now_ns();
		ring_commit(s->ring);
		s->mark_done = asked;
	}
	ring_wake(s->ring);
}

static bool is_stopped(struct sampler *s)
{
	return atomic_load_explicit(&s->stop, memory_order_acquire); /* pairs with sampler_stop */
}

/* Samples the threads whose stops come late, and lets them go. */
static void take_late(struct sampler *s)
{
	struct rec_facts ignored = {0};
	struct stop stop;

	while (stopper_take_late(&s->stopper, &stop))
		if (!paces_take_late(&s->paces, &stop))
			stop_release(&s->stopper, &stop, &ignored);
}

/* Where this process may be stopped. */
static void give_way(struct sampler *s)
{
	const struct timespec nap = clock_to_timespec(COLLECT_NS);

	take_late(s);
	while (stopper_is_waiting(&s->stopper) && selfstop_is_asked(&s->selfstop) && !is_stopped(s)) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
		take_late(s);
	}
	if (!stopper_is_waiting(&s->stopper))
		selfstop_allow(&s->selfstop);
}

/* Sleeps to the deadline, in naps. False: something else is to be done first. */
static bool wait_until(struct sampler *s, const struct pace *pace)
{
	uint64_t due_ns = pace->due_ns, now_ns;

	if (!pace->interval_ns) /* the clock is read by the tick */
		return !is_stopped(s);
	while ((now_ns = clock_now_ns()) < due_ns) {
		uint64_t to_ns = due_ns - now_ns > NAP_NS ? now_ns + NAP_NS : due_ns;
		struct timespec to = clock_to_timespec(to_ns);

		if (is_stopped(s))
			return false;
		if (stopper_is_waiting(&s->stopper)) {
			take_late(s);
			if (to_ns > now_ns + COLLECT_NS)
				to = clock_to_timespec(now_ns + COLLECT_NS);
		}
		if (pace->interval_ns < SPIN_BELOW_NS)
			continue;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &to, NULL);
		if (to_ns < due_ns)
			return false;
	}
	return !is_stopped(s);
}

/* Without a target there is no deadline: sleeps until something is asked for. */
static void wait_for_targets(struct sampler *s)
{
	struct pollfd wake = {.fd = s->wake_fd, .events = POLLIN};
	eventfd_t count;

	if (poll(&wake, 1, stopper_is_waiting(&s->stopper) ? 1 : NAP_NS / NS_PER_MS) > 0)
		(void)eventfd_read(s->wake_fd, &count);
	take_late(s);
}

static void run_pace(struct sampler *s, struct pace *pace)
{
	struct pace_tick tick = {
		.slowdown = slowdown(s), .scheduler_tick_ns = s->scheduler_tick_ns, .ended = end_target, .context = s};

	pace_tick(pace, &tick, clock_now_ns());
	paces_set_due(&s->paces, pace, s->options.jitter);
}

static void beat(struct sampler *s)
{
	/* relaxed: a sign of life, nothing hangs on it; only this thread writes it */
	atomic_store_explicit(&s->beats, atomic_load_explicit(&s->beats, memory_order_relaxed) + 1,
	                      memory_order_relaxed);
}

static void *run_sampler(void *context)
{
	struct sampler *s = context;

	prctl(PR_SET_NAME, "sampled-sampler");
	affinity_begin(&s->affinity);
	visits_begin(&s->affinity.visits, s->options.visit_budget_ppm);
	/* Who waits for a CPU while it holds a thread makes that wait, too; where it is not permitted, so be it. */
	if (sampler_stops(&s->options))
		(void)setpriority(PRIO_PROCESS, 0, STOPPING_NICE);
	s->affinity.at_once = turns_begin(s->options.realtime);
	s->scheduler_tick_ns = pace_scheduler_tick_ns();
	while (!is_stopped(s)) {
		struct pace *pace;

		beat(s);
		adopt_added(s);
		detach_wished(s);
		paces_drop_empty(&s->paces);
		give_way(s);
		if (s->paces.count == 0) {
			write_mark(s);
			wait_for_targets(s);
			continue;
		}
		pace = paces_next(&s->paces);
		if (wait_until(s, pace)) {
			selfstop_forbid(&s->selfstop);
			run_pace(s, pace);
		}
		write_mark(s);
		if (ring_used_bytes(s->ring) > ring_room_bytes(s->ring) / WAKE_PART)
			ring_wake(s->ring);
	}
	write_mark(s);
	paces_finish(&s->paces);
	ring_close(s->ring);
	return NULL;
}

int sampler_start(struct sampler *s, struct fault *fault)
{
	struct sched_param param = {.sched_priority = 1};
	int err;

	selfstop_begin(&s->selfstop);
	err = pthread_create(&s->thread, NULL, run_sampler, s);
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
	wake(s);
	pthread_join(s->thread, NULL);
	s->started = false;
	selfstop_end(&s->selfstop); /* the thread's end has let go what it held */
}

void sampler_free(struct sampler *s)
{
	struct letter *next;

	if (!s)
		return;
	sampler_stop(s);
	paces_release(&s->paces);
	detach_wished(s); /* frees what was asked for too late */
	for (struct letter *letter = mailbox_take(&s->added); letter; letter = next) {
		next = letter->next;
		target_free((struct target *)letter);
	}
	for (struct target *target; (target = sampler_take_ended(s));)
		target_free(target);
	if (s->event_fd >= 0)
		close(s->event_fd);
	if (s->wake_fd >= 0)
		close(s->wake_fd);
	symtab_free(s->symbols);
	selfstop_release(&s->selfstop);
	free(s);
}

void sampler_add(struct sampler *s, struct target *target)
{
	mailbox_put(&s->added, &target->letter);
	wake(s);
}

int sampler_detach(struct sampler *s, pid_t pid, uint64_t start_time)
{
	struct detachment *wish = malloc(sizeof(*wish));

	if (!wish)
		return -ENOMEM;
	*wish = (struct detachment){.pid = pid, .start_time = start_time};
	mailbox_put(&s->detachments, &wish->letter);
	wake(s);
	return 0;
}

void sampler_slow_down(struct sampler *s, uint32_t factor)
{
	atomic_store_explicit(&s->slowdown, factor ? factor : 1, memory_order_relaxed); /* as in slowdown() */
}

struct target *sampler_take_ended(struct sampler *s)
{
	struct letter *letter;
	uint64_t count;

	if (!s->taken) {
		if (s->event_fd >= 0 && read(s->event_fd, &count, sizeof(count)) < 0)
			count = 0; /* nothing ended since */
		s->taken = mailbox_take(&s->ended);
	}
	letter = s->taken;
	if (letter)
		s->taken = letter->next;
	return (struct target *)letter;
}

int sampler_event_fd(const struct sampler *s)
{
	return s->event_fd;
}

void sampler_ask_mark(struct sampler *s, uint64_t sequence)
{
	atomic_store_explicit(&s->mark_asked, sequence, memory_order_release); /* pairs with write_mark */
	wake(s);
}

void sampler_stop_process(struct sampler *s, int signal)
{
	selfstop_ask(&s->selfstop, signal);
	if (signal)
		wake(s);
}

uint64_t sampler_beats(const struct sampler *s)
{
	return atomic_load_explicit(&s->beats, memory_order_relaxed); /* as in beat() */
}

uint64_t sampler_cpu_ns(const struct sampler *s)
{
	clockid_t clock;

	return s->started && pthread_getcpuclockid(s->thread, &clock) == 0 ? clock_read_ns(clock) : 0;
}

bool sampler_is_realtime(const struct sampler *s)
{
	return s->realtime;
}
