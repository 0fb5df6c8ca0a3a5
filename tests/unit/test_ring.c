/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/record.h"
#include "sampler/ring.h"

static struct ring *ring;

static void setup(void)
{
	cr_assert_eq(ring_new(&ring, 1), 0);
}

static void teardown(void)
{
	ring_free(ring);
}

TestSuite(ring, .init = setup, .fini = teardown);

/* Writes a record of `bytes` filled with `fill`; whether it found room. */
static bool put(uint32_t bytes, uint32_t type, int fill)
{
	struct rec_head *record = ring_reserve(ring, bytes, type);

	if (!record)
		return false;
	memset(record + 1, fill, record->bytes - sizeof(*record));
	ring_commit(ring);
	return true;
}

/* Takes the oldest record, which must be this one, whole. */
static void take(uint32_t bytes, uint32_t type, int fill)
{
	const struct rec_head *record = ring_peek(ring);
	const unsigned char *content = (const unsigned char *)(record + 1);

	cr_assert_not_null(record);
	cr_assert_eq(record->bytes, bytes);
	cr_assert_eq(record->type, type);
	for (uint32_t i = 0; i < bytes - sizeof(*record); i++)
		cr_assert_eq(content[i], fill);
	ring_release(ring);
}

Test(ring, room_is_a_power_of_two_of_pages)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	struct ring *other;

	cr_assert_eq(ring_room_bytes(ring), page_bytes);
	cr_assert_eq(ring_new(&other, 5 * page_bytes + 1), 0);
	cr_assert_eq(ring_room_bytes(other), 8 * page_bytes);
	ring_free(other);
	cr_assert_lt(ring_new(&other, UINT64_MAX), 0);
	ring_free(NULL);
}

Test(ring, records_come_out_in_order_and_rounded_to_8)
{
	cr_assert_null(ring_peek(ring));
	cr_assert(put(8, REC_MARK, 0));
	cr_assert(put(13, REC_STACK, 1));
	cr_assert(put(24, REC_SYMBOL, 2));
	cr_assert_eq(ring_used_bytes(ring), 48);
	take(8, REC_MARK, 0);
	take(16, REC_STACK, 1);
	cr_assert_eq(ring_used_bytes(ring), 24);
	take(24, REC_SYMBOL, 2);
	cr_assert_null(ring_peek(ring));
	cr_assert_eq(ring_used_bytes(ring), 0);
	cr_assert_eq(ring_peak_bytes(ring), 48);
	for (int i = 0; i < 3; i++) {
		cr_assert(put(40, REC_STACK, i));
		take(40, REC_STACK, i);
	}
	cr_assert_eq(ring_peak_bytes(ring), 48, "it neither falls nor counts what was taken");
}

Test(ring, what_cannot_fit_is_refused)
{
	uint32_t room = (uint32_t)ring_room_bytes(ring);

	cr_assert_null(ring_reserve(ring, room + 1, REC_STACK));
	cr_assert_null(ring_reserve(ring, UINT32_MAX, REC_STACK));
	cr_assert_null(ring_reserve(ring, 7, REC_STACK), "smaller than a head");
	cr_assert(put(room, REC_STACK, 7), "exactly the room");
	cr_assert_null(ring_reserve(ring, 8, REC_STACK), "full");
	take(room, REC_STACK, 7);
	cr_assert(put(8, REC_STACK, 7));
	cr_assert_eq(ring_peak_bytes(ring), room);
}

/* Every alignment of a record to the ring's end, many times round. */
Test(ring, records_do_not_wrap)
{
	uint32_t room = (uint32_t)ring_room_bytes(ring);

	for (uint32_t round = 0; round < 3 * room / 8; round++) {
		uint32_t bytes = 8 * (1 + round % (room / 16));

		cr_assert(put(bytes, REC_STACK, (int)(round & 255)));
		cr_assert(put(bytes, REC_FACTS, (int)(~round & 255)));
		take(bytes, REC_STACK, (int)(round & 255));
		take(bytes, REC_FACTS, (int)(~round & 255));
	}
}

Test(ring, is_at_its_end_when_closed_and_empty)
{
	cr_assert(put(16, REC_MARK, 1));
	cr_assert_not(ring_at_end(ring));
	ring_close(ring);
	cr_assert_not(ring_at_end(ring), "a record is left");
	take(16, REC_MARK, 1);
	cr_assert(ring_at_end(ring));
	ring_wait(ring, UINT64_MAX / 2); /* closed: does not sleep */
}

Test(ring, wait_ends_at_its_time)
{
	uint64_t start_ns = clock_now_ns();

	ring_wait(ring, 20 * NS_PER_MS);
	cr_assert_geq(clock_now_ns() - start_ns, 20 * NS_PER_MS);
	cr_assert(put(16, REC_MARK, 1));
	start_ns = clock_now_ns();
	ring_wait(ring, 60 * NS_PER_S);
	cr_assert_lt(clock_now_ns() - start_ns, 30 * NS_PER_S, "there is a record: no sleep");
}

static void *wake_later(void *context)
{
	usleep(50000);
	if (*(bool *)context)
		ring_close(ring);
	else if (put(16, REC_MARK, 1))
		ring_wake(ring);
	return NULL;
}

Test(ring, a_sleeper_is_woken_by_a_record_and_by_the_end)
{
	for (int i = 0; i < 2; i++) {
		bool close_it = i == 1;
		uint64_t start_ns = clock_now_ns();
		pthread_t other;

		cr_assert_eq(pthread_create(&other, NULL, wake_later, &close_it), 0);
		ring_wait(ring, 60 * NS_PER_S);
		cr_assert_lt(clock_now_ns() - start_ns, 30 * NS_PER_S);
		pthread_join(other, NULL);
		if (!close_it)
			take(16, REC_MARK, 1);
	}
	cr_assert(ring_at_end(ring));
}

/* In a child that the kernel kills at any system call but read, write and exit. */
Test(ring, the_producer_makes_no_system_call_while_nobody_sleeps)
{
	int status;
	pid_t child;

	ring_wait(ring, 1); /* a consumer that slept, and no longer does */
	child = fork();
	cr_assert_geq(child, 0);
	if (child == 0) {
		if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
			_exit(2);
		for (int i = 0; i < 100000; i++) {
			put(48, REC_STACK, i & 255); /* runs full: refusals are free as well */
			ring_wake(ring);
		}
		ring_close(ring);
		syscall(SYS_exit, 0);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 2)
		cr_skip_test("no seccomp on this kernel");
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0, "killed at a system call");
}
