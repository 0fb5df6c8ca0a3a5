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
	visits_begin(&affinity.visits, VISIT_BUDGET_PPM);
	near_join(target, &affinity);
	near_note(target, &one, STATUS_GIL | STATUS_RUNNABLE);
}

/* A tick. What it looks at there is no Python. Where other programs had that CPU for longer than it waits, it is as if that tick had not been. */
static bool goes(void)
{
	struct visit_cpu *cpu = &affinity.visits.cpus[child_cpu], was;

	for (;;) {
		struct walker w = {.abi = pyabi_table(3, 12), .remote = &target->remote, .tick = target->tick, .now_ns = clock_now_ns()};

		was = *cpu;
		if (near_begin(target, &w))
			return true;
		if (cpu->until_ns == was.until_ns)
			return false;
		*cpu = was;
	}
}

/* What was spent is had again. */
static void refill(void)
{
	affinity.visits.cpus[child_cpu] = (struct visit_cpu){0};
}

static void end(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	oncpu_release(&one.oncpu);
	free(target);
}

Test(near, each_tick_is_where_the_target_runs, .timeout = 20)
{
	begin(true, 4 * NS_PER_MS);
	for (uint64_t tick = 0; tick < 3; tick++) {
		refill();
		cr_expect(goes());
		cr_expect_eq(sched_getcpu(), child_cpu);
		near_end(target);
		cr_expect_not(near_stood(target, &one), "there is no stack to be seen");
		target->tick++;
	}
	near_leave(target);
	cr_expect(affinity.at < 0);
	end();
}

Test(near, who_sleeps_stands_until_it_is_woken, .timeout = 20)
{
	begin(false, 4 * NS_PER_MS);
	cr_expect_not(goes());
	cr_expect(near_slept(target, &one));
	target->tick++;
	cr_expect_not(near_slept(target, &one), "it is not known of this tick");
	cr_expect_not(goes());
	kill(child, SIGSTOP); /* to stop it has to run */
	waitpid(child, NULL, WUNTRACED);
	cr_expect_not(near_slept(target, &one));
	near_leave(target);
	end();
}

Test(near, visits_end_where_the_budget_does, .timeout = 20)
{
	begin(true, NS_PER_MS);
	affinity.visits.budget_ppm = 1;
	cr_expect(goes());
	visits_spend(&affinity.visits, child_cpu, NS_PER_MS, clock_now_ns());
	cr_expect(goes());
	cr_expect(affinity.at < 0, "little is left: the rest of the tick is done elsewhere");
	visits_spend(&affinity.visits, child_cpu, NS_PER_MS, clock_now_ns());
	cr_expect_not(goes());
	target->interval_ns = 0;
	cr_expect_not(goes(), "unthrottled, too");
	refill();
	cr_expect(goes());
	affinity.visits.budget_ppm = 0;
	refill();
	cr_expect_not(goes(), "none are wanted");
	end();
}

Test(near, nothing_is_gone_to_without_cause, .timeout = 20)
{
	begin(true, 10 * NS_PER_MS);
	affinity.at_once = false;
	cr_expect_not(goes(), "it would have to wait there");
	affinity.at_once = true;
	target->thread_count = 0;
	cr_expect_not(goes(), "the one that ran is no more");
	target->thread_count = 1;
	cr_expect(goes());
	end();
	begin(false, 10 * NS_PER_MS);
	cr_expect_not(goes(), "it sleeps");
	end();
}

Test(near, where_it_has_to_wait_it_does_not_stay, .timeout = 20)
{
	begin(true, 10 * NS_PER_MS);
	cr_expect(goes());
	near_woke(target, NS_PER_S, clock_now_ns());
	cr_expect(affinity.at < 0, "a second is too long even once");
	cr_expect_not(goes());
	near_woke(target, NS_PER_S, clock_now_ns()); /* elsewhere that is nothing to it */
	refill();
	cr_expect(goes());
	end();
}

Test(near, who_does_not_run_is_not_noted, .timeout = 20)
{
	struct thread other = {.id = 9};

	begin(true, 10 * NS_PER_MS);
	near_note(target, &other, STATUS_IDLE);
	near_note(target, &other, STATUS_RUNNABLE);
	near_note(target, &other, STATUS_GIL);
	cr_expect(goes());
	cr_expect_eq(target->near.thread, one.id);
	end();
}
