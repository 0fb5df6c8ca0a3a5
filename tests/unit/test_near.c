/* SPDX-License-Identifier: Apache-2.0 */
/* When the sampler's thread goes to the CPU of its target: here a real process, bound to one. Each test runs in a process of its own. */
#include "sampler/near.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/affinity.h"
#include "sampler/target.h"
#include "sampler/turns.h"

#define NOW_NS NS_PER_S

static struct thread one = {.id = 7}, *threads[] = {&one};
static struct affinity affinity;
static struct target *target;
static pid_t child;
static int child_cpu;

/* The last CPU that we may run on. */
static int last_cpu(void)
{
	cpu_set_t own;
	int cpu = CPU_SETSIZE - 1;

	cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
	while (!CPU_ISSET(cpu, &own))
		cpu--;
	return cpu;
}

/* A target with one thread, which runs, or sleeps; and holds the GIL, as far as is known. */
static void begin(bool runs, uint64_t interval_ns)
{
	cpu_set_t there;

	child_cpu = last_cpu();
	CPU_ZERO(&there);
	CPU_SET(child_cpu, &there);
	child = fork();
	if (child == 0)
		for (;;)
			if (!runs)
				pause();
	cr_assert_eq(sched_setaffinity(child, sizeof(there), &there), 0);
	oncpu_open(&one.oncpu, child, child);
	while (oncpu_where(&one.oncpu) != (runs ? child_cpu : -EAGAIN))
		;
	target = calloc(1, sizeof(*target));
	cr_assert_not_null(target);
	target->threads = threads;
	target->thread_count = 1;
	target->proc.pid = child;
	target->interval_ns = interval_ns;
	target->tick = 1;
	affinity_begin(&affinity);
	affinity.at_once = turns_begin(false);
	if (!affinity.at_once) {
		kill(child, SIGKILL);
		cr_skip_test("this kernel makes who wakes up wait for its turn");
	}
	near_join(target, &affinity);
	near_note(target, &one, STATUS_GIL | STATUS_RUNNABLE);
}

/* A tick. What it looks at there is no Python. Where other programs had that CPU for longer than it waits, it is as if that tick had not been. */
static bool goes_at(uint64_t now_ns)
{
	struct affinity was = affinity;
	struct near before = target->near;

	for (;;) {
		struct walker w = {.abi = pyabi_table(3, 12), .remote = &target->remote, .tick = target->tick, .now_ns = now_ns};

		if (near_begin(target, &w))
			return true;
		if (affinity.until_ns <= now_ns || was.until_ns > now_ns)
			return false;
		affinity = was;
		affinity.at = -1;
		target->near = before;
	}
}

static void end(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	oncpu_release(&one.oncpu);
	free(target);
}

Test(near, at_low_rates_each_tick_is_where_the_target_runs, .timeout = 20)
{
	begin(true, 10 * NS_PER_MS);
	for (uint64_t tick = 0; tick < 3; tick++) {
		cr_expect(goes_at(NOW_NS + tick * target->interval_ns));
		cr_expect_eq(sched_getcpu(), child_cpu);
		cr_expect_eq(target->near.t_there_ns, NOW_NS + tick * target->interval_ns);
		cr_expect_not(near_stood(target, &one), "there is no stack to be seen");
		target->tick++;
	}
	cr_expect(near_serves(target, NOW_NS + 3 * target->interval_ns));
	cr_expect_not(near_serves(target, NOW_NS + NS_PER_S));
	near_leave(target);
	cr_expect(affinity.at < 0);
	end();
}

Test(near, at_high_rates_some_are_while_samples_are_owed, .timeout = 20)
{
	begin(true, NS_PER_MS);
	cr_expect_not(goes_at(NOW_NS));
	target->owed_count = 1;
	target->owed_plain = 1;
	cr_expect_not(goes_at(NOW_NS), "of a thread with nothing outside its data stack: others will do");
	target->owed_plain = 0;
	cr_expect(goes_at(NOW_NS));
	cr_expect(affinity.at < 0, "the rest of the tick is done elsewhere");
	cr_expect_not(goes_at(NOW_NS + NS_PER_MS), "it was just there");
	cr_expect(goes_at(NOW_NS + 10 * NS_PER_MS));
	target->interval_ns = NS_PER_MS / 10;
	cr_expect(goes_at(NOW_NS + 20 * NS_PER_MS), "10 kHz");
	target->interval_ns = 0;
	cr_expect(goes_at(NOW_NS + 30 * NS_PER_MS), "unthrottled");
	end();
}

Test(near, the_more_targets_the_more_seldom_each_is_gone_to, .timeout = 20)
{
	static struct target other;

	begin(true, 10 * NS_PER_MS);
	other.proc.pid = child;
	near_join(&other, &affinity);
	cr_expect_not(goes_at(NOW_NS), "as often as this one of them is");
	target->owed_count = 1;
	cr_expect(goes_at(NOW_NS));
	cr_expect_not(goes_at(NOW_NS + 15 * NS_PER_MS));
	cr_expect(goes_at(NOW_NS + 20 * NS_PER_MS));
	target->owed_count = 0;
	target->interval_ns = 20 * NS_PER_MS;
	cr_expect(goes_at(NOW_NS + 21 * NS_PER_MS), "a low rate is 50 Hz now");
	target->interval_ns = 10 * NS_PER_MS;
	near_leave(&other);
	near_leave(&other); /* once is enough */
	cr_expect(goes_at(NOW_NS + 31 * NS_PER_MS));
	end();
}

Test(near, nothing_is_gone_to_without_cause, .timeout = 20)
{
	begin(true, 10 * NS_PER_MS);
	affinity.at_once = false;
	cr_expect_not(goes_at(NOW_NS), "it would have to wait there");
	affinity.at_once = true;
	one.id = 8;
	cr_expect_not(goes_at(NOW_NS), "the one that ran is no more");
	one.id = 7;
	cr_expect(goes_at(NOW_NS));
	end();
	begin(false, 10 * NS_PER_MS);
	cr_expect_not(goes_at(NOW_NS), "it sleeps");
	end();
}

Test(near, where_it_has_to_wait_it_does_not_stay, .timeout = 20)
{
	begin(true, 10 * NS_PER_MS);
	cr_expect(goes_at(NOW_NS));
	affinity.waits = 0; /* for its first turn there it may have */
	for (int i = 0; i < 2; i++)
		near_woke(target, 6 * NS_PER_MS, NOW_NS);
	near_woke(target, 4 * NS_PER_MS, NOW_NS);
	for (int i = 0; i < 2; i++)
		near_woke(target, 6 * NS_PER_MS, NOW_NS);
	cr_expect_eq(affinity.at, child_cpu, "never three times in a row");
	near_woke(target, 6 * NS_PER_MS, NOW_NS);
	cr_expect(affinity.at < 0);
	cr_expect_not(goes_at(NOW_NS + NS_PER_S / 2));
	cr_expect(goes_at(NOW_NS + 2 * NS_PER_S));
	near_woke(target, NS_PER_S, NOW_NS + 3 * NS_PER_S);
	cr_expect(affinity.at < 0, "a second is too long even once");
	near_woke(target, NS_PER_S, NOW_NS + 3 * NS_PER_S); /* elsewhere that is nothing to it */
	cr_expect_not(goes_at(NOW_NS + 18 * NS_PER_S));
	end();
}

/* Lets it wait three times, and tells how many whole seconds it keeps away. */
static unsigned seconds_away(uint64_t now_ns)
{
	unsigned seconds = 0;

	cr_assert(goes_at(now_ns));
	affinity.waits = 0;
	for (int i = 0; i < 3; i++)
		near_woke(target, 6 * NS_PER_MS, now_ns);
	while (!goes_at(now_ns + seconds * NS_PER_S) && seconds < 60)
		seconds++;
	affinity.waits = 0;
	return seconds;
}

Test(near, each_time_it_has_to_wait_it_keeps_away_twice_as_long, .timeout = 20)
{
	uint64_t now_ns = NOW_NS;

	begin(true, 10 * NS_PER_MS);
	for (unsigned away = 1; away <= 16; away *= 2) {
		cr_expect_eq(seconds_away(now_ns), away);
		now_ns += (away + 1) * NS_PER_S;
	}
	cr_expect_eq(seconds_away(now_ns), 16);
	now_ns += 40 * NS_PER_S;
	cr_expect_eq(seconds_away(now_ns), 1, "that was long ago");
	end();
}

Test(near, who_does_not_run_is_not_noted, .timeout = 20)
{
	struct thread other = {.id = 9};

	begin(true, 10 * NS_PER_MS);
	near_note(target, &other, STATUS_IDLE);
	near_note(target, &other, STATUS_RUNNABLE);
	near_note(target, &other, STATUS_GIL);
	cr_expect(goes_at(NOW_NS));
	cr_expect_eq(target->near.thread, one.id);
	end();
}
