/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's count of a thread's CPU time: its text, and that of real threads. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/cputime.h"
#include "sampler/record.h"

static bool parses(const char *text, uint64_t cpu_ns, uint64_t wait_ns)
{
	uint64_t is_cpu = 0, is_wait = 0;

	return cputime_parse(text, strlen(text), &is_cpu, &is_wait) && is_cpu == cpu_ns && is_wait == wait_ns;
}

Test(cputime, texts)
{
	static const char *const bad[] = {"",       "1",      "1 2", "1 2 ",  " 1 2 3",
	                                  "-1 2 3", "1  2 3", "x",   "1 2 x", "18446744073709551616 0 0"};
	uint64_t cpu_ns, wait_ns;

	cr_expect(parses("123456789 42 7\n", 123456789, 42));
	cr_expect(parses("0 0 0\n", 0, 0));
	cr_expect(parses("18446744073709551615 18446744073709551615 18446744073709551615\n", UINT64_MAX, UINT64_MAX));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_expect_not(cputime_parse(bad[i], strlen(bad[i]), &cpu_ns, &wait_ns), "%s", bad[i]);
}

static void burn(uint64_t ns)
{
	uint64_t end_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_read_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		;
}

static const struct rec_time *next_time(struct ring *ring)
{
	const struct rec_head *record = ring_peek(ring);

	if (!record)
		return NULL;
	cr_assert_eq(record->type, REC_TIME);
	cr_assert_eq(record->bytes, sizeof(struct rec_time));
	return (const struct rec_time *)record;
}

Test(cputime, sums_are_the_threads_own_clock, .timeout = 20)
{
	struct cputime_files files = {0};
	struct cputime time;
	uint64_t before_ns, told_ns = 0;
	const struct rec_time *record;
	struct ring *ring;
	uint64_t to_ns = 0;

	cr_assert_eq(ring_new(&ring, 4096), 0);
	before_ns = clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
	cputime_begin(&time, getpid(), gettid(), clock_now_ns());
	if (time.t_ns == 0)
		cr_skip_test("no schedstat");
	for (int i = 0; i < 20; i++) {
		burn(10 * NS_PER_MS);
		cputime_write(&time, &files, getpid(), gettid(), 5, ring);
		if (!(record = next_time(ring)))
			continue;
		cr_expect_eq(record->thread, 5);
		cr_expect(to_ns == 0 || record->t_from_ns == to_ns, "no gap");
		cr_expect_lt(record->t_from_ns, record->t_to_ns);
		to_ns = record->t_to_ns;
		told_ns += record->cpu_ns;
		ring_release(ring);
	}
	cr_expect_float_eq((double)told_ns, (double)(clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns), 12e6,
	                   "%lu: the kernel counts at ticks of up to 10 ms", told_ns);
	cputime_forget(&files, 0);
	ring_free(ring);
}

Test(cputime, is_due_after_20_ms_of_a_thread_that_ran)
{
	struct cputime time = {.t_ns = NS_PER_S, .ran = true};

	cr_expect_not(cputime_is_due(&time, NS_PER_S - 1));
	cr_expect_not(cputime_is_due(&time, NS_PER_S + 20 * NS_PER_MS - 1));
	cr_expect(cputime_is_due(&time, NS_PER_S + 20 * NS_PER_MS));
	time.ran = false;
	cr_expect_not(cputime_is_due(&time, 2 * NS_PER_S));
	time = (struct cputime){.ran = true};
	cr_expect_not(cputime_is_due(&time, 2 * NS_PER_S), "one that cannot be asked");
}

static void *wait_for_end(void *end)
{
	char byte;

	return read(*(int *)end, &byte, 1) == 1 ? end : NULL;
}

static void *tell_and_wait(void *context)
{
	int *ends = context;
	pid_t tid = gettid();

	if (write(ends[3], &tid, sizeof(tid)) != sizeof(tid))
		return NULL;
	return wait_for_end(&ends[0]);
}

/* More threads than files, none of which uses anything; then they are gone. */
Test(cputime, files_are_bounded_and_who_stands_or_is_gone_says_nothing, .timeout = 20)
{
	enum { THREADS = 2 * CPUTIME_FILES + 3 };
	struct cputime_files files = {0};
	struct cputime times[THREADS];
	pthread_t threads[THREADS];
	struct ring *ring;
	pid_t tids[THREADS];
	int ends[4];
	int first, last;

	cr_assert_eq(ring_new(&ring, 4096), 0);
	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(pipe(ends + 2), 0);
	for (int i = 0; i < THREADS; i++) {
		cr_assert_eq(pthread_create(&threads[i], NULL, tell_and_wait, ends), 0);
		cr_assert_eq(read(ends[2], &tids[i], sizeof(tids[i])), (ssize_t)sizeof(tids[i]));
	}
	usleep(50000); /* all are in read() */
	first = dup(0);
	close(first);
	for (int i = 0; i < THREADS; i++)
		cputime_begin(&times[i], getpid(), tids[i], 1);
	if (times[0].t_ns == 0)
		cr_skip_test("no schedstat");
	for (int round = 0; round < 3; round++)
		for (uint32_t i = 0; i < THREADS; i++)
			cputime_write(&times[i], &files, getpid(), tids[i], i + 1, ring);
	cr_expect_null(ring_peek(ring));
	last = dup(0);
	close(last);
	cr_expect_leq(last, first + (int)CPUTIME_FILES);
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(write(ends[1], "x", 1), 1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (uint32_t i = 0; i < THREADS; i++)
		cputime_write(&times[i], &files, getpid(), tids[i], i + 1, ring);
	cr_expect_null(ring_peek(ring));
	cputime_forget(&files, 7);
	cputime_forget(&files, 0);
	last = dup(0);
	close(last);
	cr_expect_eq(last, first, "all are closed");
	ring_free(ring);
}

Test(cputime, a_full_ring_only_delays)
{
	struct cputime_files files = {0};
	const struct rec_time *record;
	struct cputime time;
	struct ring *ring;
	uint64_t now_ns = clock_now_ns();

	cr_assert_eq(ring_new(&ring, 4096), 0);
	cputime_begin(&time, getpid(), gettid(), now_ns);
	if (time.t_ns == 0)
		cr_skip_test("no schedstat");
	while (ring_reserve(ring, 64, REC_MARK))
		ring_commit(ring);
	burn(40 * NS_PER_MS);
	cputime_write(&time, &files, getpid(), gettid(), 5, ring);
	while (ring_peek(ring))
		ring_release(ring);
	burn(20 * NS_PER_MS);
	cputime_write(&time, &files, getpid(), gettid(), 5, ring);
	record = next_time(ring);
	cr_assert(record);
	cr_expect_eq(record->t_from_ns, now_ns);
	cr_expect_geq(record->cpu_ns, 50 * NS_PER_MS);
	cputime_forget(&files, 0);
	ring_free(ring);
}
