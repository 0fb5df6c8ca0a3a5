/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread does by /proc/PID/task/TID/syscall: texts of every kind, and a real thread's. */
#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sampler/oncpu.h"
#include "sampler/syscalls.h"

static struct oncpu parsed(const char *text)
{
	struct oncpu o = {.syscall_fd = -1, .stat_fd = -1, .schedstat_fd = -1};

	oncpu_parse_syscall(&o, text, strlen(text));
	return o;
}

static void expect_place(const char *text, int32_t number, uint64_t sp, uint64_t pc)
{
	struct oncpu o = parsed(text);
	int32_t is_number = -2;
	uint64_t is_sp = 0, is_pc = 0;

	cr_assert(oncpu_number(&o, &is_number), "%s", text);
	cr_expect_eq(is_number, number, "%s", text);
	cr_assert(oncpu_place(&o, &is_sp, &is_pc), "%s", text);
	cr_expect_eq(is_sp, sp, "%s: 0x%lx", text, is_sp);
	cr_expect_eq(is_pc, pc, "%s: 0x%lx", text, is_pc);
}

Test(oncpu, blocked_threads_say_in_what_and_where)
{
	expect_place("232 0x4 0x7ffd12345678 0x400 0xffffffff 0x0 0x8 0x7ffd12345600 0x7f1234567890\n", 232,
	             0x7ffd12345600, 0x7f1234567890);
	expect_place("-1 0x7ffd12345600 0x7f1234567890\n", -1, 0x7ffd12345600, 0x7f1234567890);
	expect_place("0 0x0 0x0 0x0 0x0 0x0 0x0 0x10 0x20\n", 0, 0x10, 0x20);
	expect_place(
		"461 0xffffffffffffffff 0xffffffffffffffff 0xffffffffffffffff 0xffffffffffffffff 0xffffffffffffffff "
		"0xffffffffffffffff 0xfffffffffffffffe 0xfffffffffffffffd\n",
		461, 0xfffffffffffffffe, 0xfffffffffffffffd);
}

Test(oncpu, a_futex_is_told_with_its_address)
{
	char text[160];
	struct oncpu o;

	snprintf(text, sizeof(text), "%d 0x7f00aabbccdd 0x189 0x0 0x0 0x0 0xffffffff 0x7ffd12345600 0x7f1234567890\n",
	         SYS_futex);
	o = parsed(text);
	cr_expect_eq(o.state, ONCPU_BLOCKED_FUTEX);
	cr_expect_eq(o.futex, 0x7f00aabbccddu);
	expect_place(text, SYS_futex, 0x7ffd12345600, 0x7f1234567890);
}

Test(oncpu, what_was_not_said_is_not_told)
{
	static const char *const nowhere[] = {"running\n", "", "\n", "x", "-2 0x1 0x2\n", "99999999999 0x1 0x2\n"};
	static const char *const no_place[] = {"-1",         "-1\n",          "-1 0x0 0x0\n", "7 0x1\n",
	                                       "7 0x1 0x\n", "7 0x1 0x2 y\n", "7 x 0x2\n"};
	uint64_t sp = 1, pc = 2;
	int32_t number;

	for (size_t i = 0; i < sizeof(nowhere) / sizeof(nowhere[0]); i++) {
		struct oncpu o = parsed(nowhere[i]);

		cr_expect_not(oncpu_number(&o, &number), "%s", nowhere[i]);
		cr_expect_not(oncpu_place(&o, &sp, &pc), "%s", nowhere[i]);
	}
	for (size_t i = 0; i < sizeof(no_place) / sizeof(no_place[0]); i++) {
		struct oncpu o = parsed(no_place[i]);

		cr_expect(oncpu_number(&o, &number), "%s", no_place[i]);
		cr_expect_not(oncpu_place(&o, &sp, &pc), "%s", no_place[i]);
	}
}

/* Whoever has moved since is taken to run without being asked (sampler/status.c): it is nowhere then. */
Test(oncpu, a_thread_that_runs_again_is_in_no_system_call)
{
	struct oncpu o = parsed("0 0x0 0x0 0x0 0x0 0x0 0x0 0x10 0x20\n");
	uint64_t sp, pc;
	int32_t number;

	o.state = ONCPU_RUNNABLE;
	cr_expect_not(oncpu_number(&o, &number));
	cr_expect_not(oncpu_place(&o, &sp, &pc));
	oncpu_parse_syscall(&o, "running\n", 8);
	o.state = ONCPU_BLOCKED;
	cr_expect_not(oncpu_number(&o, &number), "what was told before must not be left");
}

struct reader {
	int from_fd;
	pid_t tid;
	uint64_t stack_from, stack_end;
};

static void *read_one(void *context)
{
	struct reader *r = context;
	pthread_attr_t attr;
	void *stack = NULL;
	size_t stack_bytes = 0;
	char byte;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &stack, &stack_bytes);
	pthread_attr_destroy(&attr);
	r->stack_from = (uint64_t)(uintptr_t)stack;
	r->stack_end = r->stack_from + stack_bytes;
	__atomic_store_n(&r->tid, gettid(), __ATOMIC_RELEASE);
	return read(r->from_fd, &byte, 1) == 1 ? r : NULL;
}

Test(oncpu, a_real_thread_in_read, .timeout = 20)
{
	struct reader r = {0};
	struct oncpu o;
	int ends[2];
	int32_t number = -2;
	uint64_t sp = 0, pc = 0, before, after;
	pthread_t thread;
	void *done;

	cr_assert_eq(pipe(ends), 0);
	r.from_fd = ends[0];
	cr_assert_eq(pthread_create(&thread, NULL, read_one, &r), 0);
	while (__atomic_load_n(&r.tid, __ATOMIC_ACQUIRE) == 0)
		usleep(100);
	oncpu_open(&o, getpid(), r.tid);
	if (o.syscall_fd < 0)
		cr_skip_test("no syscall file");
	do {
		cr_assert_eq(oncpu_ask(&o, 1), 0);
	} while (o.state != ONCPU_BLOCKED || o.number != SYS_read);
	cr_expect(oncpu_number(&o, &number));
	cr_expect_eq(number, SYS_read);
	cr_assert(oncpu_place(&o, &sp, &pc));
	cr_expect(sp >= r.stack_from && sp < r.stack_end);
	cr_expect_neq(pc, 0u);
	cr_expect_eq(oncpu_where(&o), -EAGAIN);
	if (oncpu_slices(&o, &before)) {
		cr_expect(before > 0);
		oncpu_spare(&o);
		cr_expect(oncpu_slices(&o, &after));
		cr_expect_eq(after, before, "it was given no CPU");
	}
	cr_assert_eq(write(ends[1], "x", 1), 1);
	pthread_join(thread, &done);
	cr_expect_eq(done, &r);
	oncpu_release(&o);
}

Test(oncpu, system_calls_have_their_names)
{
	cr_expect_str_eq(syscall_name(SYS_read), "read");
	cr_expect_str_eq(syscall_name(SYS_futex), "futex");
	cr_expect_str_eq(syscall_name(SYS_epoll_pwait), "epoll_pwait");
	cr_expect_null(syscall_name(-1));
	cr_expect_null(syscall_name((int32_t)syscall_name_count));
	cr_expect_null(syscall_name(INT32_MAX));
}
