/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "build_profile.h"
#include "daemon/summary.h"

/* What was said on standard error. */
static void summarize(const struct profile *profile, char *ret_said, size_t room)
{
	int ends[2], kept = dup(STDERR_FILENO);
	ssize_t bytes;

	cr_assert_eq(pipe(ends), 0);
	fflush(stderr);
	dup2(ends[1], STDERR_FILENO);
	summary_print(profile, &(struct summary_options){0});
	fflush(stderr);
	dup2(kept, STDERR_FILENO);
	close(ends[1]);
	bytes = read(ends[0], ret_said, room - 1);
	ret_said[bytes > 0 ? bytes : 0] = '\0';
	close(ends[0]);
	close(kept);
}

/* Options leave out the thread that waited most: the machine is as overloaded as before, and every output has one figure for it. */
Test(summary, overload_is_the_facts_share)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 1, "x"), t = built_thread(p, process, 0, 1, "Main");
	char said[2048];

	built_sample(p, t, 0, 5, STATUS_RUNNABLE);
	built_cpu_time(p);
	p->threads[t].nodes[0].self[VALUE_CPU] = 2000000;
	p->threads[t].nodes[0].self[VALUE_RUN_WAIT] = 1000000;
	p->filtered = 5;
	p->left_out.wall = 5000000;
	p->left_out.run_wait = 3000000;
	p->left_out.cpu = 500000;
	summarize(p, said, sizeof(said));
	cr_expect(strstr(said, "overloaded machine: 62 % of runnable time was waiting for a CPU"), "%s", said);
	p->left_out.run_wait = p->threads[t].nodes[0].self[VALUE_RUN_WAIT] = 0;
	summarize(p, said, sizeof(said));
	cr_expect_null(strstr(said, "overloaded"), "%s", said);
	built_free(p);
}

/* Half of the time nothing was sampled, of the thread that is left as of the others: the kernel counted 8 ms of waiting in its 10. */
Test(summary, what_the_kernel_counted_is_of_the_time_of_the_threads_that_are_left)
{
	struct profile *p = built_new();
	uint32_t process = built_process(p, 1, "x"), t = built_thread(p, process, 0, 1, "Main");
	char said[2048];

	built_sample(p, t, 0, 5, STATUS_RUNNABLE);
	built_cpu_time(p);
	p->threads[t].nodes[0].self[VALUE_CPU] = 2000000;
	p->threads[t].nodes[0].self[VALUE_RUN_WAIT] = 8000000;
	p->filtered = 5;
	p->left_out.wall = 5000000;
	p->processes[process].facts.unsampled_ns = 10000000;
	summarize(p, said, sizeof(said));
	cr_expect(strstr(said, " time     CPU 20 %,"), "%s", said);
	cr_expect(strstr(said, "waiting   80.0 %  for a CPU: Main"), "%s", said);
	/* It lost more than the others did: it cannot have waited for longer than it was there. */
	p->threads[t].nodes[0].self[VALUE_RUN_WAIT] = 18000000;
	summarize(p, said, sizeof(said));
	cr_expect(strstr(said, "waiting   90.0 %  for a CPU: Main"), "%s", said);
	built_free(p);
}

/* Workers' main threads have one name. */
Test(summary, threads_of_one_name_stand_together)
{
	struct profile *p = built_new();
	char said[2048];

	for (int pid = 1; pid <= 3; pid++) {
		uint32_t process = built_process(p, pid, "worker");

		built_sample(p, built_thread(p, process, 0, (uint64_t)pid, "MainThread"), 0, 5, STATUS_GIL_WAIT);
		if (pid == 3)
			built_sample(p, built_thread(p, process, 0, 7, "sender"), 0, 2, STATUS_GIL_WAIT);
	}
	summarize(p, said, sizeof(said));
	cr_expect(strstr(said, "for the GIL: 3 \u00d7 MainThread, sender\n"), "%s", said);
	built_free(p);
}
