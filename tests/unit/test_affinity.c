/* SPDX-License-Identifier: Apache-2.0 */
/* Each test runs in a process of its own, so that masks may be changed. */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sampler/affinity.h"

/* A child bound to the `nth` CPU that we may run on. */
static pid_t bound_child(const cpu_set_t *own, int nth, int *ret_cpu)
{
	cpu_set_t one;
	pid_t pid;
	int cpu = 0;

	for (; !CPU_ISSET(cpu, own) || nth-- > 0; cpu++)
		;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pid = fork();
	if (pid == 0) {
		pause();
		_exit(0);
	}
	cr_assert_eq(sched_setaffinity(pid, sizeof(one), &one), 0);
	*ret_cpu = cpu;
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

Test(affinity, the_cpu_of_a_bound_target_is_left_to_it)
{
	struct affinity a;
	cpu_set_t own, now;
	pid_t child;
	int cpu;

	affinity_begin(&a);
	cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
	if (CPU_COUNT(&own) < 2)
		cr_skip_test("one CPU only");
	affinity_avoid(&a, getpid()); /* bound to nothing */
	sched_getaffinity(0, sizeof(now), &now);
	cr_expect(CPU_EQUAL(&now, &own));
	child = bound_child(&own, 0, &cpu);
	affinity_avoid(&a, child);
	sched_getaffinity(0, sizeof(now), &now);
	cr_expect_not(CPU_ISSET(cpu, &now));
	cr_expect_eq(CPU_COUNT(&now), CPU_COUNT(&own) - 1);
	end(child);
}

Test(affinity, the_last_cpu_is_not_given_up)
{
	struct affinity a;
	cpu_set_t own, now;
	int cpu;

	cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
	affinity_begin(&a);
	for (int i = 0; i < CPU_COUNT(&own); i++) {
		pid_t child = bound_child(&own, i, &cpu);

		affinity_avoid(&a, child);
		end(child);
	}
	sched_getaffinity(0, sizeof(now), &now);
	cr_expect_eq(CPU_COUNT(&now), 1);
}

Test(affinity, a_cpu_is_gone_to_and_left)
{
	struct affinity a;
	cpu_set_t own, now;

	cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
	affinity_begin(&a);
	cr_expect_not(affinity_go(&a, -1));
	cr_expect_not(affinity_go(&a, CPU_SETSIZE));
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		cr_assert_eq(affinity_go(&a, cpu), CPU_ISSET(cpu, &own) != 0, "CPU %d", cpu);
		if (!CPU_ISSET(cpu, &own))
			continue;
		cr_expect_eq(sched_getcpu(), cpu);
		affinity_leave(&a);
		sched_getaffinity(0, sizeof(now), &now);
		cr_expect_eq(CPU_ISSET(cpu, &now) != 0, CPU_COUNT(&own) == 1, "CPU %d", cpu);
		cr_expect_eq(CPU_COUNT(&now), CPU_COUNT(&own) == 1 ? 1 : CPU_COUNT(&own) - 1);
	}
}

Test(affinity, a_bound_target_is_gone_to_as_well)
{
	struct affinity a;
	cpu_set_t own;
	pid_t child;
	int cpu;

	affinity_begin(&a);
	cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
	child = bound_child(&own, 0, &cpu);
	affinity_avoid(&a, child);
	cr_expect(affinity_go(&a, cpu));
	cr_expect_eq(sched_getcpu(), cpu);
	cr_expect(affinity_is_there(&a));
	end(child);
}

Test(affinity, a_mask_that_others_change_is_noticed)
{
	struct affinity a;
	cpu_set_t own, elsewhere;
	int first = 0;

	affinity_begin(&a);
	cr_assert_eq(sched_getaffinity(0, sizeof(own), &own), 0);
	if (CPU_COUNT(&own) < 2)
		cr_skip_test("one CPU only");
	cr_expect_not(affinity_is_there(&a));
	while (!CPU_ISSET(first, &own))
		first++;
	cr_assert(affinity_go(&a, first));
	elsewhere = own;
	CPU_CLR(first, &elsewhere);
	cr_assert_eq(sched_setaffinity(0, sizeof(elsewhere), &elsewhere), 0);
	cr_expect_not(affinity_is_there(&a));
	cr_expect(affinity_go(&a, first));
	cr_expect_eq(sched_getcpu(), first);
}
